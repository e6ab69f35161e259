"""Search policies side by side on one hierarchy: which wins, how far from the optimal and from the clairvoyant one."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.simulation import PolicyComparison, compare_values

__all__ = ["ENGINE_POLICIES", "compare_search_policies"]

ENGINE_POLICIES = ("one-step", "optimal", "descend", "search-root", "clairvoyant")
"""The policies that go by a name."""


def compare_search_policies(
    X: Any,
    hierarchy: Hierarchy,
    policies: Mapping[str, Any] | Sequence[str] = ENGINE_POLICIES,
    *,
    baseline: str | None = None,
    confidence: float = 0.95,
    **settings: Any,
) -> PolicyComparison:
    """Return the policies' HQS on one hierarchy, paired by item, with the regret to the clairvoyant policy.

    Each value is exact for these items; the intervals take the items as a sample of those that one might search for.

    Args:
        X, hierarchy: Features or similarities, and the tree over them.
        policies: Names of the engine's policies, or any policies by the names to show.
        baseline: The name of the policy that the others are held against; the first by default.
        confidence: The level of the intervals, in (0, 1).
        settings: As for `pomdp_hier.hqs.score.evaluate`, except ``policy``.

    Raises:
        ParameterError: No policy is given, or ``policy`` is.

    Example:
        >>> from pomdp_hier.hqs.paper.examples import load_amazon12
        >>> shop = load_amazon12()
        >>> table = compare_search_policies(shop.similarity, shop.hierarchies["B"], similarity="precomputed",
        ...                                 delta=0.005)
        >>> for row in table:
        ...     print(f"{row.name:12} {row.value:7.4f} {row.regret:7.4f} {row.verdict}")
        one-step     -0.2802  0.5635 baseline
        optimal      -0.3621  0.6454 not distinguishable
        descend      -0.5239  0.8073 not distinguishable
        search-root   0.0000  0.2834 not distinguishable
        clairvoyant   0.2834  0.0000 better
    """
    if "policy" in settings:
        raise ParameterError("policy: it is what is being compared; name the policies in policies=")
    named = dict(policies) if isinstance(policies, Mapping) else {str(name): name for name in policies}
    values: dict[str, NDArray[np.float64]] = {}
    seconds: dict[str, float] = {}
    ceiling = evaluate(X, hierarchy, policy="clairvoyant", **{**settings, "engine": "auto"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # given once, above
        for name, policy in named.items():
            began = time.perf_counter()
            result = evaluate(X, hierarchy, policy=policy, **settings)
            values[name] = result.values
            # a search that stops at level t decided t + 1 times
            seconds[name] = (time.perf_counter() - began) / int((result.stop_levels + 1).sum())
    return compare_values(
        values,
        baseline=baseline,
        clairvoyant=ceiling.score,
        confidence=confidence,
        method="exact per item",
        seconds=seconds,
    )
