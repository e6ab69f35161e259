"""Reader of recorded searches: a long table of clicks, or one path per row."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pomdp_hier._arguments import Ints, check_choice, check_text, is_integer, unexpected
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import DataWarning, ReaderError, Setting, warn_user
from pomdp_hier.hierarchy.arrays import is_row
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.node_names import label_text
from pomdp_hier.hierarchy.readers.tables import SOURCES, TARGETS, Table, is_missing, read_table
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.searches.choices import OUTSIDE, Searches

_KNOWN = {
    "search": ("search", "search_id", "session", "trial"),
    "searcher": ("searcher", "searcher_id", "participant", "user", "person", "respondent"),
    "item": ("item", "item_id", "target", "task", "goal"),
    "step": ("step", "order", "position", "time", "timestamp"),
    "node": ("node", "node_id", "click", "clicked", "category"),
    "path": ("path", "clicks"),
}
"""The names of the columns of each role."""

_MARKS = (">", "|", "/")
_INTEGER = re.compile(r"(?<![\d.,])\d+")  # not the digits of a fraction
_LONG = ("searcher", "item", "step", "node")


def read_searches(
    source: Any,
    hierarchy: Hierarchy,
    *,
    columns: Mapping[str, str] | None = None,
    sep: str | None = None,
    back: str | Sequence[str] = "<back>",
    start: str = "root",
    links: Any = None,
    unknown_items: str = "error",
    delimiter: str | None = None,
) -> Searches:
    """Return the recorded searches in a table: one click per row, or one path of clicks per row.

    A long table has one click per row, with the columns ``searcher``, ``item``, ``step`` and ``node``: the node that
    the click led to. The other form has one search per row: ``item``, ``path`` such as ``a > b > <back> > c``, and
    optionally ``searcher``. Use ``columns`` if the columns have other names.

    A node is given by its id, by its path from the root, such as ``Home > Bath``, or by the last name of its path. A
    name of several nodes is the child of the last node. The search starts at the root, which need not be listed.
    Returns are kept: as the node that they lead to, or as a mark for one step back.

    Clicks on other names leave the tree. They are counted in the ``notes`` of the result and in a warning. The click
    after one is not a choice, since its alternatives are unknown.

    Args:
        source: CSV or other delimited text, its path or open file, a data frame, a dictionary of columns, or rows.
        hierarchy: The tree.
        columns: The columns by role, such as ``{"item": "target"}``. A long table has ``searcher``, ``item``, ``step``
            and ``node``. ``path`` has cells with text or lists. ``search`` has ids of searches, for a searcher with
            several searches for one item. Default: by common names. Without a column of steps, rows are in order.
        sep: The separator of the nodes in a path (default: the first of ``>``, ``|`` and ``/`` in the column).
        back: The mark, or marks, for one step back.
        start: ``"root"``, or ``"first"`` if the first node of each search was given, and not chosen.
        links: The nodes that a click can lead to, as a table or pairs of ``from, to``. At a node with links, they
            replace its children as alternatives. A click is then a choice at each level of the tree, from the root
            down.
        unknown_items: ``"error"``, or ``"drop"`` to leave out and count searches for items that the tree lacks.
        delimiter: The delimiter of CSV; by default the most frequent of comma, semicolon and tab in the header.

    Raises:
        ReaderError: The table lacks a column, a step is listed twice, an item is unknown, or no click is in the tree.
        ParameterError: An argument is invalid.

    Example:
        >>> tree = Hierarchy.from_paths({"sponge": "Home > Bath", "towel": "Home > Bath", "lamp": "Home > Light"})
        >>> rows = [{"searcher": "Ann", "item": "lamp", "path": "Home > Bath > <back> > Light"}]
        >>> found = read_searches(rows, tree)
        >>> [tree.labels[node] for node in found.nodes], found.found.tolist()
        ([('Home',), ('Home', 'Bath'), ('Home',), ('Home', 'Light')], [True])
    """
    require_hierarchy(hierarchy)
    check_choice("start", start, ("root", "first"))
    check_choice("unknown_items", unknown_items, ("error", "drop"))
    for name, value in (("sep", sep), ("delimiter", delimiter)):
        check_text(name, value)
    given = _checked_columns(columns)
    table = read_table(source, _LONG, delimiter)
    at = {role: table.column(given.get(role), known) for role, known in _KNOWN.items()}
    item_at = _required(table, "item", at["item"])
    given_marks = [back] if isinstance(back, str) else list(back) if is_row(back) else [None]
    if not all(isinstance(mark, str) and mark.strip() for mark in given_marks):
        raise unexpected("back", back, "text, such as '<back>', or a list of texts")
    marks = tuple(str(mark).strip() for mark in given_marks)
    nodes = _Nodes(hierarchy, sep)
    if at["path"] is not None and "node" not in given and ("path" in given or at["node"] is None):
        if "step" in given:
            raise unexpected("columns", columns, "no 'step' with one path per row", " Leave it out.")
        whose = at["search"] if at["searcher"] is None else at["searcher"]
        records = _of_paths(table, (item_at, at["path"], whose), sep, marks)
    else:
        node_at = _required(table, "node", at["node"])
        if at["searcher"] is None and at["search"] is None:
            raise _lacking(table, "searcher")
        records = _of_clicks(table, (at["search"], at["searcher"], item_at, at["step"], node_at))
    found = _Joined(nodes, set(marks), start, dropping=unknown_items == "drop")
    for record in records:
        found.add(record)
    made = found.searches()
    return made if links is None else _with_links(made, nodes, links)


@dataclass
class _Record:
    """One search as it is written: the searcher, the item, and the names of the clicks."""

    searcher: Hashable
    item: Any
    clicks: list[Any]
    row: int


def _checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    if columns is not None and not isinstance(columns, Mapping):
        raise unexpected("columns", columns, "a dict of columns by role, such as {'item': 'target'}")
    given = dict(columns or {})
    for role in given:
        check_choice("columns", role, tuple(_KNOWN))
    if {"node", "path"} <= set(given):
        raise unexpected("columns", columns, "'node' or 'path', not both", " Leave one out.")
    return given


def _required(table: Table, role: str, found: int | None) -> int:
    if found is None:
        raise _lacking(table, role)
    return found


def _lacking(table: Table, role: str) -> ReaderError:
    return ReaderError(
        f"columns: got {listed(table.columns, limit=10)}; expected {brief(role)}. Name it with ",
        Setting("columns"),
        ".",
    )


def _of_paths(table: Table, at: tuple[int, int, int | None], sep: str | None, marks: tuple[str, ...]) -> list[_Record]:
    """Return one record per row; a mark for a step back may contain the separator."""
    item_at, path_at, searcher_at = at
    pattern = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))) or "(?!)")
    bare = [pattern.sub("", cell) for row in table.rows if isinstance(cell := row[path_at], str)]
    sep = sep or next((mark for mark in _MARKS if any(mark in cell for cell in bare)), _MARKS[0])
    records = []
    for number, row in enumerate(table.rows, 1):
        cell = row[path_at]
        if isinstance(cell, str):
            clicks: list[Any] = [part for part in _split(cell, sep, pattern) if part]
        else:
            clicks = [] if is_missing(cell) else list(cell) if is_row(cell) else [cell]
        searcher = number if searcher_at is None else _hashable(row[searcher_at], number, "searcher")
        records.append(_Record(searcher, row[item_at], clicks, number))
    return records


def _split(cell: str, sep: str, pattern: re.Pattern[str]) -> list[str]:
    """Return the parts of a cell; a mark that is a whole part is kept whole.

    Example:
        >>> _split("a > <back> > b<c", ">", re.compile("<back>|<"))
        ['a', '<back>', 'b<c']
    """
    cell = cell.replace("\0", " ")  # which stands for a mark below
    held = [found[0] for found in pattern.finditer(cell)]
    marked = pattern.sub("\0", cell)
    parts = []
    for part in marked.split(sep):
        while "\0" in part:
            part = part.replace("\0", held.pop(0), 1)
        parts.append(part.strip())
    return parts


def _of_clicks(table: Table, at: tuple[int | None, int | None, int, int | None, int]) -> list[_Record]:
    """Return one record per search of a long table, the clicks by their steps."""
    search_at, searcher_at, item_at, step_at, node_at = at
    groups: dict[Hashable, list[int]] = {}
    cells: list[tuple[Hashable, Hashable]] = []
    for number, row in enumerate(table.rows):
        search = None if search_at is None else _hashable(row[search_at], number + 1, "search")
        searcher = search if searcher_at is None else _hashable(row[searcher_at], number + 1, "searcher")
        item = _hashable(row[item_at], number + 1, "item")
        groups.setdefault((searcher, item) if search_at is None else search, []).append(number)
        cells.append((searcher, item))
    records = []
    for rows in groups.values():
        items = dict.fromkeys(cells[row][1] for row in rows)
        if len(items) > 1:
            raise ReaderError(
                f"row {rows[0] + 1}: got one search for {listed(items)}; expected one item per search. Correct it, or "
                "name another column of searches with ",
                Setting("columns"),
                ".",
            )
        if step_at is not None:
            rows = _by_step(table, rows, step_at)
        searcher, item = cells[rows[0]]
        records.append(_Record(searcher, item, [table.rows[row][node_at] for row in rows], rows[0] + 1))
    return records


def _hashable(cell: Any, row: int, role: str) -> Hashable:
    """Return a cell as a key; a list, such as a path, as a tuple."""
    cell = tuple(cell) if isinstance(cell, list) else cell
    try:
        hash(cell)
    except TypeError:
        raise ReaderError(f"row {row}: got {brief(cell)} as the {role}; expected text or a number.") from None
    key: Hashable = cell
    return key


def _number(cell: Any) -> int | float:
    """Return a cell as a number; integers are exact, such as times in nanoseconds."""
    try:
        return int(cell) if isinstance(cell, str) or is_integer(cell) else float(cell)
    except ValueError:
        return float(cell)


def _by_step(table: Table, rows: list[int], step_at: int) -> list[int]:
    """Return the rows in the order of their steps: numbers, or texts that sort, such as times (9:30 before 10:15)."""
    cells = [table.rows[row][step_at] for row in rows]
    try:
        steps: list[Any] = [_number(cell) for cell in cells]
    except (TypeError, ValueError, OverflowError):
        steps = [_INTEGER.sub(lambda digits: digits[0].zfill(20), c) if isinstance(c, str) else c for c in cells]
    blank = [is_missing(step) or (isinstance(step, str) and not step.strip()) for step in steps]
    missing = [row for row, is_blank in zip(rows, blank, strict=True) if is_blank]
    if missing:
        raise ReaderError(f"row {missing[0] + 1}: got no step; expected a number or a time. Fill it in.")
    try:
        order = sorted(range(len(rows)), key=steps.__getitem__)
    except TypeError:
        raise ReaderError(f"row {rows[0] + 1}: got steps {listed(cells)}; expected all numbers or all times.") from None
    for one, other in pairwise(order):
        if steps[one] == steps[other]:
            raise ReaderError(
                f"row {rows[other] + 1}: got step {brief(cells[other])} of row {rows[one] + 1} again; expected "
                "distinct steps in a search. For several searches for one item, name a column of searches with ",
                Setting("columns"),
                ".",
            )
    return [rows[at] for at in order]


class _Nodes:
    """The nodes of a tree by id, by path and by the last name of their path."""

    def __init__(self, tree: Hierarchy, sep: str | None) -> None:
        self.tree, self._marks = tree, (sep,) if sep else _MARKS
        self._by_id: dict[Any, list[int]] = {}
        self._by_text: dict[str, list[int]] = {}
        self._by_last: dict[str, list[int]] = {}
        for node, label in enumerate(range(tree.n_nodes) if tree.labels is None else tree.labels):
            if label is None:
                continue
            self._by_id.setdefault(label, []).append(node)
            self._by_text.setdefault(label_text(label).strip(), []).append(node)
            if isinstance(label, tuple) and label:
                self._by_last.setdefault(str(label[-1]).strip(), []).append(node)

    def __call__(self, name: Any, current: int) -> int:
        """Return the node with a name, -1 for none, -2 for several; an id goes before a path."""
        if isinstance(name, tuple | list):
            nodes = self._by_id.get(tuple(name), [])
            return nodes[0] if len(nodes) == 1 else self._walked([str(part).strip() for part in name])
        if is_missing(name):
            return OUTSIDE
        whole = isinstance(name, float | np.floating) and float(name).is_integer()
        text = str(int(name) if whole else name).strip()
        for known in (self._by_id, self._by_text, self._by_last):
            nodes = known.get(text, [])
            if len(nodes) == 1:
                return nodes[0]
            if nodes:
                below = [node for node in nodes if current >= 0 and self.tree.parent[node] == current]
                return below[0] if len(below) == 1 else -2
        for mark in self._marks:
            if mark in text:
                node = self._walked([part.strip() for part in text.split(mark) if part.strip()])
                if node >= 0:
                    return node
        return OUTSIDE

    def _walked(self, parts: list[str]) -> int:
        """Return the node at the end of a path of names from the root, which may be named or not."""
        tree, node = self.tree, self.tree.root
        if parts and tree.root in self._by_text.get(parts[0], ()):
            parts = parts[1:]
        for part in parts:
            named = (*self._by_text.get(part, ()), *self._by_last.get(part, ()))
            below = {child for child in named if tree.parent[child] == node}
            if len(below) != 1:
                return OUTSIDE
            node = below.pop()
        return node


@dataclass
class _Joined:
    """Searches joined to the nodes of a tree, one after another."""

    find: _Nodes
    marks: set[str]
    start: str
    dropping: bool
    searchers: list[Hashable] = field(default_factory=list)
    items: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    returns: list[bool] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    outside: list[Any] = field(default_factory=list)
    ambiguous: list[Any] = field(default_factory=list)
    unknown: list[Any] = field(default_factory=list)
    n_too_far: int = 0
    n_empty: int = 0

    def add(self, record: _Record) -> None:
        """Join one search; a click whose name is not that of one node is outside."""
        item = self.find(record.item, OUTSIDE)
        if not 0 <= item < self.find.tree.n_items:
            self.unknown.append(record.item)
            return
        been = [] if self.start == "first" else [self.find.tree.root]
        self.n_empty += not record.clicks
        for name in record.clicks:
            is_back = isinstance(name, str) and name.strip() in self.marks
            if is_back:
                self.n_too_far += len(been) < 2
                been = been[:-1] if len(been) > 1 else been
                node = been[-1] if been else OUTSIDE
            else:
                node = self.find(name, been[-1] if been else self.find.tree.root)
                if node < 0:
                    (self.ambiguous if node == -2 else self.outside).append(name)
                    node = OUTSIDE
                been.append(node)
            self.nodes.append(node)
            self.returns.append(is_back)
        self.searchers.append(record.searcher)
        self.items.append(item)
        self.counts.append(len(record.clicks))

    def searches(self) -> Searches:
        """Return the searches, and warn of what was left out."""
        tree = self.find.tree
        if self.unknown and (not self.items or not self.dropping):
            drop = (", or leave these searches out: ", Setting("unknown_items", "drop")) if self.items else ()
            raise ReaderError(
                f"item: got {_examples(self.unknown)} in {counted(len(self.unknown), 'search', 'searches')}; expected "
                f"ids of items, such as {listed(tree.item_labels[:3])}. Correct them",
                *drop,
                ".",
            )
        if self.nodes and all(node == OUTSIDE for node in self.nodes):
            some = listed(dict.fromkeys(map(str, [*self.outside, *self.ambiguous])))
            raise ReaderError(
                f"node: got {some}, and no node of the tree; expected ids or paths of nodes, such as "
                f"{listed([label_text(tree.item_labels[0]), _shown(tree)])}. Name the right column with ",
                Setting("columns"),
                ".",
            )
        notes = [
            self._note(self.outside, "click", "clicks", "outside the tree"),
            self._note(self.ambiguous, "click", "clicks", "with the name of several nodes, left out"),
            self._note(self.unknown, "search", "searches", "for items that the tree lacks, left out"),
            f"{counted(self.n_too_far, 'step')} back beyond the start, left out" if self.n_too_far else "",
            f"{counted(self.n_empty, 'search', 'searches')} without a click" if self.n_empty else "",
        ]
        said = tuple(note for note in notes if note)
        warn_user(said, DataWarning)
        offsets = np.concatenate(([0], np.cumsum(self.counts))).astype(np.int64)
        items, nodes = (np.array(values, dtype=np.int64) for values in (self.items, self.nodes))
        returns = np.array(self.returns, dtype=bool)
        return Searches(tree, tuple(self.searchers), items, offsets, nodes, returns, self.start, notes=said)

    def _note(self, names: list[Any], noun: str, plural: str, what: str) -> str:
        if not names:
            return ""
        return f"{counted(len(names), noun, plural)} {what}: {_examples(names)}"


def _examples(names: Iterable[Any]) -> str:
    """Return the distinct names of a list, the first three in full."""
    return listed(list(dict.fromkeys(map(str, names))), limit=3)


def _shown(tree: Hierarchy) -> str:
    """Return the name of a node below the root, as an example."""
    children = tree.children(tree.root)
    node = int(children[0]) if len(children) else tree.root
    return label_text(node if tree.labels is None else tree.labels[node])


def _with_links(searches: Searches, nodes: Callable[[Any, int], int], links: Any) -> Searches:
    table = read_table(links, ("from", "to"))
    source_at, target_at = table.column(None, SOURCES), table.column(None, TARGETS)
    if source_at is None or target_at is None:
        raise ReaderError(f"links: got columns {listed(table.columns)}; expected 'from' and 'to'. Rename them.")
    tree, known = searches.hierarchy, dict[Any, int]()
    ends: list[tuple[int, int]] = []
    missing: list[Any] = []
    for row in table.rows:
        pair = []
        for name in (row[source_at], row[target_at]):
            key = str(name) if not is_integer(name) else name
            if key not in known:
                known[key] = nodes(name, OUTSIDE)
            pair.append(known[key])
        if min(pair) < 0:
            missing.append(row[source_at] if pair[0] < 0 else row[target_at])
        else:
            ends.append((pair[0], pair[1]))
    if not ends:
        raise ReaderError(
            f"links: got {_examples(missing) if missing else 'none'}, and none between nodes of the tree; expected "
            "pairs of ids or paths."
        )
    pairs: Ints = np.unique(np.array(ends, dtype=np.int64), axis=0)
    notes = searches.notes
    if missing:
        note = f"{counted(len(missing), 'link')} from or to something outside the tree, left out: {_examples(missing)}"
        warn_user([note], DataWarning)
        notes = (*notes, note)
    offsets = np.searchsorted(pairs[:, 0], np.arange(tree.n_nodes + 1))
    return replace(
        searches, link_offsets=offsets.astype(np.int64), links=np.ascontiguousarray(pairs[:, 1]), notes=notes
    )
