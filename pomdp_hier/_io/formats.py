"""File types by leading bytes, decompression, CSV text, errors of decoders, and the memory that reading may use."""

import contextlib
import csv
import gzip
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any

from pomdp_hier._text import brief, counted, visible
from pomdp_hier.errors import Argument, FeatureError, ParameterError, PomdpHierError, PomdpHierWarning

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_WHERE_UNKNOWN = 4 << 30  # systems that do not say: four gibibytes, as a laptop has to spare
_SHARE = 4
_MOST_YIELDED = 20_000_000  # by an iterator
_PIECE = 1 << 18


def memory_allowed() -> int:
    """Return the memory limit of this process in bytes, from machine, resource limit and control group."""
    limits = [sys.maxsize]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = Path("/sys/fs/cgroup", name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            limits.append(int(text))
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return min(limits)
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    return min(limits)


def room_for(shape: tuple[int, int], may_use_disk: bool) -> "npt.NDArray[np.float64]":
    """Return zeros of this shape, in an unnamed temporary file if they need a quarter of the memory."""
    import numpy as np

    needed = 8 * shape[0] * shape[1]
    if may_use_disk and needed > memory_allowed() // _SHARE:
        try:
            with tempfile.TemporaryFile(prefix="pomdp_hier") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, needed)
                return np.memmap(file, dtype=np.float64, mode="r+", shape=shape)
        except OSError as error:
            raise FeatureError(
                f"{tempfile.gettempdir()}: got too little space ({error.strerror}); expected {_readable(needed)} for "
                "cluster sums. Free space there, or set TMPDIR to another folder."
            ) from error
    return np.zeros(shape)


def memory_available() -> int:
    """Return the available memory in bytes, of the system or container."""
    limits = [limit for limit in (_system(), _control_group()) if limit is not None]
    return min(limits, default=_WHERE_UNKNOWN)


def require_memory(needed: int, limit: int, what: str, error: type[PomdpHierError] = FeatureError) -> None:
    """Raise if ``needed`` bytes exceed ``limit``."""
    if needed > limit:
        raise error(
            f"{what}: got a declared size of {_readable(needed)}; expected at most {_readable(limit)}, the "
            "available memory. "
            "Use fewer rows or columns, float32, or a sparse file."
        )


def held(what: str, values: Any, error: type[PomdpHierError] = ParameterError) -> Any:
    """Return an iterator as a list; objects with a length and files are unchanged.

    Example:
        >>> held("edges", iter([1, 2])), held("edges", (1, 2)), held("edges", 3)
        ([1, 2], (1, 2), 3)
    """
    known = hasattr(values, "__len__") and not isinstance(values, range)  # a range may be longer than any list
    if not isinstance(values, Iterable) or known or hasattr(values, "read"):
        return values
    kind = type(values).__name__
    return gathered(
        iter(values), lambda n: error(f"{what}: got a {kind} that has given {n:,} values and goes on; expected a list")
    )


def gathered(values: Iterator[Any], infinite: Callable[[int], PomdpHierError]) -> list[Any]:
    """Return the elements of an iterator as a list.

    Example:
        >>> gathered(iter("ab"), lambda n: ParameterError(f"{n} letters, expected a word"))
        ['a', 'b']
    """
    found, least = list[Any](), 0
    while True:
        try:
            piece = list(islice(values, _PIECE))
            found += piece
        except MemoryError:
            raise infinite(len(found)) from None
        if len(piece) < _PIECE:
            return found
        left = memory_available()
        least = least or left // 2
        if len(found) > _MOST_YIELDED or left < least:
            raise infinite(len(found))


def _system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _control_group() -> int | None:
    """Return the free memory of this process's control group (version 2), or None."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        return max(0, limit - int((group / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        return None


def _readable(count: int) -> str:
    power = max(0, min(4, (count.bit_length() - 1) // 10))
    return f"{count / 1024**power:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


_LONGEST = 200  # characters of the decoder's own words


@contextmanager
def decoding(
    name: str | Callable[[], str],
    error: type[PomdpHierError],
    expected: str,
    remedy: str = "Copy or write the file again",
) -> Iterator[None]:
    """Turn every exception of a decoder into an error of this package.

    Decoders document few of their exceptions: ``zipfile`` passes on those of zlib, bz2 and lzma, numpy those of the
    tokenizer of Python. So every exception counts, also a MemoryError: a damaged header may ask for any size.

    Example:
        >>> from pomdp_hier.errors import FeatureError
        >>> with decoding("x.gz", FeatureError, "a gzip file"):
        ...     raise EOFError("Compressed file ended early")
        Traceback (most recent call last):
        pomdp_hier.errors.FeatureError: x.gz: cannot be decoded (Compressed file ended early); expected a gzip file. ...
    """
    try:
        yield
    except (PomdpHierError, PomdpHierWarning):
        raise
    except Exception as wrong:
        reason = visible(" ".join(str(wrong).split()))[:_LONGEST] or type(wrong).__name__
        name = name() if callable(name) else name
        raise error(f"{name}: cannot be decoded ({reason}); expected {expected}. {remedy}.") from wrong


_BLOCK = 1 << 22  # bytes unpacked at a time
_LOOKED_AT = 4096


@dataclass(frozen=True)
class Kind:
    """Kind of a file.

    Attributes:
        name: ``"text"``, ``"npy"``, ``"npz"``, ``"parquet"``, ``"gzip"``, ``"excel"``, or what no reader takes.
        what: The same in words, for an error text.
        remedy: What to do with it where it is not read.
    """

    name: str
    what: str
    remedy: str


_TEXT = Kind("text", "text", "")
_BINARY = Kind("binary", "binary, or text in another encoding than UTF-8", "save it as UTF-8 text, such as CSV")
_EMPTY = Kind("empty", "an empty file", "give a file with content")
_NPZ = Kind("npz", "a .npz or zip archive", "unpack it, or save its table as CSV")
_EXCEL = Kind("excel", "an Excel workbook", "read its sheet with from_parents, from_edges or from_paths")
_OTHER_BOOK = Kind("workbook", "an Excel or OpenDocument workbook", "save it as .xlsx, or the sheet as CSV")
_TORCH = Kind("pickle", "a PyTorch file, whose pickle could run code", "save its numbers with numpy.save")
_PICKLE = Kind(
    "pickle",
    "a pickle, which is not loaded since that could run code",
    "save arrays with numpy.save, tables as CSV, trees as JSON",
)
_IMAGE = Kind("image", "an image", "give the data that it was made from")
_TAR = Kind("tar", "a tar archive", "unpack it and give a file out of it")
_XML = Kind("xml", "an XML file", "give a table as CSV, a tree as JSON or Newick")
_HTML = Kind("html", "an HTML page, perhaps an error or a login", "download the file itself")
_NEWICK = "export the tree as Newick (.nwk)"
_ARRAY = "save its array with numpy.save"
_WRITERS = {".npz": "scipy.sparse.save_npz or numpy.savez", ".npy": "numpy.save", ".parquet": "DataFrame.to_parquet"}
_PACKED = "unpack it, or pack it as .gz"

_STARTS = (
    (b"\x93NUMPY", Kind("npy", "a NumPy array", "save it as CSV")),
    (b"PAR1\x15", Kind("parquet", "a Parquet file", "save it as CSV")),
    (b"\x1f\x8b", Kind("gzip", "packed with gzip", "unpack it")),
    (b"\xd0\xcf\x11\xe0", _OTHER_BOOK),
    *((bytes([0x80, protocol]), _PICKLE) for protocol in range(2, 6)),
    *((start, _PICKLE) for start in (b"(lp0\n", b"(dp0\n", b"]q\0", b"}q\0", b"cnumpy.", b"ccopy_reg\n")),
    (b"\x89HDF", Kind("hdf5", "an HDF5 file", _ARRAY)),
    (b"MATLAB 5.0 ", Kind("matlab", "a MATLAB file", _ARRAY)),
    (b"ARROW1\0", Kind("arrow", "an Arrow or Feather file", "write it as Parquet")),
    (b"BZh91AY&SY", Kind("bzip2", "packed with bzip2", _PACKED)),
    (b"\xfd7zXZ", Kind("xz", "packed with xz", _PACKED)),
    (b"\x28\xb5\x2f\xfd", Kind("zstd", "packed with zstd", _PACKED)),
    (b"7z\xbc\xaf", Kind("7z", "a 7z archive", _PACKED)),
    (b"%PDF-", Kind("pdf", "a PDF document", "give the data that it was made from")),
    *((start, _IMAGE) for start in (b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")),
    *((start, Kind("utf-16", "text in UTF-16", "save it as UTF-8")) for start in (b"\xff\xfe", b"\xfe\xff")),
)
_TEXT_STARTS = (
    (
        b"version https://git-lfs.",
        Kind("git-lfs", "a git-lfs pointer, not the file itself", "fetch the file with: git lfs pull"),
    ),
    (
        b"/annex/objects/",
        Kind("git-annex", "a git-annex pointer, not the file itself", "fetch the file with: git annex get"),
    ),
    (b"#nexus", Kind("nexus", "a NEXUS file", _NEWICK)),
    *((start, _HTML) for start in (b"<!doctype html", b"<html", b"<head")),
)
_IN_XML = (
    (b"<phyloxml", Kind("phyloxml", "a PhyloXML file", _NEWICK)),
    (b"<nex:", Kind("nexml", "a NeXML file", _NEWICK)),
    (b"<html", _HTML),
)


def kind_of(content: bytes) -> Kind:
    """Return the kind of a file from its content or first bytes."""
    text = content[:_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not text:
        return _EMPTY
    if content.startswith((b"PK\3\4", b"PK\5\6")):
        first = content[30 : 30 + int.from_bytes(content[26:28], "little")]  # the name of the first file in it
        if first.startswith(b"mimetype"):
            return _OTHER_BOOK
        is_office = first.startswith((b"[Content_Types]", b"_rels/", b"docProps/", b"xl/"))
        return _EXCEL if is_office else _TORCH if first.endswith(b"data.pkl") else _NPZ
    if content[257:262] == b"ustar":
        return _TAR
    if text.startswith((b"<?xml", b"<phyloxml", b"<nex:", b"<!doctype")):
        return next((kind for mark, kind in _IN_XML if mark in text), _HTML if b"doctype html" in text else _XML)
    return next(
        (
            kind
            for whole, starts in ((content, _STARTS), (text, _TEXT_STARTS))
            for start, kind in starts
            if whole.startswith(start)
        ),
        _BINARY if b"\0" in content[:_LOOKED_AT] else _TEXT,
    )


def check_kind(kind: Kind, name: str, error: type[PomdpHierError], wanted: Sequence[str]) -> None:
    """Raise for a file of an unwanted kind, or with the ending of another kind."""
    if kind.name not in wanted:
        raise error(f"{name}: got {kind.what}. {kind.remedy[0].upper()}{kind.remedy[1:]}.")
    ending = file_ending(name)
    if kind.name == "text" and ending in _WRITERS:
        raise error(
            f"{name}: got other first bytes; expected those of a {ending} file. Write it again with "
            f"{_WRITERS[ending]}, or "
            "rename it."
        )


def unpacked(content: bytes, name: str, error: type[PomdpHierError], limit: int | None = None) -> bytes:
    """Return the content, decompressed if it is gzip."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    limit = memory_available() if limit is None else limit
    found = bytearray()
    with decoding(name, error, "a whole gzip file"), gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while block := stream.read(_BLOCK):
            found += block
            require_memory(len(found), limit, f"{name}, unpacked", error)
    return bytes(found)


def text_of(content: bytes, name: str, error: type[PomdpHierError], limit: int | None = None) -> str:
    """Return the text in a file, decompressed and without a byte order mark."""
    content = unpacked(content, name, error, limit)
    kind = kind_of(content)
    check_kind(kind, name, error, ("text",))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(
            f"{name}: got 0x{content[wrong.start]:02x} as byte {wrong.start} ({wrong.reason}); expected UTF-8. "
            "Save it as "
            "UTF-8."
        ) from None


_SHEET = re.compile(r"(.+?\.xls[xm])#(.+)", re.IGNORECASE | re.DOTALL)


def without_sheet(path: str) -> tuple[str, str | None]:
    """Return the path of a workbook, and the name of the sheet behind its ``#``.

    Example:
        >>> without_sheet("shop.xlsx#Tree 2"), without_sheet("notes#1.csv")
        (('shop.xlsx', 'Tree 2'), ('notes#1.csv', None))
    """
    found = _SHEET.fullmatch(path)
    return (path, None) if found is None else (found[1], found[2])


def file_ending(name: str) -> str:
    """Return the ending of a file's name in lower case, before ``.gz`` and the sheet of a workbook."""
    path = PurePath(without_sheet(name)[0])
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


_DELIMITERS = ",;\t"
_QUOTED = re.compile(r'"[^"]*+"')


@dataclass(frozen=True, eq=False)
class CsvTable:
    """A table in delimited text, read lazily.

    Attributes:
        columns: The cells of the header, without spaces around them.
        delimiter: What parts the cells.
        header_end: The number of the line where the header ends, counted from 1.
        rows: The other rows, once: the number of the line where each ends, counted from 1, and its cells, as many as
            there are columns.
    """

    columns: list[str]
    delimiter: str
    header_end: int
    rows: Iterator[tuple[int, list[str]]]


def open_csv(
    source: str | IO[bytes],
    error: type[PomdpHierError],
    *,
    name: str = "the CSV",
    delimiter: str | None = None,
    comment: str | None = None,
) -> CsvTable:
    """Return the table in text or a UTF-8 stream, which starts with a header; blank lines are skipped."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
        raise ParameterError(Argument("delimiter"), f": got {brief(delimiter)}; expected one character.")
    lines = _lines(source, name, error)
    skipped = 0
    for first in lines:
        if first.strip() and not (comment and first.lstrip().startswith(comment)):
            break
        skipped += 1
    else:
        raise error(f"{name}: got an empty table; expected a header and one row per item")
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=_QUOTED.sub("", first).count)
    rows = _rows(csv.reader(chain([first], lines), delimiter=delimiter, strict=True), skipped, name, error)
    end, header = next(rows)
    columns = [cell.strip() for cell in header]
    return CsvTable(columns, delimiter, end, _of_one_length(rows, header, delimiter, name, error))


def _lines(source: str | IO[bytes], name: str, error: type[PomdpHierError]) -> Iterator[str]:
    """Yield the lines with their ends, which can be inside quoted cells."""
    if isinstance(source, str):
        yield from io.StringIO(source.removeprefix("\ufeff"), newline="")
        return
    text = io.TextIOWrapper(source, encoding="utf-8-sig", newline="")
    try:
        yield from text
    except UnicodeDecodeError as wrong:
        raise error(f"{name}: got byte {wrong.object[wrong.start]:#04x}; expected UTF-8. Save it as UTF-8.") from wrong
    finally:
        with contextlib.suppress(ValueError):  # the stream is closed by now
            text.detach()


def _rows(reader: Any, skipped: int, name: str, error: type[PomdpHierError]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and cells of each row that is not blank."""
    expected = "a table with a header and one row per item"
    with decoding(lambda: f"{name}, line {skipped + reader.line_num}", error, expected, "Close open quotes"):
        for row in reader:
            if row and (len(row) > 1 or not row[0].isspace()):
                yield skipped + reader.line_num, row


def _of_one_length(
    rows: Iterator[tuple[int, list[str]]], header: list[str], delimiter: str, name: str, error: type[PomdpHierError]
) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != len(header):
            raise error(
                f"{name}, line {line}: got {counted(len(row), 'cell')}; expected {len(header)}, as in the header. "
                "Quote cells that "
                f"contain {brief(delimiter)}."
            )
        yield line, row
