"""How much memory this process may use, and room for large tables where that is too little."""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["memory_allowed", "room_for"]

_SHARE = 4


def memory_allowed() -> int:
    """Returns the bytes of memory that this process may use: the machine's, or less by a limit or a control group.

    >>> memory_allowed() > 0
    True
    """
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


def room_for(shape: tuple[int, int], may_use_disk: bool) -> npt.NDArray[np.float64]:
    """Returns zeros of this shape, in memory, or in an unnamed temporary file if they would take a quarter of it.

    Args:
        shape: Of the table, float64.
        may_use_disk: Whether a file is an answer; it is for features that are one.
    """
    if may_use_disk and 8 * shape[0] * shape[1] > memory_allowed() // _SHARE:
        with tempfile.TemporaryFile(prefix="pomdp_hier") as file:
            return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)
    return np.zeros(shape)
