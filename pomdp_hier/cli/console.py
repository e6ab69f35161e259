"""Input and output of commands: streams, files, exit codes, and signals during a search.

Results go to standard output, all else to standard error. Ctrl-C and SIGTERM end a search, not the process: the
command then writes the result so far, and ends with the code of the signal.

An argument that names a file has the type `input_file` or `output_file`. So every command is checked in one place,
before it starts: no two outputs are one file, and no output is an input. Existing files are replaced only with
``--force``.
"""

import argparse
import csv
import io
import json
import os
import shlex
import signal
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import Any, TextIO
from unicodedata import normalize

from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import file_ending, without_sheet
from pomdp_hier._io.workbooks import need_excel, workbook_bytes
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief, visible
from pomdp_hier.errors import ParameterError, PomdpHierError, PomdpHierWarning, PythonAdvice, Setting


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


def command(
    name: str, summary: str, configure: Callable[[argparse.ArgumentParser], None], *examples: str
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Return the decorator that makes a command of the function that runs it."""
    return lambda run: Command(name, summary, examples, configure, run)


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


def said_to_end(error: KeyboardInterrupt) -> str:
    """Return the message for a command that a signal ended without a result."""
    return ("told to end" if _told else "interrupted") + f": {error}" * bool(error.args)


_STREAMS = ("/dev/stdin", "/dev/stdout")  # what - stands for


def input_file(text: str) -> str:
    """Return the path of a file that the command reads; the type of such an argument."""
    return _path(text)


def output_file(text: str) -> str:
    """Return the path of a file that the command writes; the type of such an argument."""
    return _path(text)


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("got an empty path; expected a file. A shell variable may be unset.")
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"got {brief(text)}; expected a path without NUL")
    return text


def file_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a command that name files."""
    return [action for action in parser._actions if action.type in (input_file, output_file)]


def check_apart(options: argparse.Namespace, arguments: list[argparse.Action]) -> None:
    """Raise for two outputs that are one file, and for an output that is an input."""
    given = [
        (action.type is output_file, max(action.option_strings, key=len, default=str(action.metavar)), path)
        for action in arguments
        for path in _paths(getattr(options, action.dest))
    ]
    outputs = [(name, path) for is_output, name, path in given if is_output]
    for (name, path), (other, same) in combinations(outputs, 2):
        if same_file(_stream(path, 1), _stream(same, 1)):
            raise ParameterError(f"{name} and {other}: got one file for both, {path}; expected two. Give another path.")
    for name, path in outputs:
        if path != "-" and _takes_standard_output(path):
            raise ParameterError(
                f"{name}: got {path}, where standard output is written to; expected another file. Give another path."
            )
        for is_output, other, source in given:
            if not is_output and same_file(_stream(path, 1), _stream(source, 0)):
                raise ParameterError(
                    f"{name}: got {path}, the same file as the input {other}; expected another. Give another path."
                )


def same_file(one: str, other: str) -> bool:
    """Return whether two paths lead to one file, also by links, ``./``, or a case-insensitive file system."""
    paths = os.path.realpath(one), os.path.realpath(other)
    if os.devnull in (*paths, one, other):
        return False
    with suppress(OSError, ValueError):
        if os.path.samefile(*paths):
            return True
    folders, names = zip(*map(os.path.split, paths), strict=True)
    try:
        together = folders[0] == folders[1] or os.path.samefile(*folders)
    except (OSError, ValueError):  # no such folder, which the command says
        return False
    return together and (names[0] == names[1] or (_folded(names[0]) == _folded(names[1]) and _ignores_case(folders[0])))


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()


def _ignores_case(folder: str) -> bool:
    try:
        with tempfile.NamedTemporaryFile(prefix=".case", dir=folder) as probe:
            return Path(folder, Path(probe.name).name.upper()).exists()
    except OSError:
        return False


def _paths(value: str | list[str] | None) -> list[str]:
    return [without_sheet(path)[0] for path in ([value] if isinstance(value, str) else value or [])]


def _stream(path: str, number: int) -> str:
    return _STREAMS[number] if path == "-" else path


def _takes_standard_output(path: str) -> bool:
    with suppress(OSError, AttributeError, ValueError):
        found = os.fstat(sys.stdout.fileno())
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, os.stat(path))
    return False


_SUFFIXES = (".csv", ".parquet", ".json", ".xlsx")
_FORMULA_STARTS = tuple("=+-@\t\r＝＋－＠")  # full-width signs, too: Excel takes them for the others


def check_target(path: str, force: bool, *, endings: Sequence[str] | None = _SUFFIXES, option: str = "--out") -> None:
    """Raise for an output that cannot be written, before the work starts."""
    tabular = endings is _SUFFIXES
    if path == "-" and tabular:
        return
    target = Path(path)
    if endings is not None and (target.suffix.lower() if tabular else file_ending(path)) not in endings:
        more = ", or - for CSV on stdout" if tabular else ""
        raise ParameterError(f"{option}: got {path}; expected a name that ends in {' or '.join(endings)}{more}.")
    if not target.parent.is_dir():
        raise PomdpHierError(f"{path}: got the folder {target.parent}, which does not exist. Make it first.")
    if target.is_dir():
        raise PomdpHierError(f"{path}: got a folder; expected the path of a file.")
    if tabular and target.suffix.lower() == ".xlsx":
        need_excel(path)
    if os.path.lexists(target) and not force:
        raise PomdpHierError(
            f"{path}: got a path that exists; expected a new one. Choose another, or replace it: ",
            Setting("replace", True),
            ".",
        )


def write_table(path: str, columns: Mapping[str, Sequence[Any]], force: bool) -> None:
    """Write a table to a file atomically; ``-`` is CSV on standard output."""
    if path == "-":
        sys.stdout.write(csv_text(columns))
        return
    makers = {".csv": _csv_bytes, ".json": _json_bytes, ".parquet": _parquet_bytes, ".xlsx": workbook_bytes}
    to_bytes = makers[Path(path).suffix.lower()]
    write_file(path, to_bytes(columns), replace=force)


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return a table as CSV; text that a spreadsheet would run as a formula starts with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_harmless(name) for name in columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([_harmless(cell) for cell in row])
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    defused = f"'{cell}" if cell.lstrip(" \u3000").startswith(_FORMULA_STARTS) else cell
    return defused.replace("\r", " ")  # which the csv module leaves bare, so that readers would break the line there


def _csv_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    return csv_text(columns).encode("utf-8", "backslashreplace")


def _json_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return ("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n").encode()


def _parquet_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    pq = from_extra("frames", "pyarrow.parquet", "Parquet needs pyarrow (or write .csv)")
    import pyarrow as pa

    content = io.BytesIO()
    pq.write_table(pa.table({name: list(cells) for name, cells in columns.items()}), content)
    return content.getvalue()
