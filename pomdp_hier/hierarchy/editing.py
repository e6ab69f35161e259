"""Edits of a tree: moving, removing, merging and splitting nodes.

Every edit is a set of new parents for some nodes, by the numbers of the original tree. A cluster without items stays in
the draft, where a later edit may fill it again, and is dropped when the draft becomes a tree.
"""

import copy
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import count
from typing import Any, Generic, TypeVar

from pomdp_hier._arguments import is_integer
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.flat import FlatTree

Tree = TypeVar("Tree", bound=FlatTree)
Parents = dict[int, int]
"""The new parents of the nodes that an edit moves."""


class Draft(Generic[Tree]):
    """The parents of a tree's nodes, for editing.

    `moved`, `merged`, `without`, `collapsed` and `parted` return the changes of an edit; `apply` applies them.

    Attributes:
        given: The original tree.
        parent: The parent of every node, including new ones.
        below: The nodes directly below each internal node.
    """

    def __init__(self, given: Tree, called: Callable[[int], str] = str) -> None:
        self.given = given
        self._called = called
        self.parent: list[int] = given.parent.tolist()
        self.below: dict[int, list[int]] = {node: [] for node in range(given.n_items, given.n_nodes)}
        for node in given._reading_order()[1:].tolist():
            self.below[self.parent[node]].append(node)
        self._sources: list[int] = []

    # ---- the changes of an edit

    def moved(self, node: Any, target: Any) -> Parents:
        """Return the new parent of an item or a cluster that is moved to another internal node."""
        self._check_node("node", node, "moved")
        self._check_inner("target", target)
        above = int(target)
        while above >= 0:
            if above == node:
                raise ParameterError(
                    f"target: got {self._called(target)}, which is inside node {self._called(node)}; expected a node "
                    "outside it. Choose one."
                )
            above = self.parent[above]
        return {int(node): int(target)}

    def merged(self, nodes: Iterable[Any], target: Any) -> Parents:
        """Return the new parents of the nodes below clusters that are merged into their sibling."""
        self._check_inner("target", target)
        changes: Parents = {}
        for node in nodes:
            self._check_node("node", node, "merged")
            self._check_inner("node", node)
            if node == target or self.parent[node] != self.parent[target]:
                advice = "Choose another." if node == target else "Move it instead."
                raise ParameterError(
                    f"node: got {self._called(node)}; expected a sibling of node {self._called(target)}. {advice}"
                )
            changes.update(dict.fromkeys(self.below[node], int(target)))
        return changes

    def without(self, nodes: Iterable[Any]) -> Parents:
        """Return the new parents of the nodes below removed clusters: the next remaining node above."""
        removed = list(nodes)
        for node in removed:
            self._check_node("node", node, "removed")
            self._check_inner("node", node)
        going, changes = set(removed), {}
        for node in removed:
            above = self.parent[node]
            while above in going:
                above = self.parent[above]
            changes.update({child: above for child in self.below[node] if child not in going})
        return changes

    def collapsed(self, node: Any) -> Parents:
        """Return the new parents of the items of a cluster whose internal nodes are removed."""
        self._check_inner("node", node)
        return {item: int(node) for item in self.items(int(node)) if self.parent[item] != node}

    def parted(self, node: Any, nodes: Iterable[Any]) -> Parents:
        """Return the new parents of some nodes below a cluster, which become a new cluster beside it."""
        self._check_node("node", node, "split")
        self._check_inner("node", node)
        part = dict.fromkeys(nodes, len(self.parent))
        if not part or not part.keys() < set(self.below[node]):
            raise ParameterError(
                f"nodes: got {', '.join(map(self._called, part)) or 'none'}; expected some, not all, of the nodes "
                f"directly below node {self._called(node)}."
            )
        return {**part, len(self.parent): self.parent[node]}

    # ---- applying changes

    def copy(self) -> "Draft[Tree]":
        """Return an independent copy of the draft."""
        other = copy.copy(self)
        other.parent, other._sources = self.parent.copy(), self._sources.copy()
        other.below = {node: list(nodes) for node, nodes in self.below.items()}
        return other

    def apply(self, changes: Mapping[int, int]) -> None:
        """Give nodes their new parents; the number after the last node is a new cluster, split from an old one."""
        if len(self.parent) in changes:
            new = len(self.parent)
            source = next(self.parent[node] for node in changes if node != new)
            self._sources.append(source)
            self.parent.append(changes[new])
            self.below[new] = []
            self.below[changes[new]].append(new)
        for parent, nodes in self.leaving(changes).items():
            self.below[parent] = [node for node in self.below[parent] if node not in nodes]
        for node, parent in changes.items():
            if self.parent[node] != parent:
                self.below[parent].append(node)
                self.parent[node] = parent

    def leaving(self, changes: Mapping[int, int]) -> dict[int, set[int]]:
        """Return the nodes that leave each parent."""
        leaving: dict[int, set[int]] = {}
        for node, parent in changes.items():
            if node < len(self.parent) and self.parent[node] != parent:
                leaving.setdefault(self.parent[node], set()).add(node)
        return leaving

    def items(self, node: int) -> list[int]:
        """Return the items below a node."""
        items, waiting = [], [node]
        while waiting:
            here = waiting.pop()
            if here < self.given.n_items:
                items.append(here)
            else:
                waiting.extend(self.below[here])
        return sorted(items)

    def tree(self) -> Tree:
        """Return the tree without empty clusters, whose later nodes are renumbered."""
        return self.given.with_parents(self.parent, new_labels=self._new_labels())

    def _new_labels(self) -> list[Hashable]:
        """Return the labels of new clusters: the label of the split cluster with a part number, each distinct."""
        if self.given.labels is None:
            return []
        names, taken = list(self.given.labels), set(self.given.labels)
        for source in self._sources:
            label = names[source]
            path = label if isinstance(label, tuple) and label else (label,)
            name: Hashable = None
            for number in count(1) if label not in (None, ()) else ():
                last = f"{path[-1]} (part{f' {number}' if number > 1 else ''})"
                name = (*path[:-1], last) if isinstance(label, tuple) else last
                if name not in taken:
                    break
            taken.add(name)
            names.append(name)
        return names[self.given.n_nodes :]

    def _check_node(self, what: str, node: Any, done: str) -> None:
        _check_number(what, node)
        if not 0 <= node < len(self.parent) or self.parent[node] < 0:
            raise ParameterError(
                f"{what}: got {self._called(node)}, which is the root or not a node; expected a node below the root, "
                f"to be {done}."
            )

    def _check_inner(self, what: str, node: Any) -> None:
        _check_number(what, node)
        if node not in self.below:
            numbers = f", {self.given.n_items}..{len(self.parent) - 1}" if self._called is str else ""
            raise ParameterError(f"{what}: got {self._called(node)}; expected an internal node{numbers}.")


def _check_number(what: str, value: Any) -> None:
    if not is_integer(value):
        raise ParameterError(
            f"{what}: got {brief(value)}; expected the number of a node. hierarchy.node(label) returns that of a label."
        )
