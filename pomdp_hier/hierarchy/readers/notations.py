"""Trees in JSON (edges, children lists or nested objects of any depth), and in Newick."""

import json
import math
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np

from pomdp_hier._arguments import check_choice
from pomdp_hier._io.formats import decoding
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import PythonAdvice, ReaderError
from pomdp_hier.hierarchy.arrays import in_number_order, require_hashable
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, read_edges, read_parents, text_ids, tree_of_links
from pomdp_hier.hierarchy.readers.nested import check_child_key, is_nest, read_children, read_nodes
from pomdp_hier.hierarchy.readers.tables import TextSource, TreeArrays, read_text
from pomdp_hier.hierarchy.readers.text_layout import refuse_other_formats

JsonForm = Literal["auto", "edges", "children", "nested"]
_KEYS = ("children", "edges", "n_items", "n_leaves", "items", "labels", "singletons")


def parse_json(source: TextSource | Any) -> Any:
    """Return the value of JSON text or a JSON file; a parsed value is returned unchanged."""
    if isinstance(source, np.ndarray):
        return source.tolist()
    if isinstance(source, (list, tuple, dict)):
        return source
    text = read_text(source, is_text=lambda text: text.lstrip().startswith(("[", "{")))
    expected = "JSON nested at most some thousand levels deep, of numbers of at most 4,300 digits"
    with decoding("JSON", ReaderError, expected, "Write a deep tree as edges or Newick"):
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            if error.msg == "Extra data" and (lines := _json_lines(text)):
                return lines
            if error.pos == len(text) - len(text.lstrip()):
                refuse_other_formats(text, "JSON")
            raise _not_json(text, error.msg, error.pos) from None


def _json_lines(text: str) -> list[Any]:
    """Return the values of JSON Lines, one object per line, or an empty list for other text."""
    try:
        values = [json.loads(line, parse_constant=_refuse_constant) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return []
    return values if all(isinstance(value, dict) for value in values) else []


def read_json(source: TextSource | Any, join: Join, form: JsonForm = "auto", add_root: bool = False) -> TreeArrays:
    """Return the tree arrays of a JSON source."""
    check_choice("form", form, ("auto", "edges", "children", "nested"))
    value = parse_json(source)
    if form == "auto":
        _check_known(value)
    layout = json_form(value) if form == "auto" else form
    if layout == "nested":
        if not isinstance(value, list | tuple | dict):
            raise ReaderError(f"JSON: got {brief(value)}; expected an object with a name and children.")
        return read_nodes(value, join)
    if layout == "parents":
        return read_parents(value, join)
    singletons, labels = None, None
    if isinstance(value, dict):
        value, join, singletons, labels, form = _from_object(value, join, form)
    if not isinstance(value, (list, tuple)):
        raise ReaderError(f"JSON: got {brief(value)}; expected a list of lists, or an object.")
    if form == "auto":
        form = "edges" if layout == "edges" else "children"
    arrays = read_edges(value, join) if form == "edges" else _read_children(value, join, labels, add_root)
    arrays.singletons = singletons
    return arrays


def _check_known(value: Any) -> None:
    """Raise an error for JSON of another reader: paths, JSON-LD, and objects with an unknown key of children."""
    if isinstance(value, list) and value and all(isinstance(path, str) for path in value):
        raise ReaderError(
            f"JSON: got a list of text, {brief(value[0])}; expected nodes. Give one path per line in a file that ends "
            "in .txt",
            PythonAdvice(", or the list to from_paths"),
            ".",
        )
    rows = value if isinstance(value, list) else [value]
    if any(isinstance(row, dict) and not row.keys().isdisjoint(("@context", "@graph", "@id")) for row in rows):
        raise ReaderError(
            "JSON: got JSON-LD; expected nodes. Give its links as a table with the columns parent and child",
            PythonAdvice(" to from_edges"),
            ".",
        )
    if not any(isinstance(row, dict) and "edges" in row for row in rows):
        check_child_key(rows)


def json_form(value: Any) -> str:
    """Return the form of a parsed value: ``"nested"``, ``"parents"``, ``"edges"`` or ``"children"``."""
    if _is_nested(value):
        return "nested"
    if _is_parent_table(value):
        return "parents"
    if isinstance(value, dict):
        return "edges" if "edges" in value else "children"
    return "children" if isinstance(value, list | tuple) and _is_children(value) else "edges"


def _is_nested(value: Any) -> bool:
    """Return whether the value is an object with its children as objects, or a list of such objects."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(one, dict) and (_is_nested(one) or is_nest(one)) for one in value)
    if not isinstance(value, dict) or "edges" in value:
        return False
    children = value.get("children")
    if isinstance(children, dict):
        return is_nest(children)
    if isinstance(children, list):
        return any(not isinstance(child, (list, tuple)) for child in children)
    return is_nest(value) and not value.keys() <= set(_KEYS)


def _is_parent_table(value: Any) -> bool:
    """Return whether the value is a list of flat objects, one per node, with a key of the parent's id."""
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(
            isinstance(row, dict)
            and not any(isinstance(part, list | dict) for cell in row.values() for part in _parts(cell))
            for row in value
        )
        and any("parent" in str(key).casefold() for row in value for key in row)
    )


def _parts(cell: Any) -> list[Any]:
    return cell if isinstance(cell, list) else [cell]


def _is_children(value: Sequence[Any]) -> bool:
    """Return whether lists of integers have every id at most once, so that they cannot be edges."""
    seen: set[int] = set()
    count = 0
    for row in value:
        if not isinstance(row, (list, tuple)) or not all(type(name) is int for name in row):
            return False
        seen.update(row)
        count += len(row)
    return count == len(seen)


def _read_children(value: Any, join: Join, labels: Sequence[Hashable] | None, add_root: bool) -> TreeArrays:
    """Return the tree arrays of children lists, with ids of items or of all nodes."""
    items = join.items
    join = replace(join, items=None, n_items=join.n_items or (None if items is None else len(items)))
    arrays = read_children(value, join, labels=items if labels is None else labels, add_root=add_root)
    if items is None or labels is None:
        return arrays
    ids = [*labels, *range(len(labels), arrays.parent.size)]  # the items' ids alone may be given
    below = (
        np.flatnonzero(arrays.parent >= 0) if arrays.order is None else arrays.order[arrays.parent[arrays.order] >= 0]
    )
    nodes = LinkedNodes(ids, arrays.parent[below], below, "child")
    return replace(tree_of_links(nodes, replace(join, items=items, n_items=None)), one_child_notes=False)


def _from_object(
    value: dict[str, Any], join: Join, form: JsonForm
) -> tuple[Any, Join, bool | None, Sequence[Hashable] | None, JsonForm]:
    """Return lists, items, singletons, labels and form of an object; the caller's arguments have priority."""
    named: list[JsonForm] = [key for key in ("edges", "children") if key in value]
    if form != "auto":
        named = [key for key in named if key == form]
    if len(named) != 1:
        raise ReaderError(
            f"JSON: got an object with the keys {listed(value)}; expected either 'edges' or 'children', with "
            f"{listed(_KEYS[2:])} beside them. Remove or rename keys."
        )
    counts = {key: value[key] for key in ("n_items", "n_leaves") if value.get(key) is not None}
    for key, count in counts.items():
        if type(count) is not int or count < 1:
            raise ReaderError(f"JSON: got {brief(count)} for {key}; expected an integer of at least 1.")
    singletons = value.get("singletons")
    if singletons is not None and not isinstance(singletons, bool):
        raise ReaderError(f"JSON: got {brief(singletons)} for singletons; expected true or false.")
    items, labels = (_ids(value.get(key), key) for key in ("items", "labels"))
    if items is not None:
        counts["the length of items"] = len(items)
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{key} is {count}" for key, count in counts.items())
        raise ReaderError(f"JSON: got counts that differ ({found}); expected one number. Correct one or leave it out.")
    if labels is not None and named[0] == "edges":
        raise ReaderError("JSON: got 'labels' beside 'edges'; expected the ids in the edges alone. Leave out 'labels'.")
    if labels is None and items is not None and named[0] == "children":
        labels, items = items, None
    if join.items is None and join.n_items is None:
        n_items = next(iter(counts.values()), None) if items is None else None
        join = replace(join, n_items=n_items, items=items)
    return value[named[0]], join, singletons, labels, named[0]


def _ids(names: Any, key: str) -> list[Hashable] | None:
    if names is None:
        return None
    if not isinstance(names, (list, tuple)):
        raise ReaderError(f"JSON: got {brief(names)} for {key}; expected a list of ids.")
    return list(require_hashable(key, (tuple(name) if isinstance(name, list) else name for name in names), ReaderError))


def as_json(
    children: Sequence[Sequence[int]], n_items: int, singletons: bool, labels: Sequence[Hashable] | None
) -> str:
    """Return the JSON object that `read_json` reads back to the same arrays."""
    form = {"n_items": n_items, "singletons": singletons, "children": children, "labels": labels}
    if labels is None:
        del form["labels"]
    else:
        form["labels"] = [name.item() if hasattr(name, "item") else name for name in labels]
    try:
        return json.dumps(form, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ReaderError(f"labels: got one that JSON cannot hold ({error}); expected text or numbers.") from None


def _refuse_constant(constant: str) -> NoReturn:
    """Raise for NaN and the infinities, which Python's parser accepts although JSON does not have them."""
    raise ReaderError(f"JSON: got {constant}; expected text or a number. Remove it.")


def _not_json(text: str, what: str, position: int) -> ReaderError:
    """Return the error for text that breaks the grammar, with its position."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return ReaderError(
        f"JSON: got text that breaks the grammar ({what}) at line {line}, column {column} (character {position} of "
        f"{len(text)}); expected JSON. Give the whole file."
    )


_TOKEN = re.compile(
    r"""\s+|(?P<mark>[(),:;])|(?P<name>[^\s(),:;\[\]'"][^\s(),:;\[\]]*)|(?P<quoted>'(?:[^']++|'')*+'|"(?:[^"]++|"")*+")"""
)
_BRACKET = re.compile(r"[\[\]]")
_NEEDS_QUOTES = re.compile(r"""[\s(),:;\[\]'"]""")


@dataclass
class NewickNodes:
    """The nodes in the order their text starts; the root is node 0.

    Attributes:
        names: As the text has them.
        parents: The parent of each node, -1 at the root.
        is_leaf: Whether each has no brackets.
    """

    names: list[str | None]
    parents: list[int]
    is_leaf: list[bool]

    def without_support(self) -> list[str | None]:
        """Return the names, without those of internal nodes if all are numbers, as support values are."""
        inner = [name for name, leaf in zip(self.names, self.is_leaf, strict=True) if not leaf and name is not None]
        if inner and all(_is_length(name) for name in inner):
            return [name if leaf else None for name, leaf in zip(self.names, self.is_leaf, strict=True)]
        return self.names


def _failure(text: str, position: int, got: str, expected: str) -> ReaderError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    where = f"Newick, line {line}, column {column} (position {position})"
    return ReaderError(f"{where}: got {got}; expected {expected}.")


def parse_newick(text: str) -> NewickNodes:
    """Return the nodes of one tree, in one pass; a name or a length belongs to ``node``.

    ``stage`` is the last part of the node so far: "new", "closed" (its brackets), "name", ":" or "length".
    """
    names: list[str | None] = [None]
    parents, is_leaf = [-1], [True]
    node, stage, position = 0, "new", 0
    for kind, token, position in _tokens(text):
        if kind == "(":
            if stage != "new":
                raise _failure(text, position, "'('", "',' or ')'")
            is_leaf[node] = False
        elif kind in ",);":
            if stage == ":":
                raise _failure(text, position, brief(token), "a length after ':'")
            if is_leaf[node] and not names[node]:
                raise _failure(text, position, brief(token), "the name of a leaf")
            above = parents[node]
            if kind == ";":
                if above >= 0:
                    raise _failure(text, position, "';' inside brackets", "')' first")
                _check_end(text, position + 1)
                return NewickNodes(names, parents, is_leaf)
            if above < 0:
                raise _failure(text, position, f"{brief(kind)} outside all brackets", "';' at the end of the tree")
            node, stage = above, "closed"
        elif kind == ":":
            if stage in (":", "length"):
                raise _failure(text, position, "a second ':'", "one length per node")
            stage = ":"
        elif stage == ":":
            if kind == "quoted" or not _is_length(token):
                raise _failure(text, position, brief(token, 20), "a length")
            stage = "length"
        elif stage in ("name", "length"):
            raise _failure(text, position, brief(token, 20), "',' or ')'. Quote a name with spaces")
        else:
            names[node] = token[1:-1].replace(token[0] * 2, token[0]) if kind == "quoted" else token
            stage = "name"
        if kind in "(,":
            names.append(None)
            parents.append(node)
            is_leaf.append(True)
            node, stage = len(names) - 1, "new"
    depth = -1
    while node >= 0:
        depth, node = depth + 1, parents[node]
    got = f"the end of the text with {counted(depth, 'open bracket')}"
    raise _failure(text, len(text), got, "a tree that ends in ';'")


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and position of each token, without comments and spaces; a mark is its own kind."""
    position = 0
    while position < len(text):
        if text[position] == "[":  # before the search for a token, which would scan all following comments
            position = _after_comment(text, position)
            continue
        for found in _TOKEN.finditer(text, position):
            if found.start() != position:
                break
            position = found.end()
            kind = found.lastgroup
            if kind is not None:
                yield found.group() if kind == "mark" else kind, found.group(), found.start()
        else:
            if position == len(text):
                return
        if text[position] != "[":
            got = "a quote that is never closed" if text[position] in "'\"" else brief(text[position])
            raise _failure(text, position, got, "a name, a length, or one of ( ) , : ;")


def _after_comment(text: str, position: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(text, position):
        depth += 1 if bracket.group() == "[" else -1
        if not depth:
            return bracket.end()
    raise _failure(text, position, "a comment that is never closed", "']'")


def _check_end(text: str, position: int) -> None:
    """Raise unless only spaces and comments follow the tree."""
    for _, token, start in _tokens(text[position:]):
        raise _failure(text, position + start, f"{brief(token, 20)} after the final ';'", "one tree")


def _is_length(token: str) -> bool:
    try:
        return "_" not in token and not math.isnan(float(token))
    except ValueError:
        return False


def read_newick(source: TextSource | Any, join: Join) -> TreeArrays:
    """Return the tree arrays of Newick text; leaves are the items, in the order of the text.

    Lengths, support values and rooting tags are checked and dropped: a hierarchy is topology. Underscores stay.
    """
    text = read_text(source, is_text=lambda text: text.rstrip().endswith(";") or text.lstrip().startswith(("(", "[")))
    found = parse_newick(text)
    names: list[Hashable] = list(found.without_support())
    join = replace(text_ids(join), empty_leaves=False)
    if join.items is None:
        leaves = list(dict.fromkeys(name for name, leaf in zip(names, found.is_leaf, strict=True) if leaf))
        order = in_number_order(list(range(len(leaves))), leaves, 0)
        join = replace(join, items=[leaves[place] for place in order])
    nodes = LinkedNodes(names, found.parents[1:], list(range(1, len(names))), "bracket")
    return tree_of_links(nodes, join)


def quoted_name(name: str | None) -> str:
    """Return a name in Newick syntax, in quotes where necessary; empty for ``None``."""
    if name is None:
        return ""
    return "'" + name.replace("'", "''") + "'" if not name or _NEEDS_QUOTES.search(name) else name


def as_newick(names: Sequence[str | None], children: Sequence[Sequence[int]], n_items: int, root: int) -> str:
    """Return the Newick text of a tree from the children lists of its internal nodes, with quotes where necessary."""
    parts: list[str] = []
    stack: list[tuple[int, str]] = [(root, "")]
    while stack:
        node, lead = stack.pop()
        if node < 0:  # the end of an internal node
            parts.append(")" + quoted_name(names[~node]))
            continue
        parts.append(lead)
        if node < n_items:
            parts.append(quoted_name(names[node]))
        else:
            below = children[node - n_items]
            parts.append("(")
            stack.append((~node, ""))
            stack.extend((child, "," if place else "") for place, child in reversed(list(enumerate(below))))
    return "".join(parts) + ";"
