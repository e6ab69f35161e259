"""A rooted tree over items in flat arrays: construction, lookup, and comparison.

A *node* is an item or an internal node. A *cluster* is an internal node, or an item that is a leaf cluster of its own
(a singleton). A *leaf cluster* has no clusters below it.
"""

import hashlib
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier._arguments import Bools, Ints, check_flag, check_integer, is_integer
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import HierarchyError, ParameterError, warn_user
from pomdp_hier.hierarchy.arrays import (
    as_ids,
    check_tree,
    checked_labels,
    integer_row,
    kept_labels,
    min_below,
    sum_below,
    sum_to_root,
)


class FlatTree:
    """An immutable rooted tree over the items ``0..N-1`` in flat arrays; internal nodes are ``N..N+K-1``.

    Args:
        parent: The parent of every node ``[N + K]``, -1 at the root.
        n_items: ``N``, the number of items.
        order: All nodes in reading order, which is the order of siblings (default: by number).
        singletons: Whether each item of a pure item list is a leaf cluster of its own.
        labels: One hashable id per node ``[N + K]``, or one per item ``[N]`` (internal nodes are then
            labelled by number).

    Attributes:
        n_items: ``N``.
        n_nodes: ``N + K``.
        root: The root node.
        parent: ``[N + K]``, -1 at the root.
        is_cluster: ``[N + K]`` bool; an item beside an internal node is a cluster, also without ``singletons``.
        is_leaf: ``[N + K]`` bool: clusters without clusters below.
        child_offsets: ``[N + K + 1]``; with ``child_nodes`` the cluster children of every node in CSR form.
        child_nodes: See ``child_offsets``.
        sizes: ``[N + K]`` items below, 1 for an item.
        levels: ``[N + K]`` distance from the root.
        item_order: ``[N]``; the items of node ``v`` are ``item_order[starts[v] : starts[v] + sizes[v]]``.
        starts: See ``item_order``.
        topological_order: ``[N + K]`` parents before children.
        height: The largest level of a cluster.
        labels: ``None``, or the ids of the source, one per node.
        singletons: As given.
    """

    n_items: int
    n_nodes: int
    root: int
    parent: Ints
    is_cluster: Bools
    is_leaf: Bools
    child_offsets: Ints
    child_nodes: Ints
    sizes: Ints
    levels: Ints
    item_order: Ints
    starts: Ints
    topological_order: Ints
    height: int
    labels: tuple[Hashable, ...] | None
    singletons: bool

    def __init__(
        self,
        parent: ArrayLike,
        n_items: int,
        *,
        order: ArrayLike | None = None,
        singletons: bool = False,
        labels: Sequence[Hashable] | None = None,
    ) -> None:
        warn_user(self._build(parent, n_items, order, singletons, labels))

    def _build(
        self,
        parent: ArrayLike,
        n_items: int,
        order: ArrayLike | None,
        singletons: bool,
        labels: Sequence[Hashable] | None,
    ) -> list[str]:
        """Check the parents, drop empty clusters, set every field, and return the warnings."""
        check_flag("singletons", singletons)
        check_integer("n_items", n_items, 0)
        parents = integer_row(parent, "parent").copy()
        rank = np.arange(parents.size)
        if order is not None:
            reading = integer_row(order, "order")
            if not np.array_equal(np.sort(reading), rank):
                raise HierarchyError(
                    f"order: got {brief(order)}; expected a permutation of the nodes 0..{parents.size - 1}."
                )
            rank[reading] = np.arange(parents.size)
        names = checked_labels(labels, n_items, parents.size)
        check_tree(parents, n_items, names)
        sizes = sum_below(parents, (np.arange(parents.size) < n_items).astype(np.int64))
        keep, dropped = np.flatnonzero(sizes > 0), np.flatnonzero(sizes == 0).tolist()
        notes = []
        if dropped:
            some = dropped[:5] if names is None else [names[node] for node in dropped[:5]]
            notes.append(
                f"{counted(len(dropped), 'empty cluster')} dropped, without items: {listed(some, count=len(dropped))}"
            )
            number = np.full(parents.size + 1, -1)
            number[keep] = np.arange(keep.size)
            names = kept_labels(names, keep, int(np.flatnonzero(parents < 0)[0]))
            parents, rank, sizes = number[parents[keep]], rank[keep], sizes[keep]
        self._fill(parents, n_items, sizes, rank, singletons, names)
        return notes

    def _fill(
        self, parent: Ints, n_items: int, sizes: Ints, rank: Ints, singletons: bool, labels: tuple[Hashable, ...] | None
    ) -> None:
        n_nodes = parent.size
        has_parent = parent >= 0
        children = np.lexsort((rank, parent))[1:]  # the root, whose parent is -1, comes first
        counts = np.bincount(parent[has_parent], minlength=n_nodes)
        before = np.cumsum(sizes[children]) - sizes[children]
        within = np.zeros(n_nodes, dtype=np.int64)
        first = np.cumsum(counts) - counts
        within[children] = before - np.repeat(before[first[counts > 0]], counts[counts > 0])
        starts = sum_to_root(parent, within)
        levels = sum_to_root(parent, np.ones(n_nodes, dtype=np.int64)) - 1
        item_order = np.empty(n_items, dtype=np.int64)
        item_order[starts[:n_items]] = np.arange(n_items)

        inner = np.arange(n_nodes) >= n_items
        holds_inner = np.zeros(n_nodes + 1, dtype=bool)
        holds_inner[parent[inner & has_parent]] = True
        is_cluster = inner | singletons | ~has_parent
        is_cluster[:n_items] |= holds_inner[parent[:n_items]]
        child_nodes = children[is_cluster[children]]
        child_counts = np.bincount(parent[child_nodes], minlength=n_nodes)

        self._set(
            n_items=int(n_items),
            n_nodes=n_nodes,
            root=int(np.flatnonzero(~has_parent)[0]),
            parent=parent,
            is_cluster=is_cluster,
            is_leaf=is_cluster & (child_counts == 0),
            child_offsets=np.concatenate(([0], np.cumsum(child_counts))).astype(np.int64),
            child_nodes=child_nodes,
            sizes=sizes,
            levels=levels,
            item_order=item_order,
            starts=starts,
            topological_order=np.argsort(levels, kind="stable"),
            height=int(levels[is_cluster].max()),
            labels=labels,
            singletons=bool(singletons),
        )

    def _set(self, **fields: Any) -> None:
        for value in fields.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: cannot be set, as a {type(self).__name__} is immutable. Build another one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name}: cannot be deleted, as a {type(self).__name__} is immutable.")

    # ---- looking things up

    def _node(self, node: int) -> int:
        if not is_integer(node) or not 0 <= node < self.n_nodes:
            raise ParameterError(_missing("node", node, self.n_nodes))
        return int(node)

    def children(self, node: int) -> Ints:
        """Return the cluster children of a node, in their order; empty for a leaf cluster."""
        node = self._node(node)
        return self.child_nodes[self.child_offsets[node] : self.child_offsets[node + 1]]

    def items(self, node: int) -> Ints:
        """Return the items below a node, ``[sizes[node]]``."""
        start = self.starts[self._node(node)]
        return self.item_order[start : start + self.sizes[node]]

    def path(self, item: int) -> Ints:
        """Return the clusters from the root down to the item's leaf cluster, both included."""
        if not is_integer(item) or not 0 <= item < self.n_items:
            raise ParameterError(_missing("item", item, self.n_items))
        node = int(self.leaf_of_item[item])
        path = np.empty(self.levels[node] + 1, dtype=np.int64)
        for place in range(path.size - 1, -1, -1):
            path[place] = node
            node = int(self.parent[node])
        return path

    @cached_property
    def leaf_of_item(self) -> Ints:
        """The leaf cluster of every item ``[N]``: the item itself if it is a cluster, else its parent."""
        leaf = np.where(self.is_cluster[: self.n_items], np.arange(self.n_items), self.parent[: self.n_items])
        leaf.flags.writeable = False
        return leaf

    @property
    def item_labels(self) -> tuple[Hashable, ...]:
        """The ids of the items in the order of the feature rows ``[N]``; without ids, their numbers."""
        return tuple(range(self.n_items)) if self.labels is None else self.labels[: self.n_items]

    @cached_property
    def _nodes_of_label(self) -> dict[Hashable, list[int]]:
        found: dict[Hashable, list[int]] = {}
        for node, label in enumerate(range(self.n_nodes) if self.labels is None else self.labels):
            found.setdefault(label, []).append(node)
        return found

    def node(self, label: Hashable) -> int:
        """Return the node with a label; a node's label is its number if the source has no ids."""
        (label,) = as_ids("label", [label])
        nodes = self._nodes_of_label.get(label, [])
        if len(nodes) == 1:
            return nodes[0]
        if nodes:
            raise HierarchyError(
                f"label: got {brief(label)}, of nodes {listed(nodes)}; expected the label of one node. Use the number."
            )
        raise HierarchyError(
            f"label: got {brief(label)}; expected a node's label, such as {listed(self.item_labels[:3])}."
        )

    def rows(self, ids: Sequence[Hashable]) -> Ints:
        """Return the row of each item ``[N]`` in ``ids``: ``X[hierarchy.rows(ids)]`` is in the order of the items."""
        names, wanted = as_ids("ids", ids), self.item_labels
        if any(all(isinstance(name, str) for name in side) for side in (names, wanted)):  # 7 and "7" are one id
            names, wanted = tuple(map(str, names)), tuple(map(str, wanted))
        row_of: dict[Hashable, int] = {}
        twice = [name for row, name in enumerate(names) if row_of.setdefault(name, row) != row]
        missing = [name for name in wanted if name not in row_of]
        surplus = list(row_of.keys() - set(wanted)) if len(row_of) > len(set(wanted)) or missing else []
        if missing or surplus or twice:
            surplus = [name for name in row_of if name in set(surplus)]
            found = {"items without a row": missing, "rows without an item": surplus, "duplicate ids": twice}
            text = "; ".join(f"{what}: {listed(names)}" for what, names in found.items() if names)
            raise HierarchyError(
                f"ids: got ids that do not match the items ({text}); expected one row per item. Correct the ids."
            )
        return np.array([row_of[name] for name in wanted], dtype=np.int64)

    # ---- the same tree, changed

    def with_singletons(self, singletons: bool) -> Self:
        """Return the same tree, with or without a leaf cluster for each item of a pure item list."""
        return self._rebuilt(self.parent, self._reading_order(), self.labels, singletons)

    def permuted(self, items: ArrayLike, *, with_labels: bool = False) -> Self:
        """Return the same shape with item ``items[i]`` in the place of item ``i``.

        Args:
            items: A permutation of ``0..N-1``.
            with_labels: Whether item ``items[i]`` gets the label of item ``i``. The items are then renumbered:
                ``tree.permuted(tree.rows(ids), with_labels=True)`` numbers them in the order of the ids. By default
                each number keeps its label, and the items change places.
        """
        perm = integer_row(items, "items")
        if perm.shape != (self.n_items,) or not np.array_equal(np.sort(perm), np.arange(self.n_items)):
            raise ParameterError(f"items: got {brief(items)}; expected a permutation of 0..{self.n_items - 1}.")
        at = np.concatenate((perm.astype(np.int64), np.arange(self.n_items, self.n_nodes)))
        fields = {name: value for name, value in self.__getstate__().items() if not isinstance(value, np.ndarray)}
        for name in ("parent", "is_cluster", "is_leaf", "sizes", "levels", "starts"):
            old = getattr(self, name)
            fields[name] = np.empty_like(old)
            fields[name][at] = old
        fields["root"] = int(at[self.root])
        for name in ("child_nodes", "item_order", "topological_order"):
            fields[name] = at[getattr(self, name)]
        fields["child_offsets"] = self.child_offsets.copy()  # items have no children: nothing moves
        if with_labels and self.labels is not None:
            was = [*np.argsort(perm).tolist(), *range(self.n_items, self.n_nodes)]
            fields["labels"] = tuple(self.labels[node] for node in was)
        new = object.__new__(type(self))
        new._set(**fields)
        return new

    def with_parents(self, parent: ArrayLike, *, new_labels: Sequence[Hashable] = ()) -> Self:
        """Return the tree of the same nodes below other parents; labels and the order of siblings stay.

        Clusters without items are dropped, and later nodes are renumbered. A renumbered node without a label gets its
        old number as its label, so that ``.node(old)`` finds it.

        Args:
            parent: The new parent of every node ``[n_nodes]``, -1 at the root, followed by the parents of new clusters.
            new_labels: The labels of the new clusters, if nodes have labels: one per cluster, or none.
        """
        parents = integer_row(parent, "parent")
        new_nodes = np.arange(self.n_nodes, parents.size)
        labels = self.labels
        if labels is not None and new_nodes.size:
            labels = (*labels, *(new_labels or (None,) * new_nodes.size))
        new = object.__new__(type(self))
        new._build(parents, self.n_items, np.append(self._reading_order(), new_nodes), self.singletons, labels)
        return new

    def collapse_unary(self) -> Self:
        """Return the tree without nodes whose only child is a cluster; the child takes the place of the node.

        The other nodes keep their labels; a renumbered node without a label gets its old number as its label.
        """
        children = np.bincount(self.parent[self.parent >= 0], minlength=self.n_nodes)
        removed = (children == 1) & (np.diff(self.child_offsets) == 1)
        jump = np.append(np.where(removed, self.parent, np.arange(self.n_nodes)), -1)
        while not np.array_equal(jump, further := jump[jump]):
            jump = further
        keep = np.flatnonzero(~removed)
        number = np.full(self.n_nodes + 1, -1)
        number[keep] = np.arange(keep.size)
        order = self._reading_order()
        labels = kept_labels(self.labels, keep, self.root)
        return self._rebuilt(number[jump[self.parent[keep]]], number[order[~removed[order]]], labels, self.singletons)

    def _chained(self) -> Bools:
        """Return whether each node has an internal node as its only child ``[N + K]``."""
        n_children = np.bincount(self.parent[self.parent >= 0], minlength=self.n_nodes)
        chained = np.zeros(self.n_nodes + 1, dtype=bool)
        chained[self.parent[self.n_items :]] = True
        chained[:-1] &= n_children == 1
        return chained[:-1]

    def _reading_order(self) -> Ints:
        """Return all nodes, parents before children and siblings in their order."""
        return np.lexsort((self.levels, self.starts))

    def _rebuilt(self, parent: Ints, order: Ints, labels: tuple[Hashable, ...] | None, singletons: bool) -> Self:
        return type(self)(parent, self.n_items, order=order, singletons=singletons, labels=labels)

    # ---- the same tree, compared and copied

    @cached_property
    def _canonical_parent(self) -> Ints:
        """The parents after numbering internal nodes by (least item below, level); equal trees have equal arrays.

        Nodes with the same least item are on one path, so their levels differ and the key is unique.
        """
        values = np.where(np.arange(self.n_nodes) < self.n_items, np.arange(self.n_nodes), self.n_nodes)
        least = min_below(self.parent, values)
        order = np.lexsort((self.levels[self.n_items :], least[self.n_items :]))
        number = np.concatenate((np.arange(self.n_items), np.empty(order.size, dtype=np.int64), [-1]))
        number[self.n_items + order] = np.arange(self.n_items, self.n_nodes)
        canonical = np.empty(self.n_nodes, dtype=np.int64)
        canonical[number[:-1]] = number[self.parent]
        return canonical

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same clusters of the same items, nested in the same way.

        Numbers and labels of internal nodes, and the order of children, depend on the source format and are ignored.
        """
        if not isinstance(other, FlatTree):
            return NotImplemented
        if (self.n_items, self.n_nodes, self.height) != (other.n_items, other.n_nodes, other.height):
            return False
        if not np.array_equal(self.is_cluster[: self.n_items], other.is_cluster[: self.n_items]):
            return False
        return np.array_equal(self.parent, other.parent) or np.array_equal(
            self._canonical_parent, other._canonical_parent
        )

    @cached_property
    def _hash(self) -> int:
        digest = hashlib.blake2b(self._canonical_parent.tobytes(), digest_size=8)
        digest.update(self.is_cluster[: self.n_items].tobytes())
        return int.from_bytes(digest.digest(), "big", signed=True)

    def __hash__(self) -> int:
        return hash(self._hash)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name in FlatTree.__annotations__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_items={self.n_items}, n_nodes={self.n_nodes}, height={self.height}, "
            f"root={self.root}, singletons={self.singletons})"
        )


def require_hierarchy(hierarchy: object) -> None:
    """Raise an error unless the value is a tree, and not a file name or a linkage matrix."""
    if not isinstance(hierarchy, FlatTree):
        raise HierarchyError(
            f"hierarchy: got {brief(hierarchy)}; expected a Hierarchy. Build one with Hierarchy.from_paths, "
            "from_linkage or another from_..., and give it after the features."
        )


def _missing(what: str, number: object, count: int) -> str:
    hint = "" if is_integer(number) else f" For a label, pass tree.node({brief(number)})."
    return f"{what}: got {brief(number)}; expected one of the {what}s 0..{count - 1}.{hint}"
