"""How values, lists and counts stand in messages: in a few characters, whatever was handed over."""

import reprlib
from collections.abc import Iterable
from itertools import islice

__all__ = ["brief", "counted", "listed"]


class _Short(reprlib.Repr):
    """A repr of bounded length and depth: a value may be long, deep, or unable to show itself."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = 10
        self.maxstring = self.maxother = limit

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() < 200 else f"<an integer of {x.bit_length()} bits>"

    def repr_instance(self, x: object, level: int) -> str:
        plain = type(x).__repr__ is object.__repr__  # long, and another address each time
        return f"<{type(x).__name__} object>" if plain else super().repr_instance(x, level)


def brief(value: object, limit: int = 60) -> str:
    """Return the value's ``repr`` in at most ``limit`` characters; the middle of a long text is left out.

    Example:
        >>> brief("a" * 100, limit=14), brief([[[[[[]]]]]]), brief(10**5_000)
        ("'aaaa...aaaaa'", '[[[[...]]]]', '<an integer of 16610 bits>')
    """
    text = _Short(limit).repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def listed(values: Iterable[object], *, count: int | None = None, limit: int = 5) -> str:
    """Return the first few values in brief, and how many there are if that is more.

    Args:
        values: The values; an iterator will do where the count is given.
        count: How many there are; counted when left out.
        limit: How many are shown.

    Example:
        >>> listed(["look", "go"]), listed(range(9), limit=2)
        ("'look', 'go'", '0, 1, ... (9 in all)')
    """
    if count is None:
        values = list(values)
        count = len(values)
    text = ", ".join(brief(value) for value in islice(values, limit))
    return text if count <= limit else f"{text}, ... ({count:,} in all)"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return the count with its noun: ``1 node``, ``3 nodes``.

    Example:
        >>> counted(1, "node"), counted(3000, "category", "categories")
        ('1 node', '3,000 categories')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
