"""Modules that an extra of the package brings, imported where they are used and nowhere else."""

from importlib import import_module
from typing import Any

from pomdp_hier.errors import MissingExtraError

__all__ = ["from_extra"]


def from_extra(extra: str, module: str, why: str) -> Any:
    """Return a module that comes with an extra.

    Args:
        extra: The extra's name.
        module: The module's name, with dots.
        why: What needs which package, as the first half of a sentence.

    Raises:
        MissingExtraError: It is not installed; the message says why it is needed and how to install it.

    Example:
        >>> from_extra("none", "math", "roots need math").sqrt(9.0)
        3.0
        >>> from_extra("none", "no_such_module", "roots need no_such_module")
        Traceback (most recent call last):
            ...
        pomdp_hier.errors.MissingExtraError: roots need no_such_module; install it with: pip install 'pomdp-hier[none]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{why}; install it with: pip install 'pomdp-hier[{extra}]'") from error
