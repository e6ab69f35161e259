"""Comparison of trees on the same items."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from pomdp_hier._arguments import Ints, check_flag, check_integer, check_level, is_one_of
from pomdp_hier._intervals import mean_interval, rarest, relative_weights, standard_error
from pomdp_hier._text import brief, counted
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import Calibration
from pomdp_hier.hqs.inputs import Run, as_trees, opened
from pomdp_hier.hqs.result import HQSResult, ItemScores
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score_items
from pomdp_hier.hqs.search_length import QUESTIONS, SearchLengthResult, search_length
from pomdp_hier.measures import (
    bakers_gamma,
    class_f_score,
    cophenetic_correlation,
    dasgupta_cost,
    dendrogram_purity,
    entanglement,
    hai,
    moseley_wang_revenue,
    robinson_foulds,
    tree_sampling_divergence,
    triplet_distance,
)
from pomdp_hier.measures.tree_distances import untangle


class Named(NamedTuple):
    """Name and interpretation of a measure, and whether a lower figure is better."""

    name: str
    meaning: str
    lower_is_better: bool = False


# Distances to a reference tree, which do not rank trees.
APART = {
    "hai": Named("hierarchical agreement index", "1: each pair has an LCA of the same size in both trees"),
    "robinson_foulds": Named("Robinson-Foulds distance", "0: the same clusters; 1: none in common"),
    "triplet_distance": Named("triplet distance", "0: each triplet has the same closest pair in both; 1: none has"),
    "bakers_gamma": Named("Baker's gamma", "1: the same order of cophenetic heights; 0: unrelated"),
    "tree_cophenetic_correlation": Named(
        "cophenetic correlation of both", "1: proportional cophenetic heights; 0: unrelated"
    ),
    "entanglement": Named("entanglement", "0: the leaves in the same order; 1: in reverse"),
}

MEASURES = {
    "hqs": Named("HQS", "higher is better: 0, no better than no tree; 1, found at once"),
    "search_length_score": Named(
        "search length score", "higher is better: 0, a list; 1, found at once by searchers who may go back"
    ),
    "search_length_score_with_labels": Named(
        "search length with labels", "higher is better: the same with a label cost of 1, for trees of different shape"
    ),
    "dasgupta_cost": Named("Dasgupta's cost", "lower is better: LCAs of similar items are small", True),
    "moseley_wang_revenue": Named("Moseley-Wang revenue", "higher is better: LCAs of similar items are small"),
    "tree_sampling_divergence": Named(
        "tree sampling divergence", "higher is better: 1, the tree determines the similarities"
    ),
    "cophenetic_correlation": Named(
        "cophenetic correlation", "higher is better: 1, height is proportional to dissimilarity"
    ),
    "dendrogram_purity": Named("dendrogram purity", "higher is better: 1, each class fills one subtree"),
    "class_f_score": Named("class F", "higher is better: 1, each class is a cluster"),
    **APART,
}

_SAME = 1e-9


@dataclass(frozen=True)
class PairedDifference:
    """The paired difference of two trees over the same items.

    Attributes:
        one: The name of the first tree.
        other: The name of the second.
        difference: The score of the first minus that of the second: the mean over the items.
        standard_error: The standard error of that mean, from the differences per item.
        low: Lower end of the interval.
        high: Upper end.
        n_better: The number of scored items with a higher value in the first tree.
        n_worse: The number with a lower value.
    """

    one: str
    other: str
    difference: float
    standard_error: float
    low: float
    high: float
    n_better: int
    n_worse: int

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of trees over the same items.

    Attributes:
        results: The result of each tree, per item.
        differences: The difference of each pair of trees in HQS, the earlier one first.
        search_lengths: The expected search length in each tree, per item, with a label cost of 1.
        length_differences: The difference of each pair in the search length score with labels.
        measures: The other measures by name, per tree; NaN where one is undefined or was not computed.
        reference: The tree from which distances are measured.
        confidence: The level of the intervals.
        calibration: The calibration of the temperature, if any.
    """

    results: Mapping[str, HQSResult]
    differences: tuple[PairedDifference, ...]
    search_lengths: Mapping[str, SearchLengthResult]
    length_differences: tuple[PairedDifference, ...]
    measures: Mapping[str, Mapping[str, float]]
    reference: str
    confidence: float
    calibration: Calibration | None

    def __repr__(self) -> str:
        scores = ", ".join(f"{brief(name)}: {self.results[name].score:z.6f}" for name in self.ranking)
        first = "".join(
            f"; {brief(d.one)} - {brief(d.other)} {d.difference:+z.4f} [{d.low:z.4f}, {d.high:z.4f}]"
            for d in self.differences[:3]
        )
        return f"Comparison({scores}{first}{'; ...' if len(self.differences) > 3 else ''})"

    @property
    def ranking(self) -> tuple[str, ...]:
        """The names of the trees, the best score first."""
        return tuple(sorted(self.results, key=lambda name: -self.results[name].score))

    def ranks(self) -> dict[str, dict[str, int]]:
        """Return the rank of each tree by score and by each measure, 1 for the best; ties share a rank.

        Distances to the reference and NaN do not have ranks.
        """
        columns = {"hqs": {name: result.score for name, result in self.results.items()}}
        for name in self.results:
            for key, figure in self._length_scores(name).items():
                columns.setdefault(key, {})[name] = figure
        for measure in next(iter(self.measures.values()), {}):
            if measure not in APART:
                columns[measure] = {name: figures[measure] for name, figures in self.measures.items()}
        ranks: dict[str, dict[str, int]] = {name: {} for name in self.results}
        for measure, column in columns.items():
            sign = -1 if MEASURES[measure].lower_is_better else 1
            for name, figure in column.items():
                if not math.isnan(figure):
                    better = sum(sign * other > sign * figure + _SAME for other in column.values())
                    ranks[name][measure] = better + 1
        return ranks

    def gained_items(self, one: str, other: str, limit: int = 10) -> list[tuple[int, float]]:
        """Return the items with the largest gains of ``one`` over ``other``, each with its gain, the largest first.

        With weights, the order is that of weight times gain. For a sample, these are sampled items. The largest losses
        are ``gained_items(other, one)``.

        Raises:
            ParameterError: A tree is not in the comparison.
        """
        for name in (one, other):
            if name not in self.results:
                raise ParameterError(f"tree: got {brief(name)}; expected one of {', '.join(map(repr, self.results))}.")
        gain, items = self.results[one].values - self.results[other].values, self.results[one].sampled_items
        weights = self.results[one].sample_weight
        counted = gain if weights is None else gain * relative_weights(weights)
        order = np.argsort(-counted, kind="stable")[: max(limit, 0)]
        return [(int(items[at]), float(gain[at])) for at in order.tolist() if counted[at] > _SAME]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per tree: score, rank and other measures."""
        ranks = self.ranks()
        return [
            {"tree": name, "rank": ranks[name]["hqs"], "hqs": result.score}
            | self._length_scores(name)
            | dict(self.measures.get(name, {}))
            for name, result in self.results.items()
        ]

    def versions(self) -> list[dict[str, Any]]:
        """Return one dictionary per tree in the given order, with the change of the score from the tree before.

        ``low`` and ``high`` are the ends of the interval of ``change``. ``n_better`` and ``n_worse`` count the items
        with a higher and a lower value than before. All of them are None for the first tree.
        """
        pairs = {(pair.one, pair.other): pair for pair in self.differences}
        rows: list[dict[str, Any]] = []
        for at, (name, result) in enumerate(self.results.items()):
            row = {"version": at + 1, "tree": name, "hqs": result.score} | self._length_scores(name)
            row |= dict.fromkeys(("change", "low", "high", "n_better", "n_worse"))
            if at:
                pair = pairs[rows[-1]["tree"], name]  # the earlier minus the later
                row |= {"change": -pair.difference, "low": -pair.high, "high": -pair.low}
                row |= {"n_better": pair.n_worse, "n_worse": pair.n_better}
            rows.append(row)
        return rows

    def _length_scores(self, name: str) -> dict[str, float]:
        """Return the search length scores of a tree."""
        found = self.search_lengths[name]
        return {
            "search_length_score": found.with_label_cost(0).score,
            "search_length_score_with_labels": found.score,
        }

    def summary(self) -> str:
        """Return tables with one row per measure, the best tree first, and the differences as text."""
        rows = sorted(self.to_rows(), key=lambda row: row["rank"])
        lines = _table("", rows, [key for key in rows[0] if key in MEASURES and key not in APART])
        if self.measures and len(rows) > 1:
            others = [row for row in rows if row["tree"] != self.reference]
            lines += ["", *_table(f"distance to {self.reference}", others, list(APART))]
        if len(rows) > 2:
            lines += ["", *_over_time(self.versions(), self.confidence)]
        if self.calibration is not None:
            lines.append(self.calibration.summary())
        return "\n".join([*lines, "", *self.sentences()])

    def sentences(self) -> list[str]:
        """Return the differences as text."""
        return list(_in_words(self))


def compare(
    X: Any,
    trees: Mapping[str, Hierarchy],
    *,
    labels: Sequence[Hashable] | None = None,
    reference: str | None = None,
    measures: bool = True,
    quadratic_limit: int = 20_000,
    confidence: float = 0.95,
    **settings: Any,
) -> Comparison:
    """Compare trees over the same items: by score, per item, and by other measures.

    The difference of two scores is the mean of the differences d per item. Its standard error is ``s_d/sqrt(N)``, and
    its t interval is ``mean +- t s_d/sqrt(N)``. The interval is for further items from the same distribution; it does
    not allow for rare items that the N items lack. With ``sample_weight``, mean and deviation are weighted, and N is
    the effective number of items. With ``sample_size`` or ``half_width``, one sample is scored in all trees, sampled
    along the leaf order of the first. The interval is then for the difference over all N items, and allows for rare
    losses that the sample lacks.

    The other measures are those of `pomdp_hier.measures`. They use all items, with the cosine, or with the matrix if
    the similarity is "precomputed".

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        trees: The trees by name.
        labels: One class, or path of classes, per item, for dendrogram purity and class F.
        reference: The tree from which distances are measured (default: the first).
        measures: Whether to compute the other measures.
        quadratic_limit: The largest number of items for HAI and tree sampling divergence, which are quadratic in it.
        confidence: The level of the intervals.
        **settings: As for `evaluate`; ``delta="calibrated"`` takes one temperature for all, the mean over the trees,
            and ``half_width`` is that of every tree's score.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: The trees have different items, the reference is unknown, or a setting is invalid.

    Example:
        >>> good = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> bad = Hierarchy.from_children([[0, 2], [1, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> found = compare(X, {"good": good, "bad": bad}, delta=0.1)
        >>> found.ranking, found.differences[0].n_better, round(found.measures["bad"]["hai"], 2)
        (('good', 'bad'), 4, 0.5)

    References:
        Student (1908), The probable error of a mean, Biometrika (the interval of paired differences).
    """
    named = as_trees(trees)
    first = next(iter(named)) if reference is None else reference
    if not is_one_of(first, *named):
        raise ParameterError(f"reference: got {brief(first)}; expected one of {', '.join(map(repr, named))}.")
    check_level("confidence", confidence)
    check_flag("measures", measures)
    check_integer("quadratic_limit", quadratic_limit)
    along = next(iter(named.values()))
    refused = {"checkpoint": "a checkpoint is of one run. Evaluate each tree with its own."}
    prepared, run, sampling = opened(X, along, settings, refused, trees=named)

    def score_all(items: Ints) -> Iterator[tuple[str, HQSResult]]:
        for name, tree in named.items():
            yield name, score_items(prepared.on(tree), run, items)

    results = sampling.run(along, lambda items: dict(score_all(items)), prepared.weights)
    figures = {}
    if measures:
        for name, tree in named.items():
            figures[name] = dict(_measures(prepared.features, tree, named[first], labels, quadratic_limit))
    lengths = {
        name: search_length(prepared.on(tree), Run(threads=run.threads), Sampling(), 1.0, results[name])
        for name, tree in named.items()
    }
    return Comparison(
        results=results,
        differences=paired_differences(results, confidence),
        search_lengths=lengths,
        length_differences=paired_differences(lengths, confidence),
        measures=figures,
        reference=first,
        confidence=confidence,
        calibration=prepared.calibration,
    )


def _measures(
    X: Any, tree: Hierarchy, reference: Hierarchy, labels: Sequence[Hashable] | None, limit: int
) -> Iterator[tuple[str, float]]:
    similarity = "precomputed" if X.precomputed else "cosine"
    pairs = tree.n_items <= limit
    yield "hai", hai(tree, reference) if pairs else float("nan")
    yield "robinson_foulds", robinson_foulds(tree, reference)
    yield "triplet_distance", float(triplet_distance(tree, reference))
    yield "bakers_gamma", bakers_gamma(tree, reference)
    yield "tree_cophenetic_correlation", cophenetic_correlation(reference, tree)
    yield "entanglement", entanglement(*untangle(tree, reference))
    yield "dasgupta_cost", dasgupta_cost(X, tree, similarity=similarity)
    yield "moseley_wang_revenue", moseley_wang_revenue(X, tree, similarity=similarity)
    yield "tree_sampling_divergence", _divergence(X, tree, similarity) if pairs else float("nan")
    yield "cophenetic_correlation", cophenetic_correlation(X, tree, similarity=similarity)
    if labels is not None:
        yield "dendrogram_purity", dendrogram_purity(tree, labels)
        yield "class_f_score", class_f_score(tree, labels).f


def _divergence(X: Any, tree: Hierarchy, similarity: str) -> float:
    """Return the tree sampling divergence; NaN if similarities may be negative, where it is undefined."""
    if similarity == "cosine" and X.table.min() < 0:
        return float("nan")
    return tree_sampling_divergence(X, tree, similarity=similarity)


def paired_differences(results: Mapping[str, ItemScores], confidence: float) -> tuple[PairedDifference, ...]:
    """Return the paired difference of each pair of trees."""
    return tuple(paired_difference(one, other, results, confidence) for one, other in combinations(results, 2))


def paired_difference(one: str, other: str, results: Mapping[str, ItemScores], confidence: float) -> PairedDifference:
    """Return the paired difference of two trees over their scored items."""
    gain = results[one].values - results[other].values
    sample, weights = results[one].sample, results[one].sample_weight
    mean = results[one].mean(gain)
    if sample is not None:
        error = sample.standard_error(gain)
        (least, most), (worst, best) = results[one].value_range, results[other].value_range
        low, high = sample.interval(gain, confidence, low=least - best, high=most - worst)
    else:
        error = standard_error(gain, weights)
        low, high = mean_interval(gain, confidence, weights=weights) if error == error else (-math.inf, math.inf)
    return PairedDifference(
        one=one,
        other=other,
        difference=mean,
        standard_error=error,
        low=low,
        high=high,
        n_better=int((gain > _SAME).sum()),
        n_worse=int((gain < -_SAME).sum()),
    )


def _table(title: str, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
    """Return the lines of a table: one row per measure, one column per tree, and the interpretation."""
    names = [MEASURES[key].name for key in keys]
    width, widths = max(map(len, [title, *names])), [max(8, len(row["tree"])) for row in rows]
    lines = [f"{title:<{width}}" + "".join(f"  {row['tree']:>{w}}" for row, w in zip(rows, widths, strict=True))]
    for key, name in zip(keys, names, strict=True):
        figures = "".join(f"  {row[key]:>z{w}.4f}" for row, w in zip(rows, widths, strict=True))
        lines.append(f"{name:<{width}}{figures}  {MEASURES[key].meaning}")
    return lines


def _over_time(versions: Sequence[Mapping[str, Any]], confidence: float) -> list[str]:
    """Return the lines of a table with one row per version, in the given order."""
    width = max(len(f"{row['version']} {row['tree']}") for row in versions)
    title, interval = "version", f"{confidence:z.0%} interval"
    lines = [f"{title:<{width}}  {'HQS':>8}  {'change':>8}  {interval:>20}  higher   lower"]
    for row in versions:
        line = f"{row['version']} {row['tree']:<{width - len(str(row['version'])) - 1}}  {row['hqs']:>z8.4f}"
        if row["change"] is not None:
            ends = f"{row['low']:+z.4f} to {row['high']:+z.4f}"
            line += f"  {row['change']:>+z8.4f}  {ends:>20}  {row['n_better']:>6,}  {row['n_worse']:>6,}"
        lines.append(line)
    return lines


def _in_words(found: Comparison) -> Iterator[str]:
    for pair in found.differences:
        yield _difference(found, pair)
    for pair in found.length_differences:
        yield _difference(found, pair, "By the search length score with labels, ")
    yield " ".join(QUESTIONS.values())
    result = next(iter(found.results.values()))
    if found.differences and result.sample is None:
        share = rarest(result.effective_items, found.confidence)
        yield (
            "The intervals are for further items of the same kinds; a kind with a share of up to "
            f"{share:z.2%} may be missing from {result.counted_items}."
        )


def _difference(found: Comparison, pair: PairedDifference, by: str = "") -> str:
    """Return a paired difference as text."""
    better, worse, low, high, gain, lose = (
        (pair.one, pair.other, pair.low, pair.high, pair.n_better, pair.n_worse)
        if pair.difference >= 0
        else (pair.other, pair.one, -pair.high, -pair.low, pair.n_worse, pair.n_better)
    )
    result = found.results[better]
    sampled = "" if result.sample is None else f" of {result.n_sampled:,} in the sample"
    counts = f"{counted(gain, 'item')} with a higher value in {better}, {lose:,} with a lower one{sampled}"
    said = (
        f"{better} is better than {worse} by {abs(pair.difference):z.4f}"
        if pair.distinguishable
        else f"{better} and {worse}: inconclusive, difference {abs(pair.difference):z.4f}"
    )
    return f"{by}{said} ({found.confidence:z.0%} interval {low:z.4f} to {high:z.4f}); {counts}."
