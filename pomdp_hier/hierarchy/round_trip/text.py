"""Newick and JSON written back after edits."""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy.readers.json_text import JsonSpan, json_form, json_spans
from pomdp_hier.hierarchy.readers.nested import CHILD_KEYS, NAME_KEYS, SCALARS, is_nest
from pomdp_hier.hierarchy.readers.newick import parse_newick, quoted_name
from pomdp_hier.hierarchy.readers.tables import marks_of_no_parent, parent_roles, read_table
from pomdp_hier.hierarchy.round_trip.tables import GONE, KEPT, link_changes
from pomdp_hier.hierarchy.tree import Hierarchy


@dataclass(slots=True, eq=False)
class NodePiece:
    """A node in a text.

    Attributes:
        name: What it is called, ``None`` if it is not.
        parent: The place of the piece that it hangs under; -1 at the root.
        is_leaf: Whether nothing hangs under it.
        head: Its text up to its opening bracket and with it; all of a leaf's.
        tail: Its text from the spaces before its closing bracket on.
        lead: What stands before it: spaces, and a comma unless it is the first.
        key: Its name as a key, in JSON whose keys are the names.
        wrap: What stands around such a key that is in a list.
    """

    name: Hashable
    parent: int
    is_leaf: bool
    head: str
    tail: str = ""
    lead: str = ""
    key: str = ""
    wrap: tuple[str, str] | None = None


def _as_it_is(piece: NodePiece, holder: str) -> tuple[str, str]:
    return piece.head, piece.tail


def rebuilt_text(
    tree: Hierarchy,
    pieces: Sequence[NodePiece],
    new: Callable[[Hashable], NodePiece],
    fitted: Callable[[NodePiece, str], tuple[str, str]] = _as_it_is,
) -> str:
    """Return the text of a tree out of the pieces of its source.

    Args:
        tree: The tree.
        pieces: All of the source, parents before what is below them.
        new: Makes the piece of a node that the source does not have, by its label.
        fitted: Returns the text before and after what hangs under a piece, given the last letter before it.

    Raises:
        HierarchyError: The source names an item more often than the tree does.
    """
    if sum(piece.is_leaf for piece in pieces) != tree.n_items:
        raise HierarchyError("an item stands more than once in the source, and where it is now cannot be told")
    places = _places(tree, pieces)
    first, second, later = dict[int, int](), dict[int, str](), Counter[str]()
    for place, piece in enumerate(pieces):
        if first.setdefault(piece.parent, place) != place:
            second.setdefault(piece.parent, piece.lead)
            later[piece.lead] += 1
    usual = later.most_common(1)[0][0] if later else ","
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    below, written = tree.to_children(), list[str]()
    stack: list[str | tuple[int, str, str]] = [(tree.root, "", "")]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            written.append(top)
            continue
        node, lead, bracket = top
        place = places[node]
        piece = new(labels[node]) if place < 0 else pieces[place]
        head, tail = fitted(piece, bracket)
        written.append(lead + head)
        stack.append(tail)
        begun = []
        for number, child in enumerate(below[node - tree.n_items] if node >= tree.n_items else ()):
            its = places[child]
            stays = place >= 0 and its >= 0 and pieces[its].parent == place and (first[place] == its) == (number == 0)
            start = pieces[first[place]].lead if place in first else ""
            usual_here = start if number == 0 else second.get(place, usual)
            begun.append((child, pieces[its].lead if stays else usual_here, head[-1]))
        stack.extend(reversed(begun))
    return "".join(written)


def _places(tree: Hierarchy, pieces: Sequence[NodePiece]) -> list[int]:
    """Return the piece of each node, -1 for one that is new.

    A node is the piece of its name. One that has none is known by its number in the tree that was read, which is its
    label where it is another now; of several with one name, a node is the one that most of what is below it was below.
    """
    by_name: dict[tuple[bool, Hashable], list[int]] = {}
    for place, piece in enumerate(pieces):
        by_name.setdefault((piece.is_leaf, piece.name), []).append(place)
    inner = [place for place, piece in enumerate(pieces) if not piece.is_leaf]
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    places = [-1] * tree.n_nodes
    taken: Counter[Hashable] = Counter()
    for item, label in enumerate(labels[: tree.n_items]):
        found = by_name.get((True, label), [])
        places[item] = found[taken[label]] if taken[label] < len(found) else -1
        taken[label] += 1
    below, used = tree.to_children(), set[int]()
    for node in reversed(tree._reading_order().tolist()):
        if node < tree.n_items:
            continue
        label = labels[node]
        found = by_name.get((False, label), []) if label is not None else []
        if len(found) > 1:
            votes = Counter(pieces[places[child]].parent for child in below[node - tree.n_items] if places[child] >= 0)
            found = [place for place, _ in votes.most_common() if pieces[place].name == label and place not in used]
        elif not found and isinstance(label, int | None):
            number = (node if label is None else label) - tree.n_items
            root = next(place for place in inner if pieces[place].parent < 0)
            found = [root] if node == tree.root else inner[number : number + 1] if number >= 0 else []
            found = [place for place in found if pieces[place].name is None]
        places[node] = found[0] if found else -1
        used.add(places[node])
    return places


def newick_like(tree: Hierarchy, source: str) -> str:
    """Return a tree as Newick, with the lengths, comments and quotes of the text that it came in.

    Example:
        >>> text = "((a:1,b:2)x:3, 'c':4)r;"
        >>> newick_like(Hierarchy.from_newick(text).with_parents([4, 3, 3, -1, 3]), text)  # item 1 moved
        "((a:1)x:3, b:2, 'c':4)r;"
    """
    found = parse_newick(source)
    pieces: list[NodePiece] = []
    last: dict[int, NodePiece] = {}
    for place, name in enumerate(found.without_support()):
        head, leaf, parent = found.heads[place], found.is_leaf[place], found.parents[place]
        bare = head.lstrip()
        lead = ("," if parent in last else "") + head[: len(head) - len(bare)]
        tail = "" if leaf else ")" + found.tails[place]
        pieces.append(NodePiece(name, parent, leaf, bare if leaf else bare + "(", tail, lead))
        last[parent] = pieces[-1]
    for parent, piece in last.items():  # the spaces before a closing bracket are the bracket's
        if parent >= 0:
            text = piece.head if piece.is_leaf else piece.tail
            bare = text.rstrip()
            piece.head, piece.tail = (bare, "") if piece.is_leaf else (piece.head, bare)
            pieces[parent].tail = text[len(bare) :] + pieces[parent].tail

    def new(label: Hashable) -> NodePiece:
        name = quoted_name(label if isinstance(label, str) else None)
        return NodePiece(label, -1, False, "(", ")" + name)

    return pieces[0].lead + rebuilt_text(tree, pieces, new) + source[found.end :]


class NotHeldError(HierarchyError):
    """The form cannot hold the tree."""


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
    whole = json_spans(source)
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
            if parent is None:
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


def _part(whole: JsonSpan, key: str) -> JsonSpan | None:
    """Return the value of an object's key."""
    return next(
        (part for (name, _), part in zip(whole.keys[::-1], whole.parts[::-1], strict=True) if name == key), None
    )


def _listed(source: str, whole: JsonSpan, texts: Sequence[tuple[int, str]]) -> str:
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


def _children(tree: Hierarchy, source: str, whole: JsonSpan, listed: JsonSpan) -> str:
    """Return children lists, with the labels of the nodes that there are now."""
    texts = []
    for number, below in enumerate(tree.to_children()):
        same = number < len(listed.parts) and listed.parts[number].value == below
        old = source[listed.parts[number].start : listed.parts[number].end] if same else ""
        texts.append((number if number < len(listed.parts) else -1, old or _text(below, source)))
    edits = [(listed, _listed(source, listed, texts))]
    labels = [list(label) if isinstance(label, tuple) else label for label in tree.labels or ()]
    names = None if whole is listed else _part(whole, "labels")
    if (
        names is not None
        and isinstance(names.value, list)
        and len(names.value) > tree.n_items
        and names.value != labels
    ):
        edits.append((names, _text(labels, source)))
    for span, text in sorted(edits, key=lambda edit: -edit[0].start):
        source = source[: span.start] + text + source[span.end :]
    return source


# ---- nested objects, and names as keys


@dataclass(frozen=True, eq=False)
class _Element:
    """A node in nested JSON: its value, its text, its key if names are keys, and what is around that in a list."""

    span: JsonSpan
    start: int
    end: int
    key: str = ""
    outside: JsonSpan | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        return (self.start, self.end) if self.outside is None else (self.outside.start, self.outside.end)


def _nested(tree: Hierarchy, source: str, whole: JsonSpan) -> str:
    """Return nested JSON."""
    one = whole.parts[0] if isinstance(whole.value, list) and len(whole.parts) == 1 else whole
    kind = "list" if isinstance(one.value, list) else "keys" if is_nest(one.value) else "objects"
    if kind == "keys" and len(one.parts) == 1:
        top, unwritten = _entry(source, one, 0), False
    else:
        top, unwritten = _Element(one, one.start, one.end), kind != "objects"
    pieces = _node_pieces(source, top, kind if unwritten else None)
    if kind == "list":  # several roots: the one that only the tree has, above them, is its last node
        pieces = [*pieces[1:], pieces[0]]
        for piece in pieces[:-1]:
            piece.parent = piece.parent - 1 if piece.parent > 0 else len(pieces) - 1
    has_keys = any(piece.key for piece in pieces)
    name_key, child_key = (
        next((key for key in keys if isinstance(one.value, dict) and key in one.value), keys[0])
        for keys in (NAME_KEYS, CHILD_KEYS)
    )

    def new(label: Hashable) -> NodePiece:
        if has_keys and not isinstance(label, str):
            raise NotHeldError
        row: dict[Hashable, Any] = {label: []} if has_keys else {name_key: label, child_key: []}
        text = _text(row if has_keys or isinstance(label, str) else {child_key: []}, source)
        key = _text(label, source) if has_keys else ""
        text = text[1:-1] if has_keys else text
        head, _, tail = text.rpartition("[]")
        return NodePiece(label, -1, False, head + "[", "]" + tail, key=key)

    return source[: top.start] + rebuilt_text(tree, pieces, new, _fitted) + source[top.end :]


def _node_pieces(source: str, top: _Element, unwritten: str | None) -> list[NodePiece]:
    """Return the nodes in reading order; ``unwritten`` says what is below a root that is not written down."""
    pieces: list[NodePiece] = []
    stack = [(top, -1, "")]
    while stack:
        element, parent, lead = stack.pop()
        slot, mode = (element.span, unwritten) if unwritten is not None and not pieces else _slot(element)
        below = [] if slot is None or mode is None else _elements(source, slot, mode)
        head_end, tail_start = (slot.start + 1, below[-1].bounds[1]) if slot and below else (element.end, element.end)
        head, tail = source[element.start : head_end], source[tail_start : element.end]
        name = None if unwritten is not None and not pieces else _name(element)
        piece = NodePiece(name, parent, not below, head, tail, lead, key=element.key)
        if element.outside is not None:
            outside = element.outside
            piece.wrap = source[outside.start : element.start], source[element.end : outside.end]
        start = 0 if slot is None else slot.start + 1
        stack_of_it = []
        for child in below:
            stack_of_it.append((child, len(pieces), source[start : child.bounds[0]]))
            start = child.bounds[1]
        stack.extend(reversed(stack_of_it))
        pieces.append(piece)
    return pieces


def _name(element: _Element) -> Any:
    value = element.span.value
    if element.key:
        return json.loads(element.key)
    if not isinstance(value, dict):
        return value
    name = next((value[key] for key in NAME_KEYS if key in value), None)
    return tuple(name) if isinstance(name, list) else name


def _slot(element: _Element) -> tuple[JsonSpan | None, str]:
    """Return the list or object of what is below a node, and how nodes stand in it."""
    span = element.span
    if isinstance(span.value, list) and element.key:
        return span, "keys"
    if not isinstance(span.value, dict):
        return None, ""
    if element.key and "children" not in span.value:
        return span, "keys"
    found = next((_part(span, key) for key in CHILD_KEYS if key in span.value), None)
    if found is None or found.value is None:
        return None, ""
    return found, "keys" if element.key or isinstance(found.value, dict) else "objects"


def _elements(source: str, slot: JsonSpan, mode: str) -> list[_Element]:
    if isinstance(slot.value, dict):
        return [_entry(source, slot, number) for number in range(len(slot.parts))]
    found = []
    for part in slot.parts:
        value = part.value
        is_keyed = isinstance(value, dict) and (
            is_nest(value)
            if mode == "list"
            else mode == "keys"
            and not any(isinstance(value.get(key), SCALARS) for key in NAME_KEYS)
            and not any(key in value for key in CHILD_KEYS)
        )
        found.append(_entry(source, part, 0, part) if is_keyed else _Element(part, part.start, part.end))
    return found


def _entry(source: str, holder: JsonSpan, number: int, outside: JsonSpan | None = None) -> _Element:
    part, start = holder.parts[number], holder.keys[number][1]
    key = source[start : part.start].rstrip()[:-1].rstrip()
    return _Element(part, start, part.end, key, outside)


def _fitted(piece: NodePiece, bracket: str) -> tuple[str, str]:
    """Return the text before and after what is below a node, as it stands in an object or in a list."""
    if bracket == "{" and not piece.key:
        return piece.head + ": null", ""
    if bracket != "[" or not piece.key:
        return piece.head, piece.tail
    if piece.wrap is None and piece.is_leaf:
        return piece.key, ""
    before, after = piece.wrap or ("{", "}")
    return (before + piece.head + after, "") if piece.is_leaf else (before + piece.head, piece.tail + after)
