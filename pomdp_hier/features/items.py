"""Feature tables, the join of their rows to items by id, and duplicates among the items."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import DataWarning, FeatureError, ParameterError, PythonAdvice, Setting, warn_user
from pomdp_hier.features.readers import id_position
from pomdp_hier.features.similarity import Precomputed, Similarity, as_similarity
from pomdp_hier.features.validation import Features, check_features, check_similarity_matrix
from pomdp_hier.hierarchy.arrays import as_ids
from pomdp_hier.hierarchy.flat import FlatTree, require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy


@dataclass(frozen=True, eq=False)
class IdMatch:
    """Result of matching the ids of feature rows and items; ids keep their order.

    Attributes:
        rows: The feature row of each item, [number of items]; -1 for an item without one.
        missing: Items without a feature row.
        surplus: Feature rows without an item.
        doubled_rows: Ids of several feature rows.
        doubled_items: Ids of several items.
    """

    rows: Ints
    missing: tuple[Hashable, ...]
    surplus: tuple[Hashable, ...]
    doubled_rows: tuple[Hashable, ...]
    doubled_items: tuple[Hashable, ...]

    def faults(self, *, surplus: bool = True) -> list[str]:
        """Return one phrase per kind of mismatch; empty if every item has exactly one row.

        Items of one id, such as the copies of an item with several parents, share its row.

        Args:
            surplus: Whether feature rows without an item are a fault.
        """
        kinds = [
            (self.missing, "item", "without a feature row"),
            (self.surplus if surplus else (), "feature row", "without an item"),
            (self.doubled_rows, "id", "on several feature rows"),
        ]
        return [f"{counted(len(ids), noun)} {fault} ({listed(ids)})" for ids, noun, fault in kinds if ids]


def match_ids(row_ids: Sequence[Hashable], item_ids: Sequence[Hashable], sep: str | None = None) -> IdMatch:
    """Return the feature row of each item by its id, and all missing, surplus and duplicate ids.

    Ids match if they are equal. If all ids of one side are text, as in a text file, those of the other side are
    compared as text: item ``7`` matches row ``"7"``. Items that are paths are found by their last name if these are
    distinct, else by the whole path, such as ``"land > ant"``.
    """
    row_ids, item_ids = _as_paths(row_ids, item_ids, sep)
    if all(isinstance(row, str) for row in row_ids):
        item_ids = [str(item) for item in item_ids]
    elif all(isinstance(item, str) for item in item_ids):
        row_ids = [str(row) for row in row_ids]
    row_of: dict[Hashable, int] = {}
    for row, name in enumerate(row_ids):
        row_of.setdefault(name, row)
    known = set(item_ids)
    return IdMatch(
        rows=np.array([row_of.get(name, -1) for name in item_ids], dtype=np.int64),
        missing=tuple(dict.fromkeys(name for name in item_ids if name not in row_of)),
        surplus=tuple(name for name in row_of if name not in known),
        doubled_rows=_doubled(row_ids),
        doubled_items=_doubled(item_ids),
    )


def _as_paths(
    row_ids: Sequence[Hashable], item_ids: Sequence[Hashable], sep: str | None
) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Return the ids of rows and items, where items may be paths: their last names if distinct, else the paths."""
    if not any(isinstance(name, tuple) for name in item_ids) or any(isinstance(name, tuple) for name in row_ids):
        return row_ids, item_ids
    last = [name[-1] if isinstance(name, tuple) and name else name for name in item_ids]
    if len(set(last)) == len(last) and not set(last).isdisjoint(row_ids):
        return row_ids, last
    texts = [name for name in row_ids if isinstance(name, str)]
    marks = [sep] if sep else _path_marks(item_ids)
    mark = next((mark for mark in marks if any(mark in text for text in texts)), marks[0])

    def parted(name: Hashable) -> Hashable:
        return tuple(filter(None, map(str.strip, name.split(mark)))) if isinstance(name, str) else name

    return [parted(name) for name in row_ids], item_ids


def _path_marks(item_ids: Sequence[Hashable]) -> list[str]:
    """Return the characters that may stand between the names of a path, as no name contains them."""
    used = set("".join(str(part) for name in item_ids if isinstance(name, tuple) for part in name))
    return [mark for mark in (">", "|", "/") if mark not in used] or [">"]


def _advice(missing: Sequence[Hashable], item_ids: Sequence[Hashable], sep: str | None) -> Iterator[str | Setting]:
    """Yield what to do about rows and items that do not match."""
    if not missing:
        yield "Remove the other rows."
    elif isinstance(missing[0], tuple):
        mark = sep or _path_marks(item_ids)[0]
        yield f"Name each row by the path of its item, such as {brief(f' {mark} '.join(map(str, missing[0])))}."
    else:
        yield "Add the rows. A leaf of the tree is an item: remove a category without items from the tree"
        yield PythonAdvice(", or read the tree with items=")
        yield "."


def join_rows(
    row_ids: Sequence[Hashable], item_ids: Sequence[Hashable], *, surplus: str = "error", sep: str | None = None
) -> Ints:
    """Return the feature row of each item: ``X[join_rows(row_ids, item_ids)]`` is in item order."""
    match = match_ids(row_ids, item_ids, sep)
    faults = match.faults(surplus=surplus == "error")
    if faults:
        types = [", ".join(sorted({type(name).__name__ for name in ids})) for ids in (row_ids, item_ids)]
        apart = "" if types[0] == types[1] else f" (the rows' ids are {types[0]}, the items' {types[1]})"
        raise FeatureError(
            f"ids of the features: got mismatches{apart}: {'; '.join(faults)}; expected exactly one row per item, "
            "under the item's id. ",
            *_advice(match.missing, item_ids, sep),
        )
    return match.rows


def rows_by_id(row_ids: Sequence[Hashable], item_ids: Sequence[Hashable], sep: str | None = None) -> Ints | None:
    """Return the feature row of each item; None if the items are numbered and no row has such an id."""
    if are_row_numbers(item_ids) and (match_ids(row_ids, item_ids).rows < 0).all():
        return None
    return join_rows(row_ids, item_ids, sep=sep)


def are_row_numbers(item_ids: Sequence[Hashable]) -> bool:
    """Return whether the items are named by their row numbers ``0..N-1``, also as text."""
    return all(str(name) == str(row) for row, name in enumerate(item_ids))


def _doubled(ids: Iterable[Hashable]) -> tuple[Hashable, ...]:
    return tuple(name for name, count in Counter(ids).items() if count > 1)


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Content of a feature file.

    Attributes:
        matrix: One row per item, dense or CSR, [N, D].
        ids: The id of each row if the file has an id column.
        columns: The names of the columns if the file has them.
        source: The name in error messages.
        weights: The weights of the rows, if their column was named ``[N]``. They count where they are passed on as
            ``sample_weight``.
    """

    matrix: "NDArray[np.generic] | csr_array"
    ids: tuple[Hashable, ...] | None = None
    columns: tuple[str, ...] | None = None
    source: str = "the features"
    weights: Floats | None = None


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Checked features of items, for repeated scores of the same items.

    Attributes:
        table: One row per item, in item order: dense ``[N, D]`` or canonical CSR; ``[N, N]`` of similarities.
        precomputed: Whether they are similarities.
        rows: The row of each item in the given features, joined by id ``[N]``; None for rows in item order.
    """

    table: Features
    precomputed: bool
    rows: Ints | None = None


def item_features(X: Any, hierarchy: FlatTree, similarity: Similarity = "cosine") -> ItemFeatures:
    """Return the checked features of the tree's items, in item order.

    Rows that carry ids are joined to the items by id. These are the result of `load_features`, and a data frame with a
    column ``id``, ``item`` or ``item_id``. If the tree's items have ids, a pandas frame is joined by its index. Other
    rows are in the order of the items. Of a precomputed matrix the columns go with the rows.

    Args:
        X: Features ``[N, D]``, similarities ``[N, N]`` for ``"precomputed"``, a frame, or a `FeatureTable`.
    """
    if isinstance(X, FlatTree):
        raise ParameterError("X: got a Hierarchy; expected features. Pass the features first, then the tree.")
    require_hierarchy(hierarchy)
    precomputed = isinstance(as_similarity(similarity), Precomputed)
    if isinstance(X, ItemFeatures):
        if X.precomputed != precomputed:
            raise ParameterError("X: got features prepared for another similarity; expected X itself.")
        return X
    matrix, rows, columns = _joined(X, hierarchy)
    check = check_similarity_matrix if precomputed else check_features
    name = X.source if isinstance(X, FeatureTable) else "the features"
    if rows is None:
        return ItemFeatures(check(matrix, hierarchy.n_items, name=name, ids=hierarchy.labels), precomputed)
    ids = X.ids if isinstance(X, FeatureTable) else None
    table = check(matrix, len(rows), name=name, ids=ids)[rows]  # errors name the rows as they were given
    return ItemFeatures(table[:, rows if columns is None else columns] if precomputed else table, precomputed, rows)


def _joined(X: Any, hierarchy: FlatTree) -> tuple[Any, Ints | None, Ints | None]:
    """Return the matrix, and the row and column of each item; None if it is in item order."""
    if isinstance(X, FeatureTable):
        return X.matrix, None if X.ids is None else rows_by_id(X.ids, hierarchy.item_labels), None
    if not (hasattr(X, "to_numpy") and hasattr(X, "columns")):  # in this order, as a lazy frame of polars would warn
        return X, None, None
    names = list(X.columns)
    position = id_position(list(map(str, names)), "the frame", None)
    if position is not None:
        if names.count(names[position]) > 1:
            raise FeatureError(f"X: got several columns {brief(names[position])}; expected one. Rename the others.")
        rows = rows_by_id(list(X[names[position]]), hierarchy.item_labels)
        return X[[name for at, name in enumerate(names) if at != position]], rows, None
    if hierarchy.labels is None or not hasattr(X, "index"):
        return X, None, None
    rows = _by_index(list(X.index), hierarchy)
    return X, rows, None if rows is None or set(names) != set(X.index) else join_rows(names, hierarchy.item_labels)


def _by_index(index: Sequence[Hashable], hierarchy: FlatTree) -> Ints | None:
    """Return the row of each item by a frame's index; None, with a warning, if no id is common."""
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


class Duplicates:
    """The clusters that contain a duplicate of an item."""

    def __init__(self, hierarchy: Hierarchy, keys: Sequence[Hashable] | None) -> None:
        self._tree, n_items = hierarchy, hierarchy.n_items
        self._group = np.arange(n_items)
        if keys is not None:
            keys = as_ids("duplicates", list(keys) if isinstance(keys, str) else keys)
            if len(keys) != n_items:
                raise ParameterError(f"duplicates: got {len(keys)} keys; expected {n_items}, one per item.")
            number: dict[Hashable, int] = {}
            self._group = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
        self._places = np.sort(self._group * n_items + hierarchy.starts[:n_items])

    def inside(self, items: Ints, nodes: Ints) -> Bools:
        """Return whether each node contains the item or a duplicate ``[m]``."""
        first = self._group[items] * self._tree.n_items + self._tree.starts[nodes]
        last = np.searchsorted(self._places, first + self._tree.sizes[nodes])
        found: Bools = np.searchsorted(self._places, first) < last
        return found


def row_keys(features: object) -> list[bytes] | None:
    """Return one key per row, equal exactly for equal rows; None without rows of features."""
    if not isinstance(features, ItemFeatures) or features.precomputed:
        return None
    if sp.issparse(features.table):
        table = features.table.tocsr(copy=True)
        table.eliminate_zeros()
        rows = (
            table.indices[low:high].tobytes() + table.data[low:high].tobytes()
            for low, high in pairwise(table.indptr.tolist())
        )
    else:
        rows = ((row + 0.0).tobytes() for row in features.table)  # adding 0.0 makes -0.0 and 0.0 the same bytes
    return [blake2b(row, digest_size=16).digest() for row in rows]
