"""Whole numbers as arguments of planners and simulations: checked in one place, where they enter."""

from pomdp_hier._arguments import is_whole
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError


def require_count(name: str, value: object, least: int, of: str) -> None:
    """Raise unless the value is a whole number of at least so many.

    Args:
        name: The argument's name.
        value: What was given.
        least: The least that will do.
        of: What it counts, for the message.

    Raises:
        ParameterError: It is another number, or none.

    Example:
        >>> require_count("depth", 0, 1, "actions to look ahead")
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: depth: got 0; expected an integer of at least 1 (actions to look ahead)
    """
    if not (is_whole(value) and value >= least):
        raise ParameterError(f"{name}: got {brief(value)}; expected an integer of at least {least} ({of})")
