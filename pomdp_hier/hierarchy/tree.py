"""`Hierarchy`: a rooted tree over items, read from the formats people have and written back to them."""

import os
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.flat import FlatTree
from pomdp_hier.hierarchy.readers.children import read_children
from pomdp_hier.hierarchy.readers.edges import read_edges
from pomdp_hier.hierarchy.readers.graph import Join
from pomdp_hier.hierarchy.readers.graphs import read_networkx
from pomdp_hier.hierarchy.readers.json_form import JsonForm, as_json, read_json
from pomdp_hier.hierarchy.readers.linkage import read_linkage
from pomdp_hier.hierarchy.readers.plain import ItemsAtInner, OnMultipleParents, PlainTree, with_added_root
from pomdp_hier.hierarchy.readers.sources import TextSource
from pomdp_hier.hierarchy.text import draw_text
from pomdp_hier.hierarchy.wording import counted, shown, warn_user

__all__ = ["Hierarchy"]


class Hierarchy(FlatTree):
    """An immutable rooted tree over items ``0..N-1``; inner nodes are ``N..N+K-1``.

    Options that the readers share:

    - ``singletons``: whether each item of a pure item list is a leaf cluster of its own. An item listed beside inner
      nodes always is one.
    - ``add_root``: hang several roots under a new one instead of refusing them.
    - ``n_items`` or ``items``: the integers below ``n_items`` are the items, or ``items`` lists their ids in the order
      of the feature rows. Without either, the nodes without children are the items, in order of first appearance (by
      number if they are exactly ``0..N-1``).
    - ``on_multiple_parents``: ``"error"``, ``"first"`` (keep the first parent) or ``"duplicate"`` (a copy under each).
    - ``items_at_inner``: an item that has nodes below becomes a ``"leaf"`` of its own there, or is an ``"error"``.

    >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], n_items=4)
    >>> tree
    Hierarchy(n_items=4, n_nodes=7, height=1, root=6, singletons=False)
    >>> tree.items(4), tree.path(3)
    (array([0, 1]), array([6, 5]))
    """

    @classmethod
    def _from_plain(
        cls,
        plain: PlainTree,
        *,
        singletons: bool,
        add_root: bool = False,
        warn_one_child: bool = False,
    ) -> Self:
        if add_root:
            plain = with_added_root(plain)
        warn_user(plain.notes)
        tree = cls(plain.parent, plain.n_items, order=plain.order, singletons=singletons, labels=plain.labels)
        if warn_one_child:
            n_children = np.bincount(tree.parent[tree.parent >= 0], minlength=tree.n_nodes)
            n_chained = int(((n_children == 1) & (np.diff(tree.child_offsets) == 1) & ~_holds_item(tree)).sum())
            if n_chained:
                warn_user(
                    [
                        f"{counted(n_chained, 'node')} with one child only: no choice is made there; "
                        "collapse_unary() takes them out"
                    ]
                )
        return tree

    @classmethod
    def from_children(
        cls,
        children: Sequence[Sequence[int]] | ArrayLike,
        n_items: int | None = None,
        *,
        singletons: bool = False,
        labels: Sequence[Hashable] | None = None,
        add_root: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
    ) -> Self:
        """The tree in which node ``n_items + k`` has the children ``children[k]``, in any order of ``k``.

        Args:
            children: Lists of node numbers, or an integer array ``[K, 2]``.
            n_items: The number of items; without it, what makes the lists one tree.
            singletons, add_root, on_multiple_parents: See the class.
            labels: One id a node or one an item.

        Raises:
            HierarchyError: For a node number that does not exist, a node listed twice, a cycle, several roots.

        >>> Hierarchy.from_children([[0, 1], [3, 2]], 3).path(0)
        array([4, 3])
        """
        _check_n_items(n_items)
        plain = read_children(
            children, n_items, labels=labels, add_root=add_root, on_multiple_parents=on_multiple_parents
        )
        return cls._from_plain(plain, singletons=singletons, add_root=add_root)

    @classmethod
    def from_linkage(cls, Z: ArrayLike, *, singletons: bool = True, labels: Sequence[Hashable] | None = None) -> Self:
        """The tree of a linkage matrix as SciPy, fastcluster and genieclust make them.

        Args:
            Z: ``[N - 1, 4]``: two node numbers, height, number of items; row ``k`` makes node ``N + k``. The heights
                are not used; an inversion or a negative one gives a warning.
            singletons: See the class; True by default here, a dendrogram's ``2N - 1`` nodes.
            labels: One id an item, or one a node.

        Raises:
            ReaderError: For NaN, a node number that does not exist yet, a node merged twice, a wrong count.

        >>> Hierarchy.from_linkage([[0, 1, 0.5, 2], [3, 2, 0.7, 3]]).children(4)
        array([3, 2])
        """
        return cls._from_plain(read_linkage(Z, labels=labels), singletons=singletons)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Sequence[Hashable]] | ArrayLike,
        n_items: int | None = None,
        items: Sequence[Hashable] | None = None,
        *,
        singletons: bool = False,
        add_root: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """The tree of ``(parent, child)`` pairs between ids of any hashable kind.

        Args:
            edges: The pairs; siblings keep their order.
            n_items, items, singletons, add_root, on_multiple_parents, items_at_inner: See the class.

        Raises:
            HierarchyError: For a self-loop, several parents, a cycle, several roots, items that do not match.

        >>> Hierarchy.from_edges([("r", "a"), ("r", "b")], items=["b", "a"]).item_labels
        ('b', 'a')
        """
        _check_n_items(n_items)
        plain = read_edges(edges, Join(n_items, items, items_at_inner, on_multiple_parents))  # type: ignore[arg-type]
        return cls._from_plain(plain, singletons=singletons, add_root=add_root, warn_one_child=True)

    @classmethod
    def from_networkx(
        cls,
        graph: "nx.DiGraph[Any]",
        n_items: int | None = None,
        items: Sequence[Hashable] | None = None,
        *,
        singletons: bool = False,
        add_root: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """The tree of a networkx DiGraph whose edges run from parent to child.

        Args:
            graph: The graph; its node keys are the ids.
            n_items, items, singletons, add_root, on_multiple_parents, items_at_inner: See the class.

        Raises:
            HierarchyError: As `from_edges`; ReaderError for an undirected graph.

        >>> import networkx as nx
        >>> Hierarchy.from_networkx(nx.DiGraph([("r", "a"), ("r", "b")])).labels
        ('a', 'b', 'r')
        """
        _check_n_items(n_items)
        plain = read_networkx(graph, Join(n_items, items, items_at_inner, on_multiple_parents))
        return cls._from_plain(plain, singletons=singletons, add_root=add_root, warn_one_child=True)

    @classmethod
    def from_json(
        cls,
        source: TextSource | Sequence[Any] | dict[str, Any],
        n_items: int | None = None,
        items: Sequence[Hashable] | None = None,
        *,
        form: JsonForm = "auto",
        singletons: bool | None = None,
        add_root: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """The tree of a JSON file, text or parsed value.

        A list of lists of integers is children lists if every id occurs at most once in it, else it is
        ``[parent, child]`` edges. An object says which: ``children`` or ``edges``, with ``n_items``, ``items``,
        ``labels``, ``singletons``.

        Args:
            source: A path, an open file, JSON text, or what is parsed already.
            form: ``"edges"`` or ``"children"`` overrules the guess.
            n_items, items, singletons, add_root, on_multiple_parents, items_at_inner: See the class; what is given
                here goes before what the file says.

        Raises:
            ReaderError: With the position for text that is not JSON; HierarchyError as the form's own reader.

        >>> Hierarchy.from_json('{"edges": [["r", "x"], ["r", "y"]], "items": ["y", "x"]}').item_labels
        ('y', 'x')
        """
        _check_n_items(n_items)
        plain, is_edges = read_json(
            source, Join(n_items, items, items_at_inner, on_multiple_parents), form=form, add_root=add_root
        )
        if singletons is None:
            singletons = bool(plain.singletons)
        return cls._from_plain(plain, singletons=singletons, add_root=add_root, warn_one_child=is_edges)

    # ---- back to other forms

    def to_children(self) -> list[list[int]]:
        """The children lists that `from_children` reads: items and inner nodes below each inner node, in order."""
        order = self._reading_order()
        below = order[np.argsort(self.parent[order], kind="stable")][1:]
        counts = np.bincount(self.parent[below], minlength=self.n_nodes)[self.n_items :]
        ends = np.cumsum(counts).tolist()
        flat = below.tolist()
        return [flat[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]

    def to_edges(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """The ``(parent, child)`` node numbers ``[n_nodes - 1, 2]``, parents before their children."""
        below = self._reading_order()[1:]
        return np.column_stack((self.parent[below], below))

    def to_networkx(self) -> "nx.DiGraph[int]":
        """A DiGraph on the node numbers, with ``label``, ``size`` and ``is_item`` at every node."""
        graph: nx.DiGraph[int] = nx.DiGraph(n_items=self.n_items, singletons=self.singletons)
        for node, size in enumerate(self.sizes.tolist()):
            label = node if self.labels is None else self.labels[node]
            graph.add_node(node, label=label, size=size, is_item=node < self.n_items)
        graph.add_edges_from(self.to_edges().tolist())
        return graph

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """JSON that `from_json` reads back to the same arrays, also written to ``path`` if one is given."""
        text = as_json(self.to_children(), self.n_items, self.singletons, self.labels)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_text(
        self,
        *,
        max_lines: int = 100,
        max_items: int = 10,
        names: Sequence[Hashable] | None = None,
        ascii_only: bool = False,
    ) -> str:
        """A drawing of the tree, one line a cluster.

        Args:
            max_lines: Clusters drawn at most; the last line says how many are left out.
            max_items: Items named at most on the line of a leaf cluster.
            names: Names of the items ``[N]`` or of all nodes, instead of the labels.
            ascii_only: Without box-drawing characters.

        >>> print(Hierarchy.from_children([[0, 1], [3, 2]], 3, labels=["ant", "bee", "cat"]).to_text())
        4 (3 items)
        ├─ 3 (2 items): ant, bee
        └─ cat
        """
        if max_lines < 1 or max_items < 0:
            raise ParameterError(f"max_lines={max_lines}, max_items={max_items}: draw at least one line")
        return draw_text(self, max_lines=max_lines, max_items=max_items, names=names, ascii_only=ascii_only)


def _holds_item(tree: FlatTree) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether each node has an item as a direct child."""
    holds = np.zeros(tree.n_nodes, dtype=bool)
    above = tree.parent[: tree.n_items]
    holds[above[above >= 0]] = True
    return holds


def _check_n_items(n_items: object) -> None:
    """Raises unless ``n_items`` is ``None`` or a positive integer."""
    if n_items is None:
        return
    if isinstance(n_items, bool) or not isinstance(n_items, (int, np.integer)) or n_items < 1:
        raise ParameterError(f"n_items={shown(n_items)}, expected a positive integer")
