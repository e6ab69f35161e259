"""Comparison of search policies in one tree, on the same items."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier._arguments import Floats, Ints, is_real, numbered, unexpected
from pomdp_hier._io.formats import held
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, Run, named, prepare, read_settings
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import score_items
from pomdp_hier.simulation.comparison import compare_values
from pomdp_hier.simulation.comparison_table import PolicyComparison

ENGINE_POLICIES = ("one-step", "optimal", "descend", "search-root", "hindsight")
"""The built-in policies, by name."""


def compare_search_policies(
    X: Any,
    hierarchy: Hierarchy,
    policies: Mapping[str, Any] | Sequence[str] = ENGINE_POLICIES,
    *,
    baseline: str | None = None,
    confidence: float = 0.95,
    held_out: float | ArrayLike | None = None,
    **settings: Any,
) -> PolicyComparison:
    """Compare search policies on one hierarchy: HQS, paired by item, and the regret to the hindsight policy.

    Each value is exact for these items. The intervals treat the items as a sample of possible targets, and do not allow
    for rare ones that are missing. With ``sample_size``, all policies share one sample. The intervals are then those of
    the means over all N items, and allow for rare losses that are missing from the sample.

    Args:
        X, hierarchy: Features or similarities, and the tree over them.
        policies: Names of built-in policies, or a mapping of names to policies; with ``held_out``, also to lists of
            candidates.
        baseline: The name of the policy to compare with (default: the first).
        confidence: The level of the intervals, in (0, 1).
        held_out: The items on which policies are compared, as numbers or as a share, in (0, 1), of random ones (always
            the same). Of a list of candidates, the one with the highest score on all other items is compared; its
            position stands in `PolicyComparison.record`. A policy that was tuned elsewhere needs items that had no
            part in that.
        settings: As for `pomdp_hier.hqs.score.evaluate`, except ``policy``.

    Raises:
        ParameterError: ``policies`` is empty, ``policy`` is given, a list of candidates has no ``held_out``, or that is
            out of range.

    Example:
        >>> from pomdp_hier.hqs.paper import load_amazon12
        >>> shop = load_amazon12()
        >>> table = compare_search_policies(shop.similarity, shop.hierarchies["B"], similarity="precomputed",
        ...                                 delta=0.005)
        >>> for row in table:
        ...     print(f"{row.name:12} {row.value:7.4f} {row.mdp_regret:7.4f} {row.verdict}")
        one-step     -0.2802  0.5635 baseline
        optimal      -0.3621  0.6454 inconclusive
        descend      -0.5239  0.8073 inconclusive
        search-root   0.0000  0.2834 inconclusive
        hindsight     0.2834  0.0000 better
    """
    request = read_settings(
        settings,
        policy="policies are compared. Name it in policies=.",
        checkpoint="a checkpoint is of one run. Evaluate each policy with its own.",
    )
    searched = _by_name(policies)
    if not searched:
        raise ParameterError(f"policies: got none; expected at least one, such as {listed(ENGINE_POLICIES, limit=2)}.")
    run = request.run
    prepared = prepare(X, hierarchy, request.settings, sample_weight=request.sample_weight)
    tested, record = None, {}
    if held_out is not None:
        if request.sampling.asked:
            raise ParameterError(
                f"held_out: got {brief(held_out)} with a sample; expected one of them. Leave out sample_size and "
                "half_width."
            )
        tested = _held_out(held_out, hierarchy.n_items)
        _weights_of(prepared, tested)
    for name, candidates in searched.items():
        if isinstance(candidates, list | tuple):
            searched[name], record[f"chosen {name}"] = _chosen(name, candidates, prepared, run, tested)
    searches = {name: prepared.under(policy=policy) for name, policy in searched.items()}
    run.check_used(*(search.settings for search in searches.values()))
    request.check_random_state(*(search.settings for search in searches.values()))
    hindsight = prepared.under(policy="hindsight")
    seconds, decisions = dict.fromkeys(searched, 0.0), dict.fromkeys(searched, 0)

    def score_all(items: Ints) -> Iterator[tuple[str | None, HQSResult]]:
        yield None, score_items(hindsight, Run(), items)
        for name, search in searches.items():
            began = time.perf_counter()
            result = score_items(search, run, items)
            seconds[name] += time.perf_counter() - began
            decisions[name] += int((result.stop_levels + 1).sum())  # a search that stops at level t decided t + 1 times
            yield name, result

    if tested is None:
        results = request.sampling.run(hierarchy, lambda items: dict(score_all(items)), prepared.weights)
    else:
        results = dict(score_all(tested))
    weights = results[None].sample_weight if tested is None else _weights_of(prepared, tested)
    table = compare_values(
        {name: results[name].values for name in searched},
        baseline=baseline,
        mdp_value=float(np.average(results[None].values, weights=weights))
        if tested is not None
        else results[None].score,
        confidence=confidence,
        method="exact per item" if tested is None else "exact per held-out item",
        seconds={name: seconds[name] / decisions[name] for name in searched},
        sample=results[None].sample,
        weights=weights,
    )
    return replace(table, record={**record, **table.record})


def _held_out(held_out: Any, n_items: int) -> Ints:
    if is_real(held_out):
        if not 0 < held_out < 1 or not 0 < round(held_out * n_items) < n_items:
            raise unexpected(
                "held_out", held_out, f"a share in (0, 1) that leaves some of {n_items} items on each side"
            )
        mixed = np.random.default_rng(0).permutation(n_items)
        return np.sort(mixed[: round(held_out * n_items)]).astype(np.int64)
    try:
        items = np.asarray(held("held_out", held_out))
    except (ValueError, OverflowError):  # nested without end, or of different lengths
        items = np.zeros((0, 0))
    good = items.ndim == 1 and items.dtype.kind in "iu" and 0 < len(items) < n_items
    if not good or len(np.unique(items)) < len(items) or items.min() < 0 or items.max() >= n_items:
        raise unexpected(
            "held_out", held_out, f"different numbers of items below {n_items}, not all of them, or a share"
        )
    return np.sort(items).astype(np.int64)


def _weights_of(prepared: Prepared, items: Ints) -> Floats | None:
    weights = None if prepared.weights is None else prepared.weights[items]
    if weights is not None and not weights.any():
        raise ParameterError(
            f"held_out: got {counted(len(items), 'item')} of weight 0 on one side; expected a weight above 0 on each."
        )
    return weights


def _chosen(name: str, candidates: Sequence[Any], prepared: Prepared, run: Run, tested: Ints | None) -> tuple[Any, int]:
    """Return the candidate of the highest score on the items that are not held out, and its position."""
    if tested is None or not candidates:
        raise ParameterError(
            f"policies: got {len(candidates)} candidates for {brief(name)}; expected one policy, or candidates with "
            "held_out. A policy that is chosen on the items that it is compared on looks too good. Pass held_out=0.5."
        )
    items = np.setdiff1d(np.arange(prepared.hierarchy.n_items), tested)
    weights = _weights_of(prepared, items)
    results = (score_items(prepared.under(policy=policy), run, items) for policy in candidates)
    scores = [float(np.average(result.values, weights=weights)) for result in results]
    best = int(np.argmax(scores))
    return candidates[best], best


def _by_name(policies: Any) -> dict[str, Any]:
    if isinstance(policies, Mapping):
        return numbered(policies.items())
    if isinstance(policies, str) or not isinstance(policies, Sequence):
        raise ParameterError(
            f"policies: got {brief(policies)}; expected a list of names such as {list(ENGINE_POLICIES[:2])}, or a "
            "mapping of names to policies."
        )
    return numbered((named(policy), policy) for policy in held("policies", policies))
