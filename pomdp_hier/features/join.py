"""Which feature row belongs to which item: ids are matched, and whatever does not match is listed."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pomdp_hier._arrays import Ints
from pomdp_hier.errors import FeatureError, PythonAdvice
from pomdp_hier.hierarchy.wording import counted, listed

__all__ = ["IdMatch", "are_row_numbers", "join_rows", "match_ids", "rows_by_id"]

_EMPTY = (
    ". A leaf of the tree is an item: remove a category without items from the tree",
    PythonAdvice(", or read the tree with items="),
)


@dataclass(frozen=True, eq=False)
class IdMatch:
    """How the ids of feature rows and of items fit together; ids are listed in the order given.

    Attributes:
        rows: The feature row of each item, [number of items]; -1 for an item without one.
        missing: Items without a feature row.
        surplus: Feature rows without an item.
        doubled_rows: Ids of several feature rows.
        doubled_items: Ids of several items.
    """

    rows: Ints
    missing: tuple[Hashable, ...]
    surplus: tuple[Hashable, ...]
    doubled_rows: tuple[Hashable, ...]
    doubled_items: tuple[Hashable, ...]

    def faults(self, *, surplus: bool = True) -> list[str]:
        """Return what does not match, one phrase per kind; empty if every item has exactly one row.

        Items of one id, such as the copies of an item with several parents, share its row.

        Args:
            surplus: Whether feature rows without an item are a fault.
        """
        kinds = [
            (self.missing, "item", "without a feature row"),
            (self.surplus if surplus else (), "feature row", "without an item"),
            (self.doubled_rows, "id", "on several feature rows"),
        ]
        return [f"{counted(len(ids), noun)} {fault} ({listed(ids)})" for ids, noun, fault in kinds if ids]


def match_ids(row_ids: Sequence[Hashable], item_ids: Sequence[Hashable]) -> IdMatch:
    """Return the feature row of each item by its id, and every id that is missing, surplus or doubled.

    Ids match when they are equal. Where all ids of one side are text, as they come out of a text file, those of the
    other are matched by their text, so that item ``7`` finds row ``"7"``.

    Args:
        row_ids: The id of each feature row.
        item_ids: The id of each item.

    Example:
        >>> match = match_ids(["b", "a", "x"], ["a", "b", "c"])
        >>> match.rows.tolist(), match.missing, match.surplus
        ([1, 0, -1], ('c',), ('x',))
    """
    if all(isinstance(row, str) for row in row_ids):
        item_ids = [str(item) for item in item_ids]
    elif all(isinstance(item, str) for item in item_ids):
        row_ids = [str(row) for row in row_ids]
    row_of: dict[Hashable, int] = {}
    for row, name in enumerate(row_ids):
        row_of.setdefault(name, row)
    known = set(item_ids)
    return IdMatch(
        rows=np.array([row_of.get(name, -1) for name in item_ids], dtype=np.int64),
        missing=tuple(dict.fromkeys(name for name in item_ids if name not in row_of)),
        surplus=tuple(name for name in row_of if name not in known),
        doubled_rows=_doubled(row_ids),
        doubled_items=_doubled(item_ids),
    )


def join_rows(row_ids: Sequence[Hashable], item_ids: Sequence[Hashable], *, surplus: str = "error") -> Ints:
    """Return the feature row of each item: ``X[join_rows(row_ids, item_ids)]`` has one row an item, in item order.

    Args:
        row_ids: The id of each feature row.
        item_ids: The id of each item.
        surplus: ``"error"``, or ``"drop"`` to leave out feature rows without an item.

    Raises:
        FeatureError: Ids are missing, surplus or on several rows; the message lists them.

    Example:
        >>> join_rows(["b", "a"], ["a", "b"]).tolist()
        [1, 0]
    """
    match = match_ids(row_ids, item_ids)
    faults = match.faults(surplus=surplus == "error")
    if faults:
        types = [", ".join(sorted({type(name).__name__ for name in ids})) for ids in (row_ids, item_ids)]
        apart = "" if types[0] == types[1] else f" (the rows' ids are {types[0]}, the items' {types[1]})"
        raise FeatureError(
            f"feature rows and items do not match by id{apart}: {'; '.join(faults)}. Give each item exactly one row, "
            "under the id that the hierarchy uses for it",
            *(_EMPTY if match.missing else ()),
        )
    return match.rows


def rows_by_id(row_ids: Sequence[Hashable], item_ids: Sequence[Hashable]) -> Ints | None:
    """Return the feature row of each item; None where the items are called by numbers of rows, of which no row is one.

    Raises:
        FeatureError: As `join_rows`.
    """
    if are_row_numbers(item_ids) and (match_ids(row_ids, item_ids).rows < 0).all():
        return None
    return join_rows(row_ids, item_ids)


def are_row_numbers(item_ids: Sequence[Hashable]) -> bool:
    """Whether items are called by the numbers of their rows, ``0..N-1``, also as text."""
    return all(str(name) == str(row) for row, name in enumerate(item_ids))


def _doubled(ids: Iterable[Hashable]) -> tuple[Hashable, ...]:
    return tuple(name for name, count in Counter(ids).items() if count > 1)
