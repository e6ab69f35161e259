"""The score of a tree under edits, at a cost by the nodes that an edit touches.

With ``W_c(x)`` the value plus one of the search for x from node c on the path of x,

    W_c(x) = eta(c, c') * W_c'(x)   if it descends to the child c' with x,   r(c) + 1   if it stops,

the value of x is ``W_root(x) - 1`` (for the hindsight policy ``W_c`` is the larger of the two). ``W_c`` depends only on
c and the nodes below it: the items of its children (for ``eta`` and the decision), and their sizes (for the rewards).
It depends on the level of c if the temperature does. N, which normalises rewards, is constant. Hence an edit changes
the values of the nodes whose items or children it changes, and of the node above them with the same items. At higher
nodes it changes one number per item. The similarities of all other pairs of item and node are kept.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._engines.dispatch import similarities_of
from pomdp_hier._io.formats import memory_available, require_memory
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.hierarchy.editing import Draft, Parents
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared
from pomdp_hier.improvement.node_views import HQS, NO_ITEMS, NodeView, Objective, child_of_items, similarity_tables
from pomdp_hier.improvement.similarities import without_tree
from pomdp_hier.improvement.tree_edit import TreeEdit

_ROUNDS = 8  # rounds of items that change between two halves
_COPIES = 3  # tables of similarities per item and child along its path: the result, and its intermediates


@dataclass(frozen=True, eq=False)
class Trial:
    """The effect of an edit, before it is applied.

    Attributes:
        changes: The edit.
        items: The items whose value changes ``[t]``.
        rise: The change of their values ``[t]``.
        fresh: The changed views by node; None for nodes that become empty.
    """

    changes: Parents
    items: Ints
    rise: Floats
    fresh: dict[int, NodeView | None]


class ScoredDraft:
    """A draft of a tree, with the value of each item, and its change under an edit.

    Args:
        prepared: Features, tree and settings.
        objective: The score.

    Raises:
        ParameterError: The policy looks further than one step.
        PomdpHierError: The memory is too small for one number per item and child along its path.

    Example:
        >>> from pomdp_hier.hqs.inputs import prepare
        >>> from pomdp_hier.hqs.inputs import Settings
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is in the wrong cluster
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> scored = ScoredDraft(prepare(X, tree, Settings(delta=0.1)))
        >>> trial = scored.trial(scored.draft.moved(5, 7))
        >>> round(float(trial.rise.sum()) / 6, 2)
        0.22
    """

    def __init__(self, prepared: Prepared, objective: Objective = HQS) -> None:
        tree = prepared.hierarchy
        self._views = objective.views(prepared)
        self.draft: Draft[Hierarchy] = Draft(tree)
        needed = _COPIES * 8 * int(similarities_of(tree))
        require_memory(needed, memory_available(), "a tree of this shape to improve", PomdpHierError)
        self._n_items, self._root = tree.n_items, tree.root
        self._similarities = without_tree(prepared.affinity)
        self.seen: dict[int, NodeView] = {}
        tables = similarity_tables(prepared)
        for node in tree.topological_order[::-1].tolist():
            if node >= tree.n_items:
                members, children = np.sort(tree.items(node)), tuple(tree.children(node).tolist())
                clusters = [
                    (child, np.array([child]) if child < tree.n_items else self.seen[child].members)
                    for child in children
                ]
                seen = (child_of_items(members, clusters), tables[node]) if children else None
                self.seen[node] = self._views.view(members, children, seen, self.seen, int(tree.levels[node]))

    @property
    def values(self) -> Floats:
        """The value of each item ``[N]``."""
        return self.seen[self._root].value - 1.0

    def level(self, node: int) -> int:
        """Return the level of a node."""
        level = 0
        while (node := self.draft.parent[node]) >= 0:
            level += 1
        return level

    def arrivals(self) -> dict[int, Floats]:
        """Return the arrival probabilities of the items of each internal node ``[m]``, ancestors first."""
        arriving = {self._root: np.ones(self._n_items)}
        waiting = [self._root]
        while waiting:
            seen = self.seen[here := waiting.pop()]
            passing = arriving[here] * self._views.passing(seen)
            for child in seen.children:
                if child >= self._n_items:
                    arriving[child] = passing[np.searchsorted(seen.members, self.seen[child].members)]
                    waiting.append(child)
        return arriving

    def current(self) -> tuple[Hierarchy, list[int]]:
        """Return the tree without empty clusters, and the number in the draft of each of its nodes."""
        tree = self.draft.tree()
        return tree, [v for v in range(len(self.draft.parent)) if v < self._n_items or v in self.seen]

    def joining(self, node: int, part: Ints, items: Ints) -> Ints:
        """Return the items that are more similar to a part of a cluster than to its other members ``[j]``.

        Args:
            node: The cluster.
            part: Some of its members.
            items: Further members, which belong to neither side.
        """
        members = np.setdiff1d(self.seen[node].members, items)
        rest = np.setdiff1d(members, part)
        inside = np.zeros((2, len(items)), dtype=bool)
        similar = self._similarities.columns(items, [(node, part), (node, rest)], inside)
        return items[similar[0] > similar[1]] if len(items) else items

    def closer(self, node: int, source: int, target: int) -> tuple[Floats, Floats, Floats]:
        """Return how much closer the items of a cluster are to those at the target than at the source.

        Both are without the items of the cluster, which otherwise count most where the list is shortest. If one of the
        two is inside of the other, the larger one is also without the items of the smaller one.

        Args:
            node: The cluster.
            source: Its parent.
            target: The cluster that it would be moved to or merged into.

        Returns:
            The difference per item of the cluster ``[m]``, and the similarity of each item at the source and at the
            target to the cluster. All are empty if nothing else is at one of the two.
        """
        items, *both = (
            self.seen[one].members if one in self.seen else np.empty(0, dtype=np.int64)
            for one in (node, source, target)
        )
        here, there = (np.setdiff1d(members, items) for members in both)
        if len(here) <= len(there):
            there = np.setdiff1d(there, here)
        else:
            here = np.setdiff1d(here, there)
        if not len(here) or not len(there):
            return np.empty(0), np.empty(0), np.empty(0)

        def similar(rows: Ints, *clusters: tuple[int, Ints]) -> Floats:
            return self._similarities.columns(rows, clusters, np.zeros((len(clusters), len(rows)), dtype=bool))

        at_source, at_target = similar(items, (source, here), (target, there))
        return at_target - at_source, similar(here, (node, items))[0], similar(there, (node, items))[0]

    def as_list(self, node: int) -> Floats:
        """Return ``W`` of a node that is collapsed to a list of its items ``[m]``."""
        members = self.seen[node].members
        children = tuple(members.tolist()) if self.draft.given.singletons else ()
        clusters = [(item, np.array([item])) for item in children]
        inside = np.eye(len(children), dtype=bool)
        seen = (np.arange(len(children)), self._similarities.columns(members, clusters, inside)) if children else None
        return self._views.view(members, children, seen, self.seen, self.level(node)).value

    @property
    def upper_bound(self) -> float:
        """The upper bound of the score of every tree over the items."""
        return self._views.upper_bound

    def reward(self, size: int) -> float:
        """Return the reward of a cluster of that size."""
        return self._views.reward(size)

    def copy(self) -> "ScoredDraft":
        """Return an independent draft of the same state."""
        other = copy.copy(self)
        other.draft, other.seen = self.draft.copy(), dict(self.seen)
        return other

    def halves(self, node: int) -> Ints:
        """Return one of two parts of a list with similar items within each ``[j]``; empty without two parts.

        Two dissimilar items start the parts; then each item joins the part that is more similar to it.
        """
        members = self.seen[node].members
        inside = np.ones((1, len(members)), dtype=bool)
        first = int(self._similarities.columns(members, [(node, members)], inside).argmin())
        away = self._similarities.columns(
            members, [(int(members[first]), members[[first]])], members[None] == members[first]
        )
        second = int(away.argmin())
        two = [members[[first]], members[[second]]]
        for _ in range(_ROUNDS):
            inside = np.stack([np.isin(members, part, assume_unique=True) for part in two])
            clusters = [(node, part) for part in two]
            similar = self._similarities.columns(members, clusters, inside)
            to_first = similar[0] > similar[1]
            if to_first.all() or not to_first.any() or np.array_equal(members[to_first], two[0]):
                break
            two = [members[to_first], members[~to_first]]
        return two[0] if sum(map(len, two)) == len(members) else NO_ITEMS

    # ---- trials and edits

    def trial(self, changes: Parents, *, anew: bool = False) -> Trial:
        """Return the effect of new parents of nodes.

        Args:
            changes: The new parents.
            anew: Whether to sum changed clusters again, in place of adding and subtracting items.
        """
        edit = TreeEdit(self.draft, self.seen, self._similarities, changes, by_level=self._views.by_level)
        fresh: dict[int, NodeView | None] = {}
        for node in edit.touched():
            fresh[node] = self._after(node, edit, fresh, anew)
        old, new = self.seen[self._root], fresh.get(self._root) or self.seen[self._root]
        rise = new.value - old.value
        items = np.flatnonzero(rise)
        return Trial(changes, items, rise[items], fresh)

    def apply(self, trial: Trial) -> None:
        """Apply the edit of a trial of this state."""
        self.draft.apply(trial.changes)
        for node, seen in trial.fresh.items():
            if seen is None:
                self.seen.pop(node, None)
            else:
                self.seen[node] = seen

    def _after(self, node: int, edit: TreeEdit, fresh: Mapping[int, NodeView | None], anew: bool) -> NodeView | None:
        """Return the view of a node after the edit, given the views of its descendants."""
        old = self.seen.get(node)
        members = edit.members(node)
        if not len(members):
            return None

        def find(child: int) -> NodeView | None:
            return fresh[child] if child in fresh else self.seen.get(child)

        if old is not None and not edit.changes_children(node):
            if self._relabels(old, fresh):
                below_now = {child: seen for child in old.children if (seen := find(child)) is not None}
                return self._views.view(members, old.children, (old.own, old.table), below_now, edit.level(node))
            below, value = old.below.copy(), old.value.copy()
            for child in old.children:
                if (new := fresh.get(child)) is not None:
                    rows = np.searchsorted(members, new.members)
                    below[rows] = new.value
                    value[rows] = self._views.value(old.share[rows], old.goes[rows], new.value, old.stop_value)
            return replace(old, below=below, value=value)
        nodes = edit.below(node)
        inner = [child for child in nodes if child >= self._n_items and find(child) is not None]
        items = [child for child in nodes if child < self._n_items]
        children = (*items, *inner) if inner or self.draft.given.singletons else ()
        known = {child: seen for child in inner if (seen := find(child)) is not None}
        own_and_table = None if anew else self._shifted(members, children, old, edit)
        if own_and_table is None:
            own_and_table = self._gathered(members, children, old, edit)
        return self._views.view(members, children, own_and_table, known, edit.level(node))

    def _relabels(self, old: NodeView, fresh: Mapping[int, NodeView | None]) -> bool:
        """Return whether the number of labels below a child changes, if they cost anything."""
        if not self._views.label_cost:
            return False
        return any(
            (new := fresh.get(child)) is not None and new.labels != self.seen[child].labels for child in old.children
        )

    def _shifted(
        self, members: Ints, children: tuple[int, ...], old: NodeView | None, edit: TreeEdit
    ) -> tuple[Ints, Floats] | None:
        """Return children of items and similarities after a move of one item x; None without an incremental formula.

        With ``n`` other items in c, ``sim(y, c)`` is the mean of their similarities to y, so that adding x gives
        ``(n sim(y, c) + <y, x>) / (n + 1)``; removal is the inverse. For x itself, its
        similarities are summed per child.
        """
        item, alone = edit.item, self._similarities.own_singleton
        if item is None or alone is None or old is None or not old.children or not children:
            return None
        slot_of = {child: slot for slot, child in enumerate(old.children)}
        if any(child not in slot_of and child != item for child in children):
            return None
        at_old = np.array([slot_of.get(child, 0) for child in children])
        columns = np.arange(len(old.members))
        at = int(np.searchsorted(members, item))
        if len(members) < len(old.members):
            columns = np.delete(columns, at)
        elif len(members) > len(old.members):
            columns = np.insert(columns, at, 0)
        same = len(members) == len(old.members)
        table: Floats = old.table[at_old] if same else old.table[np.ix_(at_old, columns)]
        number = np.full(len(old.children), -1)
        known = np.array([child in slot_of for child in children])
        number[at_old[known]] = np.flatnonzero(known)
        own = number[old.own[columns]]
        holds = at < len(members) and members[at] == item
        if holds:
            own[at] = next(slot for slot, child in enumerate(children) if edit.leads_to_item(child))
        towards, of_item = edit.pairs(members)
        for slot, child in enumerate(children):
            if child == item and item not in slot_of:
                table[slot] = towards
            elif edit.changes_items(child):
                before, after = len(self.seen[child].members), len(edit.members(child))
                inside = own == slot
                total = np.where(before > inside, table[slot] * (before - inside), 0.0) + (after - before) * towards
                table[slot] = np.where(after > inside, total / np.maximum(after - inside, 1), alone)
        if holds:
            others = np.array([1 if child < self._n_items else len(edit.members(child)) for child in children])
            others[own[at]] -= 1
            sums = np.bincount(own, weights=of_item, minlength=len(children))
            table[:, at] = np.where(others > 0, sums / np.maximum(others, 1), alone)
        return own, table

    def _gathered(
        self, members: Ints, children: tuple[int, ...], old: NodeView | None, edit: TreeEdit
    ) -> tuple[Ints, Floats]:
        """Return children of items and similarities, with the unchanged similarities copied."""
        m, clusters = len(members), [edit.cluster(child) for child in children]
        own = child_of_items(members, clusters)
        table = np.empty((len(children), m))
        old_slots = {} if old is None else {child: slot for slot, child in enumerate(old.children)}
        kept = [slot for slot, child in enumerate(children) if child in old_slots and not edit.changes_items(child)]
        new = [slot for slot in range(len(children)) if slot not in set(kept)]
        if kept and old is not None:
            at_old = np.array([old_slots[children[slot]] for slot in kept])
            if len(old.members) == m and np.array_equal(old.members, members):
                table[kept] = old.table[at_old]
            else:
                stays = np.isin(old.members, members, assume_unique=True)
                rows = np.searchsorted(members, old.members[stays])
                table[np.ix_(np.array(kept), rows)] = old.table[np.ix_(at_old, np.flatnonzero(stays))]
                come = np.setdiff1d(np.arange(m), rows, assume_unique=True)
                inside = own[come] == np.array(kept)[:, None]
                asked = [clusters[slot] for slot in kept]
                table[np.ix_(np.array(kept), come)] = self._similarities.columns(members[come], asked, inside)
        if new:
            asked = [clusters[slot] for slot in new]
            table[new] = self._similarities.columns(members, asked, own == np.array(new)[:, None])
        return own, table
