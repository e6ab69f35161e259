"""Feature files: what is read, and what is refused before it can do harm.

The content decides the format, not the name of the file. Nothing is ever unpickled, and what a file claims
to hold is held against the memory there is before any of it is unpacked.
"""

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import issparse

from pomdp_hier._messages import brief
from pomdp_hier.errors import Argument, FeatureError, ParameterError, Setting
from pomdp_hier.features import _archives, _delimited, _parquet
from pomdp_hier.features.table import FeatureTable
from pomdp_hier.files.kinds import check_kind, kind_of, unpacked
from pomdp_hier.files.memory import memory_available, require_memory

__all__ = ["load_features"]


def load_features(
    path: str | Path | IO[bytes],
    *,
    key: str | None = None,
    id_column: str | None = None,
    text: str | Sequence[str] | None = None,
    embedding: str | None = None,
    tfidf: Mapping[str, Any] | None = None,
    memory: int | None = None,
) -> FeatureTable:
    """Return features in a file: ``.npz`` (sparse or dense), ``.npy``, delimited text, or Parquet (extra ``frames``).

    Each of them may be packed with gzip. A sparse ``.npz`` is one that ``scipy.sparse.save_npz`` wrote; it comes out as
    CSR. In a dense one the array is ``key``, or ``X``, or the only one. Delimited text (comma, tab or semicolon) has a
    header; every column is a number but the id column: ``id_column``, or else the first if it is called ``id``,
    ``item`` or ``item_id``. The same holds for the columns of a Parquet file.

    Instead of numbers, a table may hold text or, in Parquet, vectors: see ``text`` and ``embedding``. A data frame in
    memory is read by `pomdp_hier.features.read_frame`.

    Args:
        path: The file, ``-`` for standard input, or an open binary file.
        key: The array of a dense ``.npz`` to take.
        id_column: The column that holds the rows' ids.
        text: The column whose TF-IDF to take (extra ``text``), or several, joined by a space; the others but the ids
            are not read.
        embedding: The column of a Parquet file that holds a vector an item, as lists.
        tfidf: Options of `pomdp_hier.features.text_features`.
        memory: How many bytes the features may take; by default the memory that is available now. A
            ``.npy`` file of more than half of it stays on disk, memory-mapped.

    Raises:
        FeatureError: The file cannot be read, is cut off, is no feature file, holds what is no matrix of
            numbers, or claims to unpack to more than the memory.
        ParameterError: Both ``text`` and ``embedding`` are given, or something that this kind of file has no use for.
        MissingExtraError: The file is Parquet and the extra ``frames`` is not installed, or ``text`` is given and the
            extra ``text`` is not.

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
        raise ParameterError("text and embedding are given; features come from one of them")
    if tfidf is not None and not isinstance(tfidf, Mapping):
        raise ParameterError(Argument("tfidf"), f" is {brief(tfidf)}; give its options as a dict")
    if tfidf and text is None:
        raise ParameterError(Argument(next(iter(tfidf))), " is for text; say which column that is: ", Setting("text"))
    if isinstance(path, (str, Path)):
        name = "standard input" if str(path) == "-" else str(path)
    else:
        name = str(getattr(path, "name", "the open file"))
    limit = memory_available() if memory is None else memory
    try:
        with _opened(path) as opened:
            stream, kind = _recognised(opened, name, limit)
            if key is not None and kind != "npz":
                raise ParameterError(f"{name} is no .npz with several arrays; leave this out: ", Setting("key", key))
            if id_column is not None and kind in ("npz", "npy"):
                raise ParameterError(
                    f"{name} has no columns with names; leave this out: ", Setting("id_column", id_column)
                )
            if text is not None or embedding is not None:
                return _read_mixed(stream, kind, name, id_column, text, embedding, tfidf, limit)
            if kind == "npz":
                matrix, ids, columns = _archives.read_npz(stream, name, key, limit), None, None
            elif kind == "npy":
                matrix, ids, columns = _archives.read_npy(stream, name, limit), None, None
            elif kind == "parquet":
                matrix, ids, columns = _parquet.read(stream, name, id_column, limit)
            else:
                matrix, ids, columns = _delimited.read(stream, name, id_column)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FeatureError(f"{name}: cannot be read ({reason}); give the path of a feature file") from error
    return FeatureTable(_checked(matrix, name, limit), ids, columns, name)


def _opened(path: str | Path | IO[bytes]) -> IO[bytes]:
    """Return the file as a seekable stream of bytes; standard input and open files are read to their end first."""
    if not isinstance(path, (str, Path)):
        if not callable(getattr(path, "read", None)):
            raise FeatureError(
                f"features to load: {brief(path)} is neither a path nor an open file; what lies in memory already is "
                "taken as it is, without loading"
            )
        return io.BytesIO(path.read())
    if str(path) == "-":
        if sys.stdin is None:
            raise OSError("standard input is closed")
        return io.BytesIO(sys.stdin.buffer.read())
    if "\0" in str(path):
        raise OSError("a path without NUL is expected")
    return open(path, "rb")


def _recognised(stream: IO[bytes], name: str, limit: int) -> tuple[IO[bytes], str]:
    """Return the stream, out of gzip if it is packed so, and which kind of feature file it is.

    Raises:
        FeatureError: It is none, or not what the ending of its name says.
    """
    kind = kind_of(_start(stream))
    if kind.name == "gzip":
        stream = io.BytesIO(unpacked(stream.read(), name, FeatureError, limit))
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
    """Return the TF-IDF of columns of text, or the vectors in one, out of Parquet or delimited text."""
    from pomdp_hier.features import frames

    if kind == "parquet":
        wanted = [embedding] if embedding is not None else [text] if isinstance(text, str) else list(text or ())
        table = _parquet.open_table(stream, name, id_column, limit, wanted)
        return frames.from_arrow(table, name, id_column, text, embedding, tfidf, limit)
    if text is None or kind != "text":
        what = "vectors are read from" if text is None else "text is read from delimited text or"
        option = Setting("embedding" if text is None else "text")
        raise FeatureError(f"{name}: it has no named columns of this kind: {what} Parquet; leave this out: ", option)
    return frames.read_text_columns(stream, name, id_column, text, tfidf)


def _checked(matrix: Any, name: str, limit: int) -> Any:
    """Return the matrix, if it is one of real numbers; half precision and integers become float64."""
    if matrix.ndim != 2:
        remedy = "Save one row per item; a single column is X.reshape(-1, 1)."
        raise FeatureError(f"{name}: got an array of shape {matrix.shape}; expected a matrix. {remedy}")
    if not all(matrix.shape):
        raise FeatureError(f"{name}: got a matrix of shape {matrix.shape}; expected at least one row and one column")
    if matrix.dtype.kind not in "fiub":
        raise FeatureError(f"{name}: got {matrix.dtype}; expected real numbers. Convert them with X.astype(float).")
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    require_memory(8 * (matrix.nnz if issparse(matrix) else matrix.size), limit, f"{name} as float64")
    return matrix.astype(np.float64)
