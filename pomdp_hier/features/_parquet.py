"""Reader of a table of numbers from Parquet (extra ``frames``)."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._imports import from_extra
from pomdp_hier._io.decoding import decoding
from pomdp_hier._io.memory import require_memory
from pomdp_hier._text import brief
from pomdp_hier.errors import FeatureError, Setting
from pomdp_hier.features import _delimited


def read(
    stream: IO[bytes], name: str, id_column: str | None, limit: int
) -> tuple[NDArray[np.generic], tuple[Hashable, ...] | None, tuple[str, ...]]:
    """Return the matrix, the ids if there is an id column, and the names of the other columns.

    Raises:
        FeatureError: The file is damaged, claims more than ``limit`` bytes, or has a column that is no
            number.
        MissingExtraError: Pyarrow is not installed.
    """
    return from_table(open_table(stream, name, id_column, limit), name, id_column)


def open_table(stream: IO[bytes], name: str, id_column: str | None, limit: int, wanted: Sequence[str] = ()) -> Any:
    """Return the file as a pyarrow table: all columns, or the ids and the wanted ones.

    Raises:
        FeatureError: The file is damaged, claims more than ``limit`` bytes, or has no such column.
        MissingExtraError: Pyarrow is not installed.
    """
    pq = from_extra("frames", "pyarrow.parquet", f"{name} is a Parquet file, which needs pyarrow")
    with decoding(name, FeatureError, "a whole Parquet file"):
        file = pq.ParquetFile(stream)
        columns = list(file.schema_arrow.names)
        refuse_doubled(columns, name)
        position = _delimited.id_position(columns, name, id_column)
        if wanted:
            columns = [column for at, column in enumerate(columns) if at == position or column in wanted]
        require_memory(8 * file.metadata.num_rows * max(1, len(columns)), limit, name)
        return file.read(columns=columns)


def refuse_doubled(columns: Sequence[str], name: str) -> None:
    """Raise if two columns have the same name.

    Raises:
        FeatureError: Two columns have one name.
    """
    for column, count in Counter(columns).items():
        if count > 1:
            raise FeatureError(
                f"{name}: got {count} columns named {brief(column)}; expected distinct names. Rename them."
            )


def id_cells(column: Any, name: str, label: str) -> tuple[Hashable, ...]:
    """Return the ids in a column of a pyarrow table.

    Raises:
        FeatureError: They are lists or records, or dates that Python has no value for.
    """
    what, expected = f"{name}, column {brief(label)} of {column.type}", "ids"
    with decoding(what, FeatureError, expected, "Write the ids as text or integers"):
        ids = tuple(column.to_pylist())
        hash(ids)
    return ids


def from_table(
    table: Any, name: str, id_column: str | None
) -> tuple[NDArray[np.generic], tuple[Hashable, ...] | None, tuple[str, ...]]:
    """Return the same as `read` for a pyarrow table."""
    position = _delimited.id_position(table.column_names, name, id_column)
    ids = None
    if position is not None:
        ids = id_cells(table.column(position), name, table.column_names[position])
        table = table.remove_column(position)
    matrix = np.empty((table.num_rows, table.num_columns), dtype=_common_type(table, name))
    for index in range(table.num_columns):
        matrix[:, index] = table.column(index).to_numpy()
    return matrix, ids, tuple(table.column_names)


def _common_type(table: Any, name: str) -> np.dtype[Any]:
    """Return float32 if every column is, else float64, for numeric columns without missing values."""
    import pyarrow.types as kinds

    for field, column in zip(table.schema, table.columns, strict=True):
        if not (kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_boolean(field.type)):
            raise FeatureError(
                f"{name}, column {brief(field.name)}: got {field.type}; expected numbers. Remove it, or name it as "
                "the column of ids, ",
                Setting("id_column", field.name),
                ", of text, ",
                Setting("text"),
                ", or of vectors, ",
                Setting("embedding"),
            )
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise FeatureError(
                f"{name}, row {row}, column {brief(field.name)}: got no value; expected a number. Fill it in, or "
                "remove the row."
            )
    single = all(kinds.is_float32(field.type) for field in table.schema)
    return np.dtype(np.float32 if single and table.num_columns else np.float64)
