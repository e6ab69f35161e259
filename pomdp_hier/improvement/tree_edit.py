"""Effect of an edit on a tree: the nodes that it touches, and their items, children and levels after it."""

from collections.abc import Mapping
from typing import cast

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.hierarchy.editing import Draft, Parents
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.improvement.node_views import NO_ITEMS, NodeView
from pomdp_hier.improvement.similarities import Cluster, Similarities


class TreeEdit:
    """The nodes that an edit touches, and their items and children after it."""

    def __init__(
        self,
        draft: Draft[Hierarchy],
        seen: Mapping[int, NodeView],
        similarities: Similarities,
        changes: Parents,
        *,
        by_level: bool,
    ) -> None:
        self._draft, self._seen, self._similarities, self._changes = draft, seen, similarities, changes
        self._by_level = by_level
        self._leaving = self._draft.leaving(changes)
        self.item: int | None = None  # the moved item, if the edit moves a single one
        self._pairs: tuple[Ints, Floats, Floats] | None = None
        self._arriving: dict[int, list[int]] = {}
        self._out: dict[int, list[Ints]] = {}
        self._into: dict[int, list[Ints]] = {}
        self._members: dict[int, Ints] = {}
        self._relevelled: set[int] = set()
        moved: dict[tuple[int, int], list[Ints]] = {}
        n_old, n_items = len(self._draft.parent), draft.given.n_items
        for node, parent in changes.items():
            if node >= n_old:
                self._arriving.setdefault(parent, []).append(node)
            elif (before := self._draft.parent[node]) != parent:
                self._arriving.setdefault(parent, []).append(node)
                view = seen.get(node)
                items = np.array([node]) if node < n_items else NO_ITEMS if view is None else view.members
                moved.setdefault((before, parent), []).append(items)
        if len(changes) == 1 and moved:
            ((node, parent),) = changes.items()
            if node < n_items:
                self.item, self._up = node, self._above(parent, changes)
                self._shared = next(above for above in self._above(self._draft.parent[node], {}) if above in self._up)
        for (before, parent), lists in moved.items():
            old, new = self._above(before, {}), self._above(parent, changes)
            together = np.concatenate(lists)
            for node in old.keys() - new.keys():
                self._out.setdefault(node, []).append(together)
            for node in new.keys() - old.keys():
                self._into.setdefault(node, []).append(together)

    def leads_to_item(self, node: int) -> bool:
        """Return whether the node is or contains the moved item after the edit."""
        return node == self.item or node in self._up

    def pairs(self, members: Ints) -> tuple[Floats, Floats]:
        """Return the similarities of the items of a touched node to the moved item, and of that item to each."""
        if self._pairs is None:
            items = self._seen[self._shared].members
            self._pairs = (items, *self._similarities.pairs(items, cast(int, self.item)))
        items, towards, of_item = self._pairs
        if members is items:
            return towards, of_item
        at = np.searchsorted(items, members)
        return towards[at], of_item[at]

    def touched(self) -> list[int]:
        """Return the nodes whose view changes, descendants before ancestors."""
        nodes = {*self._leaving, *self._arriving, *self._out, *self._into}
        if self._by_level:
            nodes |= self._at_other_levels()
        touched: dict[int, None] = {}
        for node in sorted(nodes):
            touched.update(self._above(node, self._changes))
        return sorted(touched, key=lambda node: (-self.level(node), node))

    def _at_other_levels(self) -> set[int]:
        moved = [node for node in self._changes if node in self._draft.below]
        waiting = [node for node in moved if self.level(node) != len(self._above(node, {})) - 1]
        found: set[int] = set()
        while waiting:
            found.add(here := waiting.pop())
            waiting.extend(child for child in self._draft.below[here] if child in self._draft.below)
        self._relevelled = found
        return found

    def changes_children(self, node: int) -> bool:
        """Return whether the similarities of the node, or values derived from them, change."""
        if node in self._relevelled or node in self._leaving or node in self._arriving or self.changes_items(node):
            return True
        return any(self.changes_items(child) for child in self._draft.below[node] if child in self._draft.below)

    def changes_items(self, node: int) -> bool:
        """Return whether the items of the node change."""
        return node in self._out or node in self._into

    def below(self, node: int) -> list[int]:
        """Return the children of the node after the edit."""
        gone = self._leaving.get(node, set())
        return [
            *(child for child in self._draft.below.get(node, []) if child not in gone),
            *self._arriving.get(node, []),
        ]

    def members(self, node: int) -> Ints:
        """Return the items of the node after the edit, ascending."""
        if node not in self._members:
            view = self._seen.get(node)
            items = NO_ITEMS if view is None else view.members
            if self.item is not None and node in self._out:
                items = np.delete(items, np.searchsorted(items, self.item))
            elif self.item is not None and node in self._into:
                items = np.insert(items, np.searchsorted(items, self.item), self.item)
            elif node in self._out:
                items = items[~np.isin(items, np.concatenate(self._out[node]))]
            if self.item is None and node in self._into:
                items = np.union1d(items, np.concatenate(self._into[node]))
            self._members[node] = items
        return self._members[node]

    def cluster(self, node: int) -> Cluster:
        """Return a node and its items after the edit."""
        return node, (np.array([node]) if node < self._draft.given.n_items else self.members(node))

    def level(self, node: int) -> int:
        """Return the level of a node after the edit."""
        return len(self._above(node, self._changes)) - 1

    def _above(self, node: int, changes: Parents) -> dict[int, None]:
        """Return the node and its ancestors."""
        path: dict[int, None] = {}
        while node >= 0:
            path[node] = None
            node = changes[node] if node in changes else self._draft.parent[node]
        return path
