"""Fast reader of large ``.pomdp`` files: blocks of statements of the regular forms, many at once.

What is not regular is read by the reader of the whole grammar, statement by statement. After an error, the block of
the error is read so again, and its message has its place. If sections follow later, the whole file is.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.errors import PomdpFileError
from pomdp_hier.pomdp.pomdp_file.grammar import FileContent, Reader
from pomdp_hier.pomdp.pomdp_file.statements import ALL, ProbabilityTable, Source, Statement, TooLargeError

_SIZE = 1 << 20  # characters of a block; a smaller file is read at once
_HEADS = ("T:", "O:", "R:")
_ENTRY, _REWARD = 7, 9  # words of "T: action : state : next state probability", and of R with all its positions
_FIRST = re.compile(r"^[TOR]:", re.MULTILINE)
_SHORT = 100  # a run of fewer words is not worth arrays
_SPACE = re.compile(r"\s")
# Of these characters alone, what `float` accepts is a number of the format: no "nan", "1_000" or other digits.
_OF_NUMBERS = b"0123456789.eE+-"


# The words of sections other than T, O and R, which count wherever they are.
_SECTIONS = ("discount", "values", "states", "actions", "observations", "start")


class _IrregularError(Exception):
    """The file, or a run of statements, has not the regular form."""


def read_content(source: Source, *, tolerance: float, normalize: bool, exact: bool) -> FileContent:
    """Return the content of the file; large files are read in blocks."""
    if not exact and len(source.text) > _SIZE:
        try:
            return _BlockReader(source, tolerance=tolerance, normalize=normalize, exact=False).read()
        except (_IrregularError, TooLargeError):
            pass  # the reader below finds the place of an error
    return Reader(source, tolerance=tolerance, normalize=normalize, exact=exact).read()


class _BlockReader(Reader):
    """A reader of files whose statements of T, O and R begin lines and come after all others."""

    def read(self) -> FileContent:
        first = _FIRST.search(self.source.text)
        if first is None:
            raise _IrregularError
        self._begin = first.start()
        # Of each block, its begin, its end, and the positions of the rows of T and of O that it assigns.
        self._assigned: dict[str, list[tuple[int, int, Ints]]] = {"T:": [], "O:": []}
        try:
            self._restart()
            for begin, end in self._blocks(self._begin):
                self._block = (begin, end)
                if end - begin > 2 * _SIZE:
                    self._read_large(begin, end)
                else:
                    self._read_block(begin, end)
        except PomdpFileError:
            if any(self.source.text.find(word, self._begin) >= 0 for word in _SECTIONS):
                raise _IrregularError from None
            raise
        return self._content()

    def _restart(self) -> None:
        """Read what comes before T, O and R; their tables are empty."""
        self._block = (0, self._begin)
        statements = self.source.statements(*self._block)
        self._read_spaces(statements)
        self._read_exactly([s for s in statements if len(s.word) == 1])

    def _note(self, head: str, actions: Ints, rows: Ints) -> None:
        """Note which rows the block assigns, `ALL` for all actions or rows."""
        n_rows = self._table(head).shape[0]
        self._assigned[head].append((*self._block, np.unique((actions + 1) * (n_rows + 1) + rows + 1)))

    def _row_error(self, word: str, action: int, row: int, row_sum: float) -> Exception:
        """Return the error of a wrong row; the last block that assigns it is read again, statement by statement."""
        n_rows = self._table(f"{word}:").shape[0]
        keys = [(a + 1) * (n_rows + 1) + r + 1 for a in (action, ALL) for r in (row, ALL)]
        for begin, end, assigned in reversed(self._assigned[f"{word}:"]):
            if np.isin(keys, assigned).any():
                self._restart()
                self._read_tables([s for s in self.source.statements(begin, end) if len(s.word) == 1])
                break
        return super()._row_error(word, action, row, row_sum)

    def _blocks(self, begin: int) -> Iterator[tuple[int, int]]:
        """Yield the begin and the end of each block; a block ends before a statement that begins a line."""
        text = self.source.text
        while begin < len(text):
            end = len(text)
            if end - begin > _SIZE:
                end = 1 + max(text.rfind(f"\n{head}", begin, begin + _SIZE) for head in _HEADS)
                if not end:
                    following = _FIRST.search(text, begin + _SIZE)
                    end = following.start() if following else len(text)
            if text[max(begin, end - 100) : end].rstrip()[-1:] in ("", ":"):  # then no statement begins there
                raise _IrregularError
            yield begin, end
            begin = end

    def _read_exactly(self, statements: list[Statement]) -> None:
        if any(len(s.word) > 1 for s in statements):
            raise _IrregularError
        self._read_tables(statements)
        for word, written in self._written.items():
            if len(written[0]):
                self._note(f"{word}:", np.array(written[1]), np.array(written[2]))
            for log in written:
                del log[:]

    def _read_large(self, begin: int, end: int) -> None:
        """Read a statement that is larger than a block: a matrix or a row, whose numbers are read in pieces."""
        text = self.source.text
        line = text.find("\n", begin, begin + _SIZE)
        head = text[begin : max(line, begin)].split()
        try:
            if len(head) not in (2, 4) or head[0] not in _HEADS[:2] or head[2:3] not in ([], [":"]):
                raise _IrregularError
            n_rows, n_columns = self._table(head[0]).shape
            values = np.empty(n_columns * (n_rows if len(head) == 2 else 1))
            filled = 0
            while line < end:
                space = _SPACE.search(text, min(line + _SIZE, end), end)
                stop = space.start() if space else end
                numbers = self._probabilities_of(text[line:stop].split())
                if filled + len(numbers) > len(values):
                    raise _IrregularError
                values[filled : filled + len(numbers)] = numbers
                filled, line = filled + len(numbers), stop
            if filled < len(values):
                raise _IrregularError
            self._assign(head, len(head), values)
        except _IrregularError:
            self._read_exactly(self.source.statements(begin, end))

    def _read_block(self, begin: int, end: int) -> None:
        """Read a block run by run; a run has statements of one word and one length.

        The words T, O and R are read one after another, as the order counts within each alone. After an error, the
        block is read again in its own order.
        """
        try:
            self._read_runs(begin, end)
        except PomdpFileError:  # perhaps not the first one of the block
            self._restart()
            self._read_exactly(self.source.statements(begin, end))
            raise _IrregularError from None

    def _read_runs(self, begin: int, end: int) -> None:
        """Read the runs of T, then those of O, then those of R."""
        words = np.array(self.source.text[begin:end].split(), dtype=object)
        heads = np.array([i for i, word in enumerate(words.tolist()) if word in _HEADS], dtype=np.int64)
        names = any(word.endswith(":") for word in words[heads[1:] - 1].tolist())  # after a colon, a head is a name
        if names or not (len(heads) and heads[0] == 0):
            self._read_exactly(self.source.statements(begin, end))
            return
        lengths = np.diff(heads, append=len(words))
        statements: list[Statement] = []
        for head in _HEADS:
            mine = np.flatnonzero(words[heads] == head)
            changes = 1 + np.flatnonzero(np.diff(lengths[mine]))
            for run in np.split(mine, changes) if len(mine) else ():
                length = int(lengths[run[0]])
                try:
                    if len(run) * length < _SHORT:
                        raise _IrregularError
                    self._read_run(words[(heads[run, None] + np.arange(length)).ravel()].tolist(), length)
                except _IrregularError:
                    statements = statements or self.source.statements(begin, end)
                    if len(statements) != len(heads):
                        self._read_exactly(statements)  # what was assigned before is assigned again
                        return
                    self._read_exactly([statements[i] for i in run])

    def _read_run(self, words: list[str], length: int) -> None:
        """Read statements of one word and one length, if all have one of the regular forms."""
        if words[0] == "R:":
            self._read_rewards(words, length)
            return
        n_rows, n_columns = self._table(words[0]).shape
        if length == _ENTRY and words[4] == ":":
            self._read_entries(words)
        elif length in (4 + n_columns, 2 + n_rows * n_columns):
            width = 4 if length == 4 + n_columns else 2
            numbers = [word for at in range(0, len(words), length) for word in words[at + width : at + length]]
            heads = [word for at in range(0, len(words), length) for word in words[at : at + width]]
            self._assign(heads, width, self._probabilities_of(numbers))
        else:
            raise _IrregularError

    def _read_rewards(self, words: list[str], length: int) -> None:
        """Read ``R: action : state : next state : observation number``."""
        if length != _REWARD:
            raise _IrregularError
        _check_colons(words, length, (2, 4, 6))
        indices = np.stack([self._indices_of("R", k, words[2 * k + 1 :: length]) for k in range(4)], axis=1)
        if not self.observed and (indices[:, 3] != ALL).any():
            raise _IrregularError
        self.R.set_many(indices, self.sign * _numbers(words[8::length]) + 0)

    def _read_entries(self, words: list[str]) -> None:
        """Read ``T: action : state : next state probability``, or the same of O."""
        _check_colons(words, _ENTRY, (2, 4))
        actions, rows, columns = (self._indices_of(words[0][0], k, words[2 * k + 1 :: _ENTRY]) for k in range(3))
        if min(actions.min(), rows.min(), columns.min()) == ALL:
            raise _IrregularError
        self._table(words[0]).add_many(actions, rows, columns, self._probabilities_of(words[6::_ENTRY]))
        self._note(words[0], actions, rows)

    def _assign(self, heads: list[str], width: int, values: Floats) -> None:
        """Assign rows ``T: action : state`` (a width of four words) or matrices ``T: action`` (of two)."""
        table, letter = self._table(heads[0]), heads[0][0]
        n_columns = table.shape[1]
        actions = self._indices_of(letter, 0, heads[1::width])
        if width == 4:
            _check_colons(heads, width, (2,))
            rows = self._indices_of(letter, 1, heads[3::width])
            if min(actions.min(), rows.min()) == ALL:
                raise _IrregularError
            table.set_rows(actions, rows, values.reshape(-1, n_columns))
            self._note(heads[0], actions, rows)
            return
        for action, matrix in zip(actions.tolist(), values.reshape(len(actions), -1), strict=True):
            filled = np.flatnonzero(matrix)
            table.set_matrix(action, filled // n_columns, filled % n_columns, matrix[filled])
        self._note(heads[0], actions, np.full_like(actions, ALL))

    def _table(self, head: str) -> ProbabilityTable:
        if head == "O:" and not self.observed:
            raise _IrregularError
        return self.T if head == "T:" else self.O

    def _indices_of(self, word: str, position: int, tokens: list[str]) -> Ints:
        """Return the index of each token, `ALL` for the wildcard."""
        space = self._spaces[word][position]
        for find in (space.index.get, space.find):
            try:
                return np.fromiter(map(find, tokens), np.int64, len(tokens))
            except TypeError:  # of None
                continue
        raise _IrregularError

    def _probabilities_of(self, words: list[str]) -> Floats:
        values = _numbers(words)
        if len(values) and not (values.min() >= 0 and values.max() <= self._most):
            raise _IrregularError
        return values


def _check_colons(words: list[str], length: int, places: Iterable[int]) -> None:
    if any(words[place::length].count(":") != len(words) // length for place in places):
        raise _IrregularError


def _numbers(words: list[str]) -> Floats:
    digits = "".join(words)
    if not digits.isascii() or digits.encode().translate(None, _OF_NUMBERS):
        raise _IrregularError
    try:
        values = np.fromiter(map(float, words), np.float64, len(words))
    except ValueError:
        raise _IrregularError from None
    if not np.isfinite(values).all():
        raise _IrregularError
    return values
