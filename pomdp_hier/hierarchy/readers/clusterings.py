"""Readers of clusterings: SciPy and scikit-learn linkages, HDBSCAN, BERTopic."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier._arguments import Ints, as_floats, check_choice
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import Note, ReaderError
from pomdp_hier.hierarchy.arrays import as_ids, dense, is_row
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, read_edges, tree_of_links
from pomdp_hier.hierarchy.readers.tables import Table, TreeArrays, is_missing, read_table


def read_linkage(Z: ArrayLike, *, labels: Sequence[Hashable] | None = None) -> TreeArrays:
    """Return the tree arrays of a linkage matrix ``[N - 1, 2 to 4]``: two nodes, height, number of items."""
    if hasattr(Z, "get_left"):
        Z = _merges_of(Z)
    Z = dense("the linkage", Z)
    try:
        table = np.asarray(_number_lists(Z) if isinstance(Z, list | tuple) else Z)
        rows = as_floats(table)
    except (TypeError, ValueError, OverflowError):
        raise ReaderError(f"linkage: got {brief(Z)}; expected a matrix of numbers [N - 1, 4].") from None
    if rows.ndim != 2 or not 2 <= rows.shape[1] <= 4:
        raise ReaderError(f"linkage: got the shape {rows.shape}; expected [N - 1, 4], or 2 or 3 columns.")
    if np.isnan(rows).any():
        raise ReaderError(f"linkage: got NaN in row {np.flatnonzero(np.isnan(rows).any(axis=1))[0]}; expected numbers.")
    n_items = rows.shape[0] + 1
    merged = _merged_nodes(rows[:, :2], n_items)
    notes = list[Note]()
    parent = np.full(n_items + rows.shape[0], -1, dtype=np.int64)
    parent[merged.ravel()] = np.repeat(np.arange(n_items, parent.size), 2)
    if rows.shape[1] > 2:
        given = getattr(Z, "dtype", rows.dtype)
        precision = np.finfo(given).eps if given.kind == "f" else np.finfo(np.float64).eps
        notes = _height_notes(rows[:, 2], merged, n_items, 8 * float(precision))
    if rows.shape[1] == 4:
        _check_counts(rows[:, 3], merged, n_items)
    return TreeArrays(parent, n_items, np.append(merged.ravel(), parent.size - 1), labels, notes, singletons=True)


def _merges_of(root: Any) -> list[list[float]]:
    """Return the linkage of a root from SciPy's ``to_tree``: its internal nodes by number, each a merge."""
    merges, stack = {}, [root]
    while stack:
        node = stack.pop()
        left, right = node.get_left(), node.get_right()
        if left is not None and right is not None:
            merges[node.get_id()] = [left.get_id(), right.get_id(), node.dist, node.get_count()]
            stack += [left, right]
    numbers = sorted(merges)
    if numbers != list(range(len(numbers) + 1, 2 * len(numbers) + 1)):
        raise ReaderError(
            f"linkage: got a ClusterNode with internal nodes numbered {listed(numbers)}; expected those of to_tree(Z), "
            f"{len(numbers) + 1}..{2 * len(numbers)}. Give the root of the whole tree."
        )
    return [merges[number] for number in numbers]


def _number_lists(rows: Sequence[Any]) -> list[Any]:
    """Return rows with each cell as a float; numpy would expand a cell such as a long range."""
    return [[_as_float(cell) for cell in row] if is_row(row) else _as_float(row) for row in rows]


def _as_float(cell: Any) -> float:
    if isinstance(cell, np.ndarray | np.complexfloating | str | bytes):  # a masked cell, too
        raise TypeError
    return float(cell)


def _merged_nodes(pairs: np.ndarray[tuple[int, ...], np.dtype[np.float64]], n_items: int) -> Ints:
    """Return the two columns as integers: each an earlier node, each used once."""
    bad = np.flatnonzero((pairs != np.floor(pairs)).any(axis=1) | np.isinf(pairs).any(axis=1))
    if bad.size:
        raise ReaderError(f"linkage: got the nodes {pairs[bad[0]].tolist()} in row {bad[0]}; expected integers.")
    limit = n_items + np.arange(pairs.shape[0])[:, np.newaxis]
    bad = np.flatnonzero(((pairs < 0) | (pairs >= limit)).any(axis=1))
    if bad.size:
        row = int(bad[0])
        raise ReaderError(
            f"linkage: got the nodes {[int(node) for node in pairs[row]]} in row {row}; expected two of "
            f"0..{n_items + row - 1}, the {n_items} items and the {row} merges above."
        )
    merged = pairs.astype(np.int64)
    flat = merged.ravel()
    first = np.full(2 * n_items, -1, dtype=np.int64)
    first[flat[::-1]] = np.arange(flat.size)[::-1]  # the earliest use of a node wins
    again = np.flatnonzero(first[flat] != np.arange(flat.size))
    if again.size:
        node = int(flat[again[0]])
        raise ReaderError(
            f"linkage: got node {node} in rows {first[node] // 2} and {again[0] // 2}; expected one merge per node. "
            "Correct one of the rows."
        )
    return merged


def _height_notes(
    heights: np.ndarray[tuple[int, ...], np.dtype[np.float64]], merged: Ints, n_items: int, precision: float
) -> list[Note]:
    """Return warnings of negative heights and of inversions beyond rounding.

    Rounded heights differ by at most the precision of their type times the largest height.
    """
    finite = np.abs(heights[np.isfinite(heights)])
    rounding = precision * float(finite.max(initial=0.0))
    notes = list[Note]()
    below = np.where(merged >= n_items, heights[np.maximum(merged - n_items, 0)], -np.inf).max(axis=1)
    inverted = np.flatnonzero(heights < below - rounding)
    if inverted.size:
        notes.append(
            f"the linkage is not monotone: {counted(inverted.size, 'inversion')}, the first in row {inverted[0]}; "
            "only the topology is used"
        )
    negative = np.flatnonzero(heights < -rounding)
    if negative.size:
        notes.append(
            f"the linkage has {counted(negative.size, 'negative height')}, the first in row {negative[0]}; "
            "only the topology is used"
        )
    return notes


def _check_counts(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]], merged: Ints, n_items: int) -> None:
    """Raise where column 4 is not the number of items merged so far."""
    with np.errstate(over="ignore", invalid="ignore"):  # of wrong counts, and the first row that is wrong is told
        below = np.where(merged >= n_items, counts[np.maximum(merged - n_items, 0)], 1).sum(axis=1)
    wrong = np.flatnonzero(counts != below)
    if wrong.size:
        row = int(wrong[0])
        raise ReaderError(
            f"linkage: got {counts[row]:g} items in row {row}; expected {below[row]:g}, those of its two nodes. "
            "Correct column 4 or leave it out."
        )


HdbscanTree = Literal["condensed", "single_linkage"]
_LINKAGES = (("left_node", "right_node", "value", "cluster_size"), ("left_child", "right_child", "distance", "size"))


def read_hdbscan(source: Any, tree: HdbscanTree | None = None) -> TreeArrays:
    """Return the tree arrays of a fitted HDBSCAN model, or of one of its trees.

    Only in the single-linkage tree is every item a leaf cluster of its own by default.
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
            raise ReaderError(
                f"source: got {kind} without {tree}_tree_; expected a fitted model. Fit it, or pass another tree=."
            )
    if hasattr(source, "to_numpy") and not hasattr(source, "columns"):
        source = source.to_numpy()
    fields = _fields(source)
    if "parent" in fields and "child" in fields:
        parent, child = (_integers(fields[name], name) for name in ("parent", "child"))
        if not parent.size:
            raise ReaderError("condensed tree: got no rows; expected one per node below the root.")
        n_items = int(parent.min())  # the root is the first number after the rows
        if n_items < 1:
            raise ReaderError(f"condensed tree: got the parent {n_items}; expected clusters numbered after the rows.")
        if "child_size" in fields:
            _check_sizes(parent, child, _integers(fields["child_size"], "child_size"), n_items)
        found = read_edges(np.column_stack((parent, child)), Join(n_items))
        return replace(found, singletons=False, one_child_notes=False)
    for names in _LINKAGES:
        if all(name in fields for name in names):
            return read_linkage(np.column_stack([np.asarray(fields[name], dtype=np.float64) for name in names]))
    if isinstance(source, (np.ndarray, list)):
        return read_linkage(source)
    columns = f"the columns {listed(fields)}" if fields else f"no columns, {brief(source)}"
    raise ReaderError(
        f"source: got a {kind} with {columns}; expected a fitted HDBSCAN, its condensed_tree_ or its "
        "single_linkage_tree_. Give one of them."
    )


def _check_sizes(
    parent: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    child: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    stated: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    n_items: int,
) -> None:
    """Raise an error if the column of sizes contradicts the rows."""
    rows_below: dict[int, int] = {}
    # Items first, then clusters from the bottom up, which are numbered from the root down.
    for row in np.lexsort((-child, child >= n_items)).tolist():
        node = int(child[row])
        size = 1 if node < n_items else rows_below.get(node, 0)
        if stated[row] != size:
            raise ReaderError(
                f"condensed tree: got the size {stated[row]} of node {node} in row {row}; expected {size}, the items "
                "below it. Give the whole table of the model."
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
        found = numbers[numbers != np.floor(numbers)][0] if numbers.dtype.kind == "f" else numbers.dtype
        raise ReaderError(f"column {brief(name)} of the condensed tree: got {found}; expected integer node numbers.")
    return numbers.astype(np.int64)


_COLUMNS = ("Parent_ID", "Child_Left_ID", "Child_Right_ID")


def read_bertopic(table: Any, topics: Sequence[int] | None = None) -> TreeArrays:
    """Return the tree arrays of ``hierarchical_topics(docs)``; with ``topics``, the items are documents."""
    found = read_table(table)
    places = [found.column(name, ()) for name in _COLUMNS if name in found.columns]
    if len(places) < 3:
        raise ReaderError(
            f"table: got the columns {listed(found.columns, limit=10)}; expected {listed(_COLUMNS)}. Give the table of "
            "topic_model.hierarchical_topics(docs)."
        )
    links = []
    for row, cells in enumerate(found.rows, 1):
        above, left, right = (_topic(cells[place or 0], row) for place in places)
        links += [(above, left), (above, right)]
    notes = _add_named_topics(found, links)
    position = {topic: place for place, topic in enumerate(sorted({topic for link in links for topic in link}))}
    if topics is None:
        nodes = LinkedNodes(list(position), [position[a] for a, _ in links], [position[b] for _, b in links], "row")
        arrays = tree_of_links(nodes, Join())
    else:
        arrays = _with_documents(
            links, position, [_topic(topic, row) for row, topic in enumerate(as_ids("topics", topics))]
        )
    return replace(arrays, notes=notes + arrays.notes, one_child_notes=False)


def _add_named_topics(table: Table, links: list[tuple[int, int]]) -> list[Note]:
    """Add links to topics that only the column Topics names, below the node of their row; return the warning.

    BERTopic omits such topics if several merge at one distance.
    """
    at = table.column(None, ("topics",))
    if at is None:
        return []
    merged = [(above, {links[2 * row][1], links[2 * row + 1][1]}) for row, (above, _) in enumerate(links[::2])]
    named = [_topic_list(cells[at], row) for row, cells in enumerate(table.rows, 1)]
    below = {above: topics for (above, _), topics in zip(merged, named, strict=True)}
    lost: list[int] = []
    for row, ((above, children), topics) in enumerate(zip(merged, named, strict=True), 1):
        reached = set().union(*(below.get(low, {low}) or () for low in children))
        if not topics or any(low in below and not below[low] for low in children):
            continue  # the column says nothing here
        if reached - topics:
            raise ReaderError(
                f"row {row}: got children with the topics {listed(sorted(reached - topics))}; expected topics of its "
                "column Topics alone. Give the table of topic_model.hierarchical_topics(docs) unchanged."
            )
        links += [(above, topic) for topic in sorted(topics - reached)]
        lost += sorted(topics - reached)
    if not lost:
        return []
    return [
        f"{counted(len(lost), 'topic')} named in the column Topics, but in no row as a child: {listed(lost)}; placed "
        "below the first node whose Topics name it"
    ]


def _topic_list(cell: Any, row: int) -> set[int] | None:
    if isinstance(cell, str):
        cell = re.findall(r"-?\d{1,18}(?!\d)", cell)
    if not isinstance(cell, list | tuple | set | np.ndarray) or not len(cell):
        return None
    return {_topic(topic, row) for topic in cell}


def _with_documents(links: list[tuple[int, int]], position: dict[int, int], topics: list[int]) -> TreeArrays:
    """Return the tree with the documents below their topics; outliers, topic -1, are a cluster below the root."""
    n_documents, notes = len(topics), list[Note]()
    below = {low for _, low in links}
    roots = [topic for topic in position if topic not in below]
    if -1 in topics and -1 not in position:
        position[-1] = len(position)
        links = links + [(root, -1) for root in roots[:1]]
        notes.append(
            f"{counted(topics.count(-1), 'outlier document')} (topic -1) in a cluster of their own at the root"
        )
    unknown = list(dict.fromkeys(topic for topic in topics if topic not in position))
    if unknown:
        raise ReaderError(f"topics: got {listed(unknown)}; expected topics of the table. Give both of one model.")
    ids = [*range(n_documents), *(("topic", topic) for topic in position)]
    above = [n_documents + position[topic] for topic in [*topics, *(high for high, _ in links)]]
    low = [*range(n_documents), *(n_documents + position[low] for _, low in links)]
    arrays = tree_of_links(LinkedNodes(list(ids), above, low, "row"), Join(n_documents))
    return replace(arrays, notes=arrays.notes + notes)


def _topic(value: Any, row: int) -> int:
    try:
        if is_missing(value) or int(value) != float(value):
            raise ValueError
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ReaderError(f"row {row}: got the topic {brief(value)}; expected an integer.") from None
