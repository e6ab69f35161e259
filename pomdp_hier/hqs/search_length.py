"""Expected search length of a tree: the number of items that a searcher who may go back looks at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import Floats, Ints, is_real, unexpected
from pomdp_hier._engines.dispatch import choose_engine, run_lengths
from pomdp_hier._progress import shown_progress
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import CALIBRATED, Prepared, Request, Run, Settings, Weights, opened, prepare
from pomdp_hier.hqs.result import HQSResult, ItemScores
from pomdp_hier.hqs.sampling import Method, Sample, Sampling
from pomdp_hier.hqs.score import chosen_items, like_sample, with_weights

QUESTIONS = {
    "hqs": "HQS values the search of a person who never goes back.",
    "search_length": "The search length counts the items seen by a person who may go back: how good is the guidance?",
    "search_length_with_labels": "With a label cost of 1 it also charges for reading, and compares trees of any shape.",
}
"""The question that each score answers, for all pages that show several of them."""

PEOPLE = (
    "In 76,128 recorded games of people looking for articles, the guidance predicted their choices at every level. An "
    "article's HQS hardly predicted who found it. Its search length score did, weakly, and not more than its "
    "similarity to its own category. People followed links, and the category tree was not theirs."
)
"""What was shown with people, and what was not."""

_MOST = 1e100


@dataclass(frozen=True, eq=False, repr=False)
class SearchLengthResult(ItemScores):
    """The expected search length of a hierarchy, per item and overall; arrays are read-only and in item order.

    For a sample, the arrays have only its n items, and the score is the estimate for all N.

    Attributes:
        values: The reduction of the search length, ``1 - (E_x - 1) / ((N - 1) / 2)``, ``[n]``: 1 for an item found
            first, 0 as in a list, -1 for one found last. With a label cost it may be lower. For N = 1 it is 0.
        lengths: ``E_x``, the expected number of items looked at, the item included, plus ``label_cost`` times the
            expected number of labels read ``[n]``.
        auc: The probability that the item is looked at before a random other item ``[n]``, whatever the label cost. 0.5
            for N = 1, as for any list.
        labels: The expected number of labels read ``[n]``, whatever the label cost.
        list_length: The expected length in the list of all items, ``(N + 1) / 2``.
        n_labels: The number of labels of the tree.
        config: The settings.
        sample: The sample of items; None if all were scored, n = N.
        sample_weight: The weight of each scored item in the mean ``[n]``; None for equal ones.
    """

    values: Floats
    lengths: Floats
    auc: Floats
    labels: Floats
    list_length: float
    n_labels: int
    config: Mapping[str, Any]
    sample: Sample | None = None
    sample_weight: Floats | None = None

    @cached_property
    def mean_length(self) -> float:
        """The mean of the lengths, or its estimate from a sample."""
        return self.mean(self.lengths)

    @property
    def looks(self) -> Floats:
        """The expected number of items looked at, the item included, without labels ``[n]``."""
        if not self.label_cost:
            return self.lengths
        return 1 + 2 * (self.list_length - 1) * (1 - self.auc)  # a difference of lengths loses digits at a great cost

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest possible value of an item."""
        most = 2 * self.list_length - 1 + self.label_cost * self.n_labels
        return float(_reduction(np.array(most), self.list_length)), 1.0

    @property
    def label_cost(self) -> float:
        """The cost of reading one label, in items looked at."""
        return float(self.config["label_cost"])

    def with_label_cost(self, label_cost: float) -> "SearchLengthResult":
        """Return the same searches under another label cost.

        Raises:
            ParameterError: The cost is not a number of at least 0.

        Example:
            >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
            >>> found = expected_search_length([[1, 0], [1, 0], [0, 1], [0, 1]], tree)
            >>> found.with_label_cost(1).lengths - found.lengths
            array([2., 2., 2., 2.])
        """
        check_label_cost(label_cost)
        lengths = self.looks + label_cost * self.labels if label_cost else self.looks
        config = {**self.config, "label_cost": float(label_cost)}
        return replace(self, lengths=lengths, values=_reduction(lengths, self.list_length), config=config)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name, one entry per scored item."""
        columns = {"values": self.values, "lengths": self.lengths, "auc": self.auc, "labels": self.labels}
        return columns if self.sample_weight is None else columns | {"sample_weight": self.sample_weight}

    def sentence(self) -> str:
        """Return the mean length beside that of a list, as text.

        Example:
            >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
            >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
            >>> expected_search_length(X, tree, delta=0.1).sentence()
            'Searchers who may go back look at 1.5 items on average; a list takes 2.5.'
        """
        cost, labels = self.label_cost, self.mean(self.labels)
        seen = f"look at {shown_length(self.mean(self.looks))} items"
        if cost:
            rate = "" if cost == 1 else f" at {cost:g} per label"
            seen += f" and read {shown_length(labels)} labels, {shown_length(self.mean_length)} in all{rate},"
        return f"Searchers who may go back {seen} on average; a list takes {shown_length(self.list_length)}."

    def summary(self) -> str:
        """Return the score, the mean length, and quantiles of the values, as text."""
        values = self.values
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        settings = ", ".join(f"{key}={value}" for key, value in self.config.items())
        lines = [
            f"reduction of the expected search length {self.score:z.6f} over {len(values)} item(s)",
            *self.weight_lines(),
            *self._sampling_lines(),
            self.sentence(),
            f"values: min {values.min():z.4f}, 10% {low:z.4f}, median {middle:z.4f}, 90% {high:z.4f}, "
            f"max {values.max():z.4f}",
            f"value below that of a list: {int((values < 0).sum())} item(s)",
            f"settings: {settings}",
        ]
        return "\n".join(lines)


def shown_length(length: float) -> str:
    """Return a length as text, with at most three digits below 100."""
    return f"{length:z,.0f}" if length >= 100 else f"{length:.3g}"


def expected_search_length(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: Similarity = "cosine",
    delta: float | Literal["calibrated"] = 0.01,
    nu: float = 1.0,
    label_cost: float = 0.0,
    enter_own_singleton: bool = True,
    engine: str = "auto",
    threads: int | None = None,
    progress: bool = False,
    sample_size: float | None = None,
    sampling: Method = "stratified",
    random_state: int | np.random.Generator | None = None,
    half_width: float | None = None,
    items: Sequence[int] | Ints | None = None,
    sample_weight: Weights | None = None,
) -> SearchLengthResult:
    """Return the expected search length of each item of a tree, and the mean reduction against a list.

    The searcher has the guidance of `hqs_score`, but may go back. At a node, the searcher enters a child with
    probability ``eta``, renormalised over the children that are not exhausted. In a leaf cluster, they look at all
    items in random order. When all children are exhausted, they go up.

    Item x is in the leaf cluster L. At level t of its path, r is the correct child and c any sibling of r. ``s_c`` is
    the similarity of x to c, sigma the logistic function, and ``|c|`` the number of items below c. The expected number
    of items looked at is

        E_x = (|L| + 1) / 2 + sum_t sum_c sigma((s_c - s_r) / delta_t) |c|

    The value of an item is ``1 - (E_x - 1) / ((N - 1) / 2)``, and the score is the mean value over items.

    The value is 1 if x is the first item looked at, and -1 if it is the last. A random order of all items has value 0,
    and so has any tree with uninformative guidance. Without label cost the value is ``2 AUC - 1``, where AUC is the
    probability that x is looked at before a random other item. For N = 1 the value is 0.

    ``E_x - 1`` is Cooper's expected search length, the number of irrelevant items seen before the relevant one. The
    value is his reduction factor. Cooper's expectation is over the orders of ties in one ranking; here it is over all
    random choices of the searcher.

    In 76,128 recorded games, an item's value had a rank correlation of 0.22 with the share of people who found it. The
    cosine to its category had 0.24. These people followed links, not the branches of the tree.

    Without label cost, depth and breadth cost nothing: use this to compare guidance on one tree. Use ``label_cost=1``
    to compare trees of different shape.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree over the N items, in the order of the rows.
        similarity, delta, nu: As for `evaluate`.
        label_cost: The cost of reading one label, in units of one item looked at. At a node, the labels of all children
            are read.
        enter_own_singleton: Whether the search for x may enter the leaf cluster of x alone, if the tree has one. If
            not, the searcher looks at all items of the parent.
        engine: ``"auto"``, ``"numpy"`` or ``"numba"``.
        threads, progress, sample_size, sampling, random_state, half_width, items, sample_weight: As for `evaluate`.

    Raises:
        FeatureError: The features are unusable.
        ParameterError: A setting is out of range or has no effect.
        MissingExtraError: The engine needs numba, which is not installed.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> expected_search_length(X, tree, delta=0.1)
        SearchLengthResult(score=0.666443, 4 items)
        >>> expected_search_length(X, tree, delta=0.1, label_cost=1).score.__round__(3)
        -0.667

    References:
        Cooper (1968), Expected search length: a single measure of retrieval effectiveness based on the weak ordering
        action of retrieval systems, American Documentation 19; Plackett (1975), The analysis of permutations.
    """
    settings = Settings(similarity, delta, nu, policy="descend", enter_own_singleton=enter_own_singleton)
    run = Run(engine, threads, progress, random_state=random_state)
    request = Request(settings, run, Sampling(sample_size, sampling, random_state, half_width))
    check_label_cost(label_cost)
    chosen = chosen_items(items, request.sampling, hierarchy)
    if run.is_generic(settings):
        raise unexpected("engine", engine, "'auto', 'numpy' or 'numba'")
    request.check_used()
    prepared = prepare(X, hierarchy, settings, compiled=engine != "numpy", sample_weight=sample_weight)
    if chosen is None:
        return search_length(prepared, run, request.sampling, label_cost)
    return lengths_of_items(prepared, run, label_cost, chosen)


def check_label_cost(label_cost: object) -> None:
    """Raise unless the cost is a number of at least 0.

    Example:
        >>> check_label_cost(-1)
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: label_cost: got -1; expected a number from 0 to 1e+100, such as 1.
    """
    if not (is_real(label_cost) and 0 <= label_cost <= _MOST):
        raise unexpected("label_cost", label_cost, f"a number from 0 to {_MOST:g}, such as 1")


def search_length(
    prepared: Prepared, run: Run, sampling: Sampling, label_cost: float = 0.0, like: ItemScores | None = None
) -> SearchLengthResult:
    """Return the result for all items, or for a sample if one was requested.

    With ``like``, score the items of that result, for a paired comparison.
    """
    if like is None:
        found = sampling.run(
            prepared.hierarchy, lambda items: {"": lengths_of_items(prepared, run, label_cost, items)}, prepared.weights
        )
        return found[""]
    return like_sample(lengths_of_items(prepared, run, label_cost, like.sampled_items), like)


def search_length_beside(X: Any, hierarchy: Hierarchy, result: HQSResult, **settings: Any) -> SearchLengthResult:
    """Return the expected search length of the items of an HQS result, at its temperature.

    Example:
        >>> from pomdp_hier import evaluate
        >>> X, tree = [[1, 0], [1, 0], [0, 1], [0, 1]], Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> search_length_beside(X, tree, evaluate(X, tree, delta=0.5), delta=0.5)
        SearchLengthResult(score=0.507729, 4 items)
    """
    prepared, _, _ = opened(X, hierarchy, settings | {"delta": result.config["delta"]}, warn=False)
    return search_length(prepared, Run(), Sampling(), like=result)


def lengths_of_items(prepared: Prepared, run: Run, label_cost: float, items: Ints) -> SearchLengthResult:
    """Return the result for these items, in their order."""
    task, settings = prepared.task(run.threads), prepared.settings.record()
    engine = choose_engine(task, run.engine, items, kernel="search_all")
    config = {name: settings[name] for name in ("similarity", "delta", "nu", "enter_own_singleton")}
    config |= {"label_cost": float(label_cost), "engine": engine}
    config |= {} if prepared.calibration is None else {"delta_from": CALIBRATED}
    with shown_progress(run.progress, "search length", "item", len(items)) as bar:
        looks, labels = run_lengths(task, items, engine, bar.update)
    list_length = (prepared.hierarchy.n_items + 1) / 2
    lengths = looks + label_cost * labels if label_cost else looks
    found = SearchLengthResult(
        values=_reduction(lengths, list_length),
        lengths=lengths,
        auc=(1 + _reduction(looks, list_length)) / 2,
        labels=labels,
        list_length=list_length,
        n_labels=len(prepared.hierarchy.child_nodes),
        config=config,
    )
    return with_weights(found, prepared.weights, items)


def _reduction(lengths: Floats, list_length: float) -> Floats:
    """Return the reduction of the lengths: 1 at once, 0 as in a list; 0 for one item alone."""
    others = list_length - 1
    return np.asarray(1 - (lengths - 1) / others if others else np.zeros_like(lengths))
