"""The score over a range of delta, and as a scorer for scikit-learn's model selection."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from pomdp_hier._arguments import is_integer
from pomdp_hier._arrays import Floats
from pomdp_hier._io.memory import held
from pomdp_hier._text import brief, counted
from pomdp_hier.analysis.baselines import appraised
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import as_trees, opened
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import hqs_score, score
from pomdp_hier.hqs.settings import read_settings

_SAME = 1e-12
_REFUSED = {
    "delta": "a sweep goes over a range of temperatures; give it as deltas",
    "checkpoint": "a checkpoint is of one run, and a sweep is many; leave it out",
    "half_width": "trees and temperatures are scored on one sample, whose size cannot go by each; give sample_size",
}


@dataclass(frozen=True)
class SweepRow:
    """One tree at one temperature; the figures are those of `Appraisal`."""

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
    """Two trees that change places between two temperatures.

    Attributes:
        low: The temperature at which the first is better.
        high: The next one looked at, at which the second is.
        before: The better one at ``low``.
        after: The better one at ``high``.
    """

    low: float
    high: float
    before: str
    after: str


@dataclass(frozen=True)
class DeltaSweep:
    """Trees over a range of temperatures.

    Attributes:
        rows: One a tree and temperature, tree by tree, temperatures rising.
        flips: Where the ranking by score changes; places where two scores are equal are no change.
    """

    rows: tuple[SweepRow, ...]
    flips: tuple[Flip, ...]

    def __repr__(self) -> str:
        deltas, flips = self.deltas, counted(len(self.flips), "flip")
        trees = counted(len(self.trees), "tree")
        return f"DeltaSweep({trees}, {len(deltas)} deltas from {deltas[0]:g} to {deltas[-1]:g}, {flips})"

    @property
    def deltas(self) -> tuple[float, ...]:
        """The temperatures, rising."""
        return tuple(sorted({row.delta for row in self.rows}))

    @property
    def trees(self) -> tuple[str, ...]:
        """The trees' names."""
        return tuple(dict.fromkeys(row.tree for row in self.rows))

    def column(self, tree: str, name: str) -> Floats:
        """Return one figure of one tree over the temperatures, such as ``column("tree", "score")``."""
        return np.array([getattr(row, name) for row in self.rows if row.tree == tree], dtype=np.float64)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, for a data frame or a file."""
        return [asdict(row) for row in self.rows]

    def summary(self) -> str:
        """Return the table, and where the ranking flips, in words."""
        width = max(4, *(len(name) for name in self.trees))
        heads = f"{'delta':>10}{'score':>9}{'shuffled':>10}{'SD':>8}{'ceiling':>9}{'adjusted':>10}{'at root':>9}"
        lines = [f"{'tree':<{width}}{heads}"]
        lines += [
            f"{row.tree:<{width}}{row.delta:>10.4g}{row.score:>z9.4f}{row.shuffled_mean:>z10.4f}{row.shuffled_sd:>z8.4f}"
            f"{row.hindsight:>z9.4f}{row.adjusted:>z10.4f}{row.share_stopped_at_root:>z9.1%}"
            for row in self.rows
        ]
        return "\n".join([*lines, *self.sentences()])

    def sentences(self) -> list[str]:
        """Return where the ranking of the trees flips, in words."""
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
    """Return score, baselines and ceiling of one or more trees over a range of temperatures, and where rankings flip.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: A tree, or trees by name over the same items.
        deltas: The temperatures (default: 13 from 0.001 to 1, evenly spaced in the logarithm).
        n_shuffles: Shuffles a tree and temperature, the same ones at each; every one costs a scoring.
        random_state: Their seed, and that of the draw of a sample.
        **settings: As for `evaluate`, without ``delta``. A sample is the same items at each tree and temperature.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For no or double temperatures, or a setting that cannot be.

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
        chosen = sorted(map(float, held("deltas", deltas)))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"deltas are {brief(deltas)}; give a list of positive numbers") from error
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError(f"deltas are {chosen}; give one temperature or more, each once")
    return chosen


def _flips(deltas: Sequence[float], scores: Mapping[str, Sequence[float]]) -> Iterator[Flip]:
    """Where the sign of the difference of two scores changes; equal scores do not count on either side."""
    for one, other in combinations(scores, 2):
        gaps = np.subtract(scores[one], scores[other])
        apart = np.flatnonzero(np.abs(gaps) > _SAME)
        for here, there in pairwise(apart.tolist()):
            if gaps[here] * gaps[there] < 0:
                before, after = (one, other) if gaps[here] > 0 else (other, one)
                yield Flip(deltas[here], deltas[there], before, after)


@dataclass(frozen=True)
class HQSScorer:
    """A scorer ``(estimator, X, y=None) -> HQS`` of the tree that a fitted estimator holds. Higher is better.

    Attributes:
        cut: Whether a model's clusters become the leaf clusters, instead of the whole dendrogram.
        settings: The settings of the score.
    """

    cut: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the HQS of the estimator's tree over the rows it was fitted to.

        Raises:
            ParameterError: If the estimator holds no tree, or one of other rows.
        """
        tree = tree_of_model(estimator, cut=self.cut)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != tree.n_items:
            raise ParameterError(
                f"the model's tree has {tree.n_items} items, but {n_rows} rows are to be scored; a tree holds no other "
                "items than those it was fitted to, so fit and score on the same rows: cv=[(rows, rows)]"
            )
        return hqs_score(X, tree, **self.settings)


def hqs_scorer(*, cut: bool = True, **settings: Any) -> HQSScorer:
    """Return a scorer for scikit-learn's model selection, ``scoring=hqs_scorer(delta=0.005)``.

    It scores models with ``children_`` (AgglomerativeClustering), with a ``hierarchy_`` of their own, HDBSCAN's, and
    pipelines that end in one. A tree knows only the items it was made from, so the folds have to be the whole set.

    With ``cut=True`` a search over ``linkage`` alone is unfair: each linkage is cut at the same ``n_clusters``, above
    which single linkage has a deep chain of merges and Ward a balanced tree, and the merges count. Search
    ``n_clusters`` too, or take ``cut=False``, or the best cut of each (`best_cut`).

    Args:
        cut: Whether the clusters of an AgglomerativeClustering (``n_clusters`` or ``distance_threshold``) become the
            leaf clusters, with the merges above them as the tree; if not, the whole dendrogram is scored.
        **settings: As for `evaluate`; a sample has to be the same for all models, see the error.

    Raises:
        ParameterError: For a setting that cannot be.

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
        checkpoint="a checkpoint is of one run, and every model is another; leave it out",
        half_width="models are scored on one sample, whose size cannot go by each; give sample_size",
    )
    request.check_used()
    sampling = request.sampling
    if sampling.asked and (sampling.sampling != "simple" or not is_integer(sampling.random_state)):
        raise ParameterError(
            Argument("sample_size"),
            f": got {brief(sampling.sample_size)} with sampling={brief(sampling.sampling)} and random_state="
            f"{brief(sampling.random_state)}; expected the same items for all models. Give sampling='simple' (strata "
            "follow the tree of each model) and an integer as random_state",
        )
    return HQSScorer(cut, settings)


def tree_of_model(estimator: Any, *, cut: bool = True) -> Hierarchy:
    """Return the tree that a fitted estimator holds.

    Raises:
        ParameterError: If it holds none.
    """
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
        f"{type(estimator).__name__} holds no tree: expected children_ (AgglomerativeClustering), condensed_tree_ "
        "(HDBSCAN) or hierarchy_, and a fitted model"
    )


def cut_tree(children: Any, n_items: int, n_clusters: int) -> Hierarchy:
    """Return the top of a dendrogram: its ``n_clusters`` clusters as leaf clusters, the last merges above them.

    Every cluster gets a node, those of one item too.

    Args:
        children: The merges ``[N - 1, 2]``; row k makes node N + k.
        n_items: N.
        n_clusters: How many leaf clusters, 1 to N.

    Raises:
        ParameterError: For a tree that is not whole, or a number of clusters that it does not have.

    Example:
        >>> cut_tree([[0, 1], [2, 3], [4, 5]], 4, 2).to_children()
        [[0, 1], [2, 3], [4, 5]]
    """
    merges = np.asarray(children, dtype=np.int64)
    if merges.shape != (n_items - 1, 2):
        raise ParameterError(
            f"the tree has {len(merges)} merges of {n_items} items, but a whole one has {n_items - 1}: fit with "
            "compute_full_tree=True, and a connectivity, if any, that is connected"
        )
    if not 1 <= n_clusters <= n_items:
        raise ParameterError(f"n_clusters is {n_clusters}; give 1 to {n_items}, the number of items")
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
