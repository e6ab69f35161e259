"""What every command says, and where: results on standard output, all else on standard error."""

import argparse
import io
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TextIO

from pomdp_hier._text import visible
from pomdp_hier.errors import PomdpHierError, PomdpHierWarning, PythonAdvice, Setting

_show_other_warning = warnings.showwarning


class ExitCode(IntEnum):
    """How a command ended; a signal adds 128 to its number, as shells do."""

    DONE = 0
    CANNOT_BE_DONE = 1
    WRONG_USAGE = 2
    CHECK_FAILED = 3
    INTERRUPTED = 130
    READER_GONE = 141
    TOLD_TO_END = 143


def prepare() -> None:
    """Let no name that the terminal's encoding lacks end a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """One line on standard error, if there is one."""
    if sys.stderr is not None:
        print(printable(text), file=sys.stderr)


def fail(error: PomdpHierError | str, code: int) -> int:
    """Return the exit code, after one line that says what is wrong and what to do."""
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
}


def as_option(setting: Setting) -> str:
    """Return an argument of a function as the option of the command line.

    Example:
        >>> as_option(Setting("on_multiple_parents", "first", "duplicate")), as_option(Setting("replace", True))
        ('--on-multiple-parents first or duplicate', '--force')
    """
    if isinstance(setting, PythonAdvice):
        return ""
    if setting.values == (False,):
        return f"--no-{setting.argument.replace('_', '-')}"
    option = f"--{_OPTIONS.get(setting.argument, setting.argument).replace('_', '-')}"
    values = " or ".join(shlex.quote(str(value)) for value in setting.values if value is not True)
    return f"{option} {values}".rstrip()


def note(text: str, options: argparse.Namespace) -> None:
    """Say on standard error what is not a result, unless ``--quiet`` is given."""
    if not options.quiet:
        say(text)


@contextmanager
def steps(command: str, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows which step of a command starts."""
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
    """Return the text on one line and without the control characters that names in files may hold.

    Example:
        >>> printable("a\\nb\\x1b[31mc")
        'a b\\\\x1b[31mc'
    """
    return visible(" ".join(text.split("\n")))


def uses_unicode(stream: TextIO | None) -> bool:
    """Whether box-drawing characters can be written to a stream."""
    try:
        "├└│…".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def finish() -> None:
    """Write out what is still buffered, so that a full disk or a closed pipe is noticed here.

    Raises:
        OSError: Standard output is closed or cannot take it.
    """
    if sys.stdout is None:
        raise OSError("standard output is closed, so that the result went nowhere; send it to a file: > result.txt")
    sys.stdout.flush()


def silence() -> None:
    """Drop what standard output could not take, or Python complains about it once more at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, AttributeError, ValueError, io.UnsupportedOperation):
        return
