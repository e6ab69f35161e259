"""What `improve` returns: a better tree, the edits that lead to it, and what they are worth on the rest."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pomdp_hier._text import brief, counted
from pomdp_hier.hierarchy.node_names import NodeNames, label_text
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.result import HQSResult

_MOST_NAMED = 5
_CEILINGS = {
    "collapse": "the best that collapsing clusters of the given tree to lists can reach",
    "any": "no tree over these items can score above",
}
_NOT_KNOWN = (math.nan, math.nan)


@dataclass(frozen=True)
class HeldOutGain:
    """A gain measured on items that had no say in choosing what is measured.

    Attributes:
        gain: The mean gain of these items, in units of the score; NaN if nothing was measured.
        interval: The t interval of that mean, for more items of the same kinds: it does not allow for rare losses that
            no item measured has.
        items: How many items were measured.

    Example:
        >>> HeldOutGain(0.01, (0.004, 0.016), 100).holds, HeldOutGain(0.01, (0.0, 0.02), 100).holds, HeldOutGain().holds
        (True, False, False)
    """

    gain: float = math.nan
    interval: tuple[float, float] = _NOT_KNOWN
    items: int = 0

    @property
    def holds(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.interval[0] > 0


@dataclass(frozen=True)
class Edit:
    """One edit, by the numbers of the tree that was given.

    Attributes:
        kind: ``"move"``, ``"merge"``, ``"split"``, ``"take out"``, ``"take out level"``, ``"collapse"`` or
            ``"collapse below"``.
        nodes: What is moved, merged into the target, taken out or collapsed; of a split, what goes to the new cluster.
        source: What they hung under; of a split, the cluster that is parted; of a collapse, the cluster itself.
        target: What they, or the nodes below them, hang under now.
        items: How many items change their place.
        gain: What the score gains, given the edits before, exactly.
        helped: How many items' searches are worth more.
        hurt: How many are worth less.
        most_helped: The items that gain most, each with its gain.
        most_hurt: The items that lose most, each with its loss, as a number below 0.
        names: What the nodes, the source and the target are called.
        held_out: The gain on items that had no say in choosing the edit. A moved item speaks for its own move: what it
            gains itself is never part of that.

    Example:
        >>> str(Edit("move", (5,), 6, 7, 1, 0.2, names=("snow boots", "coats", "shoes")))
        'move snow boots from coats to shoes'
    """

    kind: str
    nodes: tuple[int, ...]
    source: int
    target: int
    items: int
    gain: float
    helped: int = 0
    hurt: int = 0
    most_helped: tuple[tuple[int, float], ...] = ()
    most_hurt: tuple[tuple[int, float], ...] = ()
    names: tuple[str, str, str] = ("", "", "")
    held_out: HeldOutGain = field(default_factory=HeldOutGain)

    @property
    def holds(self) -> bool:
        """Whether the gain holds on items that had no say in choosing the edit."""
        return self.held_out.holds

    def __str__(self) -> str:
        nodes, source, target = self.names
        if self.kind == "move":
            return f"move {nodes} from {source} to {target}"
        if self.kind == "merge":
            return f"merge {nodes} into {target}"
        if self.kind == "split":
            return f"split {source}: {nodes} become a cluster of their own"
        return f"{self.kind} {nodes}"


@dataclass(frozen=True, eq=False)
class Improvement:
    """A better tree and how it came about.

    Attributes:
        hierarchy: The tree that was given.
        tree: The better one.
        edits: What leads from one to the other, in order.
        before: The score of the tree that was given.
        after: The score of the better one.
        held_out: The gain of edits chosen on a part of the items, on the rest of them, over all parts.
        ceilings: What is out of reach: ``"collapse"`` is the best score of the given tree with some clusters collapsed
            to lists, exactly (not known for the hindsight policy, or where lists of single items grow too long), and
            ``"any"`` what no tree over the items can pass, the reward of an item found by itself.
        stopped: Why the search ended: ``"nothing gains"``, ``"edits"``, ``"time"`` or ``"interrupted"``.

    Example:
        >>> from pomdp_hier import improve
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> better = improve(X, tree, folds=0, delta=0.1)
        >>> [str(edit) for edit in better.edits], better.stopped
        (['move item 5 from node 6 to node 7'], 'nothing gains')
    """

    hierarchy: Hierarchy
    tree: Hierarchy
    edits: tuple[Edit, ...]
    before: HQSResult
    after: HQSResult
    held_out: HeldOutGain
    ceilings: Mapping[str, float]
    stopped: str

    def __repr__(self) -> str:
        low, high = self.held_out.interval
        held = f", held out {self.held_out.gain:+z.4f} [{low:z.4f}, {high:z.4f}]" if self.held_out.items else ""
        scores = f"{self.before.score:z.6f} -> {self.after.score:z.6f} by {counted(len(self.edits), 'edit')}"
        return f"Improvement(score {scores}{held}, {brief(self.stopped)})"

    @property
    def gain(self) -> float:
        """What the score gains on all items."""
        return self.after.score - self.before.score

    def renamed(self, names: Any) -> "Improvement":
        """Return the same with edits in which nodes are called by these names, as `NodeNames` takes them."""
        called = NodeNames(self.hierarchy, names, in_words=True)
        return replace(self, edits=tuple(replace(edit, names=names_of(edit, called)) for edit in self.edits))

    def numbered(self, confirmed: bool) -> list[tuple[int, Edit]]:
        """Return the edits that hold on items that had no say in choosing them, or the others, each with its place.

        Where nothing was held out, all edits are among the first.
        """
        measured = self.held_out.items > 0
        return [r for r in enumerate(self.edits, start=1) if confirmed is (r[1].holds or not measured)]

    def sentences(self) -> list[str]:
        """Return the scores, what holds on other items, what is possible at best, and why the search ended."""
        low, high = self.held_out.interval
        lines = [
            f"score {self.before.score:z.4f} -> {self.after.score:z.4f}, {self.gain:+z.4f} by "
            f"{counted(len(self.edits), 'edit')}"
        ]
        if self.held_out.items:
            lines.append(
                f"on items that had no say in choosing them: {self.held_out.gain:+z.4f} ({low:+z.4f} to {high:+z.4f}; "
                f"rare losses that these {counted(self.held_out.items, 'item')} lack are not in the interval)"
            )
        lines += [f"{_CEILINGS[kind]}: {score:z.4f}" for kind, score in self.ceilings.items()]
        reasons = {
            "edits": "at the number of edits allowed",
            "time": "at its time limit",
            "interrupted": "when told to",
        }
        if self.stopped in reasons:
            lines.append(f"the search ended {reasons[self.stopped]}: more may be found")
        return lines

    def summary(self, most: int = 10) -> str:
        """Return a few lines of text: the scores, and the first edits, those that other items do not confirm last."""
        sure, doubtful = self.numbered(confirmed=True), self.numbered(confirmed=False)
        lines = [*self.sentences(), *_lines(sure, most)]
        if doubtful:
            lines.append(f"made as well, though the other items do not confirm them: {counted(len(doubtful), 'edit')}")
            lines += _lines(doubtful, max(most - len(sure), 0))
        return "\n".join(lines)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row an edit, as a table of moves shows it: `COLUMNS`."""
        ids = self.hierarchy.labels
        called = [*map(label_text, range(self.hierarchy.n_nodes) if ids is None else ids)]
        return [dict(zip(COLUMNS, _row(at, edit, called), strict=True)) for at, edit in enumerate(self.edits, start=1)]


def _lines(edits: Sequence[tuple[int, Edit]], most: int) -> list[str]:
    shown = [f"{at:>3}. {edit.gain:+z.4f} {edit}" for at, edit in edits[:most]]
    return shown if len(edits) <= most else [*shown, f"     and {len(edits) - most:,} more"]


COLUMNS = (
    *("order", "kind", "what", "from", "to", "items", "gain"),
    *("held_out_gain", "held_out_low", "held_out_high", "holds"),
    *("helped", "hurt", "largest_loss", "nodes", "source", "target"),
)
"""The columns of a table of edits; the last three are the ids of the nodes that are named before, all of them."""


def _row(at: int, edit: Edit, ids: Sequence[str]) -> tuple[Any, ...]:
    held = edit.held_out

    def text(*nodes: int) -> str:
        return "; ".join(ids[node] if node < len(ids) else f"new {node}" for node in nodes)

    return (
        *(at, edit.kind, *edit.names, edit.items, edit.gain),
        *(held.gain, *held.interval, edit.holds),
        *(edit.helped, edit.hurt, min((loss for _, loss in edit.most_hurt), default=0.0)),
        *(text(*edit.nodes), text(edit.source), text(edit.target)),
    )


def names_of(edit: Edit, called: Sequence[str]) -> tuple[str, str, str]:
    """Return what the nodes, the source and the target of an edit are called; clusters that edits made have no name.

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
