"""A patient search for edits that raise the score: rounds of proposals, each tried exactly, the best made first.

A round looks where searchers get lost in the tree as it is, proposes edits, tries each, and makes those that gain in
the order of their gains, each tried again after those before it. First things are put in their places, those whose
searchers are lost before those whose searchers would be if they went on; where no move gains, clusters are changed, and
then many of them at once; and after each change that gains, things are put in their places again.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pomdp_hier._arrays import Bools, Floats, Ints
from pomdp_hier.analysis.diagnosis import Diagnosis, diagnose
from pomdp_hier.analysis.moves import candidate_moves
from pomdp_hier.errors import ParameterError
from pomdp_hier.hqs.inputs import Prepared
from pomdp_hier.improvement.edits import KINDS, changes_of
from pomdp_hier.improvement.incremental import ScoredDraft, Trial

_ITEM_MOVES, _OTHERS = 256, 32  # proposals of a round
_TOGETHER = 64  # of them are tried before those that gain are made, so that there is a better tree soon
_LEAST = 1e-10  # of gain: less is rounding
_SETTLE = "settle"  # moves of what would be lost if its search went on to the end
_STEPS = (("move",), (_SETTLE,), ("merge", "split", "remove", "collapse"), ("remove-level", "collapse-below"))
_SMALL = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # sizes below which clusters may be taken out


class Proposal(NamedTuple):
    """An edit that may gain; see `Edit`."""

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
        max_edits: How many edits at most.
        max_loss: How much less any item's search may be worth than in the tree that was given.
        deadline: When to stop, by `time.monotonic`.
    """

    kinds: tuple[str, ...] = KINDS
    fixed: frozenset[int] = frozenset()
    max_edits: int | None = None
    max_loss: float | None = None
    deadline: float = float("inf")


@dataclass(frozen=True, eq=False)
class Made:
    """An edit that was made, and by how much it changed what each item's search is worth."""

    proposal: Proposal
    moved: int
    items: Ints
    rise: Floats


class _OutOfTimeError(Exception):
    """The deadline is over."""


@dataclass(eq=False)
class Search:
    """A search for edits.

    Attributes:
        scored: The draft, which the search edits.
        prepared: Features, tree and settings.
        limits: What may change.
        keys: See `diagnose`.
        voters: Which items' values count ``[N]``; all of them by default.
        advance: Told of every trial.
        made: The edits so far.
    """

    scored: ScoredDraft
    prepared: Prepared
    limits: Limits
    keys: list[bytes] | None = None
    voters: Bools | None = None
    advance: Callable[[], object] = lambda: None
    made: list[Made] = field(default_factory=list)

    def run(self) -> str:
        """Make edits until nothing gains, or the limits are reached, and return which of these it was."""
        self._given = self.scored.values.copy()
        try:
            step = 0
            while step < len(_STEPS):
                before = len(self.made)
                proposals = list(dict.fromkeys(self._proposals(_STEPS[step])))
                for low in range(0, len(proposals), _TOGETHER):
                    self._round(proposals[low : low + _TOGETHER])
                    if self._full:
                        return "max_edits"
                if self._full:
                    return "max_edits"
                step = 0 if len(self.made) > before else step + 1
            return "converged"
        except _OutOfTimeError:
            return "time"
        except KeyboardInterrupt:
            return "interrupted"

    @property
    def _full(self) -> bool:
        return self.limits.max_edits is not None and len(self.made) >= self.limits.max_edits

    def _round(self, proposals: list[Proposal]) -> None:
        """Try all proposals, and make those that gain, the best first, each tried again after those before it."""
        tried = [
            (-gain, at)
            for at, one in enumerate(proposals)
            if (trial := self._try(one)) is not None and (gain := self._gain(trial)) > _LEAST
        ]
        for _, at in sorted(tried):
            if self._full:
                return
            again = self._try(proposals[at])
            if again is not None and self._gain(again) > _LEAST:
                self._make(proposals[at], again)

    def _make(self, proposal: Proposal, trial: Trial) -> None:
        moved = sum(
            1 if node < self.prepared.hierarchy.n_items else len(self.scored.seen[node].members)
            for node in trial.changes
            if node in self.scored.seen or node < self.prepared.hierarchy.n_items
        )
        if proposal.kind == "split":  # other splits may have been made since it was proposed
            proposal = proposal._replace(target=len(self.scored.draft.parent))
        trial = self.scored.apply(trial.changes)
        self.made.append(Made(proposal, moved, trial.items, trial.rise))

    def _gain(self, trial: Trial) -> float:
        rise = trial.rise if self.voters is None else trial.rise[self.voters[trial.items]]
        return float(rise.sum()) / self.prepared.hierarchy.n_items

    def _try(self, proposal: Proposal) -> Trial | None:
        """Return what an edit would do; None if it cannot be made, or may not."""
        if time.monotonic() > self.limits.deadline:
            raise _OutOfTimeError
        self.advance()
        draft, fixed = self.scored.draft, self.limits.fixed
        try:
            changes = changes_of(draft, *proposal)
        except ParameterError:  # an edit before this one has changed what it is about
            return None
        if not fixed.isdisjoint(changes) or (proposal.kind == "split" and proposal.source in fixed):
            return None
        trial = self.scored.trial(changes)
        if any(seen is None and node in fixed for node, seen in trial.fresh.items()):
            return None
        if self.limits.max_loss is not None and len(trial.items):
            after = self.scored.values[trial.items] + trial.rise
            if (after < self._given[trial.items] - self.limits.max_loss).any():
                return None
        return trial

    # ---- what to try

    def _proposals(self, kinds: tuple[str, ...]) -> Iterator[Proposal]:
        """Yield edits of these kinds, as far as they are allowed, that may gain in the tree as it is."""
        tree = self.scored.draft.tree()
        wanted = set(kinds).intersection(self.limits.kinds)
        if _SETTLE in kinds and "move" in self.limits.kinds:
            wanted = {"move"}
        if wanted & {"move", "merge", "remove"}:
            prepared = self.prepared.on(tree)
            prepared = prepared.under(policy="descend") if _SETTLE in kinds else prepared
            settings = {name: getattr(prepared.settings, name) for name in prepared.settings.__dataclass_fields__}
            found = diagnose(prepared.features, tree, duplicates=self.keys, **settings)
            number = [
                node for node in range(len(self.scored.draft.parent)) if node < tree.n_items or node in self.scored.seen
            ]  # of the tree that was given, by the number in the tree as it is
            if "move" in wanted:
                yield from self._moves(prepared, found, number)
            if "merge" in wanted:
                yield from self._merges(found, number)
            if "remove" in wanted:
                yield from self._taken_out(found, number)
        if "collapse" in wanted:
            yield from (Proposal("collapse", (node,), node, node) for node in self._collapsible())
        if "split" in wanted:
            yield from self._splits()
        if wanted & {"remove-level", "collapse-below"}:
            yield from self._wide()

    def _merges(self, found: Diagnosis, number: list[int]) -> Iterator[Proposal]:
        for pair in found.confusions(_OTHERS):
            if pair.child >= found.hierarchy.n_items and pair.rival >= found.hierarchy.n_items:
                yield Proposal("merge", (number[pair.child],), number[pair.parent], number[pair.rival])

    def _moves(self, prepared: Prepared, found: Diagnosis, number: list[int]) -> Iterator[Proposal]:
        left = {True: _ITEM_MOVES, False: 2 * _OTHERS}  # of single items, and of clusters
        for move in candidate_moves(prepared, found, 4 * _OTHERS, self.voters):
            left[move.n_items == 1] -= 1
            if left[move.n_items == 1] >= 0:
                yield Proposal("move", (number[move.node],), number[move.source], number[move.target])

    def _taken_out(self, found: Diagnosis, number: list[int]) -> Iterator[Proposal]:
        parent = self.scored.draft.parent
        for report in found.worst_nodes(_OTHERS, count_stops=True):
            node = number[report.node]
            below = [child for child in self.scored.seen[node].children if child in self.scored.seen]
            for out in (node, *(below if len(below) <= 4 else ())):
                if parent[out] >= 0:
                    yield Proposal("remove", (out,), parent[out], parent[out])

    def _collapsible(self) -> list[int]:
        """Return the nodes whose items gain most from being one list, by what they would gain."""
        gains: list[tuple[float, int]] = []
        singletons = self.scored.draft.given.singletons
        for node, arrive in self.scored.arrivals().items():
            seen = self.scored.seen[node]
            if not seen.children or (singletons and len(seen.members) > _SMALL[-1]):
                continue
            if singletons and all(child not in self.scored.seen for child in seen.children):
                continue
            flat = self.scored.as_list(node) if singletons else seen.worth
            counted = arrive if self.voters is None else arrive * self.voters[seen.members]
            gain = float((counted * (flat - seen.value)).sum())
            if gain > _LEAST:
                gains.append((-gain, node))
        return [node for _, node in sorted(gains)[:_OTHERS]]

    def _splits(self) -> Iterator[Proposal]:
        """Yield the lists whose items would gain most if half of their size were worth as much as it could be."""
        scored, parent = self.scored, self.scored.draft.parent
        room: list[tuple[float, int]] = []
        for node, arrive in scored.arrivals().items():
            m = len(scored.seen[node].members)
            if parent[node] >= 0 and m >= 4 and not scored.seen[node].children:
                room.append((-float(arrive.sum()) * (scored.worth((m + 1) // 2) - scored.worth(m)), node))
        for _, node in sorted(room)[:_OTHERS]:
            half = scored.halves(node)
            if len(half):
                yield Proposal("split", tuple(half.tolist()), node, len(parent))

    def _wide(self) -> Iterator[Proposal]:
        """Yield the edits of many nodes at once."""
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
