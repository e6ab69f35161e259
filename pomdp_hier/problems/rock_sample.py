"""RockSample: a rover with a noisy sensor among good and bad rocks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from pomdp_hier._arguments import generator, is_integer
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import State

_MOVES = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}


@dataclass(frozen=True)
class RoverState(State):
    """The position of the rover, and the good rocks."""

    position: tuple[int, int] | None
    good: tuple[bool, ...]

    def __str__(self) -> str:
        if self.position is None:
            return "gone"
        rocks = ", ".join(str(i) for i, good in enumerate(self.good) if good)
        return f"{self.position} good: {rocks or 'none'}"


_EXITED = RoverState(None, ())


@dataclass(frozen=True)
class _Field:
    """The models of a field, as methods at the top of the module, so that the problem can be pickled."""

    n: int
    rocks: list[tuple[int, int]]
    half_distance: float

    @cached_property
    def at(self) -> dict[tuple[int, int], int]:
        return {position: i for i, position in enumerate(self.rocks)}

    def legal(self, state: RoverState) -> list[str]:
        position = state.position
        if position is None:
            return []
        inside = {move: all(0 <= c < self.n for c in _position_after(position, move)) for move in _MOVES}
        moves = [move for move in _MOVES if move == "east" or inside[move]]
        checks = [f"check {i}" for i in range(len(self.rocks))]
        return moves + (["sample"] if position in self.at else []) + checks

    def transition(self, state: RoverState, action: str) -> RoverState:
        if state.position is None:
            return _EXITED
        position = _position_after(state.position, action)
        if position[0] >= self.n:
            return _EXITED
        good = list(state.good)
        if action == "sample":
            good[self.at[position]] = False
        return RoverState(position, tuple(good))

    def observation(self, state: RoverState, action: str) -> Any:
        if not action.startswith("check") or state.position is None:
            return "nothing"
        rock = int(action.split()[1])
        p = (1 + 2 ** (-math.dist(state.position, self.rocks[rock]) / self.half_distance)) / 2
        return {"good": p, "bad": 1 - p} if state.good[rock] else {"good": 1 - p, "bad": p}

    def reward(self, state: RoverState, action: str, next_state: RoverState) -> float:
        if next_state == _EXITED:
            return 10.0 if state != _EXITED else 0.0
        if action == "sample" and state.position is not None:
            return 10.0 if state.good[self.at[state.position]] else -10.0
        return 0.0


def _position_after(position: tuple[int, int], action: str) -> tuple[int, int]:
    right, up = _MOVES.get(action, (0, 0))
    return position[0] + right, position[1] + up


def rock_sample(
    n: int = 4,
    k: int = 4,
    *,
    rocks: Sequence[tuple[int, int]] | None = None,
    discount: float = 0.95,
    half_distance: float = 20.0,
    seed: int = 0,
) -> POMDP:
    """Return RockSample(n, k): an n by n field with k rocks, each good or bad with probability one half.

    The rover starts in the middle of the west side. Checking a rock at distance d is correct with probability
    ``(1 + 2 ** (-d / half_distance)) / 2``. Sampling a good rock has reward 10 and makes it bad; a bad rock has -10.
    Leaving to the east has reward 10 and is terminal. Moves over the other edges and samples without a rock are not
    legal.
    There are ``n * n * 2**k + 1`` states.

    Args:
        n: The length of a side.
        k: The number of rocks.
        rocks: Their positions ``(x, y)``, with x to the east; sampled with ``seed`` by default.
        discount: gamma.
        half_distance: The distance at which the sensor's advantage over guessing is half.
        seed: The seed of the positions.

    Raises:
        ParameterError: n or k is out of range, or two rocks share a position or are off the field.

    Example:
        >>> problem = rock_sample(2, 1, rocks=[(1, 0)])
        >>> len(problem.states), problem.actions()
        (9, ('south', 'east', 'check 0'))

    References:
        Smith and Simmons (2004).
    """
    rocks = _positions(n, k, rocks, seed)
    field = _Field(n, rocks, half_distance)
    start = (0, n // 2)
    grades = [tuple(good) for good in product((True, False), repeat=k)]
    return POMDP(
        transition=field.transition,
        observation=field.observation,
        reward=field.reward,
        initial_belief=Belief.uniform(RoverState(start, good) for good in grades),
        discount=discount,
        terminal=[_EXITED],
        legal_actions=field.legal,
        actions=(*_MOVES, "sample", *(f"check {i}" for i in range(k))),
        states=(*(RoverState((x, y), good) for x in range(n) for y in range(n) for good in grades), _EXITED),
        observations=("nothing", "good", "bad") if k else ("nothing",),
    )


def _positions(n: int, k: int, rocks: Sequence[tuple[int, int]] | None, seed: int) -> list[tuple[int, int]]:
    if not (is_integer(n) and is_integer(k) and n >= 1 and 0 <= k <= n * n):
        raise ParameterError(
            f"rock_sample: got n={brief(n)}, k={brief(k)}; expected integers, n of at least 1, k from 0 to n * n."
        )
    if rocks is None:
        sampled = generator("seed", seed).choice(n * n, size=k, replace=False)
        rocks = [(int(cell) % n, int(cell) // n) for cell in sampled]
    positions = [(x, y) for x, y in rocks]
    if len(positions) != k or len(set(positions)) != k or not all(0 <= x < n and 0 <= y < n for x, y in positions):
        raise ParameterError(
            f"rock_sample: got the rocks {brief(positions)}; expected {k} different positions on a field of {n} by {n}."
        )
    return positions
