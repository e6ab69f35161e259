"""The exceptions and warnings of pomdp_hier, with one base class each.

Every message has the argument or location, the value, the expected value and what to do. An argument that corrects the
error is a `Setting`: ``add_root=True`` in Python, and ``--add-root`` on the command line by `PomdpHierError.worded`. An
argument with a wrong value is an `Argument`: ``n_items`` in Python, ``--n-items`` on the command line.
"""

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from pomdp_hier._text import brief


@dataclass(frozen=True)
class Setting:
    """An argument that corrects an error, with its possible values, as a part of the message.

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
    """The name of an argument with a wrong value, as a part of the message.

    Example:
        >>> str(ParameterError(Argument("n_items"), ": got 0; expected an integer of at least 1."))
        'n_items: got 0; expected an integer of at least 1.'
    """

    def __str__(self) -> str:
        return self.argument


class PythonAdvice(Setting):
    """Advice for Python code only, as a part of a message; the command line leaves it out.

    Example:
        >>> str(HierarchyWarning("1 node with one child.", PythonAdvice(" collapse_unary() removes it.")))
        '1 node with one child. collapse_unary() removes it.'
    """

    def __str__(self) -> str:
        return self.argument


class _Worded:
    """A message in parts, ``args``: text and settings, which Python and the command line write differently."""

    args: "tuple[str | Setting, ...]"

    @property
    def parts(self) -> "tuple[str | Setting, ...]":
        """The texts, arguments and settings of the message."""
        return self.args

    def __str__(self) -> str:
        return self.worded(str)

    def worded(self, words: "Callable[[Setting], str]") -> str:
        """Return the message with each setting as the function writes it."""
        return "".join(words(part) if isinstance(part, Setting) else str(part) for part in self.args)


class PomdpHierError(_Worded, Exception):
    """The base class of the errors of pomdp_hier.

    Its arguments are the parts of the message: texts, wrong arguments, and settings that correct them.

    Example:
        >>> error = PomdpHierError("2 roots; join them (", Setting("add_root", True), ")")
        >>> str(error), error.worded(lambda setting: f"--{setting.argument}")
        ('2 roots; join them (add_root=True)', '2 roots; join them (--add_root)')
    """


class ParameterError(PomdpHierError, ValueError):
    """An argument has an invalid value."""


class ModelError(PomdpHierError, ValueError):
    """A POMDP, one of its models or a belief is invalid."""


class ImpossibleObservationError(ModelError):
    """The observation has probability 0 under the belief and the action, so Bayes' rule is undefined."""


class FileFormatError(PomdpHierError, ValueError):
    """A file does not follow its format; the message starts with the file and the line, row or position."""


class PomdpFileError(FileFormatError, ModelError):
    """A ``.pomdp`` file does not follow its grammar; the message starts with file, line and column."""


class PolicyFileError(FileFormatError):
    """A policy file does not follow its format, or is for another problem; the message starts with file and line."""


class PlanningError(PomdpHierError):
    """A planner cannot continue: a bound is violated, a budget is too small, or no action is legal."""


class CertificateError(PomdpHierError):
    """A certificate cannot be read or does not prove its claim; the message names the first failure."""


class HierarchyError(PomdpHierError, ValueError):
    """The input is not a rooted tree over the items; the message names the nodes."""


class ReaderError(FileFormatError, HierarchyError):
    """A hierarchy file does not follow its format; the message names the row or the position."""


class FeatureError(PomdpHierError, ValueError):
    """Features cannot be used: wrong shape, NaN, infinite, or not matching the items; the message names rows."""


class CheckpointError(FileFormatError):
    """A checkpoint belongs to other data or settings, or cannot be read."""


class MissingExtraError(PomdpHierError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class PomdpHierWarning(_Worded, UserWarning):
    """The base class of the warnings of pomdp_hier, with messages like those of `PomdpHierError`."""


class HierarchyWarning(PomdpHierWarning):
    """A tree was accepted, but something in it was dropped or looks unintended."""


class SimulationWarning(PomdpHierWarning):
    """A simulation ended with a weaker result than requested."""


class DataWarning(PomdpHierWarning):
    """Features were accepted, but some rows are degenerate (zero, constant, one column)."""


Note: TypeAlias = str | tuple[str | Setting, ...]
"""A sentence of a warning, or its parts, some of which are settings."""


def warn_user(notes: Iterable[Note], category: type[PomdpHierWarning] = HierarchyWarning) -> None:
    """Issue the notes, if any, as one warning at the line of the caller, outside the package."""
    parts = [part for note in notes for part in ("; ", *((note,) if isinstance(note, str) else note))][1:]
    if not parts:
        return
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pomdp_hier."):
        level, frame = level + 1, frame.f_back
    warnings.warn(category(*parts), stacklevel=level)
