"""A diagnosis as the arrays that the page's icicle draws: clusters in breadth-first order, items in slice order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._messages import counted
from pomdp_hier.appraisal.diagnosis import Diagnosis
from pomdp_hier.features.members import item_sums
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.wording import NodeNames
from pomdp_hier.visible import visible

__all__ = ["icicle_payload", "node_names", "tree_arrays"]

# Beyond these a page is slow to open and larger than it is useful; the page says what it leaves out.
MOST_NODES = 100_000
MOST_ITEMS = 200_000

# What a colour measures, and what it means.
_WORTH = "worth of a search", "the mean over the items below: −1 lost, 0 no better than no tree, 1 found at once"
_ARRIVE = "searchers that arrive", "of the searchers for the items below, the share that comes here"
_RIGHT = (
    "right child is most alike",
    "of the items below, the share whose own child is the most alike one; grey: no choice is made",
)
_COST = "cost of being misled here", "what wrong turns at this node take off the score"


def node_names(
    tree: Hierarchy, names: Sequence[Any] | Mapping[Any, Any] | None
) -> tuple[Sequence[str], Sequence[str] | None]:
    """Return what the nodes are called in an icicle, and their ids where they are not called by these."""
    return NodeNames(tree, names, last_part=True, in_words=True), None if names is None else NodeNames(tree)


def icicle_payload(
    diagnosis: Diagnosis,
    names: Sequence[str],
    ids: Sequence[str] | None = None,
    gain: Floats | None = None,
    gain_note: str = "",
) -> tuple[dict[str, Any], Ints]:
    """Return the JSON-ready arrays of the icicle, and the position in them of each node ``[n_nodes]`` (-1: left out).

    Of a tree with more than 100,000 clusters only the largest are kept; the items' row is left out above 200,000 items.
    What is left out is said under ``left_out``.

    Args:
        diagnosis: What `pomdp_hier.appraisal.diagnose` returned.
        names: ``[n_nodes]``, what the nodes are called.
        ids: ``[n_nodes]``, their ids, if they are to be found by these too.
        gain: ``[N]``, what each item's search gains over another tree; it colours first.
        gain_note: What its colours mean.
    """
    tree, result = diagnosis.hierarchy, diagnosis.result
    payload, nodes, position = tree_arrays(tree, names, ids)
    show_items = bool(payload["items"]["label"])
    value = item_sums(tree, result.values, nodes) / tree.sizes[nodes]
    with np.errstate(invalid="ignore", divide="ignore"):
        right = diagnosis.right[nodes] / diagnosis.choices[nodes]
    cost = diagnosis.misled[nodes] / tree.n_items
    payload["tree"] |= {
        "value": _short(value),
        "arrive": _short(diagnosis.arriving[nodes] / tree.sizes[nodes]),
        "right": _short(right),
        "cost": _short(cost, digits=6),
    }
    payload["items"]["value"] = _short(result.values[tree.item_order]) if show_items else []
    payload["measures"] = [
        _measure("value", *_WORTH, low=-1, high=1, items="value" if show_items else None),
        _measure("arrive", *_ARRIVE, percent=True),
        _measure("right", *_RIGHT, percent=True),
        _measure("cost", *_COST, low=max(float(cost.max()), 1e-12), high=0),
    ]
    if gain is not None:
        payload["tree"]["gain"] = _short(item_sums(tree, gain, nodes) / tree.sizes[nodes])
        payload["items"]["gain"] = _short(gain[tree.item_order]) if show_items else []
        of_items = "gain" if show_items else None
        payload["measures"].insert(0, _measure("gain", "gain", gain_note, low=-1, high=1, items=of_items))
    return payload, position


def _measure(
    key: str, name: str, note: str, *, low: float = 0, high: float = 1, percent: bool = False, items: str | None = None
) -> dict[str, Any]:
    """Return what a colour of the icicle stands for, and the values at its two ends."""
    return {"key": key, "name": name, "low": low, "high": high, "percent": percent, "items": items, "note": note}


def tree_arrays(tree: Hierarchy, names: Sequence[str], ids: Sequence[str] | None) -> tuple[dict[str, Any], Ints, Ints]:
    """Return a tree's shape and names, JSON-ready and without measures; the nodes kept; and each node's position."""
    nodes = _kept(tree)
    nodes = nodes[np.lexsort((tree.starts[nodes], tree.levels[nodes]))]
    position = np.full(tree.n_nodes, -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))
    show_items = tree.n_items <= MOST_ITEMS
    order = tree.item_order if show_items else tree.item_order[:0]
    payload: dict[str, Any] = {
        "tree": {
            "parent": [-1, *position[tree.parent[nodes[1:]]].tolist()],
            "start": tree.starts[nodes].tolist(),
            "size": tree.sizes[nodes].tolist(),
            "level": tree.levels[nodes].tolist(),
            **_called(nodes.tolist(), names, ids),
        },
        "items": _called(order.tolist(), names, ids),
        "left_out": _left_out(int(tree.is_cluster.sum()) - len(nodes), show_items),
    }
    return payload, nodes, position


def _called(nodes: Sequence[int], names: Sequence[str], ids: Sequence[str] | None) -> dict[str, list[str]]:
    """Return names, and ids where these are others; an id that is the name is empty."""
    labels = [visible(names[node]) for node in nodes]
    if ids is None:
        return {"label": labels, "id": []}
    known = (visible(ids[node]) for node in nodes)
    return {"label": labels, "id": ["" if name == label else name for name, label in zip(known, labels, strict=True)]}


def _left_out(n_clusters: int, show_items: bool) -> list[str]:
    """Return what is not drawn, in sentences."""
    sentences = [f"Not drawn: {counted(n_clusters, 'cluster')}, the smallest."] if n_clusters else []
    return sentences if show_items else [*sentences, "Single items are not drawn."]


def _kept(tree: Hierarchy) -> Ints:
    """Return the clusters, or the largest of them: an ancestor is never smaller, so that no parent is missing."""
    clusters = np.flatnonzero(tree.is_cluster)
    if len(clusters) <= MOST_NODES:
        return clusters
    # Of equally large clusters the higher ones first, so that a chain is cut below.
    order = np.lexsort((tree.levels[clusters], -tree.sizes[clusters]))
    return clusters[order[:MOST_NODES]]


def _short(values: Floats, digits: int = 4) -> list[float | None]:
    """Return rounded for the page, NaN as null, and no negative zero."""
    return [None if value != value else value for value in (np.round(values, digits) + 0.0).tolist()]
