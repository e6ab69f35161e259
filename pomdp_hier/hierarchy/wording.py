"""How error texts and warnings name nodes: a few of them, shortened, with a count."""

import sys
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice

from pomdp_hier.errors import HierarchyWarning

__all__ = ["counted", "listed", "shown", "warn_user"]


def shown(value: object, limit: int = 60) -> str:
    """The value as an error text shows it: its repr, cut off after ``limit`` characters.

    >>> shown("a" * 100, limit=10)
    "'aaaaaa..."
    """
    text = repr(value[: limit + 1] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def listed(values: Sequence[object] | Iterable[object], count: int | None = None, limit: int = 5) -> str:
    """The first few values, and how many there are if that is more.

    >>> listed(["a", "b"]), listed(range(9), 9, limit=2)
    ("'a', 'b'", '0, 1, ... (9 in all)')
    """
    if count is None:
        values = list(values)
        count = len(values)
    text = ", ".join(shown(value) for value in islice(values, limit))
    return text if count <= limit else f"{text}, ... ({count:,} in all)"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """The count with its noun: ``1 node``, ``3 nodes``.

    >>> counted(1, "node"), counted(3000, "category", "categories")
    ('1 node', '3,000 categories')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def warn_user(notes: Iterable[str]) -> None:
    """Gives the notes, if any, as one `HierarchyWarning` at the line of the caller's own code, outside the package."""
    text = "; ".join(notes)
    if not text:
        return
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pomdp_hier."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, HierarchyWarning, stacklevel=level)
