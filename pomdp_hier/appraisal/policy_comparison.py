"""Search policies side by side on one hierarchy: which wins, how far from the optimal and from the clairvoyant one."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pomdp_hier._arguments import numbered
from pomdp_hier._arrays import Ints
from pomdp_hier.errors import ParameterError
from pomdp_hier.files.memory import held
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import listed, shown
from pomdp_hier.hqs.inputs import prepare
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import score_items
from pomdp_hier.hqs.settings import Run, named, read_settings
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

    Each value is exact for these items. The intervals take the items as a sample of those that one might search for,
    and do not allow for rare ones that these lack. If a sample is asked for, it is drawn once for all policies. The
    intervals are then those of the means over all N items, and allow for rare losses that the sample lacks.

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
    request = read_settings(
        settings,
        policy="it is what is being compared; name the policies in policies=",
        checkpoint="a checkpoint is of one run; evaluate each policy with its own",
    )
    searched = _by_name(policies)
    if not searched:
        raise ParameterError(f"policies: got none; expected at least one, such as {listed(ENGINE_POLICIES, limit=2)}")
    run, prepared = request.run, prepare(X, hierarchy, request.settings)
    searches = {name: prepared.under(policy=policy) for name, policy in searched.items()}
    run.check_used(*(search.settings for search in searches.values()))
    ceiling = prepared.under(policy="clairvoyant")
    seconds, decisions = dict.fromkeys(searched, 0.0), dict.fromkeys(searched, 0)

    def score_all(items: Ints) -> Iterator[tuple[str | None, HQSResult]]:
        yield None, score_items(ceiling, Run(), items)
        for name, search in searches.items():
            began = time.perf_counter()
            result = score_items(search, run, items)
            seconds[name] += time.perf_counter() - began
            decisions[name] += int((result.stop_levels + 1).sum())  # a search that stops at level t decided t + 1 times
            yield name, result

    results = request.sampling.run(hierarchy, lambda items: dict(score_all(items)))
    return compare_values(
        {name: results[name].values for name in searched},
        baseline=baseline,
        clairvoyant=results[None].score,
        confidence=confidence,
        method="exact per item",
        seconds={name: seconds[name] / decisions[name] for name in searched},
        sample=results[None].sample,
    )


def _by_name(policies: Any) -> dict[str, Any]:
    """Return the policies by the names to show."""
    if isinstance(policies, Mapping):
        return numbered(policies.items())
    if isinstance(policies, str) or not isinstance(policies, Sequence):
        raise ParameterError(
            f"policies is {shown(policies)}; give a list of names such as {list(ENGINE_POLICIES[:2])}, or a mapping of "
            "names to policies"
        )
    return numbered((named(policy), policy) for policy in held("policies", policies))
