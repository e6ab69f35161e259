"""Correlations of cophenetic heights: with dissimilarities of features, and of two trees."""

from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import Floats, as_floats, check_integer, is_one_of
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.lca_pairs import (
    EXACT_LIMIT,
    MOST_SAMPLES,
    PairSums,
    at_ancestor,
    cost_of_sharing,
    lca_pairs,
    pair_counts,
    sampled_pairs,
    shared,
    standardised,
)
from pomdp_hier.measures.tree_distances import aligned

Heights = str | npt.ArrayLike


def bakers_gamma(
    hierarchy: Hierarchy,
    other: Hierarchy,
    *,
    heights: Heights = "sizes",
    other_heights: Heights | None = None,
    exact_limit: int = EXACT_LIMIT,
    n_samples: int = 1_000_000,
    random_state: int = 0,
) -> float:
    """Return Baker's gamma: the rank correlation of cophenetic heights over all item pairs; 1 for the same order.

    Spearman's correlation; ties have their mean rank.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        heights: The heights of the hierarchy: ``"sizes"``, ``"levels"`` or an array, as for `cophenetic_correlation`.
        other_heights: The heights of the other (default: ``heights`` if that is a string, else ``"sizes"``).
        exact_limit: The largest number of node pairs to count exactly, as for `triplet_distance`.
        n_samples: The number of sampled item pairs beyond that limit.
        random_state: The seed of the sample.

    Returns:
        The correlation; NaN if all pairs have one height in a tree.

    Raises:
        HierarchyError: The two are not over the same items.
        ParameterError: The heights do not fit.

    Example:
        >>> two_halves = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> comb = Hierarchy.from_children([[0, 1], [4, 2], [5, 3]], 4)
        >>> round(bakers_gamma(two_halves, comb), 4), round(bakers_gamma(comb, comb), 4)
        (0.2236, 1.0)

    References:
        Baker (1974), Stability of two hierarchical grouping techniques; as the R package dendextend has it.
    """
    other = aligned(hierarchy, other, "Baker's gamma")
    first, second = _both_heights(hierarchy, other, heights, other_heights)
    return _correlation(
        hierarchy, other, _ranks(hierarchy, first), _ranks(other, second), exact_limit, n_samples, random_state
    )


def cophenetic_correlation(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: object = "cosine",
    heights: Heights = "sizes",
    other_heights: Heights | None = None,
    exact_limit: int = EXACT_LIMIT,
    n_samples: int = 1_000_000,
    random_state: int = 0,
) -> float:
    """Return Pearson's correlation, over all item pairs, of cophenetic height and dissimilarity.

    With ``a(i, j)`` the lowest common ancestor of two items, h its height and w the similarity, it is the correlation
    of ``h(a(i, j))`` with ``1 - w(i, j)``. Given another tree, it is the correlation of the heights in both. 1 is best.
    Exact for features: for the cosine in O(N D min(N, D)), without forming all pairs.

    Most trees carry no heights, so they are an argument:

    - ``"sizes"`` (the default): the number of items of the node;
    - ``"levels"``: the largest level of the tree minus the level of the node;
    - an array: the heights of the internal nodes ``[K]``, such as ``Z[:, 2]`` of a linkage, which gives the classical
      coefficient, or of all nodes ``[N + K]``.

    For any distance ``d``, pass ``similarity="precomputed"`` and the matrix ``-d``.

    Args:
        X: Features ``[N, D]``, dense or CSR; similarities ``[N, N]`` with ``similarity="precomputed"``; or another
            hierarchy over the same items. Items are matched by name, or by number if a tree does not name them.
        hierarchy: The hierarchy.
        similarity: ``"cosine"`` or ``"precomputed"``; for features only.
        heights: The heights of the hierarchy.
        other_heights: The heights of the other hierarchy (default: ``heights`` if that is a string, else ``"sizes"``).
        exact_limit: For another hierarchy, the largest number of node pairs to count exactly; see `triplet_distance`.
        n_samples: For another hierarchy beyond that limit, the number of sampled item pairs.
        random_state: The seed of the sample.

    Returns:
        The correlation; NaN if all heights or all similarities are equal.

    Raises:
        FeatureError: The features do not fit the items.
        HierarchyError: The two hierarchies are not over the same items.
        ParameterError: The heights have another length or type, or an argument has no effect.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> comb = Hierarchy.from_children([[0, 1], [4, 2], [5, 3]], 4)
        >>> features = [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> round(cophenetic_correlation(features, tree), 12), round(cophenetic_correlation(comb, tree), 4)
        (1.0, 0.3162)

    References:
        Sokal, Rohlf (1962), The comparison of dendrograms by objective methods, Taxon.
    """
    if isinstance(X, Hierarchy):
        if not is_one_of(similarity, "cosine"):
            raise ParameterError(
                f"similarity: got {brief(similarity)} with a hierarchy as X; expected no similarity. Leave it out."
            )
        hierarchy = aligned(X, hierarchy, "the cophenetic correlation")
        mine, its = _both_heights(hierarchy, X, heights, other_heights)
        return _correlation(hierarchy, X, mine, its, exact_limit, n_samples, random_state)
    if other_heights is not None:
        raise ParameterError(f"other_heights: got {brief(other_heights)} with features; expected None. Leave it out.")
    return _with_features(X, hierarchy, similarity, heights)


def _with_features(X: Any, hierarchy: Hierarchy, similarity: object, heights: Heights) -> float:
    """Return the cophenetic correlation with the dissimilarities of features."""
    require_hierarchy(hierarchy)
    height = node_heights(hierarchy, heights)
    if hierarchy.n_items < 3:
        return float("nan")
    pairs = PairSums(X, hierarchy, similarity)
    counts = pair_counts(hierarchy)
    similarities = at_ancestor(hierarchy, pairs.inside())
    n_pairs = counts.sum()
    mean = similarities.sum() / n_pairs
    height = standardised(hierarchy, height)
    spread = pairs.sum_of_squares() - n_pairs * mean**2
    if np.isnan(height).any() or spread <= 1e-12 * max(n_pairs * mean**2, np.finfo(float).tiny):
        return float("nan")
    return float(-(height @ (similarities - counts * mean)) / np.sqrt(n_pairs * spread))


def node_heights(hierarchy: Hierarchy, heights: str | npt.ArrayLike) -> Floats:
    """Return the heights of the internal nodes, ``[K]``."""
    n_items = hierarchy.n_items
    if isinstance(heights, str):
        if heights == "sizes":
            return hierarchy.sizes[n_items:].astype(np.float64)
        if heights == "levels":
            return (hierarchy.height - hierarchy.levels[n_items:]).astype(np.float64)
        raise _no_heights(heights)
    try:
        array = as_floats(heights)
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise _no_heights(heights) from None
    n_inner = hierarchy.n_nodes - n_items
    if array.shape not in ((n_inner,), (hierarchy.n_nodes,)) or not np.isfinite(array[-n_inner:]).all():
        raise ParameterError(
            f"heights: got an array of shape {array.shape}; expected finite heights of the {n_inner} internal nodes, "
            f"or of all {hierarchy.n_nodes} nodes."
        )
    return array[len(array) - n_inner :]


def _no_heights(heights: Any) -> ParameterError:
    return ParameterError(f"heights: got {brief(heights)}; expected 'sizes', 'levels' or an array of heights.")


def _both_heights(
    hierarchy: Hierarchy, other: Hierarchy, heights: Heights, others: Heights | None
) -> tuple[Floats, Floats]:
    if others is None:
        others = heights if isinstance(heights, str) else "sizes"
    return node_heights(hierarchy, heights), node_heights(other, others)


def _ranks(tree: Hierarchy, heights: Floats) -> Floats:
    """Return the mean rank of the item pairs of each LCA, by its height."""
    _, rank = np.unique(heights, return_inverse=True)
    counts = np.bincount(rank, weights=pair_counts(tree))
    mean: Floats = np.cumsum(counts) - counts / 2
    return mean[rank]


def _correlation(
    hierarchy: Hierarchy, other: Hierarchy, x: Floats, y: Floats, exact_limit: int, n_samples: int, random_state: int
) -> float:
    """Return the correlation, over all item pairs, of values of their LCAs in the two trees."""
    check_integer("n_samples", n_samples, 1, MOST_SAMPLES)
    check_integer("exact_limit", exact_limit)
    n = hierarchy.n_items
    if n < 3:
        return float("nan")
    x, y = standardised(hierarchy, x), standardised(other, y)
    if np.isnan(x).any() or np.isnan(y).any():
        return float("nan")
    exact = cost_of_sharing(hierarchy, other) <= exact_limit
    pairs = (
        lca_pairs(hierarchy, other, shared(hierarchy, other))
        if exact
        else sampled_pairs(hierarchy, other, n_samples, random_state)
    )
    return float(np.clip((pairs.weight * x[pairs.u - n] * y[pairs.v - n]).sum() / comb(n, 2), -1.0, 1.0))
