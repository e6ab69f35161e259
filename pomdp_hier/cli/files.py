"""Input and output files of commands, declared by the types of their arguments and kept distinct, and output tables.

An argument that names a file has the type `input_file` or `output_file`. So every command is checked in one place,
before it starts: no two outputs are one file, and no output is an input. Existing files are replaced only with
``--force``.
"""

import argparse
import csv
import io
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any
from unicodedata import normalize

from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import file_ending, without_sheet
from pomdp_hier._io.workbooks import need_excel, workbook_bytes
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError, PomdpHierError, Setting

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
