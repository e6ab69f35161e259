"""Progress of long runs on standard error: a bar, or occasional lines in a command without a terminal."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm import tqdm

from pomdp_hier._arguments import check_flag

_in_command = ContextVar("_in_command", default=False)
_quiet = ContextVar("_quiet", default=False)
PATIENCE = 2.0  # seconds before the progress of work that is usually short appears

_SECONDS, _SHARE = 10.0, 0.1  # the least time between two lines, and the least share of the time since the start
_OF_TOTAL = "{desc}: {percentage:.0f} %, {n_fmt} of {total_fmt} {unit} [{elapsed}, {remaining} left{postfix}]"
_COUNTED = "{desc}: {n_fmt} {unit} [{elapsed}{postfix}]"


@contextmanager
def in_command(quiet: bool = False) -> Iterator[None]:
    """Show progress as lines where standard error is not a terminal, as a log keeps every state of a bar."""
    before = _in_command.set(True), _quiet.set(quiet)
    try:
        yield
    finally:
        _in_command.reset(before[0])
        _quiet.reset(before[1])


@contextmanager
def shown_progress(
    progress: bool | tqdm, what: str, unit: str, total: int | None = None, *, initial: int = 0, leave: bool = True
) -> Iterator[tqdm]:
    """Yield a bar on standard error, or the bar that was given."""
    if isinstance(progress, tqdm):
        yield progress
        return
    check_flag("progress", progress)
    shown = progress and not _quiet.get() and sys.stderr is not None
    kind = _Lines if shown and _writes_lines() else tqdm
    with kind(desc=what, unit=unit, total=total, initial=initial, leave=leave, disable=not shown) as bar:
        yield bar


def slow_work(what: str, unit: str, total: int | None = None) -> tqdm:
    """Return a bar for work that is usually short; it appears after `PATIENCE` seconds, and only where someone looks.

    Example:
        >>> with slow_work("exploring", "states") as bar:
        ...     bar.update()
    """
    if _writes_lines() and not _quiet.get():
        return _Lines(desc=what, unit=unit, total=total, leave=False)
    hidden = True if _quiet.get() else None  # None: hidden off a terminal
    return tqdm(desc=what, unit=f" {unit}", total=total, delay=PATIENCE, disable=hidden, leave=False)


def _writes_lines() -> bool:
    """Whether a command runs whose standard error is not a terminal."""
    return _in_command.get() and sys.stderr is not None and not sys.stderr.isatty()


class _Lines(tqdm):
    """Progress for a stream that keeps its lines, such as a log: one line at a time, and seldom."""

    def __init__(self, *, total: int | None, unit: str, **options: Any) -> None:
        rare = {"miniters": 1, "mininterval": _SECONDS, "delay": _SECONDS}
        layout = _COUNTED if total is None else _OF_TOTAL
        super().__init__(total=total, unit=unit.strip(), bar_format=layout, **rare, **options)

    def display(self, *_: Any, **__: Any) -> bool:
        """Write a line; the wait for the next one grows with the time of the run."""
        self.fp.write(f"{self}\n")
        self.fp.flush()
        self.mininterval = max(_SECONDS, _SHARE * (time.time() - self.start_t))
        return True

    def set_description(self, desc: str | None = None, refresh: bool = False) -> None:
        self.desc = desc or ""

    def close(self) -> None:
        """End without a line."""
        self.last_print_t = self.start_t  # for tqdm: nothing was shown that has to be cleared
        super().close()
