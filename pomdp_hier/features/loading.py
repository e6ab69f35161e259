"""Features from files, data frames and texts."""

import io
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from pomdp_hier._arguments import check_integer, check_path, unexpected
from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import check_kind, kind_of, memory_available, open_csv, require_memory, without_sheet
from pomdp_hier._io.workbooks import is_workbook, unpacked_table
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import Argument, FeatureError, ParameterError, Setting
from pomdp_hier.features.items import FeatureTable
from pomdp_hier.features.readers import (
    column_position,
    from_table,
    id_cells,
    id_position,
    open_table,
    read_delimited,
    read_npy,
    read_npz,
    read_parquet,
    read_weights,
    refuse_doubled,
)


def load_features(
    path: str | Path | IO[bytes],
    *,
    key: str | None = None,
    id_column: str | None = None,
    text: str | Sequence[str] | None = None,
    embedding: str | None = None,
    tfidf: Mapping[str, Any] | None = None,
    memory: int | None = None,
    weight_column: str | None = None,
) -> FeatureTable:
    """Return the features in a ``.npz`` (sparse or dense), ``.npy``, delimited text, Parquet or Excel file.

    Each of them may be compressed with gzip. A sparse ``.npz`` of ``scipy.sparse.save_npz`` is returned as CSR. In a
    dense one the array is ``key``, or ``X``, or the only one. Delimited text (comma, tab or semicolon) has a header;
    every column is numeric except the id column: ``id_column``, or else the first if it is called ``id``, ``item`` or
    ``item_id``. The same holds for the columns of a Parquet file (extra ``frames``) and of a workbook (``.xlsx``, extra
    ``excel``). The first sheet of a workbook is read, or the one named after a ``#``, as in ``shop.xlsx#Features``.

    A table may also contain text or, in Parquet, vectors: see ``text`` and ``embedding``. For a data frame in memory
    see `pomdp_hier.features.read_frame`.

    Args:
        path: The file, ``-`` for standard input, or an open binary file.
        key: The name of the array in a dense ``.npz``.
        id_column: The column of ids.
        text: The column of texts for TF-IDF (extra ``text``), or several, joined by a space.
        embedding: The column of a Parquet file with one vector per item, as lists.
        tfidf: Options of `pomdp_hier.features.text_features`.
        memory: The maximum size of the features in bytes; by default the available memory. A ``.npy`` file of more
            than half of it is memory-mapped.
        weight_column: The column of traffic or sales, which is not a feature: the result has it as ``weights``, for
            ``sample_weight``. In a ``.npz``, an array with one number per row.

    Raises:
        FeatureError: The file cannot be read, is truncated, is not a feature file, does not contain a numeric matrix,
            or declares a size above ``memory``.
        ParameterError: Both ``text`` and ``embedding`` are given, or an argument without effect on this kind of file.
        MissingExtraError: An extra is not installed: ``frames`` for Parquet, ``excel`` for a workbook, or ``text`` if
            text is given.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "shelf.csv")
        ...     _ = file.write_text("id,magic,battles\\nHarry Potter,5,3\\nDunkirk,0,5\\n")
        ...     features = load_features(file)
        >>> features.matrix.tolist(), features.ids
        ([[5.0, 3.0], [0.0, 5.0]], ('Harry Potter', 'Dunkirk'))
    """
    if text is not None and embedding is not None:
        raise ParameterError("text, embedding: got both; expected at most one.")
    if tfidf is not None and not isinstance(tfidf, Mapping):
        raise ParameterError(Argument("tfidf"), f": got {brief(tfidf)}; expected a dict of options.")
    if tfidf and text is None:
        raise ParameterError(
            Argument(next(iter(tfidf))),
            ": got an option of text; expected a column of text. Name it: ",
            Setting("text"),
            ".",
        )
    if isinstance(path, (str, Path)):
        name = "standard input" if str(path) == "-" else str(path)
    else:
        name = str(getattr(path, "name", "the open file"))
    limit = memory_available() if memory is None else memory
    try:
        with _opened(path) as opened:
            stream, kind = _recognised(opened, name, limit)
            if key is not None and kind != "npz":
                raise ParameterError(
                    f"{name}: got no .npz; expected an archive of arrays. Leave this out: ", Setting("key", key), "."
                )
            if id_column is not None and kind in ("npz", "npy"):
                raise ParameterError(
                    f"{name}: got a bare array; expected named columns. Leave this out: ",
                    Setting("id_column", id_column),
                    ".",
                )
            weights = None
            if weight_column is not None:
                weights = read_weights(stream, kind, name, weight_column, limit)
                stream.seek(0)
            if text is not None or embedding is not None:
                mixed = _read_mixed(stream, kind, name, id_column, text, embedding, tfidf, limit)
                return replace(mixed, weights=weights)
            if kind == "npz":
                matrix, ids, columns = read_npz(stream, name, key, limit), None, None
            elif kind == "npy":
                matrix, ids, columns = read_npy(stream, name, limit), None, None
            elif kind == "parquet":
                matrix, ids, columns = read_parquet(stream, name, id_column, limit)
            else:
                matrix, ids, columns = read_delimited(stream, name, id_column)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FeatureError(f"{name}: got a path that cannot be read ({reason}); expected a feature file.") from error
    if weight_column is not None and columns is not None:
        at = columns.index(weight_column)
        matrix, columns = np.delete(matrix, at, axis=1), columns[:at] + columns[at + 1 :]
    return FeatureTable(_checked(matrix, name, limit), ids, columns, name, weights)


def _opened(path: str | Path | IO[bytes]) -> IO[bytes]:
    """Return the file as a seekable byte stream; standard input and open files are read to the end."""
    if not isinstance(path, (str, Path)):
        if not callable(getattr(path, "read", None)):
            raise FeatureError(
                f"path: got {brief(path)}; expected a path or an open file. Pass features in memory directly, without "
                "load_features."
            )
        return io.BytesIO(path.read())
    if str(path) == "-":
        if sys.stdin is None:
            raise OSError("standard input is closed.")
        return io.BytesIO(sys.stdin.buffer.read())
    check_path("path", path)
    return open(without_sheet(str(path))[0], "rb")


def _recognised(stream: IO[bytes], name: str, limit: int) -> tuple[IO[bytes], str]:
    """Return the decompressed stream, and the kind of feature file."""
    kind = kind_of(_start(stream))
    if kind.name in ("gzip", "excel") or is_workbook(name):
        stream = io.BytesIO(unpacked_table(stream.read(), name, FeatureError, limit))
        kind = kind_of(_start(stream))
    check_kind(kind, name, FeatureError, ("npy", "npz", "parquet", "text"))
    return stream, kind.name


def _start(stream: IO[bytes]) -> bytes:
    start = stream.read(4096)
    stream.seek(0)
    return start


def _read_mixed(
    stream: IO[bytes],
    kind: str,
    name: str,
    id_column: str | None,
    text: str | Sequence[str] | None,
    embedding: str | None,
    tfidf: Mapping[str, Any] | None,
    limit: int,
) -> FeatureTable:
    """Return the TF-IDF of columns of text, or the vectors in a column, of Parquet or delimited text."""
    if kind == "parquet":
        wanted = [embedding] if embedding is not None else [text] if isinstance(text, str) else list(text or ())
        table = open_table(stream, name, id_column, limit, wanted)
        return from_arrow(table, name, id_column, text, embedding, tfidf, limit)
    if text is None or kind != "text":
        what = "vectors" if text is None else "delimited text or text"
        option = Setting("embedding" if text is None else "text")
        raise FeatureError(
            f"{name}: got no named columns of this kind; expected {what} in Parquet. Leave this out: ", option, "."
        )
    return read_text_columns(stream, name, id_column, text, tfidf)


def _checked(matrix: Any, name: str, limit: int) -> Any:
    """Return the matrix of real numbers; half precision and integers become float64."""
    if matrix.dtype.names:
        remedy = "Save numpy.lib.recfunctions.structured_to_unstructured(X)."
        raise FeatureError(f"{name}: got records of {listed(matrix.dtype.names, limit=3)}; expected a matrix. {remedy}")
    if matrix.ndim != 2:
        remedy = "Save one row per item; a single column is X.reshape(-1, 1)."
        raise FeatureError(f"{name}: got an array of shape {matrix.shape}; expected a matrix. {remedy}")
    if not all(matrix.shape):
        raise FeatureError(f"{name}: got a matrix of shape {matrix.shape}; expected at least one row and one column.")
    if matrix.dtype.kind not in "fiub":
        remedy = "Leave columns of names out, and convert the others with X.astype(float)."
        raise FeatureError(f"{name}: got {matrix.dtype}; expected real numbers. {remedy}")
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    require_memory(8 * (matrix.nnz if issparse(matrix) else matrix.size), limit, f"{name} as float64")
    return matrix.astype(np.float64)


def text_features(
    texts: Iterable[str],
    *,
    ids: Sequence[Hashable] | None = None,
    min_df: int = 1,
    max_ngram: int = 1,
    sublinear_tf: bool = False,
    stop_words: Literal["english"] | Sequence[str] | None = None,
    name: str = "the texts",
) -> FeatureTable:
    """Return the TF-IDF of texts: unit CSR rows ``[N, n_terms]``, with the terms as columns.

    With ``tf`` the count of a term in a text, ``df`` the number of texts with the term, and N texts, an entry is
    ``tf * (1 + ln((1 + N) / (1 + df)))``. Each row is then divided by its length. Terms are words of two or more
    characters in lower case. A text without any term has a row of zeros.

    Args:
        texts: One text per item.
        ids: The id of each text.
        min_df: The minimum number of texts per term.
        max_ngram: The maximum number of words per term.
        sublinear_tf: Use ``1 + ln(tf)`` instead of ``tf``.
        stop_words: Words to leave out: a list, or ``"english"`` for scikit-learn's.
        name: The name of the source in error messages.

    Raises:
        FeatureError: A text is missing, or no text has a term.
        ParameterError: An option is out of range.
        MissingExtraError: Scikit-learn is not installed.

    Salton, Buckley (1988), Term-weighting approaches in automatic text retrieval.

    Example:
        >>> found = text_features(["red boots", "black boots", "shoe cream"])
        >>> found.columns
        ('black', 'boots', 'cream', 'red', 'shoe')
        >>> found.matrix.toarray().round(2)[0]
        array([0.  , 0.61, 0.  , 0.8 , 0.  ])
    """
    for option, value in (("min_df", min_df), ("max_ngram", max_ngram)):
        check_integer(option, value, 1)
    if isinstance(stop_words, str) and stop_words != "english":
        raise unexpected("stop_words", stop_words, '"english" or a list of words')
    rows = list(texts)
    missing = next((row for row, text in enumerate(rows) if not isinstance(text, str)), None)
    if missing is not None:
        raise FeatureError(
            f"{name}, row {missing}: got {brief(rows[missing])}; expected text. Fill it in, or remove the row."
        )
    sklearn_text = from_extra("text", "sklearn.feature_extraction.text", "features out of text need scikit-learn")
    vectorizer = sklearn_text.TfidfVectorizer(
        min_df=int(min_df),
        ngram_range=(1, int(max_ngram)),
        sublinear_tf=sublinear_tf,
        stop_words=stop_words if stop_words is None or isinstance(stop_words, str) else list(stop_words),
    )
    try:
        matrix = vectorizer.fit_transform(rows)
    except ValueError as error:  # no terms remain, or min_df is above the number of texts
        raise FeatureError(
            f"{name}: got no term in {len(rows):,} texts; expected some words of two letters or more. ",
            *_advice(min_df, stop_words),
        ) from error
    return FeatureTable(
        csr_array(matrix), None if ids is None else tuple(ids), tuple(vectorizer.get_feature_names_out())
    )


def _advice(min_df: int, stop_words: object) -> list[str | Setting]:
    """Return the advice for texts without terms."""
    if min_df > 1:
        return ["Count rarer terms as well: ", Setting("min_df", 1)]
    if stop_words is not None:
        return ["Leave this out: ", Setting("stop_words", stop_words)]
    return ["Take another column of text."]


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
    are ``id_column``, or the first column called ``id``, ``item`` or ``item_id``. Without one, they are the index of a
    pandas frame, unless it is the default 0, 1, 2.

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
        raise ParameterError("columns, text, embedding: got several; expected at most one.")
    name = "the data frame"
    table, index = _as_arrow(frame, name)
    if columns is not None:
        position = id_position(table.column_names, name, id_column)
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
    """Return the features in a pyarrow table; the arguments are those of `read_frame`."""
    limit = memory_available() if memory is None else memory
    refuse_doubled(table.column_names, name)
    if text is None and embedding is None:
        require_memory(8 * table.num_rows * max(1, table.num_columns), limit, name)
        return FeatureTable(*from_table(table, name, id_column))
    position = id_position(table.column_names, name, id_column)
    ids = None if position is None else id_cells(table.column(position), name, table.column_names[position])
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
    """Return the TF-IDF of columns of delimited text with a header."""
    table = open_csv(stream, FeatureError, name=name)
    position = id_position(table.columns, name, id_column)
    wanted = _names(text)
    places = [column_position(table.columns, name, column) for column in wanted]
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
    return table.column(column_position(table.column_names, name, column))


def _joined(columns: Sequence[Sequence[Any]], name: str, names: Sequence[str]) -> list[str]:
    """Return the joined texts of each row; a missing value counts as an empty text."""
    for column, cells in zip(names, columns, strict=True):
        wrong = next((row for row, cell in enumerate(cells) if cell is not None and not isinstance(cell, str)), None)
        if wrong is not None:
            raise FeatureError(
                f"{name}, row {wrong}, column {brief(column)}: got {brief(cells[wrong])}; expected text. Leave out ",
                Setting("text", column),
                ".",
            )
    return [" ".join(cell for cell in row if cell is not None) for row in zip(*columns, strict=True)]


def _embeddings(column: Any, name: str, label: str, limit: int) -> NDArray[np.floating[Any]]:
    """Return a column of lists of numbers, all of one length, as a matrix."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    kind = column.type
    if not (kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)):
        raise FeatureError(
            f"{name}, column {brief(label)}: got {kind}; expected lists of numbers, one vector per item."
        )
    inner = kind.value_type
    if not (kinds.is_floating(inner) or kinds.is_integer(inner)):
        raise FeatureError(f"{name}, column {brief(label)}: got lists of {inner}; expected lists of numbers.")
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
            "row 0."
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
            f"{name}, column {brief(label)}: got no numbers; expected at least one row and one number per row."
        )
    return matrix.reshape(len(lengths), -1)
