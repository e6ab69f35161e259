"""Whether an action or an observation can be one of the problem's: asked here, by every function that takes one."""

from collections.abc import Collection
from typing import Any

from pomdp_hier._messages import brief, listed
from pomdp_hier.errors import ModelError

__all__ = ["require_action", "require_observation"]


def require_action(action: Any, known: Collection[Any]) -> None:
    """Raise unless the action is known: a model with an ``else`` would answer for a misspelt one.

    Args:
        action: What was given as an action.
        known: The problem's actions, as a set or a dict, so that the answer costs one look-up.

    Raises:
        ModelError: It is not among them.

    Example:
        >>> require_action("lisen", frozenset(["listen"]))
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: action: 'lisen' is not one of the problem's 1 actions, 'listen'
    """
    try:
        if action in known:
            return
    except TypeError:  # a value that cannot be hashed is no action
        pass
    raise ModelError(f"action: {brief(action)} is not one of the problem's {len(known)} actions, {listed(known)}")


def require_observation(observation: Any) -> None:
    """Raise unless the value can be looked up among observations; one that is never made only has probability 0.

    Raises:
        ModelError: It cannot be hashed.

    Example:
        >>> require_observation(["hear-left"])
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: observation: ['hear-left'] is not hashable; give a string, a number or a tuple
    """
    try:
        hash(observation)
    except TypeError:
        raise ModelError(
            f"observation: {brief(observation)} is not hashable; give a string, a number or a tuple"
        ) from None
