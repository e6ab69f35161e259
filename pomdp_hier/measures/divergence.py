"""The tree sampling divergence of Charpentier and Bonald."""

from typing import Any, Literal

import numpy as np

from pomdp_hier._arguments import is_one_of
from pomdp_hier._arrays import Floats
from pomdp_hier._messages import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.members import item_sums
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.pairs import PairSums, at_ancestor

__all__ = ["tree_sampling_divergence"]

_ROUNDING = 1e-12


def tree_sampling_divergence(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: object = "cosine",
    weights: Literal["degree", "uniform"] = "degree",
    normalized: bool = True,
) -> float:
    """Return how much a hierarchy tells about which items are alike, in nats, or as a share of all there is to tell.

    Draw a pair of items with probability ``p(i, j)`` proportional to their similarity, or two items independently with
    probability ``w`` each. Both give a law of the smallest inner node that holds the two, ``p(c)`` and ``q(c)``, and

        TSD = sum over inner nodes c of p(c) log(p(c) / q(c)) ,

    normalised by the same divergence of the pairs themselves, ``sum of p(i, j) log(p(i, j) / (w_i w_j))``, the most
    that any tree can reach: between 0 (a flat tree) and 1. Higher is better. An item drawn twice counts at its
    parent. Any fan-out. O(N D) for the cosine; the normalisation takes O(N**2 D) time and blocks of rows.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``; no similarity may be negative.
        weights: Items are drawn by their total similarity to all others, ``"degree"``, or ``"uniform"``.
        normalized: Whether to divide by what the pairs themselves tell.

    Returns:
        The divergence; NaN where nothing is alike, or where the pairs tell nothing.

    Raises:
        FeatureError: Features that do not fit the items.
        ParameterError: A negative similarity, or another choice of similarity or weights.

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
    _refuse_negative(degrees / np.abs(degrees).sum())
    edge = at_ancestor(hierarchy, pairs.inside()) * 2 / total
    _refuse_negative(edge)
    item = degrees / total if weights == "degree" else np.full(n_items, 1 / n_items)
    node = at_ancestor(hierarchy, item_sums(hierarchy, item, np.arange(n_items, hierarchy.n_nodes)) ** 2)
    # A node without any weight at all draws neither way; what rounding leaves there is no divergence.
    seen = edge > _ROUNDING / max(len(edge), 1) ** 2
    divergence = float(edge[seen] @ np.log(edge[seen] / node[seen]))
    if not normalized:
        return divergence
    most = _pair_divergence(pairs, item, total)
    return divergence / most if most > _ROUNDING else float("nan")


def _pair_divergence(pairs: PairSums, item: Floats, total: float) -> float:
    """Return the divergence of the pairs themselves, the most that any tree can reach."""
    result = 0.0
    for low, block in pairs.blocks():
        block /= total
        _refuse_negative(block)
        row, column = np.nonzero(block > 0)
        p = block[row, column]
        result += float(p @ np.log(p / (item[low + row] * item[column])))
    return result


def _refuse_negative(shares: Floats) -> None:
    """Raise if a share of the whole is negative by more than rounding."""
    worst = float(shares.min(initial=0.0))
    if worst < -_ROUNDING:
        raise ParameterError(
            f"X: got negative similarities, {worst:.3g} of their sum; expected similarities of at least 0, by which "
            "the tree sampling divergence samples pairs. Give a matrix such as (1 + cosine) / 2 with "
            'similarity="precomputed"'
        )
