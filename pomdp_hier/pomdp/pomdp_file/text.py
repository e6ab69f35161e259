"""The text of a ``.pomdp`` file: statements, tokens, numbers, and errors with a position."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from pomdp_hier.errors import PomdpFileError
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
