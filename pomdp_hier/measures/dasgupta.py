"""Dasgupta's cost of a hierarchy, and its dual, the revenue of Moseley and Wang."""

from typing import Any

from pomdp_hier._arguments import check_flag
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.pairs import PairSums, at_ancestor

__all__ = ["dasgupta_cost", "moseley_wang_revenue"]

_ROUNDING = 1e-14  # of the unit rows' squares, which the sum over pairs is a difference of


def dasgupta_cost(X: Any, hierarchy: Hierarchy, *, similarity: object = "cosine", normalized: bool = True) -> float:
    """Return Dasgupta's cost: how large the smallest cluster is that holds two alike items; lower is better.

    With ``w(i, j)`` the similarity of two items and ``a(i, j)`` the smallest node that holds both,

        cost = sum over pairs i < j of w(i, j) |a(i, j)| ,

    normalised by ``N * sum over pairs of w``, so that a flat tree has 1. Exact for the cosine in O(N D), at any
    fan-out: the pairs inside a cluster add up to ``(||S||**2 - n) / 2`` with ``S`` the sum of its unit rows.

    The cost was made for similarities of at least 0; negative ones are taken as they are. Items of one leaf cluster
    meet in that cluster, so the cost does not depend on ``singletons``.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``.
        normalized: Whether to divide by ``N * sum of w``; NaN where that is 0, as with a single item.

    Raises:
        FeatureError: Features that do not fit the items.
        ParameterError: Another similarity.

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
    """Return the revenue of a hierarchy: how many items stay outside where alike items meet; higher is better.

        revenue = sum over pairs i < j of w(i, j) (N - |a(i, j)|) = N * sum of w - Dasgupta's cost ,

    normalised by ``N * sum of w``, so that a flat tree has 0. Revenue and cost rank trees over the same items alike;
    they differ in what an approximation guarantees.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``.
        normalized: Whether to divide by ``N * sum of w``; NaN where that is 0.

    Raises:
        FeatureError: Features that do not fit the items.
        ParameterError: Another similarity.

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
    """Return the cost, and ``N * sum of w``, 0 where that is rounding and nothing else."""
    require_hierarchy(hierarchy)
    n_items = hierarchy.n_items
    inside = PairSums(X, hierarchy, similarity).inside()
    if n_items == 1:
        return 0.0, 0.0
    cost = float(at_ancestor(hierarchy, inside) @ hierarchy.sizes[n_items:])
    total = float(inside[hierarchy.root - n_items])
    return cost, n_items * total if abs(total) > _ROUNDING * n_items else 0.0
