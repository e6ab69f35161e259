"""`TreeArrays`: what every reader returns, parents and labels in arrays."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from pomdp_hier._arrays import Ints
from pomdp_hier.hierarchy.wording import Note

__all__ = ["ItemsAtInner", "OnMultipleParents", "TreeArrays", "with_added_root"]

OnMultipleParents = Literal["error", "first", "duplicate"]
ItemsAtInner = Literal["leaf", "error"]


@dataclass
class TreeArrays:
    """A tree as a reader found it: items first, then inner nodes; not yet checked for cycles or several roots.

    Attributes:
        parent: The parent of every node ``[N + K]``, -1 at a root.
        n_items: ``N``.
        order: All nodes in reading order, or ``None`` for that of their numbers.
        labels: One id a node, one an item, or ``None``.
        notes: What to warn of.
        singletons: What the source says or its format means, ``None`` if nothing.
        one_child_notes: Whether a node with one child is worth a warning, as in formats that people write.
    """

    parent: Ints
    n_items: int
    order: Ints | None = None
    labels: Sequence[Hashable] | None = None
    notes: list[Note] = field(default_factory=list)
    singletons: bool | None = None
    one_child_notes: bool = False


def with_added_root(arrays: TreeArrays) -> TreeArrays:
    """Return the tree with one new node, labelled ``None``, above its roots; unchanged if there is one root."""
    roots = np.flatnonzero(arrays.parent < 0)
    if roots.size < 2:
        return arrays
    n_nodes = arrays.parent.size
    parent = np.append(arrays.parent, -1)
    parent[roots] = n_nodes
    labels = arrays.labels
    if labels is not None:
        labels = (*labels, *range(len(labels), n_nodes), None)
    order = None if arrays.order is None else np.append(arrays.order, n_nodes)
    return replace(arrays, parent=parent, order=order, labels=labels)
