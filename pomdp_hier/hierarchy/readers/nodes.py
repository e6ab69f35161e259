"""Node objects of other tree libraries, and nested dictionaries, with keys for names or with names and children."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pomdp_hier.errors import ReaderError
from pomdp_hier.files.memory import gathered
from pomdp_hier.hierarchy.arguments import check_text, dense
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, tree_of_links
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import shown

__all__ = ["CHILD_KEYS", "NAME_KEYS", "SCALARS", "Access", "is_nest", "read_nodes"]

Access: TypeAlias = str | Callable[[Any], Any] | None
CHILD_KEYS = ("children", "child_nodes")
SCALARS = (str, bytes, int, float)
NAME_KEYS = ("name", "label", "id", "title", "text", "tag", "identifier", "key")


def read_nodes(root: object, join: Join, children: Access = None, name: Access = None) -> TreeArrays:
    """Return the tree arrays below a node object, or below each of a list; a node is itself, whatever its name.

    Example:
        >>> read_nodes({"name": "r", "children": [{"name": "a"}, {"name": "b"}]}, Join()).labels
        ['a', 'b', 'r']
        >>> read_nodes({"r": ["a", "b"]}, Join()).labels
        ['a', 'b', 'r']
    """
    roots = list(root) if isinstance(root, list | tuple) and children is None else [root]
    if not roots or (children is None and any(one is None or isinstance(one, SCALARS) for one in roots)):
        raise ReaderError(
            f"the root is {shown(root)}, expected a node object; for nodes that are plain ids pass children="
        )
    if children is None and any(hasattr(one, "get_left") and hasattr(one, "get_count") for one in roots):
        raise ReaderError("the root is a ClusterNode of SciPy, which from_linkage reads: Hierarchy.from_linkage(root)")
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
        """Return the place of each node, and the places that are new."""
        start, found = len(objects), []
        for node in nodes:
            key = _key(node)
            if key not in position:
                position[key] = len(objects)
                objects.append(node)  # keeps the object alive, so that no other one gets its id
            found.append(position[key])
        return found, list(range(start, len(objects)))

    tops, stack = places(roots)

    def links() -> Iterator[tuple[int, int]]:
        """Yield the places of each parent and child; objects that make their children when asked need have no end."""
        while stack:
            place = stack.pop()
            node = objects[place]
            found, new = places(_child_list(children_of(node), node))
            yield from ((place, child) for child in found)
            stack.extend(reversed(new))

    found = gathered(links(), _without_end)
    ids = [_name(name_of(node)) for node in objects]
    nodes = LinkedNodes(ids, [above for above, _ in found], [below for _, below in found], "child")
    return tree_of_links(_in_reading_order(nodes, tops), join)


def _without_end(count: int) -> ReaderError:
    return ReaderError(f"more than {count:,} nodes were met below the root, and more follow; expected a tree that ends")


def _in_reading_order(nodes: LinkedNodes, roots: list[int]) -> LinkedNodes:
    """Return the same nodes numbered from the roots down, first child first: the order in which leaves become items."""
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
    """Whether a value is a plain nested dictionary, whose keys are the names: ``{"A": {"x": ["i1", "i2"]}}``.

    Example:
        >>> is_nest({"A": {"x": ["i1"]}}), is_nest({"name": "A", "children": []}), is_nest({"a": 1})
        (True, False, False)
    """
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
                    f"key {shown(name)}: got {shown(below)}; expected a dictionary of what is below, a list of items, "
                    "or null. Remove the key, or write each node with the keys 'name' and 'children'."
                )
        return [_Entry(name, below) for name, below in content.items()]
    if not isinstance(content, list | tuple):
        raise ReaderError(f"nested dictionary: got {shown(content)}; expected a list of items. Give a list.")
    nodes = []
    for node in content:
        if isinstance(node, list | tuple):
            raise ReaderError(f"a list in the nested dictionary holds {shown(node)}, expected items or dictionaries")
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
            raise ReaderError("the treelib tree is empty: it has no root")
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
        raise ReaderError(f"a node of type {type(node).__name__} has no {listed_keys(names)}: pass {what}=")

    return read


def listed_keys(names: Iterable[str]) -> str:
    """Return the keys an accessor looked for.

    Example:
        >>> listed_keys(["name", "label"])
        'name or label'
    """
    return " or ".join(names)


def _child_list(found: object, node: object) -> list[Any]:
    if found is None:
        return []
    if isinstance(found, Mapping) and is_nest(found):
        return _entries(found)
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise ReaderError(f"the children of {shown(node)} are {shown(found)}, expected a list of nodes")
    children: Iterable[Any] = dense("the children of a node", found)
    return [child for child in children if child is not None]  # binary nodes of bigtree have None for a missing child


def _key(node: object) -> Hashable:
    """Return what makes a node the same node: its value if it is a plain id, else the object."""
    if isinstance(node, _Entry) and node.content:
        return (node.name, id(node.content))  # so that a dictionary that holds itself is seen to
    return ("id", node) if isinstance(node, (str, int)) else id(node)


def _name(name: object) -> Hashable:
    if isinstance(name, list):
        name = tuple(name)
    try:
        hash(name)
    except TypeError:
        raise ReaderError(f"a node is named {shown(name)}, expected a string or a number") from None
    return name
