"""`PlainTree`: what every reader returns, plain parent arrays and labels."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import numpy as np

from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy.arrays import IntArray
from pomdp_hier.hierarchy.wording import listed, shown

__all__ = ["ItemsAtInner", "OnMultipleParents", "PlainTree", "checked_choice", "integer_ids", "with_added_root"]

OnMultipleParents = Literal["error", "first", "duplicate"]
ItemsAtInner = Literal["leaf", "error"]


@dataclass
class PlainTree:
    """A tree as a reader found it: items first, then inner nodes; not yet checked for cycles or several roots."""

    parent: IntArray
    n_items: int
    order: IntArray | None = None
    labels: Sequence[Hashable] | None = None
    notes: list[str] = field(default_factory=list)
    singletons: bool | None = None


def checked_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise `ParameterError` unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ParameterError(f"{name}={shown(value)} is unknown: choose one of {listed(choices)}")


def integer_ids(lists: Iterable[Sequence[object]], what: str) -> tuple[IntArray, IntArray]:
    """All ids of the lists in one array, and the length of each list.

    Raises:
        HierarchyError: For an id that is no integer; ``what`` and the list's number say where.
    """
    rows = list(lists)
    for number, row in enumerate(rows):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") or not hasattr(row, "__iter__"):
            raise HierarchyError(f"{what}[{number}] is {shown(row)}, expected a list of node numbers")
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    flat = list(chain.from_iterable(rows))
    for place, value in enumerate(flat):
        if type(value) is not int and (isinstance(value, bool) or not isinstance(value, np.integer)):
            number = int(np.searchsorted(np.cumsum(lengths), place, side="right"))
            raise HierarchyError(f"{what}[{number}] holds {shown(value)}, expected an integer node number")
        if not -(2**62) < value < 2**62:
            raise HierarchyError(f"node number {shown(value)} in {what} is out of range")
    return np.array(flat, dtype=np.int64), lengths


def with_added_root(plain: PlainTree) -> PlainTree:
    """Return the tree with one new node, labelled ``None``, above its roots; unchanged if there is one root."""
    roots = np.flatnonzero(plain.parent < 0)
    if roots.size < 2:
        return plain
    n_nodes = plain.parent.size
    parent = np.append(plain.parent, -1)
    parent[roots] = n_nodes
    labels = plain.labels
    if labels is not None:
        labels = (*labels, *range(len(labels), n_nodes), None)
    order = None if plain.order is None else np.append(plain.order, n_nodes)
    return PlainTree(parent, plain.n_items, order, labels, plain.notes, plain.singletons)
