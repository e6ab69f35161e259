"""Tasks of the workers of `evaluate_distributed`: functions of arrays.

Arrays arrive from Dask read-only and unaligned, and numpy copies an unaligned array whole on every take; so they are
aligned once where they arrive.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._engines.dispatch import run_engine
from pomdp_hier._engines.task import NodeRewards, Rule, Task
from pomdp_hier.features.affinity import SparseAffinity
from pomdp_hier.features.dense import DenseAffinity, DenseKind
from pomdp_hier.features.membership import cluster_sums
from pomdp_hier.features.validation import row_pieces
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


@dataclass(frozen=True, eq=False)
class Plan:
    """Settings of the score of every partition.

    Attributes:
        kind: The similarity.
        rule: When to stop.
        temperatures: ``delta_t`` of each level of the whole tree.
        enter_own_singleton: As in `evaluate`.
        engine: ``"numpy"`` or ``"numba"``.
        n_items: N of the whole tree.
    """

    kind: DenseKind
    rule: Rule
    temperatures: Floats
    enter_own_singleton: bool
    engine: str
    n_items: int


@dataclass(frozen=True, eq=False)
class Inspection:
    """Result of a check of rows: the non-finite rows, the largest value, and partial sums for the centre."""

    bad: Ints
    largest: float
    sums: list[Floats]


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums ``[k, D]`` and rows ``[m, D]`` of the nodes that a partition shares with others; CSR for sparse rows.

    ``zero_rows`` are the items whose rows are zeros.
    """

    sums: Any
    rows: Any
    zero_rows: Ints


@dataclass(frozen=True, eq=False)
class Shared:
    """The shared nodes, with the sums of internal nodes, the rows of items, and the centre."""

    part: TreePart
    sums: Any
    rows: Any
    centre: Floats


def inspect(rows: Any, piece_rows: int, first: int) -> Inspection:
    """Return the check of the rows from index ``first``, summed in pieces of ``piece_rows`` as in `evaluate`."""
    if isinstance(rows, np.ma.MaskedArray):  # what a mask hides is missing
        rows = rows.filled(np.nan)
    if issparse(rows):
        rows = csr_matrix(rows)
        found = [rows[low : low + piece_rows] for low in range(0, rows.shape[0], piece_rows)]
        totals = [np.asarray(piece.sum(axis=0), dtype=np.float64).reshape(-1) for piece in found]  # a sum is a matrix
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        bad = first + np.unique(owner[~np.isfinite(rows.data)])
        return Inspection(bad, float(np.abs(rows.data).max(initial=0.0)), totals)
    rows = _aligned(rows)
    bad = first + np.flatnonzero(~np.isfinite(rows).all(axis=1))
    pieces = [rows[low : low + piece_rows] for low in range(0, len(rows), piece_rows)]
    sums = [piece.sum(axis=0, dtype=np.float64) for piece in pieces]
    return Inspection(bad, float(np.abs(rows).max(initial=0.0)), sums)


def pick(rows: Any, chosen: Ints) -> Any:
    """Return the chosen rows; of sparse ones as CSR, with one value per column."""
    if not issparse(rows):
        return _aligned(rows)[chosen]
    picked = csr_matrix(rows)[chosen]
    picked.sum_duplicates()
    return picked


def assemble(pieces: Sequence[Any], order: Ints) -> Any:
    """Return the rows of the pieces in another order."""
    return _stacked([_aligned(piece) for piece in pieces])[order]


def sum_up(plan: Plan, part: TreePart, rows: Any, shared: Ints, centre: Floats) -> Summary:
    """Return the sums and rows of the ``shared`` nodes of a partition."""
    rows, n_items = _aligned(rows), part.n_items(plan.n_items)
    affinity = part_affinity(plan, rows, part.forest(plan.n_items), centre)
    at = part.places(shared)
    inner = at[at >= n_items]
    return Summary(
        affinity.sums_of(inner) if isinstance(affinity, SparseAffinity) else affinity.sums[inner - n_items],
        rows[at[at < n_items]],
        part.nodes[:n_items][getattr(affinity, "zero_rows", np.empty(0, dtype=np.int64))],
    )


def share(plan: Plan, cut: Cut, part: TreePart, near: TreePart, found: Sequence[Summary], centre: Floats) -> Shared:
    """Return the nodes that all partitions share, with the sums of the top of the tree.

    Args:
        plan: How.
        cut: The partitions.
        part: The shared nodes.
        near: The nodes of the top, and their children.
        found: What each partition says of its shared nodes.
        centre: The centre.
    """
    inner = plan.n_items
    n_items = part.n_items(inner)
    owner = np.searchsorted(cut.bounds, part.starts, side="right") - 1
    owner[np.isin(part.nodes, cut.top)] = -1
    order = np.argsort(owner, kind="stable")  # those of the top first
    n_top = int((owner < 0).sum())
    nodes = order[n_top:]
    rows = _in_order(_stacked([one.rows for one in found]), nodes[nodes < n_items], n_items)
    sums = _in_order(_stacked([one.sums for one in found]), nodes[nodes >= n_items] - n_items, len(order) - n_items)
    if n_top:
        at, n_near = part.places(near.nodes), near.n_items(inner)
        tree = near.excerpt(inner)
        known = part_affinity(plan, rows[at[:n_near]], tree, centre, sums[at[n_near:] - n_items])
        if isinstance(known, SparseAffinity):
            top = np.flatnonzero(np.isin(near.nodes, cut.top))
            totals = _below(tree, top) @ known.sums_of(np.arange(tree.n_nodes))
            places = np.concatenate([np.arange(sums.shape[0]), at[top] - n_items])
            sums = _in_order(_stacked([sums, totals]), places, sums.shape[0])
        else:
            sums[at[n_near:] - n_items] = cluster_sums(tree, known.rows, rows.shape[1], out=known.sums)
    return Shared(part, sums, rows, centre)


def _below(tree: Hierarchy, top: Ints) -> Any:
    """Return which nodes without children, of those here, lie below each of the others ``[len(top), n_nodes]``."""
    low = np.setdiff1d(np.arange(tree.n_nodes), top)
    place = np.full(tree.n_nodes, -1)
    place[top] = np.arange(len(top))
    ends, above = [], tree.parent[low]
    while len(low):
        ends.append((place[above], low))
        up = tree.parent[above]
        low, above = low[up >= 0], up[up >= 0]
    to, of = (np.concatenate(each) for each in zip(*ends, strict=True))
    return csr_matrix((np.ones(len(to)), (to, of)), shape=(len(top), tree.n_nodes))


def score(plan: Plan, part: TreePart, rows: Any, shared: Shared) -> tuple[Ints, Floats]:
    """Return the stop node of each item of a partition, and the probability of its path.

    Args:
        plan: How.
        part: The partition's nodes.
        rows: Its items' rows, ascending.
        shared: What it knows of the rest.
    """
    rows, inner = _aligned(rows), plan.n_items
    known = part_affinity(plan, rows, part.forest(inner), shared.centre)
    n_own, n_shared = part.n_items(inner), shared.part.n_items(inner)
    own = known.sums_of(np.arange(n_own, len(part.nodes))) if isinstance(known, SparseAffinity) else known.sums[:-1]
    both = part.joined(shared.part)
    tree, n_items = both.excerpt(inner), both.n_items(inner)
    items = both.places(part.nodes[:n_own])
    at = np.concatenate([both.places(shared.part.nodes[:n_shared]), items])
    at_sums = np.concatenate([both.places(shared.part.nodes[n_shared:]), both.places(part.nodes[n_own:])]) - n_items
    table = rows if n_items == n_own else _in_order(_stacked([shared.rows, rows]), at, n_items)
    sums = _in_order(_stacked([shared.sums, own]), at_sums, len(both.nodes) - n_items)
    task = Task(
        affinity=part_affinity(plan, table, tree, shared.centre, sums),
        rewards=NodeRewards(both.reward, both.rise),
        temperatures=plan.temperatures,
        rule=plan.rule,
        enter_own_singleton=plan.enter_own_singleton,
        threads=1,
    )
    stops = run_engine(task, items, "numpy" if issparse(rows) else plan.engine, lambda done: None)
    return both.nodes[stops.nodes], stops.probabilities


def part_affinity(plan: Plan, rows: Any, tree: Any, centre: Floats, sums: Any = None) -> DenseAffinity | SparseAffinity:
    """Return the affinity of a part."""
    if issparse(rows):
        return SparseAffinity(rows, tree, plan.kind, sums, all_columns=True)
    return DenseAffinity(rows, tree, plan.kind, centre, sums)


def piece_rows(n_items: int, n_columns: int) -> int:
    """Return the number of rows that `evaluate` sums at a time for the centre."""
    low, high = row_pieces(max(n_items, 1), 8 * n_columns)[0]
    return high - low


def _aligned(array: Any) -> Any:
    return array if issparse(array) else np.require(array, requirements=["C", "A"])


def _stacked(tables: Sequence[Any]) -> Any:
    """Return the rows of all tables; CSR where one is sparse."""
    return vstack(tables, format="csr") if any(map(issparse, tables)) else np.concatenate(tables)


def _in_order(rows: Any, at: Ints, count: int) -> Any:
    """Return ``count`` rows, of which those given are at these positions, the last of several there."""
    if not issparse(rows):
        table = np.zeros((count, rows.shape[1]), dtype=rows.dtype)
        table[at] = rows
        return table
    of = np.full(count, len(at))
    of[at] = np.arange(len(at))
    return vstack([rows, csr_matrix((1, rows.shape[1]))], format="csr")[of]
