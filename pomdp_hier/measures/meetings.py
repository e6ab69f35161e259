"""Where two items meet in one tree and where in another, for all pairs at once: what distances of trees are made of.

With ``I[a, b]`` the number of items that node a of one tree shares with node b of another, the pairs of items that
meet at u in the one and at v in the other are those in both of them, less those of one child of u, less those of one
child of v, plus those of one child of each:

    2 M[u, v] = I[u, v]**2 - sum_a I[a, v]**2 - sum_b I[u, b]**2 + sum_ab I[a, b]**2 ,

a over the children of u and b over those of v; items are children too. ``I`` has as many entries as pairs of nodes
share items: at most the sum over the items of the product of their two levels, about N log(N)**2 for balanced trees.
Where that is too many, pairs are drawn at random instead.
"""

from dataclasses import dataclass

import numpy as np

from pomdp_hier._arguments import generator
from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.features.members import membership
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.ancestors import range_ancestors

__all__ = ["Meetings", "Shared", "cost_of_sharing", "drawn", "met", "shared"]


def cost_of_sharing(one: Hierarchy, other: Hierarchy) -> int:
    """Return an upper bound on how many pairs of nodes share items: the sum of the products of the items' levels."""
    n = one.n_items
    return int(((one.levels[:n] + 1) * (other.levels[:n] + 1)).sum())


@dataclass(frozen=True, eq=False)
class Shared:
    """The pairs of nodes that share items.

    Attributes:
        a: A node of the one tree ``[E]``.
        b: A node of the other ``[E]``.
        n: How many items they share ``[E]``.
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


def shared(one: Hierarchy, other: Hierarchy) -> Shared:
    """Return the pairs of nodes that share items, and how many items the nodes above them share.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1]], 2)
        >>> found = shared(tree, tree)
        >>> list(zip(found.a.tolist(), found.b.tolist(), found.n.tolist()))
        [(0, 0, 1), (0, 2, 1), (1, 1, 1), (1, 2, 1), (2, 0, 1), (2, 1, 1), (2, 2, 2)]
    """
    one_in, other_in = (membership(tree, np.arange(tree.n_nodes)) for tree in (one, other))
    matrix = (one_in @ other_in.T).tocoo()
    n_other = other.n_nodes
    keys = matrix.row.astype(np.int64) * n_other + matrix.col
    order = np.argsort(keys)
    keys, n = keys[order], matrix.data[order].astype(np.int64)
    a, b = np.divmod(keys, n_other)
    up_a, up_b = one.parent[a], other.parent[b]

    def of(rows: Ints, columns: Ints) -> Ints:
        there = (rows >= 0) & (columns >= 0)
        found = np.full(len(n), -1)
        found[there] = n[np.searchsorted(keys, rows[there] * n_other + columns[there])]
        return found

    return Shared(a, b, n, of(up_a, b), of(a, up_b), of(up_a, up_b))


@dataclass(frozen=True, eq=False)
class Meetings:
    """Where pairs of items meet in both trees; the sum of the weights is the number of pairs.

    Attributes:
        u: The node of the one tree ``[E]``.
        v: The node of the other ``[E]``.
        shared: How many items the two nodes share ``[E]``; empty of pairs that were drawn.
        weight: What the row counts ``[E]``; some are negative, but those of one (u, v) sum to M[u, v].
    """

    u: Ints
    v: Ints
    shared: Ints
    weight: Floats


def met(one: Hierarchy, other: Hierarchy, pairs: Shared) -> Meetings:
    """Return where all pairs of items meet, by the equation above.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [3, 2]], 3)
        >>> found = met(tree, tree, shared(tree, tree))
        >>> [float(found.weight[(found.u == k) & (found.v == k)].sum()) for k in (3, 4)]
        [1.0, 2.0]
    """
    inner_a, inner_b = pairs.a >= one.n_items, pairs.b >= other.n_items
    up_a, up_b = one.parent[pairs.a], other.parent[pairs.b]
    terms = (
        (inner_a & inner_b, pairs.a, pairs.b, pairs.n, 0.5),
        ((up_a >= 0) & inner_b, up_a, pairs.b, pairs.above_a, -0.5),
        (inner_a & (up_b >= 0), pairs.a, up_b, pairs.above_b, -0.5),
        ((up_a >= 0) & (up_b >= 0), up_a, up_b, pairs.above, 0.5),
    )
    return Meetings(
        np.concatenate([u[here] for here, u, _, _, _ in terms]),
        np.concatenate([v[here] for here, _, v, _, _ in terms]),
        np.concatenate([count[here] for here, _, _, count, _ in terms]),
        np.concatenate([sign * pairs.n[here].astype(np.float64) ** 2 for here, _, _, _, sign in terms]),
    )


def drawn(one: Hierarchy, other: Hierarchy, n_samples: int, seed: int) -> Meetings:
    """Return where pairs of items meet that are drawn at random, each pair alike."""
    rng = generator("seed", seed)
    i = rng.integers(one.n_items, size=n_samples)
    j = (i + rng.integers(1, one.n_items, size=n_samples)) % one.n_items
    u, v = meeting(one, i, j), meeting(other, i, j)
    n_pairs = one.n_items * (one.n_items - 1) / 2
    return Meetings(u, v, np.empty(0, dtype=np.int64), np.full(n_samples, n_pairs / n_samples))


def meeting(tree: Hierarchy, i: Ints, j: Ints) -> Ints:
    """Return the smallest inner node that holds both of two different items, ``[m]``."""
    place = np.argsort(tree.item_order)
    return range_ancestors(tree, np.minimum(place[i], place[j]), np.maximum(place[i], place[j]))
