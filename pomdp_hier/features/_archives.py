"""Reading ``.npy`` and ``.npz`` with every claim checked first and nothing unpickled."""

import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import coo_array, csc_array, csr_array

from pomdp_hier.errors import FeatureError, Setting
from pomdp_hier.files.memory import require_memory

__all__ = ["read_npy", "read_npz"]

_BLOCK = 1 << 22  # bytes read at a time
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, RuntimeError, KeyError)
_SPARSE_PARTS = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords")
_AGAIN = "copy or write the file again"


def read_npy(stream: IO[bytes], name: str, limit: int) -> Any:
    """Return array in a ``.npy`` stream; a file that would take more than half of ``limit`` is memory-mapped instead.

    Raises:
        FeatureError: The file is cut off, holds Python objects, or claims more than ``limit`` bytes.
    """
    length = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    if isinstance(stream, io.BufferedReader) and length > limit // 2:
        shape, fortran_order, dtype, start = _read_header(stream, name)
        _check_length(shape, dtype, length - start, name)
        return np.memmap(stream, dtype, "r", start, shape, "F" if fortran_order else "C")
    return _read_array(stream, length, name, limit)


def read_npz(stream: IO[bytes], name: str, key: str | None, limit: int) -> Any:
    """Return the matrix in a ``.npz`` stream: CSR as scipy writes it, else the array ``key``, ``X`` or the only one.

    Raises:
        FeatureError: The archive is damaged, does not say which array to take, or claims more than
            ``limit`` bytes.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            return _matrix(archive, name, key, limit)
    except _DAMAGED as error:
        raise FeatureError(f"{name}: a damaged or cut-off .npz archive ({error}); {_AGAIN}") from error


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
    """Which array of a dense archive to take."""
    if key is None:
        key = "X" if "X" in names or len(names) != 1 else names[0]
    if key in names:
        return key
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    message = f"{name}: no array {key!r} in the archive, which holds {listed or 'nothing'}; name the one to use: "
    raise FeatureError(message, Setting("key"))


def _read_array(stream: IO[bytes], length: int, what: str, limit: int) -> Any:
    """Return the array in a ``.npy`` stream of ``length`` bytes, once its header's claim has passed both bounds."""
    shape, fortran_order, dtype, start = _read_header(stream, what)
    require_memory(math.prod(shape) * dtype.itemsize, limit, what)
    needed = _check_length(shape, dtype, length - start, what)
    content = bytearray(needed)
    filled = 0
    while filled < needed:
        block = stream.read(min(_BLOCK, needed - filled))
        if not block:
            raise FeatureError(f"{what}: cut off after {filled} of {needed} bytes; {_AGAIN}")
        content[filled : filled + len(block)] = block
        filled += len(block)
    return np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if fortran_order else "C")


def _check_length(shape: tuple[int, ...], dtype: np.dtype[Any], length: int, what: str) -> int:
    """How many bytes an array takes; refused if fewer are there."""
    needed = math.prod(shape) * dtype.itemsize
    if needed > length:
        raise FeatureError(
            f"{what}: cut off, {needed} bytes of {dtype} in shape {shape} were announced and {length} are there; "
            f"{_AGAIN}"
        )
    return needed


def _read_header(stream: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran order, type, and length of a ``.npy`` header of version 1 or 2."""
    try:
        version = npy.read_magic(stream)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        counted = _Counted(stream)
        shape, fortran_order, dtype = reader(counted)
    except (ValueError, TypeError, KeyError, tokenize.TokenError, RecursionError) as error:
        raise FeatureError(f"{what}: not a .npy array of numbers ({error}); {_AGAIN} with numpy.save") from error
    if dtype.hasobject:
        raise FeatureError(
            f"{what}: holds Python objects, which are not loaded since that could run code; "
            "save numbers: numpy.save(path, X.astype(float))"
        )
    return shape, fortran_order, dtype, npy.MAGIC_LEN + counted.count


class _Counted:
    """A stream that knows how many bytes were read through it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        block = self._stream.read(size)
        self.count += len(block)
        return block


def _sparse(arrays: dict[str, Any], name: str, limit: int) -> csr_array:
    """Return the CSR matrix of the arrays that ``scipy.sparse.save_npz`` wrote, every index checked."""
    layout = arrays["format"].item() if arrays["format"].size == 1 else None
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else layout
    shape = tuple(int(length) for length in arrays["shape"].ravel())
    if len(shape) != 2 or min(shape) < 0:
        raise FeatureError(f"{name}: expected a matrix, found a sparse array of shape {shape}; give one row an item")
    require_memory(8 * (shape[0] + 1), limit, name)
    try:
        if layout in {"csr", "csc"}:
            compressed = csr_array if layout == "csr" else csc_array
            matrix = compressed((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        elif layout == "coo":
            places = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
            matrix = coo_array((arrays["data"], places), shape=shape)
        else:
            raise FeatureError(
                f"{name}: sparse layout {layout!r} is not read; write scipy.sparse.save_npz(path, X.tocsr())"
            )
        matrix = matrix.tocsr()
    except (ValueError, TypeError, KeyError) as error:
        raise FeatureError(f"{name}: a damaged sparse matrix ({error}); {_AGAIN}") from error
    matrix.sum_duplicates()
    return matrix
