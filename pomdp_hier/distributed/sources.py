"""Features in the form that the workers read."""

import os
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from scipy.sparse import issparse, vstack

from pomdp_hier._arguments import check_path
from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import decoding, memory_available
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import FeatureError, Setting
from pomdp_hier.features.readers import column_position, id_position, read_npy, read_npz
from pomdp_hier.features.validation import check_features

Reader = Callable[[int, int], Any]


class Source(Protocol):
    """Rows of features, read by range.

    Attributes:
        shape: ``(N, D)``.
        dtype: Float32 or float64, what the rows are read as.
        sparse: Whether the rows are CSR.
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def sparse(self) -> bool: ...

    def weights(self) -> list[Any] | None:
        """Return the weights of the rows, if their column was named."""

    def ids(self) -> Sequence[Hashable] | None:
        """Return the ids of the rows, or None."""

    def ranges(self, cuts: Sequence[int]) -> Sequence[Any]:
        """Return the ranges between the cuts."""


def as_source(features: Any, id_column: str | None = None, weight_column: str | None = None) -> Source:
    """Return the source of the features.

    Args:
        features: A Dask array ``[N, D]``, an array or sparse matrix, or a path. A path names a ``.parquet``, ``.npy``
            or ``.npz`` file or a folder of them, or is a list of such files. The files of a folder follow one another
            by name, numbers in the names by their value (2 before 10).
        id_column: The Parquet column of ids, by default the one called ``id``, ``item`` or ``item_id``.
        weight_column: The Parquet column of weights, which is not a feature.
    """
    several = isinstance(features, list | tuple) and all(isinstance(path, str | os.PathLike) for path in features)
    if isinstance(features, str | os.PathLike) or (several and len(features)):
        return _of_paths(features if several else [features], id_column, weight_column)
    if issparse(features) or isinstance(features, np.ndarray):
        _no_columns("X: got an array", id_column, weight_column)
        table = check_features(features, features.shape[0] if features.ndim else 0)
        return _ArraySource(table)
    dask_array = sys.modules.get("dask.array")  # whoever holds a Dask array has it
    if dask_array is not None and isinstance(features, dask_array.Array):
        if features.ndim != 2 or features.dtype.kind not in "fiub":
            raise FeatureError(
                f"X: got a Dask array of shape {features.shape} and dtype {features.dtype}; expected real "
                "numbers, [N, D]."
            )
        if not all(np.isfinite(length) for length in features.shape):
            raise FeatureError(
                f"X: got a Dask array of shape {features.shape}; expected known lengths. Call compute_chunk_sizes()."
            )
        if weight_column is not None:
            raise FeatureError(
                "X: got a Dask array; expected a Parquet file for a column of weights. Leave this out: ",
                Setting("weight_column", weight_column),
                ".",
            )
        return _DaskSource(features)
    raise FeatureError(
        f"X: got {brief(features)}; expected an array, a sparse matrix, a Dask array, or the path of Parquet, .npy or "
        ".npz files. Pass numpy.asarray(X)."
    )


def _of_paths(paths: Sequence[Any], id_column: str | None, weight_column: str | None) -> Source:
    """Return the source of files: one, those of a folder, or those of a list in its order."""
    for path in paths:
        check_path("X", path)
    path = Path(paths[0])
    files = [Path(path) for path in paths]
    if len(paths) == 1 and path.is_dir():
        files = sorted(path.iterdir(), key=_by_number)
    if tables := [file for file in files if file.suffix.lower() in (".parquet", ".pq")]:
        found = tables
        source: Source = _ParquetSource.of(tables, id_column, weight_column)
    for suffix, read in ((".npy", _mapped), (".npz", _unzipped)):
        if not tables and (tables := [file for file in files if file.suffix.lower() == suffix]):
            _no_columns(f"{path}: got {suffix} files", id_column, weight_column)
            found, source = tables, _TableSource.of(tables, read)
    if not tables:
        raise FeatureError(f"X: got {path}; expected a .parquet, .npy or .npz file, or a folder of such files.")
    if len(paths) > 1 and len(found) != len(files):
        other = next(file for file in files if file not in found)
        raise FeatureError(
            f"X: got {other} beside {found[0]}; expected files of one kind. Write all of them in one format."
        )
    return source


def _no_columns(got: str, id_column: str | None, weight_column: str | None) -> None:
    """Raise if a column is named of features without names."""
    for option, column in (("id_column", id_column), ("weight_column", weight_column)):
        if column is not None:
            raise FeatureError(f"{got}; expected named columns. Leave this out: ", Setting(option, column), ".")


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
        pieces: Per file: its path, or the table itself, with ``low`` and ``high``.
        dtype: What the rows become.
    """

    read: Callable[[Any, int, int], Any]
    pieces: tuple[tuple[Any, int, int], ...]
    dtype: np.dtype[Any]

    def rows(self) -> Any:
        """Return the rows ``[m, D]``, dense or CSR."""
        tables = [self.read(*piece) for piece in self.pieces]
        if issparse(tables[0]):
            return vstack(tables, format="csr", dtype=self.dtype)
        return np.concatenate([np.asarray(table, dtype=self.dtype) for table in tables])


@dataclass(frozen=True)
class _Files:
    """Files with consecutive rows; ``starts`` are their first rows, with N at the end."""

    paths: tuple[str, ...]
    starts: tuple[int, ...]
    n_columns: int
    dtype: np.dtype[Any]
    sparse: bool = False

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


@dataclass(frozen=True)
class _TableSource(_Files):
    """Files of one table each, which ``read`` returns."""

    read: Callable[[str], Any] = np.load

    @classmethod
    def of(cls, paths: Sequence[Path], read: Callable[[str], Any]) -> "_TableSource":
        shapes, dtypes, kinds = [], [], []
        for path in paths:
            table = read(str(path))
            if table.ndim != 2:
                raise FeatureError(f"{path}: got an array of shape {table.shape}; expected a matrix, one row per item.")
            shapes.append(table.shape)
            dtypes.append(common_type([table.dtype], str(path)))
            kinds.append(issparse(table))
        for path, (_, n_columns), sparse in zip(paths, shapes, kinds, strict=True):
            if n_columns != shapes[0][1]:
                raise FeatureError(
                    f"{path}: got {n_columns} columns; expected {shapes[0][1]}, as in {paths[0]}. Write all files with "
                    "the same columns."
                )
            if sparse != kinds[0]:
                kind, other = ("sparse", "dense") if sparse else ("dense", "sparse")
                raise FeatureError(
                    f"{path}: got a {kind} array; expected a {other} one, as in {paths[0]}. Write all files in "
                    "one format."
                )
        starts = np.concatenate([[0], np.cumsum([shape[0] for shape in shapes])])
        dtype = np.dtype(np.float64) if kinds[0] else common_type(dtypes, str(paths[0]))
        whole = tuple(str(path.resolve()) for path in paths)
        return cls(whole, tuple(starts.tolist()), shapes[0][1], dtype, kinds[0], read)

    def ranges(self, cuts: Sequence[int]) -> list[Chunk]:
        return self._chunks(cuts, partial(_file_rows, self.read))


def _file_rows(read: Callable[[str], Any], path: str, low: int, high: int) -> Any:
    return read(path)[low:high]


def _mapped(path: str) -> Any:
    """Return the array of a ``.npy`` file, memory-mapped."""
    return _opened(path, "npy", lambda stream: read_npy(stream, path, 0))


def _unzipped(path: str) -> Any:
    """Return the checked matrix of a ``.npz`` file."""
    table = _opened(path, "npz", lambda stream: read_npz(stream, path, None, memory_available()))
    return check_features(table, table.shape[0], name=path) if issparse(table) else table


def _opened(path: str, kind: str, read: Callable[[IO[bytes]], Any]) -> Any:
    try:
        with open(path, "rb") as stream:
            return read(stream)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FeatureError(f"{path}: got a path that cannot be read ({reason}); expected a .{kind} file.") from error


@dataclass(frozen=True, eq=False)
class _ArraySource:
    """An array or CSR matrix of this process; each worker gets its rows."""

    table: Any

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_columns = self.table.shape
        return n_rows, n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64) if self.sparse else self.table.dtype

    @property
    def sparse(self) -> bool:
        return bool(issparse(self.table))

    def ids(self) -> Sequence[Hashable] | None:
        return None

    def weights(self) -> list[Any] | None:
        return None

    def ranges(self, cuts: Sequence[int]) -> list[Chunk]:
        return [Chunk(_all_rows, ((self.table[low:high], 0, high - low),), self.dtype) for low, high in pairwise(cuts)]


def _all_rows(table: Any, low: int, high: int) -> Any:
    return table[low:high]


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
        return cls(whole, tuple(starts), len(columns), dtype, False, columns, id_name, weight_column)

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
        self.array, self.sparse = array, bool(issparse(getattr(array, "_meta", None)))
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
