"""Readers of ``.npy`` and ``.npz``; declared sizes are checked against the file and the available memory."""

import io
import math
import os
import warnings
import zipfile
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import coo_array, csc_array, csr_array

from pomdp_hier._io.decoding import decoding
from pomdp_hier._io.memory import require_memory
from pomdp_hier._text import brief
from pomdp_hier.errors import FeatureError, Setting
from pomdp_hier.features.validation import check_compressed

_SPARSE_PARTS = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords")
_AGAIN = "Copy or write the file again"
_WHOLE = "a whole .npy array of numbers"
_MOST_DIMENSIONS = 32  # of any numpy
_quietly = partial(warnings.catch_warnings, action="ignore")  # headers of Python 2, or with odd escape sequences, warn


def read_npy(stream: IO[bytes], name: str, limit: int) -> Any:
    """Return the array in a ``.npy`` stream, memory-mapped if it needs more than half of ``limit`` bytes.

    Raises:
        FeatureError: The file is cut off, holds Python objects, or claims more than ``limit`` bytes.
    """
    length = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    if isinstance(stream, io.BufferedReader) and length > limit // 2:
        shape, fortran_order, dtype = _read_header(stream, name)
        _check_length(shape, dtype, length - stream.tell(), name)
        with decoding(name, FeatureError, _WHOLE):
            return np.memmap(stream, dtype, "r", stream.tell(), shape, "F" if fortran_order else "C")
    return _read_array(stream, length, name, limit)


def read_npz(stream: IO[bytes], name: str, key: str | None, limit: int) -> Any:
    """Return the matrix in a ``.npz`` stream: CSR, or the array ``key``, ``X`` or the only one.

    Raises:
        FeatureError: The archive is damaged, does not say which array to take, or claims more than
            ``limit`` bytes.
    """
    with decoding(name, FeatureError, "a whole .npz archive"), zipfile.ZipFile(stream) as archive:
        return _matrix(archive, name, key, limit)


def _matrix(archive: zipfile.ZipFile, name: str, key: str | None, limit: int) -> Any:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if key is None and {"format", "shape", "data"} <= members.keys():
        wanted = [part for part in _SPARSE_PARTS if part in members]
    else:
        wanted = [_chosen(list(members), name, key)]
    require_memory(sum(members[part].file_size for part in wanted), limit, name)
    arrays = {}
    for part in wanted:
        with archive.open(members[part]) as stream:
            arrays[part] = _read_array(stream, members[part].file_size, f"{name}, array {part}", limit)
    return _sparse(arrays, name, limit) if "format" in arrays else arrays[wanted[0]]


def _chosen(names: list[str], name: str, key: str | None) -> str:
    """Return the name of the array of a dense archive."""
    if key is None:
        key = "X" if "X" in names or len(names) != 1 else names[0]
    if key in names:
        return key
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    message = f"{name}: no array {brief(key)} in the archive, which holds {listed or 'nothing'}; name the one to use: "
    raise FeatureError(message, Setting("key"))


def _read_array(stream: IO[bytes], length: int, what: str, limit: int) -> Any:
    """Return the array in a ``.npy`` stream of ``length`` bytes, after checking the size in its header."""
    shape, _, dtype = _read_header(stream, what)
    require_memory(math.prod(shape) * dtype.itemsize, limit, what)
    _check_length(shape, dtype, length - stream.tell(), what)
    stream.seek(0)
    with decoding(what, FeatureError, _WHOLE), _quietly():
        return npy.read_array(stream, allow_pickle=False)


def _check_length(shape: tuple[int, ...], dtype: np.dtype[Any], length: int, what: str) -> None:
    """Raise if an array needs more bytes than the file has."""
    needed = math.prod(shape) * dtype.itemsize
    if needed > length:
        raise FeatureError(
            f"{what}: got {length} bytes; expected {needed}, {dtype} in shape {shape}, as the header says. {_AGAIN}."
        )


def _read_header(stream: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and dtype of a header of version 1 or 2, checked."""
    with decoding(what, FeatureError, _WHOLE, "Write it again with numpy.save"), _quietly():
        version = npy.read_magic(stream)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, fortran_order, dtype = reader(stream)
    if dtype.hasobject:
        raise FeatureError(
            f"{what}: got Python objects, which could run code; expected numbers. Write it again: "
            "numpy.save(path, X.astype(float))."
        )
    lengths_are_numbers = all(type(length) is int and 0 <= length < 2**63 for length in shape)
    if not lengths_are_numbers or len(shape) > _MOST_DIMENSIONS or not dtype.itemsize or dtype.subdtype is not None:
        raise FeatureError(
            f"{what}: got {str(dtype)[:40]} in shape {str(shape)[:60]}; expected an array of numbers. {_AGAIN} with "
            "numpy.save."
        )
    return shape, fortran_order, dtype


def _sparse(arrays: dict[str, Any], name: str, limit: int) -> csr_array:
    """Return the CSR matrix in an archive of ``scipy.sparse.save_npz``, with all indices checked."""
    layout = arrays["format"].item() if arrays["format"].size == 1 else None
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else layout
    lengths = arrays["shape"]
    if lengths.dtype.kind not in "iu" or lengths.size != 2 or lengths.min() < 0 or lengths.max() >= 2**63:
        raise FeatureError(
            f"{name}: got a sparse array of shape {lengths.ravel()[:4].tolist()}; expected a matrix, one row per item"
        )
    shape = (int(lengths.ravel()[0]), int(lengths.ravel()[1]))
    require_memory(8 * (shape[0] + 1), limit, name)
    if layout == "csc":
        require_memory(8 * (shape[1] + 1), limit, name)
    try:
        data = arrays["data"]
        if data.ndim != 1 and layout in {"csr", "csc", "coo"}:
            raise FeatureError(f"data: got shape {data.shape}; expected a list of numbers. {_AGAIN}.")
        missing = [part for part in _parts_of(layout, arrays) if part not in arrays]
        if missing:
            raise FeatureError(
                f"got no array {brief(missing[0])}; expected one in layout {layout}. Write "
                "scipy.sparse.save_npz(path, X)."
            )
        if layout in {"csr", "csc"}:
            compressed = csr_array if layout == "csr" else csc_array
            parts = arrays["data"], arrays["indices"], arrays["indptr"]
            check_compressed(parts[2], parts[1], parts[0].size, shape if layout == "csr" else shape[::-1])
            matrix = compressed(parts, shape=shape)
        elif layout == "coo":
            places = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
            matrix = coo_array((data, tuple(places)), shape=shape)
        else:
            raise FeatureError(
                f"got sparse layout {brief(layout)}; expected csr. Write scipy.sparse.save_npz(path, X.tocsr())."
            )
        matrix = matrix.tocsr()
        matrix.sum_duplicates()
    except FeatureError as error:
        raise FeatureError(f"{name}: {error}") from error
    return matrix


def _parts_of(layout: Any, arrays: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the index arrays of a layout."""
    if layout == "coo":
        return ("coords",) if "coords" in arrays else ("row", "col")
    return ("indices", "indptr") if layout in ("csr", "csc") else ()
