"""`Hierarchy`: a rooted tree over items, with its readers and writers."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Literal, Self

import networkx as nx
from numpy.typing import ArrayLike

from pomdp_hier._arguments import check_flag
from pomdp_hier._text import counted
from pomdp_hier.errors import PythonAdvice, warn_user
from pomdp_hier.hierarchy.export import ExportedTree
from pomdp_hier.hierarchy.readers.clusterings import HdbscanTree, read_bertopic, read_hdbscan, read_linkage
from pomdp_hier.hierarchy.readers.links import Join, read_edges, read_networkx, read_parents
from pomdp_hier.hierarchy.readers.nested import read_children, read_labels, read_nodes, read_sklearn
from pomdp_hier.hierarchy.readers.notations import JsonForm, read_json, read_newick
from pomdp_hier.hierarchy.readers.path_rows import PathFormat
from pomdp_hier.hierarchy.readers.paths import read_paths
from pomdp_hier.hierarchy.readers.tables import ItemsAtInner, OnMultipleParents, TextSource, TreeArrays, with_added_root


class Hierarchy(ExportedTree):
    """An immutable rooted tree over items ``0..N-1``; internal nodes are ``N..N+K-1``.

    Options that the readers share:

    - ``singletons``: whether each item of a pure item list is a leaf cluster of its own. An item beside internal nodes
      always is one.
    - ``add_root``: whether several roots are placed under a new one, or raise an error.
    - ``n_items`` or ``items``: the integers below ``n_items`` are the items, or ``items`` lists their ids in the order
      of the feature rows. Without either, the nodes without children are the items, in order of first appearance (by
      number if they are exactly ``0..N-1``).
    - ``on_multiple_parents``: ``"error"``, ``"first"`` (keep the first parent) or ``"duplicate"`` (a copy under each).
    - ``items_at_inner``: an item with nodes below becomes a ``"leaf"`` below itself, or raises an ``"error"``.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], n_items=4)
        >>> tree
        Hierarchy(n_items=4, n_nodes=7, height=1, root=6, singletons=False)
        >>> tree.items(4), tree.path(3)
        (array([0, 1]), array([6, 5]))
    """

    @classmethod
    def _from_arrays(cls, arrays: TreeArrays, singletons: bool | None, add_root: bool = False) -> Self:
        """Return the checked tree, and issue its warnings as one."""
        check_flag("add_root", add_root)
        if add_root:
            arrays = with_added_root(arrays)
        tree = object.__new__(cls)
        own_leaves = bool(arrays.singletons) if singletons is None else singletons
        notes = arrays.notes + tree._build(arrays.parent, arrays.n_items, arrays.order, own_leaves, arrays.labels)
        if arrays.one_child_notes:
            chained = tree._chained()
            top = None if tree.labels is None else tree.labels[tree.root]
            chained[tree.root] &= not (isinstance(top, tuple) and not top)  # an implicit root
            if n_chained := int(chained.sum()):
                notes.append(
                    (
                        f"{counted(n_chained, 'node')} with one child only: no choice is made there",
                        PythonAdvice(". Remove them with collapse_unary()"),
                    )
                )
        warn_user(notes)
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
        """Return the tree in which node ``n_items + k`` has the children ``children[k]``, in any order of ``k``.

        Args:
            children: Lists of node numbers, or an integer array ``[K, 2]``.
            n_items: The number of items; by default the number that makes the lists one tree.
            singletons, add_root, on_multiple_parents: See the class.
            labels: One id per node or one per item.

        Raises:
            HierarchyError: For a node number that does not exist, a node listed twice, a cycle, several roots.

        Example:
            >>> Hierarchy.from_children([[0, 1], [3, 2]], 3).path(0)
            array([4, 3])
        """
        arrays = read_children(
            children, Join(n_items, on_multiple_parents=on_multiple_parents), labels=labels, add_root=add_root
        )
        return cls._from_arrays(arrays, singletons, add_root)

    @classmethod
    def from_linkage(cls, Z: ArrayLike, *, singletons: bool = True, labels: Sequence[Hashable] | None = None) -> Self:
        """Return the tree of a linkage matrix of SciPy, fastcluster or genieclust.

        Args:
            Z: ``[N - 1, 4]``: two node numbers, height, number of items; row ``k`` makes node ``N + k``. The heights
                are not used; an inversion or a negative height gives a warning. The root node that SciPy's ``to_tree``
                returns is accepted too.
            singletons: See the class; True by default here, a dendrogram's ``2N - 1`` nodes.
            labels: One id per item, or one per node.

        Raises:
            ReaderError: For NaN, a node number that does not exist yet, a node merged twice, a wrong count.

        Example:
            >>> Hierarchy.from_linkage([[0, 1, 0.5, 2], [3, 2, 0.7, 3]]).children(4)
            array([3, 2])
        """
        return cls._from_arrays(read_linkage(Z, labels=labels), singletons)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Sequence[Hashable]] | ArrayLike | Any,
        n_items: int | None = None,
        items: Sequence[Hashable] | None = None,
        *,
        parent: str | None = None,
        child: str | None = None,
        delimiter: str | None = None,
        header: bool = True,
        singletons: bool = False,
        add_root: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """Return the tree of ``(parent, child)`` pairs between ids of any hashable kind.

        Args:
            edges: The pairs, or a table of them: a CSV file or text with a header, a data frame, or a dictionary of
                columns. A table may also have triples (subject, predicate, object) with SKOS's predicates ``broader``
                or ``narrower``. Siblings keep their order. In CSV all ids are text. Workbooks as in `from_parents`.
            parent, child: The columns of a table, if they have other names than these or SKOS's (``concept`` and
                ``broader`` or ``narrower``, by name or IRI).
            delimiter: As in `from_parents`.
            header: As in `from_parents`; of two columns without names the first is that of the parents.
            n_items, items, singletons, add_root, on_multiple_parents, items_at_inner: See the class.

        Raises:
            HierarchyError: For a self-loop, several parents, a cycle, several roots, items that do not match.

        Example:
            >>> Hierarchy.from_edges([("r", "a"), ("r", "b")], items=["b", "a"]).item_labels
            ('b', 'a')
        """
        join = Join(n_items, items, items_at_inner, on_multiple_parents)
        arrays = read_edges(edges, join, parent=parent, child=child, delimiter=delimiter, header=header)
        return cls._from_arrays(arrays, singletons, add_root)

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
        """Return the tree of a networkx DiGraph whose edges run from parent to child.

        Args:
            graph: The graph; its node keys are the ids.
            n_items, items, singletons, add_root, on_multiple_parents, items_at_inner: See the class.

        Raises:
            HierarchyError: As `from_edges`; ReaderError for an undirected graph.

        Example:
            >>> import networkx as nx
            >>> Hierarchy.from_networkx(nx.DiGraph([("r", "a"), ("r", "b")])).labels
            ('a', 'b', 'r')
        """
        arrays = read_networkx(graph, Join(n_items, items, items_at_inner, on_multiple_parents))
        return cls._from_arrays(arrays, singletons, add_root)

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
        """Return the tree of a JSON file, text or parsed value.

        A list of lists of integers is children lists if every id occurs at most once in it, else it is ``[parent,
        child]`` edges. An object says which: ``children`` or ``edges``, with ``n_items``, ``items``, ``labels``,
        ``singletons``. Objects with a name and children, and names as keys of objects and lists, are read as by
        `from_nodes`. A list of flat objects with a parent's id is read as by `from_parents`.

        Args:
            source: A path, an open file, JSON text, or a parsed value.
            form: ``"edges"`` or ``"children"``, if the form is not recognised.
            n_items, items, singletons, add_root, on_multiple_parents, items_at_inner: See the class; these arguments
                have priority over the file.

        Raises:
            ReaderError: With the position for text that is not JSON; HierarchyError as the form's own reader.

        Example:
            >>> Hierarchy.from_json('{"edges": [["r", "x"], ["r", "y"]], "items": ["y", "x"]}').item_labels
            ('y', 'x')
        """
        join = Join(n_items, items, items_at_inner, on_multiple_parents)
        arrays = read_json(source, join, form=form, add_root=add_root)
        return cls._from_arrays(arrays, singletons, add_root)

    @classmethod
    def from_sklearn(
        cls,
        model: Any,
        *,
        singletons: bool | None = None,
        labels: Sequence[Hashable] | None = None,
        add_root: bool = False,
    ) -> Self:
        """Return the tree of scikit-learn's AgglomerativeClustering, FeatureAgglomeration, BisectingKMeans or HDBSCAN.

        Args:
            model: What has ``children_`` and ``n_leaves_``, a BisectingKMeans, or a HDBSCAN, read by `from_hdbscan`. A
                partial tree (``compute_full_tree=False``) has several roots, so that it needs
                ``add_root``. The rows of a bisection are those of its ``labels_``.
            singletons: See the class; by default True for a dendrogram, False for bisections, which end in clusters.
            labels, add_root: As in `from_linkage` and the class.

        Raises:
            HierarchyError: For several roots; ReaderError for a model that is not fitted, or whose labels_ are not its
                tree's.

        Example:
            >>> from types import SimpleNamespace
            >>> Hierarchy.from_sklearn(SimpleNamespace(children_=[[0, 1], [2, 3]], n_leaves_=3)).root
            4
        """
        arrays = read_sklearn(model, labels=labels, add_root=add_root)
        return cls._from_arrays(arrays, singletons, add_root)

    @classmethod
    def from_labels(cls, labels: Any, *, items: Sequence[Hashable] | None = None) -> Self:
        """Return the tree of a flat clustering: one level, with a cluster per label.

        Args:
            labels: One label per row, such as ``labels_`` of a fitted model; -1 for noise is a cluster like the others.
            items: One id per row; with ids, the clusters have the given labels.

        Raises:
            ReaderError: A label is missing (NaN or None), or the list is empty.

        Example:
            >>> Hierarchy.from_labels([1, 0, 1]).to_children()
            [[0, 2], [1], [3, 4]]
        """
        return cls._from_arrays(read_labels(labels, items), False)

    @classmethod
    def from_hdbscan(
        cls,
        source: Any,
        *,
        tree: HdbscanTree | None = None,
        singletons: bool | None = None,
        labels: Sequence[Hashable] | None = None,
    ) -> Self:
        """Return the condensed or single-linkage tree of HDBSCAN; item ``i`` is row ``i`` of the data.

        Args:
            source: A fitted model of hdbscan or scikit-learn, or one of its trees (as they are, as arrays or as data
                frames).
            tree: Which tree of a model; by default the condensed one, or the single-linkage tree of scikit-learn's,
                which keeps no other.
            singletons: By default True for the single-linkage tree, False for the condensed one.
            labels: One id per item.

        Raises:
            ReaderError: The source is not such a model or tree.

        The condensed tree: Campello, Moulavi, Sander (2013).

        Example:
            >>> rows = {"parent": [3, 3, 3], "child": [0, 1, 2], "lambda_val": [1.0, 1.0, 1.0]}
            >>> import numpy as np
            >>> condensed = np.rec.fromarrays(list(rows.values()), names=list(rows))
            >>> Hierarchy.from_hdbscan(condensed).items(3)
            array([0, 1, 2])
        """
        arrays = read_hdbscan(source, tree)
        arrays.labels = arrays.labels if labels is None else labels
        return cls._from_arrays(arrays, singletons)

    @classmethod
    def from_parents(
        cls,
        source: Any,
        n_items: int | None = None,
        items: Sequence[Hashable] | None = None,
        *,
        id: str | None = None,
        parent: str | None = None,
        delimiter: str | None = None,
        header: bool = True,
        singletons: bool = False,
        add_root: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """Return the tree of a parent table: one row per node, with its id and its parent's id.

        Args:
            source: A CSV file or text with a header, a data frame, or a dictionary of columns. Or a dictionary from ids
                to parents, or a list of ``(id, parent)`` rows. In CSV all ids are text. A workbook (extra ``excel``) is
                read as CSV: its first sheet, or that behind a ``#``, as in ``shop.xlsx#Tree``.
            id, parent: The columns, if they have other names than these or SKOS's (``concept``, ``broader``). Among
                several candidates for the ids, the one in which each parent has a row is taken. The root has no parent:
                a blank, or 0 or -1 if no row has that id, or its own id. If every row has a parent, the parent without
                a row is the root.
            delimiter: The delimiter of CSV; by default the most frequent of comma, semicolon and tab in the header.
            header: Whether the first line of CSV names the columns. If not, their names are "1", "2" and so on, and of
                two columns the first has the ids. Lines above it that start with ``#`` are comments.
            n_items, items, singletons, add_root, on_multiple_parents, items_at_inner: See the class.

        Raises:
            HierarchyError: For a parent without a row, a cycle, several roots or parents, items that do not match.

        Example:
            >>> Hierarchy.from_parents("id,parent\\nr,\\na,r\\nb,r\\n").labels
            ('a', 'b', 'r')
        """
        join = Join(n_items, items, items_at_inner, on_multiple_parents)
        arrays = read_parents(source, join, id=id, parent=parent, delimiter=delimiter, header=header)
        return cls._from_arrays(arrays, singletons, add_root)

    @classmethod
    def from_paths(
        cls,
        source: Any,
        items: Sequence[Hashable] | None = None,
        *,
        sep: str | None = None,
        escape: str | None = "\\",
        strip: bool = True,
        blank_levels: Literal["error", "skip"] = "error",
        comment: str | None = "#",
        form: Literal["auto", "lines", "table", "outline"] = "auto",
        ends_in: Literal["item", "category"] | None = None,
        item: str | None = None,
        path: str | None = None,
        levels: Sequence[str] | None = None,
        delimiter: str | None = None,
        header: bool = True,
        singletons: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """Return the tree of category paths; a category is its whole path, and the root is labelled ``()``.

        Args:
            source: A list of paths (text, or lists of segments), or a dictionary from items to paths. Or a file or text
                of lines, also ``1 - path`` and ``id : path``. Or CSV or a data frame with an item column, and a path
                column or one column per level. Workbooks as in `from_parents`.
            items: The ids of the items in the order of the feature rows; by default the order of the source.
            sep: The separator of segments; by default the one of ``>``, ``|``, ``/``, ``;``, ``\\``, ``::``, tabs and
                arrows that most paths have. A warning names others that fit. With ``sep``, every line is a path.
            escape: The mark that makes the separator after it (or itself) part of a name.
            strip: Drop the spaces around names.
            blank_levels: A blank level column before a filled one is an error, or skipped.
            comment: The mark at the start of lines that are skipped; in CSV only above the header.
            form: Whether text is lines of paths, a table, or an outline. An outline has one name per line, its level
                shown by indentation, bullets, heading marks or drawn branches. By default a table by the ending and the
                header, else lines. Lines of another structure, and columns that hold links or ids, raise an error.
            ends_in: Whether a path ends in its ``"item"``, the default for bare paths, or in the ``"category"`` of the
                row's item. The latter is the default if items have a column. With ``"category"``, bare paths are the
                items ``0..N-1``.
            item, path, levels: The columns of a table, if they have other names.
            delimiter, header: As in `from_parents`.
            singletons, on_multiple_parents, items_at_inner: See the class.

        Raises:
            ReaderError: Names the row of an empty path, a blank level, a broken table.
            HierarchyError: For an item in two categories, items that do not match.

        Example:
            >>> Hierarchy.from_paths({"a": "Home > Kitchen", "b": "Home > Bath"}).item_labels
            ('a', 'b')
        """
        how = PathFormat(
            sep, escape, strip, blank_levels, comment, form, ends_in, item, path, levels, delimiter, header
        )
        arrays = read_paths(source, Join(None, items, items_at_inner, on_multiple_parents), how)
        return cls._from_arrays(arrays, singletons)

    @classmethod
    def from_newick(
        cls,
        source: TextSource,
        items: Sequence[Hashable] | None = None,
        *,
        singletons: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """Return the tree of Newick text; its leaves are the items, in the order of the text.

        Leaves with the names ``0..N-1`` are in the order of these numbers.

        Args:
            source: A path, an open file, or the text. Lengths, support values and comments are checked and dropped.
            items: The names of the leaves in the order of the feature rows.
            singletons, on_multiple_parents, items_at_inner: See the class.

        Raises:
            ReaderError: With the position, for text that is cut off or breaks the format, and for a nameless leaf.
            HierarchyError: For a duplicate name, or items that do not match.

        The format: Olsen (1990), Interpretation of the "Newick's 8:45" tree format standard.

        Example:
            >>> Hierarchy.from_newick("((A:1,'B b':2)0.9,C);").item_labels
            ('A', 'B b', 'C')
        """
        arrays = read_newick(source, Join(None, items, items_at_inner, on_multiple_parents))
        return cls._from_arrays(arrays, singletons)

    @classmethod
    def from_nodes(
        cls,
        root: object,
        items: Sequence[Hashable] | None = None,
        *,
        children: str | Callable[[Any], Any] | None = None,
        name: str | Callable[[Any], Any] | None = None,
        singletons: bool = False,
        on_multiple_parents: OnMultipleParents = "error",
        items_at_inner: ItemsAtInner = "leaf",
    ) -> Self:
        """Return the tree below a node of anytree, bigtree, treelib, ete, scikit-bio, DendroPy, or nested dictionaries.

        Dictionaries have names and children, or names as keys: ``{"A": {"x": ["item 1", "item 2"]}}``.

        Nodes are distinguished by identity: two leaves with one name are two items, which gives a warning.

        Args:
            root: The root node, or the tree object of treelib or DendroPy.
            items: The names of the items in the order of the feature rows.
            children, name: The attribute, key or function for a node's children and name, if they have other names.
            singletons, on_multiple_parents, items_at_inner: See the class.

        Raises:
            HierarchyError: For a cycle, a node below two parents, items that do not match.

        Example:
            >>> Hierarchy.from_nodes({"name": "r", "children": [{"name": "a"}, {"name": "b"}]}).labels
            ('a', 'b', 'r')
        """
        join = Join(None, items, items_at_inner, on_multiple_parents)
        arrays = read_nodes(root, join, children=children, name=name)
        return cls._from_arrays(arrays, singletons)

    @classmethod
    def from_bertopic(
        cls, hierarchical_topics: Any, topics: Sequence[int] | None = None, *, singletons: bool = False
    ) -> Self:
        """Return the tree of the result of BERTopic's ``hierarchical_topics(docs)``.

        Args:
            hierarchical_topics: The table with ``Parent_ID``, ``Child_Left_ID``, ``Child_Right_ID``.
            topics: The topic of each document: then the documents are the items, in order; outliers (topic -1) are a
                cluster below the root. Without it the topics are the items.
            singletons: See the class.

        Raises:
            ReaderError: For other columns, or a topic that is not in the table.

        The table: Grootendorst (2022), BERTopic.

        Example:
            >>> rows = [{"Parent_ID": "2", "Child_Left_ID": "0", "Child_Right_ID": "1"}]
            >>> Hierarchy.from_bertopic(rows).n_items
            2
        """
        return cls._from_arrays(read_bertopic(hierarchical_topics, topics), singletons)
