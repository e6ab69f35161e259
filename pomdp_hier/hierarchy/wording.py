"""How error texts and warnings name nodes: a few of them, shortened, with a count."""

import reprlib
import sys
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice

from pomdp_hier.errors import HierarchyWarning

__all__ = ["counted", "listed", "shown", "warn_user"]


class _Short(reprlib.Repr):
    """A repr of bounded length and depth: what a user hands over may be long, deep, or unable to show itself."""

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() < 200 else f"<an integer of {x.bit_length()} bits>"


def shown(value: object, limit: int = 60) -> str:
    """Return the value as an error text shows it: its repr, the middle left out if it is long.

    Example:
        >>> shown("a" * 100, limit=14), shown([[[[[[]]]]]])
        ("'aaaa...aaaaa'", '[[[[...]]]]')
    """
    short = _Short()
    short.maxlevel, short.maxtuple, short.maxlist, short.maxdict = 4, 6, 6, 4
    short.maxstring = short.maxother = limit
    text = short.repr(value)
    return text if len(text) <= 4 * limit else text[: 4 * limit] + "..."


def listed(values: Sequence[object] | Iterable[object], count: int | None = None, limit: int = 5) -> str:
    """Return the first few values, and how many there are if that is more.

    Example:
        >>> listed(["a", "b"]), listed(range(9), 9, limit=2)
        ("'a', 'b'", '0, 1, ... (9 in all)')
    """
    if count is None:
        values = list(values)
        count = len(values)
    text = ", ".join(shown(value) for value in islice(values, limit))
    return text if count <= limit else f"{text}, ... ({count:,} in all)"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return the count with its noun: ``1 node``, ``3 nodes``.

    Example:
        >>> counted(1, "node"), counted(3000, "category", "categories")
        ('1 node', '3,000 categories')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def warn_user(notes: Iterable[str]) -> None:
    """Give the notes, if any, as one `HierarchyWarning` at the line of the caller's own code, outside the package."""
    text = "; ".join(notes)
    if not text:
        return
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pomdp_hier."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, HierarchyWarning, stacklevel=level)
