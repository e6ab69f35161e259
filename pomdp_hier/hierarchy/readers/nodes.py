"""Node objects of other tree libraries, and nested dictionaries."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.readers.graph import Join, LinkedNodes, plain_tree
from pomdp_hier.hierarchy.readers.plain import PlainTree
from pomdp_hier.hierarchy.wording import shown

__all__ = ["Access", "read_nodes"]

Access: TypeAlias = str | Callable[[Any], Any] | None
_CHILDREN = ("children", "child_nodes")
_NAMES = ("name", "label", "id", "title", "text", "tag", "identifier", "key")


def read_nodes(root: object, join: Join, children: Access = None, name: Access = None) -> PlainTree:
    """Return the plain tree below a node object; a node is itself, whatever its name.

    Example:
        >>> read_nodes({"name": "r", "children": [{"name": "a"}, {"name": "b"}]}, Join()).labels
        ['a', 'b', 'r']
    """
    if children is None and (root is None or isinstance(root, (str, bytes, int, float))):
        raise ReaderError(
            f"the root is {shown(root)}, expected a node object; for nodes that are plain ids pass children="
        )
    if children is None and name is None:
        root, children, name = _unwrapped(root)
    children_of = _accessor(children, _CHILDREN, "children")
    name_of = _accessor(name, _NAMES, "name")
    objects = [root]
    position = {_key(root): 0}
    nodes = LinkedNodes([], [], [], "child")
    parents: list[int] = []
    below: list[int] = []
    stack = [0]
    while stack:
        place = stack.pop()
        found = _child_list(children_of(objects[place]), objects[place])
        new = []
        for child in found:
            key = _key(child)
            if key not in position:
                position[key] = len(objects)
                objects.append(child)  # keeps the object alive, so that no other one gets its id
                new.append(position[key])
            parents.append(place)
            below.append(position[key])
        stack.extend(reversed(new))
    nodes.ids = [_name(name_of(node)) for node in objects]
    return plain_tree(_in_reading_order(LinkedNodes(nodes.ids, parents, below, "child")), join)


def _in_reading_order(nodes: LinkedNodes) -> LinkedNodes:
    """Return the same nodes numbered from the root down, first child first: the order in which leaves become items."""
    children: list[list[int]] = [[] for _ in nodes.ids]
    for above, below in zip(nodes.parents, nodes.children, strict=True):
        children[above].append(below)
    number: dict[int, int] = {}
    stack = [0]
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
    names = defaults if access is None else (access,)

    def read(node: Any) -> Any:
        for key in names:
            if isinstance(node, Mapping):
                if key in node:
                    return node[key]
            elif hasattr(node, key):
                value = getattr(node, key)
                return value() if callable(value) else value
        if isinstance(node, (str, int, float)) and access is None:
            return None if what == "children" else node
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
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise ReaderError(f"the children of {shown(node)} are {shown(found)}, expected a list of nodes")
    return [child for child in found if child is not None]  # binary nodes of bigtree have None for a missing child


def _key(node: object) -> Hashable:
    """Return what makes a node the same node: its value if it is a plain id, else the object."""
    return ("id", node) if isinstance(node, (str, int)) else id(node)


def _name(name: object) -> Hashable:
    if isinstance(name, list):
        name = tuple(name)
    try:
        hash(name)
    except TypeError:
        raise ReaderError(f"a node is named {shown(name)}, expected a string or a number") from None
    return name
