"""Lists of children: ``children[k]`` are the children of node ``n_items + k``; so too a scikit-learn model's."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier._arrays import Ints
from pomdp_hier.errors import HierarchyError, ReaderError, Setting
from pomdp_hier.hierarchy.arguments import dense, is_row
from pomdp_hier.hierarchy.readers.hdbscan import read_hdbscan
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, tree_of_links
from pomdp_hier.hierarchy.readers.tables import is_missing
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import counted, listed, shown

__all__ = ["read_children", "read_sklearn"]


def read_children(
    children: Sequence[Sequence[int]] | ArrayLike,
    join: Join | None = None,
    *,
    labels: Sequence[Hashable] | None = None,
    add_root: bool = False,
) -> TreeArrays:
    """Return the tree arrays of children lists; without ``join.n_items`` it is taken to have one root.

    Example:
        >>> read_children([[0, 1], [2, 3]]).parent
        array([ 3,  3,  4,  4, -1])
    """
    children = dense("children", children)
    join = join or Join()
    n_items = join.n_items
    if isinstance(children, np.ndarray):
        if children.dtype.kind == "f" and (children == np.floor(children)).all():
            within = (np.abs(children) < np.float64(2**62)).all()
            children = children.astype(np.int64) if within else children
        children = children.tolist()
    if isinstance(children, (str, bytes, dict)) or not hasattr(children, "__iter__"):
        raise HierarchyError(f"children is {shown(children)}, expected a list of lists of node numbers")
    flat, lengths = _integer_ids(children, "children")  # type: ignore[arg-type]
    if n_items is None:
        if not flat.size:
            raise HierarchyError(
                "the children lists name no node: give ", Setting("n_items", 1), " for a tree of one item"
            )
        n_items = max(np.unique(flat).size + 1 - lengths.size, 0)
    if n_items > flat.size + lengths.size + 1 and not add_root:
        raise HierarchyError(
            f"{n_items} items, but the lists name {np.unique(flat).size} nodes: "
            f"items {listed(islice(_missing(flat, n_items), 5), count=n_items - flat.size)} are in none of them"
        )
    n_nodes = n_items + lengths.size
    above = np.repeat(np.arange(n_items, n_nodes), lengths)
    outside = np.flatnonzero((flat < 0) | (flat >= n_nodes))
    if outside.size:
        raise HierarchyError(
            f"children[{above[outside[0]] - n_items}] lists {flat[outside[0]]}, but the nodes are 0..{n_nodes - 1} "
            f"({counted(n_items, 'item')} and {counted(lengths.size, 'list')})"
        )
    own = np.flatnonzero(flat == above)
    if own.size:
        raise HierarchyError(f"children[{flat[own[0]] - n_items}]: node {flat[own[0]]} is its own child (a self-loop)")
    times = np.bincount(flat, minlength=n_nodes)
    if (times > 1).any():
        twice = np.flatnonzero(times > 1)
        if join.on_multiple_parents != "error":
            ids = list(range(n_nodes)) if labels is None else list(chain(labels, range(len(labels), n_nodes)))
            nodes = LinkedNodes(list(range(n_nodes)), above.tolist(), flat.tolist(), "child")
            links = tree_of_links(nodes, replace(join, n_items=n_items))
            arrays = replace(links, one_child_notes=False)
            if labels is not None and arrays.labels is not None:
                arrays.labels = [ids[node] for node in arrays.labels]  # type: ignore[call-overload]
            elif labels is not None:
                arrays.labels = ids
            return arrays
        where = above[flat == twice[0]] - n_items
        raise HierarchyError(
            f"{counted(twice.size, 'node')} with several parents: {listed(twice[:5].tolist(), count=twice.size)}; node "
            f"{twice[0]} stands in lists {listed(where.tolist())}; a node has one parent: remove it from the others, "
            "or pass ",
            Setting("on_multiple_parents", "first", "duplicate"),
        )
    parent = np.full(n_nodes, -1, dtype=np.int64)
    parent[flat] = above
    order = np.concatenate((flat, np.flatnonzero(times == 0)))
    return TreeArrays(parent, int(n_items), order, labels)


def read_sklearn(model: Any, *, labels: Sequence[Hashable] | None = None, add_root: bool = False) -> TreeArrays:
    """Return the tree arrays of a fitted model; a partial one (``compute_full_tree=False``) has several roots."""
    if hasattr(model, "_bisecting_tree"):
        return _read_bisections(model, labels)
    if hasattr(model, "_single_linkage_tree_"):
        return replace(read_hdbscan(model), labels=labels)
    children, n_leaves = getattr(model, "children_", None), getattr(model, "n_leaves_", None)
    if children is None or n_leaves is None:
        raise ReaderError(
            f"{type(model).__name__} has no children_ and n_leaves_: give a fitted AgglomerativeClustering, "
            "FeatureAgglomeration, BisectingKMeans or HDBSCAN; the labels of another clustering are read by from_labels"
        )
    _check_cut(model, np.asarray(children), int(n_leaves))
    found = read_children(np.asarray(children), Join(int(n_leaves)), labels=labels, add_root=add_root)
    return replace(found, singletons=True)


def _check_cut(model: Any, children: Any, n_leaves: int) -> None:
    """Raise where the model's labels are not its tree's, cut into as many clusters: it would be of two fits.

    Raises:
        ReaderError: There is another number of labels, or the first merges join two of them.
    """
    labels, n_clusters = getattr(model, "labels_", None), getattr(model, "n_clusters_", None)
    if labels is None or n_clusters is None or children.ndim != 2 or children.dtype.kind not in "iu":
        return
    found: list[int] = np.ravel(labels).tolist()
    if len(found) != n_leaves or set(found) != set(range(n_clusters)):
        raise ReaderError(
            f"labels_ holds {listed(sorted(set(found)))} for {counted(len(found), 'row')}, expected "
            f"0..{n_clusters - 1} for {n_leaves} as n_clusters_ and n_leaves_ say; fit the model again"
        )
    for row, (one, other) in enumerate(children[: n_leaves - n_clusters, :2].tolist()):
        if min(one, other) < 0 or max(one, other) >= len(found):
            return  # no such node, which the reader says
        if found[one] != found[other]:
            raise ReaderError(
                f"labels_ contradicts children_: row {row} of children_ merges rows of the labels {found[one]} and "
                f"{found[other]}, which are one of {n_clusters} clusters then; fit the model again"
            )
        found.append(found[one])


def _read_bisections(model: Any, labels: Sequence[Hashable] | None) -> TreeArrays:
    """Return the tree arrays of a fitted BisectingKMeans: its bisections, and the rows of each leaf's label."""
    assigned = np.asarray(model.labels_)
    order = np.argsort(assigned, kind="stable")
    ends = np.searchsorted(assigned[order], np.arange(int(assigned.max(initial=-1)) + 2))
    n_items = len(assigned)
    nodes, stack, numbers = list[Any](), [model._bisecting_tree], dict[int, int]()
    while stack:
        node = stack.pop()
        numbers[id(node)] = n_items + len(nodes)
        nodes.append(node)
        stack += [below for below in (node.right, node.left) if below is not None]
    leaves = [node for node in nodes if node.left is None and node.right is None]
    strange = np.setdiff1d(assigned, [leaf.label for leaf in leaves])
    if strange.size:
        raise ReaderError(
            f"labels_ holds {listed(strange.tolist())}, expected 0..{len(leaves) - 1} as the bisections have it; "
            "fit the model again"
        )
    lists: list[list[int]] = []
    for node in nodes:
        below = [numbers[id(child)] for child in (node.left, node.right) if child is not None]
        rows = below or order[ends[node.label] : ends[node.label + 1]].tolist()
        sizes_known = getattr(model, "bisecting_strategy", None) == "largest_cluster" and len(leaves) > 1
        if not rows or (sizes_known and not below and len(rows) != node.score):
            expected = f"{node.score:g}" if sizes_known else "some"
            raise ReaderError(
                f"labels_ gives the label {node.label} to {counted(len(rows), 'row')}, expected {expected} as the "
                "bisections have it; fit the model again"
            )
        lists.append(rows)
    return replace(read_children(lists, Join(n_items), labels=labels), singletons=False)


def read_labels(assigned: Any, labels: Sequence[Hashable] | None = None) -> TreeArrays:
    """Return the tree arrays of one level: a cluster for each label, under the root, in the order of first use.

    Example:
        >>> read_labels(["b", "a", "b"]).parent
        array([ 3,  4,  3,  5,  5, -1])
    """
    values = assigned.tolist() if hasattr(assigned, "tolist") else assigned
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ReaderError(f"the labels are {shown(assigned)}, expected one a row")
    position: dict[Hashable, int] = {}
    places = []
    for row, label in enumerate(values):
        if is_missing(label):
            raise ReaderError(f"label {row} is {shown(label)}; give each row one, such as -1 for noise")
        try:
            places.append(position.setdefault(label, len(position)))
        except TypeError:
            raise ReaderError(f"label {row} is {shown(label)}, expected text or a number") from None
    if not places:
        raise ReaderError("there are no labels; give one a row")
    n = len(places)
    parent = np.concatenate([n + np.array(places), np.full(len(position), n + len(position)), [-1]])
    names = None if labels is None else [*labels, *position, None]
    return TreeArrays(parent, n, labels=names, singletons=False)


def _integer_ids(lists: Iterable[Sequence[object]], what: str) -> tuple[Ints, Ints]:
    """All ids of the lists in one array, and the length of each list.

    Raises:
        HierarchyError: For an id that is no integer; ``what`` and the list's number say where.
    """
    rows = list(lists)
    for number, row in enumerate(rows):
        if not is_row(row):
            raise HierarchyError(f"{what}[{number}] is {shown(row)}, expected a list of node numbers")
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    flat = list(chain.from_iterable(rows))
    for place, value in enumerate(flat):
        if type(value) is not int and (isinstance(value, bool) or not isinstance(value, np.integer)):
            number = int(np.searchsorted(np.cumsum(lengths), place, side="right"))
            raise HierarchyError(f"{what}[{number}] holds {shown(value)}, expected an integer node number")
        if not -(2**62) < value < 2**62:
            raise HierarchyError(f"node number {shown(value)} in {what} is out of range")
    return np.array(flat, dtype=np.int64), lengths


def _missing(flat: Ints, n_items: int) -> Iterator[int]:
    """Return the items that stand in no list, in order, without building an array as long as a wrong ``n_items``."""
    present = set(flat.tolist())
    return (item for item in range(n_items) if item not in present)
