"""Category paths of lists, lines of text, and tables with a path column or one column per level."""

import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import networkx as nx

from pomdp_hier._arguments import check_choice, check_flag, check_text
from pomdp_hier._io.formats import file_ending
from pomdp_hier._io.workbooks import is_workbook
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import Argument, Note, ParameterError, PythonAdvice, ReaderError, Setting
from pomdp_hier.hierarchy.arrays import as_ids, as_text, dense, is_row
from pomdp_hier.hierarchy.readers.tables import (
    Table,
    first_line_is_row,
    is_missing,
    is_table,
    is_text_source,
    read_csv,
    read_table,
    read_text,
    require_header,
)
from pomdp_hier.hierarchy.readers.text_layout import NO_HEADER, outline_levels, structures

_ITEMS = ("item", "item_id", "id", "key", "sku")
_PATHS = ("path", "category_path", "category", "categories", "taxonomy")
_ID_FIRST = re.compile(r"\s*(\d+)\s+-\s+(.*)", re.DOTALL)
_ID_AND_COLON = re.compile(r"\s*(\S+)\s+:\s+(.*)", re.DOTALL)

Path = tuple[str, ...]


@dataclass(frozen=True)
class PathFormat:
    """The syntax of paths; see `pomdp_hier.hierarchy.Hierarchy.from_paths`."""

    sep: str | None = None
    escape: str | None = "\\"
    strip: bool = True
    blank_levels: Literal["error", "skip"] = "error"
    comment: str | None = "#"
    form: Literal["auto", "lines", "table", "outline"] = "auto"
    ends_in: Literal["item", "category"] | None = None
    item: str | None = None
    path: str | None = None
    levels: Sequence[str] | None = None
    delimiter: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        check_choice("form", self.form, ("auto", "lines", "table", "outline"))
        check_choice("blank_levels", self.blank_levels, ("error", "skip"))
        check_choice("ends_in", self.ends_in, (None, "item", "category"))
        check_flag("strip", self.strip)
        check_flag("header", self.header)
        if not self.header and self.form in ("lines", "outline"):
            raise ParameterError(
                Argument("header"), f": got False for {self.form}; expected a table. Leave out ", Argument("form"), "."
            )
        for name in ("sep", "escape", "comment", "item", "path", "delimiter"):
            check_text(name, getattr(self, name))
        if self.levels is not None:
            as_ids("levels", self.levels)


@dataclass
class PathRows:
    """The rows of a source: one path per row, as segments, and the item's id if there is one."""

    paths: list[Path] = field(default_factory=list)
    items: list[Hashable] | None = None
    is_text: bool = True
    has_item_column: bool = False
    n_blank: int = 0
    notes: list[Note] = field(default_factory=list)

    def end_in_category(self, how: PathFormat) -> bool:
        """Return whether a path ends in the category of the row's item, not in the item."""
        return how.ends_in == "category" or (how.ends_in is None and self.has_item_column)


def path_rows(source: Any, how: PathFormat) -> PathRows:
    if is_text_source(source):
        name = source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", "")
        text = read_text(source, is_text=lambda text: "\n" in text or "\r" in text, workbooks=True)
        if _is_table_text(text, name, how):
            return rows_of_table(read_csv(text, how.delimiter, how.comment, how.header), how)
        lines = content_lines(text, how.comment)
        if not lines and text.strip():
            raise ReaderError(
                f"text: got comments alone, which start with {brief(how.comment)}; expected one path per line.",
                PythonAdvice(" Pass comment=None."),
            )
        return rows_of_bare_lines(lines, how)
    require_header(how.header, source)
    if isinstance(source, Mapping) and not _names_columns(source, how):
        return _from_pairs(list(source.items()), how)
    if is_table(source):
        return rows_of_table(read_table(source), how)
    source = dense("the paths", source)
    if not isinstance(source, Iterable):
        raise ReaderError(f"source: got {brief(source)}; expected paths in a list, a table, a file or text.")
    rows = list(source)
    if all(isinstance(row, str) for row in rows):
        return rows_of_bare_lines([row for row in rows if row.strip()] if how.form == "outline" else rows, how)
    if all(isinstance(row, Mapping) for row in rows):
        return rows_of_table(read_table(rows), how)
    return _from_pairs(rows, how) if _are_pairs(rows, how) else _from_sequences(rows, how)


def _names_columns(source: Mapping[Any, Any], how: PathFormat) -> bool:
    """Return whether a dictionary has columns: its values are lists and a key is the name of a column."""
    known = {*_ITEMS, *_PATHS, how.item, how.path, *(how.levels or ())}
    return any(key in known for key in source) and not any(isinstance(value, str) for value in source.values())


def _are_pairs(rows: Sequence[Any], how: PathFormat) -> bool:
    """Return whether rows of two are an item with its path: a list, or text with a separator."""
    if not all(isinstance(row, (list, tuple)) and len(row) == 2 for row in rows):
        return False
    ends = [row[1] for row in rows]
    if all(isinstance(end, (list, tuple)) for end in ends):
        return True
    marks = (">", "|") if how.sep is None else (how.sep.strip() or how.sep,)
    return all(isinstance(end, str) for end in ends) and any(mark in end for end in ends for mark in marks)


def _is_table_text(text: str, name: object, how: PathFormat) -> bool:
    """Return whether text is a table: by the options, the file's ending, or a header with a known column."""
    if how.form != "auto" or not how.header:
        return how.form == "table" or not how.header
    named = os.fspath(name) if isinstance(name, (str, os.PathLike)) else ""
    if file_ending(named) in (".csv", ".tsv") or is_workbook(named):
        return True
    head = next(iter(content_lines(text, how.comment)), "")
    known = {*_ITEMS, *_PATHS, how.item, how.path, *(how.levels or ())}
    cells = [cell.strip().strip('"') for cell in re.split(how.delimiter or r"[,;\t]", head)]
    return any(cell in known or cell.casefold() in known for cell in cells)


def content_lines(text: str, comment: str | None) -> list[str]:
    """Return the lines that are neither comments nor blank."""
    lines = (line for line in text.splitlines() if line.strip())
    return [line for line in lines if not (comment and line.lstrip().startswith(comment))]


def rows_of_bare_lines(lines: Sequence[str], how: PathFormat) -> PathRows:
    """Return the rows of whole lines: an outline if requested, else paths, with or without ids before them."""
    if how.form == "outline":
        return PathRows(outline_levels(lines))
    found = ids_first(lines)
    if not found:
        return rows_of_lines(lines, how, bare=True)
    rows = rows_of_lines([path for _, path in found], how, items=[name for name, _ in found])
    rows.has_item_column = True
    return rows


def rows_of_lines(
    paths: Sequence[str], how: PathFormat, *, items: list[Hashable] | None = None, bare: bool = False
) -> PathRows:
    """Return the rows of paths as text; ``bare`` ones are whole lines, which may have another structure."""
    sep, notes = _read_separator(paths, how, bare)
    split = splitter(sep, how)
    rows = PathRows(items=items, notes=notes)
    for row, path in enumerate(paths, 1):
        segments, blank = split(path)
        if not segments:
            whose = "" if items is None else f" of item {brief(items[row - 1])}"
            raise ReaderError(
                f"row {row}: got {brief(path)} as the path{whose}; expected a category. Name one or remove the row."
            )
        rows.paths.append(segments)
        rows.n_blank += blank
    if how.sep is None and not notes:
        rows.notes += _doubts(rows.paths, sep)
    return rows


def ids_first(paths: Sequence[str]) -> list[tuple[Hashable, str]]:
    """Return ids and paths if each line is ``number - path``, or ``id : path`` with ``>`` in some paths."""
    for pattern in (_ID_FIRST, _ID_AND_COLON):
        found = [match for path in paths if (match := pattern.fullmatch(path))]
        if found and len(found) == len(paths):
            pairs: list[tuple[Hashable, str]] = [(match.group(1), match.group(2)) for match in found]
            is_sure = any(">" in path for _, path in pairs) and len({name for name, _ in pairs}) == len(pairs)
            if pattern is _ID_FIRST or is_sure:
                return pairs
    return []


def _read_separator(paths: Sequence[str], how: PathFormat, bare: bool) -> tuple[str, list[Note]]:
    """Return the given separator, or the one of most paths, with a warning of others."""
    if how.sep is not None:
        return how.sep, []
    found = structures(paths, bare=bare and how.form == "auto")
    if not found:
        return ">", []
    if found[0].sep is None:
        raise found[0].refusal(paths)
    counts = ", ".join(f"{brief(one.sep)} in {one.n_lines:,}" for one in found)
    if found[0].in_names:
        return ">", [
            (f"separator: got none in {counted(len(paths), 'path')}, so that each is one category ({counts}). Pass ",
             Setting("sep"), " to choose one")
        ]  # fmt: skip
    if len(found) > 1:
        return found[0].sep, [
            (f"separator: {brief(found[0].sep)} taken; {counts} of {counted(len(paths), 'path')}. Pass ",
             Setting("sep"), " to choose another")
        ]  # fmt: skip
    return found[0].sep, []


def _doubts(paths: Sequence[Path], sep: str | None = None) -> list[Note]:
    """Return a warning if the paths suggest that the guessed separator or columns are wrong."""
    if len(paths) > 2 and len({path[0] for path in paths}) == len(paths) and any(len(path) > 1 for path in paths):
        advice: tuple[str | Setting, ...] = ("Name the columns with ", Setting("levels"), " or ", Setting("item"))
        if sep is not None:
            advice = (f"Pass another separator than {brief(sep)} with ", Setting("sep"))
        doubt = f"no two of the {len(paths):,} paths share a top category (such as {brief(paths[0][0])}), as ids do. "
        return [(doubt, *advice)]
    return []


def splitter(sep: str, how: PathFormat) -> Callable[[str], tuple[Path, bool]]:
    """Return a function from a path to its segments, and whether empty ones were dropped."""
    if how.strip:
        sep = sep.strip() or sep
    escape = how.escape if how.escape != sep else None
    token = re.compile(
        "|".join(
            filter(None, [escape and re.escape(escape) + f"({re.escape(escape)}|{re.escape(sep)})", re.escape(sep)])
        )
    )

    def split(path: str) -> tuple[Path, bool]:
        if not escape or escape not in path:
            bare = [part.strip() for part in path.split(sep)] if how.strip else path.split(sep)
            kept = tuple([part for part in bare if part])
            return kept, len(kept) < len(bare)
        parts, part, start = [], "", 0
        for found in token.finditer(path):
            part += path[start : found.start()]
            start = found.end()
            if escape and found.group(1) is not None:
                part += found.group(1)
            else:
                parts.append(part)
                part = ""
        parts.append(part + path[start:])
        if how.strip:
            parts = [part.strip() for part in parts]
        kept = tuple(part for part in parts if part)
        return kept, len(kept) < len(parts)

    return split


def path_columns(table: Table, how: PathFormat) -> tuple[int | None, int | None, list[int]]:
    """Return the positions of the columns of items, of paths, and of levels."""
    item_at = table.column(how.item, _ITEMS)
    path_at = None if how.levels is not None else table.column(how.path, _PATHS)
    if path_at == item_at and how.item is None:
        item_at = None
    if how.levels is not None:
        levels = [place for name in how.levels if (place := table.column(name, ())) is not None]
    else:
        levels = [place for place in range(len(table.columns)) if place != item_at]
    if path_at is None and len(levels) == 1:
        path_at = levels[0]
    return item_at, path_at, levels


def separator(paths: Sequence[str], how: PathFormat) -> str:
    """Return the separator of the segments of these paths."""
    return how.sep or next((one.sep for one in structures(paths, bare=False) if one.sep and not one.in_names), ">")


def source_kind(text: str, how: PathFormat) -> str:
    """Return whether text is a ``"table"``, bare ``"lines"`` of paths, or lines that begin with ids, ``"ids"``."""
    if any((how.item, how.path, how.levels)) or _is_table_text(text, None, how):
        return "table"
    return "ids" if ids_first(content_lines(text, how.comment)) else "lines"


def _check_guess(table: Table, columns: Sequence[int], has_items: bool) -> None:
    """Raise an error if columns that are guessed to be categories contain links, ids or numbers."""
    cells = {
        at: ["" if is_missing(row[at]) else as_text("a cell", row[at]).strip() for row in table.rows] for at in columns
    }
    held = {at: set(values) - {""} for at, values in cells.items()}
    for one, other in combinations(columns, 2):
        shared = held[one] & held[other]
        if not shared or 2 * len(shared) < min(len(held[one]), len(held[other])):
            continue
        pairs = [pair for pair in zip(cells[one], cells[other], strict=True) if all(pair)]
        if nx.is_directed_acyclic_graph(nx.DiGraph(pairs)):
            raise ReaderError(
                f"columns: got {brief(table.columns[one])} and {brief(table.columns[other])}, which share the names "
                f"{listed(sorted(shared))}, as columns of links do; expected paths. Read them as links, with ",
                Setting("parent"),
                ", or name levels of paths with ",
                Setting("levels"),
                ".",
            )
    if first_line_is_row(table):
        raise ReaderError(
            f"header: got {listed(table.columns)}; expected names of columns. Name the levels with ",
            Setting("levels"),
            *NO_HEADER,
            ".",
        )
    last = columns[-1]
    is_measure = "" in cells[last] or 2 * len(held[last]) > len(cells[last])
    if is_measure and len(columns) == 1 + has_items and all(map(_is_number, held[last])):
        raise ReaderError(
            f"columns: got numbers in {brief(table.columns[last])}, the only column except that of the items; "
            "expected paths. "
            "Name the column of paths with ",
            Setting("path"),
            ", and their separator with ",
            Setting("sep"),
            ".",
        )
    first = columns[0]
    if (
        not has_items
        and len(held[first]) == len(table.rows) > 2
        and any(len(held[at]) < sum(map(bool, cells[at])) for at in columns[1:])
    ):
        raise ReaderError(
            f"columns: got distinct values in all rows of {brief(table.columns[first])}, which look like ids; expected "
            "categories. Name the ids with ",
            Setting("item"),
            ", or the levels with ",
            Setting("levels"),
            ".",
        )


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdecimal()


def rows_of_table(table: Table, how: PathFormat) -> PathRows:
    """Return the rows of a table with a column of paths, or one column per level."""
    item_at, path_at, levels = path_columns(table, how)
    if levels and not any((how.item, how.path, how.levels)) and table.column(None, _PATHS) is None:
        _check_guess(table, levels if item_at is None else [item_at, *levels], item_at is not None)
    items = None
    if item_at is not None:
        column = (row[item_at] for row in table.rows)
        items = [cell.strip() if how.strip and isinstance(cell, str) else cell for cell in column]
    if path_at is not None:
        paths = []
        for row, cells in enumerate(table.rows, 1):
            if not isinstance(cells[path_at], str):
                raise ReaderError(f"row {row}: got the path {brief(cells[path_at])}; expected text.")
            paths.append(cells[path_at])
        rows = rows_of_lines(paths, how, items=items)
    elif levels:
        rows = PathRows(items=items)
        for row, cells in enumerate(table.rows, 1):
            rows.paths.append(_level_path([cells[place] for place in levels], row, rows, how))
        if how.levels is None and items is None:
            rows.notes += _doubts(rows.paths)
    else:
        raise ReaderError(
            f"columns: got {listed(table.columns)}; expected a path or levels. Name the column of paths with ",
            Setting("path"),
            ".",
        )
    rows.has_item_column, rows.is_text = item_at is not None, table.is_text
    return rows


def _level_path(cells: Sequence[Any], row: int, rows: PathRows, how: PathFormat) -> Path:
    """Return the path of one cell per level, without blanks at the end; other blanks are gaps."""
    nested = next((cell for cell in cells if isinstance(cell, list | tuple | set | Mapping)), None)
    if nested is not None:
        raise ReaderError(f"row {row}: got the segment {brief(nested)}; expected text. Give the path alone.")
    where = f"row {row}"
    segments = ["" if is_missing(cell) else as_text(where, cell) for cell in cells]
    if how.strip:
        segments = [segment.strip() for segment in segments]
    while segments and not segments[-1]:
        segments.pop()
    item = "" if rows.items is None else f" (item {brief(rows.items[row - 1])})"
    if not segments:
        raise ReaderError(f"row {row}{item}: got blanks alone; expected a category. Name one or remove the row.")
    if "" in segments:
        if how.blank_levels == "error":
            raise ReaderError(
                f"row {row}{item}: got {brief(segments)}; expected a name in level {segments.index('') + 1}, above "
                "others. Fill it, or pass ",
                Setting("blank_levels", "skip"),
                ".",
            )
        rows.n_blank += 1
        segments = [segment for segment in segments if segment]
    return tuple(segments)


def _from_pairs(rows: Sequence[Any], how: PathFormat) -> PathRows:
    """Return the rows of items with their paths, as text or as segments."""
    items = [item for item, _ in rows]
    if all(isinstance(path, str) for _, path in rows):
        found = rows_of_lines([path for _, path in rows], how, items=items)
    else:
        found = _from_sequences([path for _, path in rows], how, items)
    found.has_item_column, found.is_text = True, False
    return found


def _from_sequences(rows: Sequence[Any], how: PathFormat, items: list[Hashable] | None = None) -> PathRows:
    found = PathRows(items=items, is_text=False)
    for row, segments in enumerate(rows, 1):
        if not is_row(segments):
            raise ReaderError(f"row {row}: got {brief(segments)}; expected a path, as text or a list of segments.")
        found.paths.append(_level_path(list(segments), row, found, how))
    return found
