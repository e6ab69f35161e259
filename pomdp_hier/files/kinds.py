"""What a file is, told by its first bytes, so that every door names what it was given; and text out of ``.gz``."""

import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pomdp_hier.errors import PomdpHierError
from pomdp_hier.files.decoding import decoding
from pomdp_hier.files.memory import memory_available, require_memory

__all__ = ["Kind", "check_kind", "file_ending", "kind_of", "text_of", "unpacked"]

_BLOCK = 1 << 22  # bytes unpacked at a time
_LOOKED_AT = 4096


@dataclass(frozen=True)
class Kind:
    """What a file is.

    Attributes:
        name: ``"text"``, ``"npy"``, ``"npz"``, ``"parquet"``, ``"gzip"``, or what no reader takes.
        what: The same in words, for an error text.
        remedy: What to do with it where it is not read.
    """

    name: str
    what: str
    remedy: str


_TEXT = Kind("text", "text", "give a binary file, as numpy.save writes it")
_BINARY = Kind("binary", "binary, or text in another encoding than UTF-8", "save it as UTF-8 text, such as CSV")
_EMPTY = Kind("empty", "empty", "give a file that has something in it")
_NPZ = Kind("npz", "a .npz or zip archive", "unpack it, or save its table as CSV")
_EXCEL = Kind("excel", "an Excel or OpenDocument workbook", "save the sheet as CSV")
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
_WRITERS = {
    ".npz": "scipy.sparse.save_npz or numpy.savez",
    ".npy": "numpy.save",
    ".parquet": "DataFrame.to_parquet",
}
_PACKED = "unpack it, or pack it as .gz"

_STARTS = (
    (b"\x93NUMPY", Kind("npy", "a NumPy array", "save it as CSV")),
    (b"PAR1\x15", Kind("parquet", "a Parquet file", "save it as CSV")),
    (b"\x1f\x8b", Kind("gzip", "packed with gzip", "unpack it")),
    (b"\xd0\xcf\x11\xe0", _EXCEL),
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
    """Return what a file is, by its content or the first bytes of it.

    Example:
        >>> kind_of(b"a,b\\n1,2\\n").name, kind_of(b"#NEXUS\\nBEGIN TREES;").what
        ('text', 'a NEXUS file')
    """
    text = content[:_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not text:
        return _EMPTY
    if content.startswith((b"PK\3\4", b"PK\5\6")):
        first = content[30 : 30 + int.from_bytes(content[26:28], "little")]  # the name of the first file in it
        is_office = first.startswith((b"[Content_Types]", b"_rels/", b"docProps/", b"xl/", b"mimetype"))
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
    """Refuse a file of a kind that is not wanted, and one that is none of these under the name of one.

    Raises:
        PomdpHierError: As ``error``; the message says what the file is and what to do.
    """
    if kind.name not in wanted:
        raise error(f"{name} is {kind.what}; {kind.remedy}")
    ending = file_ending(name)
    if kind.name == "text" and ending in _WRITERS:
        raise error(
            f"{name} is no {ending} file, by its first bytes; write it again with {_WRITERS[ending]}, or give it the "
            "name of what it is"
        )


def unpacked(content: bytes, name: str, error: type[PomdpHierError], limit: int | None = None) -> bytes:
    """Return content, out of gzip if it is packed so.

    Args:
        content: All of the file.
        name: What error texts call it.
        error: What to raise.
        limit: How many bytes may come out of it; by default the memory that is available now.

    Raises:
        PomdpHierError: As ``error``: the file is damaged, or unpacks to more than the limit.
    """
    if not content.startswith(b"\x1f\x8b"):
        return content
    limit = memory_available() if limit is None else limit
    found = bytearray()
    with decoding(name, error, "a whole gzip file"), gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while block := stream.read(_BLOCK):
            found += block
            require_memory(len(found), limit, f"{name}, unpacked,", error)
    return bytes(found)


def text_of(content: bytes, name: str, error: type[PomdpHierError], limit: int | None = None) -> str:
    """Return the text in a file, out of gzip if need be, without a byte order mark.

    Raises:
        PomdpHierError: As ``error``, for content that is no text in UTF-8: the message says what it is and what to do.

    Example:
        >>> from pomdp_hier.errors import ReaderError
        >>> text_of(gzip.compress(b"[[0,1]]"), "tree.json.gz", ReaderError)
        '[[0,1]]'
        >>> text_of(b"<!DOCTYPE html><p>Not found", "tree.json", ReaderError)
        Traceback (most recent call last):
        pomdp_hier.errors.ReaderError: tree.json is an HTML page, perhaps an error or a login; download the file itself
    """
    content = unpacked(content, name, error, limit)
    kind = kind_of(content)
    check_kind(kind, name, error, ("text",))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(
            f"{name} is not UTF-8: byte {wrong.start} is 0x{content[wrong.start]:02x} ({wrong.reason}); save it as "
            "UTF-8"
        ) from None


def file_ending(name: str) -> str:
    """Return the ending of a file's name in lower case, without the ``.gz`` that says how it is packed.

    Example:
        >>> file_ending("shop/Tree.JSON.gz"), file_ending("-")
        ('.json', '')
    """
    path = PurePath(name)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
