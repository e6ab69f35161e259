"""The exceptions and warnings of pomdp_hier: one family each, so that one ``except`` catches what a user can mend.

Every message names the offending value, where it stands, what was expected, and what to do. Where what to do is to give
an argument, the error carries it as a `Setting`, which Python words as ``add_root=True`` and the command line, by
`PomdpHierError.worded`, as ``--add-root``; an argument whose value is wrong is an `Argument`, in Python ``n_items``, on
the command line ``--n-items``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pomdp_hier._text import brief


@dataclass(frozen=True)
class Setting:
    """An argument that would mend what is wrong, with the values it may take, as a part of an error's message.

    Example:
        >>> str(Setting("tie", "descend", "search")), str(Setting("add_root", True)), str(Setting("path"))
        ('tie="descend" or "search"', 'add_root=True', 'path=')
    """

    argument: str
    values: tuple[object, ...]

    def __init__(self, argument: str, *values: object) -> None:
        object.__setattr__(self, "argument", argument)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        values = (f'"{value}"' if isinstance(value, str) else brief(value) for value in self.values)
        return f"{self.argument}=" + " or ".join(values)


class Argument(Setting):
    """The name of an argument, as a part of an error's message that says what is wrong with its value.

    Example:
        >>> str(ParameterError(Argument("n_items"), " is 0; give 1 or more"))
        'n_items is 0; give 1 or more'
    """

    def __str__(self) -> str:
        return self.argument


class PythonAdvice(Setting):
    """Advice that only Python code can follow, as a part of a message; the command line leaves it out.

    Example:
        >>> str(HierarchyWarning("1 node with one child.", PythonAdvice(" collapse_unary() removes it.")))
        '1 node with one child. collapse_unary() removes it.'
    """

    def __str__(self) -> str:
        return self.argument


class _Worded:
    """A message in parts, ``args``: text, and among it the settings, which each front end writes in its own words."""

    args: "tuple[str | Setting, ...]"

    @property
    def parts(self) -> "tuple[str | Setting, ...]":
        """The message's text, and the arguments that are wrong or correct it."""
        return self.args

    def __str__(self) -> str:
        return self.worded(str)

    def worded(self, words: "Callable[[Setting], str]") -> str:
        """Return the message with each setting in these words."""
        return "".join(words(part) if isinstance(part, Setting) else str(part) for part in self.args)


class PomdpHierError(_Worded, Exception):
    """The base of every error that pomdp_hier raises on purpose.

    Its arguments are the message: text, and among it the arguments that are wrong, and the settings that correct them.

    Example:
        >>> error = PomdpHierError("2 roots; join them (", Setting("add_root", True), ")")
        >>> str(error), error.worded(lambda setting: f"--{setting.argument}")
        ('2 roots; join them (add_root=True)', '2 roots; join them (--add_root)')
    """


class ParameterError(PomdpHierError, ValueError):
    """An argument has a value that its function cannot work with."""


class ModelError(PomdpHierError, ValueError):
    """A POMDP, one of its models or a belief is not what it claims to be."""


class ImpossibleObservationError(ModelError):
    """The observation has probability 0 under the belief and the action, so that Bayes' rule has no answer."""


class FileFormatError(PomdpHierError, ValueError):
    """A file does not follow its format; the message starts with the file and the line, row or position."""


class PomdpFileError(FileFormatError, ModelError):
    """A ``.pomdp`` file does not follow its grammar; the message starts with file, line and column."""


class PolicyFileError(FileFormatError):
    """A policy file does not follow its format, or is for another problem; the message starts with file and line."""


class PlanningError(PomdpHierError):
    """A planner cannot go on: a bound is violated, a budget is too small, no action is legal."""


class CertificateError(PomdpHierError):
    """A certificate cannot be read, or does not prove what it claims; the message names the first thing that fails."""


class HierarchyError(PomdpHierError, ValueError):
    """What was given is not a rooted tree over the items; the message names the nodes."""


class ReaderError(FileFormatError, HierarchyError):
    """A hierarchy file does not follow its format; the message names the row or the position."""


class FeatureError(PomdpHierError, ValueError):
    """Features cannot be used: wrong shape, NaN, infinite, or not matching the items; the message names rows."""


class CheckpointError(FileFormatError):
    """A checkpoint belongs to other data or settings, or cannot be read."""


class MissingExtraError(PomdpHierError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class PomdpHierWarning(_Worded, UserWarning):
    """The base of every warning that pomdp_hier gives; worded like `PomdpHierError`."""


class HierarchyWarning(PomdpHierWarning):
    """A tree was accepted, but something in it was dropped or looks unintended."""


class SimulationWarning(PomdpHierWarning):
    """A simulation came to its end, but what it shows is less than was asked for."""


class DataWarning(PomdpHierWarning):
    """Features were accepted, but some rows are degenerate (zero, constant, one column)."""
