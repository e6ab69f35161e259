"""Trees of parent-child links: checks of the links, and the join of items to feature rows."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from pomdp_hier._arguments import Bools, Ints, check_choice, check_integer, is_integer
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import Argument, HierarchyError, PythonAdvice, Setting
from pomdp_hier.hierarchy.arrays import as_ids, as_text, cycle_error
from pomdp_hier.hierarchy.node_names import Note, warn_user
from pomdp_hier.hierarchy.readers.tables import ItemsAtInner, OnMultipleParents, TreeArrays

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


def in_number_order(nodes: list[int], ids: Sequence[Hashable], start: int) -> list[int]:
    """Return the nodes sorted by id if the ids are the integers from ``start`` on (or their text), else unchanged."""
    numbers = [number for node in nodes if (number := number_of(ids[node])) is not None]
    if len(numbers) < len(nodes):
        return nodes
    by_id = sorted(zip(numbers, nodes, strict=True))
    return [node for _, node in by_id] if [n for n, _ in by_id] == list(range(start, start + len(nodes))) else nodes


def number_of(name: Hashable) -> int | None:
    """Return the integer that an id is, also as text, or ``None``."""
    if isinstance(name, str):
        return int(name) if name.isascii() and name.isdigit() and len(name) < 19 and str(int(name)) == name else None
    return int(name) if is_integer(name) else None


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
