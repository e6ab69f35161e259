"""Is a score good? What stands beside it: not using the tree, chance, hindsight, perfection."""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer, is_real
from pomdp_hier._arrays import Floats
from pomdp_hier._engines.on_numpy import first_choice, own_steps
from pomdp_hier._engines.task import Task
from pomdp_hier._text import brief, counted
from pomdp_hier.analysis.duplicates import Copies, row_keys
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import Calibration
from pomdp_hier.hqs.inputs import Prepared, opened
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score
from pomdp_hier.hqs.settings import Run

MIN_DENOMINATOR = 0.05
_MOSTLY, _NEARLY_ALL, _ABOUT_NOTHING = 0.5, 0.8, 0.02


@dataclass(frozen=True, eq=False)
class Appraisal:
    """A score and what it has to be held against.

    Attributes:
        score: The HQS.
        search_root: The value of not using the tree: searching the root at once; 0 with the paper's reward.
        ceiling: What the hindsight policy gets on the same tree and guidance: no policy gets more.
        perfect: The mean reward of the items' leaf clusters: guidance that never errs, down to the leaves.
        shuffled: The mean score of the same shape with the items shuffled; NaN without shuffles.
        shuffled_median: Their median: a few shuffles in which searchers do set out can pull the mean.
        shuffled_sd: The standard deviation of these scores; NaN with less than two.
        n_shuffles: How many there were.
        adjusted: ``(score - shuffled) / (perfect - shuffled)``: 0 as good as chance, 1 perfect; NaN where the
            denominator is below ``min_denominator``. Trees are ranked by the score: their baselines differ.
        efficiency: ``(score - search_root) / (ceiling - search_root)``: the share of what can be got out of this tree
            that the policy gets; NaN where the denominator is below ``min_denominator``.
        first_branch: The share of items whose first branch is right: the first node with a choice prefers their child.
        at_root: The share of items whose search stops at the root.
        shuffled_at_root: The same, over the shuffled trees.
        min_denominator: Below which the ratios are NaN.
        random_state: The seed of the shuffles.
        calibration: Where the temperature came from, if it was to be calibrated.
        result: The scored result, item by item.

    Example:
        >>> found = appraise([[1, 0], [1, 0], [0, 1], [0, 1]], Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4))
        >>> isinstance(found, Appraisal), found.first_branch
        (True, 1.0)
    """

    score: float
    search_root: float
    ceiling: float
    perfect: float
    shuffled: float
    shuffled_median: float
    shuffled_sd: float
    n_shuffles: int
    adjusted: float
    efficiency: float
    first_branch: float
    at_root: float
    shuffled_at_root: float
    min_denominator: float
    random_state: int
    calibration: Calibration | None
    result: HQSResult

    def __repr__(self) -> str:
        shuffled = f"{self.shuffled:z.4f} (SD {self.shuffled_sd:z.4f})"
        return (
            f"Appraisal(score={self.score:z.6f}{self._reach()}, shuffled={shuffled}, perfect={self.perfect:z.4f}, "
            f"adjusted={self.adjusted:z.4f}, {counted(self.result.n_sampled, 'item')})"
        )

    def _reach(self) -> str:
        """Return the 95 % interval of a score from a sample, as text."""
        low, high = self.result.interval()
        return "" if self.result.sample is None else f" [{low:z.4f}, {high:z.4f}]"

    def _score_note(self) -> str:
        """Return what the score's row of the summary says beside it."""
        interval = f"95 % interval{self._reach()}; " if self._reach() else ""
        return f"{interval}ranks good trees, not wrecks"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name, without the items."""
        return {name: value for name, value in self.__dict__.items() if name not in ("result", "calibration")}

    def sentences(self) -> list[str]:
        """Return what the figures say, in words."""
        return list(_in_words(self))

    def summary(self) -> str:
        """Return the figures as a table, and what they say."""
        rows = [
            ("score", self.score, self._score_note()),
            ("search at the root", self.search_root, "the tree not used at all"),
            ("shuffled items", self.shuffled, f"SD {self.shuffled_sd:z.4f}, {self.n_shuffles} shuffles"),
            ("ceiling", self.ceiling, "best stop in hindsight"),
            ("perfect", self.perfect, "guidance that never errs"),
            ("adjusted", self.adjusted, "0 chance, 1 perfect; rank trees by score"),
            ("policy efficiency", self.efficiency, "share of the ceiling"),
            ("first branch right", self.first_branch, "share of the items"),
        ]
        lines = [f"{name:<20}{value:>z9.4f}  {note}".rstrip() for name, value, note in rows]
        if self.calibration is not None:
            lines.append(self.calibration.summary())
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
    """Return the score of a hierarchy beside everything it should be held against.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        n_shuffles: How often the items are shuffled over the same shape; each costs one scoring. 0 for none.
        random_state: Seed of the shuffles, and of the draw of a sample.
        min_denominator: Ratios with a smaller denominator are NaN.
        **settings: As for `evaluate`; of a sample, every figure is an estimate from the same items.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For a setting that cannot.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> found = appraise(X, tree, delta=0.1, n_shuffles=10)
        >>> round(found.score, 4), round(found.perfect, 4), found.first_branch
        (0.6222, 0.6225, 1.0)

    References:
        The adjustment for chance is in the manner of Hubert, Arabie (1985), Comparing partitions.
    """
    prepared, run, sampling = opened(X, hierarchy, settings)
    run = run.seeded(random_state)
    result = score(prepared, run, sampling.seeded(random_state))
    return appraised(prepared, run, result, n_shuffles, random_state, min_denominator)


def appraised(
    prepared: Prepared,
    run: Run,
    result: HQSResult,
    n_shuffles: int,
    random_state: int,
    min_denominator: float = MIN_DENOMINATOR,
) -> Appraisal:
    """Return what a result should be held against, all on its items; takes and raises what `appraise` does."""
    if not (is_real(min_denominator) and 0 < min_denominator < math.inf):
        raise ParameterError(
            f"min_denominator: got {brief(min_denominator)}; expected a positive number, such as {MIN_DENOMINATOR}"
        )
    ceiling = score(prepared.under(policy="hindsight"), Run(threads=run.threads), Sampling(), result).score
    shuffles = list(_shuffled(prepared, run, result, n_shuffles, random_state))
    scores = [shuffle.score for shuffle in shuffles]
    shuffled = math.fsum(scores) / n_shuffles if n_shuffles else float("nan")
    task = prepared.task()
    perfect = perfect_score(task, result)
    search_root = float(task.rewards.reward[prepared.hierarchy.root])
    return Appraisal(
        score=result.score,
        search_root=search_root,
        ceiling=ceiling,
        perfect=perfect,
        shuffled=shuffled,
        shuffled_median=float(np.median(scores)) if scores else float("nan"),
        shuffled_sd=float(np.std(scores, ddof=1)) if n_shuffles > 1 else float("nan"),
        n_shuffles=n_shuffles,
        adjusted=adjusted_score(result.score, shuffled, perfect, min_denominator),
        efficiency=adjusted_score(result.score, search_root, ceiling, min_denominator),
        first_branch=first_branch(task, row_keys(prepared.features), result),
        at_root=_at_root(result),
        shuffled_at_root=float(np.mean([_at_root(shuffle) for shuffle in shuffles])) if shuffles else float("nan"),
        min_denominator=min_denominator,
        random_state=random_state,
        calibration=prepared.calibration,
        result=result,
    )


def shuffled_scores(
    X: Any, hierarchy: Hierarchy, *, n_shuffles: int = 24, random_state: int = 0, **settings: Any
) -> Floats:
    """Return the scores of the same shape with its items shuffled, ``[n_shuffles]``: what chance gets.

    Shuffle k depends on the seed and k alone, so that more shuffles only add to the list. A sample is the same items in
    all of them.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> shuffled_scores([[1, 0], [1, 0], [0, 1], [0, 1]], tree, n_shuffles=3).shape
        (3,)
    """
    refused = {"checkpoint": "it would be of one tree, and every shuffle is another; leave it out"}
    prepared, run, sampling = opened(X, hierarchy, settings, refused)
    run = run.seeded(random_state)
    result: HQSResult | None = None
    scores = []
    for shuffle in _shuffles(hierarchy, n_shuffles, random_state):
        result = score(prepared.on(shuffle), run, sampling.seeded(random_state), result)
        scores.append(result.score)
    return np.array(scores)


def adjusted_score(score: float, zero: float, one: float, min_denominator: float = MIN_DENOMINATOR) -> float:
    """Return the score on a scale where ``zero`` is 0 and ``one`` is 1; NaN where they are too close to tell.

    Example:
        >>> adjusted_score(0.25, 0.0, 0.5), adjusted_score(0.3, 0.29, 0.3)
        (0.5, nan)
    """
    return (score - zero) / (one - zero) if one - zero >= min_denominator else float("nan")


def perfect_score(task: Task, result: HQSResult | None = None) -> float:
    """Return the mean reward of the deepest clusters that the items' searches may enter; of a sample, its estimate."""
    tree = task.hierarchy
    leaf = tree.leaf_of_item
    if not task.enter_own_singleton:
        own = (leaf == np.arange(tree.n_items)) & (tree.parent[leaf] >= 0)
        leaf = np.where(own, tree.parent[leaf], leaf)
    rewards = task.rewards.reward[leaf]
    return math.fsum(rewards) / tree.n_items if result is None else result.mean(rewards[result.sampled_items])


def first_branch(task: Task, keys: Sequence[Hashable] | None = None, result: HQSResult | None = None) -> float:
    """Return the share of items that the first node with a choice leads the right way; NaN if there is no such node.

    It does if no other child is more alike than the one that holds the item, or one that is holds an item of equal key.
    Of a sample, the share is an estimate.
    """
    tree = task.hierarchy
    node = first_choice(tree)
    if node < 0:
        return float("nan")
    copies = Copies(tree, keys)
    items = np.arange(tree.n_items) if result is None else result.sampled_items
    right = np.ones(tree.n_items)
    for step in own_steps(task, items, until=np.full(tree.n_items, tree.levels[node])):
        if step.level == tree.levels[node]:
            rival_at = step.rival_at()
            misled = np.flatnonzero(step.misled(rival_at))
            right[step.items[misled]] = copies.inside(step.items[misled], step.children[rival_at[misled]])
    return float(right.mean()) if result is None else result.mean(right[items])


def _shuffles(hierarchy: Hierarchy, n_shuffles: int, random_state: int) -> Iterator[Hierarchy]:
    """Return the same shape with its items shuffled, so many times."""
    check_integer("n_shuffles", n_shuffles, most=1_000_000)
    check_integer("random_state", random_state)
    for seed in np.random.SeedSequence(random_state).spawn(n_shuffles):
        yield hierarchy.permuted(np.random.default_rng(seed).permutation(hierarchy.n_items))


def _shuffled(prepared: Prepared, run: Run, like: HQSResult, n_shuffles: int, random_state: int) -> Iterator[HQSResult]:
    """Yield the results of the shuffled trees, on the same items; the checkpoint is that of the tree's own run."""
    run = replace(run, checkpoint=None, policy_version=None, progress=False)
    for shuffle in _shuffles(prepared.hierarchy, n_shuffles, random_state):
        yield score(prepared.on(shuffle), run, Sampling(), like)


def _at_root(result: HQSResult) -> float:
    return result.mean((result.stop_levels == 0).astype(np.float64))


def _in_words(found: Appraisal) -> Iterator[str]:
    if found.score < found.search_root:
        yield "Searchers fare worse with this tree than without it: searching everything at once is worth more."
    if found.at_root >= _MOSTLY:
        yield f"{found.at_root:z.0%} of the searches stop at the root: the score is mostly that of not using the tree."
    near = found.result.mean((np.abs(found.result.values) < _ABOUT_NOTHING).astype(np.float64))
    if near >= _NEARLY_ALL:
        yield (
            f"{near:z.0%} of the values are 0, or less than {_ABOUT_NOTHING:g} from it: the score says little of this "
            "tree."
        )
    if found.n_shuffles:
        yield from _about_chance(found)
    if found.score < found.search_root or found.score <= found.shuffled + 2 * found.shuffled_sd:
        yield (
            "HQS ranks good trees, not wrecks: a badly broken tree can score above a half-broken one. One tree scored "
            ".100 with 20 % of its items shuffled, -.089 with 50 % and -.020 with 100 %."
        )
    below = found.search_root - found.result.values
    regret = found.result.mean(np.maximum(below, 0.0))
    if regret >= found.min_denominator:
        share = found.result.mean((below > 0).astype(np.float64))
        yield (
            f"For {share:z.0%} of the items, searching the root at once would be worth more, "
            f"{regret:z.3f} on the score: damage that turns their searchers back can raise it."
        )
    if found.efficiency < _MOSTLY:
        yield (
            f"The policy gets {max(found.efficiency, 0.0):z.0%} of what can be got out of this tree with this guidance:"
            " much of the loss is a matter of where it stops."
        )


def _about_chance(found: Appraisal) -> Iterator[str]:
    stays = found.shuffled_at_root >= _NEARLY_ALL and abs(found.shuffled_median - found.search_root) < _ABOUT_NOTHING
    if stays:
        yield (
            f"A shuffled tree gets {found.shuffled_median:z.3f} (median), since {found.shuffled_at_root:z.0%} of its "
            "searches stay at the root; that is no merit of its order."
        )
    if stays and found.score < found.shuffled_median:
        yield "This tree gets less than that because its searchers do set out, and too many are misled."
    elif found.score < found.shuffled - 2 * found.shuffled_sd:
        yield "The score is more than two standard deviations below what shuffled items get: the order misleads."
    elif found.score <= found.shuffled + 2 * found.shuffled_sd:
        yield "The score is within two standard deviations of what shuffled items get: no clear sign of order."
    if math.isnan(found.adjusted):
        yield f"Perfect and shuffled are less than {found.min_denominator:g} apart, so there is no adjusted score."
