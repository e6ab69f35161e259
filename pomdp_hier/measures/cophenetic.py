"""The cophenetic correlation: whether items that meet low in the tree are the alike ones."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pomdp_hier._arrays import Floats
from pomdp_hier._messages import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.pairs import PairSums, at_ancestor, pair_counts, standardised

__all__ = ["cophenetic_correlation", "inner_heights"]


def cophenetic_correlation(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: object = "cosine",
    heights: str | npt.ArrayLike = "sizes",
) -> float:
    """Return the correlation, over all pairs of items, of how high they meet in the tree with how unlike they are.

    Pearson's correlation of ``h(a(i, j))`` with ``1 - w(i, j)``: ``w`` the similarity, ``a`` the smallest inner node
    that holds both, ``h`` its height. 1 is best. Exact without forming all pairs for the cosine, in O(N D min(N, D)).

    Which heights are meant has to be said, for most trees carry none:

    - ``"sizes"`` (the default): the number of items of the node;
    - ``"levels"``: the longest level of the tree less the level of the node;
    - an array: the heights of the inner nodes ``[K]``, such as ``Z[:, 2]`` of a linkage, which gives the classical
      coefficient, or of all nodes ``[N + K]``.

    For a distance ``d`` of any kind give ``similarity="precomputed"`` and the matrix ``-d``.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``.
        heights: See above.

    Returns:
        The correlation; NaN where all heights or all similarities are the same.

    Raises:
        FeatureError: Features that do not fit the items.
        ParameterError: Heights of another length or kind, or another similarity.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> round(cophenetic_correlation([[1, 0], [1, 0], [0, 1], [0, 1]], tree), 12)
        1.0

    References:
        Sokal, Rohlf (1962), The comparison of dendrograms by objective methods, Taxon.
    """
    require_hierarchy(hierarchy)
    height = inner_heights(hierarchy, heights)
    if hierarchy.n_items < 3:
        return float("nan")
    pairs = PairSums(X, hierarchy, similarity)
    counts = pair_counts(hierarchy)
    alike = at_ancestor(hierarchy, pairs.inside())
    n_pairs = counts.sum()
    mean = alike.sum() / n_pairs
    height = standardised(hierarchy, height)
    spread = pairs.sum_of_squares() - n_pairs * mean**2
    if np.isnan(height).any() or spread <= 1e-12 * max(n_pairs * mean**2, np.finfo(float).tiny):
        return float("nan")
    return float(-(height @ (alike - counts * mean)) / np.sqrt(n_pairs * spread))


def inner_heights(hierarchy: Hierarchy, heights: str | npt.ArrayLike) -> Floats:
    """Return the heights of the inner nodes, ``[K]``."""
    n_items = hierarchy.n_items
    if isinstance(heights, str):
        if heights == "sizes":
            return hierarchy.sizes[n_items:].astype(np.float64)
        if heights == "levels":
            return (hierarchy.height - hierarchy.levels[n_items:]).astype(np.float64)
        raise _no_heights(heights)
    try:
        array = np.asarray(heights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise _no_heights(heights) from None
    n_inner = hierarchy.n_nodes - n_items
    if array.shape not in ((n_inner,), (hierarchy.n_nodes,)) or not np.isfinite(array[-n_inner:]).all():
        raise ParameterError(
            f"heights: got an array of shape {array.shape}; expected finite heights of the {n_inner} internal nodes, "
            f"or of all {hierarchy.n_nodes} nodes"
        )
    return array[len(array) - n_inner :]


def _no_heights(heights: Any) -> ParameterError:
    return ParameterError(f"heights: got {brief(heights)}; expected 'sizes', 'levels' or an array of heights")
