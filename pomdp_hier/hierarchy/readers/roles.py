"""Which columns of a table hold the ends of links: by the names that they go by, SKOS's too, and by their cells."""

from collections.abc import Hashable, Sequence
from typing import Any

from pomdp_hier._messages import brief
from pomdp_hier.errors import ReaderError, Setting
from pomdp_hier.hierarchy.readers.structure import NO_HEADER
from pomdp_hier.hierarchy.readers.tables import Table, column_name, is_missing
from pomdp_hier.hierarchy.wording import Note, listed

__all__ = [
    "CHILDREN",
    "NODES",
    "PARENTS",
    "SOURCES",
    "TARGETS",
    "TRIPLE",
    "header_note",
    "links_of",
    "marks_of_no_parent",
    "parent_roles",
]

PARENTS = ("parent", "parent_id", "parentid", "parent id", "parent_uid", "broader")
CHILDREN = ("child", "child_id", "narrower")
SOURCES, TARGETS = ("source", "from"), ("target", "to")
NODES = ("id", "unique id", "uid", "node", "node_id", "child", "child_id", "concept", "uri", "item", "code", "name")
TRIPLE = ("subject", "predicate", "object")
_NO_PARENT = frozenset({"0", "0.0", "-1", "-1.0", "null", "none", "nan", "na", "n/a", "-"})


def links_of(table: Table, parent: str | None = None, child: str | None = None) -> tuple[Sequence[int], int, int]:
    """Return which rows are links, and the columns of their parents and children.

    Beside a lone column of parents or children, that of the nodes is the other. In triples, ``broader`` names the
    parent of its subject; ``narrower``, a child of it, is the inverse and looked at only where there is no ``broader``.

    Raises:
        ReaderError: There are no such columns, or none of the triples is a link.

    Example:
        >>> links_of(Table(["concept", "skos:narrower"], []))[1:], links_of(Table(["concept", "skos:broader"], []))[1:]
        ((0, 1), (1, 0))
    """
    if parent is None and child is None and set(TRIPLE) <= set(table.names):
        return _links_of_triples(table)
    rows = range(len(table.rows))
    if not table.has_header and len(table.columns) == 2 and parent is None and child is None:
        return rows, 0, 1
    parent_at, child_at = table.column(parent, (*PARENTS, *SOURCES)), table.column(child, (*CHILDREN, *TARGETS))
    if parent_at is not None and child_at is None and child is None:
        child_at = parent_roles(table, None, table.columns[parent_at], "child")[0]
    elif parent_at is None and child_at is not None:
        parent_at = table.column(None, NODES)
    if parent_at is None or child_at is None or parent_at == child_at:
        raise _unknown(table, "parent", "child")
    return rows, parent_at, child_at


def _links_of_triples(table: Table) -> tuple[Sequence[int], int, int]:
    subject, predicate, other = (table.names.index(name) for name in TRIPLE)
    meant = [column_name(row[predicate]) for row in table.rows]
    for word, parent_at, child_at in (("broader", other, subject), ("narrower", subject, other)):
        rows = [row for row, name in enumerate(meant) if name == word]
        if rows:
            return rows, parent_at, child_at
    raise ReaderError(f"no triple's predicate is broader or narrower; they are {listed(dict.fromkeys(meant))}")


def parent_roles(table: Table, id: str | None, parent: str | None, what: str = "id") -> tuple[int, int]:
    """Return the columns of ids and of parents: by name, held against whether each parent then has a row."""
    if not table.has_header and len(table.columns) == 2 and id is None and parent is None:
        return (0, 1) if what == "id" else (1, 0)
    parent_at = table.column(parent, PARENTS)
    if parent_at is None:
        called = [place for place, name in enumerate(table.names) if "parent" in name]
        parent_at = called[0] if len(called) == 1 else None
    id_at = table.column(id, NODES)
    if parent_at is not None and id is None:
        held = {place: _parents_held(table, place, parent_at, place != id_at) for place in range(len(table.columns))}
        named, held[parent_at] = held.get(id_at, 0), 0  # type: ignore[arg-type]
        most = max(held.values())
        best = [place for place, count in held.items() if count == most]
        id_at = best[0] if len(best) == 1 and most > 2 * named else id_at
    if id_at is None or parent_at is None or id_at == parent_at:
        raise _unknown(table, *((what, "parent") if what == "id" else ("parent", what)))
    return id_at, parent_at


def _parents_held(table: Table, id_at: int, parent_at: int, unique: bool) -> int:
    """Return how many of the parents, that are ids and no mark of a root, have a row if these are the ids."""
    try:
        ids = {_stripped(row[id_at]) for row in table.rows}
        is_listed = not table.is_text and any(isinstance(row[parent_at], list | tuple) for row in table.rows)
        parents = (
            {name for row in table.rows for name in row[parent_at] or ()}
            if is_listed
            else {_stripped(row[parent_at]) for row in table.rows}
        )
    except TypeError:  # lists
        return 0
    if unique and len(ids) < len(table.rows):
        return 0
    marks = marks_of_no_parent(table, id_at, parent_at)
    return len(({marks.get(name, name) for name in parents if not is_missing(name)} - {"", None}) & ids)


def marks_of_no_parent(table: Table, id_at: int, parent_at: int) -> dict[Hashable, Hashable]:
    """Return parents that are written otherwise than ids: 0, -1 or "null" for none, "1.0" for the row of "1"."""
    try:
        ids = {_stripped(row[id_at]) for row in table.rows}
        parents = {_stripped(row[parent_at]) for row in table.rows}
    except TypeError:
        return {}
    meant: dict[Hashable, Hashable] = {}
    for name in parents - ids:
        if (name.casefold() in _NO_PARENT) if isinstance(name, str) else name in (0, -1):
            meant[name] = None
        elif isinstance(name, str) and name.endswith(".0") and name[:-2] in ids:  # numbers with blanks, out of a frame
            meant[name] = name[:-2]
    return meant


def _unknown(table: Table, first: str, second: str) -> ReaderError:
    return ReaderError(
        f"columns: got {listed(table.columns, limit=10)}; expected {brief(first)} and {brief(second)}. Name them with ",
        Setting(first),
        " and ",
        Setting(second),
        *((", and the character between the cells with ", Setting("delimiter")) if len(table.columns) == 1 else ()),
        *(NO_HEADER if table.is_text and table.has_header else ()),
    )


def header_note(table: Table, *named: str | None) -> list[Note]:
    """Return a doubt in a header, where a column that is named is also called like one of its own cells."""
    for name in named:
        if name is not None and table.is_text and table.has_header:
            at = table.columns.index(name)
            if any(row[at].strip() == name for row in table.rows):
                return [(f"header: the column {brief(name)} has the value {brief(name)} as well", *NO_HEADER)]
    return []


def _stripped(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell
