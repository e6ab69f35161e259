"""How an AND-OR tree is grown: the search of RTBSS with a stack of its own, so that depth is no limit."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.and_or.symbols import tidy, tidy_sum
from pomdp_hier.planning.rtbss.fringe import largest
from pomdp_hier.planning.rtbss.plain import branches_of, check_bound, rank, skips
from pomdp_hier.planning.rtbss.planner import RTBSS
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic, total

__all__ = ["AndNode", "Grower", "OrNode", "backed_up", "tied"]


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
        actions: The positions of the AND nodes below, in the order in which they were tried.
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


@dataclass
class _Frame:
    """An OR node being worked off: the actions still to try, and the outcomes of the present one still to visit."""

    node: int
    actions: Iterator[tuple[Any, Number | None]]
    best: Number | None = None
    present: int = -1
    pending: list[int] = field(default_factory=list)


@dataclass
class Grower:
    """Grows the tree that an RTBSS planner's plain search walks through, without merging equal beliefs."""

    planner: RTBSS
    problem: POMDP
    illegal: bool
    max_nodes: int
    or_nodes: list[OrNode] = field(default_factory=list)
    and_nodes: list[AndNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.branches = branches_of(self.problem, self.planner.updater, tidy)
        self.upper = self.planner.upper_function(self.problem)
        self.slack = self.planner.slack(self.problem)

    def grow(self, belief: Belief, observation: Hashable) -> None:
        """Grows everything below the belief."""
        self.or_nodes.append(OrNode(belief, self.planner.depth, observation))
        stack: list[_Frame] = []
        self._visit(0, stack)
        while stack:
            frame = stack[-1]
            if frame.pending:
                self._visit(frame.pending.pop(), stack)
                continue
            if frame.present >= 0:
                self._finish_action(frame)
            if not self._next_action(frame):
                self._finish_node(frame)
                stack.pop()

    def _visit(self, position: int, stack: list[_Frame]) -> None:
        node = self.or_nodes[position]
        if self.problem.is_over(node.belief):
            node.kind = "over"
        elif node.depth == 0:
            node.kind = "fringe"
            node.value = tidy(self.planner.fringe(self.problem, node.belief, node.observation))
        else:
            legal = self.problem.actions(node.belief, node.observation)
            stack.append(_Frame(position, iter(rank(node.belief, legal, node.depth, self.upper))))

    def _next_action(self, frame: _Frame) -> bool:
        """Begins the next action that is not pruned; whether there was one."""
        at_root = frame.node == 0
        slack = self.slack + (self.planner.tie_tolerance if at_root else 0)
        for action, upper in frame.actions:
            node = self.or_nodes[frame.node]
            reward = tidy(self.problem.reward(node.belief, action))
            child = AndNode(action, frame.node, reward=reward, upper=upper)
            node.actions.append(len(self.and_nodes))
            self._append(child)
            if skips(upper, frame.best, keep_ties=at_root or self.planner.tie == "all", slack=slack):
                child.status, child.why = "pruned", "its upper bound cannot beat the best Q"
                continue
            frame.present = len(self.and_nodes) - 1
            for observation, probability, posterior in self.branches(node.belief, action):
                outcome = OrNode(posterior, node.depth - 1, observation, probability, frame.present)
                child.outcomes.append(len(self.or_nodes))
                self.or_nodes.append(outcome)
            self._check_size()
            frame.pending = child.outcomes[::-1]
            return True
        return False

    def _finish_action(self, frame: _Frame) -> None:
        child = self.and_nodes[frame.present]
        child.q = backed_up(child, self.or_nodes, self.problem.discount)
        check_bound(child.q, child.upper, child.action, self.or_nodes[frame.node].depth)
        frame.best = child.q if frame.best is None else largest([frame.best, child.q])
        frame.present = -1

    def _finish_node(self, frame: _Frame) -> None:
        node = self.or_nodes[frame.node]
        node.value = frame.best
        order = {action: i for i, action in enumerate(self.problem.actions(node.belief, node.observation))}
        node.best = tied(node, self.and_nodes, self.planner.tie_tolerance)
        node.best.sort(key=lambda i: order[self.and_nodes[i].action])
        if self.illegal:
            for action in self.problem.all_actions:
                if action not in order:
                    node.actions.append(len(self.and_nodes))
                    self._append(AndNode(action, frame.node, "illegal", why="not legal under this belief"))

    def _append(self, child: AndNode) -> None:
        self.and_nodes.append(child)
        self._check_size()

    def _check_size(self) -> None:
        if len(self.or_nodes) + len(self.and_nodes) > self.max_nodes:
            raise PlanningError(
                f"max_nodes: the tree has more than {self.max_nodes} nodes; lower the depth, pass prune=True, or raise "
                "max_nodes"
            )


def backed_up(child: AndNode, or_nodes: list[OrNode], discount: Number) -> Number:
    """``Q = R + gamma sum_o Pr(o | b, a) V(o)`` from the values of the outcomes."""
    pairs = [(or_nodes[i].probability, or_nodes[i].value) for i in child.outcomes]
    q = child.reward + discount * total(p * v for p, v in pairs)
    return tidy_sum(child.reward, discount, pairs) if is_symbolic(q) else q


def tied(node: OrNode, and_nodes: list[AndNode], tolerance: float) -> list[int]:
    """Return the positions of the expanded actions whose Q is the node's value, within the tolerance."""
    positions = [i for i in node.actions if and_nodes[i].status == "expanded"]
    if any(is_symbolic(and_nodes[i].q) for i in positions):
        return [i for i in positions if and_nodes[i].q == node.value]
    return [i for i in positions if node.value - and_nodes[i].q <= tolerance]
