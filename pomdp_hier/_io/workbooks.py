"""Workbooks (.xlsx, extra ``excel``): a table as a workbook, and a sheet as CSV, which every reader of tables takes."""

import csv
import io
import math
import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import (
    decoding,
    file_ending,
    kind_of,
    memory_available,
    require_memory,
    unpacked,
    without_sheet,
)
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import DataWarning, PomdpHierError

_ENDINGS = (".xlsx", ".xlsm")
_REMEDY = "Save the sheet as CSV, or copy the file again"
_LONGEST = 32_767  # characters of a cell
_CHOICES = {"decision": '"accept,reject"'}  # columns whose cells offer a list


def need_excel(name: str) -> Any:
    """Return openpyxl."""
    return from_extra("excel", "openpyxl", f"{name}: a workbook needs openpyxl (or use .csv)")


def is_workbook(name: str) -> bool:
    """Return whether a file's name is that of a workbook.

    Example:
        >>> is_workbook("shop.xlsx#Tree"), is_workbook("shop.csv")
        (True, False)
    """
    return file_ending(name) in _ENDINGS


def workbook_bytes(columns: Mapping[str, Sequence[Any]], name: str = "the workbook") -> bytes:
    """Return a table as a workbook; texts are texts, also those that start as a formula does."""
    openpyxl = need_excel(name)
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.worksheet.datavalidation import DataValidation

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("table")
    sheet.freeze_panes = "A2"

    def cell(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if not isinstance(value, str):
            return value
        made = WriteOnlyCell(sheet, value=ILLEGAL_CHARACTERS_RE.sub(" ", value)[:_LONGEST])
        made.data_type = "s"
        return made

    n_rows = max(map(len, columns.values()), default=0)
    for at, column in enumerate(columns, start=1):
        if column in _CHOICES and n_rows:
            letter = openpyxl.utils.get_column_letter(at)
            offered = DataValidation(type="list", formula1=_CHOICES[column], allow_blank=True)
            offered.add(f"{letter}2:{letter}{n_rows + 1}")
            sheet.data_validations.append(offered)
    sheet.append([cell(column) for column in columns])
    for row in zip(*columns.values(), strict=True):
        sheet.append([cell(value) for value in row])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def workbook_text(content: bytes, name: str, error: type[PomdpHierError]) -> str:
    """Return a sheet of a workbook as CSV: numbers without a fraction as integers, dates as 2024-05-31.

    The sheet is the one that the name ends in, as ``shop.xlsx#Tree``, or else the first that is not hidden. Row k of
    the sheet is line k of the text, unless a cell has several lines. Columns without any value are left out.
    """
    openpyxl = need_excel(name)
    with decoding(name, error, "an Excel workbook", _REMEDY), zipfile.ZipFile(io.BytesIO(content)) as archive:
        require_memory(sum(part.file_size for part in archive.infolist()), memory_available(), name, error)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of features that are not read, such as lists of choices
            book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheet = _sheet(book, name, error)
        source = archive.read(sheet._worksheet_path.removeprefix("/"))
        where = f"{without_sheet(name)[0]}, sheet {brief(sheet.title)}"
        if merged := _MERGED.search(source):
            raise error(
                f"{where}: got the merged cells {merged[1].decode()}; expected one value per cell. Unmerge them, and "
                "fill in each cell."
            )
        sheet.reset_dimensions()  # which some programs declare too small
        rows = [list(row) for row in sheet.iter_rows()]
        if _FORMULA.search(source):
            formulas = openpyxl.load_workbook(io.BytesIO(content), read_only=True)[sheet.title]
            formulas.reset_dimensions()
            _check_values(rows, formulas.iter_rows(), where, error)
        return _as_csv(rows, where, error)


_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z0-9:$]+)"')
_PLAIN = re.compile(r"[\w .-]*")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s>/]")


def _sheet(book: Any, name: str, error: type[PomdpHierError]) -> Any:
    """Return the named sheet, or the first; a warning names the others."""
    path, wanted = without_sheet(name)
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if not sheets:
        raise error(f"{name}: got no sheet with cells; expected a table. Save the table as a sheet.")
    if wanted is not None:
        if wanted not in sheets:
            raise error(f"{path}: got no sheet {brief(wanted)}; expected one of {listed(sheets, limit=20)}.")
        return sheets[wanted]
    shown = [title for title, sheet in sheets.items() if sheet.sheet_state == "visible"] or list(sheets)
    if len(shown) > 1:
        warnings.warn(
            f"{path}: the sheet {brief(shown[0])} is read, the first of {listed(shown)}; name another as "
            f"{path}#{shown[1]}",
            DataWarning,
            stacklevel=2,
        )
    return sheets[shown[0]]


def _check_values(
    rows: Sequence[Sequence[Any]], formulas: Iterable[Sequence[Any]], where: str, error: type[PomdpHierError]
) -> None:
    """Raise for a formula whose value the file does not have."""
    for row, others in zip(rows, formulas, strict=False):
        for cell, formula in zip(row, others, strict=False):
            if formula.data_type == "f" and cell.value is None:
                raise error(
                    f"{where}, cell {formula.coordinate}: got a formula without a value; expected a value. Open and "
                    "save the file in a spreadsheet program, or replace formulas by values."
                )


def _as_csv(rows: Sequence[Sequence[Any]], where: str, error: type[PomdpHierError]) -> str:
    """Return rows of cells as CSV; a header with marks is quoted, as one may look like a delimiter."""
    text = io.StringIO()
    filled = sorted({at for row in rows for at, cell in enumerate(row) if cell.value is not None})
    dates: list[Any] = []
    header = None
    for row in rows:
        if all(cell.value is None for cell in row):
            text.write("\n")
            continue
        cells = [_cell_text(row[at], dates, where, error) if at < len(row) else "" for at in filled]
        header = header or cells
        plain = cells is not header or all(map(_PLAIN.fullmatch, cells))
        csv.writer(text, quoting=csv.QUOTE_MINIMAL if plain else csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    if dates:
        warnings.warn(
            f"{where}: got dates, cell {dates[0].coordinate} the first of {len(dates):,}, read as text such as "
            f"{_date(dates[0].value)}; a spreadsheet makes a date out of a code such as 1-2",
            DataWarning,
            stacklevel=3,
        )
    return text.getvalue()


def _cell_text(cell: Any, dates: list[Any], where: str, error: type[PomdpHierError]) -> str:
    """Return the value of a cell as text; a number without a fraction is an integer."""
    value = cell.value
    if value is None:
        return ""
    if cell.data_type == "e":
        raise error(f"{where}, cell {cell.coordinate}: got the error {value}; expected a value. Correct its formula.")
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (date, time, timedelta)):
        dates.append(cell)
        return _date(value)
    return str(value)


def _date(value: Any) -> str:
    """Return a date, a time, or both as text.

    Example:
        >>> _date(datetime(2024, 5, 31)), _date(time(9, 30)), _date(datetime(2024, 5, 31, 9, 30))
        ('2024-05-31', '09:30:00', '2024-05-31 09:30:00')
    """
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


def unpacked_table(content: bytes, name: str, error: type[PomdpHierError], limit: int | None = None) -> bytes:
    """Return the content of a file, decompressed; a workbook as the CSV text of its sheet."""
    content = unpacked(content, name, error, limit)
    kind = kind_of(content)
    if kind.name == "excel":
        return workbook_text(content, name, error).encode()
    if is_workbook(name) and kind.name == "text":
        raise error(f"{name}: got text; expected a workbook, as its ending says. Rename it to .csv.")
    return content
