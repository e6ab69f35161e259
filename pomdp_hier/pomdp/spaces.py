"""States, actions and observations: base classes, wrappers for pomdp-py, and checks of names."""

import random
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from typing import Any

import pomdp_py

from pomdp_hier._io.formats import held
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError


class State(pomdp_py.State):
    """A state, compared by identity unless a subclass, such as a frozen dataclass, compares its fields.

    States, actions and observations can be any hashable values, such as strings, integers and tuples. Derive from these
    three classes to give a state fields, or to pass it to pomdp-py directly. They correct a fault of pomdp-py's
    ``__ne__``, by which two objects of different types are neither equal nor unequal.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Cell(State):
        ...     row: int
        >>> Cell(1) == Cell(1), Cell(1) != Cell(2), Cell(1) != "elsewhere"
        (True, True, True)
    """

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class Action(pomdp_py.Action):
    """An action, compared like a `State`.

    Example:
        >>> class Wait(Action):
        ...     pass
        >>> wait = Wait()
        >>> wait == wait, wait == Wait()
        (True, False)
    """

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class Observation(pomdp_py.Observation):
    """An observation, compared like a `State`.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Beep(Observation):
        ...     loudness: int
        >>> {Beep(3): 0.8, Beep(4): 0.2}[Beep(4)]
        0.2
    """

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class _Bridged:
    """A wrapper with the equality and the hash of its value."""

    def __init__(self, value: Hashable) -> None:
        self.value = value
        self._hash = hash(value)  # used at every step of a search

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Bridged):
            return type(other) is type(self) and bool(self.value == other.value)
        return bool(self.value == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Bridged":
        return self  # immutable; POMCP copies its particles, and identity must survive that

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.value,)


class BridgedState(_Bridged, State):
    """A state for pomdp-py around any value."""


class BridgedAction(_Bridged, Action):
    """An action for pomdp-py around any value."""


class BridgedObservation(_Bridged, Observation):
    """An observation for pomdp-py around any value."""


# The observation after an action in a terminal state, where the models may be undefined.
TERMINAL_OBSERVATION = BridgedObservation("terminal")


def bridged_state(value: Any) -> pomdp_py.State:
    """Return the value as a state of pomdp-py."""
    return value if isinstance(value, pomdp_py.State) else BridgedState(value)


def bridged_action(value: Any) -> pomdp_py.Action:
    """Return the value as an action of pomdp-py."""
    return value if isinstance(value, pomdp_py.Action) else BridgedAction(value)


def bridged_observation(value: Any) -> pomdp_py.Observation:
    """Return the value as an observation of pomdp-py."""
    return value if isinstance(value, pomdp_py.Observation) else BridgedObservation(value)


def unwrapped(value: Any) -> Any:
    """Return the value inside a wrapped state, action or observation; other values unchanged."""
    return value.value if isinstance(value, _Bridged) else value


@contextmanager
def seeded_random(seed: int | None) -> Iterator[None]:
    """Seed Python's global ``random``, which pomdp-py samples from, and restore its state afterwards."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


_MOST_COMPARED = 10_000


def nearest(value: Any, known: Iterable[Any]) -> str:
    """Return text with the known name that is most similar to an unknown one, or an empty text."""
    if not isinstance(value, str):
        return ""
    close = get_close_matches(value, [name for name in islice(known, _MOST_COMPARED) if isinstance(name, str)], n=1)
    return f"the nearest name, {brief(close[0])}" if close else ""


def require_action(action: Any, known: Collection[Any]) -> None:
    """Raise an error for an unknown action, for which a model with an ``else`` would have probabilities.

    Example:
        >>> require_action("lisen", frozenset(["listen"]))
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: action: got 'lisen'; expected one of the problem's 1 actions, ...
    """
    try:
        if action in known:
            return
    except TypeError:  # a value that cannot be hashed is not an action
        pass
    near = nearest(action, known)
    remedy = f" Use {near}." if near else ""
    raise ModelError(
        f"action: got {brief(action)}; expected one of the problem's {len(known)} actions, {listed(known)}.{remedy}"
    )


def require_observation(observation: Any) -> None:
    """Raise an error for a value that cannot be hashed; any other observation can have probability 0."""
    try:
        hash(observation)
    except TypeError:
        raise ModelError(
            f"observation: got {brief(observation)}; expected a value that can be hashed. Use a string or a tuple."
        ) from None


def listed_values(name: str, values: Any, expected: str) -> tuple[Any, ...]:
    """Return the values of a list as a tuple; raise for one that cannot be hashed."""
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
    """Return the values of a list as a tuple; raise for one that is listed twice or cannot be hashed."""
    listed = listed_values(name, values, expected)
    seen: set[Any] = set()
    for value in listed:
        if value in seen:
            raise ModelError(f"{name}: got {brief(value)} twice; expected each name once. Remove one of the two.")
        seen.add(value)
    return listed
