"""Edits as data, the trees they make, and the results of `improve`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pomdp_hier._text import brief, counted
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.editing import Draft, Parents
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames, id_texts
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.result import ItemScores

KINDS: tuple[str, ...] = ("move", "merge", "split", "remove", "remove-level", "collapse", "collapse-below")
REMOVING = frozenset(KINDS[3:])
"""The kinds of edits that remove levels."""
LEAST_GAIN = 1e-6
"""The smallest gain of the score for which a tree is edited."""
REASONS = {
    "odds": "not probable enough to move",
    "features": "the features say next to nothing about the tree",
    "gain": f"the score gains less than {LEAST_GAIN:g}",
    "held-out": "not confirmed on held-out items",
    "place": "its items are not more similar to those at the target",
}
"""Why an edit is not sound."""
BREADTH = "does not charge for breadth: fewer levels and longer lists can score higher and help nobody."
_MOST_NAMED = 5
_NOT_KNOWN = (math.nan, math.nan)


@dataclass(frozen=True)
class HeldOutGain:
    """A gain measured on held-out items.

    Attributes:
        gain: The mean gain of these items, in units of the score; NaN without held-out items.
        interval: The confidence interval of that mean. It does not allow for rare losses that none of these items has.
        n_items: The number of held-out items.

    Example:
        >>> HeldOutGain(0.01, (0.004, 0.016), 100).confirmed, HeldOutGain(0.01, (0.0, 0.02), 100).confirmed
        (True, False)
    """

    gain: float = math.nan
    interval: tuple[float, float] = _NOT_KNOWN
    n_items: int = 0

    @property
    def confirmed(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.interval[0] > 0


@dataclass(frozen=True)
class Edit:
    """One edit; nodes are numbers in the given tree.

    Attributes:
        kind: ``"move"``, ``"merge"``, ``"split"``, ``"remove"``, ``"remove-level"``, ``"collapse"`` or
            ``"collapse-below"``.
        nodes: The nodes that are moved, merged into the target, removed or collapsed; for a split, those that move to
            the new cluster.
        source: Their parent before; for a split, the cluster that is split; for a collapse, the cluster itself.
        target: The parent of the nodes, or of their children, after the edit.
        n_items: The number of items whose place changes.
        gain: The exact gain of the score, given the edits before.
        n_improved: The number of items with a higher value.
        n_worsened: The number of items with a lower value.
        most_improved: The items with the largest gains, each with its gain.
        most_worsened: The items with the largest losses, each with its loss, a negative number.
        names: The names of the nodes, the source and the target.
        held_out: For clusters: the gain of the items that did not influence the edit, half of all or, if both halves
            found it, all. The lower end of its interval is a one-sided bound at the confidence level.
        probability: For items: the probability that it is misfiled; NaN for clusters. See `find_misfiled`.
        target_probability: For items: the probability that it belongs at the target; NaN for clusters.
        flattens: Whether it removes a level of choices and makes a longer list.
        reason: Why the edit is not sound, a key of `REASONS`; empty for a sound edit.

    Example:
        >>> str(Edit("move", (5,), 6, 7, 1, 0.2, names=("snow boots", "coats", "shoes")))
        'move snow boots from coats to shoes'
    """

    kind: str
    nodes: tuple[int, ...]
    source: int
    target: int
    n_items: int
    gain: float
    n_improved: int = 0
    n_worsened: int = 0
    most_improved: tuple[tuple[int, float], ...] = ()
    most_worsened: tuple[tuple[int, float], ...] = ()
    names: tuple[str, str, str] = ("", "", "")
    held_out: HeldOutGain = field(default_factory=HeldOutGain)
    probability: float = math.nan
    target_probability: float = math.nan
    flattens: bool = False
    reason: str = ""

    @property
    def sound(self) -> bool:
        """Whether the score gains, and the odds of the item, or held-out items and similarities, support the edit."""
        return not self.reason

    @property
    def support(self) -> str:
        """The evidence for the edit, or the reason why it is not sound, as text."""
        low, high = self.held_out.interval
        parts = []
        if not math.isnan(self.probability):
            parts.append(f"P(misfiled) {self.probability:z.3f}, P(target) {self.target_probability:z.3f}")
        if self.held_out.n_items:
            parts.append(f"held out {self.held_out.gain:+z.5f} ({low:+z.5f} to {high:+z.5f})")
        if self.flattens:
            parts.append("flattens the tree")
        if self.reason:
            parts.append(REASONS[self.reason])
        return "; ".join(parts)

    def __str__(self) -> str:
        nodes, source, target = self.names
        if self.kind == "move":
            return f"move {nodes} from {source} to {target}"
        if self.kind == "merge":
            return f"merge {nodes} into {target}"
        if self.kind == "split":
            return f"split {source}: {nodes} become a new cluster"
        return f"{self.kind} {nodes}"


@dataclass(frozen=True, eq=False)
class Improvement:
    """A better tree and the edits that lead to it.

    Attributes:
        hierarchy: The given tree.
        tree: The better tree.
        edits: The edits, in order.
        apart: Edits that are not sound and were not made, each with its gain after the edits made.
        before: The score of the given tree, under the objective.
        after: The score of the better tree.
        held_out: The gain of held-out items, over all folds. The edits of a fold are chosen without its items and do
            not move them by themselves.
        upper_bound: The upper bound of the score of every tree over the items.
        status: The reason for the end of the search: ``"converged"``, ``"max_edits"``, ``"time"`` or
            ``"interrupted"``.
        notes: The limits of the features, one sentence each; see `find_misfiled`.

    Example:
        >>> from pomdp_hier import improve
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> better = improve(X, tree, folds=0, delta=0.1)
        >>> [str(edit) for edit in better.edits], better.status
        (['move item 5 from node 6 to node 7'], 'converged')
    """

    hierarchy: Hierarchy
    tree: Hierarchy
    edits: tuple[Edit, ...]
    apart: tuple[Edit, ...]
    before: ItemScores
    after: ItemScores
    held_out: HeldOutGain
    upper_bound: float
    status: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        low, high = self.held_out.interval
        held = f", held out {self.held_out.gain:+z.4f} [{low:z.4f}, {high:z.4f}]" if self.held_out.n_items else ""
        scores = f"{self.before.score:z.6f} -> {self.after.score:z.6f} by {counted(len(self.edits), 'edit')}"
        return f"Improvement(score {scores}{held}, {brief(self.status)})"

    @property
    def gain(self) -> float:
        """The gain of the score on all items."""
        return self.after.score - self.before.score

    @property
    def label_cost(self) -> float | None:
        """The cost of reading a label, where the objective is the search length; None for HQS."""
        return self.before.config.get("label_cost")

    @property
    def score_name(self) -> str:
        """The name of the score that the edits raise."""
        if self.label_cost is None:
            return "HQS"
        return "search length score" + (f" with label cost {self.label_cost:g}" if self.label_cost else "")

    def renamed(self, names: Any) -> "Improvement":
        """Return the same result with these names of nodes in the edits; see `NodeNames`."""
        called = NodeNames(self.hierarchy, names, in_words=True)
        made, apart = (
            tuple(replace(edit, names=names_of(edit, called)) for edit in edits) for edits in (self.edits, self.apart)
        )
        return replace(self, edits=made, apart=apart)

    def sentences(self) -> list[str]:
        """Return the scores, the promised and the held-out gain, the support of the edits, and the status, as text."""
        low, high = self.held_out.interval
        held = "not measured on held-out items"
        if self.held_out.n_items and low == high == 0:
            held = "no held-out item gains or loses"
        elif self.held_out.n_items:
            held = f"{self.held_out.gain:+z.4f} ({low:+z.4f} to {high:+z.4f}) on held-out items"
        scores = f"{self.before.score:z.4f} -> {self.after.score:z.4f} by {counted(len(self.edits), 'edit')}"
        lines = [f"{self.score_name} {scores}: {self.gain:+z.4f} on all items, {held}"]
        right = [edit.target_probability for edit in self.edits if not math.isnan(edit.target_probability)]
        if right:
            wrong = 1.0 - sum(right) / len(right)
            lines.append(f"{counted(len(right), 'item')} moved; expected share of moves to a wrong place {wrong:z.1%}")
        still = sum(edit.reason == "gain" for edit in self.apart)
        if still:
            lines.append(
                f"{counted(still, 'item')} to be moved by the odds, but {REASONS['gain']}: "
                "listed apart."
                + (" HQS does not see a move below the node where the searchers stop." * (self.label_cost is None))
            )
        flat = sum(edit.flattens for edit in self.edits)
        if flat:
            lines.append(f"{counted(flat, 'edit')} flatten{'s' if flat == 1 else ''} the tree.")
            if not self.label_cost:
                scored = "HQS" if self.label_cost is None else "The search length without label cost"
                lines[-1] += f" {scored} {BREADTH}"
        lines += self.notes
        lines.append(f"upper bound for every tree over these items: {self.upper_bound:z.4f}")
        reasons = {
            "max_edits": "at the limit of edits",
            "time": "at the time limit",
            "interrupted": "when interrupted",
        }
        if self.status in reasons:
            lines.append(f"the search ended {reasons[self.status]}: further edits may exist")
        return lines

    def summary(self, limit: int = 10) -> str:
        """Return the scores, the first edits, and the first of those that are not sound, as text.

        Args:
            limit: The largest number of edits of either list.
        """
        lines = [*self.sentences(), *_lines(self.edits, limit)]
        if self.apart:
            lines.append(f"not made, as they are not sound: {counted(len(self.apart), 'edit')}")
            lines += _lines(self.apart, limit)
        return "\n".join(lines)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row per edit, with the keys `COLUMNS`; those that were not made come last."""
        called = id_texts(self.hierarchy)
        edits = [*self.edits, *self.apart]
        return [
            dict(zip(COLUMNS, _row(at, edit, at <= len(self.edits), called), strict=True))
            for at, edit in enumerate(edits, start=1)
        ]


def _lines(edits: Sequence[Edit], limit: int) -> list[str]:
    shown = []
    for at, edit in enumerate(edits[:limit], start=1):
        support = f" ({edit.support})" if edit.support else ""
        gain = "gain not measured:" if math.isnan(edit.gain) else f"{edit.gain:+z.6f}"
        shown.append(f"{at:>3}. {gain} {edit}{support}")
    return shown if len(edits) <= limit else [*shown, f"     and {len(edits) - limit:,} more"]


COLUMNS = (
    *("step", "kind", "node_names", "source_name", "target_name", "n_items", "gain"),
    *("probability", "target_probability", "held_out_gain", "held_out_ci_low", "held_out_ci_high"),
    *("made", "decision", "note", "reason", "flattens", "n_improved", "n_worsened", "largest_loss"),
    *("node_ids", "source_id", "target_id"),
)
"""The columns of a table of edits; the last three are the ids of all nodes named before.

``decision`` and ``note`` are empty, for the owner of the tree: accept or reject.
"""


def _row(at: int, edit: Edit, made: bool, ids: Sequence[str]) -> tuple[Any, ...]:
    held = edit.held_out

    def text(*nodes: int) -> str:
        return "; ".join(ids[node] if node < len(ids) else f"new {node}" for node in nodes)

    return (
        *(at, edit.kind, *edit.names, edit.n_items, edit.gain),
        *(edit.probability, edit.target_probability, held.gain, *held.interval),
        *(made, "", "", edit.reason, edit.flattens),
        *(edit.n_improved, edit.n_worsened, min((loss for _, loss in edit.most_worsened), default=0.0)),
        *(text(*edit.nodes), text(edit.source), text(edit.target)),
    )


def names_of(edit: Edit, called: Sequence[str]) -> tuple[str, str, str]:
    """Return the names of the nodes, the source and the target of an edit; new clusters are unnamed.

    Example:
        >>> names_of(Edit("split", (0, 1), 3, 5, 2, 0.1), ["ant", "bee", "cat", "insects", "all"])
        ('ant, bee', 'insects', 'a new cluster')
        >>> names_of(Edit("move", (5,), 6, 3, 2, 0.1), ["ant", "bee", "cat", "insects", "all"])
        ('a new cluster', 'a new cluster', 'insects')
    """
    names = [called[node] if node < len(called) else "a new cluster" for node in (*edit.nodes[:_MOST_NAMED],)]
    more = [f"and {len(edit.nodes) - _MOST_NAMED} more"] if len(edit.nodes) > _MOST_NAMED else []
    source, target = (called[node] if node < len(called) else "a new cluster" for node in (edit.source, edit.target))
    return ", ".join([*names, *more]), source, target


def apply_edits(hierarchy: Hierarchy, edits: Iterable[Edit]) -> Hierarchy:
    """Return the hierarchy after the edits, made in the given order.

    Edits refer to nodes by their numbers in the given tree. Nodes keep their names. Empty clusters are removed from the
    result, and its later nodes are renumbered.

    Args:
        hierarchy: The tree.
        edits: Edits from `improve` for this tree, or some of them in the same order.

    Raises:
        ParameterError: An edit is impossible: its node does not exist, or it removes the root.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> apply_edits(tree, [Edit("merge", (5,), 6, 4, 2, 0.0)]).to_children()
        [[0, 1, 2, 3], [4]]
    """
    require_hierarchy(hierarchy)
    draft = Draft(hierarchy)
    for edit in edits:
        if not isinstance(edit, Edit):
            raise ParameterError(f"edits: got {brief(edit)}; expected edits from improve(X, hierarchy).edits.")
        draft.apply(changes_of(draft, edit.kind, edit.nodes, edit.source, edit.target))
    return draft.tree()


def changes_of(draft: Draft[Hierarchy], kind: str, nodes: Iterable[int], source: int, target: int) -> Parents:
    """Return the new parents of nodes under an edit.

    Raises:
        ParameterError: The edit is impossible.
    """
    if kind == "move":
        changes: Parents = {}
        for node in nodes:
            changes |= draft.moved(node, target)
        return changes
    if kind == "merge":
        return draft.merged(nodes, target)
    if kind == "split":
        return draft.parted(source, nodes)
    if kind == "collapse":
        changes = {}
        for node in nodes:
            changes |= draft.collapsed(node)
        return changes
    if kind in ("remove", "remove-level", "collapse-below"):
        return draft.without(nodes)
    raise ParameterError(f"kind: got {brief(kind)}; expected {', '.join(map(repr, KINDS))}.")
