"""Names of nodes in messages, and the drawing of a tree as text."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pomdp_hier._text import brief, counted, visible
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.flat import FlatTree


def label_text(label: Hashable) -> str:
    """Return an id as text: the categories of a path in one string, other ids by ``str``."""
    if isinstance(label, tuple):
        return " / ".join(map(str, label)) if label else "(root)"
    return brief(label) if isinstance(label, int) and label.bit_length() >= 200 else str(label)


def id_texts(tree: "FlatTree") -> list[str]:
    """Return the ids of all nodes as text; of nodes without one, "node" and their number, or that alone.

    Example:
        >>> from pomdp_hier.hierarchy import Hierarchy
        >>> id_texts(Hierarchy.from_children([[0, 1]], 2, labels=["tea", "salt", None]))
        ['tea', 'salt', 'node 2']
    """
    if tree.labels is None:
        return list(map(str, range(tree.n_nodes)))
    return [f"node {node}" if label is None else label_text(label) for node, label in enumerate(tree.labels)]


class NodeNames(Sequence[str]):
    """Display names of the nodes of a tree ``[n_nodes]``, computed on access.

    The name of a node is the given name, else its id in the source, else its number. The text is not escaped for a
    terminal or a page; the caller escapes it.

    Args:
        given: Names of the items ``[N]`` or of all nodes ``[n_nodes]``, or a mapping from ids (or their text) to names.
            An empty name counts as none.
    """

    def __init__(
        self,
        tree: "FlatTree",
        given: Sequence[Any] | Mapping[Any, Any] | None = None,
        *,
        last_part: bool = False,
        in_words: bool = False,
    ) -> None:
        self._tree, self._last_part, self._in_words = tree, last_part, in_words
        self._by_id: Mapping[Any, Any] = given if isinstance(given, Mapping) else {}
        self._by_node: tuple[Any, ...] = ()
        if given is None or isinstance(given, Mapping):
            return
        if isinstance(given, str | bytes) or not hasattr(given, "__iter__") or getattr(given, "ndim", 1) != 1:
            raise ParameterError(f"names: got {brief(given)}; expected a list of one name per item or one per node.")
        self._by_node = tuple(given)
        if len(self._by_node) not in (tree.n_items, tree.n_nodes):
            raise ParameterError(
                f"names: got {counted(len(self._by_node), 'name')} for {counted(tree.n_items, 'item')} and "
                f"{counted(tree.n_nodes, 'node')}; expected one per item or one per node."
            )

    def __len__(self) -> int:
        return self._tree.n_nodes

    def __getitem__(self, node: Any) -> Any:
        if isinstance(node, slice):
            return [self[place] for place in range(*node.indices(len(self)))]
        number = range(len(self))[node]
        return self._named(number) or self._unnamed(number)

    def _named(self, node: int) -> str:
        """Return the node's name or id as text; empty if it has none."""
        name = self._by_node[node] if node < len(self._by_node) else None
        if name is None or name == "":
            name = None if self._tree.labels is None else self._tree.labels[node]
            if self._by_id:
                label = node if self._tree.labels is None else name
                name = self._by_id.get(label) or self._by_id.get(label_text(label)) or name
        if name is None:
            return ""
        if self._last_part and isinstance(name, tuple):
            name = name[-1:] and name[-1]
        text = label_text(name)
        return text if text.strip() else ""

    def _unnamed(self, node: int) -> str:
        if self._tree.labels is not None and self._tree.labels[node] is None and node == self._tree.root:
            return "(root)"
        what = "item " if node < self._tree.n_items else "node "
        return f"{what if self._in_words else ''}{node}"


_UNICODE = ("├─ ", "└─ ", "│  ", "   ", "…")
_ASCII = ("|- ", "`- ", "|  ", "   ", "...")


def draw_text(
    tree: "FlatTree", *, max_lines: int, max_items: int, names: Sequence[Hashable] | None, ascii_only: bool
) -> str:
    """Return the drawing; its last line counts the clusters that are left out."""
    tee, corner, bar, blank, dots = _ASCII if ascii_only else _UNICODE

    called = NodeNames(tree, names, last_part=True)

    def name(node: int) -> str:
        text = visible(called[node])
        if ascii_only:
            text = text.encode("ascii", "backslashreplace").decode("ascii")
        return text if len(text) <= 60 else text[:57] + dots

    lines: list[str] = []
    n_clusters = int(tree.is_cluster.sum())
    stack: list[tuple[int, str, str]] = [(tree.root, "", "")]
    while stack and len(lines) < max_lines:
        node, lead, indent = stack.pop()
        line = f"{lead}{name(node)}"
        if node >= tree.n_items:
            line += f" ({counted(int(tree.sizes[node]), 'item')})"
        if tree.is_leaf[node] and node >= tree.n_items:
            items = tree.items(node)
            line += ": " + ", ".join(name(item) for item in items[:max_items].tolist())
            if items.size > max_items:
                line += f", {dots}"
        lines.append(line)
        children = tree.children(node)[:max_lines].tolist()
        last = int(tree.children(node)[-1]) if children else -1
        stack.extend(
            (child, indent + (corner if child == last else tee), indent + (blank if child == last else bar))
            for child in reversed(children)
        )
    if len(lines) < n_clusters:
        lines.append(f"{dots} {counted(n_clusters - len(lines), 'cluster')} more of {n_clusters:,}")
    return "\n".join(lines)
