"""Output tables as CSV, Parquet and JSON; existing files are replaced only with ``--force``."""

import csv
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import file_ending
from pomdp_hier._io.writing import write_file
from pomdp_hier.errors import ParameterError, PomdpHierError, Setting

_SUFFIXES = (".csv", ".parquet", ".json")
_FORMULA_STARTS = tuple("=+-@\t\r＝＋－＠")  # full-width signs, too: Excel takes them for the others


def check_target(
    path: str,
    force: bool,
    *,
    endings: Sequence[str] | None = _SUFFIXES,
    option: str = "--out",
) -> None:
    """Raise for an output that cannot be written, before the work starts.

    Args:
        path: The path.
        force: Whether an existing file may be replaced.
        endings: The allowed endings; None for any.
        option: The name of the option.

    Raises:
        ParameterError: Its ending is unknown.
        PomdpHierError: It exists and may not be replaced, or its folder does not exist.
    """
    tabular = endings is _SUFFIXES
    if path == "-" and tabular:
        return
    target = Path(path)
    if endings is not None and (target.suffix.lower() if tabular else file_ending(path)) not in endings:
        more = ", or - for CSV on stdout" if tabular else ""
        raise ParameterError(f"{option}: got {path}; expected a name that ends in {' or '.join(endings)}{more}")
    if not target.parent.is_dir():
        raise PomdpHierError(f"{path}: the folder {target.parent} does not exist. Make it first.")
    if target.is_dir():
        raise PomdpHierError(f"{path}: got a folder; expected the path of a file")
    if os.path.lexists(target) and not force:
        raise PomdpHierError(f"{path}: exists already. Choose another path, or replace it: ", Setting("replace", True))


def write_table(path: str, columns: Mapping[str, Sequence[Any]], force: bool) -> None:
    """Write a table to a file atomically; ``-`` is CSV on standard output.

    Raises:
        PomdpHierError: The file exists and ``force`` is not given, or it cannot be written.
        MissingExtraError: The ending is ``.parquet`` and pyarrow is not installed.
    """
    if path == "-":
        sys.stdout.write(csv_text(columns))
        return
    to_bytes = {".csv": _csv_bytes, ".json": _json_bytes, ".parquet": _parquet_bytes}[Path(path).suffix.lower()]
    write_file(path, to_bytes(columns), replace=force)


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return a table as CSV; text that a spreadsheet would run as a formula starts with an apostrophe.

    Example:
        >>> csv_text({"name": ["=1+1", "Dye Kit"], "value": [-0.5, 1.0]})
        "name,value\\n'=1+1,-0.5\\nDye Kit,1.0\\n"
    """
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
