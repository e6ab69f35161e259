"""Newick: nested brackets with names, quoted names, lengths, comments.

Lengths, support values and rooting tags are checked and dropped: a hierarchy is topology. Underscores stay as they are.
"""

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.readers.graph import Join, LinkedNodes, in_number_order, plain_tree, text_ids
from pomdp_hier.hierarchy.readers.plain import PlainTree
from pomdp_hier.hierarchy.readers.sources import TextSource, read_text
from pomdp_hier.hierarchy.wording import shown

__all__ = ["as_newick", "read_newick"]

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<mark>[(),:;])|(?P<comment>\[)"""
    r"""|(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")|(?P<name>[^\s(),:;\[\]'"][^\s(),:;\[\]]*)"""
)
_BRACKET = re.compile(r"[\[\]]")
_NEEDS_QUOTES = re.compile(r"""[\s(),:;\[\]'"]""")


class _Parser:
    """One pass over the tokens with the open nodes on a stack of its own."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str | None] = [None]
        self.parents: list[int] = [-1]
        self.positions: list[int] = [0]
        self.n_children: list[int] = [0]
        self.node = 0  # the node that a name or a length would belong to
        self.stage = "start"  # then "open", "named", "colon", "length", "closed", "end"

    def fail(self, what: str, position: int) -> ReaderError:
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        return ReaderError(f"Newick: {what} at position {position} (line {line}, column {column})")

    def parse(self) -> None:
        text, position = self.text, 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                what = "a quote that is never closed" if text[position] in "'\"" else f"a stray {text[position]!r}"
                raise self.fail(what, position)
            kind = found.lastgroup
            if kind == "comment":
                position = self.after_comment(position)
                continue
            if kind != "space":
                if self.stage == "end":
                    raise self.fail(
                        f"text after the final ';' ({shown(found.group(), 20)}): one tree is read", position
                    )
                self.take(kind, found.group(), position)
            position = found.end()
        if self.stage != "end":
            depth, node = 0, self.parents[self.node]
            while node >= 0:
                depth, node = depth + 1, self.parents[node]
            what = f"{depth} brackets still open" if depth != 1 else "1 bracket still open"
            raise self.fail(f"the text ends before its ';' with {what}: it is cut off", len(text))

    def after_comment(self, position: int) -> int:
        """The position after a comment, whose brackets may be nested."""
        depth = 0
        for bracket in _BRACKET.finditer(self.text, position):
            depth += 1 if bracket.group() == "[" else -1
            if not depth:
                return bracket.end()
        raise self.fail("a comment that is never closed", position)

    def take(self, kind: str | None, token: str, position: int) -> None:
        if kind == "mark" and token != ":":
            if self.stage == "colon":
                raise self.fail("no length after ':'", position)
            {"(": self.open, ",": self.next, ")": self.close, ";": self.end}[token](position)
        elif token == ":" and kind == "mark":
            if self.stage in ("colon", "length"):
                raise self.fail("a second ':'", position)
            self.stage = "colon"
        elif self.stage == "colon":
            try:
                length = math.nan if kind == "quoted" or "_" in token else float(token)
            except ValueError:
                length = math.nan
            if math.isnan(length):
                raise self.fail(f"{shown(token, 20)} is no length", position)
            self.stage = "length"
        elif self.stage in ("named", "length"):
            raise self.fail(f"{shown(token, 20)} where ',' or ')' was expected (quote a name with spaces)", position)
        else:
            name = token[1:-1].replace(token[0] * 2, token[0]) if kind == "quoted" else token
            self.names[self.node], self.stage = name, "named"
            self.positions[self.node] = position

    def child(self, parent: int, position: int) -> None:
        self.node = len(self.names)
        self.names.append(None)
        self.parents.append(parent)
        self.positions.append(position)
        self.n_children.append(0)
        self.n_children[parent] += 1
        self.stage = "open"

    def open(self, position: int) -> None:
        if self.stage not in ("start", "open"):
            raise self.fail("'(' where ',' or ')' was expected", position)
        self.child(self.node, position + 1)

    def leave(self, position: int) -> int:
        """The parent of the node that ends here, which must be named if it is a leaf."""
        if not self.n_children[self.node] and not self.names[self.node]:
            raise self.fail("a leaf without a name", position)
        return self.parents[self.node]

    def next(self, position: int) -> None:
        parent = self.leave(position)
        if parent < 0:
            raise self.fail("',' outside all brackets", position)
        self.child(parent, position + 1)

    def close(self, position: int) -> None:
        parent = self.leave(position)
        if parent < 0:
            raise self.fail("')' without '('", position)
        self.node, self.stage = parent, "closed"

    def end(self, position: int) -> None:
        if self.leave(position) >= 0:
            raise self.fail("';' inside brackets", position)
        self.stage = "end"


def read_newick(source: TextSource | Any, join: Join) -> PlainTree:
    """The plain tree of Newick text; leaves are the items, in the order of the text.

    >>> read_newick("((A:1,B),'C c')root;", Join()).labels
    ['A', 'B', 'C c', 'root', None]
    """
    text = read_text(source, is_text=lambda text: text.rstrip().endswith(";") or text.lstrip().startswith(("(", "[")))
    parser = _Parser(text)
    parser.parse()
    names: list[Hashable] = list(parser.names)
    is_leaf = [not count for count in parser.n_children]
    inner = [name for name, leaf in zip(parser.names, is_leaf, strict=True) if not leaf and name is not None]
    if inner and all(_is_number(name) for name in inner):
        names = [name if leaf else None for name, leaf in zip(names, is_leaf, strict=True)]  # support values
    join = replace(text_ids(join), empty_leaves=False)
    if join.items is None:
        leaves = list(dict.fromkeys(name for name, leaf in zip(names, is_leaf, strict=True) if leaf))
        order = in_number_order(list(range(len(leaves))), leaves, 0)
        join = replace(join, items=[leaves[place] for place in order])
    nodes = LinkedNodes(names, parser.parents[1:], list(range(1, len(names))), "bracket")
    return plain_tree(nodes, join)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def as_newick(names: Sequence[str | None], children: Sequence[Sequence[int]], n_items: int, root: int) -> str:
    """The Newick text of a tree given by children lists of its inner nodes; a name is quoted where it has to be.

    >>> as_newick(["a b", "it's", None], [[0, 1]], 2, 2)
    "('a b','it''s');"
    """

    def quoted(node: int) -> str:
        name = names[node]
        if name is None:
            return ""
        return "'" + name.replace("'", "''") + "'" if not name or _NEEDS_QUOTES.search(name) else name

    parts: list[str] = []
    stack: list[tuple[int, str]] = [(root, "")]
    while stack:
        node, lead = stack.pop()
        if node < 0:  # the end of an inner node
            parts.append(")" + quoted(~node))
            continue
        parts.append(lead)
        if node < n_items:
            parts.append(quoted(node))
        else:
            below = children[node - n_items]
            parts.append("(")
            stack.append((~node, ""))
            stack.extend((child, "," if place else "") for place, child in reversed(list(enumerate(below))))
    return "".join(parts) + ";"
