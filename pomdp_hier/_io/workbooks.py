"""Tables as workbooks (.xlsx, extra ``excel``): the first sheet, with the names of the columns on top."""

import io
import math
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import decoding
from pomdp_hier._io.memory import memory_available, require_memory
from pomdp_hier.errors import PomdpHierError

_LONGEST = 32_767  # characters of a cell
_CHOICES = {"decision": '"accept,reject"'}  # columns whose cells offer a list


def need_excel(name: str) -> Any:
    """Return openpyxl.

    Raises:
        MissingExtraError: It is not installed.
    """
    return from_extra("excel", "openpyxl", f"{name}: a workbook needs openpyxl (or use .csv)")


def workbook_bytes(columns: Mapping[str, Sequence[Any]], name: str = "the workbook") -> bytes:
    """Return a table as a workbook; texts are texts, also those that start as a formula does.

    Raises:
        MissingExtraError: Openpyxl is not installed.
    """
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


def workbook_rows(content: bytes, name: str, error: type[PomdpHierError]) -> list[dict[str, Any]]:
    """Return the rows of the first sheet of a workbook by column, without empty rows and unnamed columns.

    Raises:
        PomdpHierError: As ``error``: it is not a workbook, or larger than the available memory.
        MissingExtraError: Openpyxl is not installed.
    """
    openpyxl = need_excel(name)
    with decoding(name, error, "a whole workbook"), zipfile.ZipFile(io.BytesIO(content)) as archive:
        declared = sum(part.file_size for part in archive.infolist())
    require_memory(declared, memory_available(), name, error)
    with decoding(name, error, "a whole workbook"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of features that are not read, such as lists of choices
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
        filled = [row for row in rows if any(cell is not None for cell in row)]
        book.close()
    if not filled:
        return []
    head = [None if cell is None else str(cell) for cell in filled[0]]
    return [
        {column: _whole(cell) for column, cell in zip(head, row, strict=False) if column is not None}
        for row in filled[1:]
    ]


def _whole(cell: Any) -> Any:
    """Return a number without a fraction as an integer: spreadsheets make no difference."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell
