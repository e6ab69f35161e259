"""Any value as a state, an action or an observation of pomdp-py's, and a scope for the random numbers that it draws."""

import random
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import pomdp_py

from pomdp_hier.pomdp.spaces import Action, Observation, State


class _Bridged:
    """Holds a value, equals it and hashes like it."""

    def __init__(self, value: Hashable) -> None:
        self.value = value
        self._hash = hash(value)  # asked for at every step of a search

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
    """A state for pomdp-py that holds any value."""


class BridgedAction(_Bridged, Action):
    """An action for pomdp-py that holds any value."""


class BridgedObservation(_Bridged, Observation):
    """An observation for pomdp-py that holds any value."""


# What is seen while a process that has ended is acted upon, where the models need not say.
OVER = BridgedObservation("the process is over")


def bridged_state(value: Any) -> pomdp_py.State:
    """Return the value as a state of pomdp-py's."""
    return value if isinstance(value, pomdp_py.State) else BridgedState(value)


def bridged_action(value: Any) -> pomdp_py.Action:
    """Return the value as an action of pomdp-py's."""
    return value if isinstance(value, pomdp_py.Action) else BridgedAction(value)


def bridged_observation(value: Any) -> pomdp_py.Observation:
    """Return the value as an observation of pomdp-py's."""
    return value if isinstance(value, pomdp_py.Observation) else BridgedObservation(value)


def unwrapped(value: Any) -> Any:
    """Return the value inside a bridged state, action or observation; anything else as it is.

    Example:
        >>> unwrapped(BridgedAction("listen")), BridgedAction("listen") == "listen"
        ('listen', True)
    """
    return value.value if isinstance(value, _Bridged) else value


@contextmanager
def seeded_random(seed: int | None) -> Iterator[None]:
    """Seeds Python's global ``random``, which pomdp-py draws from, and restores its state afterwards.

    Args:
        seed: Any integer; ``None`` seeds from the operating system.

    Example:
        >>> with seeded_random(1):
        ...     first = random.random()
        >>> with seeded_random(1):
        ...     random.random() == first
        True
    """
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
