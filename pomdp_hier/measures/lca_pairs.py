"""Lowest common ancestors (LCAs) of item pairs, in one tree and jointly in two."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Floats, Ints, generator, unexpected
from pomdp_hier._io.formats import held
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.affinity import PrecomputedAffinity, SparseAffinity, affinity
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.features.membership import item_sums, membership
from pomdp_hier.features.similarity import Cosine, Precomputed, as_similarity
from pomdp_hier.features.validation import row_pieces
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy

EXACT_LIMIT = 20_000_000  # pairs of nodes with shared items; some seconds and 2 GB
MOST_SAMPLES = 100_000_000


@dataclass(frozen=True, eq=False)
class Branching:
    """The branching nodes of every class.

    Attributes:
        classes: The class of each row ``[B]``, ascending.
        nodes: A branching node of that class ``[B]``.
        counts: The number of members of the class below it ``[B]``, at least two.
        above: The row of the next branching node above for the same class ``[B]``, -1 at the topmost.
    """

    classes: Ints
    nodes: Ints
    counts: Ints
    above: Ints


def neighbour_ancestors(hierarchy: Hierarchy) -> Ints:
    """Return the lowest common ancestor of each item of ``item_order`` and the next one, ``[N - 1]``."""
    nodes = np.flatnonzero(hierarchy.parent >= 0)
    parents = hierarchy.parent[nodes]
    later = hierarchy.starts[nodes] > hierarchy.starts[parents]
    ancestors = np.empty(hierarchy.n_items - 1, dtype=np.int64)
    ancestors[hierarchy.starts[nodes[later]] - 1] = parents[later]
    return ancestors


def branching_nodes(hierarchy: Hierarchy, items: Ints, classes: Ints) -> Branching:
    """Return the branching nodes of possibly overlapping classes, given as pairs of item and class ``[M]``."""
    n_items = hierarchy.n_items
    position = np.argsort(hierarchy.item_order)
    _, rank = np.unique(classes, return_inverse=True)
    keys = np.sort(rank * n_items + position[items])
    place, group = keys % n_items, keys // n_items
    same = group[1:] == group[:-1]
    left = np.flatnonzero(same)
    lcas = range_ancestors(hierarchy, place[left], place[left + 1])

    pair_keys = np.unique(group[left] * hierarchy.n_nodes + lcas)
    nodes, owner = pair_keys % hierarchy.n_nodes, pair_keys // hierarchy.n_nodes
    begin = np.searchsorted(keys, owner * n_items + hierarchy.starts[nodes])
    end = np.searchsorted(keys, owner * n_items + hierarchy.starts[nodes] + hierarchy.sizes[nodes])
    # The next branching node above is the lower of the two LCAs just outside the run of members of the node.
    gap = np.full(len(keys) + 1, -1)
    gap[left + 1] = lcas
    before, after = gap[begin], gap[end]
    level = np.append(hierarchy.levels, -1)
    upper = np.where(level[before] >= level[after], before, after)
    above = np.where(upper < 0, -1, np.searchsorted(pair_keys, owner * hierarchy.n_nodes + upper))
    _, first_member = np.unique(rank, return_index=True)
    return Branching(np.asarray(classes)[first_member][owner], nodes, end - begin, above)


def range_ancestors(hierarchy: Hierarchy, left: Ints, right: Ints) -> Ints:
    """Return the lowest common ancestor of items at two positions of ``item_order``, left before right ``[m]``."""
    if not len(left):
        return np.empty(0, dtype=np.int64)
    best = neighbour_ancestors(hierarchy)
    levels = hierarchy.levels
    result = np.empty(len(left), dtype=np.int64)
    width = right - left
    power = np.frexp(width)[1] - 1
    step = 1
    for exponent in range(int(power.max()) + 1):
        here = np.flatnonzero(power == exponent)
        left_node, right_node = best[left[here]], best[right[here] - step]
        result[here] = np.where(levels[left_node] <= levels[right_node], left_node, right_node)
        if step >= len(best):
            break
        best = np.where(levels[best[:-step]] <= levels[best[step:]], best[:-step], best[step:])
        step *= 2
    return result


def one_label_per_item(
    hierarchy: Hierarchy, labels: Any, read: Callable[[Any], Any] = lambda label: label
) -> list[Any]:
    """Return the labels as a list, each converted by ``read``: one hashable label per item."""
    require_hierarchy(hierarchy)
    try:
        given = labels.tolist() if isinstance(labels, np.ndarray) else held("labels", labels)
        names = [read(label) for label in given]
    except TypeError:
        raise unexpected("labels", labels, "a list of one label per item, in item order") from None
    if len(names) != hierarchy.n_items:
        raise ParameterError(f"labels: got {len(names)}; expected {hierarchy.n_items}, one per item, in item order.")
    for item, name in enumerate(names):
        try:
            hash(name)
        except TypeError:
            raise ParameterError(f"labels[{item}]: got {brief(name)}; expected a name, a number or None.") from None
    return names


def cost_of_sharing(hierarchy: Hierarchy, other: Hierarchy) -> int:
    """Return an upper bound on the number of node pairs with shared items: the sum of products of item levels."""
    n = hierarchy.n_items
    return int(((hierarchy.levels[:n] + 1) * (other.levels[:n] + 1)).sum())


@dataclass(frozen=True, eq=False)
class Shared:
    """Pairs of nodes that share items.

    Attributes:
        a: A node of the first tree ``[E]``.
        b: A node of the other tree ``[E]``.
        n: The number of shared items ``[E]``.
        above_a: ``I[parent of a, b]``, -1 at the root ``[E]``.
        above_b: ``I[a, parent of b]``, -1 at the root ``[E]``.
        above: ``I[parent of a, parent of b]``, -1 where either is the root ``[E]``.
    """

    a: Ints
    b: Ints
    n: Ints
    above_a: Ints
    above_b: Ints
    above: Ints


def shared(hierarchy: Hierarchy, other: Hierarchy) -> Shared:
    """Return the pairs of nodes that share items, and the numbers of items shared by their parents.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1]], 2)
        >>> found = shared(tree, tree)
        >>> list(zip(found.a.tolist(), found.b.tolist(), found.n.tolist()))
        [(0, 0, 1), (0, 2, 1), (1, 1, 1), (1, 2, 1), (2, 0, 1), (2, 1, 1), (2, 2, 2)]
    """
    one_in, other_in = (membership(tree, np.arange(tree.n_nodes)) for tree in (hierarchy, other))
    matrix = (one_in @ other_in.T).tocoo()
    n_other = other.n_nodes
    keys = matrix.row.astype(np.int64) * n_other + matrix.col
    order = np.argsort(keys)
    keys, n = keys[order], matrix.data[order].astype(np.int64)
    a, b = np.divmod(keys, n_other)
    up_a, up_b = hierarchy.parent[a], other.parent[b]

    def of(rows: Ints, columns: Ints) -> Ints:
        there = (rows >= 0) & (columns >= 0)
        found = np.full(len(n), -1)
        found[there] = n[np.searchsorted(keys, rows[there] * n_other + columns[there])]
        return found

    return Shared(a, b, n, of(up_a, b), of(a, up_b), of(up_a, up_b))


@dataclass(frozen=True, eq=False)
class LcaPairs:
    """Joint counts of the LCAs of item pairs in both trees; the weights sum to the number of pairs.

    Attributes:
        u: The LCA in the first tree ``[E]``.
        v: The LCA in the other tree ``[E]``.
        shared: The number of items that the two nodes share ``[E]``; empty for sampled pairs.
        weight: The count of the row ``[E]``; some are negative, but those of one (u, v) sum to the number of pairs.
    """

    u: Ints
    v: Ints
    shared: Ints
    weight: Floats


def lca_pairs(hierarchy: Hierarchy, other: Hierarchy, pairs: Shared) -> LcaPairs:
    """Return the joint counts of the LCAs of all item pairs, by inclusion and exclusion over `Shared`.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [3, 2]], 3)
        >>> found = lca_pairs(tree, tree, shared(tree, tree))
        >>> [float(found.weight[(found.u == k) & (found.v == k)].sum()) for k in (3, 4)]
        [1.0, 2.0]
    """
    inner_a, inner_b = pairs.a >= hierarchy.n_items, pairs.b >= other.n_items
    up_a, up_b = hierarchy.parent[pairs.a], other.parent[pairs.b]
    terms = (
        (inner_a & inner_b, pairs.a, pairs.b, pairs.n, 0.5),
        ((up_a >= 0) & inner_b, up_a, pairs.b, pairs.above_a, -0.5),
        (inner_a & (up_b >= 0), pairs.a, up_b, pairs.above_b, -0.5),
        ((up_a >= 0) & (up_b >= 0), up_a, up_b, pairs.above, 0.5),
    )
    return LcaPairs(
        np.concatenate([u[here] for here, u, _, _, _ in terms]),
        np.concatenate([v[here] for here, _, v, _, _ in terms]),
        np.concatenate([count[here] for here, _, _, count, _ in terms]),
        np.concatenate([sign * pairs.n[here].astype(np.float64) ** 2 for here, _, _, _, sign in terms]),
    )


def sampled_pairs(hierarchy: Hierarchy, other: Hierarchy, n_samples: int, random_state: int) -> LcaPairs:
    """Return the joint counts of the LCAs of uniformly sampled item pairs."""
    rng = generator("random_state", random_state)
    i = rng.integers(hierarchy.n_items, size=n_samples)
    j = (i + rng.integers(1, hierarchy.n_items, size=n_samples)) % hierarchy.n_items
    u, v = lca_of(hierarchy, i, j), lca_of(other, i, j)
    n_pairs = hierarchy.n_items * (hierarchy.n_items - 1) / 2
    return LcaPairs(u, v, np.empty(0, dtype=np.int64), np.full(n_samples, n_pairs / n_samples))


def lca_of(tree: Hierarchy, i: Ints, j: Ints) -> Ints:
    """Return the lowest common ancestor of two different items ``[m]``."""
    place = np.argsort(tree.item_order)
    return range_ancestors(tree, np.minimum(place[i], place[j]), np.maximum(place[i], place[j]))


_BLOCK = 512
_SAME = 1e-12  # relative difference below which numbers are equal


def at_ancestor(hierarchy: Hierarchy, below: Floats) -> Floats:
    """Return sums over pairs by LCA ``[K]``, given the sums over all pairs below each internal node ``[K]``.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [3, 2]], 3)
        >>> at_ancestor(tree, np.array([1.0, 5.0]))
        array([1., 4.])
    """
    n_items = hierarchy.n_items
    parents = hierarchy.parent[n_items:] - n_items
    inside = parents >= 0
    return below - np.bincount(parents[inside], weights=below[inside], minlength=len(below))


def pair_counts(hierarchy: Hierarchy) -> Floats:
    """Return the number of item pairs per LCA ``[K]``."""
    sizes = hierarchy.sizes[hierarchy.n_items :].astype(np.float64)
    return at_ancestor(hierarchy, sizes * (sizes - 1) / 2)


def standardised(hierarchy: Hierarchy, values: Floats) -> Floats:
    """Return values of internal nodes, standardised to mean 0 and variance 1 over item pairs by LCA.

    All are NaN if the pairs have one value, to rounding; a node that is the LCA of no pair gets 0.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> standardised(tree, np.array([1e-200, 1e-200, 4e-200])).round(3)
        array([-1.414, -1.414,  0.707])
    """
    counts = pair_counts(hierarchy)
    halves = np.where(
        counts > 0, values / 2, np.nan
    )  # the difference of two floats may overflow, that of halves does not
    low, high = np.nanmin(halves), np.nanmax(halves)
    if high - low <= _SAME * max(abs(low), abs(high)):
        return np.full(len(values), np.nan)
    share = np.where(counts > 0, (halves - low) / (high - low), 0.0)
    share -= counts @ share / counts.sum()
    scaled: Floats = np.where(counts > 0, share / np.sqrt(counts @ share**2 / counts.sum()), 0.0)
    return scaled


class PairSums:
    """Pairwise similarities of the items, summed by cluster without forming the ``[N, N]`` matrix.

    For the cosine, with ``u`` the unit rows and ``S`` their sum over a cluster, the sum over pairs inside the cluster
    is ``(||S||**2 - sum ||u||**2) / 2``. All clusters of a tree cost O(N D), for any fan-out.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]``, whose diagonal is never read.
    """

    def __init__(self, X: Any, hierarchy: Hierarchy, similarity: object = "cosine") -> None:
        kind = as_similarity(similarity)  # type: ignore[arg-type]
        if not isinstance(kind, Cosine | Precomputed):
            raise ParameterError(
                f"similarity: got {brief(similarity)}; expected 'cosine', or 'precomputed' with a matrix. For a "
                "distance, give a matrix of similarities made from it."
            )
        self.hierarchy = hierarchy
        self._of: Any = affinity(X, hierarchy, kind)
        self._nonzero = np.ones(hierarchy.n_items)
        if isinstance(self._of, SparseAffinity):
            self._nonzero = (self._of.squares > 0).astype(np.float64)
        elif isinstance(self._of, DenseAffinity):
            self._nonzero[self._of.zero_rows] = 0.0

    def inside(self) -> Floats:
        """Return the sum over the pairs inside each internal node ``[K]``."""
        if self.hierarchy.n_nodes == self.hierarchy.n_items:
            return np.zeros(0)
        if isinstance(self._of, PrecomputedAffinity):
            return self._inside_matrix()
        squares = _row_squares(self._of.sums) if isinstance(self._of, DenseAffinity) else self._squares_sparse()
        inner = np.arange(self.hierarchy.n_items, self.hierarchy.n_nodes)
        inside: Floats = (squares - item_sums(self.hierarchy, self._nonzero, inner)) / 2
        return inside

    def degrees(self) -> Floats:
        """Return the sum of each item's similarities to all others, ``[N]``."""
        if isinstance(self._of, PrecomputedAffinity):
            return np.concatenate([block.sum(axis=1) for _, block in self.blocks()])
        total = np.asarray(sum(rows.sum(axis=0) for rows in self._pieces())).reshape(-1)
        degrees = np.concatenate([np.asarray(rows @ total).reshape(-1) for rows in self._pieces()])
        degrees -= self._nonzero
        return degrees

    def sum_of_squares(self) -> float:
        """Return the sum of squared similarities over all pairs, for the cosine from the smaller Gram matrix."""
        n_items, n_columns = self.hierarchy.n_items, self._n_columns()
        if n_items <= n_columns:
            return sum(float(np.vdot(block, block)) for _, block in self.blocks()) / 2
        gram = sum((rows.T @ rows for rows in self._pieces()), start=np.zeros((n_columns, n_columns)))
        return (float(np.vdot(np.asarray(gram), np.asarray(gram))) - float(self._nonzero.sum())) / 2

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield the first row and the dense block ``[b, N]`` of the symmetric matrix, with zeros on the diagonal."""
        n_items = self.hierarchy.n_items
        table = self._of.matrix if isinstance(self._of, PrecomputedAffinity) else self._rows(0, n_items)
        for low in range(0, n_items, _BLOCK):
            high = min(low + _BLOCK, n_items)
            if isinstance(self._of, PrecomputedAffinity):
                block = _dense(table[low:high]).astype(np.float64)
                block = (block + _dense(table[:, low:high]).T) / 2
            else:
                block = _dense(table[low:high] @ table.T)
            block[np.arange(high - low), np.arange(low, high)] = 0.0
            yield low, block

    def _n_columns(self) -> int:
        table = self._of.matrix if isinstance(self._of, PrecomputedAffinity) else self._of.features
        return int(table.shape[1])

    def _rows(self, low: int, high: int) -> Any:
        """Return unit rows of consecutive items, float64."""
        if isinstance(self._of, SparseAffinity):
            return self._of.features[low:high]
        return self._of.rows(np.arange(low, high))

    def _pieces(self) -> Iterator[Any]:
        for low, high in row_pieces(self.hierarchy.n_items, 8 * self._n_columns()):
            yield self._rows(low, high)

    def _squares_sparse(self) -> Floats:
        """Return the squared lengths of the sums of clusters, computed level by level to stay sparse."""
        tree, n_items = self.hierarchy, self.hierarchy.n_items
        squares = np.zeros(tree.n_nodes - n_items)
        inner = np.arange(n_items, tree.n_nodes)
        by_level = inner[np.argsort(tree.levels[inner], kind="stable")]
        for nodes in np.split(by_level, np.cumsum(np.bincount(tree.levels[inner]))[:-1]):
            squares[nodes - n_items] = _row_squares(membership(tree, nodes) @ self._of.features)
        return squares

    def _inside_matrix(self) -> Floats:
        tree, n_items = self.hierarchy, self.hierarchy.n_items
        inside = np.zeros(tree.n_nodes)
        for low, block in self.blocks():
            running = np.zeros((len(block), n_items + 1))
            np.cumsum(block[:, tree.item_order], axis=1, out=running[:, 1:])
            row = np.arange(len(block))
            node = tree.parent[low : low + len(block)]
            while len(row):
                start = tree.starts[node]
                own = running[row, start + tree.sizes[node]] - running[row, start]
                inside += np.bincount(node, weights=own, minlength=tree.n_nodes)
                node = tree.parent[node]
                row, node = row[node >= 0], node[node >= 0]
        return inside[n_items:] / 2


def _dense(block: Any) -> Any:
    return block.toarray() if sp.issparse(block) else np.asarray(block)


def _row_squares(rows: Any) -> Floats:
    if sp.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).reshape(-1)
    squares: Floats = np.einsum("ij,ij->i", rows, rows)
    return squares
