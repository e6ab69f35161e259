"""JSON in the form that it came in: nested objects, names as keys, flat rows, edges or children lists."""

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pomdp_hier.hierarchy.readers.json_text import Piece, json_form, json_pieces
from pomdp_hier.hierarchy.readers.nodes import CHILD_KEYS, NAME_KEYS, SCALARS, is_nest, linked_nodes
from pomdp_hier.hierarchy.readers.roles import marks_of_no_parent, parent_roles
from pomdp_hier.hierarchy.readers.tables import read_table
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.twigs import Twig, put_together

__all__ = ["KEPT", "NotHeldError", "json_like", "link_changes"]

KEPT = object()
"""Stands for the parent of a row that stays as it is."""
GONE = object()
"""Stands for the parent of a row that goes."""


class NotHeldError(Exception):
    """The form cannot hold the tree."""


def link_changes(
    tree: Hierarchy,
    ids: Sequence[Hashable],
    links: Sequence[tuple[Hashable, Hashable]],
    ids_before: Sequence[Hashable],
) -> tuple[list[Any], list[tuple[Hashable, Hashable]]]:
    """Return the new parent of each link's child, `KEPT` or `GONE`, and the links of nodes that are new.

    Args:
        tree: The tree.
        ids: The id of each node, ``None`` for a root that has none.
        links: The child and the parent of each row, whose parent is ``None`` or empty at a root.
        ids_before: The ids of the tree that was read. What only the links have, as categories without items, stays.
    """
    above = {
        name: None if parent < 0 else ids[parent]
        for name, parent in zip(ids, tree.parent.tolist(), strict=True)
        if name is not None
    }
    gone = set(ids_before) - set(ids)
    below: dict[Hashable, list[Hashable]] = {}
    for child, parent in links:
        if child not in above:
            below.setdefault(parent, []).append(child)
    stack = list(gone)
    while stack:
        empty = below.pop(stack.pop(), [])
        gone.update(empty)
        stack += empty
    first: dict[Hashable, Hashable] = {}
    changes: list[Any] = []
    for child, parent in links:
        is_first = first.setdefault(child, parent) == parent
        if child in above and is_first and (above[child] or "") != (parent or ""):
            changes.append(above[child])
        elif child in gone or (parent in gone and not is_first):
            changes.append(GONE)
        else:  # also a further parent, of which the reader keeps the first
            changes.append(KEPT)
    return changes, [(child, parent) for child, parent in above.items() if child not in first and parent is not None]


def json_like(tree: Hierarchy, source: str, form: str, read: Callable[[str], Hierarchy]) -> str:
    """Return a tree as JSON of its source's form, with the other keys, spaces and numbers as they stand there.

    Args:
        tree: The tree.
        source: The text.
        form: ``"json"`` for what the text is taken for, else as `Hierarchy.from_json` has it.
        read: Reads such a text.

    Raises:
        NotHeldError: The form cannot hold the tree.

    Example:
        >>> text = '{"r": {"x": ["a", "b"], "c": null}}'
        >>> tree = Hierarchy.from_json(text)
        >>> moved = tree.with_parents([4, 3, 3, -1, 3])  # item 1
        >>> json_like(moved, text, "json", Hierarchy.from_json)
        '{"r": {"x": ["a"], "b": null, "c": null}}'
        >>> pairs = '[["r", "x"], ["r", "c"], ["x", "a"], ["x", "b"]]'
        >>> json_like(moved, pairs, "json", Hierarchy.from_json)
        '[["r", "x"], ["r", "c"], ["x", "a"], ["r", "b"]]'
    """
    whole = json_pieces(source)
    layout = json_form(whole.value) if form == "json" else form
    if layout == "nested":
        return _nested(tree, source, whole)
    place = layout if isinstance(whole.value, dict) else None
    listed = whole if place is None else _part(whole, place)
    if listed is None or not isinstance(listed.value, list):
        raise NotHeldError
    if layout == "children":
        return _children(tree, source, whole, listed)
    ids, ids_before = (range(one.n_nodes) if one.labels is None else one.labels for one in (tree, read(source)))
    if layout == "parents":
        table = read_table(listed.value)
        at = parent_roles(table, None, None)
        id_key, parent_key = (table.columns[place] for place in at)
        marks = marks_of_no_parent(table, *at)
        rows = [[cell.strip() if isinstance(cell, str) else cell for cell in row] for row in table.rows]
        links = [(row[at[0]], marks.get(row[at[1]], row[at[1]])) for row in rows]
        parents = [_part(row, parent_key) for row in listed.parts]
    elif all(isinstance(pair, list) and len(pair) == 2 for pair in listed.value):
        links = [(below, above) for above, below in listed.value]
        parents = [pair.parts[0] for pair in listed.parts]
    else:
        raise NotHeldError
    changes, new = link_changes(tree, ids, links, ids_before)
    texts: list[tuple[int, str]] = []
    for number, (row, parent, change) in enumerate(zip(listed.parts, parents, changes, strict=True)):
        if change is KEPT:
            texts.append((number, source[row.start : row.end]))
        elif change is not GONE:
            if parent is None or (change is None and layout == "edges"):
                raise NotHeldError
            text = source[row.start : parent.start] + _text(change, source) + source[parent.end : row.end]
            texts.append((number, text))
    for child, above in new:
        row_of_it = {id_key: child, parent_key: above} if layout == "parents" else [above, child]
        texts.append((-1, _text(row_of_it, source)))
    return source[: listed.start] + _listed(source, listed, texts) + source[listed.end :]


def _text(value: Any, source: str) -> str:
    """Return a new value as the source writes such ones: with or without spaces, and in ASCII or not."""
    compact = ", " not in source and ": " not in source
    try:
        return json.dumps(
            value, separators=(",", ":") if compact else (", ", ": "), ensure_ascii=source.isascii(), allow_nan=False
        )
    except (TypeError, ValueError):
        raise NotHeldError from None


def _part(whole: Piece, key: str) -> Piece | None:
    """Return the value of an object's key."""
    return next(
        (part for (name, _), part in zip(whole.keys[::-1], whole.parts[::-1], strict=True) if name == key), None
    )


def _listed(source: str, whole: Piece, texts: Sequence[tuple[int, str]]) -> str:
    """Return a list's text with other elements: the number that each had, -1 for a new one, and its text."""
    gaps = [source[one.end : other.start] for one, other in pairwise(whole.parts)]
    usual = max(set(gaps), key=gaps.count) if gaps else ", "
    written, before = ["["], None
    if whole.parts:
        written.append(source[whole.start + 1 : whole.parts[0].start])
    for number, text in texts:
        if before is not None:
            written.append(gaps[number - 1] if number == before + 1 and number > 0 else usual)
        written.append(text)
        before = number
    if whole.parts:
        written.append(source[whole.parts[-1].end : whole.end - 1])
    return "".join([*written, "]"])


def _children(tree: Hierarchy, source: str, whole: Piece, listed: Piece) -> str:
    """Return children lists, with the labels of the nodes that there are now."""
    value = whole.value if isinstance(whole.value, dict) else {}
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    key = "items" if value.get("labels") is None else "labels"
    told = value.get(key)
    if told is None:
        told = list(range(tree.n_items))
    elif key == "labels" and value.get("items") is not None:
        raise NotHeldError
    told = [tuple(name) if isinstance(name, list) else name for name in told]
    if told[: tree.n_items] != list(labels[: tree.n_items]):
        raise NotHeldError
    texts = []
    for number, below in enumerate(tree.to_children()):
        same = number < len(listed.parts) and listed.parts[number].value == below
        old = source[listed.parts[number].start : listed.parts[number].end] if same else ""
        texts.append((number if number < len(listed.parts) else -1, old or _text(below, source)))
    edits = [(listed, _listed(source, listed, texts))]
    names = _part(whole, key) if value else None
    if names is not None and len(told) > tree.n_items and told != list(labels):
        edits.append((names, _text(list(labels), source)))
    for piece, text in sorted(edits, key=lambda edit: -edit[0].start):
        source = source[: piece.start] + text + source[piece.end :]
    return source


# ---- nested objects, and names as keys


@dataclass(frozen=True, eq=False)
class _Element:
    """A node in nested JSON: its value, its text, its key if names are keys, and what is around that in a list."""

    piece: Piece
    start: int
    end: int
    key: str = ""
    outside: Piece | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        return (self.start, self.end) if self.outside is None else (self.outside.start, self.outside.end)


def _nested(tree: Hierarchy, source: str, whole: Piece) -> str:
    """Return nested JSON, if its nodes are those that the reader finds."""
    one = whole.parts[0] if isinstance(whole.value, list) and len(whole.parts) == 1 else whole
    kind = "list" if isinstance(one.value, list) else "keys" if is_nest(one.value) else "objects"
    if kind == "keys" and len(one.parts) == 1:
        top, unwritten = _entry(source, one, 0), False
    else:
        top, unwritten = _Element(one, one.start, one.end), kind != "objects"
    twigs = _twigs(source, top, kind if unwritten else None)
    read = linked_nodes(whole.value)
    above = dict(zip(map(int, read.children), map(int, read.parents), strict=True))
    found = [(twig.name, twig.parent) for twig in twigs]
    if kind == "list":  # several roots: the one that only the tree has, above them, is its last node
        twigs = [*twigs[1:], twigs[0]]
        for twig in twigs[:-1]:
            twig.parent = twig.parent - 1 if twig.parent > 0 else len(twigs) - 1
        found = [(twig.name, -1 if twig.parent == len(twigs) - 1 else twig.parent) for twig in twigs[:-1]]
    if found != [(name, above.get(place, -1)) for place, name in enumerate(read.ids)]:
        raise NotHeldError
    has_keys = any(twig.key for twig in twigs)
    name_key, child_key = (
        next((key for key in keys if isinstance(one.value, dict) and key in one.value), keys[0])
        for keys in (NAME_KEYS, CHILD_KEYS)
    )

    def new(label: Hashable) -> Twig:
        if has_keys and not isinstance(label, str):
            raise NotHeldError
        row: dict[Hashable, Any] = {label: []} if has_keys else {name_key: label, child_key: []}
        text = _text(row if has_keys or isinstance(label, str) else {child_key: []}, source)
        key = _text(label, source) if has_keys else ""
        text = text[1:-1] if has_keys else text
        head, _, tail = text.rpartition("[]")
        return Twig(label, -1, False, head + "[", "]" + tail, key=key)

    return source[: top.start] + put_together(tree, twigs, new, _fitted) + source[top.end :]


def _twigs(source: str, top: _Element, unwritten: str | None) -> list[Twig]:
    """Return the nodes in reading order; ``unwritten`` says what is below a root that is not written down."""
    twigs: list[Twig] = []
    stack = [(top, -1, "")]
    while stack:
        element, parent, lead = stack.pop()
        slot, mode = (element.piece, unwritten) if unwritten is not None and not twigs else _slot(element)
        below = [] if slot is None or mode is None else _elements(source, slot, mode)
        head_end, tail_start = (slot.start + 1, below[-1].bounds[1]) if slot and below else (element.end, element.end)
        head, tail = source[element.start : head_end], source[tail_start : element.end]
        name = None if unwritten is not None and not twigs else _name(element)
        twig = Twig(name, parent, not below, head, tail, lead, key=element.key)
        if element.outside is not None:
            outside = element.outside
            twig.wrap = source[outside.start : element.start], source[element.end : outside.end]
        start = 0 if slot is None else slot.start + 1
        stack_of_it = []
        for child in below:
            stack_of_it.append((child, len(twigs), source[start : child.bounds[0]]))
            start = child.bounds[1]
        stack.extend(reversed(stack_of_it))
        twigs.append(twig)
    return twigs


def _name(element: _Element) -> Any:
    value = element.piece.value
    if element.key:
        return json.loads(element.key)
    if not isinstance(value, dict):
        return value
    name = next((value[key] for key in NAME_KEYS if key in value), None)
    return tuple(name) if isinstance(name, list) else name


def _slot(element: _Element) -> tuple[Piece | None, str]:
    """Return the list or object of what is below a node, and how nodes stand in it."""
    piece = element.piece
    if isinstance(piece.value, list) and element.key:
        return piece, "keys"
    if not isinstance(piece.value, dict):
        return None, ""
    if element.key and "children" not in piece.value:
        return piece, "keys"
    found = next((_part(piece, key) for key in CHILD_KEYS if key in piece.value), None)
    if found is None or found.value is None:
        return None, ""
    return found, "keys" if element.key or isinstance(found.value, dict) else "objects"


def _elements(source: str, slot: Piece, mode: str) -> list[_Element]:
    if isinstance(slot.value, dict):
        return [_entry(source, slot, number) for number in range(len(slot.parts))]
    found = []
    for part in slot.parts:
        value = part.value
        if value is None or isinstance(value, list):
            raise NotHeldError
        is_keyed = isinstance(value, dict) and (
            is_nest(value)
            if mode == "list"
            else mode == "keys"
            and not any(isinstance(value.get(key), SCALARS) for key in NAME_KEYS)
            and not any(key in value for key in CHILD_KEYS)
        )
        if is_keyed and len(part.parts) != 1:
            raise NotHeldError
        found.append(_entry(source, part, 0, part) if is_keyed else _Element(part, part.start, part.end))
    return found


def _entry(source: str, holder: Piece, number: int, outside: Piece | None = None) -> _Element:
    part, start = holder.parts[number], holder.keys[number][1]
    key = source[start : part.start].rstrip()[:-1].rstrip()
    return _Element(part, start, part.end, key, outside)


def _fitted(twig: Twig, bracket: str) -> tuple[str, str]:
    """Return the text before and after what is below a node, as it stands in an object or in a list."""
    if bracket == "{" and not twig.key:
        if not twig.is_leaf or not isinstance(twig.name, str) or not twig.head.startswith('"'):
            raise NotHeldError
        return twig.head + ": null", ""
    if bracket != "[" or not twig.key:
        return twig.head, twig.tail
    if twig.wrap is None and twig.is_leaf:
        return twig.key, ""
    before, after = twig.wrap or ("{", "}")
    return (before + twig.head + after, "") if twig.is_leaf else (before + twig.head, twig.tail + after)
