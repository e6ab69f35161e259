"""Confusions by where they lead: one record a cluster that others are taken for, in place of one a pair."""

from dataclasses import dataclass

import numpy as np

from pomdp_hier.appraisal.diagnosis import Diagnosis

__all__ = ["Destination", "destinations"]


@dataclass(frozen=True)
class Destination:
    """A cluster, or an item on its own, that is taken for its siblings.

    Attributes:
        node: The cluster.
        parent: Where it hangs.
        items: How many items of its siblings are more alike to it than to their own cluster.
        searchers: The expected number of searchers that go there by mistake.
        cost: What that takes off the score.
        sources: The siblings that have such items, each with how many, those that cost most first; searchers who stray
            by chance come from others as well.
        examples: Items that are lost there, worth least first.
    """

    node: int
    parent: int
    items: int
    searchers: float
    cost: float
    sources: tuple[tuple[int, int], ...]
    examples: tuple[int, ...]


def destinations(diagnosis: Diagnosis, n: int, *, examples: int = 4) -> list[Destination]:
    """Return the clusters that their siblings' searchers end in, by what that costs and then by the items misled.

    Args:
        diagnosis: What `pomdp_hier.appraisal.diagnose` returned.
        n: How many at most.
        examples: How many lost items each names at most.
    """
    tree = diagnosis.hierarchy
    nodes, at = np.unique(diagnosis.pair_rival, return_inverse=True)
    cost, searchers, items = (
        np.bincount(at, weights=part, minlength=len(nodes))
        for part in (diagnosis.pair_cost, diagnosis.pair_searchers, diagnosis.pair_items)
    )
    found = []
    for place in np.lexsort((-items, -cost))[:n].tolist():
        pairs = np.flatnonzero(at == place)
        pairs = pairs[np.lexsort((-diagnosis.pair_items[pairs], -diagnosis.pair_cost[pairs]))]
        lost = np.flatnonzero(diagnosis.lost_to == nodes[place])
        lost = lost[np.argsort(diagnosis.result.values[lost], kind="stable")][:examples]
        found.append(
            Destination(
                node=int(nodes[place]),
                parent=int(tree.parent[nodes[place]]),
                items=int(items[place]),
                searchers=float(searchers[place]),
                cost=float(cost[place]) / tree.n_items,
                sources=tuple(
                    (int(diagnosis.pair_child[pair]), int(diagnosis.pair_items[pair]))
                    for pair in pairs
                    if diagnosis.pair_items[pair]
                ),
                examples=tuple(lost.tolist()),
            )
        )
    return found
