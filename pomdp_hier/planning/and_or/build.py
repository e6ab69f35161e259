"""How an AND-OR tree is grown: the search of RTBSS with a stack of its own, so that depth is no limit."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pomdp_hier.beliefs import as_updater
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.and_or.nodes import AndNode, OrNode, backed_up, choose
from pomdp_hier.planning.and_or.symbols import tidy
from pomdp_hier.planning.decision import TERMINAL_VALUE, largest
from pomdp_hier.planning.rtbss.planner import RTBSS
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number


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
        self.updater = as_updater(self.planner.updater, self.problem, simplify=tidy)
        self.pruning = self.planner.pruning(self.problem)

    def grow(self, belief: Belief, observation: Hashable) -> None:
        """Grow everything below the belief."""
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
            node.kind, node.value = "over", TERMINAL_VALUE
        elif node.depth == 0:
            node.kind = "fringe"
            node.value = tidy(self.planner.fringe(self.problem, node.belief, node.observation))
        else:
            legal = self.problem.actions(node.belief, node.observation)
            stack.append(_Frame(position, iter(self.pruning.ranked(node.belief, legal, node.depth))))

    def _next_action(self, frame: _Frame) -> bool:
        """Begin the next action that is not pruned, and return whether there was one."""
        for action, upper in frame.actions:
            node = self.or_nodes[frame.node]
            reward = tidy(self.problem.reward(node.belief, action))
            child = AndNode(action, frame.node, reward=reward, upper=upper)
            node.actions.append(len(self.and_nodes))
            self._append(child)
            if self.pruning.skips(upper, frame.best, at_root=frame.node == 0):
                child.status, child.why = "pruned", "its upper bound cannot beat the best Q"
                continue
            frame.present = len(self.and_nodes) - 1
            for observation, probability, posterior in self.updater.branches(node.belief, action):
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
        self.pruning.check(child.q, child.upper, child.action, self.or_nodes[frame.node].depth)
        frame.best = child.q if frame.best is None else largest([frame.best, child.q])

    def _finish_node(self, frame: _Frame) -> None:
        node = self.or_nodes[frame.node]
        order = {action: i for i, action in enumerate(self.problem.actions(node.belief, node.observation))}
        node.actions.sort(key=lambda i: order[self.and_nodes[i].action])  # from the order in which they were tried
        choose(node, self.and_nodes, self.planner.tie_tolerance)
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
            lower = ", or lower depth" if self.planner.depth > 1 else ""
            raise PlanningError(
                f"max_nodes: got {self.max_nodes}; expected at least the number of nodes of the tree. "
                f"Raise max_nodes{lower}."
            )
