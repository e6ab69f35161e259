r"""One function for each form that a tree is written in, after which no name is more than a name there.

Plain text takes `pomdp_hier.visible.visible`, which all of these begin with: no character that acts (ESC, NUL, a line
break of any kind) is left. What is markup in the target is escaped after it.
"""

import re
from typing import Any

from pomdp_hier.pomdp.numeric import Number, is_symbolic
from pomdp_hier.visible import visible

__all__ = ["in_dot", "in_dot_html", "in_html", "in_latex", "in_mermaid", "symbols_in_latex"]

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {c: "\\" + c for c in "&%$#_{}"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
# What ends a string of Mermaid, begins one of its entities, directives (%%{init: …}) Markdown or formulas, or is HTML.
_MERMAID = re.compile("[&<>\"'#|%{};`$\\\\]")
_PLAIN_SYMBOL = re.compile("[A-Za-z][A-Za-z0-9_]*")


def in_html(text: str) -> str:
    """Return the text for HTML.

    Example:
        >>> print(in_html("<a> & 'b'"))
        &lt;a&gt; &amp; 'b'
    """
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def in_dot_html(text: str) -> str:
    """Return the text for a label of Graphviz in its HTML, where an empty one would be an error."""
    return in_html(text) or " "


def in_dot(*lines: str) -> str:
    r"""Return the lines as a quoted string of Graphviz, which knows the entities of HTML in these as well.

    Example:
        >>> print(in_dot('say "no"', r"\N"))
        "say \"no\"\n\\N"
    """
    escaped = (visible(line).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def in_mermaid(text: str) -> str:
    """Return the text for a quoted string of Mermaid.

    Example:
        >>> print(in_mermaid('100 %: "#1"'))
        100 #37;: #34;#35;1#34;
    """
    return _MERMAID.sub(lambda found: f"#{ord(found[0])};", visible(text))


def in_latex(text: str) -> str:
    r"""Return the text for LaTeX.

    Example:
        >>> print(in_latex("a_b & 5%"))
        a\_b \& 5\%
    """
    return "".join(_LATEX.get(c, c) for c in visible(text))


def symbols_in_latex(value: Number) -> str:
    r"""Return an expression for LaTeX's math mode; symbols whose names are more than letters and digits as text.

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
