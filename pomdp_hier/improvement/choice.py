"""Edits that a set of items supports: moves by odds, and edits of clusters that other items confirm.

Moves of items come first, the most probable target first. Then the items are divided into two halves. The tree of each
half alone is searched for edits of clusters, without the rows of the other half. The items of the other half confirm
the edits: they influence neither the clusters nor the choice.
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._intervals import welch_interval
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.features.validation import Features
from pomdp_hier.filing.misfiled import misfiled_items
from pomdp_hier.filing.model import FilingModel
from pomdp_hier.filing.result import MisfiledItems
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, prepare
from pomdp_hier.improvement.held_out import fold_of, measured
from pomdp_hier.improvement.incremental import ScoredDraft, Trial
from pomdp_hier.improvement.node_views import HQS, Objective
from pomdp_hier.improvement.result import LEAST_GAIN, HeldOutGain, changes_of
from pomdp_hier.improvement.search import Editor, Limits, Made, Proposal, Search

_FEWEST = 8  # items that are worth two halves
_ENOUGH = 10_000  # held-out items, from which no further fold is measured
_LISTED, _MOST_APART = 0.1, 200  # probability from which a move that is not made is listed, and number of these


@dataclass(frozen=True, eq=False)
class Part:
    """A tree of some of the items, and their rows.

    Attributes:
        prepared: Features, tree and settings of the part.
        items: The number in the whole of each item.
        nodes: The number in the whole of each node.
    """

    prepared: Prepared
    items: Ints
    nodes: Ints


def part_of(prepared: Prepared, items: Ints) -> Part:
    """Return the part of these items, ascending; clusters without any of them are left out.

    Example:
        >>> from pomdp_hier.hqs.inputs import Settings
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> part = part_of(prepare(X, tree, Settings()), np.array([0, 1]))
        >>> part.prepared.hierarchy.to_children(), part.nodes.tolist()
        ([[0, 1], [2]], [0, 1, 4, 6])
    """
    tree = prepared.hierarchy
    kept = np.zeros(tree.n_nodes, dtype=bool)
    kept[items] = True
    for node in tree.topological_order[::-1].tolist():
        if kept[node] and tree.parent[node] >= 0:
            kept[tree.parent[node]] = True
    nodes = np.flatnonzero(kept)
    number = np.full(tree.n_nodes + 1, -1)
    number[nodes] = np.arange(len(nodes))
    parent = number[tree.parent[nodes]]
    order = np.lexsort((tree.levels[nodes], tree.starts[nodes]))
    small = Hierarchy(parent, len(items), order=order, singletons=tree.singletons)
    features = prepared.features
    if isinstance(features, ItemFeatures):
        table = features.table[items]
        features = ItemFeatures(table[:, items] if features.precomputed else table, features.precomputed)
    part = prepare(features, small, prepared.settings, compiled=prepared.compiled, warn=False)
    if prepared.weights is not None and prepared.weights[items].any():
        part = replace(part, weights=prepared.weights[items])
    return Part(part, items, nodes)


@dataclass(frozen=True, eq=False)
class Chosen:
    """An edit with what supports it.

    Attributes:
        proposal: The edit.
        made: Its effect; None if it was not measured.
        probability: The probability that a moved item is misfiled; NaN for clusters.
        target_probability: The probability that it belongs at the target; NaN for clusters.
        held_out: The gain of the items that confirm an edit of clusters.
        reason: Why the edit is not sound, a key of `REASONS`; empty if it is.
    """

    proposal: Proposal
    made: Made | None = None
    probability: float = math.nan
    target_probability: float = math.nan
    held_out: HeldOutGain = field(default_factory=HeldOutGain)
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Problem:
    """What edits are chosen for.

    Attributes:
        prepared: Features, tree and settings.
        limits: What may change.
        keys: See `diagnose`.
        expected_wrong: The expected share of moved items that belong elsewhere.
        sound_only: Whether edits that are not sound are left out.
        confidence: The level of the intervals that confirm edits of clusters.
        random_state: The seed of halves and folds.
        objective: The score that edits raise.
        advance: Called once per trial.
    """

    prepared: Prepared
    limits: Limits
    keys: list[bytes] | None
    expected_wrong: float
    sound_only: bool
    confidence: float
    random_state: int
    objective: Objective = HQS
    advance: Callable[[], object] = lambda: None

    def without(self, items: Bools) -> tuple[Part, "Problem"]:
        """Return the part of the other items, and its problem."""
        part = part_of(self.prepared, np.flatnonzero(~items))
        keys = None if self.keys is None else [self.keys[item] for item in part.items.tolist()]
        limits = self.limits.within(part.nodes.tolist())
        return part, replace(self, prepared=part.prepared, limits=limits, keys=keys)


class Choice:
    """The edits that the items of a tree support.

    Args:
        problem: What they are chosen for.
        exact: Whether rounding is removed after each edit.

    Attributes:
        edits: The applied edits, in order.
        apart: The edits that are not sound and were not applied.
        misfiled: The odds of the items; None where similarities of pairs are all that is known.
    """

    def __init__(self, problem: Problem, *, exact: bool = False) -> None:
        self.edits: list[Chosen] = []
        self.apart: list[Chosen] = []
        self.misfiled: MisfiledItems | None = None
        self._problem, self._prepared, self._limits = problem, problem.prepared, problem.limits
        self._editor = self._edited(problem.limits, exact)

    def _edited(self, limits: Limits, exact: bool = True) -> Editor:
        return Editor(self._prepared, limits, self._problem.objective, self._problem.advance, exact)

    @property
    def full(self) -> bool:
        """Whether the number of edits is at its limit."""
        return self._editor.full

    @property
    def rise(self) -> Floats:
        """The gain of each item by the edits so far ``[N]``; NaN where it is moved by itself."""
        items = np.arange(self._prepared.hierarchy.n_items)
        return _of_others(self._editor.rise, [one.proposal for one in self.edits], items)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the features cannot tell, one sentence each."""
        if self.misfiled is not None:
            return self.misfiled.notes
        if self._rows is None and "move" in self._limits.kinds:
            return ("Similarities of pairs give no odds: no item is moved by itself.",)
        return ()

    @property
    def _rows(self) -> Features | None:
        """The features of the items; None for similarities of pairs."""
        features = self._prepared.features
        return features.table if isinstance(features, ItemFeatures) and not features.precomputed else None

    def run(self, like: FilingModel | None = None, progress: Any = False) -> None:
        """Choose and apply edits.

        Args:
            like: A fitted model of the same kind, from which the fit starts.
            progress: Whether to show the progress of the odds.

        Raises:
            OutOfTimeError: The deadline has passed.
        """
        if "move" in self._limits.kinds and self._rows is not None:
            self._move_items(misfiled_items(self._rows, self._prepared.hierarchy, progress=progress, like=like))
        if self._prepared.hierarchy.n_items >= _FEWEST:
            self._edit_clusters()
        if not self._problem.sound_only:
            waiting, self.apart = self.apart, []
            for one in waiting:
                trial = None if self.full else self._editor.attempt(one.proposal)
                if trial is not None:
                    self._apply(one, trial)

    def _apply(self, one: Chosen, trial: Trial) -> None:
        self._editor.make(one.proposal, trial)
        made = self._editor.made[-1]
        self.edits.append(replace(one, proposal=made.proposal, made=made))

    # ---- moves of items

    def _move_items(self, found: MisfiledItems) -> None:
        """Move the items whose odds suffice, and list the others."""
        self.misfiled = found
        chosen = self._chosen(found.to_move(self._problem.expected_wrong).tolist(), "")
        waiting = chosen
        for _ in range(2):  # what gains nothing at first may gain after the others
            waiting = [one for one in waiting if not self.full and self._gains(one)]
        self.apart += [replace(one, reason="gain") for one in waiting]
        if found.status == "interrupted":
            raise KeyboardInterrupt
        likely = found.order[found.probabilities[found.order] >= _LISTED]
        others = np.setdiff1d(likely, [one.proposal.nodes[0] for one in chosen])
        ranked = likely[np.isin(likely, others)]
        self.apart += self._chosen(ranked[:_MOST_APART].tolist(), "odds" if found.informative else "features")

    def _gains(self, one: Chosen) -> bool:
        """Apply a move, and return whether it is allowed but gains nothing."""
        trial = self._editor.attempt(one.proposal)
        if trial is None:
            return False
        if self._editor.gain(trial) < LEAST_GAIN:
            return True
        self._apply(one, trial)
        return False

    def _chosen(self, items: Iterable[int], reason: str) -> list[Chosen]:
        parent, found = self._prepared.hierarchy.parent, self.misfiled
        assert found is not None
        return [
            Chosen(
                Proposal("move", (item,), int(parent[item]), int(found.targets[item])),
                probability=float(found.probabilities[item]),
                target_probability=float(found.target_probabilities[item]),
                reason=reason,
            )
            for item in items
            if found.targets[item] >= 0
        ]

    # ---- edits of clusters

    def _edit_clusters(self) -> None:
        """Search each half, and let the other one confirm what is found."""
        tree, number = self._editor.scored.current()
        half = fold_of(tree.starts[: tree.n_items], 2, self._problem.random_state) == 1
        limits = replace(self._limits.within(number), max_edits=None)
        now = replace(self._problem, prepared=self._prepared.on(tree), limits=limits)
        found: list[tuple[Part, list[Made]]] = []
        keys: list[set[tuple[object, ...]]] = []
        for others in (half, ~half):
            part, problem = now.without(others)
            search = Search(part.prepared, problem.limits, problem.objective, problem.advance, keys=problem.keys)
            search.run()
            part = replace(part, nodes=np.array(number)[part.nodes])
            found.append((part, search.made))
            keys.append({_key(one.proposal, part.nodes) for one in search.made})
        for (part, made), others in zip(found, (half, ~half), strict=True):
            self._confirm(part, made, others, keys[0] & keys[1])

    def _confirm(self, part: Part, made: list[Made], others: Bools, twice: set[tuple[object, ...]]) -> None:
        """Apply the edits found in a part that gain for the others, or, if found twice, for all."""
        moved = {one.proposal.nodes[0] for one in self.edits if one.proposal.kind == "move"}
        for proposal in translated(self._editor.scored, part, [one.proposal for one in made], spared=moved):
            trial = None if self.full else self._editor.attempt(proposal)
            if trial is None or self._editor.gain(trial) < LEAST_GAIN:
                continue
            rise = np.zeros(len(others))
            rise[trial.items] = trial.rise
            counts = np.ones(len(others), dtype=bool) if tuple(proposal) in twice else others
            weights = None if self._prepared.weights is None else self._prepared.weights[counts]
            level = max(2 * self._problem.confidence - 1, 0.5)  # its lower end is a bound at the confidence level
            one = Chosen(proposal, held_out=measured(rise[counts], level, weights))
            reason = "held-out" if not one.held_out.confirmed else "" if self._belongs(proposal, level) else "place"
            if not reason:
                self._apply(one, trial)
            elif proposal[:2] not in {known.proposal[:2] for known in self.apart}:
                self.apart.append(replace(one, reason=reason))

    def _belongs(self, proposal: Proposal, level: float) -> bool:
        """Return whether the items of a moved or merged cluster are more similar to those at its target.

        Its items, those at the source and those at the target are three samples. A few items may have something in
        common with the cluster as an accident.
        """
        kind, (node, *_), source, target = proposal
        if kind not in ("move", "merge"):
            return True
        more, *others = self._editor.scored.closer(node, source, target)
        return not len(more) or welch_interval(float(more.mean()), (more, *others), level)[0] > 0

    # ---- the end

    def settle(self) -> None:
        """Move each item at once to where the edits of clusters carry it, so that no node moves twice."""
        tree = self._prepared.hierarchy
        draft = Draft(tree)
        for one in self.edits:
            draft.apply(changes_of(draft, *one.proposal))
        edits, self.edits = self.edits, []
        ends = [draft.parent[one.proposal.nodes[0]] for one in edits]
        net = [
            replace(one, proposal=one.proposal._replace(target=end))
            if one.proposal.nodes[0] < tree.n_items and one.proposal.kind == "move" and end < tree.n_nodes
            else one
            for one, end in zip(edits, ends, strict=True)
        ]
        if [one.proposal for one in net] == [one.proposal for one in edits]:
            self.edits = edits
            return
        self._editor = self._edited(replace(self._limits, deadline=math.inf))
        for one in net:
            trial = self._editor.attempt(one.proposal)
            if trial is not None and (one.reason or self._editor.gain(trial) >= LEAST_GAIN):
                self._apply(one, trial)

    def price(self) -> None:
        """Add to the edits that were not applied the gain of each after those that were."""
        editor, apart = self._editor, []
        editor.limits = replace(self._limits, max_edits=None)
        for one in self.apart:
            trial = editor.attempt(one.proposal)
            if trial is not None:
                apart.append(replace(one, made=editor.effect(one.proposal, trial)))
        self.apart = apart


def translated(
    scored: ScoredDraft, part: Part, proposals: Iterable[Proposal], spared: Container[int] = ()
) -> Iterator[Proposal]:
    """Yield edits of a part in the numbers of the whole; the caller applies each before the next.

    Args:
        scored: The draft of the whole.
        part: The part.
        proposals: The edits of the part.
        spared: Items that no split moves.
    """
    number = dict(enumerate(part.nodes.tolist()))
    for kind, nodes, source, target in proposals:
        ends = (source,) if kind == "split" else (source, target)
        if any(node not in number for node in (*nodes, *ends)):
            continue  # in a cluster whose split was not applied
        whole, new = tuple(number[node] for node in nodes), len(scored.draft.parent)
        if kind == "split":
            whole = _with_others(scored, part, number[source], [item for item in whole if item not in spared], spared)
            if not whole:
                continue
        yield Proposal(kind, whole, number[source], new if kind == "split" else number[target])
        if kind == "split" and len(scored.draft.parent) > new:
            number[target] = new


def _with_others(
    scored: ScoredDraft, part: Part, node: int, mine: list[int], spared: Container[int]
) -> tuple[int, ...]:
    """Return a side of a split with the other items that are more similar to it; empty for none."""
    members = scored.seen[node].members if node in scored.seen else np.empty(0, dtype=np.int64)
    known = np.intersect1d(members, part.items)
    chosen = np.intersect1d(known, mine)
    if not 0 < len(chosen) < len(known):
        return ()
    others = np.array([item for item in np.setdiff1d(members, known).tolist() if item not in spared], dtype=np.int64)
    return tuple(np.sort(np.concatenate([chosen, scored.joining(node, chosen, others)])).tolist())


def _key(proposal: Proposal, nodes: Ints) -> tuple[object, ...]:
    """Return an edit of a part in the numbers of the whole; those of new clusters mean nothing."""
    kind, own, source, target = proposal
    number = dict(enumerate(nodes.tolist()))
    return kind, tuple(number.get(node) for node in own), number.get(source), number.get(target)


def rises_by(base: ScoredDraft, part: Part, proposals: list[Proposal]) -> Floats:
    """Return the gain of each item of the whole by the edits chosen in a part ``[N]``.

    Args:
        base: The scored tree of the whole.
        part: The part.
        proposals: Its edits.
    """
    scored = base.copy()
    moves: dict[int, int] = {}  # those of items come first, and are applied at once
    for kind, nodes, _, target in proposals:
        if kind != "move" or nodes[0] >= len(part.items):
            break
        moves[int(part.nodes[nodes[0]])] = int(part.nodes[target])
    if moves:
        scored.apply(scored.trial(moves, anew=True))
    for proposal in translated(scored, part, proposals[len(moves) :]):
        scored.apply(scored.trial(changes_of(scored.draft, *proposal), anew=True))
    return scored.values - base.values


def _of_others(rise: Floats, proposals: Iterable[Proposal], items: Ints) -> Floats:
    """Return the gain of each item ``[N]``, and NaN where it is moved by itself.

    Args:
        rise: The gain of each item ``[N]``.
        proposals: The edits, in the numbers of a part.
        items: The number in the whole of each item of the part.
    """
    by_itself = [items[nodes[0]] for kind, nodes, *_ in proposals if kind == "move" and nodes[0] < len(items)]
    others = rise.copy()
    others[by_itself] = np.nan
    return others


def held_out_rises(
    problem: Problem, base: ScoredDraft, folds: int, like: FilingModel | None
) -> Iterator[tuple[Ints, Floats]]:
    """Yield the items of each fold, and the gain of each item ``[N]`` by the edits chosen without the fold.

    The gain is NaN where an item is moved by itself. No item of the fold is. The folds end when enough items were held
    out.

    Args:
        problem: What edits are chosen for.
        base: The scored tree.
        folds: The number of folds.
        like: The model of all items, from which the fits start.
    """
    tree = problem.prepared.hierarchy
    fold, count = fold_of(tree.starts[: tree.n_items], folds, problem.random_state), 0
    for number in np.unique(fold).tolist():
        held = fold == number
        part, rest = problem.without(held)
        choice = Choice(rest)
        choice.run(like)
        proposals = [one.proposal for one in choice.edits]
        yield np.flatnonzero(held), _of_others(rises_by(base, part, proposals), proposals, part.items)
        count += int(held.sum())
        if count >= _ENOUGH:
            return
