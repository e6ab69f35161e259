"""Baselines of a score: no tree, shuffled items, the hindsight policy, and perfect guidance."""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import Floats, check_integer, is_real, unexpected
from pomdp_hier._engines.on_numpy import first_choice, own_steps
from pomdp_hier._engines.task import Task
from pomdp_hier._text import counted
from pomdp_hier.features.items import Duplicates, row_keys
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import Calibration, most_likely_delta
from pomdp_hier.hqs.inputs import Prepared, Run, opened
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score
from pomdp_hier.hqs.search_length import QUESTIONS, SearchLengthResult, search_length

MIN_DENOMINATOR = 0.05
_PER_ITEM = ("result", "calibration", "search_length")
_MOSTLY, _NEARLY_ALL, _ABOUT_NOTHING = 0.5, 0.8, 0.02


@dataclass(frozen=True, eq=False)
class Appraisal:
    """A score and its baselines.

    Attributes:
        score: The HQS.
        search_length_score: The score of `expected_search_length`, for a searcher who may go back: the reduction of the
            search length. It is 0 for a list and 1 for items found at once.
        search_length_score_with_labels: The same with a label cost of 1.
        no_tree: The value of searching at the root, without the tree; 0 with the paper's reward.
        hindsight: The hindsight value: the score of the best stop of each search, an upper bound for every policy.
        perfect_guidance: The score if the searcher always entered the correct child: the mean reward of leaf clusters.
        shuffled_mean: The mean score of the same tree with shuffled items; NaN without shuffles.
        shuffled_median: The median of these scores, which outliers do not affect.
        shuffled_sd: The standard deviation of these scores; NaN for less than two.
        n_shuffles: The number of shuffles.
        adjusted: ``(score - shuffled_mean) / (perfect_guidance - shuffled_mean)``: 0 for shuffled items, 1 for perfect
            guidance; NaN if the denominator is below ``min_denominator``. Rank trees by ``score``, since the baselines
            differ between trees.
        policy_efficiency: ``(score - no_tree) / (hindsight - no_tree)``: the share of the hindsight value that the
            policy reaches; NaN if the denominator is below ``min_denominator``.
        first_branch_accuracy: The share of items for which no wrong child is more similar than the correct one, at the
            first node with several children.
        share_stopped_at_root: The share of items whose search stops at the root.
        shuffled_share_stopped_at_root: The mean of that share over the shuffled trees.
        min_denominator: The smallest denominator of the two ratios.
        random_state: The seed of the shuffles.
        calibration: The calibration of the temperature, if any.
        result: The result per item.
        search_length: The expected search length per item, without label cost.
        likely_delta: The maximum-likelihood temperature for the places of the items (`calibrate_delta`), to compare
            with the temperature used. It is NaN for samples, or if the likelihood has no maximum.
    """

    score: float
    search_length_score: float
    search_length_score_with_labels: float
    no_tree: float
    hindsight: float
    perfect_guidance: float
    shuffled_mean: float
    shuffled_median: float
    shuffled_sd: float
    n_shuffles: int
    adjusted: float
    policy_efficiency: float
    first_branch_accuracy: float
    share_stopped_at_root: float
    shuffled_share_stopped_at_root: float
    min_denominator: float
    random_state: int
    calibration: Calibration | None
    result: HQSResult
    search_length: SearchLengthResult
    likely_delta: float = math.nan

    def __repr__(self) -> str:
        shuffled = f"{self.shuffled_mean:z.4f} (SD {self.shuffled_sd:z.4f})"
        return (
            f"Appraisal(score={self.score:z.6f}{self._reach()}, "
            f"search_length_score={self.search_length_score:z.4f}, shuffled_mean={shuffled}, "
            f"perfect_guidance={self.perfect_guidance:z.4f}, adjusted={self.adjusted:z.4f}, "
            f"{counted(self.result.n_sampled, 'item')})"
        )

    def _reach(self) -> str:
        """Return the 95 % interval of a score from a sample, as text."""
        low, high = self.result.interval()
        return "" if self.result.sample is None else f" [{low:z.4f}, {high:z.4f}]"

    def _score_note(self) -> str:
        interval = f"95 % interval{self._reach()}; " if self._reach() else ""
        return f"{interval}does not rank bad trees"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name, without the items."""
        return {name: value for name, value in self.__dict__.items() if name not in _PER_ITEM}

    def sentences(self) -> list[str]:
        """Return the interpretation of the figures, as text."""
        return list(_in_words(self))

    def summary(self) -> str:
        """Return the figures as a table, and their interpretation."""
        rows = [
            ("score", self.score, self._score_note()),
            ("search length score", self.search_length_score, "reduction; 0 a list, 1 found at once"),
            ("… with labels", self.search_length_score_with_labels, "the same with a label cost of 1"),
            ("no tree", self.no_tree, "all items searched at the root"),
            ("shuffled items", self.shuffled_mean, f"SD {self.shuffled_sd:z.4f}, {self.n_shuffles} shuffles"),
            ("hindsight", self.hindsight, "best stop of each search"),
            ("perfect guidance", self.perfect_guidance, "the correct child always entered"),
            ("adjusted", self.adjusted, "0 shuffled, 1 perfect guidance; rank trees by score"),
            ("policy efficiency", self.policy_efficiency, "share of the hindsight value"),
            ("first branch correct", self.first_branch_accuracy, "share of the items"),
        ]
        lines = [f"{name:<21}{value:>z9.4f}  {note}".rstrip() for name, value, note in rows]
        if self.calibration is not None:
            lines.append(self.calibration.summary())
        elif not math.isnan(self.likely_delta):
            taken = f"delta {self.result.config['delta']:.6g} was taken"
            lines.append(f"{taken}; the most likely one for where the items are is {self.likely_delta:.3g}")
        return "\n".join([*lines, "", *self.sentences()])


def appraise(
    X: Any,
    hierarchy: Hierarchy,
    *,
    n_shuffles: int = 24,
    random_state: int = 0,
    min_denominator: float = MIN_DENOMINATOR,
    **settings: Any,
) -> Appraisal:
    """Return the score of a hierarchy with its baselines.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        n_shuffles: The number of trees with shuffled items to score; 0 for none.
        random_state: The seed of the shuffles, and of a sample.
        min_denominator: The smallest denominator of a ratio; NaN below it.
        **settings: As for `evaluate`; with a sample, every figure is an estimate from the same items.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: A setting is invalid.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> found = appraise(X, tree, delta=0.1, n_shuffles=10)
        >>> round(found.score, 4), round(found.perfect_guidance, 4), found.first_branch_accuracy
        (0.6222, 0.6225, 1.0)

    References:
        Hubert, Arabie (1985), Comparing partitions (adjusted index).
    """
    prepared, run, sampling = opened(X, hierarchy, settings)
    run = run.seeded(random_state)
    result = score(prepared, run, sampling.seeded(random_state))
    found = appraised(prepared, run, result, n_shuffles, random_state, min_denominator)
    return replace(found, likely_delta=_likely_delta(prepared, result))


def _likely_delta(prepared: Prepared, result: HQSResult) -> float:
    """Return the maximum-likelihood temperature; NaN for a sample and at a bound."""
    if result.sample is not None:
        return math.nan
    found = prepared.calibration or most_likely_delta(prepared.tasks({"tree": prepared.hierarchy}))
    return math.nan if found.at_bound else found.delta


def appraised(
    prepared: Prepared,
    run: Run,
    result: HQSResult,
    n_shuffles: int,
    random_state: int,
    min_denominator: float = MIN_DENOMINATOR,
) -> Appraisal:
    """Return the baselines of a result, on its items; see `appraise`."""
    if not (is_real(min_denominator) and 0 < min_denominator < math.inf):
        raise unexpected("min_denominator", min_denominator, f"a positive number, such as {MIN_DENOMINATOR}")
    hindsight = score(prepared.under(policy="hindsight"), Run(threads=run.threads), Sampling(), result).score
    lengths = search_length(prepared, Run(threads=run.threads), Sampling(), like=result)
    shuffles = list(_shuffled(prepared, run, result, n_shuffles, random_state))
    scores = [shuffle.score for shuffle in shuffles]
    shuffled = math.fsum(scores) / n_shuffles if n_shuffles else float("nan")
    task = prepared.task()
    perfect = perfect_score(task, result)
    no_tree = float(task.rewards.reward[prepared.hierarchy.root])
    return Appraisal(
        score=result.score,
        search_length_score=lengths.score,
        search_length_score_with_labels=lengths.with_label_cost(1).score,
        no_tree=no_tree,
        hindsight=hindsight,
        perfect_guidance=perfect,
        shuffled_mean=shuffled,
        shuffled_median=float(np.median(scores)) if scores else float("nan"),
        shuffled_sd=float(np.std(scores, ddof=1)) if n_shuffles > 1 else float("nan"),
        n_shuffles=n_shuffles,
        adjusted=adjusted_score(result.score, shuffled, perfect, min_denominator),
        policy_efficiency=adjusted_score(result.score, no_tree, hindsight, min_denominator),
        first_branch_accuracy=first_branch(task, row_keys(prepared.features), result),
        share_stopped_at_root=_at_root(result),
        shuffled_share_stopped_at_root=float(np.mean([_at_root(shuffle) for shuffle in shuffles]))
        if shuffles
        else float("nan"),
        min_denominator=min_denominator,
        random_state=random_state,
        calibration=prepared.calibration,
        result=result,
        search_length=lengths,
    )


def shuffled_scores(
    X: Any, hierarchy: Hierarchy, *, n_shuffles: int = 24, random_state: int = 0, **settings: Any
) -> Floats:
    """Return the scores of the same tree with shuffled items, ``[n_shuffles]``: the random baseline.

    Shuffle k depends on the seed and k alone, so that more shuffles extend the list. A sample has the same items in
    all of them.
    """
    refused = {"checkpoint": "each shuffle is another tree. Leave it out."}
    prepared, run, sampling = opened(X, hierarchy, settings, refused)
    run = run.seeded(random_state)
    result: HQSResult | None = None
    scores = []
    for shuffle in _shuffles(hierarchy, n_shuffles, random_state):
        result = score(prepared.on(shuffle), run, sampling.seeded(random_state), result)
        scores.append(result.score)
    return np.array(scores)


def adjusted_score(score: float, zero: float, one: float, min_denominator: float = MIN_DENOMINATOR) -> float:
    """Return the score on a scale from ``zero`` to ``one``; NaN if the two are too close."""
    return (score - zero) / (one - zero) if one - zero >= min_denominator else float("nan")


def perfect_score(task: Task, result: HQSResult | None = None) -> float:
    """Return the mean reward of the deepest cluster of each search, estimated for a sample."""
    rewards = task.rewards.reward[task.ends]
    return math.fsum(rewards) / task.hierarchy.n_items if result is None else result.mean(rewards[result.sampled_items])


def first_branch(task: Task, keys: Sequence[Hashable] | None = None, result: HQSResult | None = None) -> float:
    """Return the share of items for which no wrong child is more similar, at the first node with several children.

    NaN without such a node. A child with a duplicate of the item is correct too. For a sample, it is an estimate.
    """
    tree = task.hierarchy
    node = first_choice(tree)
    if node < 0:
        return float("nan")
    duplicates = Duplicates(tree, keys)
    items = np.arange(tree.n_items) if result is None else result.sampled_items
    right = np.ones(tree.n_items)
    for step in own_steps(task, items, until=np.full(tree.n_items, tree.levels[node])):
        if step.level == tree.levels[node]:
            rival_at = step.rival_at()
            wrong = np.flatnonzero(step.misled(rival_at))
            right[step.items[wrong]] = duplicates.inside(step.items[wrong], step.children[rival_at[wrong]])
    return float(right.mean()) if result is None else result.mean(right[items])


def _shuffles(hierarchy: Hierarchy, n_shuffles: int, random_state: int) -> Iterator[Hierarchy]:
    check_integer("n_shuffles", n_shuffles, most=1_000_000)
    check_integer("random_state", random_state)
    for seed in np.random.SeedSequence(random_state).spawn(n_shuffles):
        yield hierarchy.permuted(np.random.default_rng(seed).permutation(hierarchy.n_items))


def _shuffled(prepared: Prepared, run: Run, like: HQSResult, n_shuffles: int, random_state: int) -> Iterator[HQSResult]:
    """Yield the results of the shuffled trees, on the same items, without a checkpoint."""
    run = replace(run, checkpoint=None, policy_version=None, progress=False)
    for shuffle in _shuffles(prepared.hierarchy, n_shuffles, random_state):
        yield score(prepared.on(shuffle), run, Sampling(), like)


def _at_root(result: HQSResult) -> float:
    return result.mean((result.stop_levels == 0).astype(np.float64))


def _in_words(found: Appraisal) -> Iterator[str]:
    if found.score < found.no_tree:
        yield "Searchers do worse with this tree than without it: searching all items at once has a higher value."
    if found.share_stopped_at_root >= _MOSTLY:
        yield (
            f"{found.share_stopped_at_root:z.0%} of the searches stop at the root: the score is mostly that of not "
            "using the tree."
        )
    near = found.result.mean((np.abs(found.result.values) < _ABOUT_NOTHING).astype(np.float64))
    if near >= _NEARLY_ALL:
        yield (
            f"{near:z.0%} of the values are less than {_ABOUT_NOTHING:g} from 0: the score carries little information "
            "on this tree."
        )
    if found.n_shuffles:
        yield from _about_chance(found)
    if found.score < found.no_tree or found.score <= found.shuffled_mean + 2 * found.shuffled_sd:
        yield (
            "HQS does not rank bad trees: a random tree can score above a partly shuffled one. One tree scored "
            "0.380 with 20 % of its items shuffled, -0.030 with 50 % and 0.000 with 100 %."
        )
    below = found.no_tree - found.result.values
    regret = found.result.mean(np.maximum(below, 0.0))
    if regret >= found.min_denominator:
        share = found.result.mean((below > 0).astype(np.float64))
        yield (
            f"For {share:z.0%} of the items, stopping at the root would have a higher value ({regret:z.3f} of the "
            "score). For these items a worse tree, one that makes the searcher stop, can score higher."
        )
    if found.policy_efficiency < _MOSTLY:
        yield (
            f"The policy reaches {max(found.policy_efficiency, 0.0):z.0%} of the hindsight value: much of the loss is "
            "due to where it stops."
        )
    yield found.search_length.sentence()
    yield " ".join(QUESTIONS.values())


def _about_chance(found: Appraisal) -> Iterator[str]:
    at_root = found.shuffled_share_stopped_at_root
    stays = at_root >= _NEARLY_ALL and abs(found.shuffled_median - found.no_tree) < _ABOUT_NOTHING
    if stays:
        yield (
            f"A shuffled tree scores {found.shuffled_median:z.3f} (median), as {at_root:z.0%} of its searches stop at "
            "the root; this is not evidence of order."
        )
    if stays and found.score < found.shuffled_median:
        yield "This tree scores less because its searchers leave the root and often take a wrong branch."
    elif found.score < found.shuffled_mean - 2 * found.shuffled_sd:
        yield "The score is more than two standard deviations below that of shuffled items: the order misleads."
    elif found.score <= found.shuffled_mean + 2 * found.shuffled_sd:
        yield "The score is within two standard deviations of that of shuffled items: no clear sign of order."
    if math.isnan(found.adjusted):
        yield (
            f"Perfect guidance and shuffled items differ by less than {found.min_denominator:g}, so there is not an "
            "adjusted score."
        )
