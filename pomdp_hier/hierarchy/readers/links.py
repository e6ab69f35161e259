"""Trees of parent-child links: readers of edges, graphs and parent tables; their checks, and the join to rows."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import networkx as nx
import numpy as np

from pomdp_hier._arguments import Bools, Ints, check_choice, check_flag, check_integer
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import Argument, HierarchyError, Note, PythonAdvice, ReaderError, Setting, warn_user
from pomdp_hier.hierarchy.arrays import as_ids, as_text, cycle_error, dense, in_number_order, is_row
from pomdp_hier.hierarchy.readers.tables import (
    ItemsAtInner,
    OnMultipleParents,
    TreeArrays,
    header_note,
    is_missing,
    is_row_of_numbers,
    is_table,
    links_of,
    marks_of_no_parent,
    one_parent_per_row,
    parent_roles,
    read_table,
    require_header,
)

_MOST_COPIES = 5_000_000


@dataclass
class LinkedNodes:
    """Nodes in order of first appearance, and links from parents to children, both by position in ``ids``.

    ``where`` is the format's name of a link in messages ("edge", "row"); ``rows`` holds the numbers of the links.
    """

    ids: list[Hashable]
    parents: Ints | list[int]
    children: Ints | list[int]
    where: str = "edge"
    rows: Sequence[int] | None = None


@dataclass(frozen=True)
class Join:
    """Which nodes are the items, and the feature row of each.

    ``items`` lists ids in the order of the feature rows. Else the integers below ``n_items`` are the items, and else
    the nodes without children. With ``empty_leaves``, other nodes without children are empty categories, dropped with
    a warning; without it they raise an error. With ``as_text``, all ids are text.
    """

    n_items: int | None = None
    items: Sequence[Hashable] | None = None
    items_at_inner: ItemsAtInner = "leaf"
    on_multiple_parents: OnMultipleParents = "error"
    empty_leaves: bool = True
    as_text: bool = False

    def __post_init__(self) -> None:
        if self.n_items is not None:
            check_integer("n_items", self.n_items, 1)
        if self.items is not None:
            object.__setattr__(self, "items", as_ids("items", self.items))
        check_choice("items_at_inner", self.items_at_inner, ("leaf", "error"))
        check_choice("on_multiple_parents", self.on_multiple_parents, ("error", "first", "duplicate"))


def text_ids(join: Join) -> Join:
    """Return the join for a format whose ids are text: other ids are compared as text."""
    if join.items is None:
        return replace(join, as_text=True)
    items = [name if isinstance(name, str) else as_text("items", name) for name in join.items]
    return replace(join, n_items=None, items=items, as_text=True)


def tree_of_links(nodes: LinkedNodes, join: Join) -> TreeArrays:
    """Return the tree arrays of linked nodes, after checking every link."""
    notes: list[Note] = []
    ids = nodes.ids
    above, below = _single_links(nodes, notes)
    is_inner = np.zeros(len(ids), dtype=bool)
    is_inner[above] = True  # a node that loses its only child below stays a category
    several = np.flatnonzero(np.bincount(below, minlength=len(ids)) > 1).tolist()
    if several:
        _check_several(several, ids, above, below, join.on_multiple_parents)
        names = listed([ids[node] for node in several[:5]], count=len(several))
        if join.on_multiple_parents == "first":
            notes.append(f"{counted(len(several), 'node')} with several parents, of which the first is kept: {names}")
            first = np.sort(np.unique(below, return_index=True)[1])
            above, below = above[first], below[first]
        else:
            n_nodes = len(ids)
            ids, above, below = _unfolded(ids, above, below)
            is_inner = np.zeros(len(ids), dtype=bool)
            is_inner[above] = True
            notes.append(
                (
                    f"{counted(len(several), 'node')} with several parents, copied below each "
                    f"({counted(len(ids) - n_nodes, 'copy', 'copies')}): {names}. Each copy of an item is an item",
                    PythonAdvice(". X[hierarchy.rows(ids)] repeats its feature row"),
                )
            )
    parents = dict.fromkeys(ids[node] for node in np.unique(above).tolist())
    texts = [name for name in parents if isinstance(name, str)]
    if len({name.strip().casefold() for name in texts}) < len(texts):
        spelt: dict[str, str] = {}
        twice = [name for name in texts if spelt.setdefault(name.strip().casefold(), name) != name]
        pairs = [f"{brief(spelt[name.strip().casefold()])} and {brief(name)}" for name in twice[:3]]
        warn_user(
            [f"ids of categories that differ in case or blanks alone: {', '.join(pairs)}. Write them in one spelling"]
        )
    parent = np.full(len(ids), -1, dtype=np.int64)
    parent[below] = above
    return _numbered(ids, parent, below, is_inner, join, notes)


def _single_links(nodes: LinkedNodes, notes: list[Note]) -> tuple[Ints, Ints]:
    above, below = np.asarray(nodes.parents, dtype=np.int64), np.asarray(nodes.children, dtype=np.int64)
    own = np.flatnonzero(above == below)
    if own.size:
        row = own[0] if nodes.rows is None else nodes.rows[own[0]]
        raise HierarchyError(
            f"{nodes.where} {row}: got {brief(nodes.ids[above[own[0]]])} as its own parent (a self-loop); expected "
            f"another node. Remove the {nodes.where}."
        )
    first = np.sort(np.unique(above * len(nodes.ids) + below, return_index=True)[1])
    if first.size < above.size:
        again = _others(above.size, first)
        names = [nodes.ids[node] for node in dict.fromkeys(below[again].tolist())]
        notes.append(f"{counted(again.size, f'duplicate {nodes.where}')} dropped, to {listed(names)}")
    return above[first], below[first]


def _check_several(several: list[int], ids: list[Hashable], above: Ints, below: Ints, choice: str) -> None:
    """Raise an error for a cycle, and for several parents unless the caller chose what to do with them."""
    parents: list[list[int]] = [[] for _ in ids]
    children: list[list[int]] = [[] for _ in ids]
    for up, down in zip(above.tolist(), below.tolist(), strict=True):
        parents[down].append(up)
        children[up].append(down)
    n_open = [len(ups) for ups in parents]
    copies = [int(not ups) for ups in parents]
    ready = [node for node, count in enumerate(n_open) if not count]
    while ready:
        node = ready.pop()
        for child in children[node]:
            copies[child] = min(copies[child] + copies[node], _MOST_COPIES + 1)
            n_open[child] -= 1
            if not n_open[child]:
                ready.append(child)
    stuck = next((node for node, count in enumerate(n_open) if count), None)
    if stuck is not None:
        seen: dict[int, int] = {}
        while stuck not in seen:
            seen[stuck] = len(seen)
            stuck = next(up for up in parents[stuck] if n_open[up])
        raise cycle_error([ids[node] for node, place in seen.items() if place >= seen[stuck]])
    if choice == "error":
        first = [f"{brief(ids[node])} (parents {listed([ids[up] for up in parents[node]])})" for node in several[:5]]
        more = f", ... ({len(several):,} in all)" if len(several) > 5 else ""
        raise HierarchyError(
            f"parents: got {counted(len(several), 'node')} with several parents, {', '.join(first)}{more}; expected "
            "one parent per node. Remove links, or pass ",
            Setting("on_multiple_parents", "first", "duplicate"),
            ".",
            _turned(parents),
        )
    if choice == "duplicate" and sum(copies) > _MOST_COPIES:
        raise HierarchyError(
            f"parents: got links whose copies would be more than {_MOST_COPIES:,} nodes; expected fewer. Pass ",
            Setting("on_multiple_parents", "first"),
            ".",
        )


def _unfolded(ids: list[Hashable], above: Ints, below: Ints) -> tuple[list[Hashable], Ints, Ints]:
    """Return ids and links of the tree with a copy of each node below each of its parents, parents first."""
    children: list[list[int]] = [[] for _ in ids]
    for up, down in zip(above.tolist(), below.tolist(), strict=True):
        children[up].append(down)
    new_ids: list[Hashable] = []
    parent: list[int] = []
    stack = [(node, -1) for node in _others(len(ids), below)[::-1].tolist()]
    while stack:
        node, up = stack.pop()
        stack.extend((child, len(new_ids)) for child in reversed(children[node]))
        new_ids.append(ids[node])
        parent.append(up)
    new_parent = np.array(parent, dtype=np.int64)
    new_below = np.flatnonzero(new_parent >= 0)
    return new_ids, new_parent[new_below], new_below


def _others(count: int, taken: Ints) -> Ints:
    """Return the numbers below ``count`` that are free, in order."""
    free = np.ones(count, dtype=bool)
    free[taken] = False
    return np.flatnonzero(free)


def _numbered(
    ids: list[Hashable], parent: Ints, order: Ints, was_inner: Bools, join: Join, notes: list[Note]
) -> TreeArrays:
    """Return the tree arrays with items first; an item with nodes below becomes a leaf below itself."""
    has_child = np.zeros(len(ids) + 1, dtype=bool)
    has_child[parent] = True  # the last entry takes the roots' -1
    has_child = has_child[:-1]
    items = np.array(_item_nodes(ids, was_inner, join), dtype=np.int64)
    at_inner = items[has_child[items]].tolist()
    if at_inner and join.items_at_inner == "error":
        raise HierarchyError(
            f"items: got {counted(len(at_inner), 'item')} with nodes below, {listed([ids[node] for node in at_inner])}"
            "; expected leaves. To make each a leaf below itself, pass ",
            Setting("items_at_inner", "leaf"),
            ".",
        )
    if at_inner:
        notes.append(
            f"{counted(len(at_inner), 'item')} with nodes below became leaves below themselves: "
            f"{listed([ids[node] for node in at_inner])}"
        )
    if join.on_multiple_parents != "duplicate":
        names = Counter(ids[item] for item in items.tolist())
        if shared := [name for name, count in names.items() if count > 1 and name is not None]:
            notes.append(
                f"{counted(len(shared), 'name')} of several items: {listed(shared)}; features that are joined by id "
                "give these items one row. Name each item differently"
            )
    is_inner = np.ones(len(ids), dtype=bool)
    is_inner[items] = has_child[items]
    inner = in_number_order(np.flatnonzero(is_inner).tolist(), ids, items.size)
    n_nodes = items.size + len(inner)
    number = np.full(len(ids) + 1, -1, dtype=np.int64)
    number[items] = np.arange(items.size)
    number[inner] = np.arange(items.size, n_nodes)  # includes an item with nodes below, as that node
    parents = np.empty(n_nodes, dtype=np.int64)
    parents[: items.size] = np.where(has_child[items], number[items], number[parent[items]])
    parents[items.size :] = number[parent[inner]]
    reading = number[order]
    labels: list[Hashable] | None = [ids[node] for node in chain(items.tolist(), inner)]
    if labels == list(range(n_nodes)):
        labels = None
    return TreeArrays(
        parents, items.size, np.concatenate((reading, _others(n_nodes, reading))), labels, notes, one_child_notes=True
    )


def _item_nodes(ids: list[Hashable], has_child: Bools, join: Join) -> list[int]:
    """Return the nodes of the items in the order of the feature rows, copies last."""
    if join.items is not None:
        if join.n_items is not None and join.n_items != len(join.items):
            raise HierarchyError(
                Argument("n_items"),
                f": got {join.n_items}, with {len(join.items)} ids in items; expected one of the two. Leave one out.",
            )
        return _joined(ids, has_child, list(join.items), join)
    if join.n_items is None:
        items = np.flatnonzero(~has_child).tolist()
        return in_number_order(items, ids, 0)
    name: Callable[[int], Hashable] = str if join.as_text else int
    if join.n_items > len(ids):
        present = set(ids)
        missing = islice((item for item in map(name, range(join.n_items)) if item not in present), 5)
        raise HierarchyError(
            Argument("n_items"),
            f": got {join.n_items}, which is more than the {counted(len(ids), 'node')} of the tree (no node is called "
            f"{listed(missing)}); expected the number of its items.",
        )
    return _joined(ids, has_child, list(map(name, range(join.n_items))), join)


def _joined(ids: list[Hashable], has_child: Bools, wanted: list[Hashable], join: Join) -> list[int]:
    """Return the node of each wanted id, copies last.

    An id is that of a node with nodes below only if no leaf has it: a category may have the name of an item.
    """
    row_of = {name: row for row, name in reversed(list(enumerate(wanted)))}
    row_of = dict(sorted(row_of.items(), key=lambda entry: entry[1]))
    leaves = np.flatnonzero(~has_child).tolist()
    at_leaves = {ids[node] for node in leaves}
    candidates = leaves + [node for node in np.flatnonzero(has_child).tolist() if ids[node] not in at_leaves]
    first: dict[Hashable, int] = {}
    copies = [node for node in sorted(candidates) if ids[node] in row_of and first.setdefault(ids[node], node) != node]
    faults = {
        "missing from the tree": [name for name in row_of if name not in first],
        "surplus in the tree": [] if join.empty_leaves else [n for n in at_leaves if n not in row_of],
        "duplicate in items": [name for name, count in Counter(wanted).items() if count > 1],
        "in the tree several times": [] if join.on_multiple_parents != "error" else [ids[node] for node in copies],
    }
    if any(faults.values()):
        faults["surplus in the tree"] = [ids[node] for node in leaves if ids[node] not in row_of]
        text = "; ".join(f"{what}: {listed(dict.fromkeys(names))}" for what, names in faults.items() if names)
        raise HierarchyError(
            f"items: got ids that do not match the tree's ({text}); expected each item once in both. Correct the ids",
            *(
                (
                    "; for an item that is in the tree several times, pass ",
                    Setting("on_multiple_parents", "first", "duplicate"),
                )
                if faults["in the tree several times"]
                else ()
            ),
            ".",
        )
    return [first[name] for name in row_of] + (copies if join.on_multiple_parents == "duplicate" else [])


def _turned(parents: Sequence[Sequence[int]]) -> str:
    """Return a question for links that would give each node one parent in the other direction."""
    above = [up for ups in parents for up in ups]
    if len(set(above)) < len(above):
        return ""
    return " In the other direction these links are a tree: are the columns of parents and children exchanged?"


def link_pairs(pairs: Iterable[object], where: str = "edge", start: int = 0) -> LinkedNodes:
    """Return the linked nodes of ``(parent, child)`` pairs, in order of appearance; errors count from ``start``."""
    if not hasattr(pairs, "__iter__") or isinstance(pairs, (str, bytes, dict)):
        raise ReaderError(f"{where}s: got {brief(pairs)}; expected pairs (parent, child). Give a list of pairs.")
    rows = [
        pair if isinstance(pair, (list, tuple)) else _as_pair(pair, place, where)
        for place, pair in enumerate(pairs, start)
    ]
    position: dict[Hashable, int] = {}
    try:
        flat: list[Hashable] = list(chain.from_iterable(rows))
        position = {name: number for number, name in enumerate(dict.fromkeys(flat))}
        sound = len(flat) == 2 * len(rows) == 2 * sum(len(row) == 2 for row in rows)
    except TypeError:
        sound = False
    if not sound or any(is_missing(name) for name in position):
        for place, pair in enumerate(rows, start):
            _check_pair(pair, place, where)
    ends = np.fromiter(map(position.__getitem__, flat), dtype=np.int64, count=len(flat)).reshape(-1, 2)
    return LinkedNodes(list(position), ends[:, 0], ends[:, 1], where, range(start, start + len(rows)))


def _as_pair(pair: object, place: int, where: str) -> Sequence[object]:
    if not is_row(pair):
        raise ReaderError(f"{where} {place}: got {brief(pair)}; expected a pair (parent, child).")
    return tuple(pair)  # type: ignore[arg-type]


def _check_pair(pair: Sequence[object], place: int, where: str) -> None:
    """Raise an error if the pair is not two ids."""
    if len(pair) != 2:
        raise ReaderError(f"{where} {place}: got {brief(pair)}; expected a pair (parent, child).")
    if any(is_missing(name) for name in pair):
        raise ReaderError(
            f"{where} {place}: got {brief(pair)}; expected two ids. Add the missing id or remove the {where}."
        )
    try:
        hash(tuple(pair))
    except TypeError:
        raise ReaderError(f"{where} {place}: got {brief(pair)}; expected ids of text or numbers.") from None


def read_edges(
    edges: Any,
    join: Join,
    *,
    parent: str | None = None,
    child: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> TreeArrays:
    """Return the tree arrays of ``(parent, child)`` pairs, or of a table of them."""
    check_flag("header", header)
    edges = dense("the edges", edges)
    if is_table(edges):
        table = read_table(edges, delimiter=delimiter, header=header)
        rows, parent_at, child_at = links_of(table, parent, child)
        pairs = [[_cell(table.rows[row][parent_at]), _cell(table.rows[row][child_at])] for row in rows]
        nodes = link_pairs(pairs, "row", 1)
        warn_user(header_note(table, parent, child))
        join = text_ids(join) if table.is_text else join
    else:
        require_header(header, edges)
        tolist = getattr(edges, "tolist", None)
        nodes = link_pairs(tolist() if tolist is not None else edges)
    if not nodes.ids and join.items is not None:
        nodes.ids = list(join.items)
    elif not nodes.ids and join.n_items == 1:
        nodes.ids = ["0" if join.as_text else 0]
    return tree_of_links(nodes, join)


def read_networkx(graph: "nx.DiGraph[Any]", join: Join) -> TreeArrays:
    """Return the tree arrays of a directed graph, including nodes without edges."""
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise ReaderError(
            f"graph: got {type(graph).__name__}; expected a DiGraph with edges from parent to child. Direct an "
            "undirected tree with nx.bfs_tree(graph, root)."
        )
    position = {node: place for place, node in enumerate(graph.nodes)}
    nodes = LinkedNodes(
        list(position), [position[above] for above, _ in graph.edges()], [position[below] for _, below in graph.edges()]
    )
    return tree_of_links(nodes, join)


def _cell(cell: object) -> object:
    """Return the cell of a table as an id, without outer spaces; ``None`` if it is blank."""
    return (cell.strip() or None) if isinstance(cell, str) else cell


def read_parents(
    source: Any,
    join: Join,
    *,
    id: str | None = None,
    parent: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> TreeArrays:
    """Return the tree arrays of a parent table, or of a dictionary from ids to parents.

    Example:
        >>> read_parents({"r": None, "a": "r", "b": "r"}, Join()).labels
        ['a', 'b', 'r']
    """
    check_flag("header", header)
    source = dense("the table", source)
    if hasattr(source, "to_dict") and not hasattr(source, "columns"):  # a series from ids to parents
        source = source.to_dict()
    if isinstance(source, Mapping) and not any(isinstance(value, (list, tuple)) for value in source.values()):
        source = list(source.items())
    if is_row_of_numbers(source):
        raise ReaderError(
            f"source: got {brief(source)}; expected rows of two cells, 'id' and 'parent'. Give an array with the "
            "parent of each node, -1 at the root, to Hierarchy(parents, n_items)."
        )
    table = read_table(source, names=("id", "parent"), delimiter=delimiter, header=header)
    id_at, parent_at = parent_roles(table, id, parent)
    warn_user(header_note(table, id, parent))
    table = table if table.is_text else one_parent_per_row(table, parent_at)
    no_parent = marks_of_no_parent(table, id_at, parent_at)
    position: dict[Hashable, int] = {}
    links: list[tuple[int, Hashable]] = []
    link_rows: list[int] = []
    root_rows: dict[int, int] = {}
    own: list[int] = []
    for row, cells in enumerate(table.rows, 1):
        node, above = (cell.strip() if isinstance(cell, str) else cell for cell in (cells[id_at], cells[parent_at]))
        if is_missing(node) or (isinstance(node, str) and not node):
            raise ReaderError(f"row {row}: got no id, with the parent {brief(above)}; expected an id per row.")
        try:
            place = position.setdefault(node, len(position))
            above = no_parent.get(above, above)
        except TypeError:
            raise ReaderError(f"row {row}: got {brief(cells)}; expected ids of text or numbers.") from None
        if is_missing(above) or (isinstance(above, str) and not above):
            root_rows.setdefault(place, row)
        else:
            if node == above:
                own.append(len(links))
            links.append((place, above))
            link_rows.append(row)
    notes = list[Note]()
    if own:  # as the root in NCBI's taxonomy, and some roots in IAB's
        for at in reversed(own):
            place, name = links.pop(at)
            root_rows.setdefault(place, link_rows.pop(at))
        count = f" (the first of {len(own):,} such rows)" if len(own) > 1 else ""
        notes.append(f"row {root_rows[place]}: {brief(name)} is its own parent{count}; taken as a root")
    undefined = list(dict.fromkeys(above for _, above in links if above not in position))
    if not root_rows:  # then the parents without a row are the roots; a misspelt parent gives a second root
        position.update({above: place for place, above in enumerate(undefined, len(position))})
    elif undefined:
        place = next(node for node, above in links if above not in position)
        raise HierarchyError(
            f"parents: got {counted(len(undefined), 'parent')} without a row, {listed(undefined)} (first as the parent "
            f"of {brief(list(position)[place])}); expected a row per parent. Add the rows, or correct the ids.",
            _nearest(undefined, position),
        )
    both = next((place for place, _ in links if place in root_rows), None)
    if both is not None:
        raise HierarchyError(
            f"row {root_rows[both]}: got {brief(list(position)[both])} without a parent, and with one in another row; "
            "expected one row per id. Remove one."
        )
    above_places, below_places = [position[above] for _, above in links], [place for place, _ in links]
    nodes = LinkedNodes(list(position), above_places, below_places, "row", link_rows)
    arrays = tree_of_links(nodes, text_ids(join) if table.is_text else join)
    arrays.notes[:0] = notes
    return arrays


def _nearest(names: Sequence[Hashable], known: Mapping[Hashable, int]) -> str:
    """Return a hint at ids that differ from a name only in case or blanks."""
    wanted = {name.strip().casefold() for name in names if isinstance(name, str)}
    similar = [name for name in known if isinstance(name, str) and name.strip().casefold() in wanted]
    return f" A similar id is {listed(similar)}." if similar else ""
