"""Sweep of the score over delta, and a scorer for scikit-learn's model selection."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from pomdp_hier._arguments import Floats, as_floats, is_integer
from pomdp_hier._io.formats import held
from pomdp_hier._text import brief, counted
from pomdp_hier.analysis.baselines import appraised
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import as_trees, opened, read_settings
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import hqs_score, score

_SAME = 1e-12
_REFUSED = {
    "delta": "a sweep takes a range of temperatures. Pass deltas.",
    "checkpoint": "a checkpoint is of one run, and a sweep is many. Leave it out.",
    "half_width": "trees and temperatures are scored on one sample, not one per score. Pass sample_size.",
}


@dataclass(frozen=True)
class SweepRow:
    """One tree at one temperature, with the figures of `Appraisal`."""

    tree: str
    delta: float
    score: float
    no_tree: float
    hindsight: float
    perfect_guidance: float
    shuffled_mean: float
    shuffled_sd: float
    adjusted: float
    policy_efficiency: float
    first_branch_accuracy: float
    share_stopped_at_root: float


@dataclass(frozen=True)
class Flip:
    """Two trees whose order changes between two temperatures.

    Attributes:
        low: The temperature below the change.
        high: The next temperature of the sweep.
        before: The better tree at ``low``.
        after: The better tree at ``high``.
    """

    low: float
    high: float
    before: str
    after: str


@dataclass(frozen=True)
class DeltaSweep:
    """Scores of trees over a range of temperatures.

    Attributes:
        rows: One row per tree and temperature, by tree and then by increasing temperature.
        flips: The changes of the ranking by score; equal scores are not a change.
    """

    rows: tuple[SweepRow, ...]
    flips: tuple[Flip, ...]

    def __repr__(self) -> str:
        deltas, flips = self.deltas, counted(len(self.flips), "flip")
        trees = counted(len(self.trees), "tree")
        return f"DeltaSweep({trees}, {len(deltas)} deltas from {deltas[0]:g} to {deltas[-1]:g}, {flips})"

    @property
    def deltas(self) -> tuple[float, ...]:
        """The temperatures, in increasing order."""
        return tuple(sorted({row.delta for row in self.rows}))

    @property
    def trees(self) -> tuple[str, ...]:
        """The names of the trees."""
        return tuple(dict.fromkeys(row.tree for row in self.rows))

    def column(self, tree: str, name: str) -> Floats:
        """Return one figure of one tree over the temperatures, such as ``column("tree", "score")``."""
        return np.array([getattr(row, name) for row in self.rows if row.tree == tree], dtype=np.float64)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, for a data frame or a file."""
        return [asdict(row) for row in self.rows]

    def summary(self) -> str:
        """Return the table, and the changes of the ranking as text."""
        width = max(4, *(len(name) for name in self.trees))
        heads = f"{'delta':>10}{'score':>9}{'shuffled':>10}{'SD':>8}{'hindsight':>11}{'adjusted':>10}{'at root':>9}"
        lines = [f"{'tree':<{width}}{heads}"]
        lines += [
            f"{row.tree:<{width}}{row.delta:>10.4g}{row.score:>z9.4f}{row.shuffled_mean:>z10.4f}{row.shuffled_sd:>z8.4f}"
            f"{row.hindsight:>z11.4f}{row.adjusted:>z10.4f}{row.share_stopped_at_root:>z9.1%}"
            for row in self.rows
        ]
        return "\n".join([*lines, *self.sentences()])

    def sentences(self) -> list[str]:
        """Return the changes of the ranking, as text."""
        if len(self.trees) == 1:
            return []
        if not self.flips:
            return ["The ranking is the same at all these temperatures."]
        return [
            f"Between delta {flip.low:.4g} and {flip.high:.4g}, {flip.after} overtakes {flip.before}."
            for flip in self.flips
        ]


def delta_sweep(
    X: Any,
    hierarchy: Hierarchy | Mapping[str, Hierarchy],
    deltas: Sequence[float] | None = None,
    *,
    n_shuffles: int = 8,
    random_state: int = 0,
    **settings: Any,
) -> DeltaSweep:
    """Return the score and baselines of one or more trees over a range of temperatures, and changes of the ranking.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: A tree, or trees over the same items by name.
        deltas: The temperatures (default: 13 from 0.001 to 1, evenly spaced on a logarithmic scale).
        n_shuffles: The number of shuffles per tree and temperature, the same at each.
        random_state: The seed of the shuffles, and of a sample.
        **settings: As for `evaluate`, without ``delta``. A sample has the same items for each tree and temperature.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: Temperatures are missing or duplicate, or a setting is invalid.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> sweep = delta_sweep(X, tree, [0.1, 10.0], n_shuffles=2)
        >>> sweep.column("tree", "score").round(3)
        array([0.622, 0.   ])
    """
    trees = as_trees(hierarchy)
    chosen = _temperatures(deltas)
    prepared, run, sampling = opened(X, next(iter(trees.values())), settings, _REFUSED)
    run = run.seeded(random_state)
    result: HQSResult | None = None
    rows: list[SweepRow] = []
    for name, tree in trees.items():
        here = prepared.on(tree)
        for delta in chosen:
            at = here.under(delta=delta)
            result = score(at, run, sampling.seeded(random_state), result)
            found = appraised(at, run, result, n_shuffles, random_state)
            figures = {field: getattr(found, field) for field in SweepRow.__annotations__ if hasattr(found, field)}
            rows.append(SweepRow(tree=name, delta=delta, **figures))
    scores = {name: [row.score for row in rows if row.tree == name] for name in trees}
    return DeltaSweep(tuple(rows), tuple(_flips(chosen, scores)))


def _temperatures(deltas: Sequence[float] | None) -> list[float]:
    if deltas is None:
        return [float(delta) for delta in np.geomspace(1e-3, 1.0, 13)]
    try:
        chosen = sorted(map(float, as_floats(held("deltas", deltas)).tolist()))
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"deltas: got {brief(deltas)}; expected a list of positive numbers.") from error
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError(f"deltas: got {chosen}; expected at least one temperature, each once.")
    return chosen


def _flips(deltas: Sequence[float], scores: Mapping[str, Sequence[float]]) -> Iterator[Flip]:
    """Yield the changes of sign of the difference of two scores; equal scores are skipped."""
    for one, other in combinations(scores, 2):
        gaps = np.subtract(scores[one], scores[other])
        apart = np.flatnonzero(np.abs(gaps) > _SAME)
        for here, there in pairwise(apart.tolist()):
            if gaps[here] * gaps[there] < 0:
                before, after = (one, other) if gaps[here] > 0 else (other, one)
                yield Flip(deltas[here], deltas[there], before, after)


@dataclass(frozen=True)
class HQSScorer:
    """Scorer ``(estimator, X, y=None, sample_weight=None) -> HQS`` of the tree of a fitted estimator. Higher is better.

    Attributes:
        cut: Whether the clusters of a model become the leaf clusters, in place of the whole dendrogram.
        settings: The settings of the score.
    """

    cut: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the HQS of the tree of the estimator over the rows of its fit."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        if given and self.settings.get("sample_weight") is not None:
            raise ParameterError(
                "sample_weight: got weights here and in hqs_scorer; expected them in one place. Leave one out."
            )
        tree = tree_of_model(estimator, cut=self.cut)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != tree.n_items:
            raise ParameterError(
                f"X: got {n_rows} rows; expected {tree.n_items}, the items of the tree of the model. Fit and score on "
                "the same rows: cv=[(rows, rows)]."
            )
        return hqs_score(X, tree, **{**self.settings, **given})


def hqs_scorer(*, cut: bool = True, **settings: Any) -> HQSScorer:
    """Return a scorer for scikit-learn's model selection, ``scoring=hqs_scorer(delta=0.005)``.

    It scores models with ``children_`` (AgglomerativeClustering), with a ``hierarchy_``, HDBSCAN models, and pipelines
    that end in one. A tree has only the items of its fit, so each fold must be the whole set.

    With ``cut=True``, a search over ``linkage`` alone is biased, since each linkage is cut at the same ``n_clusters``.
    Above the cut, single linkage has a deep chain of merges and Ward a balanced tree. Search ``n_clusters`` too, or use
    ``cut=False``, or the best cut of each (`best_cut`).

    Args:
        cut: Whether the clusters of an AgglomerativeClustering (``n_clusters`` or ``distance_threshold``) become the
            leaf clusters, with the merges above them as the tree. If not, the whole dendrogram is scored.
        **settings: As for `evaluate`; a sample must be the same for all models.

    Raises:
        ParameterError: A setting is invalid.

    Example:
        Which linkage, and how many leaf clusters?

        >>> from sklearn.cluster import AgglomerativeClustering
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import GridSearchCV
        >>> X = load_iris().data
        >>> rows = np.arange(len(X))
        >>> search = GridSearchCV(
        ...     AgglomerativeClustering(compute_full_tree=True),
        ...     {"linkage": ["ward", "average", "single"], "n_clusters": [2, 4, 8, 16]},
        ...     scoring=hqs_scorer(similarity="negative_euclidean", delta=0.05),
        ...     cv=[(rows, rows)],
        ... ).fit(X)
        >>> search.best_params_["n_clusters"] > 2, bool(search.best_score_ > 0.7)
        (True, True)
    """
    request = read_settings(
        settings,
        checkpoint="every model is another run. Leave it out.",
        half_width="all models share one sample. Pass sample_size.",
    )
    request.check_used()
    sampling = request.sampling
    if sampling.asked and (sampling.sampling != "simple" or not is_integer(sampling.random_state)):
        raise ParameterError(
            Argument("sample_size"),
            f": got {brief(sampling.sample_size)} with sampling={brief(sampling.sampling)} and random_state="
            f"{brief(sampling.random_state)}; expected the same items for all models. Give sampling='simple' (strata "
            "follow the tree of each model) and an integer as random_state.",
        )
    return HQSScorer(cut, settings)


def tree_of_model(estimator: Any, *, cut: bool = True) -> Hierarchy:
    """Return the tree of a fitted estimator."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    own = getattr(estimator, "hierarchy_", None)
    if isinstance(own, Hierarchy):
        return own
    if hasattr(estimator, "children_"):
        n_clusters = getattr(estimator, "n_clusters_", None)
        if not cut or n_clusters is None:
            return Hierarchy.from_sklearn(estimator)
        return cut_tree(estimator.children_, int(estimator.n_leaves_), int(n_clusters))
    if hasattr(estimator, "condensed_tree_"):
        return Hierarchy.from_hdbscan(estimator)
    raise ParameterError(
        f"estimator: got {type(estimator).__name__} without a tree; expected a fitted model with children_ "
        "(AgglomerativeClustering), condensed_tree_ (HDBSCAN) or hierarchy_."
    )


def cut_tree(children: Any, n_items: int, n_clusters: int) -> Hierarchy:
    """Return the top of a dendrogram: ``n_clusters`` leaf clusters and the last merges above them.

    Each cluster is a node, also a cluster of one item.

    Args:
        children: The merges ``[N - 1, 2]``; row k makes node N + k.
    """
    merges = np.asarray(children, dtype=np.int64)
    if merges.shape != (n_items - 1, 2):
        raise ParameterError(
            f"children_: got {len(merges)} merges of {n_items} items; expected {n_items - 1}. Fit with "
            "compute_full_tree=True, and a connectivity, if any, that is connected."
        )
    if not 1 <= n_clusters <= n_items:
        raise ParameterError(f"n_clusters: got {n_clusters}; expected 1 to {n_items}, the number of items.")
    n_nodes = 2 * n_items - 1
    above = np.full(n_nodes, -1)
    above[merges.reshape(-1)] = np.repeat(np.arange(n_items, n_nodes), 2)
    first_kept = n_nodes - (n_clusters - 1)
    top = np.arange(n_nodes)  # the cluster of every node below the cut
    for node in range(first_kept - 1, n_items - 1, -1):
        top[merges[node - n_items]] = top[node]
    clusters, cluster_of = np.unique(top[:n_items], return_inverse=True)
    number = np.full(n_nodes + 1, -1)
    number[first_kept:n_nodes] = np.arange(n_items + n_clusters, n_items + 2 * n_clusters - 1)
    parent = np.concatenate((n_items + cluster_of, number[above[clusters]], number[above[first_kept:]]))
    return Hierarchy(parent, n_items)
