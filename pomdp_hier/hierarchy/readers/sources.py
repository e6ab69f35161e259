"""Text out of what a user hands a reader: a path, an open file, bytes, or the text itself."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.wording import shown

__all__ = ["TextSource", "read_text"]

TextSource: TypeAlias = str | bytes | os.PathLike[str] | IO[str] | IO[bytes]


def read_text(source: TextSource | Any, is_text: Callable[[str], bool]) -> str:
    """Return text of a source, without a byte order mark; a string is a path unless ``is_text`` says that it is text.

    Raises:
        ReaderError: If the file cannot be read, or is not UTF-8 (the message says at which byte).
    """
    name = "the text"
    content: object = source
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not is_text(source)):
        name = shown(os.fspath(source))
        try:
            content = Path(source).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ReaderError(f"{name} cannot be read as a file: {reason}") from None
    elif hasattr(source, "read"):
        name = shown(getattr(source, "name", "the open file"))
        try:
            content = source.read()
        except UnicodeDecodeError as error:
            raise _not_utf8(name, error) from None
    if isinstance(content, (bytes, bytearray, memoryview)):
        try:
            content = bytes(content).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _not_utf8(name, error) from None
    if not isinstance(content, str):
        raise ReaderError(f"got {shown(source)}, expected a path, an open file, or text")
    return content.removeprefix("\ufeff")


def _not_utf8(name: str, error: UnicodeDecodeError) -> ReaderError:
    return ReaderError(
        f"{name} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x} ({error.reason}); "
        "save it as UTF-8"
    )
