"""Classic problems: tiger, crying baby, the 4x3 and cheese mazes, a corridor, and RockSample."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from pomdp_hier._arguments import generator, is_integer
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import State

_SIDES = ("left", "right")


def tiger(*, discount: Number = 0.95, accuracy: Number = 0.85) -> POMDP:
    """Return the tiger problem: a tiger behind one of two doors.

    Listening costs 1. Opening a door has reward 10, or -100 with the tiger behind it, and moves the tiger at random.
    Pass fractions for exact numbers.

    Args:
        discount: gamma.
        accuracy: The probability of hearing the tiger where it is.

    Example:
        >>> problem = tiger()
        >>> problem.states, problem.reward(problem.initial_belief, "open-left")
        (('tiger-left', 'tiger-right'), -45.0)

    References:
        Cassandra, Kaelbling and Littman (1994); Kaelbling, Littman and Cassandra (1998), section 5.1.
    """
    half = (accuracy + (1 - accuracy)) / 2  # one half in the number type of the accuracy
    states = tuple(f"tiger-{side}" for side in _SIDES)
    heard = tuple(f"hear-{side}" for side in _SIDES)
    transition = {(s, a): dict.fromkeys(states, half) for s in states for a in ("open-left", "open-right")}
    transition |= {(s, "listen"): {s: 1} for s in states}
    observation = {(s, a): dict.fromkeys(heard, half) for s in states for a in ("open-left", "open-right")}
    reward: dict[tuple[str, str], Number] = {(s, "listen"): -1 for s in states}
    for here, other in (_SIDES, _SIDES[::-1]):
        state = f"tiger-{here}"
        observation[state, "listen"] = {f"hear-{here}": accuracy, f"hear-{other}": 1 - accuracy}
        reward |= {(state, f"open-{here}"): -100, (state, f"open-{other}"): 10}
    return POMDP(
        transition=transition,
        observation=observation,
        reward=reward,
        initial_belief=dict.fromkeys(states, half),
        discount=discount,
        legal_actions=("listen", "open-left", "open-right"),
        states=states,
        observations=heard,
    )


def crying_baby(
    *, discount: Number = 0.9, becomes_hungry: Number = 0.1, cries_hungry: Number = 0.8, cries_sated: Number = 0.1
) -> POMDP:
    """Return the crying baby problem: feed a baby that cries more when it is hungry, or ignore it.

    A hungry baby costs 10 per step, feeding costs 5 and leaves it sated. Pass fractions for exact numbers.

    Args:
        discount: gamma.
        becomes_hungry: The probability that a sated baby that is ignored becomes hungry.
        cries_hungry: The probability that a hungry baby cries.
        cries_sated: The probability that a sated baby cries.

    Example:
        >>> problem = crying_baby()
        >>> problem.reward(problem.initial_belief, "feed")
        -10.0

    References:
        Kochenderfer (2015), *Decision Making Under Uncertainty*, section 6.1.
    """
    half = (becomes_hungry + (1 - becomes_hungry)) / 2  # one half in the number type of the arguments
    cries = {"hungry": cries_hungry, "sated": cries_sated}
    return POMDP(
        transition={
            ("hungry", "feed"): "sated",
            ("sated", "feed"): "sated",
            ("hungry", "ignore"): "hungry",
            ("sated", "ignore"): {"hungry": becomes_hungry, "sated": 1 - becomes_hungry},
        },
        observation={state: {"crying": p, "quiet": 1 - p} for state, p in cries.items()},
        reward={
            (state, action): hungry + fed
            for state, hungry in (("hungry", -10), ("sated", 0))
            for action, fed in (("feed", -5), ("ignore", 0))
        },
        initial_belief={"hungry": half, "sated": half},
        discount=discount,
        legal_actions=("feed", "ignore"),
        states=("hungry", "sated"),
        observations=("crying", "quiet"),
    )


Cell = tuple[int, int]

# row 0 is the north
_MOVES: Mapping[str, Cell] = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}
_ACROSS = {"north": ("west", "east"), "south": ("west", "east"), "east": ("north", "south"), "west": ("north", "south")}


def _cells(drawing: str) -> tuple[Cell, ...]:
    """Return the free cells of a drawing in which ``#`` is a wall."""
    return tuple((r, c) for r, line in enumerate(drawing.split("/")) for c, mark in enumerate(line) if mark != "#")


def _go(free: tuple[Cell, ...], cell: Cell, direction: str) -> Cell:
    """Return the next cell in a direction; the same one at a wall."""
    down, right = _MOVES[direction]
    target = (cell[0] + down, cell[1] + right)
    return target if target in free else cell


def _uniform(cells: list[Cell], one: Number) -> Belief:
    return Belief(dict.fromkeys(cells, one / len(cells)))


# Models are methods of classes at the top of the module, so that problems can be pickled.
_CELLS_4X3 = _cells("..../.#../....")
_PRIZES: Mapping[Cell, int] = {(0, 3): 1, (1, 3): -1}  # the goal and the trap
_CELLS_CHEESE = _cells("...../.#.#./.#.#.")
_CHEESE = (2, 2)
_CELLS_CORRIDOR = ((0, 0), (0, 1), (0, 2), (0, 3))
_GOAL = (0, 2)


@dataclass(frozen=True)
class _Maze4x3:
    slip: Number
    step_reward: Number
    restart: bool

    @property
    def one(self) -> Number:
        return self.slip + (1 - self.slip)

    @property
    def others(self) -> list[Cell]:
        return [cell for cell in _CELLS_4X3 if cell not in _PRIZES]

    def transition(self, cell: Cell, action: str) -> Any:
        if cell in _PRIZES:
            return _uniform(self.others, self.one) if self.restart else cell
        reached: dict[Cell, Number] = {}
        for direction, p in ((action, 1 - 2 * self.slip), *((side, self.slip) for side in _ACROSS[action])):
            target = _go(_CELLS_4X3, cell, direction)
            reached[target] = reached.get(target, 0) + p
        return reached

    def observation(self, cell: Cell, action: str) -> str:
        if cell in _PRIZES:
            return "good" if _PRIZES[cell] > 0 else "bad"
        walls = (_go(_CELLS_4X3, cell, "west") == cell, _go(_CELLS_4X3, cell, "east") == cell)
        return {(True, False): "left", (False, True): "right", (False, False): "neither", (True, True): "both"}[walls]

    def reward(self, cell: Cell, action: str, target: Cell) -> Number:
        if cell in _PRIZES:
            return self.step_reward if self.restart else 0
        return self.step_reward + _PRIZES.get(target, 0)


@dataclass(frozen=True)
class _ToOneCell:
    """Deterministic moves, and a goal cell from which the next cell is random."""

    cells: tuple[Cell, ...]
    goal: Cell
    number: Callable[[int], Number]

    @property
    def others(self) -> list[Cell]:
        return [cell for cell in self.cells if cell != self.goal]

    def transition(self, cell: Cell, action: str) -> Any:
        return Belief.uniform(self.others, number=self.number) if cell == self.goal else _go(self.cells, cell, action)

    def walls(self, cell: Cell, action: str) -> str:
        if cell == self.goal:
            return "cheese"
        return "walls " + "".join(side[0].upper() for side in _MOVES if _go(self.cells, cell, side) == cell)

    def sees_goal(self, cell: Cell, action: str) -> str:
        return "goal" if cell == self.goal else "nothing"

    def reward(self, cell: Cell, action: str, target: Cell) -> int:
        return 1 if target == self.goal else 0


def maze_4x3(*, discount: Number = 1, slip: Number = 0.1, step_reward: Number = -0.04, restart: bool = False) -> POMDP:
    """Return the 4x3 maze with a goal of +1, a trap of -1 and a sensor of walls.

    Row 0 is the north. The wall is at row 1, column 1, the goal at (0, 3) and the trap at (1, 3). A move slips to
    either side with probability ``slip``, and stays in its cell at a wall. The observation is the walls to the west and
    the east, or the goal or the trap. The initial belief is uniform over the other cells.

    Args:
        discount: gamma.
        slip: The probability of each of the two sides.
        step_reward: The additional reward of every step.
        restart: Continue from a random cell after goal or trap, as in the ``4x3.95`` of the POMDP archive.

    Example:
        >>> problem = maze_4x3()
        >>> len(problem.states), problem.all_observations, problem.is_terminal((0, 3))
        (11, ('left', 'right', 'neither', 'both', 'good', 'bad'), True)

    References:
        Parr and Russell (1995); Russell and Norvig, *Artificial Intelligence*, chapter 17.
    """
    maze = _Maze4x3(slip, step_reward, restart)
    others = maze.others
    return POMDP(
        transition=maze.transition,
        observation=maze.observation,
        reward=maze.reward,
        initial_belief=_uniform(others, maze.one),
        discount=discount,
        terminal=() if restart else _PRIZES,
        legal_actions=tuple(_MOVES),
        states=_CELLS_4X3,
        observations=("left", "right", "neither", "both", "good", "bad"),
    )


def cheese_maze(*, discount: Number = 0.95, number: Callable[[int], Number] = float) -> POMDP:
    """Return McCallum's cheese maze: eleven cells with seven observations, and cheese in the middle corridor.

    Moves are deterministic, and the observation is the walls of the cell. Reaching the cheese has reward 1; after the
    next action the cell is random.

    Args:
        discount: gamma.
        number: The number type of the probabilities, such as float or ``Fraction``, which makes the problem exact.

    Example:
        >>> problem = cheese_maze()
        >>> len(problem.states), len(problem.all_observations)
        (11, 7)

    References:
        McCallum (1993); Littman, Cassandra and Kaelbling (1995), "Learning policies for partially observable
        environments: scaling up".
    """
    maze = _ToOneCell(_CELLS_CHEESE, _CHEESE, number)
    return POMDP(
        transition=maze.transition,
        observation=maze.walls,
        reward=maze.reward,
        initial_belief=Belief.uniform(maze.others, number=number),
        discount=discount,
        legal_actions=tuple(_MOVES),
        states=_CELLS_CHEESE,
    )


def corridor(*, discount: Number = 0.75, number: Callable[[int], Number] = float) -> POMDP:
    """Return a corridor of four cells, of which only the third, the goal, is observed.

    Reaching the goal has reward 1; after the next action, west or east, the cell is random among the others.

    Args:
        discount: gamma.
        number: The number type of the probabilities, such as float or ``Fraction``, which makes the problem exact.

    Example:
        >>> corridor().all_observations
        ('nothing', 'goal')

    References:
        Cassandra, Kaelbling and Littman (1994), the one-dimensional navigation example.
    """
    maze = _ToOneCell(_CELLS_CORRIDOR, _GOAL, number)
    return POMDP(
        transition=maze.transition,
        observation=maze.sees_goal,
        reward=maze.reward,
        initial_belief=Belief.uniform(maze.others, number=number),
        discount=discount,
        legal_actions=("west", "east"),
        states=_CELLS_CORRIDOR,
        observations=("nothing", "goal"),
    )


_ROVER_MOVES = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}


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
        inside = {move: all(0 <= c < self.n for c in _position_after(position, move)) for move in _ROVER_MOVES}
        moves = [move for move in _ROVER_MOVES if move == "east" or inside[move]]
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
    right, up = _ROVER_MOVES.get(action, (0, 0))
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
        actions=(*_ROVER_MOVES, "sample", *(f"check {i}" for i in range(k))),
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
