"""Output of commands: results on standard output, all else on standard error."""

import argparse
import io
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from pomdp_hier._text import visible
from pomdp_hier.cli.exit_codes import ExitCode
from pomdp_hier.errors import PomdpHierError, PomdpHierWarning, PythonAdvice, Setting

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


def uses_unicode(stream: TextIO | None) -> bool:
    """Return whether a stream can encode box-drawing characters."""
    try:
        "├└│…".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def finish() -> None:
    """Flush standard output, to notice a full disk or a closed pipe.

    Raises:
        OSError: Standard output is closed or cannot take it.
    """
    if sys.stdout is None:
        raise OSError("standard output is closed; expected a stream for the result. Send it to a file: > result.txt")
    sys.stdout.flush()


def silence() -> None:
    """Drop the rest of standard output, which Python would report again at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, AttributeError, ValueError, io.UnsupportedOperation):
        return
