"""Atomic writes, the only place where the package writes files."""

import contextlib
import gzip
import os
import secrets
import stat
from pathlib import Path

from pomdp_hier.errors import PomdpHierError, Setting

_drafts: set[str] = set()
_STREAMS = ("/dev", "/dev/fd")  # where links lead to open files, which must not be replaced


def write_file(path: str | os.PathLike[str], content: str | bytes, *, replace: bool = True) -> None:
    """Write a file atomically, through a temporary file in the same folder; text is UTF-8.

    The temporary file has a random name, and never overwrites an existing file. A new file takes the permissions of the
    file that it replaces. A link is replaced itself, and its target stays. Anything else, such as ``/dev/stdout`` or a
    pipe, is written to directly.
    """
    from pomdp_hier._arguments import check_path  # which loads numpy, that a command may not need

    check_path("path", path)
    target = Path(path)
    if isinstance(content, str):
        content = content.encode("utf-8", "replace")
        if target.suffix.lower() == ".gz":
            content = gzip.compress(content, mtime=0)
    try:
        if target.exists() and (not target.is_file() or str(target.parent) in _STREAMS):
            target.write_bytes(content)
        else:
            _put_in_place(target, content, replace)
    except FileExistsError:
        raise PomdpHierError(
            f"{path}: got a path that exists; expected a new one. Choose another, or replace it: ",
            Setting("replace", True),
            ".",
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise PomdpHierError(
            f"{path}: got a path that cannot be written ({reason}); expected one that can. Choose another path."
        ) from error


def remove_drafts() -> None:
    """Remove all drafts, when a signal ends the process."""
    for draft in tuple(_drafts):
        with contextlib.suppress(OSError):
            os.unlink(draft)


def _put_in_place(target: Path, content: bytes, replace: bool) -> None:
    """Write the draft and rename it to the target."""
    if not replace and os.path.lexists(target):
        raise FileExistsError
    draft = str(target.with_name(f".{secrets.token_hex(8)}.part"))
    _drafts.add(draft)
    try:
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with open(number, "wb") as file:
            file.write(content)
        with contextlib.suppress(FileNotFoundError):
            old = os.lstat(target).st_mode
            if stat.S_ISREG(old):
                os.chmod(draft, stat.S_IMODE(old))
        if replace:
            os.replace(draft, target)
        else:
            _link(draft, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        _drafts.discard(draft)


def _link(draft: str, target: Path) -> None:
    """Rename the draft to the target unless that exists, also by another process."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError from None
        os.rename(draft, target)
