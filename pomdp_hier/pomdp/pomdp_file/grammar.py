"""Grammar of ``.pomdp`` files: from statements to spaces, numbers and tables."""

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._text import brief
from pomdp_hier.pomdp.array_models import Rows
from pomdp_hier.pomdp.numeric import Number, total
from pomdp_hier.pomdp.pomdp_file.statements import ALL, ProbabilityTable, RewardTable, Source, Statement, TooLargeError

_COUNT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_MAX_COUNT = 2_000_000
_SECTIONS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")
# A sum of decimals at the tolerance must not fail by rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file: names, the initial belief ``[S]``, T and O with one matrix per action, and rewards.

    ``observed`` is false for a file without observations: an MDP, whose observations are the states.
    """

    discount: Number
    states: tuple[Any, ...]
    actions: tuple[Any, ...]
    observations: tuple[Any, ...]
    start: NDArray[Any]
    transition: list[Rows]
    observation: list[Rows]
    reward: RewardTable
    observed: bool


class _Space:
    """The names of the states, actions or observations, and the index of each token."""

    def __init__(self, kind: str, names: Sequence[str] | range) -> None:
        self.kind = kind
        self.names = names
        self.size = len(names)
        # The known tokens; a number is added at its first use, and a name that is a number has priority.
        self.index = {} if isinstance(names, range) else {name: i for i, name in enumerate(names)}
        self.index["*"] = ALL

    def find(self, token: str) -> int | None:
        """Return the index of the token's element, `ALL` for the wildcard, or None."""
        index = self.index.get(token)
        if index is None and token.isascii() and token.isdigit():
            digits = token.lstrip("0") or "0"
            if len(digits) < 10 and int(digits) < self.size:
                index = self.index[token] = int(digits)
        return index

    def expected(self) -> str:
        last = self.size - 1
        return f"{'an' if self.kind[0] in 'ao' else 'a'} {self.kind} (a name, a number from 0 to {last}, or '*')"


class Reader:
    """A reader in two passes: the spaces and the preamble, then start, T, O and R."""

    def __init__(self, source: Source, *, tolerance: float, normalize: bool, exact: bool) -> None:
        self.source = source
        self.tolerance = 0 if exact else tolerance
        self._slack = 0 if exact else tolerance + _ROUNDING
        self._most = math.inf if normalize else 1 + self._slack
        self.normalize = normalize
        self.exact = exact
        self.one: Number = Fraction(1) if exact else 1.0
        # Position, action and row of every statement of T and of O, to find the statement of a wrong row.
        self._written = {word: (array("q"), array("q"), array("q")) for word in "TO"}
        self._tables: list[Statement] = []

    def read(self) -> FileContent:
        """Return the content of the file."""
        statements = self.source.statements()
        self._read_spaces(statements)
        self._read_tables([s for s in statements if len(s.word) == 1])
        return self._content()

    def _read_spaces(self, statements: list[Statement]) -> None:
        """Read everything but T, O and R, and make their tables."""
        self._read_preamble(statements)
        self.states = self._space(statements, "states", "state")
        self.actions = self._space(statements, "actions", "action")
        self.observed = any(s.word == "observations" for s in statements)
        self.observations = self._space(statements, "observations", "observation") if self.observed else self.states
        self._spaces = {
            "T": (self.actions, self.states, self.states),
            "O": (self.actions, self.states, self.observations),
            "R": (self.actions, self.states, self.states, self.observations),
        }
        self.start = self._read_start([s for s in statements if s.word.startswith("start")])
        n_states, n_actions, n_observations = self.states.size, self.actions.size, self.observations.size
        self.T = ProbabilityTable(n_actions, (n_states, n_states), exact=self.exact)
        self.O = ProbabilityTable(n_actions, (n_states, n_observations), exact=self.exact)
        self.R = RewardTable((n_actions, n_states, n_states, n_observations), exact=self.exact)
        if not self.observed:
            self.O.set_matrix(ALL, np.arange(n_states), np.arange(n_states), self._all(n_states, self.one))

    def _content(self) -> FileContent:
        """Return what was read; the distributions are checked."""
        return FileContent(
            discount=self.discount,
            states=tuple(self.states.names),
            actions=tuple(self.actions.names),
            observations=tuple(self.observations.names),
            start=self.start,
            transition=self._distributions(self.T, "T"),
            observation=self._distributions(self.O, "O"),
            reward=self.R,
            observed=self.observed,
        )

    # --- the preamble --------------------------------------------------------------------------------------------

    def _read_preamble(self, statements: list[Statement]) -> None:
        """Read the discount and the sign of the rewards; the last of several counts."""
        self.discount: Number = self.one
        self.sign = 1
        for statement in statements:
            if statement.word not in ("discount", "values"):
                continue
            tokens = self.source.tokens(statement)
            if statement.word == "values":
                if tokens[:1] not in (["reward"], ["rewards"], ["cost"], ["costs"]):
                    raise self._error(statement, 0, "'reward' or 'cost'")
                self.sign = 1 if tokens[0].startswith("reward") else -1
                self._end(statement, tokens, 1)
                continue
            what = "a discount in [0, 1]"
            values = self.source.numbers(statement, tokens, 0, exact=self.exact, what=what)
            if not (values and 0 <= values[0] <= 1):
                raise self._error(statement, 0, what)
            self.discount = values[0]
            if len(values) > 1:
                raise self._error(statement, 1, "the next section", "The discount is one number")

    def _space(self, statements: list[Statement], word: str, kind: str) -> _Space:
        """Return the space that the file declares by names or by a count."""
        mine = [s for s in statements if s.word == word]
        if not mine:
            raise self.source.error(len(self.source.text), f"a section '{word}:' somewhere", "The file has none")
        if len(mine) > 1:
            raise self.source.error(mine[1].offset, "another section", f"The section '{word}' was given before")
        tokens = self.source.tokens(mine[0])
        what = f"a count or the names of the {word}"
        if len(tokens) == 1 and _COUNT.fullmatch(tokens[0]):
            digits = tokens[0].lstrip("0")
            if not (digits.isdigit() and len(digits) <= 9 and int(digits) <= _MAX_COUNT):
                raise self._error(mine[0], 0, f"an integer from 1 to {_MAX_COUNT}")
            return _Space(kind, range(int(digits)))
        seen: set[str] = set()
        for i, token in enumerate(tokens):
            if token in "*:":
                if token == ":" and i:
                    raise self._no_section(mine[0], i - 1, word)
                raise self._error(mine[0], i, what)
            if token in seen:
                raise self._error(mine[0], i, f"another name for one of the {word}", "This one was given before")
            seen.add(token)
        if not tokens:
            raise self._error(mine[0], 0, what)
        return _Space(kind, tokens)

    def _no_section(self, statement: Statement, position: int, word: str) -> Exception:
        """Return the error of a line that begins like a section, below the names of a space."""
        source, offset = self.source, self.source.offset_of(statement, position)
        line = max(source.text.rfind("\n", 0, offset), source.text.rfind("\r", 0, offset)) + 1
        first = source.next_token(line) if line > statement.offset else offset
        head = " ".join(source.text[first : source.text.index(":", offset)].split())
        reason = f"The format has no section {brief(head)}, but {', '.join(_SECTIONS)}. Remove it, or correct the name"
        return source.error(first, f"one of the {word}, or a section", reason)

    # --- the start -----------------------------------------------------------------------------------------------

    def _read_start(self, statements: list[Statement]) -> NDArray[Any]:
        """``[S]``, the initial belief; uniform by default."""
        n = self.states.size
        if len(statements) > 1:
            raise self.source.error(statements[1].offset, "another section", "The start was given before")
        if not statements:
            return self._uniform(n)
        statement = statements[0]
        tokens = self.source.tokens(statement)
        if statement.word != "start":
            return self._start_set(statement, tokens)
        if tokens == ["uniform"]:
            return self._uniform(n)
        state = self.states.find(tokens[0]) if len(tokens) == 1 else None
        if state is not None and state != ALL:
            return self._indicator([state])
        if tokens and not any(map(Source.is_number, tokens)) and None not in map(self.states.find, tokens):
            return self._start_set(statement, tokens)  # some files leave out "include"
        what = f"{n} probabilities, 'uniform' or a state"
        values = self._probabilities(statement, tokens, 0, what)
        self._check_count(statement, 0, len(values), n, what)
        vector = np.array(values, dtype=object if self.exact else np.float64)
        row_sum = total(values)
        if row_sum == math.inf:  # of finite weights
            vector = vector / max(values)
            row_sum = total(vector)
        if row_sum == 0 or (abs(row_sum - 1) > self._slack and not self.normalize):
            raise self._error(
                statement,
                0,
                f"probabilities that sum to 1 (tolerance {self.tolerance})",
                f"They sum to {float(row_sum)}.{self._remedy(row_sum)}",
            )
        return vector / row_sum if self.normalize else vector

    def _start_set(self, statement: Statement, tokens: list[str]) -> NDArray[Any]:
        """Return the uniform belief over the states listed, or over all others."""
        if not tokens:
            raise self._error(statement, 0, self.states.expected())
        chosen: set[int] = set()
        for i, token in enumerate(tokens):
            index = self._element(statement, i, token, self.states)
            chosen.update(range(self.states.size) if index == ALL else (index,))
        if statement.word == "start exclude":
            chosen = set(range(self.states.size)) - chosen
            if not chosen:
                raise self._error(statement, 0, "at least one state that is not excluded")
        return self._indicator(sorted(chosen))

    def _all(self, size: int, value: Number) -> NDArray[Any]:
        return np.full(size, value, dtype=object if self.exact else np.float64)

    def _uniform(self, size: int) -> NDArray[Any]:
        return self._all(size, self.one / size)

    def _indicator(self, chosen: list[int]) -> NDArray[Any]:
        vector = self._all(self.states.size, 0 * self.one)
        vector[chosen] = self.one / len(chosen)
        return vector

    # --- T, O and R ----------------------------------------------------------------------------------------------

    def _read_tables(self, statements: list[Statement]) -> None:
        """Read statements of T, O and R in the order of the file."""
        self._tables = statements
        for position, statement in enumerate(self._tables):
            if statement.word == "O" and not self.observed:
                raise self.source.error(statement.offset, "a section 'observations:' first", "The file has none")
            if statement.word != "R" and self._read_entry(position, statement):
                continue
            tokens = self.source.tokens(statement)
            indices, start = self._indices(statement, tokens)
            if statement.word != "R":
                row = indices[1] if len(indices) > 1 else ALL
                for log, value in zip(self._written[statement.word], (position, indices[0], row), strict=True):
                    log.append(value)
            try:
                if statement.word == "R":
                    self._read_reward(statement, tokens, indices, start)
                else:
                    self._read_probability(statement, tokens, indices, start)
            except TooLargeError as error:
                raise self.source.error(
                    statement.offset, "a smaller problem", f"It stands for {error} numbers, more than fit in memory"
                ) from None

    def _read_entry(self, position: int, statement: Statement) -> bool:
        """Read ``action : state : element probability``, the most frequent form; return False for another."""
        words = self.source.words(statement)
        if len(words) != 6 or words[1] != ":" or words[3] != ":" or self.exact or not Source.is_number(words[5]):
            return False
        of_action, of_row, of_column = self._spaces[statement.word]
        a, row, column = of_action.index.get(words[0]), of_row.index.get(words[2]), of_column.index.get(words[4])
        value = float(words[5])
        if a is None or row is None or column is None or min(a, row, column) == ALL or not 0 <= value <= 1:
            return False
        positions, actions, rows = self._written[statement.word]
        positions.append(position)
        actions.append(a)
        rows.append(row)
        (self.T if statement.word == "T" else self.O).add(a, row, column, value)
        return True

    def _indices(self, statement: Statement, tokens: list[str]) -> tuple[list[int], int]:
        """Return the indices of the named elements, and the position of the first token after them."""
        spaces = self._spaces[statement.word]
        indices: list[int] = []
        at, n_tokens = 0, len(tokens)
        while True:
            token = tokens[at] if at < n_tokens else ""
            index = spaces[len(indices)].index.get(token)
            if index is None:
                index = self._element(statement, at, token, spaces[len(indices)])
            indices.append(index)
            at += 1
            if at >= n_tokens or tokens[at] != ":":
                return indices, at
            at += 1
            if len(indices) == len(spaces):
                return indices, at  # some files have a colon before the number

    def _element(self, statement: Statement, position: int, token: str, space: _Space) -> int:
        index = space.find(token)
        if index is None:
            number = token.isascii() and token.isdigit()
            reason = f"There are {space.size} {space.kind}s" if number else f"No {space.kind} has this name"
            raise self._error(statement, position, space.expected(), reason if token and token != ":" else "")
        return index

    def _read_probability(self, statement: Statement, tokens: list[str], indices: list[int], start: int) -> None:
        """Read one statement of T or O: an entry, a row or a matrix."""
        table = self.T if statement.word == "T" else self.O
        n_rows, n_columns = table.shape
        action, row = indices[0], indices[1] if len(indices) > 1 else ALL
        if len(indices) == 3:
            values = self._probabilities(statement, tokens, start, "a probability in [0, 1]")
            self._check_count(statement, start, len(values), 1, "a probability in [0, 1]")
            table.set_entry(action, row, indices[2], values[0])
            return
        word = tokens[start] if start < len(tokens) else ""
        if word in ("uniform", "identity", "reset"):
            self._end(statement, tokens, start + 1)
            self._read_shorthand(statement, word, indices, start)
            return
        size = n_columns if len(indices) == 2 else n_rows * n_columns
        shape = f"a row of {size}" if len(indices) == 2 else f"a matrix of {n_rows} x {n_columns}"
        what = f"{shape} probabilities in [0, 1]"
        values = self._probabilities(statement, tokens, start, what)
        self._check_count(statement, start, len(values), size, what)
        vector = np.array(values, dtype=object if self.exact else np.float64)
        filled = np.flatnonzero(vector != 0)
        if len(indices) == 2:
            table.set_row(action, row, filled, vector[filled])
        else:
            table.set_matrix(action, filled // n_columns, filled % n_columns, vector[filled])

    def _read_shorthand(self, statement: Statement, word: str, indices: list[int], start: int) -> None:
        """Read ``uniform`` and ``reset`` for a row or all rows, ``identity`` for a square matrix."""
        table = self.T if statement.word == "T" else self.O
        n_rows, n_columns = table.shape
        row = indices[1] if len(indices) == 2 else ALL
        if word == "uniform":
            table.set_row(indices[0], row, np.arange(n_columns), self._uniform(n_columns))
        elif word == "reset":
            if statement.word == "O":
                raise self._error(statement, start, "'uniform' or probabilities", "The word 'reset' is for T")
            filled = np.flatnonzero(self.start != 0)
            table.set_row(indices[0], row, filled, self.start[filled])
        else:
            if len(indices) == 2 or n_rows != n_columns:
                raise self._error(
                    statement, start, "'uniform' or probabilities", "The word 'identity' is for a whole square matrix"
                )
            table.set_matrix(indices[0], np.arange(n_rows), np.arange(n_rows), self._all(n_rows, self.one))

    def _read_reward(self, statement: Statement, tokens: list[str], indices: list[int], start: int) -> None:
        """Read one statement of R: a number, or an array over the positions that it leaves out."""
        n_states, n_observations = self.states.size, self.observations.size
        spanned: tuple[int, ...]
        if self.observed:
            spanned = {4: (), 3: (3,), 2: (2, 3)}.get(len(indices), (1,))
            if spanned == (1,):
                raise self._error(
                    statement, start, "':' and a state", "A line 'R: action' alone is for files without observations"
                )
        else:
            spanned = {4: (), 3: (), 2: (2,)}.get(len(indices), (1, 2))
            if len(indices) == 4 and indices[3] != ALL:
                raise self._error(statement, start - 1, "'*'", "The file has no observations")
        shape = tuple(n_observations if k == 3 else n_states for k in spanned)
        size = math.prod(shape)
        what = "a number" if size == 1 else f"{size} numbers ({' x '.join(map(str, shape))})"
        values = self.source.numbers(statement, tokens, start, exact=self.exact, what=what)
        self._check_count(statement, start, len(values), size, what)
        padded = (*indices, ALL, ALL, ALL)[:4]
        if not spanned:
            self.R.set(padded, self.sign * values[0] + 0)  # + 0 turns a cost of 0 into 0.0, not -0.0
        else:
            table = np.array(values, dtype=object if self.exact else np.float64).reshape(shape)
            self.R.set(padded, self.sign * table + 0, spanned)

    # --- numbers and sums ----------------------------------------------------------------------------------------

    def _probabilities(self, statement: Statement, tokens: list[str], start: int, what: str) -> list[Number]:
        """Return the numbers from the token ``start`` on; numbers above 1 are valid only with ``normalize``."""
        values = self.source.numbers(statement, tokens, start, exact=self.exact, what=what)
        if values and not (min(values) >= 0 and max(values) <= self._most):
            index = next(i for i, p in enumerate(values) if not 0 <= p <= self._most)
            raise self._error(statement, start + index, "a probability in [0, 1]")
        return values

    def _check_count(self, statement: Statement, start: int, found: int, wanted: int, what: str) -> None:
        if found < wanted:
            reason = f"There are {found} of {wanted} numbers" if found else ""
            raise self._error(statement, len(self.source.tokens(statement)), what, reason)
        if found > wanted:
            raise self._error(
                statement, start + wanted, "the next section", f"{wanted} numbers belong here, not {found}"
            )

    def _distributions(self, table: ProbabilityTable, word: str) -> list[Rows]:
        """Return the matrices of T or O, with rows that sum to 1 within the tolerance."""
        checked: dict[int, Rows] = {}
        matrices = table.matrices()
        for action, rows in enumerate(matrices):
            if id(rows) not in checked:
                checked[id(rows)] = self._checked(rows, word, action)
        return [checked[id(rows)] for rows in matrices]

    def _checked(self, rows: Rows, word: str, action: int) -> Rows:
        sums = rows.sums()
        if self.normalize and not self.exact and not np.isfinite(sums).all():  # finite weights
            rows = rows.scaled(rows.largest())
            sums = rows.sums()
        wrong = sums <= 0 if self.normalize else np.abs(sums - 1) > self._slack
        if wrong.any():
            bad = int(np.flatnonzero(wrong)[0])
            raise self._row_error(word, action, bad, float(sums[bad]))
        return rows.scaled(sums) if self.normalize else rows

    def _row_error(self, word: str, action: int, row: int, row_sum: float) -> Exception:
        """Return the error of a wrong row, at the last statement that wrote to it."""
        name = f"{word}: {self.actions.names[action]} : {self.states.names[row]}"
        expected = f"probabilities of '{name}' that sum to 1 (tolerance {self.tolerance})"
        for position, for_action, for_row in zip(*map(reversed, self._written[word]), strict=True):
            if for_action in (action, ALL) and for_row in (row, ALL):
                statement = self._tables[position]
                tokens = self.source.tokens(statement)
                indices, start = self._indices(statement, tokens)
                n_columns = self._spaces[word][2].size
                offset = statement.offset
                if len(indices) == 1 and len(tokens) - start > 1:  # a matrix: point at the row
                    offset = self.source.offset_of(statement, start + row * n_columns)
                return self.source.error(offset, expected, f"They sum to {brief(row_sum)}.{self._remedy(row_sum)}")
        return self.source.error(len(self.source.text), expected, "No statement gives any")

    def _remedy(self, row_sum: Number) -> str:
        """Return what to do about probabilities with this sum."""
        if self.normalize or not 0 < row_sum < math.inf:
            return " Correct them"
        wider = f", pass tolerance={_wider(row_sum)}" if not self.exact and abs(row_sum - 1) < 0.5 else ""
        return f" Correct them{wider}, or pass normalize=True"

    # --- errors --------------------------------------------------------------------------------------------------

    def _error(self, statement: Statement, position: int, expected: str, reason: str = "") -> Exception:
        return self.source.error(self.source.offset_of(statement, position), expected, reason)

    def _end(self, statement: Statement, tokens: list[str], position: int) -> None:
        """Check that the statement has no more tokens."""
        if position < len(tokens):
            raise self._error(statement, position, "the next section")


def _wider(row_sum: Number) -> str:
    """Return a tolerance of one digit for this sum."""
    off = abs(float(row_sum) - 1)
    digit = 10.0 ** math.floor(math.log10(off))
    return f"{math.ceil(off / digit * (1 + 1e-6)) * digit:.1g}"
