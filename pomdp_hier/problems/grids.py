"""Mazes: the 4x3 grid of Russell and Norvig, McCallum's cheese maze, and the corridor of four cells."""

from collections.abc import Mapping
from typing import Any

from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number

__all__ = ["cheese_maze", "corridor", "maze_4x3"]

Cell = tuple[int, int]

# row 0 is the north
_MOVES: Mapping[str, Cell] = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}
_ACROSS = {"north": ("west", "east"), "south": ("west", "east"), "east": ("north", "south"), "west": ("north", "south")}


def _cells(drawing: str) -> tuple[Cell, ...]:
    """Return the free cells of a drawing in which ``#`` is a wall."""
    return tuple((r, c) for r, line in enumerate(drawing.split("/")) for c, mark in enumerate(line) if mark != "#")


def _go(free: frozenset[Cell], cell: Cell, direction: str) -> Cell:
    """Return the next cell in a direction; the same one at a wall."""
    down, right = _MOVES[direction]
    target = (cell[0] + down, cell[1] + right)
    return target if target in free else cell


def maze_4x3(*, discount: Number = 1, slip: Number = 0.1, step_reward: Number = -0.04, restart: bool = False) -> POMDP:
    """Return 4x3 maze: reach the cell of +1 and stay out of the cell of -1, feeling the walls to the left and right.

    The grid has one wall, at row 1, column 1 (row 0 is the north), the goal at (0, 3) and the trap at (1, 3). A move
    goes astray to either side with probability ``slip`` and stays in place at a wall. What is observed is which of the
    west and the east is walled, and the goal or the trap where one stands on it. The start is any other cell.

    Args:
        discount: gamma.
        slip: The probability of each of the two sides.
        step_reward: What every step earns besides.
        restart: Go on from a random cell after goal or trap, as in the ``4x3.95`` of the POMDP archive.

    Example:
        >>> problem = maze_4x3()
        >>> len(problem.states), problem.all_observations, problem.is_terminal((0, 3))
        (11, ('left', 'right', 'neither', 'both', 'good', 'bad'), True)

    References:
        Parr and Russell (1995); Russell and Norvig, *Artificial Intelligence*, chapter 17.
    """
    cells = _cells("..../.#../....")
    free, goal, trap = frozenset(cells), (0, 3), (1, 3)
    prizes = {goal: 1, trap: -1}
    others = [cell for cell in cells if cell not in prizes]
    one = slip + (1 - slip)

    def transition(cell: Cell, action: str) -> Any:
        if cell in prizes:
            return Belief.uniform(others, one=one) if restart else cell
        reached: dict[Cell, Number] = {}
        for direction, p in ((action, 1 - 2 * slip), *((side, slip) for side in _ACROSS[action])):
            target = _go(free, cell, direction)
            reached[target] = reached.get(target, 0) + p
        return reached

    def observation(cell: Cell, action: str) -> str:
        if cell in prizes:
            return "good" if cell == goal else "bad"
        walls = (_go(free, cell, "west") == cell, _go(free, cell, "east") == cell)
        return {(True, False): "left", (False, True): "right", (False, False): "neither", (True, True): "both"}[walls]

    def reward(cell: Cell, action: str, target: Cell) -> Number:
        if cell in prizes:
            return step_reward if restart else 0
        return step_reward + prizes.get(target, 0)

    return POMDP(
        transition=transition,
        observation=observation,
        reward=reward,
        initial_belief=Belief.uniform(others, one=one),
        discount=discount,
        terminal=() if restart else prizes,
        legal_actions=tuple(_MOVES),
        states=cells,
        observations=("left", "right", "neither", "both", "good", "bad"),
    )


def cheese_maze(*, discount: Number = 0.95, one: Number = 1.0) -> POMDP:
    """McCallum's cheese maze: eleven cells that look like seven, and cheese at the end of the middle corridor.

    Moves are certain, and one sees the walls around. Reaching the cheese earns 1; the next action, whatever it is, puts
    one into any other cell at random.

    Args:
        discount: gamma.
        one: 1 in the kind of number that the start should have; ``Fraction(1)`` makes the problem exact.

    Example:
        >>> problem = cheese_maze()
        >>> len(problem.states), len(problem.all_observations)
        (11, 7)

    References:
        McCallum (1993); Littman, Cassandra and Kaelbling (1995), "Learning policies for partially observable
        environments: scaling up".
    """
    cells = _cells("...../.#.#./.#.#.")
    free, cheese = frozenset(cells), (2, 2)
    others = [cell for cell in cells if cell != cheese]

    def transition(cell: Cell, action: str) -> Any:
        return Belief.uniform(others, one=one) if cell == cheese else _go(free, cell, action)

    def observation(cell: Cell, action: str) -> str:
        if cell == cheese:
            return "cheese"
        return "walls " + "".join(side[0].upper() for side in _MOVES if _go(free, cell, side) == cell)

    return POMDP(
        transition=transition,
        observation=observation,
        reward=lambda cell, action, target: 1 if target == cheese else 0,
        initial_belief=Belief.uniform(others, one=one),
        discount=discount,
        legal_actions=tuple(_MOVES),
        states=cells,
    )


def corridor(*, discount: Number = 0.75, one: Number = 1.0) -> POMDP:
    """Four cells in a row, the third of which is the goal: go west or east without seeing anything but the goal.

    Arriving at the goal earns 1; the next action puts one into one of the other cells at random.

    Args:
        discount: gamma.
        one: 1 in the kind of number that the start should have.

    Example:
        >>> corridor().all_observations
        ('nothing', 'goal')

    References:
        Cassandra, Kaelbling and Littman (1994), the one-dimensional navigation example.
    """
    others = [(0, 0), (0, 1), (0, 3)]
    free, goal = frozenset({*others, (0, 2)}), (0, 2)
    return POMDP(
        transition=lambda cell, a: Belief.uniform(others, one=one) if cell == goal else _go(free, cell, a),
        observation=lambda cell, a: "goal" if cell == goal else "nothing",
        reward=lambda cell, a, target: 1 if target == goal else 0,
        initial_belief=Belief.uniform(others, one=one),
        discount=discount,
        legal_actions=("west", "east"),
        states=((0, 0), (0, 1), (0, 2), (0, 3)),
        observations=("nothing", "goal"),
    )
