"""Long runs: progress as a bar, or as occasional lines in a log; and tasks in several processes (``n_jobs``)."""

import pickle
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from tqdm import tqdm

from pomdp_hier._arguments import check_flag, is_integer, unexpected
from pomdp_hier._imports import from_extra
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError

_in_command = ContextVar("_in_command", default=False)
_quiet = ContextVar("_quiet", default=False)
_stop: ContextVar["Stop"] = ContextVar("_stop")
PATIENCE = 2.0  # seconds before the progress of work that is usually short appears

_SECONDS, _SHARE = 10.0, 0.1  # the least time between two lines, and the least share of the time since the start
_OF_TOTAL = "{desc}: {percentage:.0f} %, {n_fmt} of {total_fmt} {unit} [{elapsed}, {remaining} left{postfix}]"
_COUNTED = "{desc}: {n_fmt} {unit} [{elapsed}{postfix}]"


class StoppedEarlyError(Exception):
    """The work was left because of a limit, at a moment when all bounds hold."""


Stop: TypeAlias = Callable[[], bool]
"""Whether to stop: asked between pieces of work of at most about a tenth of a second."""


def never() -> bool:
    """Continue always."""
    return False


def look(stop: Stop) -> None:
    """Raise `StoppedEarlyError` if it is time to stop."""
    if stop():
        raise StoppedEarlyError


@contextmanager
def leaving(stop: Stop) -> Iterator[None]:
    """Leave `slow_work` in the block with `StoppedEarlyError` when it is time to stop.

    Example:
        >>> try:
        ...     with leaving(lambda: True), slow_work("exploring", "states") as bar:
        ...         bar.update()
        ... except StoppedEarlyError:
        ...     print("left")
        left
    """
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)


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
        return _SlowLines(desc=what, unit=unit, total=total, leave=False)
    hidden = True if _quiet.get() else None  # None: hidden off a terminal
    return _SlowWork(desc=what, unit=f" {unit}", total=total, delay=PATIENCE, disable=hidden, leave=False)


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


class _SlowWork(tqdm):
    """Progress of work that can be left where `leaving` says so."""

    def update(self, n: float | None = 1) -> bool | None:
        """Count, and leave if it is time to stop."""
        look(_stop.get(never))
        shown: bool | None = super().update(n)
        return shown


class _SlowLines(_SlowWork, _Lines):
    """The same for a stream that keeps its lines."""


_MOST_JOBS = 10_000

Task = TypeVar("Task")
Result = TypeVar("Result")


def check_jobs(n_jobs: object) -> None:
    """Raise unless the value is a number of processes.

    Example:
        >>> check_jobs(0)
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: n_jobs: got 0; expected an integer from 1 to ..., or -1 for one per CPU.
    """
    if not is_integer(n_jobs) or not (1 <= n_jobs <= _MOST_JOBS or n_jobs == -1):
        raise unexpected("n_jobs", n_jobs, f"an integer from 1 to {_MOST_JOBS:,}, or -1 for one per CPU")


def n_workers(n_jobs: int) -> int:
    """Return the number of processes."""
    return 1 if n_jobs == 1 else int(_joblib().effective_n_jobs(n_jobs))


def in_processes(
    work: Callable[[Task], Result], tasks: Sequence[Task], n_jobs: int, sent: Mapping[str, Any]
) -> Iterator[Result]:
    """Yield the results of the tasks in order; a single process is this one.

    It runs on the back end that ``joblib.parallel_config`` names. When it is left early, by an error or by Ctrl-C, no
    process stays behind.

    Raises:
        MissingExtraError: More than one process without joblib.
        ParameterError: Something cannot be sent to another process, or a process died.

    Example:
        >>> list(in_processes(abs, [-1, 2, -3], 1, {}))
        [1, 2, 3]
    """
    if n_jobs == 1:
        yield from map(work, tasks)
        return
    joblib = _joblib()
    results = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(map(joblib.delayed(work), tasks))
    try:
        for result in results:  # noqa: UP028 - `yield from` would close the results before the warning is turned off
            yield result
    except pickle.PicklingError as error:
        raise _stays_here(sent, error) from error
    except BrokenExecutor as error:
        raise ParameterError(
            Argument("n_jobs"),
            f": got {n_jobs}, and one of the processes died, probably out of memory; expected fewer. Pass n_jobs=1.",
        ) from error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that tasks are left over is what leaving early means
            results.close()


_KEPT = threading.local()  # what this thread of a process has last built


@dataclass(frozen=True, eq=False)
class OnceAProcess(Generic[Result]):
    """An object shared by the tasks of a process, which builds it at its first task.

    Example:
        >>> squares = OnceAProcess(dict)
        >>> squares()[3] = 9
        >>> squares()
        {3: 9}
    """

    build: Callable[[], Result]
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self) -> Result:
        """Return the object, built on first use."""
        if getattr(_KEPT, "token", None) != self.token:
            _KEPT.token, _KEPT.built = self.token, self.build()
        return _KEPT.built  # type: ignore[no-any-return]  # of this token


def _joblib() -> Any:
    return from_extra("parallel", "joblib", "n_jobs needs joblib")


def _stays_here(sent: Mapping[str, Any], error: Exception) -> ParameterError:
    """Return the error for an object that cannot be sent to another process."""
    dumps = from_extra("parallel", "joblib.externals.loky.backend.reduction", "n_jobs needs joblib").dumps

    def reason(value: object) -> str:
        try:
            dumps(value)
        except Exception as error:  # noqa: BLE001 - whatever the pickling of anyone's object raises
            return f"{type(error).__name__}: {error}"
        return ""

    found = ((f"{name}: {brief(value)}", why) for name, value in sent.items() if (why := reason(value)))
    what, why = next(found, ("n_jobs: what is worked on", str(error)))
    return ParameterError(
        f"n_jobs: got {what}, which cannot be sent to another process ({why}). Pass n_jobs=1, or define __getstate__ "
        "without open files, locks and generators."
    )
