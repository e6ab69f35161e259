"""How much memory there is, so that a file that claims more is refused before it is unpacked."""

import os
from pathlib import Path

from pomdp_hier.errors import FeatureError

__all__ = ["available", "require"]

_WHERE_UNKNOWN = 4 << 30  # systems that do not say: four gibibytes, as a laptop has to spare


def available() -> int:
    """The bytes that can be taken now without swapping: what the system has left, or the container's limit if less."""
    limits = [limit for limit in (_system(), _control_group()) if limit is not None]
    return min(limits, default=_WHERE_UNKNOWN)


def require(needed: int, limit: int, what: str) -> None:
    """Refuse ``needed`` bytes beyond ``limit``.

    Raises:
        FeatureError: They are more; the message says how many.
    """
    if needed > limit:
        raise FeatureError(
            f"{what} claims to take {_readable(needed)}, more than the {_readable(limit)} of memory available; "
            "if the claim is true, use fewer rows or columns, float32, or a sparse file"
        )


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
    """What is left of the limit of this process's control group (version 2), if it has one."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        return max(0, limit - int((group / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        return None


def _readable(count: int) -> str:
    power = max(0, min(4, (count.bit_length() - 1) // 10))
    return f"{count / 1024**power:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
