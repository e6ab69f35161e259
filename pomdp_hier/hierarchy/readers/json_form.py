"""JSON: edges or children lists, bare or in an object that says which."""

import json
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.readers.children import read_children
from pomdp_hier.hierarchy.readers.edges import read_edges
from pomdp_hier.hierarchy.readers.graph import Join
from pomdp_hier.hierarchy.readers.json_deep import not_json, parse_deep_json, refuse_constant
from pomdp_hier.hierarchy.readers.nodes import read_nodes
from pomdp_hier.hierarchy.readers.plain import PlainTree, checked_choice
from pomdp_hier.hierarchy.readers.sources import TextSource, read_text
from pomdp_hier.hierarchy.wording import listed, shown

__all__ = ["JsonForm", "as_json", "parse_json", "read_json"]

JsonForm = Literal["auto", "edges", "children", "nested"]
_KEYS = ("children", "edges", "n_items", "n_leaves", "items", "labels", "singletons")


def parse_json(source: TextSource | Any) -> Any:
    """Return the parsed value of JSON text, a file of it, or of what is parsed already.

    Raises:
        ReaderError: With line and column for text that is not JSON.
    """
    if isinstance(source, np.ndarray):
        return source.tolist()
    if isinstance(source, (list, tuple, dict)):
        return source
    text = read_text(source, is_text=lambda text: text.lstrip().startswith(("[", "{")))

    try:
        return json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise not_json(text, error.msg, error.pos) from None
    except RecursionError:
        return parse_deep_json(text)
    except ValueError as error:  # an integer of more digits than Python converts
        raise ReaderError(f"the JSON cannot be parsed: {error}") from None


def read_json(
    source: TextSource | Any, join: Join, form: JsonForm = "auto", add_root: bool = False
) -> tuple[PlainTree, bool]:
    """Return the plain tree of a JSON source, and whether it was edges.

    Example:
        >>> read_json("[[0, 1], [3, 2]]", Join())[0].parent
        array([ 3,  3,  4,  4, -1])
    """
    checked_choice("form", form, ("auto", "edges", "children", "nested"))
    value = parse_json(source)
    if form == "nested" or (form == "auto" and _is_nested(value)):
        return _read_nested(value, join), True
    singletons, labels = None, None
    if isinstance(value, dict):
        value, join, singletons, labels, form = _from_object(value, join, form)
    if not isinstance(value, (list, tuple)):
        raise ReaderError(f"the JSON is {shown(value)}, expected a list of lists, or an object")
    if form == "auto":
        form = "children" if _is_children(value) else "edges"
    if form == "children":
        plain = read_children(
            value,
            join.n_items,
            labels=labels,
            add_root=add_root,
            on_multiple_parents=join.on_multiple_parents,
        )
    else:
        plain = read_edges(value, join)
    plain.singletons = singletons
    return plain, form == "edges"


def _is_nested(value: Any) -> bool:
    """Whether the value is an object that holds its children as objects."""
    children = value.get("children") if isinstance(value, dict) else None
    return (
        isinstance(children, list)
        and "edges" not in value
        and any(not isinstance(child, (list, tuple)) for child in children)
    )


def _read_nested(value: Any, join: Join) -> PlainTree:
    if not isinstance(value, dict):
        raise ReaderError(f"nested JSON is {shown(value)}, expected an object with a name and children")
    return read_nodes(value, join)


def _is_children(value: Sequence[Any]) -> bool:
    """Whether lists of lists of integers name every id at most once: then they can be no edges."""
    seen: set[int] = set()
    count = 0
    for row in value:
        if not isinstance(row, (list, tuple)) or not all(type(name) is int for name in row):
            return False
        seen.update(row)
        count += len(row)
    return count == len(seen)


def _from_object(
    value: dict[str, Any], join: Join, form: JsonForm
) -> tuple[Any, Join, bool | None, Sequence[Hashable] | None, JsonForm]:
    """Return what an object says; what the caller says goes before it."""
    named: list[JsonForm] = [key for key in ("edges", "children") if key in value]
    if form != "auto":
        named = [key for key in named if key == form]
    if len(named) != 1:
        raise ReaderError(
            f'the JSON object has the keys {listed(value)}, expected either "edges" or "children"; '
            f"others that are read: {listed(_KEYS[2:])}"
        )
    n_items = value.get("n_items", value.get("n_leaves"))
    if n_items is not None and (type(n_items) is not int or n_items < 1):
        raise ReaderError(f"n_items is {shown(n_items)} in the JSON, expected a positive integer")
    singletons = value.get("singletons")
    if singletons is not None and not isinstance(singletons, bool):
        raise ReaderError(f"singletons is {shown(singletons)} in the JSON, expected true or false")
    lists: dict[str, Sequence[Hashable] | None] = {}
    for key in ("items", "labels"):
        lists[key] = value.get(key)
        if lists[key] is not None:
            if not isinstance(lists[key], (list, tuple)):
                raise ReaderError(f"{key} is {shown(lists[key])} in the JSON, expected a list of ids")
            lists[key] = [_hashable(name, key) for name in lists[key] or ()]
    if join.items is None and join.n_items is None:
        join = Join(
            None if lists["items"] is not None and named[0] == "edges" else n_items,
            lists["items"],
            join.items_at_inner,
            join.on_multiple_parents,
            join.empty_leaves,
        )
    labels = lists["labels"]
    if labels is None and named[0] == "children":
        labels = lists["items"]
    if named[0] == "children" and join.n_items is None and lists["items"] is not None:
        join = Join(len(lists["items"]), None, join.items_at_inner, join.on_multiple_parents, join.empty_leaves)
    return value[named[0]], join, singletons, labels, named[0]


def _hashable(name: object, key: str) -> Hashable:
    """Return a label as it was: lists become tuples again."""
    if isinstance(name, list):
        name = tuple(name)
    try:
        hash(name)
    except TypeError:
        raise ReaderError(f"{key} holds {shown(name)}, expected strings or numbers") from None
    return name


def as_json(
    children: Sequence[Sequence[int]], n_items: int, singletons: bool, labels: Sequence[Hashable] | None
) -> str:
    """Return the JSON object that `read_json` reads back to the same arrays.

    Raises:
        ReaderError: For a label that JSON cannot hold.
    """
    form = {"n_items": n_items, "singletons": singletons, "children": children, "labels": labels}
    if labels is None:
        del form["labels"]
    else:
        form["labels"] = [name.item() if hasattr(name, "item") else name for name in labels]
    try:
        return json.dumps(form, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ReaderError(f"a label cannot be written as JSON: {error}; use strings or numbers") from None
