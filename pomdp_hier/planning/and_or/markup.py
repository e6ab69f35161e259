"""An AND-OR tree as DOT, Mermaid and TikZ."""

import re
from collections.abc import Callable
from typing import Any

from pomdp_hier._text import in_dot, in_html, in_latex, in_mermaid
from pomdp_hier.planning.and_or.nodes import Nodes
from pomdp_hier.planning.and_or.text import BeliefWords, View, ViewNode, view, words
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_symbolic

_PLAIN_SYMBOL = re.compile("[A-Za-z][A-Za-z0-9_]*")


def symbols_in_latex(value: Number) -> str:
    r"""Return an expression for LaTeX's math mode; symbol names beyond letters and digits become text.

    Example:
        >>> import sympy
        >>> print(symbols_in_latex(sympy.Symbol("eta") * sympy.Symbol(r"\input{a}")))
        \text{\textbackslash{}input\{a\}} \eta
    """
    from sympy import latex

    if not is_symbolic(value):
        return str(value)
    odd = (s for s in value.free_symbols if not _PLAIN_SYMBOL.fullmatch(s.name))
    names: dict[Any, str] = {symbol: rf"\text{{{in_latex(symbol.name)}}}" for symbol in odd}
    return str(latex(value, symbol_names=names))


_PLAN = "#b35806"
_OR = "#215294"
_INK = "#1d2126"
_GREY = "#9aa3ab"


class _Labels:
    """The labels of nodes and arcs as plain text."""

    def __init__(self, tree: Nodes, decimals: int, name: Callable[[Any], str]) -> None:
        self.tree = tree
        self.name = name
        self.decimals = decimals
        self.beliefs = BeliefWords(tree.states, name, decimals)

    def node(self, shown: ViewNode) -> list[str]:
        """Return the lines beside a node."""
        hidden = [f"{shown.hidden} hidden"] if shown.hidden else []
        if shown.is_or:
            here = self.tree.or_nodes[shown.index]
            return [self.beliefs(here.belief), f"V {words(here.value, decimals=self.decimals)}", *hidden]
        child = self.tree.and_nodes[shown.index]
        if child.status == "illegal":
            return [self.name(child.action), "illegal"]
        if child.status == "pruned":
            return [self.name(child.action), f"pruned, Q ≤ {words(child.upper, decimals=self.decimals)}"]
        star = " ★" if shown.on_plan else ""
        return [self.name(child.action), f"Q {words(child.q, decimals=self.decimals)}{star}", *hidden]

    def arc(self, shown: ViewNode) -> str:
        """Return the label of the arc that leads to a node."""
        if shown.is_or:
            here = self.tree.or_nodes[shown.index]
            return f"{self.name(here.observation)} {words(here.probability, decimals=self.decimals)}"
        child = self.tree.and_nodes[shown.index]
        return "" if child.reward is None else f"R {words(child.reward, signed=True, decimals=self.decimals)}"


def render_dot(tree: Nodes, *, full: bool | None, limit: int, decimals: int, name: Callable[[Any], str]) -> str:
    """Return the tree in Graphviz's language; see `AndOrTree.to_dot`."""
    shown, labels = view(tree, full=full, limit=limit), _Labels(tree, decimals, name)
    caption = [labels.beliefs.header()]
    if shown.collapsed:
        caption.append(f"{len(shown.nodes)} of {shown.total} nodes shown")
    lines = [
        "digraph and_or {",
        f"  graph [rankdir=LR, ranksep=0.9, nodesep=0.12, fontname=Helvetica, fontsize=11, labelloc=b,"
        f" label={in_dot('   '.join(filter(None, caption)))}];",
        f'  node [fontname=Helvetica, fontsize=10, color="{_INK}", fontcolor="{_INK}"];',
        f'  edge [fontname=Helvetica, fontsize=9, color="{_GREY}", fontcolor="{_INK}", arrowhead=none];',
    ]
    for i, node in enumerate(shown.nodes):
        lines.append(f"  n{i} [{_dot_node(labels, node)}];")
        if node.parent >= 0:
            style = f', color="{_PLAN}", penwidth=2.5' if node.on_plan else ""
            lines.append(f"  n{node.parent} -> n{i} [label={in_dot(' ' + labels.arc(node) + ' ')}{style}];")
    return "\n".join([*lines, "}"])


def _dot_node(labels: _Labels, node: ViewNode) -> str:
    """Return the attributes of a node: a triangle with its text, or an ellipse with action and Q."""
    lines = labels.node(node)
    colour = _OR if node.is_or else (_PLAN if node.on_plan else _INK)
    weight = 2.5 if node.on_plan else 1
    if node.is_or:
        body = "<br/>".join(in_html(line) or " " for line in lines)  # an empty label is an error of Graphviz
        symbol = f'<font point-size="16" color="{colour}">{"▶" if node.on_plan else "▷"}</font>'
        table = f'<table border="0" cellspacing="0" cellpadding="1"><tr><td>{symbol}</td><td>{body}</td></tr></table>'
        return f"shape=plain, label=<{table}>"
    dashed = ', style="dashed"' if labels.tree.and_nodes[node.index].status != "expanded" else ""
    return f'shape=ellipse, margin="0.04,0.02", color="{colour}", penwidth={weight}{dashed}, label={in_dot(*lines)}'


def render_mermaid(tree: Nodes, *, full: bool | None, limit: int, decimals: int, name: Callable[[Any], str]) -> str:
    """Return the tree as a Mermaid flowchart; see `AndOrTree.to_mermaid`."""
    shown, labels = view(tree, full=full, limit=limit), _Labels(tree, decimals, name)
    lines = ["flowchart LR"]
    plan = []
    for i, node in enumerate(shown.nodes):
        text = '"' + "<br/>".join(in_mermaid(line) for line in labels.node(node)) + '"'
        lines.append(f"  n{i}" + (f">{text}]" if node.is_or else f"(({text}))"))
        if node.parent >= 0:
            if node.on_plan:
                plan.append(i - 1)  # links are numbered from 0; the node at position 1 has the first
            arrow, label = ("==>" if node.on_plan else "-->"), labels.arc(node)
            lines.append(f"  n{node.parent} {arrow}" + (f'|"{in_mermaid(label)}"|' if label else "") + f" n{i}")
    lines.append(f"  classDef plan stroke:{_PLAN},stroke-width:3px")
    lines.append(f"  class {','.join(f'n{i}' for i, node in enumerate(shown.nodes) if node.on_plan)} plan")
    if plan:
        lines.append(f"  linkStyle {','.join(map(str, plan))} stroke:{_PLAN},stroke-width:3px")
    return "\n".join(lines)


def latex_number(value: Number, decimals: int = 2) -> str:
    """Return a number or expression in LaTeX's math mode.

    Example:
        >>> from fractions import Fraction
        >>> print(latex_number(-0.5), latex_number(Fraction(1, 3)))
        -0.50 1/3
    """
    if is_symbolic(value):
        return symbols_in_latex(value)
    mantissa, _, exponent = words(value, decimals=decimals, minus="-").partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def render_tikz(
    tree: Nodes,
    *,
    full: bool | None,
    limit: int,
    decimals: int,
    belief: Callable[[Belief], str] | None,
    action: Callable[[Any], str] | None,
    observation: Callable[[Any], str] | None,
    standalone: bool,
) -> str:
    """Return the tree as a TikZ picture, top down; see `AndOrTree.to_tikz`."""
    shown = view(tree, full=full, limit=limit)
    belief = belief or _numbered_beliefs(tree, shown)
    action = action or (lambda a: rf"\text{{{in_latex(str(a))}}}")
    observation = observation or (lambda o: rf"\text{{{in_latex(str(o))}}}")
    labels = [_tikz_label(tree, node, decimals, observation) for node in shown.nodes]
    beside = (line for label, node in zip(labels, shown.nodes, strict=True) if node.is_or for line in label)
    widest = max(map(_width, beside), default=0)
    unit = max(2.3, 0.21 * widest)  # labels of neighbours stand side by side
    lines = [
        r"\begin{tikzpicture}[>=latex, font=\footnotesize,",
        r"  or node/.style={draw, isosceles triangle, isosceles triangle apex angle=58, shape border rotate=90,",
        r"    inner sep=0.6pt, minimum width=1cm, anchor=apex},",
        r"  and node/.style={draw, circle, inner sep=0.6pt, minimum size=0.9cm, anchor=north},",
        r"  plan/.style={line width=1.2pt}, note/.style={fill=white, inner sep=1.2pt}]",
    ]
    for i, node in enumerate(shown.nodes):
        x, y = words(unit * node.slot, minus="-"), words(-1.9 * node.level, minus="-")
        style = f"{'or' if node.is_or else 'and'} node{', plan' if node.on_plan else ''}"
        if node.is_or:
            text = belief(tree.or_nodes[node.index].belief)
        else:
            child = tree.and_nodes[node.index]
            style += "" if child.status == "expanded" else ", dashed"
            text = action(child.action)
        lines.append(rf"  \node[{style}] (n{i}) at ({x}, {y}) {{${text}$}};")
        if node.hidden:
            lines.append(rf"  \node[below=1pt of n{i}] {{{node.hidden} hidden}};")
        if node.parent >= 0:
            lines.append(_tikz_arc(i, node, labels[i], node.slot - shown.nodes[node.parent].slot))
    lines.append(r"\end{tikzpicture}")
    picture = "\n".join(lines)
    if not standalone:
        return picture
    head = "\\documentclass[tikz, border=4pt]{standalone}\n\\usepackage{amsmath}\n"
    head += "\\usetikzlibrary{positioning, shapes.geometric}\n\\begin{document}\n"
    return f"{head}{picture}\n\\end{{document}}\n"


def _tikz_label(tree: Nodes, node: ViewNode, decimals: int, observation: Callable[[Any], str]) -> list[str]:
    """Return the lines at the arc to a node: the reward, or the observation and its probability."""
    if node.parent < 0:
        return []
    if node.is_or:
        here = tree.or_nodes[node.index]
        return [f"$o = {observation(here.observation)}$", f"${latex_number(here.probability, decimals)}$"]
    child = tree.and_nodes[node.index]
    reward = "illegal" if child.reward is None else f"${latex_number(child.reward, decimals)}$"
    return [f"{reward} (pruned)" if child.status == "pruned" else reward]


def _width(label: str) -> int:
    """Return the approximate width of a piece of LaTeX in characters."""
    return len(re.sub(r"[{}$_^]", "", re.sub(r"\\[a-zA-Z]+\s?", "m", label.replace(r"\text", ""))))


def _tikz_arc(i: int, node: ViewNode, label: list[str], shift: float) -> str:
    """Return the arrow to a node, with its label on the outer side."""
    style = "->, plan" if node.on_plan else "->"
    place = "note"
    if node.is_or and shift != 0:
        place = f"pos=0.62, above {'left' if shift < 0 else 'right'}=-2pt"
    ends = (f"n{node.parent}.south", f"n{i}.apex") if node.is_or else (f"n{node.parent}.south", f"n{i}.north")
    text = r"\\".join(label)
    return rf"  \draw[{style}] ({ends[0]}) -- node[{place}, align=center] {{{text}}} ({ends[1]});"


def _numbered_beliefs(tree: Nodes, shown: View) -> Callable[[Belief], str]:
    """Return names ``b_0, b_1, …`` for the distinct displayed beliefs."""
    different = dict.fromkeys(tree.or_nodes[n.index].belief for n in shown.nodes if n.is_or)
    numbers = {belief: f"b_{{{i}}}" for i, belief in enumerate(different)}
    return numbers.__getitem__
