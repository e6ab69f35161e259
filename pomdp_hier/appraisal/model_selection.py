"""HQS as a scorer for scikit-learn's model selection: which clustering makes the tree that is searched best."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier._arguments import is_whole
from pomdp_hier._messages import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.score import hqs_score
from pomdp_hier.hqs.settings import read_settings

__all__ = ["HQSScorer", "cut_tree", "hqs_scorer", "tree_of_model"]


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
        target_error="models are scored on one sample, whose size cannot go by each; give sample_size",
    )
    request.check_used()
    sampling = request.sampling
    if sampling.asked and (sampling.sampling != "simple" or not is_whole(sampling.random_state)):
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
