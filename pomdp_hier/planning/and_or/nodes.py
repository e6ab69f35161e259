"""The nodes of an AND-OR tree, their backup, and the search of RTBSS that builds them."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pomdp_hier.beliefs.updaters import as_updater
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.decision import TERMINAL_VALUE, best_and_tied, largest
from pomdp_hier.planning.rtbss.planner import RTBSS
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic, total, within_floats
from pomdp_hier.pomdp.problem import POMDP


def tidy(value: Number) -> Number:
    """Return the expression as a constant plus a product, if that is shorter; a number unchanged.

    Example:
        >>> import sympy
        >>> b, r = sympy.symbols("b r")
        >>> tidy(b * r - (1 - b)), tidy(0.5)
        (b*(r + 1) - 1, 0.5)
    """
    if not is_symbolic(value):
        return value
    import sympy

    if value.has(sympy.Max):
        return value
    plain = sympy.simplify(value)
    constant, rest = sympy.expand(plain).as_coeff_Add()
    return min((constant + _upright(sympy.factor(rest)), value, plain), key=sympy.count_ops)


def _upright(product: Any) -> Any:
    """Return the product with ``1 - x`` in place of ``x - 1``, and the sign as a factor."""
    import sympy

    factors = []
    for factor in sympy.Mul.make_args(product):
        base, exponent = factor.as_base_exp()
        if base.is_Add and exponent.is_Integer and base.as_coeff_Add()[0].is_negative:
            factors += [sympy.Integer(-1) ** exponent, (-base) ** exponent]
        else:
            factors.append(factor)
    return sympy.Mul(*factors)


def tidy_sum(reward: Number, discount: Number, branches: Iterable[tuple[Number, Number]]) -> Number:
    """Return ``reward + discount * sum p v`` over pairs ``(p, v)`` of expressions, with the factors of the values."""
    import sympy

    branches = [(p, v) for p, v in branches if v != 0]
    if not branches:
        return reward
    pairs = [(sympy.sympify(p), sympy.sympify(v)) for p, v in branches]
    probabilities: set[Any] = set().union(*(p.free_symbols for p, _ in pairs))
    terms = list(sympy.Add.make_args(sympy.sympify(reward)))
    for p, v in pairs:
        terms.extend(discount * p * term for term in sympy.Add.make_args(v))
    # terms without belief and reward come first: constants of the values, whose probabilities sum to 1
    fixed = sympy.Add(*(t for t in terms if t.free_symbols <= probabilities))
    rest = sympy.Add(*(t for t in terms if not t.free_symbols <= probabilities))
    return min((sympy.simplify(fixed) + sympy.factor_terms(rest), tidy(fixed + rest)), key=sympy.count_ops)


@dataclass
class OrNode:
    """A belief, at which an action is chosen.

    Attributes:
        belief: The belief.
        depth: The number of actions to go.
        observation, probability: The observation after the parent, and ``Pr(o | b, a)``; ``None`` and 1 at the root.
        parent: The position of the AND node above, -1 at the root.
        kind: ``"internal"``, ``"leaf"`` (the search stops here) or ``"terminal"`` (value 0).
        value: ``V(b)``.
        actions: The positions of the AND nodes below, in the problem's order, illegal ones last.
        best: The AND nodes whose Q is the value, the chosen one first; empty if symbols cannot be compared.
    """

    belief: Belief
    depth: int
    observation: Hashable = None
    probability: Number = 1
    parent: int = -1
    kind: str = "internal"
    value: Number = 0
    actions: list[int] = field(default_factory=list)
    best: list[int] = field(default_factory=list)


@dataclass
class AndNode:
    """An action under a belief, whose outcomes are observations.

    Attributes:
        action: The action.
        parent: The position of the OR node above.
        status: ``"expanded"``, ``"pruned"`` or ``"illegal"``.
        reward: ``R(b, a)``; ``None`` if illegal.
        q: ``Q(b, a)`` of an expanded action, else ``None``.
        upper: The upper bound of the search, if any.
        why: The reason if it is pruned or illegal.
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
    """The two flat lists of a tree, parents before children."""

    def __init__(
        self, or_nodes: list[OrNode], and_nodes: list[AndNode], *, discount: Number = 1, tie_tolerance: float = 0.0
    ) -> None:
        self.or_nodes = or_nodes
        self.and_nodes = and_nodes
        self.discount = discount
        self.tie_tolerance = tie_tolerance

    @cached_property
    def states(self) -> tuple[Any, ...]:
        """The states in the support of some belief of the tree, in order of appearance."""
        return tuple(dict.fromkeys(state for node in self.or_nodes for state in node.belief))

    def __len__(self) -> int:
        return len(self.or_nodes) + len(self.and_nodes)

    def subtree_sizes(self) -> tuple[list[int], list[int]]:
        """Return the size of the subtree of each OR node and each AND node."""
        sizes_or, sizes_and = [1] * len(self.or_nodes), [1] * len(self.and_nodes)
        for i in range(len(self.or_nodes) - 1, -1, -1):  # children follow their parents
            for a in self.or_nodes[i].actions:
                sizes_and[a] = 1 + sum(sizes_or[o] for o in self.and_nodes[a].outcomes)
                sizes_or[i] += sizes_and[a]
        return sizes_or, sizes_and


def backed_up(child: AndNode, or_nodes: list[OrNode], discount: Number) -> Number:
    """Return ``Q = R + gamma sum_o Pr(o | b, a) V(o)`` from the values of the outcomes."""
    pairs = [(or_nodes[i].probability, or_nodes[i].value) for i in child.outcomes]
    q = within_floats(child.reward + discount * total(p * v for p, v in pairs))
    return tidy_sum(child.reward, discount, pairs) if is_symbolic(q) else q


def choose(node: OrNode, and_nodes: list[AndNode], tolerance: float) -> None:
    """Set the value ``V = max Q`` of an internal node, and the actions that tie for it, in order."""
    q_values = {i: and_nodes[i].q for i in node.actions if and_nodes[i].status == "expanded"}
    node.value, ties = best_and_tied(q_values, tolerance)
    node.best = list(ties)


@dataclass
class _Frame:
    """An OR node in progress: its remaining actions, and the remaining outcomes of the current one."""

    node: int
    actions: Iterator[tuple[Any, Number | None]]
    best: Number | None = None
    present: int = -1
    pending: list[int] = field(default_factory=list)


@dataclass
class Grower:
    """Builds the tree of an RTBSS planner's recursive search, without merging equal beliefs, by an explicit stack."""

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
        """Build the tree below the belief."""
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
        if self.problem.is_terminal_belief(node.belief):
            node.kind, node.value = "terminal", TERMINAL_VALUE
        elif node.depth == 0:
            node.kind = "leaf"
            node.value = tidy(self.planner.leaf(self.problem, node.belief, node.observation))
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
        node.actions.sort(key=lambda i: order[self.and_nodes[i].action])  # from the order of the search
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
