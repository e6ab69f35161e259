"""Random small trees as nested lists, and everything a Hierarchy says computed from them by plain recursion."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from pomdp_hier.hierarchy import Hierarchy


@dataclass
class Node:
    """A node of the recursive oracle: an item has no children and an ``item`` number."""

    number: int
    children: list["Node"] = field(default_factory=list)
    item: int | None = None

    def items(self) -> list[int]:
        return [self.item] if self.item is not None else [i for child in self.children for i in child.items()]

    def walk(self, level: int = 0, parent: "Node | None" = None):
        yield self, level, parent
        for child in self.children:
            yield from child.walk(level + 1, self)

    def is_cluster(self, parent: "Node | None", singletons: bool) -> bool:
        if self.item is None or singletons or parent is None:
            return True
        return any(child.item is None for child in parent.children)


@dataclass
class Sample:
    """A random tree: as children lists, and as oracle nodes."""

    root: Node
    n_items: int

    @property
    def n_nodes(self) -> int:
        return sum(1 for _ in self.root.walk())

    def children_lists(self) -> list[list[int]]:
        lists: list[list[int]] = [[] for _ in range(self.n_nodes - self.n_items)]
        for node, _, _ in self.root.walk():
            if node.item is None:
                lists[node.number - self.n_items] = [child.number for child in node.children]
        return lists

    def hierarchy(self, singletons: bool = False) -> Hierarchy:
        return Hierarchy.from_children(self.children_lists(), self.n_items, singletons=singletons)


@st.composite
def samples(draw: st.DrawFn, max_items: int = 9, unary: bool = True, n_items: int | None = None) -> Sample:
    """Trees of every shape: wide, deep, one-child chains, leaf clusters of one or many, items beside clusters."""
    n_items = draw(st.integers(1, max_items)) if n_items is None else n_items
    items = draw(st.permutations(range(n_items)))
    forest = [Node(item, [], item) for item in items]
    n_extra = draw(st.integers(0, 3)) if unary else 0
    inner: list[Node] = []
    while len(forest) > 1 or n_extra:
        start = draw(st.integers(0, len(forest) - 1))
        width = draw(st.integers(1, len(forest) - start))
        if width == 1:
            if not n_extra:
                width, start = 2, min(start, len(forest) - 2)
            else:
                n_extra -= 1
        node = Node(-1, forest[start : start + width])
        inner.append(node)
        forest[start : start + width] = [node]
    numbers = draw(st.permutations(range(n_items, n_items + len(inner))))
    for node, number in zip(inner, numbers, strict=True):
        node.number = number
    return Sample(forest[0], n_items)
