"""Measures of a hierarchy against features: Dasgupta's cost, Moseley-Wang revenue, tree sampling divergence."""

from typing import Any, Literal

import numpy as np

from pomdp_hier._arguments import check_flag, is_one_of
from pomdp_hier._arrays import Floats
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.lca_pairs import PairSums, at_ancestor

_COST_ROUNDING = 1e-14  # relative to the squares of unit rows, whose difference is the sum over pairs


def dasgupta_cost(X: Any, hierarchy: Hierarchy, *, similarity: object = "cosine", normalized: bool = True) -> float:
    """Return Dasgupta's cost: the sizes of lowest common ancestors, weighted by similarity; lower is better.

    With ``w(i, j)`` the similarity of two items and ``a(i, j)`` their lowest common ancestor (LCA),

        cost = sum over pairs i < j of w(i, j) |a(i, j)| ,

    normalised by ``N * sum over pairs of w``, so that a flat tree has 1. Exact for the cosine in O(N D), for any
    fan-out: the sum over pairs inside a cluster is ``(||S||**2 - n) / 2`` with ``S`` the sum of its unit rows.

    The cost is defined for similarities of at least 0; negative ones are used as they are. The LCA of items of one leaf
    cluster is that cluster, so the cost does not depend on ``singletons``.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``.
        normalized: Whether to divide by ``N * sum of w``; NaN where that is 0, as with a single item.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: The similarity is unknown.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> dasgupta_cost(X, tree), dasgupta_cost(X, tree, normalized=False)
        (0.5, 4.0)

    References:
        Dasgupta (2016), A cost function for similarity-based hierarchical clustering, STOC.
    """
    check_flag("normalized", normalized)
    cost, scale = _cost(X, hierarchy, similarity)
    if not normalized:
        return cost
    return cost / scale if scale else float("nan")


def moseley_wang_revenue(
    X: Any, hierarchy: Hierarchy, *, similarity: object = "cosine", normalized: bool = True
) -> float:
    """Return the Moseley-Wang revenue: items outside lowest common ancestors, weighted by similarity; higher is better.

        revenue = sum over pairs i < j of w(i, j) (N - |a(i, j)|) = N * sum of w - Dasgupta's cost ,

    normalised by ``N * sum of w``, so that a flat tree has 0. Revenue and cost rank trees over the same items in the
    same order; they differ in approximation guarantees.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``.
        normalized: Whether to divide by ``N * sum of w``; NaN where that is 0.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: The similarity is unknown.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> moseley_wang_revenue([[1, 0], [1, 0], [0, 1], [0, 1]], tree, normalized=False)
        4.0

    References:
        Moseley, Wang (2017), Approximation bounds for hierarchical clustering: average linkage, bisecting
        k-means, and local search, NeurIPS.
    """
    check_flag("normalized", normalized)
    cost, scale = _cost(X, hierarchy, similarity)
    if not normalized:
        return scale - cost
    return (scale - cost) / scale if scale else float("nan")


def _cost(X: Any, hierarchy: Hierarchy, similarity: object) -> tuple[float, float]:
    """Return the cost and ``N * sum of w``, or 0 for a sum that is rounding."""
    require_hierarchy(hierarchy)
    n_items = hierarchy.n_items
    inside = PairSums(X, hierarchy, similarity).inside()
    if n_items == 1:
        return 0.0, 0.0
    cost = float(at_ancestor(hierarchy, inside) @ hierarchy.sizes[n_items:])
    total = float(inside[hierarchy.root - n_items])
    return cost, n_items * total if abs(total) > _COST_ROUNDING * n_items else 0.0


_ROUNDING = 1e-12


def tree_sampling_divergence(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: object = "cosine",
    weights: Literal["degree", "uniform"] = "degree",
    normalized: bool = True,
) -> float:
    """Return the tree sampling divergence (TSD), the information of a hierarchy on similarities.

    Sample a pair of items with probability ``p(i, j)`` proportional to their similarity, or two items independently,
    with probability ``w`` each. Their lowest common ancestor has the distribution ``p(c)`` or ``q(c)``, and

        TSD = sum over internal nodes c of p(c) log(p(c) / q(c)) ,

    normalised by the divergence of the pairs, ``sum of p(i, j) log(p(i, j) / (w_i w_j))``, an upper bound for every
    tree: between 0 (a flat tree) and 1, else in nats. Higher is better. An item sampled twice counts at its parent. Any
    fan-out. O(N D) for the cosine; the normalisation takes O(N**2 D) time and blocks of rows.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``; no similarity may be negative.
        weights: Probabilities of items: proportional to their total similarity, ``"degree"``, or ``"uniform"``.
        normalized: Whether to divide by the divergence of the pairs.

    Returns:
        The divergence; NaN if all similarities are 0, or the divergence of the pairs is 0.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: A similarity is negative, or the similarity or weights are unknown.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> tree_sampling_divergence([[1, 0], [1, 0], [0, 1], [0, 1]], tree, normalized=False)
        0.693...

    References:
        Charpentier, Bonald (2019), Tree sampling divergence: an information-theoretic metric for hierarchical
        graph clustering, IJCAI.
    """
    if not is_one_of(weights, "degree", "uniform"):
        raise ParameterError(f"weights: got {brief(weights)}; expected 'degree' or 'uniform'")
    pairs = PairSums(X, hierarchy, similarity)
    n_items = hierarchy.n_items
    degrees = pairs.degrees()
    total = float(degrees.sum())
    if n_items == 1 or np.abs(degrees).max() <= _ROUNDING:
        return float("nan")
    _check_nonnegative(degrees / np.abs(degrees).sum())
    edge = at_ancestor(hierarchy, pairs.inside()) * 2 / total
    _check_nonnegative(edge)
    item = degrees / total if weights == "degree" else np.full(n_items, 1 / n_items)
    node = at_ancestor(hierarchy, item_sums(hierarchy, item, np.arange(n_items, hierarchy.n_nodes)) ** 2)
    # A node without weight is never sampled; the rest left by rounding does not count.
    seen = edge > _ROUNDING / max(len(edge), 1) ** 2
    divergence = float(edge[seen] @ np.log(edge[seen] / node[seen]))
    if not normalized:
        return divergence
    most = _pair_divergence(pairs, item, total)
    return divergence / most if most > _ROUNDING else float("nan")


def _pair_divergence(pairs: PairSums, item: Floats, total: float) -> float:
    """Return the divergence of the pairs, an upper bound for every tree."""
    result = 0.0
    for low, block in pairs.blocks():
        block /= total
        _check_nonnegative(block)
        row, column = np.nonzero(block > 0)
        p = block[row, column]
        result += float(p @ np.log(p / (item[low + row] * item[column])))
    return result


def _check_nonnegative(shares: Floats) -> None:
    """Raise if a share is negative by more than rounding."""
    worst = float(shares.min(initial=0.0))
    if worst < -_ROUNDING:
        raise ParameterError(
            f"X: got negative similarities, {worst:.3g} of their sum; expected similarities of at least 0, by which "
            "the tree sampling divergence samples pairs. Give a matrix such as (1 + cosine) / 2 with "
            'similarity="precomputed"'
        )
