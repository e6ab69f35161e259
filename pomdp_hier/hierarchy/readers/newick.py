"""Newick: nested brackets with names, quoted names, lengths, comments.

Lengths, support values and rooting tags are checked and dropped: a hierarchy is topology. Underscores stay as they are.
"""

import math
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pomdp_hier._text import brief, counted
from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.readers.links import Join, LinkedNodes, in_number_order, text_ids, tree_of_links
from pomdp_hier.hierarchy.readers.tables import TextSource, TreeArrays, read_text

_TOKEN = re.compile(
    r"""\s+|(?P<mark>[(),:;])|(?P<name>[^\s(),:;\[\]'"][^\s(),:;\[\]]*)|(?P<quoted>'(?:[^']++|'')*+'|"(?:[^"]++|"")*+")"""
)
_BRACKET = re.compile(r"[\[\]]")
_NEEDS_QUOTES = re.compile(r"""[\s(),:;\[\]'"]""")


@dataclass
class NewickNodes:
    """The nodes in the order their text starts; the root is node 0.

    Attributes:
        names: As the text has them.
        parents: The parent of each node, -1 at the root.
        is_leaf: Whether each has no brackets.
    """

    names: list[str | None]
    parents: list[int]
    is_leaf: list[bool]

    def without_support(self) -> list[str | None]:
        """Return the names, without those of internal nodes if all are numbers, as support values are."""
        inner = [name for name, leaf in zip(self.names, self.is_leaf, strict=True) if not leaf and name is not None]
        if inner and all(_is_length(name) for name in inner):
            return [name if leaf else None for name, leaf in zip(self.names, self.is_leaf, strict=True)]
        return self.names


def _failure(text: str, position: int, got: str, expected: str) -> ReaderError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    where = f"Newick, line {line}, column {column} (position {position})"
    return ReaderError(f"{where}: got {got}; expected {expected}.")


def parse_newick(text: str) -> NewickNodes:
    """Return the nodes of one tree, in one pass; a name or a length belongs to ``node``.

    ``stage`` is the last part of the node so far: "new", "closed" (its brackets), "name", ":" or "length".
    """
    names: list[str | None] = [None]
    parents, is_leaf = [-1], [True]
    node, stage, position = 0, "new", 0
    for kind, token, position in _tokens(text):
        if kind == "(":
            if stage != "new":
                raise _failure(text, position, "'('", "',' or ')'")
            is_leaf[node] = False
        elif kind in ",);":
            if stage == ":":
                raise _failure(text, position, brief(token), "a length after ':'")
            if is_leaf[node] and not names[node]:
                raise _failure(text, position, brief(token), "the name of a leaf")
            above = parents[node]
            if kind == ";":
                if above >= 0:
                    raise _failure(text, position, "';' inside brackets", "')' first")
                _check_end(text, position + 1)
                return NewickNodes(names, parents, is_leaf)
            if above < 0:
                raise _failure(text, position, f"{brief(kind)} outside all brackets", "';' at the end of the tree")
            node, stage = above, "closed"
        elif kind == ":":
            if stage in (":", "length"):
                raise _failure(text, position, "a second ':'", "one length per node")
            stage = ":"
        elif stage == ":":
            if kind == "quoted" or not _is_length(token):
                raise _failure(text, position, brief(token, 20), "a length")
            stage = "length"
        elif stage in ("name", "length"):
            raise _failure(text, position, brief(token, 20), "',' or ')'. Quote a name with spaces")
        else:
            names[node] = token[1:-1].replace(token[0] * 2, token[0]) if kind == "quoted" else token
            stage = "name"
        if kind in "(,":
            names.append(None)
            parents.append(node)
            is_leaf.append(True)
            node, stage = len(names) - 1, "new"
    depth = -1
    while node >= 0:
        depth, node = depth + 1, parents[node]
    got = f"the end of the text with {counted(depth, 'open bracket')}"
    raise _failure(text, len(text), got, "a tree that ends in ';'")


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and position of each token, without comments and spaces; a mark is its own kind."""
    position = 0
    while position < len(text):
        if text[position] == "[":  # before the search for a token, which would scan all following comments
            position = _after_comment(text, position)
            continue
        for found in _TOKEN.finditer(text, position):
            if found.start() != position:
                break
            position = found.end()
            kind = found.lastgroup
            if kind is not None:
                yield found.group() if kind == "mark" else kind, found.group(), found.start()
        else:
            if position == len(text):
                return
        if text[position] != "[":
            got = "a quote that is never closed" if text[position] in "'\"" else brief(text[position])
            raise _failure(text, position, got, "a name, a length, or one of ( ) , : ;")


def _after_comment(text: str, position: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(text, position):
        depth += 1 if bracket.group() == "[" else -1
        if not depth:
            return bracket.end()
    raise _failure(text, position, "a comment that is never closed", "']'")


def _check_end(text: str, position: int) -> None:
    """Raise unless only spaces and comments follow the tree."""
    for _, token, start in _tokens(text[position:]):
        raise _failure(text, position + start, f"{brief(token, 20)} after the final ';'", "one tree")


def _is_length(token: str) -> bool:
    try:
        return "_" not in token and not math.isnan(float(token))
    except ValueError:
        return False


def read_newick(source: TextSource | Any, join: Join) -> TreeArrays:
    """Return the tree arrays of Newick text; leaves are the items, in the order of the text."""
    text = read_text(source, is_text=lambda text: text.rstrip().endswith(";") or text.lstrip().startswith(("(", "[")))
    found = parse_newick(text)
    names: list[Hashable] = list(found.without_support())
    join = replace(text_ids(join), empty_leaves=False)
    if join.items is None:
        leaves = list(dict.fromkeys(name for name, leaf in zip(names, found.is_leaf, strict=True) if leaf))
        order = in_number_order(list(range(len(leaves))), leaves, 0)
        join = replace(join, items=[leaves[place] for place in order])
    nodes = LinkedNodes(names, found.parents[1:], list(range(1, len(names))), "bracket")
    return tree_of_links(nodes, join)


def quoted_name(name: str | None) -> str:
    """Return a name in Newick syntax, in quotes where necessary; empty for ``None``."""
    if name is None:
        return ""
    return "'" + name.replace("'", "''") + "'" if not name or _NEEDS_QUOTES.search(name) else name


def as_newick(names: Sequence[str | None], children: Sequence[Sequence[int]], n_items: int, root: int) -> str:
    """Return the Newick text of a tree from the children lists of its internal nodes, with quotes where necessary."""
    parts: list[str] = []
    stack: list[tuple[int, str]] = [(root, "")]
    while stack:
        node, lead = stack.pop()
        if node < 0:  # the end of an internal node
            parts.append(")" + quoted_name(names[~node]))
            continue
        parts.append(lead)
        if node < n_items:
            parts.append(quoted_name(names[node]))
        else:
            below = children[node - n_items]
            parts.append("(")
            stack.append((~node, ""))
            stack.extend((child, "," if place else "") for place, child in reversed(list(enumerate(below))))
    return "".join(parts) + ";"
