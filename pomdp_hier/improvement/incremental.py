"""The score of a tree that is being edited: an edit costs what it touches.

With ``W_c(x)`` what a search for x is worth, plus one, that stands at node c of its own path,

    W_c(x) = eta(c, c') * W_c'(x)   if it goes on to the child c' that holds x,   r(c) + 1   if it stops,

the value of x is ``W_root(x) - 1`` (and for a hindsight searcher ``W_c`` is the larger of the two). ``W_c`` depends
on what is below c alone: on the children's items, which make ``eta`` and whether to go on, on how many items c and they
hold, which makes the rewards, and on the level of c where the temperature grows with it. Items do not come or go, so
that N, by which rewards are normalised, stays. Hence an edit touches the nodes whose items or children it changes, the
node above them that holds the same items as before, and of the nodes higher up one number an item; the similarities of
all other pairs of item and node are kept.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier._engines.dispatch import similarities_of
from pomdp_hier._engines.on_numpy import own_steps
from pomdp_hier._engines.task import AlwaysDescend, HindsightRule, LookAhead, Rule, SearchRoot, ask, descends
from pomdp_hier._io.memory import memory_available, require_memory
from pomdp_hier.errors import Argument, ParameterError, PomdpHierError, Setting
from pomdp_hier.hierarchy.editing import Draft, Parents
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import temperatures
from pomdp_hier.hqs.inputs import Prepared
from pomdp_hier.hqs.reward import SizeRewards
from pomdp_hier.hqs.settings import Run, named
from pomdp_hier.improvement.similarities import Cluster, without_tree

_NONE = np.empty(0, dtype=np.int64)
_ROUNDS = 8  # of items changing between two halves
_COPIES = 3  # of a similarity for every item and child along its path: the tables, and what one of them is made of


def check_policy(prepared: Prepared, run: Run | None = None) -> Rule:
    """Return the stopping rule, if it decides on what the searcher sees at one node.

    Raises:
        ParameterError: It looks further, or is none, or each item's POMDP is to be planned.
    """
    if run is not None and run.engine == "generic":
        raise ParameterError(
            "engine is 'generic', which plans every item's POMDP anew; improve with engine='auto', and score both "
            "trees with evaluate(..., engine='generic')"
        )
    rule = prepared.settings.rule
    if rule is None or (isinstance(rule, LookAhead) and rule.depth != 1):
        raise ParameterError(
            Argument("policy"),
            f": got {named(prepared.settings.policy)}, by which an edit changes decisions anywhere above it; expected "
            "one that looks one step ahead. Improve with ",
            Setting("policy", "one-step"),
            ", then score both trees.",
        )
    return rule


@dataclass(frozen=True, eq=False)
class _Seen:
    """A node as those of its items see it that stand there.

    Attributes:
        members: Its items, ascending ``[m]``.
        children: Its children ``[k]``; none for a leaf cluster.
        own: Which of the children holds the item ``[m]``.
        table: The similarities ``[k, m]``.
        share: The guidance to the own child ``[m]``.
        goes: Whether the search goes on ``[m]``.
        below: ``W`` of the own child ``[m]``.
        worth: ``r + 1``.
        value: ``W`` ``[m]``.
    """

    members: Ints
    children: tuple[int, ...]
    own: Ints
    table: Floats
    share: Floats
    goes: Bools
    below: Floats
    worth: float
    value: Floats


@dataclass(frozen=True, eq=False)
class Trial:
    """What an edit would do.

    Attributes:
        changes: The edit.
        items: Whose searches it changes ``[t]``.
        rise: By how much each is worth more ``[t]``.
    """

    changes: Parents
    items: Ints
    rise: Floats
    fresh: dict[int, _Seen | None]


class ScoredDraft:
    """A draft of a tree, the value of every item's search in it, and what it would be after an edit.

    Args:
        prepared: Features, tree and settings.

    Raises:
        ParameterError: The policy looks further than one step.
        PomdpHierError: There is too little memory for one number an item and child along its path.

    Example:
        >>> from pomdp_hier.hqs.inputs import prepare
        >>> from pomdp_hier.hqs.settings import Settings
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> scored = ScoredDraft(prepare(X, tree, Settings(delta=0.1)))
        >>> trial = scored.trial(scored.draft.moved(5, 7))
        >>> round(float(trial.rise.sum()) / 6, 2)
        0.22
    """

    def __init__(self, prepared: Prepared) -> None:
        tree, settings = prepared.hierarchy, prepared.settings
        self._rule = check_policy(prepared)
        self.draft: Draft[Hierarchy] = Draft(tree)
        needed = _COPIES * 8 * int(similarities_of(tree))
        require_memory(needed, memory_available(), "a tree of this shape to improve", PomdpHierError)
        self._n_items, self._settings, self._root = tree.n_items, settings, tree.root
        self._rewards = SizeRewards(np.arange(1, tree.n_items + 1), tree.n_items, settings.reward)
        self._alone = float(self._rewards.of(np.array([1]))[0]) + 1.0
        self._by_level = settings.nu != 1.0 or not isinstance(
            self._rule, LookAhead | AlwaysDescend | SearchRoot | HindsightRule
        )
        self._similarities = without_tree(prepared.affinity)
        self.seen: dict[int, _Seen] = {}
        tables = _tables(prepared)
        for node in tree.topological_order[::-1].tolist():
            if node >= tree.n_items:
                members, children = np.sort(tree.items(node)), tuple(tree.children(node).tolist())
                clusters = [
                    (child, np.array([child]) if child < tree.n_items else self.seen[child].members)
                    for child in children
                ]
                seen = (_own(members, clusters), tables[node]) if children else None
                self.seen[node] = self._looked(node, members, children, seen, {}, int(tree.levels[node]))

    @property
    def values(self) -> Floats:
        """What each item's search is worth ``[N]``."""
        return self.seen[self._root].value - 1.0

    def level(self, node: int) -> int:
        """Return the level of a node."""
        level = 0
        while (node := self.draft.parent[node]) >= 0:
            level += 1
        return level

    def arrivals(self) -> dict[int, Floats]:
        """Return with what probability each inner node's items arrive there ``[m]``, nodes before those below them."""
        arriving = {self._root: np.ones(self._n_items)}
        waiting = [self._root]
        while waiting:
            seen = self.seen[here := waiting.pop()]
            passing = arriving[here] * np.where(seen.goes, seen.share, 0.0)
            for child in seen.children:
                if child >= self._n_items:
                    arriving[child] = passing[np.searchsorted(seen.members, self.seen[child].members)]
                    waiting.append(child)
        return arriving

    @property
    def looks_ahead(self) -> bool:
        """Whether where a search stops depends on what is below."""
        return isinstance(self._rule, HindsightRule)

    @property
    def n_pairs(self) -> int:
        """How many pairs of items all inner nodes hold."""
        return sum(len(seen.members) ** 2 for seen in self.seen.values())

    def pairs(self, items: Ints, item: int) -> tuple[Floats, Floats]:
        """Return how alike each of the items is to one, and that one to each; 0 to itself."""
        return self._similarities.pairs(items, item)

    def as_list(self, node: int) -> Floats:
        """Return ``W`` of a node of which only a list of its items is left ``[m]``."""
        members = self.seen[node].members
        children = tuple(members.tolist()) if self.draft.given.singletons else ()
        clusters = [(item, np.array([item])) for item in children]
        inside = np.eye(len(children), dtype=bool)
        seen = (np.arange(len(children)), self._similarities.columns(members, clusters, inside)) if children else None
        return self._looked(node, members, children, seen, {}, self.level(node)).value

    def worth(self, size: int) -> float:
        """Return the reward of a cluster of that size."""
        return float(self._rewards.of(np.array([size]))[0])

    def copy(self) -> "ScoredDraft":
        """Return a draft of the same state, to be edited by itself."""
        other = copy.copy(self)
        other.draft, other.seen = self.draft.copy(), dict(self.seen)
        return other

    def halves(self, node: int) -> Ints:
        """Return one of two parts of a list's items that are alike within ``[j]``; none if there are no two parts.

        Two items that are little alike draw the others to them; then each item goes to the part that it is more alike.
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
            alike = self._similarities.columns(members, clusters, inside)
            to_first = alike[0] > alike[1]
            if to_first.all() or not to_first.any() or np.array_equal(members[to_first], two[0]):
                break
            two = [members[to_first], members[~to_first]]
        return two[0] if sum(map(len, two)) == len(members) else _NONE

    # ---- what an edit would do, and doing it

    def trial(self, changes: Parents, *, anew: bool = False) -> Trial:
        """Return what giving nodes these new parents would do.

        Args:
            changes: The new parents.
            anew: Whether to add up every cluster that changes anew, and not only what comes and goes.
        """
        edit = _Edit(self, changes)
        fresh: dict[int, _Seen | None] = {}
        for node in edit.touched():
            fresh[node] = self._after(node, edit, fresh, anew)
        old, new = self.seen[self._root], fresh.get(self._root) or self.seen[self._root]
        rise = new.value - old.value
        items = np.flatnonzero(rise)
        return Trial(changes, items, rise[items], fresh)

    def apply(self, changes: Parents) -> Trial:
        """Make an edit on the draft, and return what it did; rounding does not add up over edits."""
        trial = self.trial(changes, anew=True)
        self.draft.apply(changes)
        for node, seen in trial.fresh.items():
            if seen is None:
                self.seen.pop(node, None)
            else:
                self.seen[node] = seen
        return trial

    def _after(self, node: int, edit: "_Edit", fresh: Mapping[int, _Seen | None], anew: bool) -> _Seen | None:
        """Return the node as it is seen after the edit, those below it being done."""
        old = self.seen.get(node)
        members = edit.members(node)
        if not len(members):
            return None

        def find(child: int) -> _Seen | None:
            return fresh[child] if child in fresh else self.seen.get(child)

        if old is not None and not edit.changes_children(node):
            below, value = old.below.copy(), old.value.copy()
            for child in old.children:
                if (new := fresh.get(child)) is not None:
                    rows = np.searchsorted(members, new.members)
                    below[rows] = new.value
                    value[rows] = self._value(old.share[rows], old.goes[rows], new.value, old.worth)
            return replace(old, below=below, value=value)
        nodes = edit.below(node)
        inner = [child for child in nodes if child >= self._n_items and find(child) is not None]
        items = [child for child in nodes if child < self._n_items]
        children = (*items, *inner) if inner or self.draft.given.singletons else ()
        known = {child: seen for child in inner if (seen := find(child)) is not None}
        own_and_table = None if anew else self._shifted(members, children, old, edit)
        if own_and_table is None:
            own_and_table = self._gathered(members, children, old, edit)
        return self._looked(node, members, children, own_and_table, known, edit.level(node))

    def _shifted(
        self, members: Ints, children: tuple[int, ...], old: _Seen | None, edit: "_Edit"
    ) -> tuple[Ints, Floats] | None:
        """Return own children and similarities after one item x has changed its place; None if there is no short way.

        With ``n`` other items in c, ``sim(y, c)`` is the mean of their similarities to y, so that x adds its own:
        ``(n sim(y, c) + <y, x>) / (n + 1)``, or takes it away. x itself sees the sums of its own over each child.
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
        self, members: Ints, children: tuple[int, ...], old: _Seen | None, edit: "_Edit"
    ) -> tuple[Ints, Floats]:
        """Return own children and similarities, of which those are known that the edit leaves as they were."""
        m, clusters = len(members), [edit.cluster(child) for child in children]
        own = _own(members, clusters)
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

    def _looked(
        self,
        node: int,
        members: Ints,
        children: tuple[int, ...],
        own_and_table: tuple[Ints, Floats] | None,
        known: Mapping[int, _Seen],
        level: int,
    ) -> _Seen:
        """Return a node as its items see it, from who is in which child and the similarities to these."""
        m = len(members)
        worth = float(self._rewards.of(np.array([m]))[0]) + 1.0
        if not children or own_and_table is None:
            nobody = np.zeros(m)
            goes = np.zeros(m, dtype=bool)
            return _Seen(members, (), _NONE, np.empty((0, m)), nobody, goes, nobody, worth, np.full(m, worth))
        own, table = own_and_table
        seen = [None if child < self._n_items else known.get(child) or self.seen[child] for child in children]
        sizes = np.array([1 if view is None else len(view.members) for view in seen])
        alone = np.array([self._alone])
        below = np.empty(m)  # what is in one child follows one another, ascending, in a stable order by child
        below[_by_child(own, len(children))] = np.concatenate([alone if view is None else view.value for view in seen])
        share, goes = self._weigh(table, own, sizes, worth, level)
        if not self._settings.enter_own_singleton:
            goes &= np.array(children)[own] >= self._n_items
        value = self._value(share, goes, below, worth)
        return _Seen(members, children, own, table, share, goes, below, worth, value)

    def _weigh(self, table: Floats, own: Ints, sizes: Ints, worth: float, level: int) -> tuple[Floats, Bools]:
        """Return the guidance to the own child, and whether to descend ``[m]``; equations: `look_ahead.weigh`."""
        m = table.shape[1]
        with np.errstate(over="ignore"):
            eta = table - table.max(axis=0)
            eta /= temperatures(level, float(self._settings.delta), self._settings.nu)
        np.exp(eta, out=eta)
        eta /= eta.sum(axis=0)
        share = eta[own, np.arange(m)]
        rule = self._rule
        if isinstance(rule, LookAhead):
            rise = self._rewards.rise(sizes, np.full(len(sizes), m))
            loss = worth * ((1.0 - eta) * eta).sum(axis=0)
            return share, descends((eta**2 * rise[:, None]).sum(axis=0) - loss, loss, rule.tie)
        if isinstance(rule, SearchRoot | AlwaysDescend | HindsightRule):
            return share, np.full(m, not isinstance(rule, SearchRoot))
        return share, ask(rule, np.ascontiguousarray(eta.T), sizes, self._rewards.of(sizes), level).copy()

    def _value(self, share: Floats, goes: Bools, below: Floats, worth: float) -> Floats:
        """Return ``W`` of a node, given that of the own child."""
        further = share * below
        if isinstance(self._rule, HindsightRule):
            goes = goes & descends(further - worth, np.broadcast_to(worth, further.shape), self._rule.tie)
        return np.where(goes, further, worth)


class _Edit:
    """Which nodes an edit touches, and what they hold after it."""

    def __init__(self, scored: ScoredDraft, changes: Parents) -> None:
        self._scored, self._draft, self._changes = scored, scored.draft, changes
        self._leaving = self._draft.leaving(changes)
        self.item: int | None = None  # the one that is moved, if it is one
        self._pairs: tuple[Ints, Floats, Floats] | None = None
        self._arriving: dict[int, list[int]] = {}
        self._out: dict[int, list[Ints]] = {}
        self._into: dict[int, list[Ints]] = {}
        self._members: dict[int, Ints] = {}
        self._relevelled: set[int] = set()
        moved: dict[tuple[int, int], list[Ints]] = {}
        n_old, n_items = len(self._draft.parent), scored.draft.given.n_items
        for node, parent in changes.items():
            if node >= n_old:
                self._arriving.setdefault(parent, []).append(node)
            elif (before := self._draft.parent[node]) != parent:
                self._arriving.setdefault(parent, []).append(node)
                seen = scored.seen.get(node)
                items = np.array([node]) if node < n_items else _NONE if seen is None else seen.members
                moved.setdefault((before, parent), []).append(items)
        if len(changes) == 1 and moved:
            ((node, parent),) = changes.items()
            if node < n_items:
                self.item, self._up = node, self._above(parent, changes)
                self._shared = next(above for above in self._above(self._draft.parent[node], {}) if above in self._up)
        for (before, parent), lists in moved.items():
            old, new = self._above(before, {}), self._above(parent, changes)
            together = np.concatenate(lists)
            for node in old.keys() - new.keys():
                self._out.setdefault(node, []).append(together)
            for node in new.keys() - old.keys():
                self._into.setdefault(node, []).append(together)

    def leads_to_item(self, node: int) -> bool:
        """Whether the node is, or holds, the item that is moved, after the edit."""
        return node == self.item or node in self._up

    def pairs(self, members: Ints) -> tuple[Floats, Floats]:
        """Return the similarities of a touched node's items to the one that is moved, and of that one to each."""
        if self._pairs is None:
            items = self._scored.seen[self._shared].members
            self._pairs = (items, *self._scored.pairs(items, cast(int, self.item)))
        items, towards, of_item = self._pairs
        if members is items:
            return towards, of_item
        at = np.searchsorted(items, members)
        return towards[at], of_item[at]

    def touched(self) -> list[int]:
        """Return the nodes to look at anew, those below before those above."""
        nodes = {*self._leaving, *self._arriving, *self._out, *self._into}
        if self._scored._by_level:
            nodes |= self._at_other_levels()
        touched: dict[int, None] = {}
        for node in sorted(nodes):
            touched.update(self._above(node, self._changes))
        return sorted(touched, key=lambda node: (-self.level(node), node))

    def _at_other_levels(self) -> set[int]:
        moved = [node for node in self._changes if node in self._draft.below]
        waiting = [node for node in moved if self.level(node) != self._scored.level(node)]
        found: set[int] = set()
        while waiting:
            found.add(here := waiting.pop())
            waiting.extend(child for child in self._draft.below[here] if child in self._draft.below)
        self._relevelled = found
        return found

    def changes_children(self, node: int) -> bool:
        """Whether the node's own table, or what is made of it, is another after the edit."""
        if node in self._relevelled or node in self._leaving or node in self._arriving or self.changes_items(node):
            return True
        return any(self.changes_items(child) for child in self._draft.below[node] if child in self._draft.below)

    def changes_items(self, node: int) -> bool:
        """Whether the node holds other items after the edit."""
        return node in self._out or node in self._into

    def below(self, node: int) -> list[int]:
        """Return what hangs directly under the node after the edit."""
        gone = self._leaving.get(node, set())
        return [
            *(child for child in self._draft.below.get(node, []) if child not in gone),
            *self._arriving.get(node, []),
        ]

    def members(self, node: int) -> Ints:
        """Return the node's items after the edit, ascending."""
        if node not in self._members:
            seen = self._scored.seen.get(node)
            items = _NONE if seen is None else seen.members
            if self.item is not None and node in self._out:
                items = np.delete(items, np.searchsorted(items, self.item))
            elif self.item is not None and node in self._into:
                items = np.insert(items, np.searchsorted(items, self.item), self.item)
            elif node in self._out:
                items = items[~np.isin(items, np.concatenate(self._out[node]))]
            if self.item is None and node in self._into:
                items = np.union1d(items, np.concatenate(self._into[node]))
            self._members[node] = items
        return self._members[node]

    def cluster(self, node: int) -> Cluster:
        """Return a node and its items after the edit."""
        return node, (np.array([node]) if node < self._draft.given.n_items else self.members(node))

    def level(self, node: int) -> int:
        """Return the level of a node after the edit."""
        return len(self._above(node, self._changes)) - 1

    def _above(self, node: int, changes: Parents) -> dict[int, None]:
        """Return the node and those above it."""
        path: dict[int, None] = {}
        while node >= 0:
            path[node] = None
            node = changes[node] if node in changes else self._draft.parent[node]
        return path


def _by_child(own: Ints, n_children: int) -> Ints:
    """Return the rows in the order of their children."""
    short = own.astype(np.int16) if n_children < 1 << 15 else own  # which is sorted by its digits, in linear time
    return np.argsort(short, kind="stable")


def _own(members: Ints, clusters: list[Cluster]) -> Ints:
    """Return which of the clusters, that hold all of them once, each of the items is in ``[m]``."""
    own = np.empty(len(members), dtype=np.int64)
    if clusters:
        sizes = [len(items) for _, items in clusters]
        rows = np.searchsorted(members, np.concatenate([items for _, items in clusters]))
        own[rows] = np.repeat(np.arange(len(clusters)), sizes)
    return own


def _tables(prepared: Prepared) -> dict[int, Floats]:
    """Return the similarities of every node's items, ascending, to its children ``[k, m]``, as the engine sees them."""
    pieces: dict[int, list[tuple[Ints, Floats]]] = {}
    for step in own_steps(prepared.under(enter_own_singleton=True).task()):
        cuts = np.flatnonzero(np.diff(step.nodes, prepend=-1)).tolist()
        for low, high in zip(cuts, [*cuts[1:], len(step.nodes)], strict=True):
            k, first = int(step.counts[low]), int(step.firsts[low])
            table = step.similarities[first : first + (high - low) * k].reshape(high - low, k)
            pieces.setdefault(int(step.nodes[low]), []).append((step.items[low:high], table))
    tables = {}
    for node, parts in pieces.items():
        order = np.argsort(np.concatenate([items for items, _ in parts]))
        tables[node] = np.ascontiguousarray(np.concatenate([table for _, table in parts])[order].T)
    return tables
