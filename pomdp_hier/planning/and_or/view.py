"""What of an AND-OR tree is shown, where, and in which words: shared by text, markup and figures."""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Rational
from typing import Any

from pomdp_hier._arguments import check_integer
from pomdp_hier.planning.and_or.nodes import Nodes
from pomdp_hier.pomdp import Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic

FULL_LIMIT = 120  # nodes up to which a whole tree can be read


@dataclass
class ViewNode:
    """A node that is shown.

    Attributes:
        is_or: An OR node (a belief), or else an AND node (an action).
        index: Its position among the tree's OR or AND nodes.
        parent: The position in the view of the node above, -1 for the root.
        level: The distance from the root.
        on_plan: Part of a best plan, and reached from the root; where actions tie, each begins a best plan.
        hidden: How many nodes below it are not shown.
        slot: Where it stands across its level: leaves at 0, 1, 2, …, others in the middle of what is below them.
        children: Positions in the view.
    """

    is_or: bool
    index: int
    parent: int
    level: int
    on_plan: bool = False
    hidden: int = 0
    slot: float = 0.0
    children: list[int] = field(default_factory=list)


@dataclass
class View:
    """The nodes of a tree that are shown, parents before children, and how many there are in all."""

    nodes: list[ViewNode]
    total: int

    @property
    def collapsed(self) -> bool:
        """Whether something is hidden."""
        return len(self.nodes) < self.total

    @property
    def leaves(self) -> int:
        """How many shown nodes have nothing shown below them."""
        return sum(not node.children for node in self.nodes)


def view(tree: Nodes, *, full: bool | None = None, limit: int = FULL_LIMIT) -> View:
    """Return what to show: the whole tree, or the best plan with the other actions as stubs.

    Args:
        tree: The tree.
        full: ``True`` for everything, ``False`` for the plan; ``None`` for everything if that is at most ``limit``
            nodes.
        limit: How many nodes a plan may have; deeper ones are left out (and counted) beyond it.

    Raises:
        ParameterError: The limit is below 1.
    """
    check_integer("limit", limit, 1, unit="nodes to show")
    sizes_or, sizes_and = tree.subtree_sizes()
    whole = sizes_or[0] <= limit if full is None else full
    nodes = [ViewNode(True, 0, -1, 0, on_plan=True)]
    for position, node in enumerate(nodes):  # breadth first; grows while it is walked
        below = _below(tree, node)
        if not whole and (not (node.on_plan or node.is_or) or len(nodes) + len(below) > limit):
            node.hidden = (sizes_or if node.is_or else sizes_and)[node.index] - 1
            continue
        for child in below:
            child.parent, child.level = position, node.level + 1
            node.children.append(len(nodes))
            nodes.append(child)
    _place(nodes)
    return View(nodes, sizes_or[0])


def _below(tree: Nodes, node: ViewNode) -> list[ViewNode]:
    """Return the nodes below: actions in the problem's order, whatever their values, so that a tree stands still."""
    if not node.is_or:
        outcomes = tree.and_nodes[node.index].outcomes
        return [ViewNode(True, i, -1, 0, on_plan=node.on_plan) for i in outcomes]
    here = tree.or_nodes[node.index]
    return [ViewNode(False, i, -1, 0, on_plan=node.on_plan and i in here.best) for i in here.actions]


def _place(nodes: list[ViewNode]) -> None:
    """Give every node its slot."""
    stack, leaves = [0], 0
    while stack:  # leaves from the first to the last
        node = nodes[stack.pop()]
        if node.children:
            stack.extend(reversed(node.children))
        else:
            node.slot, leaves = float(leaves), leaves + 1
    for node in reversed(nodes):
        if node.children:
            node.slot = (nodes[node.children[0]].slot + nodes[node.children[-1]].slot) / 2


def words(
    value: Number | None,
    *,
    decimals: int = 2,
    signed: bool = False,
    minus: str = "−",
    symbolic: Callable[[Any], str] = str,
) -> str:
    """Return a number for reading: fixed decimals for floats, in powers of ten where these would show nothing.

    Args:
        value: The number; ``None`` becomes a question mark.
        decimals: Of floats.
        signed: Whether a positive number bears its sign.
        minus: The sign of negative numbers.
        symbolic: How an expression is written.

    Example:
        >>> from fractions import Fraction
        >>> words(-1.0, minus="-"), words(0.5, signed=True), words(5e-7), words(Fraction(1, 3))
        ('-1.00', '+0.50', '5.0e-07', '1/3')
    """
    if value is None:
        return "?"
    if is_symbolic(value):
        return symbolic(value)
    if isinstance(value, Rational):
        text = str(abs(value))
    else:
        size = abs(float(value))
        small, large = 0 < size < 0.5 * 10**-decimals, size >= 1e7
        text = f"{size:.1e}" if small or large else f"{size:z.{decimals}f}"
    if value < 0:
        return minus + text
    return "+" + text if signed and value > 0 else text


@dataclass(frozen=True)
class BeliefWords:
    """How beliefs are written: as a vector over at most three states, else by their likeliest states.

    Attributes:
        states: The states in the order of the vector.
        state_name: How a state is written.
        decimals, minus, symbolic: See `words`.
    """

    states: tuple[Any, ...]
    state_name: Callable[[Any], str] = str
    decimals: int = 2
    minus: str = "−"
    symbolic: Callable[[Any], str] = str

    @property
    def is_vector(self) -> bool:
        """Whether beliefs are written as vectors."""
        return len(self.states) <= 3

    def header(self) -> str:
        """Return what the entries of a vector stand for; empty where beliefs name their states."""
        return f"b = ({', '.join(self.state_name(s) for s in self.states)})" if self.is_vector else ""

    def __call__(self, belief: Belief) -> str:
        if self.is_vector:
            return f"({', '.join(self._number(belief[state]) for state in self.states)})"
        entries = list(belief.items())
        if not any(is_symbolic(p) for _, p in entries):
            entries.sort(key=lambda pair: -float(pair[1]))
        shown = ", ".join(f"{self.state_name(s)} {self._number(p)}" for s, p in entries[:2])
        return shown + (f", +{len(entries) - 2} more" if len(entries) > 2 else "")

    def _number(self, value: Number) -> str:
        text = words(value, decimals=self.decimals, minus=self.minus, symbolic=self.symbolic)
        if isinstance(value, float) and text.startswith("0.") and "e" not in text:
            return text[1:] if value else "0"
        return "1" if text == f"{1:z.{self.decimals}f}" and value == 1 else text
