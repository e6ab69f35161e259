"""BERTopic's table of hierarchical topics; topics are the items, or documents below their topics."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.arguments import as_ids
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, tree_of_links
from pomdp_hier.hierarchy.readers.tables import Table, is_missing, read_table
from pomdp_hier.hierarchy.readers.tree_arrays import TreeArrays
from pomdp_hier.hierarchy.wording import Note, counted, listed, shown

__all__ = ["read_bertopic"]

_COLUMNS = ("Parent_ID", "Child_Left_ID", "Child_Right_ID")


def read_bertopic(table: Any, topics: Sequence[int] | None = None) -> TreeArrays:
    """Return the tree arrays of ``hierarchical_topics(docs)``; with ``topics``, one a document, these are the items.

    Example:
        >>> rows = [{"Parent_ID": "2", "Child_Left_ID": "0", "Child_Right_ID": "1"}]
        >>> read_bertopic(rows, topics=[1, 0, 1]).parent
        array([ 4,  3,  4,  5,  5, -1])
    """
    found = read_table(table)
    places = [found.column(name, ()) for name in _COLUMNS if name in found.columns]
    if len(places) < 3:
        raise ReaderError(
            f"the table has the columns {listed(found.columns, limit=10)}, expected {listed(_COLUMNS)}: give what "
            "topic_model.hierarchical_topics(docs) returns"
        )
    links = []
    for row, cells in enumerate(found.rows, 1):
        above, left, right = (_topic(cells[place or 0], row) for place in places)
        links += [(above, left), (above, right)]
    notes = _held_against_topics(found, links)
    position = {topic: place for place, topic in enumerate(sorted({topic for link in links for topic in link}))}
    if topics is None:
        nodes = LinkedNodes(list(position), [position[a] for a, _ in links], [position[b] for _, b in links], "row")
        arrays = tree_of_links(nodes, Join())
    else:
        arrays = _with_documents(
            links, position, [_topic(topic, row) for row, topic in enumerate(as_ids("topics", topics))]
        )
    return replace(arrays, notes=notes + arrays.notes, one_child_notes=False)


def _held_against_topics(table: Table, links: list[tuple[int, int]]) -> list[Note]:
    """Hang topics that the column Topics names and no child reaches below their row's node; return what to say of it.

    BERTopic leaves such topics out where several merge at one distance.

    Raises:
        ReaderError: A child holds a topic that Topics does not name.
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
                f"row {row} contradicts itself: its children hold the topics {listed(sorted(reached - topics))}, which "
                "its Topics do not name; give the table as hierarchical_topics(docs) returned it"
            )
        links += [(above, topic) for topic in sorted(topics - reached)]
        lost += sorted(topics - reached)
    if not lost:
        return []
    return [
        f"{counted(len(lost), 'topic')} named in the column Topics, but in no row as a child: {listed(lost)}; hung "
        "below the node whose Topics name it first"
    ]


def _topic_list(cell: Any, row: int) -> set[int] | None:
    """Return the topics in a cell, ``None`` if it says nothing."""
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
        raise ReaderError(f"topics {listed(unknown)} of the documents are not in the table of hierarchical topics")
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
        raise ReaderError(f"row {row} has the topic {shown(value)}, expected a whole number") from None
