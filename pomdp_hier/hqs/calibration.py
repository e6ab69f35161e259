"""The temperature under which the guidance explains best where the items are: maximum likelihood."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import BOUNDS, ENTRIES, Calibration, most_likely_delta
from pomdp_hier.hqs.inputs import as_trees, prepare
from pomdp_hier.hqs.settings import Settings


def calibrate_delta(
    X: Any,
    hierarchy: Hierarchy | Mapping[str, Hierarchy],
    *,
    bounds: tuple[float, float] = BOUNDS,
    similarity: Any = "cosine",
    nu: float = 1.0,
    enter_own_singleton: bool = True,
    max_entries: int = ENTRIES,
    random_state: int = 0,
) -> Calibration:
    """Return the temperature that maximises the sum of ``log eta`` of the right children over all true paths.

    With ``s`` the similarities at a node and ``s*`` that to the right child, each step adds
    ``s*/delta_t - log sum exp(s/delta_t)``, which is concave in 1/delta, so that there is one maximum, found where the
    slope, the sum of ``(s* - mean of s under eta) / nu**t``, crosses 0. Steps into singletons are left out, for the
    similarity of an item to itself is a convention, and so are steps without a choice. For several trees, the mean over
    the trees.

    It fits the guidance to where the items are, not to the choices of people. It does not maximise HQS, which may fall.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: A tree, or trees by name.
        bounds: Where to look; where the likelihood still rises at a bound, the result is the bound, and says so.
        similarity, nu, enter_own_singleton: As for `evaluate`.
        max_entries: How many similarities to keep at most; if a tree has more, a random sample of its items is taken.
        random_state: The seed of that sample.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For bounds that are not two rising positive numbers, or no tree.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7]], 6)
        >>> X = [[2.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 2.0], [1.0, 3.0], [2.0, 2.0]]
        >>> found = calibrate_delta(X, tree)
        >>> round(found.delta, 4), found.at_bound
        (0.2786, False)

    References:
        Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML (temperature scaling).
    """
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = 0.0
    if not 0 < low < high < np.inf:
        raise ParameterError(
            f"bounds: got {brief(bounds)}; expected "
            f"two positive numbers, the smaller first. Pass, for example, {BOUNDS}."
        )
    check_integer("max_entries", max_entries, 1)
    settings = Settings(similarity=similarity, nu=nu, enter_own_singleton=enter_own_singleton)
    trees = as_trees(hierarchy)
    prepared = prepare(X, next(iter(trees.values())), settings)
    return most_likely_delta(prepared.tasks(trees), (low, high), max_entries, random_state)
