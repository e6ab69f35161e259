"""The names of a space: as they are listed, and as an action or an observation that some function is given."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pomdp_hier._io.memory import held
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError

_MOST_COMPARED = 10_000


def nearest(value: Any, known: Iterable[Any]) -> str:
    """Return the nearest known name to one that is not known, as text; nothing if none is near.

    Example:
        >>> nearest("lisen", ["listen", "open"]), nearest(3, ["listen", "open"])
        ("the nearest name, 'listen'", '')
    """
    if not isinstance(value, str):
        return ""
    close = get_close_matches(value, [name for name in islice(known, _MOST_COMPARED) if isinstance(name, str)], n=1)
    return f"the nearest name, {brief(close[0])}" if close else ""


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
        pomdp_hier.errors.ModelError: action: got 'lisen'; expected one of the problem's 1 actions, ...
    """
    try:
        if action in known:
            return
    except TypeError:  # a value that cannot be hashed is no action
        pass
    near = nearest(action, known)
    remedy = f" Use {near}." if near else ""
    raise ModelError(
        f"action: got {brief(action)}; expected one of the problem's {len(known)} actions, {listed(known)}.{remedy}"
    )


def require_observation(observation: Any) -> None:
    """Raise unless the value can be looked up among observations; one that is never made only has probability 0.

    Raises:
        ModelError: It cannot be hashed.

    Example:
        >>> require_observation(["hear-left"])
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: observation: got ['hear-left']; expected a value ...
    """
    try:
        hash(observation)
    except TypeError:
        raise ModelError(
            f"observation: got {brief(observation)}; expected a value that can be hashed. Use a string or a tuple."
        ) from None


def listed_values(name: str, values: Any, expected: str) -> tuple[Any, ...]:
    """Return the values as a tuple.

    Raises:
        ModelError: They are not a list, or one of them cannot be hashed.
    """
    if (isinstance(values, str) and name in ("terminal", "legal_actions")) or not isinstance(values, Iterable):
        alone = "" if values is None else f" Write [{brief(values)}] for this one alone."
        raise ModelError(f"{name}: got {brief(values)}; expected {expected}.{alone}")
    if isinstance(values, set | frozenset):  # the order of a set of strings changes from run to run
        values = sorted(values, key=repr)
    listed = tuple(held(name, values, ModelError))
    for value in listed:
        try:
            hash(value)
        except TypeError as error:
            raise ModelError(
                f"{name}: got {brief(value)}, which cannot be hashed; expected a name. "
                "Use a string, a tuple or a frozen dataclass."
            ) from error
    return listed


def distinct(name: str, values: Any, expected: str = "a list of names") -> tuple[Any, ...]:
    """Return the values as a tuple.

    Raises:
        ModelError: They are not a list, or one of them is listed twice or cannot be hashed.

    Example:
        >>> distinct("states", ["left", "left"])
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: states: got 'left' twice; expected each name once. Remove one of the two.
    """
    listed = listed_values(name, values, expected)
    seen: set[Any] = set()
    for value in listed:
        if value in seen:
            raise ModelError(f"{name}: got {brief(value)} twice; expected each name once. Remove one of the two.")
        seen.add(value)
    return listed
