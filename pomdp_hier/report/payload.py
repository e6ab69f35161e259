"""A diagnosis as the arrays that the page's icicle draws: clusters in breadth-first order, items in slice order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.appraisal.diagnosis import Diagnosis
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy

__all__ = ["Names", "icicle_payload"]

# Beyond these a page is slow to open and larger than it is useful; the page says what it leaves out.
MOST_NODES = 100_000
MOST_ITEMS = 200_000


@dataclass(frozen=True)
class Names:
    """What the nodes of a hierarchy are called on a page: given names, else the hierarchy's labels, else numbers.

    Args:
        hierarchy: The tree.
        given: ``[N]`` names of the items or ``[n_nodes]`` of all nodes; ``None`` for the hierarchy's own labels.

    Raises:
        ParameterError: There are neither N nor n_nodes names.

    Example:
        >>> names = Names(Hierarchy.from_children([[0, 1]], 2), ["boots", "socks"])
        >>> names.of(0), names.of(2)
        ('boots', 'node 2')
    """

    hierarchy: Hierarchy
    given: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if self.given is not None and len(self.given) not in (self.hierarchy.n_items, self.hierarchy.n_nodes):
            raise ParameterError(
                f"names: {len(self.given)} for a hierarchy of {self.hierarchy.n_items} items and "
                f"{self.hierarchy.n_nodes} nodes; give one an item or one a node"
            )

    def of(self, node: int) -> str:
        """Return the node's name."""
        if self.given is not None and node < len(self.given):
            return str(self.given[node])
        if self.hierarchy.labels is not None:
            return str(self.hierarchy.labels[node])
        return f"item {node}" if node < self.hierarchy.n_items else f"node {node}"


def icicle_payload(diagnosis: Diagnosis, names: Names) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Return the JSON-ready arrays of the icicle, and the position in them of each node ``[n_nodes]`` (-1: left out).

    Of a tree with more than 100,000 clusters only the largest are kept; the items' row is left out above 200,000 items.
    """
    tree, result = diagnosis.hierarchy, diagnosis.result
    nodes = _kept(tree)
    nodes = nodes[np.lexsort((tree.starts[nodes], tree.levels[nodes]))]
    position = np.full(tree.n_nodes, -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))
    parents = tree.parent[nodes]
    sums = np.concatenate([[0.0], np.cumsum(result.values[tree.item_order])])
    value = (sums[tree.starts[nodes] + tree.sizes[nodes]] - sums[tree.starts[nodes]]) / tree.sizes[nodes]
    with np.errstate(invalid="ignore", divide="ignore"):
        right = diagnosis.right[nodes] / diagnosis.choices[nodes]
    cost = diagnosis.misled[nodes] / tree.n_items
    show_items = tree.n_items <= MOST_ITEMS
    order = tree.item_order if show_items else tree.item_order[:0]
    payload = {
        "tree": {
            "parent": [-1, *position[parents[1:]].tolist()],
            "start": tree.starts[nodes].tolist(),
            "size": tree.sizes[nodes].tolist(),
            "level": tree.levels[nodes].tolist(),
            "label": [names.of(node) for node in nodes.tolist()],
            "value": _short(value),
            "arrive": _short(diagnosis.arriving[nodes] / tree.sizes[nodes]),
            "right": _short(right),
            "cost": _short(cost, digits=6),
        },
        "items": {"label": [names.of(item) for item in order.tolist()], "value": _short(result.values[order])},
        "measures": [
            {
                "key": "value",
                "name": "worth of a search",
                "low": -1,
                "high": 1,
                "percent": False,
                "items": "value" if show_items else None,
                "note": "the mean over the items below: -1 lost, 0 no better than no tree, 1 found at once",
            },
            {
                "key": "arrive",
                "name": "searchers that arrive",
                "low": 0,
                "high": 1,
                "percent": True,
                "items": None,
                "note": "of the searchers for the items below, the share that comes here",
            },
            {
                "key": "right",
                "name": "right child is most alike",
                "low": 0,
                "high": 1,
                "percent": True,
                "items": None,
                "note": "of the items below, the share whose own child is the most alike one; grey: no choice is made",
            },
            {
                "key": "cost",
                "name": "cost of being misled here",
                "low": max(float(cost.max()), 1e-12),
                "high": 0,
                "percent": False,
                "items": None,
                "note": "what wrong turns at this node take off the score",
            },
        ],
        "left_out": int(tree.is_cluster.sum() - len(nodes)),
    }
    return payload, position


def _kept(tree: Hierarchy) -> NDArray[np.int64]:
    """Return the clusters, or the largest of them: an ancestor is never smaller, so that no parent is missing."""
    clusters = np.flatnonzero(tree.is_cluster)
    if len(clusters) <= MOST_NODES:
        return clusters
    # Of equally large clusters the higher ones first, so that a chain is cut below.
    order = np.lexsort((tree.levels[clusters], -tree.sizes[clusters]))
    return clusters[order[:MOST_NODES]]


def _short(values: NDArray[np.float64], digits: int = 4) -> list[float | None]:
    """Return rounded for the page, NaN as null."""
    return [None if value != value else value for value in np.round(values, digits).tolist()]
