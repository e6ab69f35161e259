"""Statements of a ``.pomdp`` file: their text, tokens and numbers, and the tables that they assign."""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.errors import PomdpFileError
from pomdp_hier.pomdp.array_models import Rows
from pomdp_hier.pomdp.numeric import Number

_COMMENT = re.compile(r"#[^\r\n]*")
_TOKEN = re.compile(r"[:*]|[^\s:*]+")
# Possessive quantifiers ("++", "*+"): with backtracking, time is quadratic in the length of a number.
_UNSIGNED = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
_NUMBER = re.compile(rf"[+-]?{_UNSIGNED}")
# A sign may be separated from its number, or end the number before it ("- 5", "1-2").
_LOOSE_NUMBER = re.compile(rf"\s*+([+-]?+\s*+{_UNSIGNED})(?=[\s+-]|$)")
_EXPONENT = re.compile(r"[eE][+-]?0*+([0-9]{4,}|[4-9][0-9]{2})$")
# A section's word followed by a colon; it begins with the words so that the search can skip to their first letters.
_WORD_AND_COLON = re.compile(
    r"(?:discount|values|states|actions|observations|start\s+include|start\s+exclude|start|T|O|R)(?=\s*:)"
)


class Statement(NamedTuple):
    """One section of the file: its word, the word's offset, and the start and end of its body."""

    word: str
    offset: int
    begin: int
    end: int


class Source:
    """A file's name and text; comments are blanked, so that every offset is an offset in the file."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)

    def error(self, offset: int, expected: str, reason: str = "") -> PomdpFileError:
        """Return the error for the text at this offset, with the expected text."""
        offset = min(offset, len(self.text))
        before = self.text[:offset].replace("\r\n", "\n ").replace("\r", "\n")
        column = offset - max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset))
        token = _TOKEN.match(self.text, offset)
        found = f"'{token[0][:40]}'" if token else "the end of the file"
        location = f"{self.name}:{before.count(chr(10)) + 1}:{column}"
        return PomdpFileError(f"{location}: got {found}; expected {expected}." + (f" {reason}." if reason else ""))

    def next_token(self, offset: int) -> int:
        """Return the offset of the first token that begins at or after this offset, or the end of the text."""
        token = _TOKEN.search(self.text, offset)
        return token.start() if token else len(self.text)

    def statements(self, begin: int = 0, end: int | None = None) -> list[Statement]:
        """Return the statements in the order of the file; those of a part of it, if offsets are given."""
        end = len(self.text) if end is None else end
        heads = self._heads(begin, end)
        first = self.next_token(begin)
        if not heads or first < heads[0][1]:
            raise self.error(
                first, "a section such as 'states:'", "A file begins with discount, values, states, actions"
            )
        words, offsets, begins = zip(*heads, strict=True)
        return list(map(Statement, words, offsets, begins, (*offsets[1:], end)))

    def _heads(self, begin: int, end: int) -> list[tuple[str, int, int]]:
        """Return the word of every statement, its offset, and the offset after its colon.

        A section's word may also be the end of a longer name, or an element's name after a colon of T, O or R.
        """
        text = self.text
        heads: list[tuple[str, int, int]] = []
        word, after = "", 0
        for match in _WORD_AND_COLON.finditer(text, begin, end):
            offset = match.start()
            before = offset - 1
            while before >= 0 and text[before].isspace():
                before -= 1
            if before >= 0 and text[before] == ":":
                if before != after - 1 or len(word) == 1:
                    continue
            elif before >= 0 and before == offset - 1:
                continue
            after = text.index(":", match.end()) + 1
            word = match[0] if len(match[0]) == 1 else " ".join(match[0].split())
            heads.append((word, offset, after))
        return heads

    def tokens(self, statement: Statement) -> list[str]:
        """Return the tokens of the statement's body."""
        return _TOKEN.findall(self.text, statement.begin, statement.end)

    def words(self, statement: Statement) -> list[str]:
        """Return the body split at white space, which is fast; its tokens, if colons and wildcards are separate."""
        return self.text[statement.begin : statement.end].split()

    def offset_of(self, statement: Statement, index: int) -> int:
        """Return the offset of a token of the body, or of the next statement's first token."""
        matches = islice(_TOKEN.finditer(self.text, statement.begin, statement.end), index, None)
        token = next(matches, None)
        return token.start() if token else self.next_token(statement.end)

    @staticmethod
    def is_number(token: str) -> bool:
        """Return whether the token is a number of the format."""
        return _NUMBER.fullmatch(token) is not None

    def numbers(
        self, statement: Statement, tokens: Sequence[str], start: int, *, exact: bool, what: str
    ) -> list[Number]:
        """Return the numbers of the statement from the token ``start`` on."""
        texts: Sequence[str] = tokens[start:]
        if not all(map(_NUMBER.fullmatch, texts)):
            texts = self._loose_numbers(statement, start, what)
        values: list[Number] = list(map(float, texts))
        if not all(map(math.isfinite, values)):
            index = next(i for i, value in enumerate(values) if not math.isfinite(value))
            raise self.error(self.offset_of(statement, start + index), what, "It is too large for a float")
        return [self._fraction(statement, start + i, text) for i, text in enumerate(texts)] if exact else values

    def _loose_numbers(self, statement: Statement, start: int, what: str) -> list[str]:
        """Return the texts of numbers whose signs may be separate."""
        position = self.offset_of(statement, start)
        texts = []
        while position < statement.end and self.next_token(position) < statement.end:
            number = _LOOSE_NUMBER.match(self.text, position, statement.end)
            if number is None:
                raise self.error(self.next_token(position), what)
            texts.append("".join(number[1].split()))
            position = number.end()
        return texts

    def _fraction(self, statement: Statement, index: int, text: str) -> Fraction:
        """Return the decimal as a fraction; a huge exponent, which would fill the memory, raises an error."""
        try:
            if not _EXPONENT.search(text):
                return Fraction(text)
        except ValueError:  # more digits than Python turns into an integer
            pass
        raise self.error(self.offset_of(statement, index), "a number of moderate length", "Read it with exact=False")


ALL = -1
# A short statement such as "T: * uniform" can need more numbers than fit in memory.
MAX_ENTRIES = 100_000_000


class TooLargeError(Exception):
    """A statement has more numbers than fit in memory; the reader adds its position."""


class _Log:
    """The assignments to one action's matrix in file order, shared by actions with the same ones."""

    def __init__(self, exact: bool) -> None:
        self.rows = array("q")
        self.columns = array("q")
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
        rows = np.asarray(self.rows)  # no copies: a log may be most of the memory
        columns = np.asarray(self.columns)
        values = np.asarray(self.values, dtype=object if isinstance(self.values, list) else np.float64)
        since = np.zeros(n_rows, dtype=np.int64)
        since[list(self.cleared.keys())] = list(self.cleared.values())
        kept = np.flatnonzero(np.arange(len(rows)) >= since[rows])
        key = rows[kept] * n_columns + columns[kept]
        if not (key[1:] > key[:-1]).all():  # most files are in order
            order = np.argsort(key, kind="stable")
            key = key[order]
            kept = kept[order[np.append(key[1:] != key[:-1], True)]]
        kept = kept[(values[kept] != 0).astype(bool)]
        indptr = np.zeros(n_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows[kept], minlength=n_rows), out=indptr[1:])
        return Rows(indptr, columns[kept], values[kept], n_columns)


class ProbabilityTable:
    """The matrices of T or O, one per action; the last assignment to an entry counts."""

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

    def add_many(self, actions: Ints, rows: Ints, columns: Ints, values: Floats) -> None:
        """Assign one value each at many given indices, in this order."""
        for action, here in _groups(actions):
            _extend(self._own(action), rows[here], columns[here], values[here])

    def set_rows(self, actions: Ints, rows: Ints, values: Floats) -> None:
        """Assign many whole rows, ``values[i]`` to ``rows[i]`` of ``actions[i]``, in this order."""
        for action, here in _groups(actions):
            log = self._own(action)
            at, columns = np.nonzero(values[here])
            starts = len(log.rows) + np.searchsorted(at, np.arange(len(here)))
            log.cleared.update(zip(rows[here].tolist(), starts.tolist(), strict=True))
            _extend(log, rows[here[at]], columns, values[here[at], columns])

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
    log.rows.frombytes(np.ascontiguousarray(rows, dtype=np.int64).view(np.uint8).data)
    log.columns.frombytes(np.ascontiguousarray(columns, dtype=np.int64).view(np.uint8).data)
    if isinstance(log.values, array):
        log.values.frombytes(np.ascontiguousarray(values, dtype=np.float64).view(np.uint8).data)
    else:
        log.values.extend(values.tolist())


def _groups(actions: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield every action that occurs, with its positions in ascending order."""
    order = np.argsort(actions, kind="stable")
    found, starts = np.unique(actions[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True)


# The positions of an R statement are 0 action, 1 state, 2 next state, 3 observation.
_NEXT_STATE, _OBSERVATION = 2, 3


@dataclass(slots=True)
class _Pattern:
    """The R statements with the same named positions and an array over the same other positions."""

    named: tuple[int, ...]
    spanned: tuple[int, ...]
    entries: dict[tuple[int, ...], tuple[int, Any]] = field(default_factory=dict)
    # Many assignments at once: their keys, times and values; in a dictionary each would take 400 bytes.
    parts: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
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
        self._clock += 1
        self._pattern(named, spanned).entries[tuple(indices[i] for i in named)] = (self._clock, value)

    def set_many(self, indices: NDArray[np.int64], values: Floats) -> None:
        """Assign numbers at indices ``[n, 4]``, each of which may be `ALL`, in this order."""
        clocks = self._clock + 1 + np.arange(len(values))
        self._clock += len(values)
        wild = (indices == ALL) @ (1 << np.arange(4))
        for code in np.unique(wild).tolist():
            here = np.flatnonzero(wild == code)
            named = tuple(i for i in range(4) if not code >> i & 1)
            keys = _keys([indices[here, i] for i in named], [self._sizes[i] for i in named], len(here))
            self._pattern(named, ()).parts.append((keys, clocks[here], values[here]))

    def _pattern(self, named: tuple[int, ...], spanned: tuple[int, ...]) -> _Pattern:
        """Return the pattern of these positions, to which something is assigned."""
        pattern = self._patterns.get((named, spanned))
        if pattern is None:
            pattern = self._patterns[named, spanned] = _Pattern(named, spanned)
        pattern.index = None
        return pattern

    def __call__(self, action: int, state: int, next_state: int, observation: int) -> Number:
        """Return the reward of one step."""
        indices = (action, state, next_state, observation)
        newest, reward = 0, 0
        for pattern in self._patterns.values():
            entry = self._entry(pattern, tuple(indices[i] for i in pattern.named))
            if entry is not None and entry[0] > newest:
                newest, reward = entry
                if pattern.spanned:
                    reward = reward[tuple(indices[i] for i in pattern.spanned)]
        return reward if self._exact else float(reward)

    def _entry(self, pattern: _Pattern, at: tuple[int, ...]) -> tuple[int, Any] | None:
        """Return the time and the value of the pattern's last assignment at these named positions."""
        if not pattern.parts:
            return pattern.entries.get(at)
        dims = [self._sizes[i] for i in pattern.named]
        key = int(_keys([np.array([i]) for i in at], dims, 1)[0])
        keys, clocks, values = self._index(pattern)
        entry = int(np.searchsorted(keys, key))
        return (int(clocks[entry]), values[entry]) if entry < len(keys) and keys[entry] == key else None

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
        named: set[int] = set()
        for pattern in self._patterns.values():
            if 0 in pattern.named:
                others = [self._sizes[i] for i in pattern.named[1:]]
                named.update(at[0] for at in pattern.entries)
                named.update(action for keys, _, _ in pattern.parts for action in (keys // math.prod(others)).tolist())
        return frozenset(named)

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
        keys, clocks, values = self._index(pattern)
        dims = [self._sizes[i] for i in pattern.named]
        asked = _keys([indices[i] for i in pattern.named], dims, len(indices[0]))
        entry = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        where = np.flatnonzero(keys[entry] == asked)
        entry = entry[where]
        return where, clocks[entry], values[(entry, *(indices[i][where] for i in pattern.spanned))]

    def _index(self, pattern: _Pattern) -> tuple[Ints, Ints, NDArray[Any]]:
        """Return the keys of the pattern's assignments in ascending order, with the last time and value of each."""
        if pattern.index is None:
            dims = [self._sizes[i] for i in pattern.named]
            known = np.array(list(pattern.entries), dtype=np.int64).reshape(len(pattern.entries), len(dims))
            keys = _keys(list(known.T), dims, len(known))
            clocks = np.array([clock for clock, _ in pattern.entries.values()], dtype=np.int64)
            given = [value for _, value in pattern.entries.values()]
            values = np.array(given, dtype=object if self._exact else np.float64)
            if pattern.parts:
                keys, clocks, values = map(np.concatenate, zip((keys, clocks, values), *pattern.parts, strict=True))
            order = np.lexsort((clocks, keys))
            order = order[np.append(keys[order[1:]] != keys[order[:-1]], True)]
            pattern.index = keys[order], clocks[order], values[order]
        return pattern.index


def _keys(columns: list[Ints], dims: list[int], n: int) -> Ints:
    """Return one integer per tuple of indices."""
    keys = np.zeros(n, dtype=np.int64)
    for column, size in zip(columns, dims, strict=True):
        keys = keys * size + column
    return keys
