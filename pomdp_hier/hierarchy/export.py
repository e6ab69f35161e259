"""A tree written out: as lists, edges, a graph, JSON, Newick, or a drawing."""

import os
from collections.abc import Hashable, Sequence

import networkx as nx
import numpy as np

from pomdp_hier._arguments import check_flag, check_integer
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError, Setting
from pomdp_hier.hierarchy.arguments import as_ids
from pomdp_hier.hierarchy.flat import FlatTree
from pomdp_hier.hierarchy.node_names import draw_text
from pomdp_hier.hierarchy.readers.json_text import as_json
from pomdp_hier.hierarchy.readers.newick import as_newick


class ExportedTree(FlatTree):
    """A `FlatTree` with its writers; what they write, the reader of that format reads back to an equal tree."""

    def to_children(self) -> list[list[int]]:
        """Return children lists that `from_children` reads: items and inner nodes below each inner node, in order."""
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
        """JSON that `from_json` reads back to the same arrays, also written to ``path`` if one is given."""
        return _written(as_json(self.to_children(), self.n_items, self.singletons, self.labels), path)

    def to_newick(self, path: str | os.PathLike[str] | None = None, *, names: Sequence[Hashable] | None = None) -> str:
        """Newick text that `from_newick` reads back to an equal tree, also written to ``path`` if one is given.

        Args:
            path: A file to write.
            names: Names of the items ``[N]`` or of all nodes; by default the labels that are text or numbers.

        Raises:
            ParameterError: If two items would have one name, or one none.

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
            raise ParameterError("Newick needs one name an item, each another: give them as ", Setting("names"))
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
        """Return a drawing of the tree, one line a cluster.

        Args:
            max_lines: Clusters drawn at most; the last line says how many are left out.
            max_items: Items named at most on the line of a leaf cluster.
            names: Names of the items ``[N]`` or of all nodes, instead of the labels.
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
    """Return the text, also written to a file if one is given.

    Raises:
        ParameterError: A name cannot be written as UTF-8, or the path is none.
    """
    if path is None:
        return text
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise ParameterError(f"path={brief(path)}, expected a path as text or a Path")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"a name holds {text[error.start]!a}, which no text in UTF-8 can; give other names, or write JSON"
        ) from None
    write_file(path, text)
    return text
