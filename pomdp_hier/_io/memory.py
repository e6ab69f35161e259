"""Memory limits: the limit and the free memory of this process, and arrays on disk."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp_hier.errors import FeatureError, ParameterError, PomdpHierError

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
        iter(values),
        lambda n: error(f"{what}: got a {kind} that has given {n:,} values and goes on; expected a list"),
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
