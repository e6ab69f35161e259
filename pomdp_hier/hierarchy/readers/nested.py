"""Readers of nested dictionaries, lists of children and node objects."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier._arguments import Ints, check_text
from pomdp_hier._io.formats import gathered
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import HierarchyError, PythonAdvice, ReaderError, Setting
from pomdp_hier.hierarchy.arrays import dense, is_row, require_hashable
from pomdp_hier.hierarchy.readers.clusterings import read_hdbscan
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, tree_of_links
from pomdp_hier.hierarchy.readers.tables import TreeArrays, is_missing


def read_children(
    children: Sequence[Sequence[int]] | ArrayLike,
    join: Join | None = None,
    *,
    labels: Sequence[Hashable] | None = None,
    add_root: bool = False,
) -> TreeArrays:
    """Return the tree arrays of children lists; without ``join.n_items``, one root is assumed."""
    children = dense("children", children)
    join = join or Join()
    n_items = join.n_items
    if isinstance(children, np.ndarray):
        if children.dtype.kind == "f" and (children == np.floor(children)).all():
            within = (np.abs(children) < np.float64(2**62)).all()
            children = children.astype(np.int64) if within else children
        children = children.tolist()
    if isinstance(children, (str, bytes, dict)) or not hasattr(children, "__iter__"):
        raise HierarchyError(f"children: got {brief(children)}; expected a list of lists of node numbers.")
    flat, lengths = _integer_ids(children, "children")  # type: ignore[arg-type]
    if n_items is None:
        if not flat.size:
            raise HierarchyError(
                "children: got lists without a node; expected at least one. Give [[0]] for a tree of one item."
            )
        n_items = max(np.unique(flat).size + 1 - lengths.size, 0)
    if n_items > flat.size + lengths.size + 1 and not add_root:
        raise HierarchyError(
            f"children: got {counted(np.unique(flat).size, 'node')} for {n_items} items, without "
            f"{listed(islice(_missing(flat, n_items), 5), count=n_items - flat.size)}; expected each item in a list. "
            "Add them, or correct the number of items."
        )
    n_nodes = n_items + lengths.size
    above = np.repeat(np.arange(n_items, n_nodes), lengths)
    outside = np.flatnonzero((flat < 0) | (flat >= n_nodes))
    if outside.size:
        raise HierarchyError(
            f"children[{above[outside[0]] - n_items}]: got {flat[outside[0]]}; expected a node of 0..{n_nodes - 1} "
            f"({counted(n_items, 'item')} and {counted(lengths.size, 'list')})."
        )
    own = np.flatnonzero(flat == above)
    if own.size:
        raise HierarchyError(
            f"children[{flat[own[0]] - n_items}]: got its own node {flat[own[0]]} (a self-loop); expected others. "
            "Remove it."
        )
    times = np.bincount(flat, minlength=n_nodes)
    if (times > 1).any():
        twice = np.flatnonzero(times > 1)
        if join.on_multiple_parents != "error":
            ids = list(range(n_nodes)) if labels is None else list(chain(labels, range(len(labels), n_nodes)))
            nodes = LinkedNodes(list(range(n_nodes)), above.tolist(), flat.tolist(), "child")
            links = tree_of_links(nodes, replace(join, n_items=n_items))
            arrays = replace(links, one_child_notes=False)
            if labels is not None and arrays.labels is not None:
                arrays.labels = [ids[node] for node in arrays.labels]  # type: ignore[call-overload]
            elif labels is not None:
                arrays.labels = ids
            return arrays
        where = above[flat == twice[0]] - n_items
        raise HierarchyError(
            f"children: got {counted(twice.size, 'node')} with several parents, "
            f"{listed(twice[:5].tolist(), count=twice.size)} (node {twice[0]} in the lists {listed(where.tolist())}); "
            "expected one list per node. Remove them from the others, or pass ",
            Setting("on_multiple_parents", "first", "duplicate"),
            ".",
        )
    parent = np.full(n_nodes, -1, dtype=np.int64)
    parent[flat] = above
    order = np.concatenate((flat, np.flatnonzero(times == 0)))
    return TreeArrays(parent, int(n_items), order, labels)


def read_sklearn(model: Any, *, labels: Sequence[Hashable] | None = None, add_root: bool = False) -> TreeArrays:
    """Return the tree arrays of a fitted model; a partial one (``compute_full_tree=False``) has several roots."""
    if hasattr(model, "_bisecting_tree"):
        return _read_bisections(model, labels)
    if hasattr(model, "_single_linkage_tree_"):
        return replace(read_hdbscan(model), labels=labels)
    children, n_leaves = getattr(model, "children_", None), getattr(model, "n_leaves_", None)
    if children is None or n_leaves is None:
        raise ReaderError(
            f"model: got {type(model).__name__} without children_ and n_leaves_; expected a fitted "
            "AgglomerativeClustering, FeatureAgglomeration, BisectingKMeans or HDBSCAN. Fit it, or give the labels of "
            "another clustering to from_labels."
        )
    _check_cut(model, np.asarray(children), int(n_leaves))
    found = read_children(np.asarray(children), Join(int(n_leaves)), labels=labels, add_root=add_root)
    return replace(found, singletons=True)


def _check_cut(model: Any, children: Any, n_leaves: int) -> None:
    """Raise an error unless the model's labels are those of its tree, cut into as many clusters."""
    labels, n_clusters = getattr(model, "labels_", None), getattr(model, "n_clusters_", None)
    if labels is None or n_clusters is None or children.ndim != 2 or children.dtype.kind not in "iu":
        return
    found: list[int] = np.ravel(labels).tolist()
    if len(found) != n_leaves or set(found) != set(range(n_clusters)):
        raise ReaderError(
            f"labels_: got {listed(sorted(set(found)))} for {counted(len(found), 'row')}; expected "
            f"0..{n_clusters - 1} for {n_leaves}, by n_clusters_ and n_leaves_. Fit the model again."
        )
    for row, (one, other) in enumerate(children[: n_leaves - n_clusters, :2].tolist()):
        if min(one, other) < 0 or max(one, other) >= len(found):
            return  # the reader reports the missing node
        if found[one] != found[other]:
            raise ReaderError(
                f"labels_: got {found[one]} and {found[other]} for rows that row {row} of children_ merges; expected "
                f"one label in each of {n_clusters} clusters. Fit the model again."
            )
        found.append(found[one])


def _read_bisections(model: Any, labels: Sequence[Hashable] | None) -> TreeArrays:
    """Return the tree arrays of a fitted BisectingKMeans: its bisections, and the rows of each leaf's label."""
    assigned = np.asarray(model.labels_)
    order = np.argsort(assigned, kind="stable")
    n_items = len(assigned)
    nodes, stack, numbers = list[Any](), [model._bisecting_tree], dict[int, int]()
    while stack:
        node = stack.pop()
        numbers[id(node)] = n_items + len(nodes)
        nodes.append(node)
        stack += [below for below in (node.right, node.left) if below is not None]
    leaves = [node for node in nodes if node.left is None and node.right is None]
    strange = np.setdiff1d(assigned, [leaf.label for leaf in leaves])
    if strange.size:
        raise ReaderError(
            f"labels_: got {listed(strange.tolist())}; expected 0..{len(leaves) - 1}, by the bisections. "
            "Fit the model again."
        )
    ends = np.searchsorted(assigned[order], np.arange(max(leaf.label for leaf in leaves) + 2))
    lists: list[list[int]] = []
    for node in nodes:
        below = [numbers[id(child)] for child in (node.left, node.right) if child is not None]
        rows = below or order[ends[node.label] : ends[node.label + 1]].tolist()
        sizes_known = getattr(model, "bisecting_strategy", None) == "largest_cluster" and len(leaves) > 1
        if not rows or (sizes_known and not below and len(rows) != node.score):
            expected = f"{node.score:g}" if sizes_known else "some"
            raise ReaderError(
                f"labels_: got {node.label} for {counted(len(rows), 'row')}; expected {expected}, by the bisections. "
                "Fit the model again."
            )
        lists.append(rows)
    return replace(read_children(lists, Join(n_items), labels=labels), singletons=False)


def read_labels(assigned: Any, labels: Sequence[Hashable] | None = None) -> TreeArrays:
    """Return the tree arrays of one level: a cluster per label below the root, in order of first use."""
    values = assigned.tolist() if hasattr(assigned, "tolist") else assigned
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ReaderError(f"labels: got {brief(assigned)}; expected a list of one label per row.")
    position: dict[Hashable, int] = {}
    places = []
    for row, label in enumerate(values):
        if is_missing(label):
            raise ReaderError(f"labels[{row}]: got {brief(label)}; expected one per row, such as -1 for noise.")
        try:
            places.append(position.setdefault(label, len(position)))
        except TypeError:
            raise ReaderError(f"labels[{row}]: got {brief(label)}; expected text or a number.") from None
    if not places:
        raise ReaderError("labels: got none; expected one per row.")
    n = len(places)
    parent = np.concatenate([n + np.array(places), np.full(len(position), n + len(position)), [-1]])
    names = None if labels is None else [*labels, *position, None]
    return TreeArrays(parent, n, labels=names, singletons=False)


def _integer_ids(lists: Iterable[Sequence[object]], what: str) -> tuple[Ints, Ints]:
    """Return all ids of the lists in one array, and the length of each list."""
    rows = list(lists)
    for number, row in enumerate(rows):
        if not is_row(row):
            raise HierarchyError(f"{what}[{number}]: got {brief(row)}; expected a list of node numbers.")
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    flat = list(chain.from_iterable(rows))
    for place, value in enumerate(flat):
        if type(value) is not int and (isinstance(value, bool) or not isinstance(value, np.integer)):
            number = int(np.searchsorted(np.cumsum(lengths), place, side="right"))
            raise HierarchyError(f"{what}[{number}]: got {brief(value)}; expected integer node numbers.")
        if not -(2**62) < value < 2**62:
            raise HierarchyError(f"{what}: got the node {brief(value)}; expected an integer between -2**62 and 2**62.")
    return np.array(flat, dtype=np.int64), lengths


def _missing(flat: Ints, n_items: int) -> Iterator[int]:
    """Return the items that are in none of the lists, in order, without an array of ``n_items``."""
    present = set(flat.tolist())
    return (item for item in range(n_items) if item not in present)


Access: TypeAlias = str | Callable[[Any], Any] | None
CHILD_KEYS = ("children", "child_nodes")
SCALARS = (str, bytes, int, float)
NAME_KEYS = ("name", "label", "id", "title", "text", "tag", "identifier", "key")


def read_nodes(root: object, join: Join, children: Access = None, name: Access = None) -> TreeArrays:
    """Return the tree arrays below one node object or several; nodes are distinguished by identity.

    Example:
        >>> read_nodes({"name": "r", "children": [{"name": "a"}, {"name": "b"}]}, Join()).labels
        ['a', 'b', 'r']
        >>> read_nodes({"r": ["a", "b"]}, Join()).labels
        ['a', 'b', 'r']
    """
    roots = list(root) if isinstance(root, list | tuple) and children is None else [root]
    if not roots or (children is None and any(one is None or isinstance(one, SCALARS) for one in roots)):
        raise ReaderError(
            f"root: got {brief(root)}; expected a node object. For nodes that are plain ids, pass children=."
        )
    if children is None and any(hasattr(one, "get_left") and hasattr(one, "get_count") for one in roots):
        raise ReaderError("root: got a ClusterNode of SciPy; expected another node object. Give it to from_linkage.")
    if children is None and name is None:
        if len(roots) > 1:
            roots = [entry for one in roots for entry in (_entries(one) if is_nest(one) else [one])]
        elif is_nest(roots[0]):
            roots = _entries(roots[0])
            roots = roots if len(roots) == 1 else [_Entry(None, roots)]
        else:
            root, children, name = _unwrapped(roots[0])
            roots = [root]
    children_of = _accessor(children, CHILD_KEYS, "children")
    name_of = _accessor(name, NAME_KEYS, "name")
    objects: list[object] = []
    position: dict[Hashable, int] = {}

    def places(nodes: Iterable[object]) -> tuple[list[int], list[int]]:
        """Return the position of each node, and the new positions."""
        start, found = len(objects), []
        for node in nodes:
            key = _key(node)
            if key not in position:
                position[key] = len(objects)
                objects.append(node)  # keeps the object alive, so that its id stays unique
            found.append(position[key])
        return found, list(range(start, len(objects)))

    tops, stack = places(roots)

    def links() -> Iterator[tuple[int, int]]:
        """Yield the positions of each parent and child; node objects may generate children without end."""
        while stack:
            place = stack.pop()
            node = objects[place]
            found, new = places(_child_list(children_of(node), node))
            yield from ((place, child) for child in found)
            stack.extend(reversed(new))

    found = gathered(links(), _without_end)
    if children is None:
        check_child_key(objects)
    named = (name_of(node) for node in objects)
    ids = require_hashable("names", (tuple(one) if isinstance(one, list) else one for one in named), ReaderError)
    if name is None:
        _check_leaves_named(objects, {above for above, _ in found})
    nodes = LinkedNodes(list(ids), [above for above, _ in found], [below for _, below in found], "child")
    return tree_of_links(_in_reading_order(nodes, tops), join)


def check_child_key(nodes: Iterable[object]) -> None:
    """Raise if a dictionary has no known key of children, but objects below another key, or nodes below both keys."""
    for row in nodes:
        if not isinstance(row, Mapping):
            continue
        called = [row[key] for key in NAME_KEYS if isinstance(row.get(key), SCALARS)]
        if not called:
            continue
        known = [key for key in CHILD_KEYS if row.get(key)]
        below = [key for key, cell in row.items() if isinstance(cell, list) and cell and isinstance(cell[0], Mapping)]
        if len(known) > 1 or (below and not any(key in row for key in CHILD_KEYS)):
            found = known if len(known) > 1 else below
            raise ReaderError(
                f"node {brief(called[0])}: got nodes below the key {listed(found)}; expected the key 'children' "
                "alone. Rename or remove it",
                PythonAdvice(f", or pass children={brief(found[0])} to from_nodes"),
                ".",
            )


def _check_leaves_named(objects: Sequence[object], parents: Set[int]) -> None:
    """Raise `ReaderError` for a dictionary without nodes below it and without a known key of a name."""
    for place, node in enumerate(objects):
        if isinstance(node, Mapping) and node and place not in parents and node.keys().isdisjoint(NAME_KEYS):
            raise ReaderError(
                f"node: got {brief(node)}; expected a key of its name, {listed_keys(map(brief, NAME_KEYS))}. Write "
                "each node with the keys 'name' and 'children'",
                PythonAdvice(", or pass name= to from_nodes"),
                ".",
            )


def _without_end(count: int) -> ReaderError:
    return ReaderError(f"root: got more than {count:,} nodes below it; expected a finite tree.")


def _in_reading_order(nodes: LinkedNodes, roots: list[int]) -> LinkedNodes:
    """Return the nodes numbered from the roots down, first child first, which is the order of the items."""
    children: list[list[int]] = [[] for _ in nodes.ids]
    for above, below in zip(nodes.parents, nodes.children, strict=True):
        children[above].append(below)
    number: dict[int, int] = {}
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        if node not in number:
            number[node] = len(number)
            stack.extend(reversed(children[node]))
    return LinkedNodes(
        [nodes.ids[node] for node in number],
        [number[int(node)] for node in nodes.parents],
        [number[int(node)] for node in nodes.children],
        nodes.where,
    )


@dataclass(frozen=True, eq=False)
class _Entry:
    """A key of a plain nested dictionary, as a node: its name, and the dictionary or list below it."""

    name: Hashable
    content: Any


def is_nest(value: object) -> bool:
    """Return whether a value is a nested dictionary with names as keys: ``{"A": {"x": ["i1", "i2"]}}``."""
    return (
        isinstance(value, Mapping)
        and not any(key in value for key in CHILD_KEYS)
        and not any(isinstance(value.get(key), SCALARS) for key in NAME_KEYS)
        and all(below is None or isinstance(below, Mapping | list | tuple) for below in value.values())
        and any(below is not None for below in value.values())
    )


def _entries(content: Any) -> list[Any]:
    """Return the nodes below a key of a nested dictionary: keys, items of a list, or node objects in it."""
    if content is None:
        return []
    if isinstance(content, Mapping):
        if "children" in content:  # treelib's to_dict
            return _entries(content["children"])
        for name, below in content.items():
            if below is not None and not isinstance(below, Mapping | list | tuple):
                raise ReaderError(
                    f"key {brief(name)}: got {brief(below)}; expected a dictionary of what is below, a list of items, "
                    "or null. Remove the key, or write each node with the keys 'name' and 'children'."
                )
        return [_Entry(name, below) for name, below in content.items()]
    if not isinstance(content, list | tuple):
        raise ReaderError(f"nested dictionary: got {brief(content)}; expected a list of items. Give a list.")
    nodes = []
    for node in content:
        if isinstance(node, list | tuple):
            raise ReaderError(f"nested dictionary: got a list with {brief(node)}; expected items or dictionaries.")
        is_keyed = isinstance(node, Mapping) and not any(isinstance(node.get(key), SCALARS) for key in NAME_KEYS)
        nodes += _entries(node) if is_keyed and not any(key in node for key in CHILD_KEYS) else [node]
    return nodes


def _unwrapped(root: Any) -> tuple[object, Access, Access]:
    """Return the root node and the accessors of libraries whose tree is an object of its own (treelib, DendroPy)."""
    if hasattr(root, "seed_node"):
        root = root.seed_node
    if hasattr(root, "child_nodes") and hasattr(root, "taxon"):
        return root, "child_nodes", lambda node: getattr(node.taxon, "label", None) or node.label
    if hasattr(root, "is_branch") and hasattr(root, "root") and callable(getattr(root, "children", None)):
        tree = root
        if tree.root is None:
            raise ReaderError("root: got an empty treelib tree; expected nodes. Add a root.")
        return tree[tree.root], lambda node: tree.children(node.identifier), "identifier"
    return root, None, None


def _accessor(access: Access, defaults: tuple[str, ...], what: str) -> Callable[[Any], Any]:
    """Return a function from a node to its children or name."""
    if callable(access):
        return access
    check_text(what, access)
    names = defaults if access is None else (access,)

    def read(node: Any) -> Any:
        if isinstance(node, _Entry):
            return node.name if what == "name" else _entries(node.content)
        if isinstance(node, SCALARS) and access is None:
            return None if what == "children" else node
        for key in names:
            if isinstance(node, Mapping):
                if key in node:
                    return node[key]
            elif hasattr(node, key):
                value = getattr(node, key)
                return value() if callable(value) else value
        if what == "children" and isinstance(node, Mapping):
            return None
        if what == "name" and access is None:
            return None
        raise ReaderError(f"node: got {type(node).__name__} without {listed_keys(names)}; expected one. Pass {what}=.")

    return read


def listed_keys(names: Iterable[str]) -> str:
    """Return the keys an accessor looked for."""
    return " or ".join(names)


def _child_list(found: object, node: object) -> list[Any]:
    if found is None:
        return []
    if isinstance(found, Mapping) and is_nest(found):
        return _entries(found)
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise ReaderError(f"children of {brief(node)}: got {brief(found)}; expected a list of nodes.")
    children: Iterable[Any] = dense("the children of a node", found)
    return [child for child in children if child is not None]  # binary nodes of bigtree have None for a missing child


def _key(node: object) -> Hashable:
    """Return the identity of a node: its value if it is a plain id, else the object."""
    if isinstance(node, _Entry) and node.content:
        return (node.name, id(node.content))  # finds a dictionary that contains itself
    return ("id", node) if isinstance(node, (str, int)) else id(node)
