"""Features from tables with columns of several kinds: data frames, Parquet, CSV with text."""

from collections.abc import Hashable, Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import open_csv
from pomdp_hier._io.memory import memory_available, require_memory
from pomdp_hier._text import brief
from pomdp_hier.errors import FeatureError, ParameterError, Setting
from pomdp_hier.features import _delimited, _parquet
from pomdp_hier.features.items import FeatureTable
from pomdp_hier.features.loading import text_features


def read_frame(
    frame: Any,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    text: str | Sequence[str] | None = None,
    embedding: str | None = None,
    tfidf: Mapping[str, Any] | None = None,
    memory: int | None = None,
) -> FeatureTable:
    """Return the features in a data frame of pandas, Polars or another library known to narwhals (extra ``frames``).

    By default all columns but that of the ids are numeric and form the matrix, as float32 if all are float32. The ids
    are ``id_column``, or the first column called ``id``, ``item`` or ``item_id``, or the index of a pandas frame,
    unless it counts the rows.

    Args:
        frame: The table, one row per item.
        columns: The numeric columns to use; all by default.
        id_column: The column of ids.
        text: Use the TF-IDF of this column, or of several joined by a space.
        embedding: Use the vectors in this column of lists.
        tfidf: Options of `pomdp_hier.features.text_features`.
        memory: The maximum size of the features in bytes; by default the available memory.

    Raises:
        FeatureError: A column is missing, has a gap, or has an unexpected type.
        ParameterError: More than one of ``columns``, ``text``, ``embedding`` is given.
        MissingExtraError: Narwhals or pyarrow is not installed, or scikit-learn for ``text``.

    Example:
        >>> import pandas as pd
        >>> shelf = pd.DataFrame({"magic": [5, 0], "battles": [3, 5]}, index=["Harry Potter", "Dunkirk"])
        >>> features = read_frame(shelf)
        >>> features.matrix.tolist(), features.ids
        ([[5.0, 3.0], [0.0, 5.0]], ('Harry Potter', 'Dunkirk'))
    """
    if sum(option is not None for option in (columns, text, embedding)) > 1:
        raise ParameterError("columns, text, embedding: got several; expected at most one")
    name = "the data frame"
    table, index = _as_arrow(frame, name)
    if columns is not None:
        position = _delimited.id_position(table.column_names, name, id_column)
        kept = [*([] if position is None else [table.column_names[position]]), *columns]
        for column in columns:
            _column(table, name, column)
        table = table.select(list(dict.fromkeys(kept)))
    found = from_arrow(table, name, id_column, text, embedding, tfidf, memory)
    if found.ids is None and index is not None:
        found = FeatureTable(found.matrix, index, found.columns)
    return found


def from_arrow(
    table: Any,
    name: str,
    id_column: str | None,
    text: str | Sequence[str] | None,
    embedding: str | None,
    tfidf: Mapping[str, Any] | None = None,
    memory: int | None = None,
) -> FeatureTable:
    """Return the features in a pyarrow table; the arguments are those of `read_frame`.

    Raises:
        FeatureError: As `read_frame`.
    """
    limit = memory_available() if memory is None else memory
    _parquet.refuse_doubled(table.column_names, name)
    if text is None and embedding is None:
        require_memory(8 * table.num_rows * max(1, table.num_columns), limit, name)
        return FeatureTable(*_parquet.from_table(table, name, id_column))
    position = _delimited.id_position(table.column_names, name, id_column)
    ids = None if position is None else _parquet.id_cells(table.column(position), name, table.column_names[position])
    if embedding is not None:
        return FeatureTable(_embeddings(_column(table, name, embedding), name, embedding, limit), ids, None)
    columns = [_column(table, name, column).to_pylist() for column in _names(text)]
    return text_features(_joined(columns, name, _names(text)), ids=ids, name=name, **(tfidf or {}))


def read_text_columns(
    stream: IO[bytes],
    name: str,
    id_column: str | None,
    text: str | Sequence[str],
    tfidf: Mapping[str, Any] | None = None,
) -> FeatureTable:
    """Return the TF-IDF of columns of delimited text with a header.

    Raises:
        FeatureError: The text is not a table in UTF-8, or has no such column.
    """
    table = open_csv(stream, FeatureError, name=name)
    position = _delimited.id_position(table.columns, name, id_column)
    wanted = _names(text)
    places = [_delimited.column_position(table.columns, name, column) for column in wanted]
    rows = [row for _, row in table.rows]
    texts = [" ".join(row[place] for place in places) for row in rows]
    ids = None if position is None else tuple(row[position] for row in rows)
    return text_features(texts, ids=ids, name=name, **(tfidf or {}))


def _as_arrow(frame: Any, name: str) -> tuple[Any, tuple[Hashable, ...] | None]:
    """Return the frame as a pyarrow table, and the ids in the index of a pandas frame, or None."""
    nw, pa = (from_extra("frames", name, "a data frame needs narwhals and pyarrow") for name in ("narwhals", "pyarrow"))
    try:
        known = nw.from_native(nw.to_native(frame, pass_through=True), eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise FeatureError(
            f"{name}: got two columns of one name ({' '.join(str(error).split())}); expected distinct names. "
            "Rename one."
        ) from error
    except TypeError as error:
        raise FeatureError(
            f"frame: got {brief(frame)}; expected a data frame that narwhals reads. Collect a lazy one, and pass "
            "an array on without read_frame."
        ) from error
    try:
        table = known.to_arrow()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise FeatureError(f"{name}: got a column of several types ({error}); expected one. Convert it.") from error
    index = nw.maybe_get_index(known)
    ids = None if index is None else tuple(index.tolist())
    table = table.select([column for column in known.columns if column in table.column_names])
    return table, None if ids == tuple(range(table.num_rows)) else ids


def _names(text: str | Sequence[str] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


def _column(table: Any, name: str, column: str) -> Any:
    return table.column(_delimited.column_position(table.column_names, name, column))


def _joined(columns: Sequence[Sequence[Any]], name: str, names: Sequence[str]) -> list[str]:
    """Return the joined texts of each row; a missing value counts as an empty text."""
    for column, cells in zip(names, columns, strict=True):
        wrong = next((row for row, cell in enumerate(cells) if cell is not None and not isinstance(cell, str)), None)
        if wrong is not None:
            raise FeatureError(
                f"{name}, row {wrong}, column {brief(column)}: got {brief(cells[wrong])}; expected text. Leave out ",
                Setting("text", column),
            )
    return [" ".join(cell for cell in row if cell is not None) for row in zip(*columns, strict=True)]


def _embeddings(column: Any, name: str, label: str, limit: int) -> NDArray[np.floating[Any]]:
    """Return a column of lists of numbers, all of one length, as a matrix."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    kind = column.type
    if not (kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)):
        raise FeatureError(f"{name}, column {brief(label)}: got {kind}; expected lists of numbers, one vector per item")
    inner = kind.value_type
    if not (kinds.is_floating(inner) or kinds.is_integer(inner)):
        raise FeatureError(f"{name}, column {brief(label)}: got lists of {inner}; expected lists of numbers")
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise FeatureError(
            f"{name}, row {row}, column {brief(label)}: got no vector; expected one. Fill it in, or remove the row."
        )
    lengths = pc.list_value_length(column).to_numpy()
    odd = np.flatnonzero(lengths != lengths[:1])
    if odd.size:
        raise FeatureError(
            f"{name}, row {odd[0]}, column {brief(label)}: got {lengths[odd[0]]} numbers; expected {lengths[0]}, as in "
            "row 0"
        )
    single = kinds.is_float32(inner) or kinds.is_float16(inner)
    require_memory((4 if single else 8) * int(lengths.sum()), limit, f"{name}, column {brief(label)}")
    flat = pc.list_flatten(column)
    if flat.null_count:
        raise FeatureError(
            f"{name}, column {brief(label)}: got a missing value in a vector; expected numbers. Fill it in, or "
            "remove the row."
        )
    matrix: NDArray[np.floating[Any]] = flat.to_numpy().astype(np.float32 if single else np.float64, copy=False)
    if not matrix.size:
        raise FeatureError(
            f"{name}, column {brief(label)}: got no numbers; expected at least one row and one number per row"
        )
    return matrix.reshape(len(lengths), -1)
