"""Tables from the T, O and R statements of a ``.pomdp`` file: sparse rows, and rewards by pattern."""

from array import array
from collections.abc import Iterable, MutableSequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._arrays import Ints
from pomdp_hier.pomdp.array_models import Rows
from pomdp_hier.pomdp.numeric import Number

ALL = -1
# A short statement such as "T: * uniform" can need more numbers than fit in memory.
MAX_ENTRIES = 100_000_000


class TooLargeError(Exception):
    """A statement has more numbers than fit in memory; the reader adds its position."""


class _Log:
    """The assignments to one action's matrix in file order, shared by actions with the same ones."""

    def __init__(self, exact: bool) -> None:
        self.rows: MutableSequence[int] = array("q")
        self.columns: MutableSequence[int] = array("q")
        self.values: MutableSequence[Any] = [] if exact else array("d")
        self.cleared: dict[int, int] = {}
        self.users = 0

    def copy(self) -> "_Log":
        twin = _Log(isinstance(self.values, list))
        twin.rows, twin.columns, twin.values = self.rows[:], self.columns[:], self.values[:]
        twin.cleared = dict(self.cleared)
        return twin

    def resolve(self, shape: tuple[int, int]) -> Rows:
        """Return the matrix after the last assignment to every entry; zeros are left out."""
        n_rows, n_columns = shape
        rows = np.array(self.rows, dtype=np.int64)
        columns = np.array(self.columns, dtype=np.int64)
        values = np.array(self.values, dtype=object if isinstance(self.values, list) else np.float64)
        since = np.zeros(n_rows, dtype=np.int64)
        since[list(self.cleared.keys())] = list(self.cleared.values())
        current = np.flatnonzero(np.arange(len(rows)) >= since[rows])
        key = rows[current] * n_columns + columns[current]
        order = np.argsort(key, kind="stable")
        key = key[order]
        last = np.append(key[1:] != key[:-1], True) if len(key) else np.zeros(0, dtype=bool)
        kept = current[order[last]]
        kept = kept[(values[kept] != 0).astype(bool)]
        indptr = np.zeros(n_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows[kept], minlength=n_rows), out=indptr[1:])
        return Rows(indptr, columns[kept], values[kept], n_columns)


class ProbabilityTable:
    """The matrices of T or O, one per action; the last assignment to an entry counts.

    Args:
        n_actions: The number of matrices.
        shape: Their numbers of rows and columns.
        exact: Whether the values are fractions.
    """

    def __init__(self, n_actions: int, shape: tuple[int, int], *, exact: bool) -> None:
        self.shape = shape
        self._exact = exact
        empty = _Log(exact)
        empty.users = n_actions
        self._logs = [empty] * n_actions

    def add(self, action: int, row: int, column: int, value: Number) -> None:
        """Assign one value at three given indices."""
        log = self._own(action)
        log.rows.append(row)
        log.columns.append(column)
        log.values.append(value)

    def set_entry(self, action: int, row: int, column: int, value: Number) -> None:
        """Assign one value; each of the three indices may be `ALL`."""
        if row != ALL and column != ALL:
            for log in self._written(action):
                log.rows.append(row)
                log.columns.append(column)
                log.values.append(value)
        elif column == ALL:
            self.set_row(action, row, np.arange(self.shape[1]) if value else np.zeros(0, dtype=np.int64), value)
        else:
            n_rows = self.shape[0]
            for log in self._written(action):
                _check_room(log, n_rows)
                log.rows.extend(range(n_rows))
                log.columns.extend([column] * n_rows)
                log.values.extend([value] * n_rows)

    def set_row(self, action: int, row: int, columns: Ints, values: NDArray[Any] | Number) -> None:
        """Assign a whole row, zero outside the columns given; the action and the row may be `ALL`."""
        filled = np.broadcast_to(np.asarray(values), columns.shape)
        if row == ALL:
            n_rows = self.shape[0]
            if n_rows * len(columns) > MAX_ENTRIES:
                raise TooLargeError(n_rows * len(columns))
            self.set_matrix(
                action, np.repeat(np.arange(n_rows), len(columns)), np.tile(columns, n_rows), np.tile(filled, n_rows)
            )
            return
        for log in self._written(action):
            log.cleared[row] = len(log.rows)
            _extend(log, np.full(len(columns), row), columns, filled)

    def set_matrix(self, action: int, rows: Ints, columns: Ints, values: NDArray[Any]) -> None:
        """Assign a whole matrix, zero outside the entries given; the action may be `ALL`."""
        fresh = _Log(self._exact)
        _extend(fresh, rows, columns, values)
        for index in range(len(self._logs)) if action == ALL else (action,):
            self._logs[index].users -= 1
            self._logs[index] = fresh
            fresh.users += 1

    def matrices(self) -> list[Rows]:
        """Return the matrix of each action; actions with the same assignments share one."""
        resolved: dict[int, Rows] = {}
        for log in self._logs:
            if id(log) not in resolved:
                resolved[id(log)] = log.resolve(self.shape)
        return [resolved[id(log)] for log in self._logs]

    def _written(self, action: int) -> Iterable[_Log]:
        """Return the logs of an assignment to this action."""
        if action == ALL:
            return {id(log): log for log in self._logs}.values()
        return (self._own(action),)

    def _own(self, action: int) -> _Log:
        """Return the log of this action alone, copied if it was shared."""
        log = self._logs[action]
        if log.users == 1:
            return log
        log.users -= 1
        log = self._logs[action] = log.copy()
        log.users = 1
        return log


def _check_room(log: _Log, n_more: int) -> None:
    if len(log.rows) + n_more > MAX_ENTRIES:
        raise TooLargeError(len(log.rows) + n_more)


def _extend(log: _Log, rows: Ints, columns: Ints, values: NDArray[Any]) -> None:
    _check_room(log, len(rows))
    log.rows.extend(array("q", rows.astype(np.int64).tobytes()))
    log.columns.extend(array("q", columns.astype(np.int64).tobytes()))
    if isinstance(log.values, list):
        log.values.extend(values.tolist())
    else:
        log.values.extend(array("d", values.astype(np.float64).tobytes()))


# The positions of an R statement are 0 action, 1 state, 2 next state, 3 observation.
_NEXT_STATE, _OBSERVATION = 2, 3


@dataclass(slots=True)
class _Pattern:
    """The R statements with the same named positions and an array over the same other positions."""

    named: tuple[int, ...]
    spanned: tuple[int, ...]
    entries: dict[tuple[int, ...], tuple[int, Any]]
    index: tuple[Ints, Ints, NDArray[Any]] | None = None


class RewardTable:
    """The rewards of a file as a function of (action, state, next state, observation); 0 where none is given.

    Nothing is expanded: an assignment is kept under its named positions. A look-up takes the last assignment over the
    few combinations of named positions that occur.
    """

    def __init__(self, sizes: tuple[int, int, int, int], *, exact: bool) -> None:
        self._sizes = sizes
        self._exact = exact
        self._patterns: dict[tuple[tuple[int, ...], tuple[int, ...]], _Pattern] = {}
        self._clock = 0

    def set(self, indices: tuple[int, ...], value: Any, spanned: tuple[int, ...] = ()) -> None:
        """Assign a number, or an array over the positions ``spanned``; each named position may be `ALL`."""
        named = tuple(i for i, position in enumerate(indices) if position != ALL)
        pattern = self._patterns.get((named, spanned))
        if pattern is None:
            pattern = self._patterns[named, spanned] = _Pattern(named, spanned, {})
        self._clock += 1
        pattern.entries[tuple(indices[i] for i in named)] = (self._clock, value)

    def __call__(self, action: int, state: int, next_state: int, observation: int) -> Number:
        """Return the reward of one step."""
        indices = (action, state, next_state, observation)
        newest, reward = 0, 0
        for pattern in self._patterns.values():
            entry = pattern.entries.get(tuple(indices[i] for i in pattern.named))
            if entry is not None and entry[0] > newest:
                newest, reward = entry
                if pattern.spanned:
                    reward = reward[tuple(indices[i] for i in pattern.spanned)]
        return reward if self._exact else float(reward)

    @property
    def uses_next_state(self) -> bool:
        """Whether any assignment depends on the next state or the observation."""
        return self._depends_on(_NEXT_STATE) or self.uses_observation

    @property
    def uses_observation(self) -> bool:
        """Whether any assignment depends on the observation."""
        return self._depends_on(_OBSERVATION)

    def named_actions(self) -> frozenset[int]:
        """Return the actions that some assignment names; all others have the same rewards."""
        patterns = [pattern for pattern in self._patterns.values() if 0 in pattern.named]
        return frozenset(indices[pattern.named.index(0)] for pattern in patterns for indices in pattern.entries)

    def _depends_on(self, position: int) -> bool:
        return any(position in pattern.named or position in pattern.spanned for pattern in self._patterns.values())

    def at(self, indices: tuple[Ints, ...]) -> NDArray[Any]:
        """Return the rewards of many steps at once.

        Args:
            indices: Actions, states, next states, observations, each ``[n]``.
        """
        n = len(indices[0])
        newest = np.zeros(n, dtype=np.int64)
        rewards = np.zeros(n, dtype=object if self._exact else np.float64)
        for pattern in self._patterns.values():
            where, clocks, values = self._hits(pattern, indices)
            newer = clocks > newest[where]
            newest[where[newer]] = clocks[newer]
            rewards[where[newer]] = values[newer]
        return rewards

    def _hits(self, pattern: _Pattern, indices: tuple[Ints, ...]) -> tuple[Ints, Ints, NDArray[Any]]:
        """Return the steps of a pattern's assignments, with the time and the value of each."""
        dims = [self._sizes[i] for i in pattern.named]
        if pattern.index is None:
            known = np.array(list(pattern.entries), dtype=np.int64).reshape(len(pattern.entries), len(dims))
            keys = _keys(list(known.T), dims, len(known))
            order = np.argsort(keys)
            clocks = np.array([clock for clock, _ in pattern.entries.values()], dtype=np.int64)
            values = np.array(
                [value for _, value in pattern.entries.values()], dtype=object if self._exact else np.float64
            )
            pattern.index = keys[order], clocks[order], values[order]
        keys, clocks, values = pattern.index
        asked = _keys([indices[i] for i in pattern.named], dims, len(indices[0]))
        entry = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        where = np.flatnonzero(keys[entry] == asked)
        entry = entry[where]
        return where, clocks[entry], values[(entry, *(indices[i][where] for i in pattern.spanned))]


def _keys(columns: list[Ints], dims: list[int], n: int) -> Ints:
    """Return one integer per tuple of indices."""
    keys = np.zeros(n, dtype=np.int64)
    for column, size in zip(columns, dims, strict=True):
        keys = keys * size + column
    return keys
