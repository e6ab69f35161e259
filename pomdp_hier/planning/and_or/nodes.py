"""The nodes of an AND-OR tree, how values are backed up through them, and how many lie below each."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pomdp_hier.planning.and_or.symbols import tidy_sum
from pomdp_hier.planning.decision import best_and_tied
from pomdp_hier.pomdp import Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic, total


@dataclass
class OrNode:
    """A belief, at which an action is chosen.

    Attributes:
        belief: The belief.
        depth: The actions still to look ahead.
        observation, probability: What led here from the parent, and ``Pr(o | b, a)``; ``None`` and 1 at the root.
        parent: The position of the AND node above, -1 at the root.
        kind: ``"inner"``, ``"fringe"`` (the search stops here) or ``"over"`` (the process has ended; worth 0).
        value: ``V(b)``.
        actions: The positions of the AND nodes below, in the problem's order, illegal ones last.
        best: Those whose Q is the value, first the one to take; empty where symbols leave it open.
    """

    belief: Belief
    depth: int
    observation: Hashable = None
    probability: Number = 1
    parent: int = -1
    kind: str = "inner"
    value: Number = 0
    actions: list[int] = field(default_factory=list)
    best: list[int] = field(default_factory=list)


@dataclass
class AndNode:
    """An action under a belief, after which the world chooses an observation.

    Attributes:
        action: The action.
        parent: The position of the OR node above.
        status: ``"expanded"``, ``"pruned"`` or ``"illegal"``.
        reward: ``R(b, a)``; ``None`` if illegal.
        q: ``Q(b, a)`` of an expanded action, else ``None``.
        upper: The upper bound that the search used, if any.
        why: Why it was pruned, or is illegal.
        outcomes: The positions of the OR nodes below.
    """

    action: Any
    parent: int
    status: str = "expanded"
    reward: Number | None = None
    q: Number | None = None
    upper: Number | None = None
    why: str = ""
    outcomes: list[int] = field(default_factory=list)


class Nodes:
    """The two flat lists of a tree, where every node below another one stands after it; what renderers are given."""

    def __init__(
        self, or_nodes: list[OrNode], and_nodes: list[AndNode], *, discount: Number = 1, tie_tolerance: float = 0.0
    ) -> None:
        self.or_nodes = or_nodes
        self.and_nodes = and_nodes
        self.discount = discount
        self.tie_tolerance = tie_tolerance

    @cached_property
    def states(self) -> tuple[Any, ...]:
        """The states that some belief of the tree holds possible, in the order in which they are met."""
        return tuple(dict.fromkeys(state for node in self.or_nodes for state in node.belief))

    def __len__(self) -> int:
        return len(self.or_nodes) + len(self.and_nodes)

    def subtree_sizes(self) -> tuple[list[int], list[int]]:
        """How many nodes each OR node and each AND node has below it, itself included."""
        sizes_or, sizes_and = [1] * len(self.or_nodes), [1] * len(self.and_nodes)
        for i in range(len(self.or_nodes) - 1, -1, -1):  # outcomes stand after the node above them
            for a in self.or_nodes[i].actions:
                sizes_and[a] = 1 + sum(sizes_or[o] for o in self.and_nodes[a].outcomes)
                sizes_or[i] += sizes_and[a]
        return sizes_or, sizes_and


def backed_up(child: AndNode, or_nodes: list[OrNode], discount: Number) -> Number:
    """``Q = R + gamma sum_o Pr(o | b, a) V(o)`` from the values of the outcomes."""
    pairs = [(or_nodes[i].probability, or_nodes[i].value) for i in child.outcomes]
    q = child.reward + discount * total(p * v for p, v in pairs)
    return tidy_sum(child.reward, discount, pairs) if is_symbolic(q) else q


def choose(node: OrNode, and_nodes: list[AndNode], tolerance: float) -> None:
    """Set the value of an inner node, ``V = max Q`` over its expanded actions, and those that tie for it, in order."""
    q_values = {i: and_nodes[i].q for i in node.actions if and_nodes[i].status == "expanded"}
    node.value, ties = best_and_tied(q_values, tolerance)
    node.best = list(ties)
