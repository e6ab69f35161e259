"""Output of commands, their exit codes, and signals during a search.

Results go to standard output, all else to standard error. Ctrl-C and SIGTERM end a search, not the process: the
command then writes the result so far, and ends with the code of the signal.
"""

import argparse
import io
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from types import FrameType
from typing import Any, TextIO

from pomdp_hier._text import visible
from pomdp_hier.errors import PomdpHierError, PomdpHierWarning, PythonAdvice, Setting


class ExitCode(IntEnum):
    """Exit code of a command; for a signal 128 plus its number, as in shells."""

    DONE = 0
    CANNOT_BE_DONE = 1
    WRONG_USAGE = 2
    CHECK_FAILED = 3
    INTERRUPTED = 130
    READER_GONE = 141
    TOLD_TO_END = 143


@dataclass
class Command:
    """A command of ``pomdp-hier``; its function runs it and returns the exit code."""

    name: str
    summary: str
    examples: tuple[str, ...]
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


_show_other_warning = warnings.showwarning


def prepare() -> None:
    """Let standard streams escape characters that their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print one line on standard error, if that is open."""
    if sys.stderr is not None:
        print(printable(text), file=sys.stderr)


def fail(error: PomdpHierError | str, code: int) -> int:
    """Return the exit code, after one line about the error."""
    text = error.worded(as_option) if isinstance(error, PomdpHierError) else error
    say(f"pomdp-hier: {text}" if code in (ExitCode.INTERRUPTED, ExitCode.TOLD_TO_END) else f"error: {text}")
    return code


_OPTIONS = {
    "replace": "force",
    "random_state": "seed",
    "fixed_levels": "fixed-level",
    "items_at_inner": "internal-items",
    "ends_in": "path-ends-in",
    "side": "remove-from",
    "n_jobs": "jobs",
    "n_shuffles": "shuffles",
    "id": "item-column",
    "item": "item-column",
    "child": "item-column",
    "parent": "parent-column",
    "path": "path-column",
    "form": "tree-format",
    "text": "text-column",
    "embedding": "embedding-column",
    "sample_weight": "weights",
    "weight_column": "weights",
}


def as_option(setting: Setting) -> str:
    """Return an argument of a function as the option of the command line."""
    if isinstance(setting, PythonAdvice):
        return ""
    if setting.values == (False,):
        return f"--no-{setting.argument.replace('_', '-')}"
    option = f"--{_OPTIONS.get(setting.argument, setting.argument).replace('_', '-')}"
    values = " or ".join(shlex.quote(str(value)) for value in setting.values if value is not True)
    return f"{option} {values}".rstrip()


def note(text: str, options: argparse.Namespace) -> None:
    """Print a note on standard error, unless ``--quiet`` is given."""
    if not options.quiet:
        say(text)


@contextmanager
def steps(command: str, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the start of a step of a command."""
    from pomdp_hier._progress import shown_progress

    with shown_progress(True, command, "step", total, leave=False) as bar:
        started = False

        def step(what: str) -> None:
            nonlocal started
            bar.set_description(what)
            bar.update(started)
            started = True

        yield step


def show_warning(message: Warning | str, category: type[Warning], *where: Any, **to: Any) -> None:
    """Show a warning of the package as one line; any other as Python shows it."""
    if issubclass(category, PomdpHierWarning):
        say(f"warning: {message.worded(as_option) if isinstance(message, PomdpHierWarning) else message}")
    else:
        _show_other_warning(message, category, *where, **to)


def printable(text: str) -> str:
    """Return the text on one line, with visible control characters.

    Example:
        >>> printable("a\\nb\\x1b[31mc")
        'a b\\\\x1b[31mc'
    """
    return visible(" ".join(text.split("\n")))


def show(lines: Iterable[str]) -> None:
    """Print lines with visible control characters."""
    for line in lines:
        print(printable(line))


def uses_unicode(stream: TextIO | None) -> bool:
    """Return whether a stream can encode box-drawing characters."""
    try:
        "├└│…".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def finish() -> None:
    """Flush standard output, to notice a full disk or a closed pipe."""
    if sys.stdout is None:
        raise OSError("standard output is closed; expected a stream for the result. Send it to a file: > result.txt")
    sys.stdout.flush()


def silence() -> None:
    """Drop the rest of standard output, which Python would report again at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, AttributeError, ValueError, io.UnsupportedOperation):
        return


SIGNALS_HELP = "Ctrl-C and SIGTERM do so at once, and what was found is written"

_searches = 0
_told: list[int] = []  # SIGTERM, once it has ended a search


@contextmanager
def may_end_search() -> Iterator[None]:
    """Let SIGINT and the first SIGTERM end the search inside, by KeyboardInterrupt or its own handler.

    Later ones of SIGTERM change nothing: ``timeout`` and service managers send several, and what was found is still
    to be written. A second SIGINT is a person who will not wait.
    """
    global _searches
    _told.clear()
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _as_interrupt)
    _searches += 1
    try:
        yield
    finally:
        time.sleep(0.01)  # the thread that waits for signals may not yet have asked about one that came just now
        _searches -= 1
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """Call the handler of SIGINT, once."""
    if _told:
        return
    _told.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def spares_process(number: int) -> bool:
    """Return whether this signal ends a running search, or repeats one that did.

    Example:
        >>> with may_end_search():
        ...     print(spares_process(signal.SIGINT), spares_process(signal.SIGTERM))
        True True
        >>> spares_process(signal.SIGINT), spares_process(signal.SIGTERM)
        (False, False)
    """
    return _searches > 0 or number in _told


def exit_code(status: str) -> ExitCode:
    """Return the exit code for the status of a search.

    Example:
        >>> exit_code("interrupted"), exit_code("time")
        (<ExitCode.INTERRUPTED: 130>, <ExitCode.DONE: 0>)
    """
    if status != "interrupted":
        return ExitCode.DONE
    return ExitCode.TOLD_TO_END if _told else ExitCode.INTERRUPTED


def said_to_end() -> str:
    """Return the message for a command that a signal ended without a result."""
    return "told to end" if _told else "interrupted"
