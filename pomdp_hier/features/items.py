"""The features of a tree's items: joined to them by id where rows carry ids, checked, in item order."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from pomdp_hier._arrays import Ints
from pomdp_hier._messages import brief
from pomdp_hier.errors import DataWarning, FeatureError, ParameterError
from pomdp_hier.features._delimited import id_position
from pomdp_hier.features.join import join_rows, match_ids, rows_by_id
from pomdp_hier.features.similarity import Precomputed, Similarity, as_similarity
from pomdp_hier.features.table import FeatureTable
from pomdp_hier.features.validation import Features, check_features, check_similarity_matrix
from pomdp_hier.hierarchy.flat import FlatTree, require_hierarchy
from pomdp_hier.hierarchy.wording import listed, warn_user

__all__ = ["ItemFeatures", "item_features"]


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Checked features of items, for whoever scores the same items more than once; `affinity` takes them as they are.

    Attributes:
        table: One row an item, in item order: dense ``[N, D]`` or canonical CSR; ``[N, N]`` of similarities.
        precomputed: Whether they are similarities.
    """

    table: Features
    precomputed: bool


def item_features(X: Any, hierarchy: FlatTree, similarity: Similarity = "cosine") -> ItemFeatures:
    """Return the features of the tree's items, checked, and in the order of the items.

    Rows that carry ids are joined to the items by id: what `load_features` returns, a data frame with a column ``id``,
    ``item`` or ``item_id``, and, where the tree's items have ids of their own, a pandas frame by its index. Other rows
    are in the order of the items. Of a precomputed matrix the columns go with the rows.

    Args:
        X: Features ``[N, D]``, similarities ``[N, N]`` for ``"precomputed"``, a frame, or a `FeatureTable`.
        hierarchy: The tree over the N items.
        similarity: What they are for.

    Raises:
        FeatureError: For features that cannot be used, or ids that do not match the items'.
        ParameterError: For an unknown similarity, or a tree in the features' place.

    Example:
        >>> import numpy as np
        >>> from pomdp_hier import Hierarchy
        >>> tree = Hierarchy.from_paths({"boots": "shoes", "parka": "coats"})
        >>> item_features(FeatureTable(np.array([[0.0, 1.0], [1.0, 0.0]]), ("parka", "boots")), tree).table
        array([[1., 0.],
               [0., 1.]])
    """
    if isinstance(X, FlatTree):
        raise ParameterError("features: got a Hierarchy in their place; give the features first, then the tree")
    require_hierarchy(hierarchy)
    precomputed = isinstance(as_similarity(similarity), Precomputed)
    if isinstance(X, ItemFeatures):
        if X.precomputed != precomputed:
            raise ParameterError("similarity: the prepared features are for another kind of similarity; give X itself")
        return X
    matrix, rows, columns = _joined(X, hierarchy)
    check = check_similarity_matrix if precomputed else check_features
    name = X.source if isinstance(X, FeatureTable) else "the features"
    if rows is None:
        return ItemFeatures(check(matrix, hierarchy.n_items, name=name, ids=hierarchy.labels), precomputed)
    ids = X.ids if isinstance(X, FeatureTable) else None
    table = check(matrix, len(rows), name=name, ids=ids)[rows]  # errors name the rows as they were given
    return ItemFeatures(table[:, rows if columns is None else columns] if precomputed else table, precomputed)


def _joined(X: Any, hierarchy: FlatTree) -> tuple[Any, Ints | None, Ints | None]:
    """Return the matrix, and the row and the column of each item; None for the order that it has."""
    if isinstance(X, FeatureTable):
        return X.matrix, None if X.ids is None else rows_by_id(X.ids, hierarchy.item_labels), None
    if not (hasattr(X, "columns") and hasattr(X, "to_numpy")):
        return X, None, None
    names = list(X.columns)
    position = id_position(list(map(str, names)), "the frame", None)
    if position is not None:
        if names.count(names[position]) > 1:
            raise FeatureError(
                f"the frame has several columns {brief(names[position])}; keep the one that holds the ids"
            )
        rows = rows_by_id(list(X[names[position]]), hierarchy.item_labels)
        return X[[name for at, name in enumerate(names) if at != position]], rows, None
    if hierarchy.labels is None or not hasattr(X, "index"):
        return X, None, None
    rows = _by_index(list(X.index), hierarchy)
    return X, rows, None if rows is None or set(names) != set(X.index) else join_rows(names, hierarchy.item_labels)


def _by_index(index: Sequence[Hashable], hierarchy: FlatTree) -> Ints | None:
    """Return each item's row by a frame's index; None, with a warning, where index and items have no id in common."""
    if index == list(range(len(index))):  # counts the rows
        return None
    if (match_ids(index, hierarchy.item_labels).rows >= 0).any():
        return join_rows(index, hierarchy.item_labels)
    note = (
        f"the frame's index ({listed(index, limit=3)}) names none of the tree's items "
        f"({listed(hierarchy.item_labels, limit=3)}): row k is taken for the k-th item; give the items' ids as the "
        "index, or frame.to_numpy() if that is right"
    )
    warn_user([note], DataWarning)
    return None
