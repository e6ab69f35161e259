"""The best score by collapsing clusters of a tree to lists of their items, by exact dynamic programming.

With ``P_c(x)`` the probability that the search for x reaches c on the path of x, a search that ends at c has the value
``P_c(x) (r(c) + 1) - 1``. ``P_c`` does not depend on the nodes below c, so that the best sum for the items of c is the
larger of two sums, each independent of the rest of the tree:

    best(c) = max( sum of P_c(x) (r(c) + 1)                                            c as one list of its items
                   sum of P_c(x) (r(c) + 1) over x that stop at c + sum of best(c')    c with its children c' )

Where each item of a list is its own leaf cluster, the first sum is over the values with all of them in view. This needs
a policy whose decision at c depends on c and its children alone, which excludes the hindsight policy.
"""

from dataclasses import dataclass

import numpy as np

from pomdp_hier.improvement.incremental import ScoredDraft

_MOST_PAIRS = 1 << 27  # of items in one list of singleton clusters


@dataclass(frozen=True)
class Collapse:
    """The best collapse of a tree.

    Attributes:
        score: The score that it reaches.
        nodes: The nodes that become a list of their items; they are disjoint.
    """

    score: float
    nodes: tuple[int, ...]


def best_collapse(scored: ScoredDraft) -> Collapse | None:
    """Return the best collapse; None for the hindsight policy or beyond the limit of size.

    Example:
        >>> from pomdp_hier import Hierarchy
        >>> from pomdp_hier.hqs.inputs import prepare
        >>> from pomdp_hier.hqs.settings import Settings
        >>> tree = Hierarchy.from_children([[0, 2], [1, 3], [4, 5], [6, 7], [8, 9]], 6)  # a useless split
        >>> X = [[1, 0], [1, 0], [1, 0], [1, 0], [0, 1], [0, 1]]
        >>> best_collapse(ScoredDraft(prepare(X, tree, Settings(policy="descend")))).nodes
        (9,)
    """
    draft, n_items = scored.draft, scored.draft.given.n_items
    if scored.looks_ahead or (draft.given.singletons and scored.n_pairs > _MOST_PAIRS):
        return None
    arriving = scored.arrivals()
    best: dict[int, float] = {}
    flat: dict[int, bool] = {}
    for node in reversed(arriving):  # in which ancestors come first
        seen, arrive = scored.seen[node], arriving[node]
        with_children = float((arrive * np.where(seen.goes, 0.0, seen.stop_value)).sum())
        for slot, child in enumerate(seen.children):
            if child >= n_items:
                with_children += best[child]
            else:
                at = np.flatnonzero((seen.own == slot) & seen.goes)
                with_children += float((arrive[at] * seen.share[at] * seen.below[at]).sum())
        as_list = float((arrive * scored.as_list(node)).sum())
        flat[node] = bool(as_list > with_children and draft.collapsed(node))
        best[node] = max(as_list, with_children)
    nodes, waiting = [], [draft.given.root]
    while waiting:
        here = waiting.pop()
        if flat[here]:
            nodes.append(here)
        else:
            waiting.extend(child for child in scored.seen[here].children if child >= n_items)
    return Collapse(best[draft.given.root] / n_items - 1.0, tuple(sorted(nodes)))
