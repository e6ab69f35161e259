"""Features and trees in the form that the workers read."""

import os
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from scipy.sparse import issparse

from pomdp_hier._arguments import check_path
from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._engines.task import NodeRewards
from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import decoding
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import FeatureError, Setting
from pomdp_hier.features.readers import column_position, id_position, read_npy
from pomdp_hier.hierarchy.tree import Hierarchy

Reader = Callable[[int, int], Any]


class Source(Protocol):
    """Rows of features, read by range.

    Attributes:
        shape: ``(N, D)``.
        dtype: Float32 or float64, what the rows are read as.
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...

    def weights(self) -> list[Any] | None:
        """Return the weights of the rows, if their column was named."""

    def ids(self) -> Sequence[Hashable] | None:
        """Return the ids of the rows, or None."""

    def ranges(self, cuts: Sequence[int]) -> Sequence[Any]:
        """Return the ranges between the cuts."""


def as_source(features: Any, id_column: str | None = None, weight_column: str | None = None) -> Source:
    """Return the source of the features.

    Args:
        features: A Dask array ``[N, D]``, or a path: a Parquet file or folder, a ``.npy`` file or a folder of them;
            the files of a folder follow one another by name, numbers in the names by their value (2 before 10).
        id_column: The Parquet column of ids, by default the one called ``id``, ``item`` or ``item_id``.
        weight_column: The Parquet column of weights, which is not a feature.
    """
    if isinstance(features, str | os.PathLike):
        check_path("X", features)
        path = Path(features)
        files = sorted(path.iterdir(), key=_by_number) if path.is_dir() else [path]
        if tables := [file for file in files if file.suffix.lower() in (".parquet", ".pq")]:
            return _ParquetSource.of(tables, id_column, weight_column)
        if arrays := [file for file in files if file.suffix.lower() == ".npy"]:
            for option, column in (("id_column", id_column), ("weight_column", weight_column)):
                if column is not None:
                    raise FeatureError(
                        f"{path}: got .npy files; expected named columns. Leave this out: ", Setting(option, column)
                    )
            return _NpySource.of(arrays)
        raise FeatureError(f"X: got {path}; expected a .parquet or .npy file, or a folder of such files")
    dask_array = sys.modules.get("dask.array")  # whoever holds a Dask array has it
    if dask_array is not None and isinstance(features, dask_array.Array):
        if features.ndim != 2 or features.dtype.kind not in "fiub":
            raise FeatureError(
                f"X: got a Dask array of shape {features.shape} and dtype {features.dtype}; expected real "
                "numbers, [N, D]"
            )
        if not all(np.isfinite(length) for length in features.shape):
            raise FeatureError(
                f"X: got a Dask array of shape {features.shape}; expected known lengths. Call compute_chunk_sizes()."
            )
        if weight_column is not None:
            raise FeatureError(
                "X: got a Dask array; expected a Parquet file for a column of weights. Leave this out: ",
                Setting("weight_column", weight_column),
            )
        return _DaskSource(features)
    table = "X.toarray()" if issparse(features) else "numpy.asarray(X)"
    raise FeatureError(
        f"X: got {brief(features)}; expected a Dask array, or the path of Parquet or .npy files. Pass "
        f"dask.array.from_array({table})."
    )


def _by_number(path: Path) -> list[tuple[bool, int, str]]:
    """Return the sort key of a file: numbers in its name count by value, as parts have no leading zeros."""
    parts = re.split(r"(\d+)", path.name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def common_type(dtypes: Sequence[np.dtype[Any]], name: str) -> np.dtype[Any]:
    """Return float32 if all dtypes are float32, else float64."""
    for dtype in dtypes:
        if dtype.kind not in "fiub":
            raise FeatureError(f"{name}: got dtype {dtype}; expected real numbers. Convert them with astype(float).")
    return np.dtype(np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64)


@dataclass(frozen=True)
class Chunk:
    """A range of rows in files, read where it is needed.

    Attributes:
        read: Reads the rows ``low`` to ``high`` of one file.
        pieces: Per file: its path, ``low`` and ``high``.
        dtype: What the rows become.
    """

    read: Callable[[str, int, int], Any]
    pieces: tuple[tuple[str, int, int], ...]
    dtype: np.dtype[Any]

    def rows(self) -> Any:
        """Return the rows ``[m, D]``."""
        return np.concatenate([np.asarray(self.read(*piece), dtype=self.dtype) for piece in self.pieces])


@dataclass(frozen=True)
class _Files:
    """Files with consecutive rows; ``starts`` are their first rows, with N at the end."""

    paths: tuple[str, ...]
    starts: tuple[int, ...]
    n_columns: int
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return self.starts[-1], self.n_columns

    def ids(self) -> Sequence[Hashable] | None:
        return None

    def weights(self) -> list[Any] | None:
        return None

    def _chunks(self, cuts: Sequence[int], read: Callable[[str, int, int], Any]) -> list[Chunk]:
        chunks = []
        for low, high in pairwise(cuts):
            pieces = [
                (path, max(low, start) - start, min(high, end) - start)
                for path, (start, end) in zip(self.paths, pairwise(self.starts), strict=True)
                if start < high and end > low
            ]
            chunks.append(Chunk(read, tuple(pieces), self.dtype))
        return chunks


class _NpySource(_Files):
    @classmethod
    def of(cls, paths: Sequence[Path]) -> "_NpySource":
        shapes, dtypes = [], []
        for path in paths:
            table = _mapped(str(path))
            if table.ndim != 2:
                raise FeatureError(f"{path}: got an array of shape {table.shape}; expected a matrix, one row per item")
            shapes.append(table.shape)
            dtypes.append(common_type([table.dtype], str(path)))
        for path, (_, n_columns) in zip(paths, shapes, strict=True):
            if n_columns != shapes[0][1]:
                raise FeatureError(
                    f"{path}: got {n_columns} columns; expected {shapes[0][1]}, as in {paths[0]}. Write all files with "
                    "the same columns."
                )
        starts = np.concatenate([[0], np.cumsum([shape[0] for shape in shapes])])
        dtype = common_type(dtypes, str(paths[0]))
        return cls(tuple(str(path.resolve()) for path in paths), tuple(starts.tolist()), shapes[0][1], dtype)

    def ranges(self, cuts: Sequence[int]) -> list[Chunk]:
        return self._chunks(cuts, _npy_rows)


def _mapped(path: str) -> Any:
    try:
        with open(path, "rb") as stream:
            return read_npy(stream, path, 0)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FeatureError(f"{path}: cannot be read ({reason}); expected the path of a .npy file") from error


def _npy_rows(path: str, low: int, high: int) -> Any:
    return _mapped(path)[low:high]


@dataclass(frozen=True)
class _ParquetSource(_Files):
    columns: tuple[str, ...] = ()
    id_name: str | None = None
    weight_name: str | None = None

    @classmethod
    def of(cls, paths: Sequence[Path], id_column: str | None, weight_column: str | None = None) -> "_ParquetSource":
        parquet = _pyarrow_parquet()
        told = []
        for path in paths:
            with decoding(str(path), FeatureError, "a whole Parquet file"):
                told.append(parquet.read_metadata(path))
        schema = told[0].schema.to_arrow_schema()
        names = list(schema.names)
        position = id_position(names, str(paths[0]), id_column)
        id_name = None if position is None else names[position]
        if weight_column is not None:
            column_position(names, str(paths[0]), weight_column)
        columns = tuple(name for name in names if name not in (id_name, weight_column))
        types = []
        for name in columns:
            kind = schema.field(name).type
            try:
                types.append(common_type([np.dtype(kind.to_pandas_dtype())], f"{paths[0]}, column {brief(name)}"))
            except (NotImplementedError, TypeError, FeatureError) as error:
                raise FeatureError(
                    f"{paths[0]}, column {brief(name)}: got {kind}; expected numbers. Write the files without it",
                    *(() if id_name else (", or name it as the column of ids, ", Setting("id_column", name))),
                    ".",
                ) from error
        starts = [0]
        for path, metadata in zip(paths, told, strict=True):
            if (found := metadata.schema.to_arrow_schema().names) != names:
                raise FeatureError(
                    f"{path}: got the columns {listed(found)}; expected {listed(names)}, as in {paths[0]}. Write all "
                    "files with the same columns."
                )
            starts.append(starts[-1] + metadata.num_rows)
        dtype = common_type(types, str(paths[0]))
        whole = tuple(str(path.resolve()) for path in paths)
        return cls(whole, tuple(starts), len(columns), dtype, columns, id_name, weight_column)

    def ids(self) -> Sequence[Hashable] | None:
        return None if self.id_name is None else self._column(self.id_name)

    def weights(self) -> list[Any] | None:
        return None if self.weight_name is None else self._column(self.weight_name)

    def _column(self, name: str) -> list[Any]:
        parquet = _pyarrow_parquet()
        values: list[Any] = []
        for path in self.paths:
            with decoding(path, FeatureError, "a whole Parquet file"):
                values += parquet.read_table(path, columns=[name])[0].to_pylist()
        return values

    def ranges(self, cuts: Sequence[int]) -> list[Chunk]:
        return self._chunks(cuts, partial(_read_parquet, self.columns))


def _read_parquet(columns: Sequence[str], path: str, low: int, high: int) -> Any:
    """Return rows of the named columns, read from their row groups."""
    whole = decoding(path, FeatureError, "a whole Parquet file")
    with whole, _pyarrow_parquet().ParquetFile(path) as file:
        lengths = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        groups = np.flatnonzero((starts[:-1] < high) & (starts[1:] > low)).tolist()
        table = file.read_row_groups(groups, columns=list(columns))
    rows = table.slice(low - int(starts[groups[0]]), high - low)
    return np.stack([rows.column(name).to_numpy() for name in columns], axis=1)


def _pyarrow_parquet() -> Any:
    return from_extra("frames", "pyarrow.parquet", "Parquet needs pyarrow")


class _DaskSource:
    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape: tuple[int, int] = tuple(int(length) for length in array.shape)  # type: ignore[assignment]
        self.dtype = common_type([array.dtype], "the Dask array")

    def ids(self) -> Sequence[Hashable] | None:
        return None

    def weights(self) -> list[Any] | None:
        return None

    def ranges(self, cuts: Sequence[int]) -> list[Any]:
        lengths = tuple(np.diff(cuts).tolist())
        blocks = self.array.astype(self.dtype).rechunk((lengths, (self.shape[1],))).to_delayed()
        return [block[0] for block in blocks]


@dataclass(frozen=True, eq=False)
class TreePart:
    """Nodes of a tree, with their properties in the whole tree.

    Attributes:
        nodes: Their numbers there, ascending ``[m]``.
        parent: Their parents' numbers there, -1 for the root.
        sizes, starts, levels, is_cluster: As in `Hierarchy`.
        reward, rise: As in `NodeRewards`.
    """

    nodes: Ints
    parent: Ints
    sizes: Ints
    starts: Ints
    levels: Ints
    is_cluster: Bools
    reward: Floats
    rise: Floats

    @classmethod
    def of(cls, tree: Hierarchy, rewards: NodeRewards, nodes: Ints) -> Self:
        """Return the part of the tree with these nodes, in ascending order."""
        return cls(
            nodes,
            tree.parent[nodes],
            tree.sizes[nodes],
            tree.starts[nodes],
            tree.levels[nodes],
            tree.is_cluster[nodes],
            rewards.reward[nodes],
            rewards.rise[nodes],
        )

    def joined(self, other: Self) -> Self:
        """Return the nodes of both parts."""
        nodes, first = np.unique(np.concatenate([self.nodes, other.nodes]), return_index=True)
        columns = {}
        for field in fields(self)[1:]:
            columns[field.name] = np.concatenate([getattr(self, field.name), getattr(other, field.name)])[first]
        return type(self)(nodes, **columns)

    def places(self, nodes: Ints) -> Ints:
        """Return the positions of these nodes in ``nodes``."""
        return np.searchsorted(self.nodes, nodes)

    def n_items(self, inner: int) -> int:
        """Return the number of items among the nodes; internal nodes start at ``inner``."""
        return int(np.searchsorted(self.nodes, inner))

    def excerpt(self, inner: int) -> Hierarchy:
        """Return the nodes, which include their parents, as a renumbered tree.

        Its sizes, levels and positions are those of the whole tree; children that are not here are left out, and a
        node of which none is here is taken for a leaf cluster: nobody plans beyond it.
        """
        n_nodes, n_items = len(self.nodes), self.n_items(inner)
        parent = np.where(self.parent < 0, -1, self.places(self.parent))
        children = np.flatnonzero(self.is_cluster & (parent >= 0))
        children = children[np.lexsort((self.starts[children], parent[children]))]
        counts = np.bincount(parent[children], minlength=n_nodes)
        tree = Hierarchy.__new__(Hierarchy)
        tree.__setstate__(
            {
                "n_items": n_items,
                "n_nodes": n_nodes,
                "root": int(np.flatnonzero(parent < 0)[0]),
                "parent": parent,
                "is_cluster": self.is_cluster,
                "is_leaf": self.is_cluster & (counts == 0),
                "child_offsets": np.concatenate([[0], np.cumsum(counts)]),
                "child_nodes": children,
                "sizes": self.sizes,
                "levels": self.levels,
                "item_order": np.argsort(self.starts[:n_items]),
                "starts": self.starts,
                "topological_order": np.argsort(self.levels, kind="stable"),
                "height": int(self.levels[self.is_cluster].max()),
                "labels": None,
                "singletons": bool(self.is_cluster[:n_items].all()),
            }
        )
        return tree

    def forest(self, inner: int) -> Hierarchy:
        """Return the nodes as a renumbered tree under one new root, which comes last."""
        parent = self.places(self.parent)
        parent = np.where(parent < len(self.nodes), parent, 0)
        parent[self.nodes[parent] != self.parent] = len(self.nodes)
        order = np.append(len(self.nodes), np.lexsort((self.levels, self.starts)))
        return Hierarchy(np.append(parent, -1), self.n_items(inner), order=order)


@dataclass(frozen=True, eq=False)
class Cut:
    """A tree in partitions.

    Attributes:
        bounds: Where the partitions begin and end in leaf order ``[P + 1]``.
        top: The nodes that no partition holds whole, ascending.
        boundary: The children of the top that are not in the top themselves, ascending.
        shared: The nodes that every partition has to know, ascending: the top and what lies ``reach`` levels below.
        by_partition: All nodes in order of their partition; those of one partition ascending.
        offsets: Where each partition's begin in ``by_partition`` ``[P + 1]``.
    """

    bounds: Ints
    top: Ints
    boundary: Ints
    shared: Ints
    by_partition: Ints
    offsets: Ints

    @classmethod
    def of(cls, tree: Hierarchy, partition_items: int, reach: int) -> Self:
        """Return the tree in partitions of about ``partition_items`` items, for a look-ahead of ``reach`` levels.

        Example:
            >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13]], 8)
            >>> cut = Cut.of(tree, 4, 1)
            >>> cut.bounds, cut.top, cut.shared
            (array([0, 4, 8]), array([14]), array([12, 13, 14]))
        """
        bounds = cut_bounds(tree, partition_items)
        partition = np.searchsorted(bounds, tree.starts, side="right") - 1
        whole = tree.starts + tree.sizes <= bounds[partition + 1]
        in_top = ~whole
        known = np.append(in_top, False)  # no parent is -1, which is never known
        for _ in range(min(reach, int(tree.height))):
            known[:-1] |= known[tree.parent]
        shared = known[:-1] & tree.is_cluster
        boundary = np.flatnonzero(whole & np.append(in_top, False)[tree.parent])
        n_partitions = len(bounds) - 1
        partition[in_top] = n_partitions
        order = np.argsort(partition, kind="stable")
        offsets = np.searchsorted(partition[order], np.arange(n_partitions + 1))
        return cls(bounds, np.flatnonzero(in_top), boundary, np.flatnonzero(shared), order, offsets)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def nodes(self, partition: int) -> Ints:
        """Return the nodes of a partition in ascending order."""
        return self.by_partition[self.offsets[partition] : self.offsets[partition + 1]]


def cut_bounds(tree: Hierarchy, partition_items: int) -> Ints:
    """Return the bounds ``[P + 1]``, in leaf order, of partitions of about ``partition_items`` items.

    The largest subtrees of no more items are put together while they fit; a leaf cluster is never cut, however large.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 2], [3, 4, 5], [6, 7], [8, 9, 10]], 8)
        >>> cut_bounds(tree, 5)
        array([0, 3, 8])
    """
    n_items = tree.n_items
    divisible = (tree.sizes > partition_items) & ~tree.is_leaf
    if not divisible[tree.root]:
        return np.array([0, n_items])
    pieces = np.flatnonzero(~divisible & np.append(divisible, False)[tree.parent])
    ends = np.append(np.sort(tree.starts[pieces])[1:], n_items)
    bounds = [0]
    while bounds[-1] < n_items:
        at = int(np.searchsorted(ends, bounds[-1] + partition_items, side="right")) - 1
        if at < 0 or ends[at] <= bounds[-1]:
            at += 1
        bounds.append(int(ends[at]))
    return np.array(bounds)
