"""An AND-OR tree as text, and the arithmetic of one node in words."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pomdp_hier._text import visible
from pomdp_hier.planning.and_or.nodes import Nodes
from pomdp_hier.planning.and_or.view import BeliefWords, ViewNode, view, words
from pomdp_hier.pomdp.numeric import is_symbolic

_DEEPEST_INDENT = 30  # levels; below that the level is written as a number, so that lines stay short


def render_text(
    tree: Nodes, *, ascii_only: bool, full: bool, limit: int, decimals: int, name: Callable[[Any], str]
) -> str:
    """Return the tree, one node a line; see `AndOrTree.to_text`."""
    shown = view(tree, full=full or None, limit=limit)
    minus = "-" if ascii_only else "−"
    beliefs = BeliefWords(tree.states, name, decimals, minus)
    tee, elbow, bar = ("|- ", "`- ", "|  ") if ascii_only else ("├─ ", "└─ ", "│  ")
    lines = [beliefs.header()] if beliefs.header() else []
    # a stack of (node, what stands before it, what stands before its children)
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
        ending = {"over": "  over", "fringe": "  fringe"}.get(here.kind, "")
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
    if node.kind == "over":
        return _joined([*lines, "the process is over: V = 0"])
    if node.kind == "fringe":
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
    """Return the lines as one text, in which no name begins another line or steers a terminal."""
    return "\n".join(map(visible, lines))
