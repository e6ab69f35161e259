"""Parts of a tree in the form that the workers use."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._engines.task import NodeRewards
from pomdp_hier.hierarchy.tree import Hierarchy


@dataclass(frozen=True, eq=False)
class TreePart:
    """Nodes of a tree, with their properties in the whole tree.

    Attributes:
        nodes: Their numbers there, ascending ``[m]``.
        parent: Their parents' numbers there, -1 for the root.
        sizes, starts, levels, is_cluster: As in `Hierarchy`.
        reward, rise: As in `NodeRewards`.
    """

    nodes: Ints
    parent: Ints
    sizes: Ints
    starts: Ints
    levels: Ints
    is_cluster: Bools
    reward: Floats
    rise: Floats

    @classmethod
    def of(cls, tree: Hierarchy, rewards: NodeRewards, nodes: Ints) -> Self:
        """Return the part of the tree with these nodes, in ascending order."""
        return cls(
            nodes,
            tree.parent[nodes],
            tree.sizes[nodes],
            tree.starts[nodes],
            tree.levels[nodes],
            tree.is_cluster[nodes],
            rewards.reward[nodes],
            rewards.rise[nodes],
        )

    def joined(self, other: Self) -> Self:
        """Return the nodes of both parts."""
        nodes, first = np.unique(np.concatenate([self.nodes, other.nodes]), return_index=True)
        columns = {}
        for field in fields(self)[1:]:
            columns[field.name] = np.concatenate([getattr(self, field.name), getattr(other, field.name)])[first]
        return type(self)(nodes, **columns)

    def places(self, nodes: Ints) -> Ints:
        """Return the positions of these nodes in ``nodes``."""
        return np.searchsorted(self.nodes, nodes)

    def n_items(self, inner: int) -> int:
        """Return the number of items among the nodes; internal nodes start at ``inner``."""
        return int(np.searchsorted(self.nodes, inner))

    def excerpt(self, inner: int) -> Hierarchy:
        """Return the nodes, which include their parents, as a renumbered tree.

        Its sizes, levels and positions are those of the whole tree; children that are not here are left out, and a
        node of which none is here is taken for a leaf cluster: nobody plans beyond it.
        """
        n_nodes, n_items = len(self.nodes), self.n_items(inner)
        parent = np.where(self.parent < 0, -1, self.places(self.parent))
        children = np.flatnonzero(self.is_cluster & (parent >= 0))
        children = children[np.lexsort((self.starts[children], parent[children]))]
        counts = np.bincount(parent[children], minlength=n_nodes)
        tree = Hierarchy.__new__(Hierarchy)
        tree.__setstate__(
            {
                "n_items": n_items,
                "n_nodes": n_nodes,
                "root": int(np.flatnonzero(parent < 0)[0]),
                "parent": parent,
                "is_cluster": self.is_cluster,
                "is_leaf": self.is_cluster & (counts == 0),
                "child_offsets": np.concatenate([[0], np.cumsum(counts)]),
                "child_nodes": children,
                "sizes": self.sizes,
                "levels": self.levels,
                "item_order": np.argsort(self.starts[:n_items]),
                "starts": self.starts,
                "topological_order": np.argsort(self.levels, kind="stable"),
                "height": int(self.levels[self.is_cluster].max()),
                "labels": None,
                "singletons": bool(self.is_cluster[:n_items].all()),
            }
        )
        return tree

    def forest(self, inner: int) -> Hierarchy:
        """Return the nodes as a renumbered tree under one new root, which comes last."""
        parent = self.places(self.parent)
        parent = np.where(parent < len(self.nodes), parent, 0)
        parent[self.nodes[parent] != self.parent] = len(self.nodes)
        order = np.append(len(self.nodes), np.lexsort((self.levels, self.starts)))
        return Hierarchy(np.append(parent, -1), self.n_items(inner), order=order)


@dataclass(frozen=True, eq=False)
class Cut:
    """A tree in partitions.

    Attributes:
        bounds: Where the partitions begin and end in leaf order ``[P + 1]``.
        top: The nodes that no partition holds whole, ascending.
        boundary: The children of the top that are not in the top themselves, ascending.
        shared: The nodes that every partition has to know, ascending: the top and what lies ``reach`` levels below.
        by_partition: All nodes in order of their partition; those of one partition ascending.
        offsets: Where each partition's begin in ``by_partition`` ``[P + 1]``.
    """

    bounds: Ints
    top: Ints
    boundary: Ints
    shared: Ints
    by_partition: Ints
    offsets: Ints

    @classmethod
    def of(cls, tree: Hierarchy, partition_items: int, reach: int) -> Self:
        """Return the tree in partitions of about ``partition_items`` items, for a look-ahead of ``reach`` levels.

        Example:
            >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13]], 8)
            >>> cut = Cut.of(tree, 4, 1)
            >>> cut.bounds, cut.top, cut.shared
            (array([0, 4, 8]), array([14]), array([12, 13, 14]))
        """
        bounds = cut_bounds(tree, partition_items)
        partition = np.searchsorted(bounds, tree.starts, side="right") - 1
        whole = tree.starts + tree.sizes <= bounds[partition + 1]
        in_top = ~whole
        known = np.append(in_top, False)  # no parent is -1, which is never known
        for _ in range(min(reach, int(tree.height))):
            known[:-1] |= known[tree.parent]
        shared = known[:-1] & tree.is_cluster
        boundary = np.flatnonzero(whole & np.append(in_top, False)[tree.parent])
        n_partitions = len(bounds) - 1
        partition[in_top] = n_partitions
        order = np.argsort(partition, kind="stable")
        offsets = np.searchsorted(partition[order], np.arange(n_partitions + 1))
        return cls(bounds, np.flatnonzero(in_top), boundary, np.flatnonzero(shared), order, offsets)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def nodes(self, partition: int) -> Ints:
        """Return the nodes of a partition in ascending order."""
        return self.by_partition[self.offsets[partition] : self.offsets[partition + 1]]


def cut_bounds(tree: Hierarchy, partition_items: int) -> Ints:
    """Return the bounds ``[P + 1]``, in leaf order, of partitions of about ``partition_items`` items.

    The largest subtrees of no more items are put together while they fit; a leaf cluster is never cut, however large.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7], [8, 9, 10]], 8)
        >>> cut_bounds(tree, 5)
        array([0, 3, 8])
    """
    n_items = tree.n_items
    divisible = (tree.sizes > partition_items) & ~tree.is_leaf
    if not divisible[tree.root]:
        return np.array([0, n_items])
    pieces = np.flatnonzero(~divisible & np.append(divisible, False)[tree.parent])
    ends = np.append(np.sort(tree.starts[pieces])[1:], n_items)
    bounds = [0]
    while bounds[-1] < n_items:
        at = int(np.searchsorted(ends, bounds[-1] + partition_items, side="right")) - 1
        if at < 0 or ends[at] <= bounds[-1]:
            at += 1
        bounds.append(int(ends[at]))
    return np.array(bounds)
