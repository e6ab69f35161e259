"""AND-OR trees as text, the part of a tree to show, and JSON."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer
from pomdp_hier._text import brief, visible
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.and_or.nodes import AndNode, Nodes, OrNode
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic

FULL_LIMIT = 120  # nodes up to which a whole tree is readable


@dataclass
class ViewNode:
    """A displayed node.

    Attributes:
        is_or: An OR node (a belief), or else an AND node (an action).
        index: Its position among the tree's OR or AND nodes.
        parent: The position in the view of the node above, -1 for the root.
        level: The distance from the root.
        on_plan: Whether a best plan reaches it from the root; where actions tie, each begins a best plan.
        hidden: The number of hidden nodes below it.
        slot: Its position across the level: leaves at 0, 1, 2, …, others in the middle of their children.
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
    """The displayed nodes of a tree, parents before children, and the total number of nodes."""

    nodes: list[ViewNode]
    total: int

    @property
    def collapsed(self) -> bool:
        """Whether a node is hidden."""
        return len(self.nodes) < self.total

    @property
    def leaves(self) -> int:
        """The number of displayed nodes without displayed children."""
        return sum(not node.children for node in self.nodes)


def view(tree: Nodes, *, full: bool | None = None, limit: int = FULL_LIMIT) -> View:
    """Return the nodes to display: the whole tree, or the best plan with the other actions as stubs.

    Args:
        tree: The tree.
        full: ``True`` for the whole tree, ``False`` for the plan; ``None`` for the whole tree if it has at most
            ``limit`` nodes.
        limit: The largest number of nodes of a plan; deeper ones are hidden and counted.
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
    """Return the children: actions in the problem's order, independent of their values."""
    if not node.is_or:
        outcomes = tree.and_nodes[node.index].outcomes
        return [ViewNode(True, i, -1, 0, on_plan=node.on_plan) for i in outcomes]
    here = tree.or_nodes[node.index]
    return [ViewNode(False, i, -1, 0, on_plan=node.on_plan and i in here.best) for i in here.actions]


def _place(nodes: list[ViewNode]) -> None:
    """Assign every node its slot."""
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
    """Return a number for display: fixed decimals for floats, or scientific notation where these show nothing.

    Args:
        value: The number; ``None`` is shown as a question mark.
        decimals: Of floats.
        signed: Whether a positive number has its sign.
        minus: The sign of negative numbers.
        symbolic: The function that writes an expression.

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
    """The text of beliefs: a vector over at most three states, else the likeliest states.

    Attributes:
        states: The states in the order of the vector.
        state_name: The function that writes a state.
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
        """Return the states of the entries of a vector; empty where beliefs name their states."""
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


_DEEPEST_INDENT = 30  # levels; a deeper level is written as a number, so that lines stay short


def render_text(
    tree: Nodes, *, ascii_only: bool, full: bool, limit: int, decimals: int, name: Callable[[Any], str]
) -> str:
    """Return the tree, one node per line; see `AndOrTree.to_text`."""
    shown = view(tree, full=full or None, limit=limit)
    minus = "-" if ascii_only else "−"
    beliefs = BeliefWords(tree.states, name, decimals, minus)
    tee, elbow, bar = ("|- ", "`- ", "|  ") if ascii_only else ("├─ ", "└─ ", "│  ")
    lines = [beliefs.header()] if beliefs.header() else []
    # a stack of (node, its prefix, the prefix of its children)
    stack = [(0, "", "")]
    while stack:
        position, lead, indent = stack.pop()
        node = shown.nodes[position]
        lines.append(lead + _line(tree, node, beliefs, ascii_only=ascii_only, name=name))
        last = len(node.children) - 1
        for i, child in reversed(list(enumerate(node.children))):
            level = shown.nodes[child].level
            if level > _DEEPEST_INDENT:
                stack.append((child, f"[{level}] ", ""))
            else:
                stack.append((child, indent + (elbow if i == last else tee), indent + ("   " if i == last else bar)))
    if shown.collapsed:
        lines.append(f"{len(shown.nodes)} of {shown.total} nodes shown; full=True shows all")
    return _joined(lines)


def _line(tree: Nodes, node: ViewNode, beliefs: BeliefWords, *, ascii_only: bool, name: Callable[[Any], str]) -> str:
    number = partial(words, decimals=beliefs.decimals, minus=beliefs.minus)
    hidden = f"  ({node.hidden} hidden)" if node.hidden else ""
    if node.is_or:
        here = tree.or_nodes[node.index]
        arrow = "->" if ascii_only else "→"
        before = f"{name(here.observation)} {number(here.probability)} {arrow} " if node.parent >= 0 else ""
        ending = "" if here.kind == "internal" else f"  {here.kind}"
        return f"{before}{beliefs(here.belief)}  V {number(here.value)}{ending}{hidden}"
    child = tree.and_nodes[node.index]
    if child.status == "illegal":
        return f"{name(child.action)}  illegal"
    reward = f"{name(child.action)}  R {number(child.reward, signed=True)}"
    if child.status == "pruned":
        return f"{reward}  pruned: Q at most {number(child.upper)}"
    star = ("  *" if ascii_only else "  ★") if node.on_plan else ""
    return f"{reward}  Q {number(child.q)}{star}{hidden}"


def explain_node(tree: Nodes, position: int, *, decimals: int, name: Callable[[Any], str]) -> str:
    """Return the arithmetic behind each Q of an OR node; see `AndOrTree.explain`."""
    node = tree.or_nodes[position]
    beliefs = BeliefWords(tree.states, name, decimals)

    def number(value: Any) -> str:
        text = words(value, decimals=decimals)
        compound = bool(value.args) if is_symbolic(value) else value < 0
        return f"({text})" if compound else text

    lines = [f"belief {beliefs.header() + ' = ' if beliefs.header() else ''}{beliefs(node.belief)}"]
    if node.kind == "terminal":
        return _joined([*lines, "the belief is terminal: V = 0"])
    if node.kind == "leaf":
        return _joined([*lines, f"the search stops here: V = {words(node.value, decimals=decimals)}"])
    lines.append(f"{node.depth} action{'s' if node.depth > 1 else ''} to go, discount {tree.discount}")
    for i in node.actions:
        child = tree.and_nodes[i]
        if child.status == "illegal":
            lines.append(f"  {name(child.action)}: {child.why}")
            continue
        if child.status == "pruned":
            lines.append(
                f"  {name(child.action)}: pruned, Q is at most {words(child.upper, decimals=decimals)}: {child.why}"
            )
            continue
        outcomes = [tree.or_nodes[k] for k in child.outcomes]
        ahead = " + ".join(f"{number(o.probability)}·{number(o.value)}" for o in outcomes)
        after = ", ".join(name(o.observation) for o in outcomes)
        factor = "" if tree.discount == 1 else f"{words(tree.discount, decimals=decimals)}·"
        star = " ★" if i in node.best else ""
        lines.append(
            f"  {name(child.action)}: Q = R + γ Σ p·V = {words(child.reward, decimals=decimals)} + {factor}({ahead})"
            f" = {words(child.q, decimals=decimals)}{star}   [after {after}]"
        )
    lines.append(f"V = max Q = {words(node.value, decimals=decimals)}")
    return _joined(lines)


def _joined(lines: list[str]) -> str:
    """Return the lines as one text, with control characters of names escaped."""
    return "\n".join(map(visible, lines))


_FORMAT = "pomdp_hier.AndOrTree"
_FUNCTIONS = ("Add", "Mul", "Pow", "Max")
_DOUBLE = 53  # bits of a float


def write_json(tree: Nodes) -> str:
    """Return the tree as a JSON text; see `AndOrTree.to_json`."""
    try:
        document = {
            "format": _FORMAT,
            "version": 1,
            "discount": _plain(tree.discount),
            "or_nodes": [
                {"belief": [[_plain(s), _plain(p)] for s, p in node.belief.items()]}
                | {f.name: _plain(getattr(node, f.name)) for f in fields(OrNode) if f.name != "belief"}
                for node in tree.or_nodes
            ],
            "and_nodes": [{f.name: _plain(getattr(node, f.name)) for f in fields(AndNode)} for node in tree.and_nodes],
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False)
    except (
        ValueError,
        RecursionError,
    ) as error:  # an integer of more digits than Python writes, a tuple in a tuple in …
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"to_json: got a value that JSON cannot hold ({brief(str(error))}); expected shorter integers, and names "
            "with less nesting. Shorten the names, or round the numbers."
        ) from error


def _plain(value: Any) -> Any:
    """Return the value in JSON types; other types become an object with one entry, named after the type."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [_plain(v) for v in value]}
    if hasattr(value, "free_symbols"):
        return {"expression": _expression(value)}
    return {"name": str(value)}


def _expression(value: Any) -> Any:
    kind = type(value).__name__
    if kind in _FUNCTIONS:
        return [kind, *(_expression(v) for v in value.args)]
    if value.is_Symbol:
        assumptions = {k: v for k, v in value._assumptions_orig.items() if isinstance(v, bool)}
        return {"symbol": value.name, "assumptions": assumptions}
    if value.is_Rational:
        return {"rational": [int(value.p), int(value.q)]}
    if value.is_Float and value._prec == _DOUBLE:
        return {"float": repr(float(value))}
    raise ParameterError(
        f"to_json: got {brief(value)} with a {kind}; expected sums, products, powers and Max of symbols, rational "
        "numbers and floats of double precision. Substitute numbers first, with value.subs(...)."
    )
