"""A tree drawn as text: one line a cluster, the items of a leaf cluster on its line."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from pomdp_hier.hierarchy.wording import NodeNames, counted
from pomdp_hier.visible import visible

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.flat import FlatTree

__all__ = ["draw_text"]

_UNICODE = ("├─ ", "└─ ", "│  ", "   ", "…")
_ASCII = ("|- ", "`- ", "|  ", "   ", "...")


def draw_text(
    tree: "FlatTree",
    *,
    max_lines: int,
    max_items: int,
    names: Sequence[Hashable] | None,
    ascii_only: bool,
) -> str:
    """Return the drawing; where it stops, its last line says how many clusters it leaves out."""
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
