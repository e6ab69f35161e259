"""Export of a tree as lists, edges, a graph, JSON, Newick, or a drawing."""

import os
from collections.abc import Hashable, Sequence

import networkx as nx
import numpy as np

from pomdp_hier._arguments import check_flag, check_integer
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError, Setting
from pomdp_hier.hierarchy.arrays import as_ids
from pomdp_hier.hierarchy.flat import FlatTree
from pomdp_hier.hierarchy.node_names import draw_text
from pomdp_hier.hierarchy.readers.notations import as_json, as_newick


class ExportedTree(FlatTree):
    """A `FlatTree` with its writers; the reader of each format reads an equal tree back."""

    def to_children(self) -> list[list[int]]:
        """Return children lists for `from_children`: the nodes directly below each internal node, in order."""
        order = self._reading_order()
        below = order[np.argsort(self.parent[order], kind="stable")][1:]
        counts = np.bincount(self.parent[below], minlength=self.n_nodes)[self.n_items :]
        ends = np.cumsum(counts).tolist()
        flat = below.tolist()
        return [flat[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]

    def to_edges(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Return the ``(parent, child)`` node numbers ``[n_nodes - 1, 2]``, parents before their children."""
        below = self._reading_order()[1:]
        return np.column_stack((self.parent[below], below))

    def to_networkx(self) -> "nx.DiGraph[int]":
        """Return a DiGraph on the node numbers, with ``label``, ``size`` and ``is_item`` at every node."""
        graph: nx.DiGraph[int] = nx.DiGraph(n_items=self.n_items, singletons=self.singletons)
        for node, size in enumerate(self.sizes.tolist()):
            label = node if self.labels is None else self.labels[node]
            graph.add_node(node, label=label, size=size, is_item=node < self.n_items)
        graph.add_edges_from(self.to_edges().tolist())
        return graph

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return JSON that `from_json` reads back to the same arrays; also write it to ``path`` if that is given."""
        return _written(as_json(self.to_children(), self.n_items, self.singletons, self.labels), path)

    def to_newick(self, path: str | os.PathLike[str] | None = None, *, names: Sequence[Hashable] | None = None) -> str:
        """Return Newick text that `from_newick` reads back to an equal tree; also write it to ``path`` if given.

        Args:
            path: A file to write.
            names: Names of the items ``[N]`` or of all nodes; by default the labels that are text or numbers.

        Example:
            >>> from pomdp_hier.hierarchy import Hierarchy
            >>> Hierarchy.from_children([[0, 1], [3, 2]], 3).to_newick()
            '((0,1),2);'
        """
        labels = self.labels if names is None else as_ids("names", names)
        if labels is None:
            labels = tuple(range(self.n_items))
        written = [str(label) if isinstance(label, (str, int, float, np.number)) else None for label in labels]
        written += [None] * (self.n_nodes - len(written))
        items = ["/".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in labels[: self.n_items]]
        if len(items) < self.n_items or len(set(items)) < self.n_items or "" in items:
            raise ParameterError(
                "names: got names that are missing or shared; expected one distinct name per item. Give them as ",
                Setting("names"),
                ".",
            )
        text = as_newick([*items, *written[self.n_items :]], self.to_children(), self.n_items, self.root)
        return _written(text, path)

    def to_text(
        self,
        *,
        max_lines: int = 100,
        max_items: int = 10,
        names: Sequence[Hashable] | None = None,
        ascii_only: bool = False,
    ) -> str:
        """Return a drawing of the tree, one line per cluster.

        Args:
            max_lines: The largest number of clusters; the last line counts the others.
            max_items: The largest number of items named on the line of a leaf cluster.
            names: Names of the items ``[N]`` or of all nodes, in place of the labels.
            ascii_only: Without box-drawing characters.

        Example:
            >>> from pomdp_hier.hierarchy import Hierarchy
            >>> print(Hierarchy.from_children([[0, 1], [3, 2]], 3, labels=["ant", "bee", "cat"]).to_text())
            4 (3 items)
            ├─ 3 (2 items): ant, bee
            └─ cat
        """
        check_flag("ascii_only", ascii_only)
        check_integer("max_lines", max_lines, 1)
        check_integer("max_items", max_items, 0)
        return draw_text(self, max_lines=max_lines, max_items=max_items, names=names, ascii_only=ascii_only)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return the text, after writing it to the path if one is given."""
    if path is None:
        return text
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise ParameterError(f"path: got {brief(path)}; expected a path as text or a Path.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"names: got {text[error.start]!a}; expected characters of UTF-8. Give other names, or write JSON."
        ) from None
    write_file(path, text)
    return text
