"""Number of levels and clusters: the score of a tree with fewer levels, and the best cut of a dendrogram."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pomdp_hier._arguments import Floats, Ints, check_integer, is_one_of
from pomdp_hier._engines.task import descends
from pomdp_hier._intervals import relative_weights
from pomdp_hier._text import brief, counted
from pomdp_hier.analysis.comparison import PairedDifference, compare, paired_difference
from pomdp_hier.analysis.diagnosis import ALL_ITEMS
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, Run, opened
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import oracle_value, score
from pomdp_hier.hqs.search_length import shown_length

Side = Literal["bottom", "top"]
_SAME = 1e-12  # smaller differences of scores are rounding
_GROUP = 32  # clusters whose weights are summed together
_BLOCK = 4096  # items at a time
_CUTS = {
    "policy": "a cut is scored with the paper's one-step policy. Leave it out, and evaluate the resulting tree.",
    "enter_own_singleton": "a cut is scored as if items entered singleton clusters. Leave it out.",
    "engine": "a cut is scored incrementally. Leave it out.",
    "threads": "a cut is scored in one thread. Leave it out.",
    "updater": "a cut is scored incrementally. Leave it out.",
    "n_jobs": "a cut is scored in one process. Leave it out.",
    "progress": "a cut takes seconds. Leave it out.",
    "checkpoint": "a cut takes seconds. Leave it out.",
    "policy_version": "a cut takes seconds. Leave it out.",
    **dict.fromkeys(ALL_ITEMS, "a cut needs all items. Leave it out."),
}


@dataclass(frozen=True, eq=False, repr=False)
class LevelScores:
    """Scores of a tree with fewer levels.

    Attributes:
        remove_from: Where levels are removed, ``"bottom"`` or ``"top"``.
        n_levels: The number of levels left below the root, per tree; the whole tree is first.
        n_clusters: The number of clusters per tree, with the root.
        results: The result of each tree, per item.
        differences: The paired difference of each tree to the whole tree; 0 for the whole tree.
        trees: The trees.
        lengths: If a tree with fewer levels has the best score, the mean search lengths of the whole tree and of that
            one; otherwise None. Items and labels are counted (`expected_search_length` with ``label_cost=1``).
    """

    remove_from: Side
    n_levels: tuple[int, ...]
    n_clusters: tuple[int, ...]
    results: tuple[HQSResult, ...] = field(repr=False)
    differences: tuple[PairedDifference, ...] = field(repr=False)
    trees: tuple[Hierarchy, ...] = field(repr=False)
    lengths: tuple[float, float] | None = None

    def __repr__(self) -> str:
        shown = (f"{kept}: {score:z.4f}" for kept, score in zip(self.n_levels, self.scores, strict=True))
        return f"LevelScores(score by number of levels {{{', '.join(shown)}}}, removed from the {self.remove_from})"

    @property
    def scores(self) -> tuple[float, ...]:
        """The HQS of each tree."""
        return tuple(result.score for result in self.results)

    @property
    def best(self) -> int:
        """The position of the best score; of scores equal to rounding, the one with the fewest levels."""
        enough = max(self.scores) - _SAME
        return max(k for k, score in enumerate(self.scores) if score >= enough)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per tree: levels, clusters, score, and the gain with its interval."""
        return [
            {
                "n_levels": kept,
                "n_clusters": clusters,
                "hqs": result.score,
                "gain": d.difference,
                "gain_ci_low": d.low,
                "gain_ci_high": d.high,
            }
            for kept, clusters, result, d in zip(
                self.n_levels, self.n_clusters, self.results, self.differences, strict=True
            )
        ]

    def caveats(self) -> list[str]:
        """Return what the scores leave out where fewer levels are better, as text."""
        if self.best == 0 or self.lengths is None:
            return []
        before, after = (f"{int(np.diff(self.trees[k].child_offsets).max()):,}" for k in (0, self.best))
        whole, flat = map(shown_length, self.lengths)
        verdict = "no shorter" if whole == flat else "shorter" if self.lengths[1] < self.lengths[0] else "longer"
        return [
            "HQS does not charge for breadth: a searcher reads any number of labels at no cost. A list of 1,228 "
            "headings scored 0.52 on held-out items, and the tree above it 0.31.",
            f"The widest node has {before} children in the whole tree, and {after} in this one. With every label and "
            f"item read counted, a search takes {whole} in the whole tree and {flat} in this one: {verdict}.",
        ]

    def summary(self) -> str:
        """Return the table, and its interpretation."""
        lines = [f"{'levels':>6}  {'clusters':>8}  {'hqs':>8}  {'gain':>8}  95 % interval"]
        for k, row in enumerate(self.to_rows()):
            interval = f"{row['gain_ci_low']:+z.4f} to {row['gain_ci_high']:+z.4f}" if k else "the whole tree"
            lines.append(
                f"{row['n_levels']:>6}  {row['n_clusters']:>8}  {row['hqs']:>z8.4f}  {row['gain']:>+z8.4f}  {interval}"
            )
        best, found = counted(self.n_levels[self.best], "level"), self.differences[self.best]
        if self.best == 0:
            lines.append("Keep all levels: the whole tree has the best score.")
        elif found.distinguishable:
            where, gone = (
                "deepest" if self.remove_from == "bottom" else "topmost",
                self.n_levels[0] - self.n_levels[self.best],
            )
            which = f"{where} level" if gone == 1 else f"{gone} {where} levels"
            lines.append(f"Keep {best} of {self.n_levels[0]}: without the {which} the tree is better.")
        else:
            lines.append(f"With {best} the score is best; the difference to the whole tree is inconclusive.")
        lines += self.caveats()
        return "\n".join(lines)


def score_by_levels(
    X: Any,
    hierarchy: Hierarchy,
    *,
    remove_from: Side = "bottom",
    limit: int = 40,
    confidence: float = 0.95,
    **settings: Any,
) -> LevelScores:
    """Score a tree with fewer levels, removed from the bottom or from the top.

    From the bottom, the clusters of a level become the leaf clusters, with all items below them. From the top, the
    children of a level are attached to the root. Each tree is compared with the whole one per item, as in `compare`.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        remove_from: Where levels are removed: ``"bottom"`` or ``"top"``.
        limit: The largest number of trees to score. In a tree with more levels, this number of levels is chosen, evenly
            spaced.
        confidence: The level of the intervals.
        **settings: As for `compare`.

    Raises:
        ParameterError: A setting is invalid.
        FeatureError: The features do not fit the items.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> found = score_by_levels([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], tree, delta=0.1)
        >>> found.n_levels, found.n_clusters, [round(score, 2) for score in found.scores]
        ((1, 0), (3, 1), [0.62, 0.0])

    References:
        Student (1908), The probable error of a mean, Biometrika.
    """
    require_hierarchy(hierarchy)
    check_integer("limit", limit, 2)
    if not is_one_of(remove_from, "bottom", "top"):
        raise ParameterError(f"remove_from: got {brief(remove_from)}; expected 'bottom' or 'top'.")
    deepest = int(hierarchy.levels[hierarchy.n_items :].max())
    steps = np.unique(np.linspace(0, deepest, min(limit, deepest + 1)).round().astype(int))[::-1].tolist()
    trees = [without_levels(hierarchy, kept, remove_from) for kept in steps]
    named = {str(kept): draft for kept, draft in zip(steps, trees, strict=True)}
    found = compare(X, named, measures=False, confidence=confidence, **settings)
    whole = str(steps[0])
    differences = [paired_difference(name, whole, found.results, confidence) for name in named]
    scores = LevelScores(
        remove_from,
        tuple(steps),
        tuple(draft.n_nodes - draft.n_items for draft in trees),
        tuple(found.results.values()),
        tuple(differences),
        tuple(trees),
    )
    if scores.best == 0:
        return scores
    whole_length, flat_length = (found.search_lengths[str(steps[k])].mean_length for k in (0, scores.best))
    return replace(scores, lengths=(whole_length, flat_length))


def without_levels(tree: Hierarchy, kept: int, side: Side = "bottom") -> Hierarchy:
    """Return the tree with ``kept`` levels of clusters below the root."""
    inner = np.arange(tree.n_items, tree.n_nodes)
    levels = tree.levels[inner]
    deepest = int(levels.max())
    gone = levels > kept if side == "bottom" else (levels > 0) & (levels <= deepest - kept)
    if not gone.any():
        return tree
    draft = Draft(tree)
    draft.apply(draft.without(inner[gone].tolist()))
    return draft.tree()


@dataclass(frozen=True, eq=False)
class BestCut:
    """The best cut of a dendrogram, and the score of every flat one.

    Attributes:
        tree: The cut with the best score.
        score: Its HQS.
        n_clusters: The number of clusters per level, the finest last.
        curve: The score of each flat cut with 1, 2, … clusters; NaN for numbers without a cut.
    """

    tree: Hierarchy = field(repr=False)
    score: float
    n_clusters: tuple[int, ...]
    curve: Floats = field(repr=False)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per flat cut: its number of clusters and its score."""
        there = np.flatnonzero(~np.isnan(self.curve))
        return [{"n_clusters": int(k) + 1, "hqs": float(self.curve[k])} for k in there]

    def summary(self) -> str:
        """Return some flat cuts as a table, and the best cut."""
        rows = self.to_rows()
        flat = max(range(len(rows)), key=lambda k: (rows[k]["hqs"], -k))
        few = sorted({*np.geomspace(1, len(rows), 9).round().astype(int).tolist(), flat + 1})
        lines = [f"{'clusters':>8}  {'hqs':>8}"]
        lines += [f"{rows[k - 1]['n_clusters']:>8}  {rows[k - 1]['hqs']:>z8.4f}" for k in few]
        sizes = " and ".join(map(str, self.n_clusters))
        levels = "a flat one" if len(self.n_clusters) == 1 else f"one of {len(self.n_clusters)} levels"
        return "\n".join([*lines, f"The best cut is {levels}, of {sizes} clusters: {self.score:z.4f}."])


def best_cut(X: Any, hierarchy: Hierarchy, *, levels: int = 1, max_clusters: int = 1000, **settings: Any) -> BestCut:
    """Find the cut of a dendrogram with the best HQS: a flat cut, or one of a few levels.

    Flat cuts are scored for every number k of clusters, by the change from k - 1. One cluster is replaced by its
    children, and so are its terms in the sum of ``exp(sim / delta)`` of each item. The scores equal those of `evaluate`
    to rounding. Each further level is chosen greedily, while the score rises. Its number of clusters is one of twelve,
    evenly spaced on a logarithmic scale.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The dendrogram. Clusters are split by falling number if every node has a higher number than its
            children, as in ``Hierarchy.from_linkage``. In other trees they are split by falling size.
        levels: The largest number of levels of the cut.
        max_clusters: The largest number of clusters of a flat cut.
        **settings: Similarity, delta, nu, tie, reward and sample_weight, as for `evaluate`.

    Raises:
        ParameterError: A setting is invalid, or has no effect on a cut.
        FeatureError: The features do not fit the items.

    Example:
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.2], [0.0, 1.0], [0.1, 0.9], [0.2, 0.8]]
        >>> from scipy.cluster.hierarchy import linkage
        >>> found = best_cut(X, Hierarchy.from_linkage(linkage(X)), delta=0.1)
        >>> found.n_clusters, found.tree.to_children()
        ((2,), [[0, 1, 2], [3, 4, 5], [6, 7]])

    References:
        Huang, Piao, Moreno, Hurley, POMDP Modelling for Assessing Hierarchies; Sokal, Michener (1958), on cutting
        dendrograms.
    """
    require_hierarchy(hierarchy)
    check_integer("levels", levels, 1)
    check_integer("max_clusters", max_clusters, 1)
    prepared, *_ = opened(X, hierarchy, settings, _CUTS)
    order = _splits(hierarchy, max_clusters)
    fronts = list(_fronts(hierarchy, order))
    curve = _flat_scores(prepared, order, [len(front) for front in fronts])
    counts = np.array([len(front) for front in fronts])
    best = int((curve >= curve.max() - _SAME).argmax())
    chosen, cut, value = [best], _cut(hierarchy, [fronts[best]]), float(curve[best])
    sizes = (
        {int(np.abs(counts - wanted).argmin()) for wanted in np.geomspace(2, counts[-1], 12)} if levels > 1 else set()
    )
    for _ in range(levels - 1):
        tried = {}
        for at in sorted(sizes - {*chosen, 0}):
            draft = _cut(hierarchy, [fronts[k] for k in sorted([*chosen, at])])
            tried[at] = score(prepared.on(draft), Run(), Sampling()).score, draft
        at = max(tried, key=lambda k: tried[k][0], default=-1)
        if at < 0 or tried[at][0] <= value:
            break
        chosen = sorted([*chosen, at])
        value, cut = tried[at]
    full = np.full(int(counts[-1]), np.nan)
    full[counts - 1] = curve
    return BestCut(cut, value, tuple(int(counts[k]) for k in chosen), full)


def _splits(tree: Hierarchy, most: int) -> list[int]:
    inner = np.arange(tree.n_items, tree.n_nodes)
    below = inner[tree.parent[inner] >= 0]
    inner = inner[~tree.is_leaf[inner]]  # a leaf cluster is not split
    numbered = bool((tree.parent[below] > below).all())
    rank = inner if numbered else tree.sizes[inner]
    # Parents before children: given for decreasing numbers; for sizes, the level breaks ties.
    order = inner[np.lexsort((tree.levels[inner], -rank))]
    widths = np.bincount(tree.parent[tree.parent >= 0], minlength=tree.n_nodes)[order]
    return order[np.cumsum(widths - 1) + 1 <= most].tolist() if len(order) else []


def _fronts(tree: Hierarchy, order: Sequence[int]) -> Iterator[list[int]]:
    """Yield the clusters of each flat cut, the root first."""
    front = dict.fromkeys([tree.root])
    yield list(front)
    for node in order:
        del front[node]
        front.update(dict.fromkeys(tree.children(node).tolist()))
        yield list(front)


def _flat_scores(prepared: Prepared, order: Sequence[int], counts: Sequence[int]) -> Floats:
    tree = prepared.hierarchy
    shares = np.ones(tree.n_items) if prepared.weights is None else relative_weights(prepared.weights)
    total = np.zeros(len(order) + 1)
    for low in range(0, tree.n_items, min(_BLOCK, prepared.affinity.batch_items)):
        items = np.arange(low, min(low + min(_BLOCK, prepared.affinity.batch_items), tree.n_items))
        total += _block_totals(prepared, items, shares[items], order, max(counts))
    scores: Floats = total / tree.n_items
    return scores


def _block_totals(prepared: Prepared, items: Ints, shares: Floats, order: Sequence[int], most: int) -> Floats:
    """Return the sum of the weighted values of a block of items in each flat cut.

    For each item and each group of clusters, ``top`` is the largest similarity, and ``w = exp((sim - top) / delta)``.
    ``rest`` and ``squares`` are the sums of ``w`` and ``w**2`` over all clusters of the group but that one. ``rise`` is
    the sum of ``w**2 (r' - r)`` over all. The groups give these sums for all clusters, with ``M = sum w = 1 + rest``.
    By the margin of `look_ahead.weigh`, times ``M**2``, where small differences stay exact, the search

        descends if  sum w**2 (r' - r) > (1 + r) sum w (M - w) = (1 + r) (2 rest + rest**2 - squares) ,
        value = (r_own + 1) w_own / M - 1 .
    """
    tree, task = prepared.hierarchy, prepared.task()
    batch, reward, delta = prepared.affinity.batch(items), task.rewards.reward, task.temperatures[0]
    rows, place = np.arange(len(items)), tree.starts[items]
    n_groups = -(-most // _GROUP)
    similarities, rewards = np.zeros((len(items), n_groups * _GROUP)), np.zeros(n_groups * _GROUP)
    top, rest, squares, rise = np.zeros((4, len(items), n_groups))
    slot_of, own, used = {tree.root: 0}, np.zeros(len(items), dtype=np.int64), 1
    at_root = float(reward[tree.root])
    totals = [float(shares.sum()) * at_root]

    def cooled(differences: Floats) -> Floats:
        with np.errstate(over="ignore"):  # towards -inf, at temperatures near 0
            return np.asarray(np.exp(differences / delta))

    for node in order:
        kids = tree.children(node)
        slots = [slot_of.pop(node), *range(used, used + len(kids) - 1)]
        used += len(kids) - 1
        similarities[:, slots] = batch.expand(rows, np.full(len(items), node)).reshape(len(items), len(kids))
        rewards[slots] = reward[kids]
        for kid, slot in zip(kids.tolist(), slots, strict=True):
            slot_of[kid] = slot
            own[(place >= tree.starts[kid]) & (place < tree.starts[kid] + tree.sizes[kid])] = slot
        for group in {slot // _GROUP for slot in slots}:
            part = slice(group * _GROUP, min((group + 1) * _GROUP, used))
            first = similarities[:, part].argmax(axis=1)
            top[:, group] = similarities[rows, part.start + first]
            weight = cooled(similarities[:, part] - top[:, [group]])
            rise[:, group] = weight**2 @ (rewards[part] - at_root)
            weight[rows, first] = 0.0
            rest[:, group], squares[:, group] = weight.sum(axis=1), (weight**2).sum(axis=1)
        now = -(-used // _GROUP)
        highest = top[:, :now].argmax(axis=1)
        scale = cooled(top[:, :now] - top[rows, highest][:, None])
        firsts = np.ones((len(items), now))
        firsts[rows, highest] = 0.0
        others = ((firsts + rest[:, :now]) * scale).sum(axis=1)
        of_squares = ((firsts + squares[:, :now]) * scale**2).sum(axis=1)
        loss = (1 + at_root) * (2 * others + others**2 - of_squares)
        margin = (rise[:, :now] * scale**2).sum(axis=1) - loss
        share = cooled(similarities[rows, own] - top[rows, highest]) / (1 + others)
        found = oracle_value(share, rewards[own])
        values = np.where(descends(margin, loss, prepared.settings.tie), found, at_root)
        totals.append(float((shares * values).sum()))
    return np.array(totals)


def _cut(tree: Hierarchy, fronts: Sequence[Sequence[int]]) -> Hierarchy:
    """Return the tree of some flat cuts, the coarser above the finer, with all clusters of the finest."""
    kept = dict.fromkeys(node for front in fronts for node in front if node != tree.root)
    n = tree.n_items
    number = {node: n + k for k, node in enumerate([*kept, tree.root])}
    parent = np.full(n + len(number), -1)
    owner = np.full(n, tree.root)
    for node in fronts[-1]:
        owner[tree.items(node)] = node
    parent[:n] = [number[node] for node in owner.tolist()]
    for node in kept:
        above = int(tree.parent[node])
        while above not in number:
            above = int(tree.parent[above])
        parent[number[node]] = number[above]
    labels = None
    if tree.labels is not None:
        labels = [*tree.item_labels, *(None if node < n else tree.labels[node] for node in number)]
    return Hierarchy(parent, n, labels=labels)
