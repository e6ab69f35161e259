"""Groupings of headings: the given one, cuts of linkages, and moves of headings by similarity or by the score.

A heading is a cluster whose items stay together. A dendrogram of the headings' centroids is divided from its root, the
highest merge first or the largest group first. A group of one heading is that heading.
"""

import heapq
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Floats, Ints, check_integer, is_integer
from pomdp_hier._text import brief, counted
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.features.membership import membership
from pomdp_hier.filing.centroids import UnitRows
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.node_views import Objective
from pomdp_hier.improvement.result import LEAST_GAIN

GIVEN = "as it is"
"""The name of the grouping of the tree as it is."""

_LINKAGES = ("average", "complete", "ward")
_MOST_HEADINGS = 8_000  # their distances take half a gigabyte
_SHARES = (0.05, 0.2, 1.0)  # of the headings that are nearer to another group
_ROUNDS = 10  # of k-means
_SIZES = 6  # numbers of groups that are tried
_REFINED = "refined"  # the step of k-means
_TARGETS, _PASSES, _TRIALS = 3, 3, 2_000  # of the moves of headings by the score


@dataclass(frozen=True)
class Place:
    """The node and the headings between which the levels are rebuilt, and the largest number of children."""

    node: int
    headings: Ints
    max_children: int


def place_of(tree: Hierarchy, node: Hashable, level: int | None, max_children: int | None) -> Place:
    """Return the node, its headings and the bound of breadth.

    Raises:
        ParameterError: There are too few or too many headings.
    """
    top = tree.root if node is None else int(node) if is_integer(node) and tree.labels is None else tree.node(node)
    inside = np.zeros(tree.n_nodes, dtype=bool)
    inside[np.flatnonzero(tree.is_cluster)] = True
    inside &= (tree.starts >= tree.starts[top]) & (tree.starts + tree.sizes <= tree.starts[top] + tree.sizes[top])
    inside &= tree.levels > tree.levels[top]
    deepest = int(tree.levels[inside].max(initial=tree.levels[top]))
    if level is not None:
        check_integer("level", level, int(tree.levels[top]) + 1, max(deepest, int(tree.levels[top]) + 1))
    at = deepest if level is None else level
    headings = np.flatnonzero(inside & ((tree.levels == at) | (tree.is_leaf & (tree.levels < at))))
    if not 3 <= len(headings) <= _MOST_HEADINGS:
        given = ("node", "the root" if node is None else brief(node)) if level is None else ("level", str(level))
        raise _wrong_headings(*given, len(headings), deeper=at < deepest, within=top != tree.root)
    between = np.flatnonzero(inside & (tree.levels < at) & ~tree.is_leaf)
    widest = int(np.diff(tree.child_offsets)[[top, *between]].max())
    least = math.ceil(math.sqrt(len(headings)))
    if max_children is None:
        max_children = max(widest, least)
    check_integer("max_children", max_children, least, unit=f"for {len(headings)} headings in two levels")
    return Place(top, headings[np.argsort(tree.starts[headings])], max_children)


def _wrong_headings(name: str, got: str, n: int, *, deeper: bool, within: bool) -> ParameterError:
    """Return the error for too few or too many headings, with what gives others.

    Args:
        name: The argument that chose them.
        got: Its value.
        n: The number of headings.
        deeper: Whether the node has deeper levels of clusters.
        within: Whether there are nodes above the node.
    """
    if n > _MOST_HEADINGS:
        advice = "Pass a node below this one, or a smaller level."
    elif deeper:
        advice = "Pass a greater level."
    else:
        advice = "Pass a node above this one." if within else "Such a tree has nothing to rebuild."
    return ParameterError(
        Argument(name),
        f": got {got}, with {counted(n, 'heading')}; expected 3 to {_MOST_HEADINGS:,} of them. {advice}",
    )


@dataclass(frozen=True, eq=False)
class Plan:
    """A grouping of headings.

    Attributes:
        name: How it was made.
        parents: The parent of each heading: a node of the tree, or ``-1 - k`` for the new group k.
        above: The parent of each new group, in the same way.
        steps: The steps by which it is made again from other items of the headings.
    """

    name: str
    parents: Ints
    above: Ints
    steps: tuple[str, ...] = ()

    def made(self, tree: Hierarchy, place: Place, names: Sequence[str] = ()) -> tuple[Hierarchy, Ints]:
        """Return the tree with this grouping, and the new number of each old node and new group (-1: none)."""
        first = tree.n_nodes
        parent = np.concatenate([tree.parent, self.above])
        parent[place.headings] = self.parents
        fresh = np.arange(len(parent)) >= first
        fresh[place.headings] = True
        parent = np.where(fresh & (parent < 0), first - 1 - parent, parent)
        up = None if tree.labels is None else tree.labels[place.node]
        labels = [(*up, name) if isinstance(up, tuple) else name for name in names]
        new = tree.with_parents(parent, new_labels=labels)
        kept = np.ones(len(parent), dtype=bool)
        kept[tree.n_items :] = False
        for item in np.unique(parent[: tree.n_items]).tolist():
            while item >= 0 and not kept[item]:
                kept[item] = True
                item = int(parent[item])
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        return new, numbers

    def fits(self, tree: Hierarchy, place: Place) -> bool:
        """Return whether no node of the rebuilt levels has more children than allowed."""
        counts = Counter([*self.parents.tolist(), *self.above.tolist()])
        return self.name == GIVEN or max(counts.values()) <= place.max_children

    def kept(self, tree: Hierarchy, place: Place) -> float:
        """Return the share of pairs of headings with a common parent that still have one."""
        old = tree.parent[place.headings]
        pairs = sum(math.comb(count, 2) for count in Counter(old.tolist()).values())
        alone = (self.parents == place.node) & (old != place.node)  # no longer in any group
        now = np.where(alone, tree.n_nodes + np.arange(len(old)), self.parents)
        still = Counter(zip(old.tolist(), now.tolist(), strict=True))
        return sum(math.comb(count, 2) for count in still.values()) / pairs if pairs else 1.0


def given_plan(tree: Hierarchy, place: Place) -> Plan:
    """Return the plan of the tree as it is."""
    return Plan(GIVEN, tree.parent[place.headings], np.empty(0, dtype=np.int64), (GIVEN,))


def vectors_of(prepared: Prepared, headings: Ints) -> Any:
    """Return the sum of the unit rows of each heading's items ``[n_headings, D]``."""
    table = cast(ItemFeatures, prepared.features).table
    units = UnitRows(table)(np.arange(table.shape[0]))
    return membership(prepared.hierarchy, headings) @ units


def _distances(vectors: Any) -> Floats:
    """Return one minus the cosine of each pair of vectors, condensed as for scipy."""
    gram = vectors @ vectors.T
    gram = gram.toarray() if sp.issparse(gram) else gram
    lengths = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
    cosines = gram / lengths[:, None] / lengths
    rows, columns = np.triu_indices(len(cosines), 1)
    return np.asarray(np.clip(1.0 - cosines[rows, columns], 0.0, 2.0))


def one_level(tree: Hierarchy, place: Place, vectors: Any) -> Iterator[Plan]:
    """Yield the grouping as it is, with headings moved to the nearest group, and the cuts of every linkage."""
    old, none = tree.parent[place.headings], np.empty(0, dtype=np.int64)
    yield given_plan(tree, place)
    nodes, at = np.unique(old, return_inverse=True)
    if len(nodes) > 1:
        nearest, margin = _nearest(vectors, at)
        order = np.argsort(-margin, kind="stable")
        order = order[margin[order] > 0]
        for share in _SHARES:
            moved = order[: math.ceil(share * len(order))]
            if len(moved):
                parents = old.copy()
                parents[moved] = nodes[nearest[moved]]
                name = f"{counted(len(moved), 'heading')} moved to the nearest group"
                yield Plan(name, parents, none, (f"moved {share}",))
    if (old != place.node).any() and len(old) <= place.max_children:
        yield Plan("one list", np.full(len(old), place.node), none, ("one list",))
    yield from _cut(place, vectors)


def refined(plan: Plan, place: Place, vectors: Any) -> Plan:
    """Return a plan of one level with every heading in the nearest group, as in spherical k-means.

    A full group accepts no further heading, and a group of one heading stays as it is.
    """
    _, at = np.unique(np.where(plan.parents < 0, plan.parents, np.arange(len(plan.parents))), return_inverse=True)
    counts = np.bincount(at)
    for _ in range(_ROUNDS):
        nearest, margin = _nearest(vectors, at)
        moved = False
        for heading in np.argsort(-margin, kind="stable").tolist():
            source, target = int(at[heading]), int(nearest[heading])
            if margin[heading] <= 0:
                break
            if counts[source] > 1 and counts[target] < place.max_children:
                at[heading], moved = target, True
                counts[source], counts[target] = counts[source] - 1, counts[target] + 1
        if not moved:
            break
    return replace(_plan(f"{plan.name}, refined", at, place), steps=(*plan.steps, _REFINED))


def moved_by_score(prepared: Prepared, place: Place, plan: Plan, vectors: Any, objective: Objective) -> Plan:
    """Return a plan with headings moved to a near group, where the score of the tree gains by it.

    A full group accepts no further heading. The headings whose own group fits least come first.

    Args:
        prepared: Features, the given tree and settings.
        place: The headings.
        plan: The plan.
        vectors: The sums of the unit rows of the headings' items.
        objective: The score.
    """
    tree, number = plan.made(prepared.hierarchy, place)
    scored = ScoredDraft(prepared.on(tree), objective)
    nodes = number[place.headings].tolist()
    first = prepared.hierarchy.n_nodes
    back = {int(new): old if old < first else first - 1 - old for old, new in enumerate(number.tolist()) if new >= 0}
    trials = 0
    for _ in range(_PASSES):
        groups, at = np.unique([scored.draft.parent[node] for node in nodes], return_inverse=True)
        cosines = _cosines(vectors, at)
        own = cosines[np.arange(len(at)), at]
        margin = (np.where(np.arange(len(groups)) == at[:, None], -np.inf, cosines) - own[:, None]).max(axis=1)
        moved = False
        for heading in np.argsort(-margin, kind="stable").tolist():
            best, here = None, scored.draft.parent[nodes[heading]]
            for target in groups[np.argsort(-cosines[heading], kind="stable")[: _TARGETS + 1]].tolist():
                full = len(scored.draft.below.get(target, ())) >= place.max_children
                if target in (here, number[place.node]) or full or target not in scored.seen or trials >= _TRIALS:
                    continue
                trials += 1
                trial = scored.trial({nodes[heading]: target})
                gain = prepared.total(trial.rise, trial.items)
                if gain >= LEAST_GAIN * tree.n_items and (best is None or gain > best[0]):
                    best = gain, trial
            if best is not None:
                scored.apply(best[1])
                moved = True
        if not moved:
            break
    parents = np.array([back[scored.draft.parent[node]] for node in nodes])
    if np.array_equal(parents, plan.parents):
        return plan
    return _without_small(Plan(f"{plan.name}, headings moved by the score", parents, plan.above, plan.steps))


def _without_small(plan: Plan) -> Plan:
    """Return the plan without new groups of fewer than two children."""
    parents, above = plan.parents.copy(), plan.above.copy()
    kept = np.ones(len(above), dtype=bool)
    while True:
        counts = Counter([*parents.tolist(), *above[kept].tolist()])
        small = [k for k in np.flatnonzero(kept).tolist() if counts[-1 - k] < 2]
        if not small:
            break
        kept[small[0]] = False
        for each in (parents, above):
            each[each == -1 - small[0]] = above[small[0]]
    number = np.where(kept, -np.cumsum(kept), 0)  # of each new group that remains
    above = above[kept]
    for each in (parents, above):
        each[each < 0] = number[-1 - each[each < 0]]
    return replace(plan, parents=parents, above=above)


def _cosines(vectors: Any, at: Ints) -> Floats:
    """Return the cosine of each vector and the centroid of each group, left out of its own ``[n, k]``."""
    n, k = len(at), int(at.max()) + 1
    sums = sp.csr_matrix((np.ones(n), (at, np.arange(n))), shape=(k, n)) @ vectors
    dense = [np.asarray(each.toarray() if sp.issparse(each) else each) for each in (vectors @ sums.T, sums @ sums.T)]
    products, squares = dense[0], np.tile(np.diagonal(dense[1]), (n, 1))
    both = vectors.multiply(vectors).sum(axis=1) if sp.issparse(vectors) else (vectors**2).sum(axis=1)
    own = np.asarray(both).ravel()
    rows = np.arange(n)
    squares[rows, at] += own - 2 * products[rows, at]
    products[rows, at] -= own
    cosines: Floats = products / np.sqrt(np.maximum(squares, 1e-300)) / np.sqrt(np.maximum(own, 1e-300))[:, None]
    return cosines


def _nearest(vectors: Any, at: Ints) -> tuple[Ints, Floats]:
    """Return the group with the nearest centroid of each vector, left out of its own, and the gain in cosine."""
    cosines, rows = _cosines(vectors, at), np.arange(len(at))
    best = cosines.argmax(axis=1)
    return best, cosines[rows, best] - cosines[rows, at]


def _cut(place: Place, vectors: Any, sizes: Floats | None = None) -> Iterator[Plan]:
    """Yield cuts of the linkages of the vectors into groups, below the node."""
    from scipy.cluster.hierarchy import linkage

    n, distances = vectors.shape[0], _distances(vectors)
    least, most = max(2, math.ceil(n / place.max_children)), min(n - 1, max(place.max_children, 2 * int(math.sqrt(n))))
    counts = np.unique(np.geomspace(least, max(least, most), _SIZES).round().astype(int))
    for method in _LINKAGES:
        # Ward's criterion is of Euclidean distances, here between the unit vectors.
        Z = linkage(np.sqrt(2 * distances) if method == "ward" else distances, method)
        for by_size in (False, True):
            for count in counts.tolist():
                groups = _groups_of(Z, n, count, place.max_children, by_size)
                yield _plan(f"{method} linkage, {_how(by_size)}, {count} groups", groups, place)


def _how(by_size: bool) -> str:
    return "the largest group divided" if by_size else "cut by height"


def _groups_of(Z: Floats, n: int, count: int, most: int, by_size: bool) -> Ints:
    """Return the group of each leaf: the dendrogram divided from its root into ``count`` groups, none above ``most``.

    Example:
        >>> _groups_of(np.array([[0, 1, 0.1, 2], [4, 2, 0.2, 3], [5, 3, 0.3, 4]]), 4, 2, 2, True)
        array([0, 0, 1, 2])
    """
    sizes = np.concatenate([np.ones(n), Z[:, 3]])

    def rank(node: int) -> tuple[float, float]:
        height = float(Z[node - n, 2]) if node >= n else -1.0
        return (-sizes[node], -height) if by_size else (-height, -sizes[node])

    heap, closed = [(*rank(2 * n - 2), 2 * n - 2)], list[int]()
    while heap:
        *_, node = heapq.heappop(heap)
        if node < n or (len(heap) + len(closed) + 1 >= count and sizes[node] <= most):
            closed.append(node)
            continue
        for child in Z[node - n, :2].astype(int).tolist():
            heapq.heappush(heap, (*rank(child), child))
    group = np.zeros(2 * n - 1, dtype=np.int64)
    number = {node: k for k, node in enumerate(closed)}
    for node in range(2 * n - 2, -1, -1):
        group[node] = number.get(node, group[node])
        if node >= n:
            group[Z[node - n, :2].astype(int)] = group[node]
    return group[:n]


def _plan(name: str, groups: Ints, place: Place) -> Plan:
    """Return the plan of these groups below the node; a group of one heading is the heading itself."""
    counts = np.bincount(groups)
    number = np.where(counts > 1, -1 - (np.cumsum(counts > 1) - 1), place.node)
    return Plan(name, number[groups], np.full(int((counts > 1).sum()), place.node), (name,))


def two_levels(place: Place, base: Plan, vectors: Any) -> Iterator[Plan]:
    """Yield groupings of the groups of a plan."""
    top = np.flatnonzero(base.parents == place.node)  # headings that are not in a group
    n_groups = len(base.above)
    if n_groups + len(top) < 4:
        return
    column = np.where(base.parents < 0, -1 - base.parents, 0)
    column[top] = n_groups + np.arange(len(top))
    n, k = len(column), n_groups + len(top)
    sums = sp.csr_matrix((np.ones(n), (column, np.arange(n))), shape=(k, n)) @ vectors
    for plan in _cut(place, sums):
        parents, above = base.parents.copy(), base.above.copy()
        shift = np.where(plan.parents < 0, plan.parents - n_groups, plan.parents)
        above[:] = shift[:n_groups]
        parents[top] = shift[n_groups:]
        together = np.concatenate([above, plan.above])
        yield Plan(f"{base.name}, these by {plan.name}", parents, together, (*base.steps, plan.name))


def remade(plan: Plan, known: Mapping[tuple[str, ...], Plan], place: Place, vectors: Any) -> Plan | None:
    """Return the plan made again by its steps, for other vectors of the headings; None if that is impossible.

    Args:
        plan: The plan.
        known: The plans of one level for these vectors, by their steps.
        place: The headings.
        vectors: The sums of the unit rows of their items.
    """
    found = known.get(plan.steps[:1])
    for step in plan.steps[1:]:
        if found is None or not len(found.above):
            return None
        above = (*found.steps, step)
        found = (
            refined(found, place, vectors)
            if step == _REFINED
            else next((one for one in two_levels(place, found, vectors) if one.steps == above), None)
        )
    return found


def members_of(plan: Plan) -> list[list[int]]:
    """Return the headings below each new group, by place."""
    members: list[list[int]] = [[] for _ in plan.above]
    for heading, parent in enumerate(plan.parents.tolist()):
        while parent < 0:
            members[-1 - parent].append(heading)
            parent = int(plan.above[-1 - parent])
    return members
