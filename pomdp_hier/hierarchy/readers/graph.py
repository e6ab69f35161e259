"""From links between ids to a `PlainTree`: what all formats that name a node's parent have in common."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy.readers.plain import ItemsAtInner, OnMultipleParents, PlainTree, checked_choice
from pomdp_hier.hierarchy.wording import counted, listed, shown

__all__ = ["Join", "LinkedNodes", "plain_tree"]

_MOST_COPIES = 5_000_000


@dataclass
class LinkedNodes:
    """Nodes in order of first appearance, and links from parents to children, both by position in ``ids``.

    ``where`` says how the format calls a link in error texts ("edge", "row").
    """

    ids: list[Hashable]
    parents: list[int]
    children: list[int]
    where: str = "edge"


@dataclass(frozen=True)
class Join:
    """Which nodes are the items, and in which row each stands.

    ``items`` lists ids in feature-row order; else ``n_items`` says that the integers below it are the items; else
    they are the nodes without children. ``empty_leaves`` tells whether a node without children that is no item may be
    an empty category (dropped with a warning) or is an item without features (an error).
    """

    n_items: int | None = None
    items: Sequence[Hashable] | None = None
    items_at_inner: ItemsAtInner = "leaf"
    on_multiple_parents: OnMultipleParents = "error"
    empty_leaves: bool = True


def plain_tree(nodes: LinkedNodes, join: Join) -> PlainTree:
    """The plain tree of linked nodes, with every link checked.

    Raises:
        HierarchyError: For a self-loop, several parents (unless opted in), an item that is missing, surplus or listed
            twice, an item with nodes below it (under ``items_at_inner="error"``), a cycle among several parents.
    """
    checked_choice("on_multiple_parents", join.on_multiple_parents, ("error", "first", "duplicate"))
    checked_choice("items_at_inner", join.items_at_inner, ("leaf", "error"))
    notes: list[str] = []
    ids = nodes.ids
    links = _single_links(nodes, notes)
    parent = [-1] * len(ids)
    several: dict[int, list[int]] = {}
    for above, below in links:
        if parent[below] < 0:
            parent[below] = above
        else:
            several.setdefault(below, [parent[below]]).append(above)
    order = [below for _, below in links]
    if several:
        _check_several(several, ids, links, join.on_multiple_parents)
        if join.on_multiple_parents == "first":
            notes.append(
                f"{counted(len(several), 'node')} had several parents, the first was kept: "
                f"{listed([ids[node] for node in several], len(several))}"
            )
        else:
            ids, parent, n_copies = _unfolded(ids, links)
            order = list(range(len(ids)))
            notes.append(
                f"{counted(len(several), 'node')} had several parents, {counted(n_copies, 'copy', 'copies')} made: "
                f"{listed([nodes.ids[node] for node in several], len(several))}; a copied item is an item more: "
                "X[hierarchy.rows(ids)] repeats its feature row"
            )
    return _numbered(ids, parent, order, join, notes)


def _single_links(nodes: LinkedNodes, notes: list[str]) -> list[tuple[int, int]]:
    """The links without the doubled ones, self-loops refused."""
    links = list(zip(nodes.parents, nodes.children, strict=True))
    for place, (above, below) in enumerate(links):
        if above == below:
            raise HierarchyError(
                f"{nodes.where} {place}: {shown(nodes.ids[above])} is its own parent (a self-loop); remove it"
            )
    unique = list(dict.fromkeys(links))
    if len(unique) < len(links):
        doubled = [nodes.ids[below] for (_, below), count in Counter(links).items() if count > 1]
        notes.append(f"{counted(len(links) - len(unique), f'doubled {nodes.where}')} dropped, to {listed(doubled)}")
    return unique


def _check_several(
    several: dict[int, list[int]], ids: list[Hashable], links: list[tuple[int, int]], choice: str
) -> None:
    """Raises for a cycle, and for several parents unless the caller opted in."""
    n_open = [0] * len(ids)
    children: list[list[int]] = [[] for _ in ids]
    above: list[list[int]] = [[] for _ in ids]
    for up, down in links:
        n_open[down] += 1
        children[up].append(down)
        above[down].append(up)
    ready = [node for node, count in enumerate(n_open) if not count]
    copies = [1 if not count else 0 for count in n_open]
    while ready:
        node = ready.pop()
        for child in children[node]:
            copies[child] += copies[node]
            n_open[child] -= 1
            if not n_open[child]:
                ready.append(child)
    stuck = next((node for node, count in enumerate(n_open) if count), None)
    if stuck is not None:
        seen: dict[int, int] = {}
        while stuck not in seen:
            seen[stuck] = len(seen)
            stuck = next(up for up in above[stuck] if n_open[up])
        cycle = [ids[node] for node, place in seen.items() if place >= seen[stuck]]
        raise HierarchyError(
            f"the parents run in a cycle of {counted(len(cycle), 'node')}: {listed(cycle)}, each below the next and "
            "the last below the first; remove one of these links"
        )
    if choice == "error":
        first = [
            f"{shown(ids[node])} (parents {listed([ids[up] for up in ups])})" for node, ups in list(several.items())[:5]
        ]
        more = f", ... ({len(several):,} in all)" if len(several) > 5 else ""
        raise HierarchyError(
            f"{counted(len(several), 'node')} with several parents: {', '.join(first)}{more}; a tree has one parent a "
            'node: remove links, or pass on_multiple_parents="first" or "duplicate"'
        )
    if choice == "duplicate" and sum(copies) > _MOST_COPIES:
        raise HierarchyError(
            f"copying every node under each of its parents would make more than {_MOST_COPIES:,} nodes; "
            'use on_multiple_parents="first"'
        )


def _unfolded(ids: list[Hashable], links: list[tuple[int, int]]) -> tuple[list[Hashable], list[int], int]:
    """The tree in which a node stands once below each of its parents, parents first: ids, parents, number of copies."""
    children: list[list[int]] = [[] for _ in ids]
    is_root = [True] * len(ids)
    for above, below in links:
        children[above].append(below)
        is_root[below] = False
    new_ids: list[Hashable] = []
    parent: list[int] = []
    stack = [(node, -1) for node in range(len(ids) - 1, -1, -1) if is_root[node]]
    while stack:
        node, above = stack.pop()
        stack.extend((child, len(new_ids)) for child in reversed(children[node]))
        new_ids.append(ids[node])
        parent.append(above)
    return new_ids, parent, len(new_ids) - len(ids)


def _numbered(ids: list[Hashable], parent: list[int], order: list[int], join: Join, notes: list[str]) -> PlainTree:
    """The same tree with items first: their rows joined, items at inner nodes hung below as a leaf of their own."""
    has_child = [False] * len(ids)
    for above in parent:
        if above >= 0:
            has_child[above] = True
    items, is_item = _item_nodes(ids, has_child, join)
    at_inner = [node for node in items if has_child[node]]
    if at_inner and join.items_at_inner == "error":
        raise HierarchyError(
            f"{counted(len(at_inner), 'item')} with nodes below: {listed([ids[node] for node in at_inner])}; "
            'items_at_inner="leaf" makes each a leaf of its own there'
        )
    if at_inner:
        notes.append(
            f"{counted(len(at_inner), 'item')} at inner nodes became leaves of their own there: "
            f"{listed([ids[node] for node in at_inner])}"
        )
    inner = _in_number_order(
        [node for node in range(len(ids)) if has_child[node] or not is_item[node]], ids, len(items)
    )
    n_items, n_nodes = len(items), len(items) + len(inner)
    number = np.full(len(ids) + 1, -1, dtype=np.int64)
    number[items] = np.arange(n_items)
    number[inner] = np.arange(n_items, n_nodes)  # an item at an inner node is met again here, as that node
    raw_parent = np.array([*parent, -1], dtype=np.int64)
    parents = np.empty(n_nodes, dtype=np.int64)
    parents[:n_items] = [number[node] if has_child[node] else number[parent[node]] for node in items]
    parents[n_items:] = number[raw_parent[inner]]
    reading = number[order] if order else np.empty(0, dtype=np.int64)
    rest = np.setdiff1d(np.arange(n_nodes), reading)
    labels: list[Hashable] | None = [ids[node] for node in chain(items, inner)]
    if labels == list(range(n_nodes)) and not any(isinstance(label, bool) for label in labels[:2]):
        labels = None
    return PlainTree(parents, n_items, np.concatenate((reading, rest)), labels, notes)


def _in_number_order(inner: list[int], ids: list[Hashable], n_items: int) -> list[int]:
    """The inner nodes as numbered: by their own ids if these are just N..N+K-1, else as they come."""
    numbers = [ids[node] for node in inner]
    if all(type(value) is int or isinstance(value, np.integer) for value in numbers):
        by_id = sorted(inner, key=ids.__getitem__)  # type: ignore[arg-type]
        if [ids[node] for node in by_id] == list(range(n_items, n_items + len(inner))):
            return by_id
    return inner


def _item_nodes(ids: list[Hashable], has_child: list[bool], join: Join) -> tuple[list[int], list[bool]]:
    """The nodes that are items in row order (copies of an item after all first ones), and a mark for each node."""
    if join.n_items is not None and join.items is None:
        if join.n_items > len(ids):
            present = set(ids)
            some = islice((item for item in range(join.n_items) if item not in present), 5)
            raise HierarchyError(
                f"n_items={join.n_items}, but the tree has {counted(len(ids), 'node')}; missing from it are items "
                f"such as {listed(some)}"
            )
        wanted: Iterable[Hashable] = range(join.n_items)
    elif join.items is not None:
        wanted = list(join.items)
        if join.n_items is not None and join.n_items != len(join.items):
            raise HierarchyError(f"n_items={join.n_items}, but items lists {len(join.items)} ids; give one of them")
    else:
        items = [node for node, inner in enumerate(has_child) if not inner]
        if [ids[node] for node in items] != list(range(len(items))) and all(type(ids[node]) is int for node in items):
            by_id = sorted(items, key=ids.__getitem__)  # type: ignore[arg-type]
            items = by_id if [ids[node] for node in by_id] == list(range(len(items))) else items
        return items, [not inner for inner in has_child]
    row_of: dict[Hashable, int] = {}
    for row, name in enumerate(wanted):
        try:
            row_of.setdefault(name, row)
        except TypeError:
            raise HierarchyError(f"items[{row}] is {shown(name)}, expected an id such as a string") from None
    first: dict[Hashable, int] = {}
    copies: list[int] = []
    for node, name in enumerate(ids):
        if name in row_of and first.setdefault(name, node) != node:
            copies.append(node)
    doubled = [] if isinstance(wanted, range) else [name for name, n in Counter(wanted).items() if n > 1]
    missing = [name for name in row_of if name not in first]
    surplus = [name for node, name in enumerate(ids) if not has_child[node] and name not in row_of]
    if missing or doubled or (surplus and not join.empty_leaves):
        text = "; ".join(
            f"{what}: {listed(names)}"
            for what, names in (
                ("missing from the tree", missing),
                ("surplus in the tree", surplus),
                ("listed twice", doubled),
            )
            if names
        )
        raise HierarchyError(f"the items given do not match the tree's: {text}; each item must stand in both once")
    items = [first[name] for name in row_of] + copies
    is_item = [False] * len(ids)
    for node in items:
        is_item[node] = True
    return items, is_item
