"""The exceptions and warnings of pomdp_hier: one family each, so that one ``except`` catches what a user can mend.

Every message names the offending value, where it stands, what was expected, and what to do.
"""

__all__ = [
    "CheckpointError",
    "DataWarning",
    "FeatureError",
    "HierarchyError",
    "HierarchyWarning",
    "ImpossibleObservationError",
    "MissingExtraError",
    "ModelError",
    "ParameterError",
    "PlanningError",
    "PomdpFileError",
    "PomdpHierError",
    "PomdpHierWarning",
    "ReaderError",
]


class PomdpHierError(Exception):
    """The base of every error that pomdp_hier raises on purpose."""


class ParameterError(PomdpHierError, ValueError):
    """An argument has a value that its function cannot work with."""


class ModelError(PomdpHierError, ValueError):
    """A POMDP, one of its models or a belief is not what it claims to be."""


class ImpossibleObservationError(ModelError):
    """The observation has probability 0 under the belief and the action, so that Bayes' rule has no answer."""


class PomdpFileError(ModelError):
    """A ``.pomdp`` file breaks its grammar; the message starts with file, line and column."""


class PlanningError(PomdpHierError):
    """A planner cannot go on: a bound is violated, a budget is too small, no action is legal."""


class HierarchyError(PomdpHierError, ValueError):
    """What was given is not a rooted tree over the items; the message names the nodes."""


class ReaderError(HierarchyError):
    """A file of a hierarchy breaks its format; the message says in which row or at which position."""


class FeatureError(PomdpHierError, ValueError):
    """Features cannot be used: wrong shape, NaN, infinite, or not matching the items; the message names rows."""


class CheckpointError(PomdpHierError):
    """A checkpoint belongs to other data or settings, or cannot be read."""


class MissingExtraError(PomdpHierError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class PomdpHierWarning(UserWarning):
    """The base of every warning that pomdp_hier gives."""


class HierarchyWarning(PomdpHierWarning):
    """A tree was accepted, but something in it was dropped or looks unintended."""


class DataWarning(PomdpHierWarning):
    """Features were accepted, but some rows are degenerate (zero, constant, one column)."""
