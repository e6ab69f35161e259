"""Greedy search for edits of clusters that raise a score; no node gets a new parent twice.

A round diagnoses the current tree, proposes edits and scores each exactly. It applies those with a gain, the best
first, and scores each again after those before it. No proposal is tried twice.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.analysis.diagnosis import Diagnosis, diagnose
from pomdp_hier.analysis.moves import candidate_moves
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.hqs.inputs import Prepared, Settings
from pomdp_hier.improvement.incremental import ScoredDraft, Trial
from pomdp_hier.improvement.node_views import HQS, Objective
from pomdp_hier.improvement.result import KINDS, LEAST_GAIN, REMOVING, changes_of

_MOST = 16  # proposals of a kind per round
_ROUNDS = 2
_STEPS = (("move",), ("merge", "split", "remove", "collapse"), ("remove-level", "collapse-below"))
_SMALL = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # sizes below which clusters may be collapsed


class Proposal(NamedTuple):
    """A proposed edit; see `Edit`."""

    kind: str
    nodes: tuple[int, ...]
    source: int
    target: int


@dataclass(frozen=True)
class Limits:
    """What may change.

    Attributes:
        kinds: The kinds of edits.
        fixed: Nodes that keep their parent and at least one item.
        keep_levels: Whether nodes keep their levels.
        max_edits: The largest number of edits.
        max_loss: The largest loss of value of any item, compared with the given tree.
        deadline: The end of the search, by `time.monotonic`.
    """

    kinds: tuple[str, ...] = KINDS
    fixed: frozenset[int] = frozenset()
    keep_levels: bool = False
    max_edits: int | None = None
    max_loss: float | None = None
    deadline: float = float("inf")

    def within(self, nodes: Iterable[int]) -> "Limits":
        """Return the limits for a tree of these nodes, in the order of their new numbers."""
        return replace(self, fixed=frozenset(new for new, old in enumerate(nodes) if old in self.fixed))


@dataclass(frozen=True, eq=False)
class Made:
    """An applied edit, and the change of the value of each item."""

    proposal: Proposal
    n_items: int
    items: Ints
    rise: Floats
    flattens: bool

    def is_item_move(self, n_items: int) -> bool:
        """Return whether an item is moved by itself."""
        return self.proposal.kind == "move" and self.proposal.nodes[0] < n_items


class OutOfTimeError(Exception):
    """The deadline has passed."""


@dataclass(eq=False)
class Editor:
    """An edited tree with its score, under edits within limits; no node gets a new parent twice.

    Attributes:
        prepared: Features, tree and settings.
        limits: The limits of the edits.
        objective: The score that edits raise.
        advance: A function that is called once per trial.
        exact: Whether rounding is removed after each edit.
        made: The applied edits.
    """

    prepared: Prepared
    limits: Limits
    objective: Objective = HQS
    advance: Callable[[], object] = lambda: None
    exact: bool = False
    made: list[Made] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scored = ScoredDraft(self.prepared, self.objective)
        self._given = self.scored.values.copy()
        self._settled: set[int] = set()  # nodes that got a new parent by an edit of clusters
        self._flattening = not REMOVING.isdisjoint(self.limits.kinds)

    @property
    def full(self) -> bool:
        """Whether the number of edits is at its limit."""
        return self.limits.max_edits is not None and len(self.made) >= self.limits.max_edits

    @property
    def rise(self) -> Floats:
        """The gain of each item by the applied edits ``[N]``."""
        return self.scored.values - self._given

    def gain(self, trial: Trial) -> float:
        """Return the gain of the score."""
        return self.prepared.total(trial.rise, trial.items) / self.prepared.hierarchy.n_items

    def attempt(self, proposal: Proposal) -> Trial | None:
        """Return the trial of an edit; None if the edit is impossible or not allowed.

        Raises:
            OutOfTimeError: The deadline has passed.
        """
        if time.monotonic() > self.limits.deadline:
            raise OutOfTimeError
        self.advance()
        draft, fixed = self.scored.draft, self.limits.fixed
        try:
            changes = changes_of(draft, *proposal)
        except ParameterError:  # an earlier edit changed these nodes
            return None
        if all(node < len(draft.parent) and draft.parent[node] == parent for node, parent in changes.items()):
            return None
        if not fixed.isdisjoint(changes) or not self._settled.isdisjoint(changes):
            return None
        if proposal.kind == "split" and proposal.source in fixed:
            return None
        if self.limits.keep_levels and any(
            self.scored.level(node) != self.scored.level(parent) + 1
            for node, parent in changes.items()
            if node < len(draft.parent) and parent < len(draft.parent)
        ):
            return None
        if not self._flattening and self.flattens(proposal):
            return None
        trial = self.scored.trial(changes)
        if any(seen is None and node in fixed for node, seen in trial.fresh.items()):
            return None
        if self.limits.max_loss is not None and len(trial.items):
            after = self.scored.values[trial.items] + trial.rise
            if (after < self._given[trial.items] - self.limits.max_loss).any():
                return None
        return trial

    def make(self, proposal: Proposal, trial: Trial) -> None:
        """Apply an edit."""
        if proposal.kind == "split":  # other splits may have been made since it was proposed
            proposal = proposal._replace(target=len(self.scored.draft.parent))
        made = self.effect(proposal, trial)
        if not made.is_item_move(self.prepared.hierarchy.n_items):
            self._settled.update(trial.changes)
        trial = self.scored.trial(trial.changes, anew=True) if self.exact else trial
        self.scored.apply(trial)
        self.made.append(replace(made, items=trial.items, rise=trial.rise))

    def effect(self, proposal: Proposal, trial: Trial) -> Made:
        """Return the record of an edit."""
        n_items, seen = self.prepared.hierarchy.n_items, self.scored.seen
        sizes = [1 if v < n_items else len(seen[v].members) for v in trial.changes if v < n_items or v in seen]
        return Made(proposal, sum(sizes), trial.items, trial.rise, self.flattens(proposal))

    def flattens(self, proposal: Proposal) -> bool:
        """Return whether an edit removes a level of choices and makes a longer list."""
        kind, nodes, source, target = proposal
        if kind == "merge":  # the last siblings: no choice is left above them
            return len(self._below(source)) - len(nodes) == 1
        if kind not in REMOVING:
            return False
        gone = set(nodes) if kind != "collapse" else {v for node in nodes for v in self._inside(node)}
        before = max((len(self._below(node)) for node in {*gone, target}), default=0)
        if kind == "collapse":
            return len(self.scored.seen[target].members) > before
        into: dict[int, int] = {}
        for node in gone:
            above = self.scored.draft.parent[node]
            while above in gone:
                above = self.scored.draft.parent[above]
            kept = sum(child not in gone for child in self._below(node))
            into.setdefault(above, sum(child not in gone for child in self._below(above)))
            into[above] += kept
        return max(into.values(), default=0) > max([before, *(len(self._below(node)) for node in into)])

    def _below(self, node: int) -> list[int]:
        """Return the items and the clusters with items directly below a node."""
        n_items, seen = self.prepared.hierarchy.n_items, self.scored.seen
        return [child for child in self.scored.draft.below[node] if child < n_items or child in seen]

    def _inside(self, node: int) -> list[int]:
        """Return the internal nodes below a node, and the node."""
        found = [node]
        for here in found:
            found.extend(child for child in self._below(here) if child in self.scored.seen)
        return found


@dataclass(eq=False)
class Search(Editor):
    """A greedy search for edits of clusters.

    Attributes:
        keys: See `diagnose`.
    """

    keys: list[bytes] | None = None
    _known: tuple[tuple[int, Settings], Diagnosis] | None = field(default=None, init=False)

    def run(self) -> None:
        """Apply edits until none gains or the limit of edits.

        Raises:
            OutOfTimeError: The deadline has passed.
        """
        tried: set[Proposal] = set()
        for _ in range(_ROUNDS):
            before = len(self.made)
            for kinds in _STEPS:
                proposals = [one for one in dict.fromkeys(self._proposals(kinds)) if one not in tried]
                tried.update(proposals)
                self._round(proposals)
            if self.full or len(self.made) == before:
                return

    def _round(self, proposals: list[Proposal]) -> None:
        """Score all proposals, and apply those with a gain, the best first, each scored again."""
        gains = [
            (-gain, at)
            for at, one in enumerate(proposals)
            if (trial := self.attempt(one)) is not None and (gain := self.gain(trial)) >= LEAST_GAIN
        ]
        for _, at in sorted(gains):
            if self.full:
                return
            again = self.attempt(proposals[at])
            if again is not None and self.gain(again) >= LEAST_GAIN:
                self.make(proposals[at], again)

    def _proposals(self, kinds: tuple[str, ...]) -> Iterator[Proposal]:
        """Yield the edits of these kinds that may gain in the current tree."""
        wanted = set(kinds).intersection(self.limits.kinds)
        if wanted & {"move", "merge", "remove"}:
            tree, number = self.scored.current()
            prepared = self.prepared.on(tree)
            if "move" in wanted:
                yield from self._moves(prepared, number)
            if "merge" in wanted:
                yield from self._merges(self._diagnosed(prepared), number)
            if "remove" in wanted:
                yield from self._removals(self._diagnosed(prepared), number)
        if "collapse" in wanted:
            yield from (Proposal("collapse", (node,), node, node) for node in self._collapsible())
        if "split" in wanted:
            yield from self._splits()
        if wanted & {"remove-level", "collapse-below"}:
            yield from self._wide()

    def _diagnosed(self, prepared: Prepared) -> Diagnosis:
        """Return the diagnosis of the current tree under these settings, made once until the next edit."""
        state = len(self.made), prepared.settings
        if self._known is None or self._known[0] != state:
            self._known = state, self._diagnosis(prepared)
        return self._known[1]

    def _diagnosis(self, prepared: Prepared) -> Diagnosis:
        settings = {name: getattr(prepared.settings, name) for name in prepared.settings.__dataclass_fields__}
        X = prepared.features
        X = replace(X, rows=None) if isinstance(X, ItemFeatures) else X  # the weights are in the order of the items
        return diagnose(X, prepared.hierarchy, duplicates=self.keys, sample_weight=prepared.weights, **settings)

    def _moves(self, prepared: Prepared, number: list[int]) -> Iterator[Proposal]:
        """Yield moves of clusters whose items are lost, or would be if their search went on to a leaf."""
        searches = [prepared, prepared.under(policy="descend")][: 1 if prepared.settings.policy == "descend" else 2]
        moves = [
            move
            for under in searches
            for move in candidate_moves(under, self._diagnosed(under), 2 * _MOST)
            if move.node >= prepared.hierarchy.n_items
        ]
        for move in sorted(moves, key=lambda move: -move.predicted)[: len(searches) * _MOST]:
            yield Proposal("move", (number[move.node],), number[move.source], number[move.target])

    def _merges(self, found: Diagnosis, number: list[int]) -> Iterator[Proposal]:
        for pair in found.confusions(_MOST):
            if pair.child >= found.hierarchy.n_items and pair.rival >= found.hierarchy.n_items:
                yield Proposal("merge", (number[pair.child],), number[pair.parent], number[pair.rival])

    def _removals(self, found: Diagnosis, number: list[int]) -> Iterator[Proposal]:
        parent = self.scored.draft.parent
        for report in found.worst_nodes(_MOST, count_stops=True):
            node = number[report.node]
            below = [child for child in self.scored.seen[node].children if child in self.scored.seen]
            for out in (node, *(below if len(below) <= 4 else ())):
                if parent[out] >= 0:
                    yield Proposal("remove", (out,), parent[out], parent[out])

    def _collapsible(self) -> list[int]:
        """Return the nodes with the largest gain from a collapse, in decreasing order."""
        gains: list[tuple[float, int]] = []
        singletons = self.scored.draft.given.singletons
        for node, arrive in self.scored.arrivals().items():
            seen = self.scored.seen[node]
            if not seen.children or (singletons and len(seen.members) > _SMALL[-1]):
                continue
            if singletons and all(child not in self.scored.seen for child in seen.children):
                continue
            flat = self.scored.as_list(node) if singletons else seen.stop_value
            gain = self.prepared.total(arrive * (flat - seen.value), seen.members)
            if gain > 0:
                gains.append((-gain, node))
        return [node for _, node in sorted(gains)[:_MOST]]

    def _splits(self) -> Iterator[Proposal]:
        """Yield splits of the lists with the largest bound on the gain of halving them."""
        scored, parent = self.scored, self.scored.draft.parent
        bounds: list[tuple[float, int]] = []
        for node, arrive in scored.arrivals().items():
            members = scored.seen[node].members
            m = len(members)
            if parent[node] >= 0 and m >= 4 and not scored.seen[node].children:
                rise = scored.reward((m + 1) // 2) - scored.reward(m)
                bounds.append((-self.prepared.total(arrive, members) * rise, node))
        for _, node in sorted(bounds)[:_MOST]:
            half = scored.halves(node)
            if len(half):
                yield Proposal("split", tuple(half.tolist()), node, len(parent))

    def _wide(self) -> Iterator[Proposal]:
        """Yield edits of many nodes at once."""
        scored, parent = self.scored, self.scored.draft.parent
        levels: dict[int, list[int]] = {}
        for node in scored.seen:
            levels.setdefault(scored.level(node), []).append(node)
        root = scored.draft.given.root
        if "remove-level" in self.limits.kinds:
            for level in sorted(levels)[1:]:
                nodes = tuple(sorted(levels[level]))
                yield Proposal("remove-level", nodes, parent[nodes[0]], parent[nodes[0]])
        if "collapse-below" in self.limits.kinds:
            for size in _SMALL:
                small = sorted(node for node, seen in scored.seen.items() if len(seen.members) < size and node != root)
                if small:
                    yield Proposal("collapse-below", tuple(small), parent[small[0]], parent[small[0]])
