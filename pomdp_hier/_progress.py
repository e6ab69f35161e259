"""Progress of long runs on standard error: a bar, or in a command whose output is kept, a line now and then."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm import tqdm

from pomdp_hier._arguments import check_flag

_in_lines = ContextVar("_in_lines", default=False)

_SECONDS, _SHARE = 10.0, 0.1  # the least time between two lines, and the least share of the time since the start
_OF_TOTAL = "{desc}: {percentage:.0f} %, {n_fmt} of {total_fmt} {unit} [{elapsed}, {remaining} left{postfix}]"
_COUNTED = "{desc}: {n_fmt} {unit} [{elapsed}{postfix}]"


@contextmanager
def in_lines_off_terminal() -> Iterator[None]:
    """Let progress inside be lines where standard error is not a terminal: a log keeps every state of a bar."""
    before = _in_lines.set(True)
    try:
        yield
    finally:
        _in_lines.reset(before)


@contextmanager
def shown_progress(
    progress: bool | tqdm, what: str, unit: str, total: int | None = None, *, initial: int = 0, leave: bool = True
) -> Iterator[tqdm]:
    """Yield a bar on standard error, which shows nothing if none is wanted; a bar that was given is continued.

    Args:
        progress: Whether progress is wanted, or the bar.
        what: What is done.
        unit: What is counted.
        total: How many there are, if that is known.
        initial: How many were done before.
        leave: Whether the bar stays on the terminal after its end.

    Example:
        >>> with shown_progress(False, "wait", "step", total=3) as bar:
        ...     bar.disable
        True
    """
    if isinstance(progress, tqdm):
        yield progress
        return
    check_flag("progress", progress)
    shown = progress and sys.stderr is not None
    kind = _Lines if shown and _in_lines.get() and not sys.stderr.isatty() else tqdm
    with kind(desc=what, unit=unit, total=total, initial=initial, leave=leave, disable=not shown) as bar:
        yield bar


class _Lines(tqdm):
    """A bar for a stream that keeps what is written to it, such as a log: one line at a time, and seldom."""

    def __init__(self, *, total: int | None, unit: str, **options: Any) -> None:
        rare = {"miniters": 1, "mininterval": _SECONDS, "delay": _SECONDS}
        layout = _COUNTED if total is None else _OF_TOTAL
        super().__init__(total=total, unit=unit.strip(), bar_format=layout, **rare, **options)

    def display(self, *_: Any, **__: Any) -> bool:
        """Write a line, and wait longer for the next one the longer the run has taken."""
        self.fp.write(f"{self}\n")
        self.fp.flush()
        self.mininterval = max(_SECONDS, _SHARE * (time.time() - self.start_t))
        return True

    def set_description(self, desc: str | None = None, refresh: bool = False) -> None:
        """Name what is done now, in the next line."""
        self.desc = desc or ""

    def close(self) -> None:
        """End without a line."""
        self.last_print_t = self.start_t  # for tqdm: nothing was shown that has to be cleared
        super().close()
