"""HDBSCAN's condensed and single-linkage trees; the rows of the data keep their numbers."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from pomdp_hier._messages import brief
from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.arguments import check_choice
from pomdp_hier.hierarchy.readers.edges import read_edges
from pomdp_hier.hierarchy.readers.linkage import read_linkage
from pomdp_hier.hierarchy.readers.links import Join
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import listed

__all__ = ["HdbscanTree", "read_hdbscan"]

HdbscanTree = Literal["condensed", "single_linkage"]
_LINKAGES = (("left_node", "right_node", "value", "cluster_size"), ("left_child", "right_child", "distance", "size"))


def read_hdbscan(source: Any, tree: HdbscanTree | None = None) -> TreeArrays:
    """Return the tree arrays of a fitted model or of one of its trees; of scikit-learn's, the only one that it has.

    Only the single-linkage tree has every item as a leaf cluster of its own by default.
    """
    check_choice("tree", tree, (None, "condensed", "single_linkage"))
    kind = type(source).__name__
    if tree is None:
        has_one = hasattr(source, "_single_linkage_tree_") and not hasattr(source, "condensed_tree_")
        tree = "single_linkage" if has_one and not hasattr(source, "_condensed_tree_") else "condensed"
    for name in (f"{tree}_tree_", f"_{tree}_tree_"):
        if hasattr(source, name):
            source = getattr(source, name)
            break
    else:
        if hasattr(source, "fit") or hasattr(source, "labels_"):
            raise ReaderError(f"{kind} has no {tree}_tree_: fit it first, or ask for another tree=")
    if hasattr(source, "to_numpy") and not hasattr(source, "columns"):
        source = source.to_numpy()
    fields = _fields(source)
    if "parent" in fields and "child" in fields:
        parent, child = (_integers(fields[name], name) for name in ("parent", "child"))
        if not parent.size:
            raise ReaderError("the condensed tree is empty")
        n_items = int(parent.min())  # the root is the first number after the rows
        if n_items < 1:
            raise ReaderError(f"the condensed tree has the parent {n_items}: clusters are numbered after the rows")
        if "child_size" in fields:
            _check_sizes(parent, child, _integers(fields["child_size"], "child_size"), n_items)
        found = read_edges(np.column_stack((parent, child)), Join(n_items))
        return replace(found, singletons=False, one_child_notes=False)
    for names in _LINKAGES:
        if all(name in fields for name in names):
            return read_linkage(np.column_stack([np.asarray(fields[name], dtype=np.float64) for name in names]))
    if isinstance(source, (np.ndarray, list)):
        return read_linkage(source)
    raise ReaderError(
        f"{kind} has {listed(list(fields) or ['no columns'])}, expected a fitted HDBSCAN, its condensed_tree_ "
        "(parent, child) or its single_linkage_tree_"
    )


def _check_sizes(
    parent: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    child: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    said: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    n_items: int,
) -> None:
    """Raise where the column of sizes says otherwise than the rows: it would be another tree's."""
    rows_below: dict[int, int] = {}
    # Items first, then clusters from the bottom up, which are numbered from the root down.
    for row in np.lexsort((-child, child >= n_items)).tolist():
        node = int(child[row])
        size = 1 if node < n_items else rows_below.get(node, 0)
        if said[row] != size:
            raise ReaderError(
                f"row {row} of the condensed tree says that {node} holds {said[row]}, but {size} are below it; "
                "give the whole table, as the model has it"
            )
        rows_below[int(parent[row])] = rows_below.get(int(parent[row]), 0) + size


def _fields(source: Any) -> dict[str, Any]:
    """Return the columns of a structured array or a data frame by name."""
    if isinstance(source, np.ndarray) and source.dtype.names:
        return {name: source[name] for name in source.dtype.names}
    if hasattr(source, "columns"):
        return {str(name): source[name] for name in source.columns}
    return {}


def _integers(column: Any, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    numbers = np.asarray(column)
    if numbers.dtype.kind not in "iu" and not (numbers.dtype.kind == "f" and (numbers == np.floor(numbers)).all()):
        raise ReaderError(
            f"the column {brief(name)} of the condensed tree holds {numbers.dtype}, expected node numbers"
        )
    return numbers.astype(np.int64)
