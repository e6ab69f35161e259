"""Greedy search for edits that raise the score: rounds of proposals, each scored exactly, the best applied first.

A round diagnoses the current tree, proposes edits, scores each, and applies those with a gain in the order of their
gains, each scored again after those before it. Moves come first: of lost items, then of items that would be lost if
their search went on to a leaf. Where moves do not gain, clusters are edited, and then many clusters at once. After each
such edit with a gain, moves are tried again.
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
from pomdp_hier.improvement.incremental import ScoredDraft, Trial
from pomdp_hier.improvement.result import KINDS, changes_of

_ITEM_MOVES, _OTHERS = 256, 32  # proposals per round
_TOGETHER = 64  # proposals scored before the first are applied
_LEAST = 1e-10  # smaller gains are rounding
_SETTLE = "settle"  # moves of items that would be lost if their search went on to a leaf
_STEPS = (("move",), (_SETTLE,), ("merge", "split", "remove", "collapse"), ("remove-level", "collapse-below"))
_SMALL = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # sizes below which clusters may be collapsed


class Proposal(NamedTuple):
    """A proposed edit; see `Edit`."""

    kind: str
    nodes: tuple[int, ...]
    source: int
    target: int


@dataclass(frozen=True)
class Limits:
    """Limits of the search.

    Attributes:
        kinds: The kinds of edits.
        fixed: Nodes that keep their parent and at least one item.
        max_edits: The largest number of edits.
        max_loss: The largest loss of value of any item, compared with the given tree.
        deadline: The end of the search, by `time.monotonic`.
    """

    kinds: tuple[str, ...] = KINDS
    fixed: frozenset[int] = frozenset()
    max_edits: int | None = None
    max_loss: float | None = None
    deadline: float = float("inf")


@dataclass(frozen=True, eq=False)
class Made:
    """An applied edit, and the change of the value of each item."""

    proposal: Proposal
    moved: int
    items: Ints
    rise: Floats


class _OutOfTimeError(Exception):
    """The deadline has passed."""


@dataclass(eq=False)
class Search:
    """A search for edits.

    Attributes:
        scored: The draft, which the search edits.
        prepared: Features, tree and settings.
        limits: What may change.
        keys: See `diagnose`.
        voters: Whether the value of each item counts ``[N]``; all by default.
        advance: Called once per trial.
        made: The applied edits.
    """

    scored: ScoredDraft
    prepared: Prepared
    limits: Limits
    keys: list[bytes] | None = None
    voters: Bools | None = None
    advance: Callable[[], object] = lambda: None
    made: list[Made] = field(default_factory=list)

    def run(self) -> str:
        """Apply edits until convergence or a limit, and return the status."""
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
        """Score all proposals, and apply those with a gain, the best first, each scored again."""
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
        """Return the trial of an edit; None if the edit is impossible or not allowed."""
        if time.monotonic() > self.limits.deadline:
            raise _OutOfTimeError
        self.advance()
        draft, fixed = self.scored.draft, self.limits.fixed
        try:
            changes = changes_of(draft, *proposal)
        except ParameterError:  # an earlier edit changed these nodes
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

    # ---- proposals

    def _proposals(self, kinds: tuple[str, ...]) -> Iterator[Proposal]:
        """Yield the allowed edits of these kinds that may gain in the current tree."""
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
            ]  # the number in the given tree, by the number in the current one
            if "move" in wanted:
                yield from self._moves(prepared, found, number)
            if "merge" in wanted:
                yield from self._merges(found, number)
            if "remove" in wanted:
                yield from self._removals(found, number)
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

    def _removals(self, found: Diagnosis, number: list[int]) -> Iterator[Proposal]:
        parent = self.scored.draft.parent
        for report in found.worst_nodes(_OTHERS, count_stops=True):
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
            counted = arrive if self.voters is None else arrive * self.voters[seen.members]
            gain = float((counted * (flat - seen.value)).sum())
            if gain > _LEAST:
                gains.append((-gain, node))
        return [node for _, node in sorted(gains)[:_OTHERS]]

    def _splits(self) -> Iterator[Proposal]:
        """Yield splits of the lists with the largest bound on the gain of halving them."""
        scored, parent = self.scored, self.scored.draft.parent
        room: list[tuple[float, int]] = []
        for node, arrive in scored.arrivals().items():
            m = len(scored.seen[node].members)
            if parent[node] >= 0 and m >= 4 and not scored.seen[node].children:
                room.append((-float(arrive.sum()) * (scored.reward((m + 1) // 2) - scored.reward(m)), node))
        for _, node in sorted(room)[:_OTHERS]:
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
