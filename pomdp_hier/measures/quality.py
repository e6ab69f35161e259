"""Quality of a tree: costs from similarities of items, and agreement with class labels."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import Floats, Ints, check_flag, is_one_of
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.lca_pairs import PairSums, at_ancestor, branching_nodes, one_label_per_item

_COST_ROUNDING = 1e-14  # relative to the squares of unit rows, whose difference is the sum over pairs


def dasgupta_cost(X: Any, hierarchy: Hierarchy, *, similarity: object = "cosine", normalized: bool = True) -> float:
    """Return Dasgupta's cost: the sizes of lowest common ancestors, weighted by similarity; lower is better.

    With ``w(i, j)`` the similarity of two items and ``a(i, j)`` their lowest common ancestor (LCA),

        cost = sum over pairs i < j of w(i, j) |a(i, j)| ,

    normalised by ``N * sum over pairs of w``, so that a flat tree has 1. Exact for the cosine in O(N D), for any
    fan-out. The sum over pairs inside a cluster is ``(||S||**2 - n) / 2`` with ``S`` the sum of its unit rows.

    The cost is defined for similarities of at least 0; negative ones are used as they are. The LCA of items of one leaf
    cluster is that cluster, so the cost does not depend on ``singletons``.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``.
        normalized: Whether to divide by ``N * sum of w``; NaN where that is 0, as with a single item.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: The similarity is unknown.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> dasgupta_cost(X, tree), dasgupta_cost(X, tree, normalized=False)
        (0.5, 4.0)

    References:
        Dasgupta (2016), A cost function for similarity-based hierarchical clustering, STOC.
    """
    check_flag("normalized", normalized)
    cost, scale = _cost(X, hierarchy, similarity)
    if not normalized:
        return cost
    return cost / scale if scale else float("nan")


def moseley_wang_revenue(
    X: Any, hierarchy: Hierarchy, *, similarity: object = "cosine", normalized: bool = True
) -> float:
    """Return the Moseley-Wang revenue: items outside lowest common ancestors, weighted by similarity; higher is better.

        revenue = sum over pairs i < j of w(i, j) (N - |a(i, j)|) = N * sum of w - Dasgupta's cost ,

    normalised by ``N * sum of w``, so that a flat tree has 0. Revenue and cost rank trees over the same items in the
    same order; they differ in approximation guarantees.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``.
        normalized: Whether to divide by ``N * sum of w``; NaN where that is 0.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: The similarity is unknown.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> moseley_wang_revenue([[1, 0], [1, 0], [0, 1], [0, 1]], tree, normalized=False)
        4.0

    References:
        Moseley, Wang (2017), Approximation bounds for hierarchical clustering: average linkage, bisecting
        k-means, and local search, NeurIPS.
    """
    check_flag("normalized", normalized)
    cost, scale = _cost(X, hierarchy, similarity)
    if not normalized:
        return scale - cost
    return (scale - cost) / scale if scale else float("nan")


def _cost(X: Any, hierarchy: Hierarchy, similarity: object) -> tuple[float, float]:
    """Return the cost and ``N * sum of w``, or 0 for a sum that is rounding."""
    require_hierarchy(hierarchy)
    n_items = hierarchy.n_items
    inside = PairSums(X, hierarchy, similarity).inside()
    if n_items == 1:
        return 0.0, 0.0
    cost = float(at_ancestor(hierarchy, inside) @ hierarchy.sizes[n_items:])
    total = float(inside[hierarchy.root - n_items])
    return cost, n_items * total if abs(total) > _COST_ROUNDING * n_items else 0.0


_ROUNDING = 1e-12


def tree_sampling_divergence(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: object = "cosine",
    weights: Literal["degree", "uniform"] = "degree",
    normalized: bool = True,
) -> float:
    """Return the tree sampling divergence (TSD), the information of a hierarchy on similarities.

    Sample a pair of items with probability ``p(i, j)`` proportional to their similarity, or two items independently,
    with probability ``w`` each. Their lowest common ancestor has the distribution ``p(c)`` or ``q(c)``, and

        TSD = sum over internal nodes c of p(c) log(p(c) / q(c)) ,

    normalised by the divergence of the pairs, ``sum of p(i, j) log(p(i, j) / (w_i w_j))``, an upper bound for every
    tree: between 0 (a flat tree) and 1, else in nats. Higher is better. An item sampled twice counts at its parent. Any
    fan-out. O(N D) for the cosine; the normalisation takes O(N**2 D) time and blocks of rows.

    Args:
        X: Features ``[N, D]``, dense or CSR; or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        similarity: ``"cosine"`` or ``"precomputed"``; no similarity may be negative.
        weights: Probabilities of items: proportional to their total similarity, ``"degree"``, or ``"uniform"``.
        normalized: Whether to divide by the divergence of the pairs.

    Returns:
        The divergence; NaN if all similarities are 0, or the divergence of the pairs is 0.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: A similarity is negative, or the similarity or weights are unknown.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> tree_sampling_divergence([[1, 0], [1, 0], [0, 1], [0, 1]], tree, normalized=False)
        0.693...

    References:
        Charpentier, Bonald (2019), Tree sampling divergence: an information-theoretic metric for hierarchical
        graph clustering, IJCAI.
    """
    if not is_one_of(weights, "degree", "uniform"):
        raise ParameterError(f"weights: got {brief(weights)}; expected 'degree' or 'uniform'.")
    pairs = PairSums(X, hierarchy, similarity)
    n_items = hierarchy.n_items
    degrees = pairs.degrees()
    total = float(degrees.sum())
    if n_items == 1 or np.abs(degrees).max() <= _ROUNDING:
        return float("nan")
    _check_nonnegative(degrees / np.abs(degrees).sum())
    edge = at_ancestor(hierarchy, pairs.inside()) * 2 / total
    _check_nonnegative(edge)
    item = degrees / total if weights == "degree" else np.full(n_items, 1 / n_items)
    node = at_ancestor(hierarchy, item_sums(hierarchy, item, np.arange(n_items, hierarchy.n_nodes)) ** 2)
    # A node without weight is never sampled; the rest left by rounding does not count.
    seen = edge > _ROUNDING / max(len(edge), 1) ** 2
    divergence = float(edge[seen] @ np.log(edge[seen] / node[seen]))
    if not normalized:
        return divergence
    most = _pair_divergence(pairs, item, total)
    return divergence / most if most > _ROUNDING else float("nan")


def _pair_divergence(pairs: PairSums, item: Floats, total: float) -> float:
    """Return the divergence of the pairs, an upper bound for every tree."""
    result = 0.0
    for low, block in pairs.blocks():
        block /= total
        _check_nonnegative(block)
        row, column = np.nonzero(block > 0)
        p = block[row, column]
        result += float(p @ np.log(p / (item[low + row] * item[column])))
    return result


def _check_nonnegative(shares: Floats) -> None:
    """Raise if a share is negative by more than rounding."""
    worst = float(shares.min(initial=0.0))
    if worst < -_ROUNDING:
        raise ParameterError(
            f"X: got negative similarities, {worst:.3g} of their sum; expected similarities of at least 0, by which "
            "the tree sampling divergence samples pairs. Give a matrix such as (1 + cosine) / 2 with "
            'similarity="precomputed".'
        )


Path: TypeAlias = Sequence[Hashable]


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision, recall, and their harmonic mean ``f``, each between 0 and 1.

    Example:
        >>> hierarchical_precision_recall([("a", "b")], [("a", "c")])
        PrecisionRecall(precision=0.5, recall=0.5, f=0.5)
    """

    precision: float
    recall: float
    f: float


@dataclass(frozen=True)
class ClassFit(PrecisionRecall):
    """Fit of the best cluster per class, averaged over the classes by size.

    Attributes:
        best: The best cluster of each class (a path), with its F.
    """

    best: dict[tuple[Hashable, ...], tuple[int, float]] = field(repr=False)


def class_f_score(hierarchy: Hierarchy, labels: Sequence[Hashable | Path]) -> ClassFit:
    """Return the class F score: the F of the best cluster per class, averaged by class size.

    A cluster c has precision ``|c and k| / |c|`` and recall ``|c and k| / |k|`` for a class k, F their harmonic mean,
    and

        F = sum over classes k of |k| / (sum of |k|) * max over clusters c of F(k, c) .

    Precision and recall are those of the same best clusters (the smallest of equal F), with the same average. A label
    may be a path, ``("animals", "birds")``: each prefix is then a class, which compares a whole hierarchy of classes
    with the tree. Exact, in O(N L log N) for paths of length L.

    Args:
        hierarchy: The tree.
        labels: One label per item: a tuple or list is a path, any other value a class, None no class.

    Raises:
        ParameterError: The number of labels differs from that of the items, all are None, or one is not hashable.
        HierarchyError: It is not a hierarchy.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> fit = class_f_score(tree, [("a", "x"), ("a", "x"), ("a", "y"), ("b",)])
        >>> round(fit.f, 3), fit.best[("a", "x")]
        (0.844, (4, 1.0))

    References:
        Larsen, Aone (1999), Fast and effective text mining using linear-time document clustering, KDD.
    """
    paths = one_label_per_item(hierarchy, labels, _as_path)
    number: dict[tuple[Hashable, ...], int] = {}
    items: list[int] = []
    classes: list[int] = []
    for item, path in enumerate(paths):
        for length in range(1, len(path) + 1):
            items.append(item)
            classes.append(number.setdefault(path[:length], len(number)))
    if not items:
        raise ParameterError("labels: got None for all items; expected a label or path for some.")
    return _best_clusters(hierarchy, np.array(items), np.array(classes), list(number))


def _best_clusters(hierarchy: Hierarchy, items: Ints, classes: Ints, names: list[tuple[Hashable, ...]]) -> ClassFit:
    found = branching_nodes(hierarchy, items, classes)
    # Beside the branching nodes, the best cluster can be the leaf cluster of a single member.
    owner = np.concatenate((classes, found.classes))
    node = np.concatenate((hierarchy.leaf_of_item[items], found.nodes))
    count = np.concatenate((np.ones(len(items), dtype=np.int64), found.counts))
    class_size = np.bincount(classes)
    f = 2 * count / (class_size[owner] + hierarchy.sizes[node])
    order = np.lexsort((hierarchy.sizes[node], -f, owner))
    best = order[np.searchsorted(owner[order], np.arange(len(names)))]
    weight = class_size / class_size.sum()
    return ClassFit(
        precision=float(weight @ (count[best] / hierarchy.sizes[node[best]])),
        recall=float(weight @ (count[best] / class_size)),
        f=float(weight @ f[best]),
        best={name: (int(node[at]), float(f[at])) for name, at in zip(names, best.tolist(), strict=True)},
    )


def hierarchical_precision_recall(true: Sequence[Path], predicted: Sequence[Path]) -> PrecisionRecall:
    """Return the hierarchical precision, recall and F of predicted category paths against the true ones.

    ``T_i`` and ``P_i`` are the nodes on the true and the predicted path of item i. Each prefix of a path is a node; the
    root does not count.

        precision = sum |P_i and T_i| / sum |P_i| ,    recall = sum |P_i and T_i| / sum |T_i| .

    A prediction that stops early has full precision and lower recall; a wrong branch lowers both.

    Args:
        true: One path per item, ``[N]``.
        predicted: One path per item, ``[N]``; empty for none.

    Returns:
        Precision, recall and F; NaN if all predicted or all true paths are empty.

    Raises:
        ParameterError: The numbers of paths differ.

    Example:
        >>> hierarchical_precision_recall([("a", "x"), ("b", "y")], [("a",), ("b", "z")])
        PrecisionRecall(precision=0.6666666666666666, recall=0.5, f=0.5714285714285714)

    References:
        Kiritchenko, Matwin, Famili (2005), Functional annotation of genes using hierarchical text
        categorization, BioLINK.
    """
    for name, paths in (("true", true), ("predicted", predicted)):
        if not isinstance(paths, Iterable):
            raise ParameterError(f"{name}: got {brief(paths)}; expected a list of one path per item.")
    true, predicted = list(true), list(predicted)
    if len(true) != len(predicted):
        raise ParameterError(f"predicted: got {len(predicted)} paths; expected {len(true)}, one per true path.")
    common = n_true = n_predicted = 0
    for path, guess in zip(map(_as_path, true), map(_as_path, predicted), strict=True):
        n_true, n_predicted = n_true + len(path), n_predicted + len(guess)
        for here, there in zip(path, guess, strict=False):
            if here != there:
                break
            common += 1
    precision = common / n_predicted if n_predicted else float("nan")
    recall = common / n_true if n_true else float("nan")
    # The harmonic mean, in a form that is defined where both are 0.
    f = 2 * common / (n_true + n_predicted) if n_true + n_predicted else float("nan")
    return PrecisionRecall(precision, recall, f)


def _as_path(label: Hashable | Path) -> tuple[Hashable, ...]:
    if label is None:
        return ()
    return tuple(label) if isinstance(label, tuple | list | np.ndarray) else (label,)


def dendrogram_purity(hierarchy: Hierarchy, labels: Sequence[Hashable] | npt.ArrayLike) -> float:
    """Return the dendrogram purity: over item pairs of equal label, the mean share of that label at their LCA.

    With ``P`` the pairs of items that share a label and ``a(i, j)`` their lowest common ancestor (LCA),

        purity = 1/|P| * sum over (i, j) in P of |a(i, j) and label(i)| / |a(i, j)| ,

    1 exactly if each label fills one subtree. The LCA of items of one leaf cluster is that cluster. Exact, in
    O(N log N) for every shape of tree.

    Args:
        hierarchy: The tree.
        labels: One label per item, ``[N]``; None for an item without a label, which counts in cluster sizes only.

    Returns:
        The purity; NaN if no two items share a label.

    Raises:
        ParameterError: The number of labels differs from that of the items, or one is not hashable.
        HierarchyError: It is not a hierarchy.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> dendrogram_purity(tree, ["a", "a", "b", "b"]), dendrogram_purity(tree, ["a", "b", "a", "b"])
        (1.0, 0.5)

    References:
        Heller, Ghahramani (2005), Bayesian hierarchical clustering, ICML.
    """
    names = one_label_per_item(hierarchy, labels)
    number: dict[Hashable, int] = {}
    items = np.array([item for item, name in enumerate(names) if name is not None], dtype=np.int64)
    classes = np.array([number.setdefault(names[item], len(number)) for item in items.tolist()], dtype=np.int64)
    found = branching_nodes(hierarchy, items, classes)
    if not len(found.nodes):
        return float("nan")
    share = found.counts / hierarchy.sizes[found.nodes]
    pairs = found.counts * (found.counts - 1) / 2
    top = found.above < 0
    inherited = np.where(top, 0.0, share[found.above])
    return float(pairs @ (share - inherited) / pairs[top].sum())
