"""Features that lie outside this process, read by row ranges: a Dask array, Parquet files, a folder of ``.npy``."""

import os
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pomdp_hier._extras import from_extra
from pomdp_hier._messages import brief
from pomdp_hier.errors import FeatureError, Setting
from pomdp_hier.features import _delimited
from pomdp_hier.features._archives import read_npy
from pomdp_hier.files.decoding import decoding

__all__ = ["Source", "as_source"]

Reader = Callable[[int, int], Any]


class Source(Protocol):
    """Rows of features, in order, that can be read a range at a time.

    Attributes:
        shape: ``(N, D)``.
        dtype: Float32 or float64, what the rows are read as.
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...

    def ids(self) -> Sequence[Hashable] | None:
        """Return the rows' ids if the source has some."""

    def ranges(self, cuts: Sequence[int]) -> Sequence[Any]:
        """Return the rows between the cuts, each as an argument of `rows`."""


def as_source(features: Any, id_column: str | None = None) -> Source:
    """Return what reads these features.

    Args:
        features: A Dask array ``[N, D]``, or a path: a Parquet file or folder, a ``.npy`` file or a folder of them;
            the files of a folder follow one another by name, numbers in the names by their value (2 before 10).
        id_column: The Parquet column of ids, by default the one called ``id``, ``item`` or ``item_id``.

    Raises:
        FeatureError: For anything else, and for files that do not fit together.
        MissingExtraError: For Parquet without pyarrow.
    """
    if isinstance(features, str | os.PathLike):
        path = Path(features)
        files = sorted(path.iterdir(), key=_by_number) if path.is_dir() else [path]
        if tables := [file for file in files if file.suffix.lower() in (".parquet", ".pq")]:
            return _ParquetSource.of(tables, id_column)
        if arrays := [file for file in files if file.suffix.lower() == ".npy"]:
            if id_column is not None:
                raise FeatureError(
                    f"{path}: got .npy files; expected named columns. Leave this out: ", Setting("id_column", id_column)
                )
            return _NpySource.of(arrays)
        raise FeatureError(
            f"{path}: expected a .parquet or .npy file, or a folder of such files; write the features as one of them"
        )
    dask_array = sys.modules.get("dask.array")  # whoever holds a Dask array has it
    if dask_array is not None and isinstance(features, dask_array.Array):
        if features.ndim != 2 or features.dtype.kind not in "fiub":
            raise FeatureError(
                f"the Dask array has shape {features.shape} and dtype {features.dtype}; expected real numbers, [N, D]"
            )
        if not all(np.isfinite(length) for length in features.shape):
            raise FeatureError("the Dask array does not know its lengths; call compute_chunk_sizes() first")
        return _DaskSource(features)
    raise FeatureError(
        f"features are a {type(features).__name__}; expected a Dask array (dask.array.from_array makes one), or the "
        "path of Parquet or .npy files"
    )


def _by_number(path: Path) -> list[tuple[bool, int, str]]:
    """Return a file's place among others: Dask and others number their parts without leading zeros."""
    parts = re.split(r"(\d+)", path.name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def common_type(dtypes: Sequence[np.dtype[Any]], name: str) -> np.dtype[Any]:
    """Return float32 if all are, else float64.

    Raises:
        FeatureError: If one is not real.
    """
    for dtype in dtypes:
        if dtype.kind not in "fiub":
            raise FeatureError(f"{name}: expected real numbers, found {dtype}; convert with astype(float)")
    return np.dtype(np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64)


@dataclass(frozen=True)
class Chunk:
    """A range of rows in files, to be read where it is needed.

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
    """Files whose rows follow one another; ``starts`` are their first rows, with N at the end."""

    paths: tuple[str, ...]
    starts: tuple[int, ...]
    n_columns: int
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return self.starts[-1], self.n_columns

    def ids(self) -> Sequence[Hashable] | None:
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
                raise FeatureError(f"{path}: expected a matrix, found an array of shape {table.shape}")
            shapes.append(table.shape)
            dtypes.append(common_type([table.dtype], str(path)))
        wide = [path for path, shape in zip(paths, shapes, strict=True) if shape[1] != shapes[0][1]]
        if wide:
            raise FeatureError(f"{wide[0]}: another number of columns than {paths[0]} has, {shapes[0][1]}")
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
        raise FeatureError(f"{path}: cannot be read ({error}); check the path") from error


def _npy_rows(path: str, low: int, high: int) -> Any:
    return _mapped(path)[low:high]


@dataclass(frozen=True)
class _ParquetSource(_Files):
    columns: tuple[str, ...] = ()
    id_name: str | None = None

    @classmethod
    def of(cls, paths: Sequence[Path], id_column: str | None) -> "_ParquetSource":
        parquet = _pyarrow_parquet()
        told = []
        for path in paths:
            with decoding(str(path), FeatureError, "a whole Parquet file"):
                told.append(parquet.read_metadata(path))
        schema = told[0].schema.to_arrow_schema()
        names = list(schema.names)
        position = _delimited.id_position(names, str(paths[0]), id_column)
        id_name = None if position is None else names[position]
        columns = tuple(name for name in names if name != id_name)
        types = []
        for name in columns:
            kind = schema.field(name).type
            try:
                types.append(common_type([np.dtype(kind.to_pandas_dtype())], f"{paths[0]}, column {brief(name)}"))
            except (NotImplementedError, TypeError) as error:
                raise FeatureError(f"{paths[0]}, column {brief(name)}: {kind} is not a number; leave it out") from error
        starts = [0]
        for path, metadata in zip(paths, told, strict=True):
            if metadata.schema.to_arrow_schema().names != names:
                raise FeatureError(f"{path}: other columns than {paths[0]}; write both with the same columns")
            starts.append(starts[-1] + metadata.num_rows)
        dtype = common_type(types, str(paths[0]))
        return cls(tuple(str(path.resolve()) for path in paths), tuple(starts), len(columns), dtype, columns, id_name)

    def ids(self) -> Sequence[Hashable] | None:
        if self.id_name is None:
            return None
        parquet = _pyarrow_parquet()
        ids: list[Hashable] = []
        for path in self.paths:
            with decoding(path, FeatureError, "a whole Parquet file"):
                ids += parquet.read_table(path, columns=[self.id_name])[0].to_pylist()
        return ids

    def ranges(self, cuts: Sequence[int]) -> list[Chunk]:
        return self._chunks(cuts, partial(_read_parquet, self.columns))


def _read_parquet(columns: Sequence[str], path: str, low: int, high: int) -> Any:
    """Return rows of the named columns, from the row groups in which they lie."""
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

    def ranges(self, cuts: Sequence[int]) -> list[Any]:
        lengths = tuple(np.diff(cuts).tolist())
        blocks = self.array.astype(self.dtype).rechunk((lengths, (self.shape[1],))).to_delayed()
        return [block[0] for block in blocks]
