"""Texts whose brackets are the tree, Newick and nested JSON, put together again from their own pieces.

A tree that is as it was comes out as the same text, letter for letter; of one that changed, each node keeps its own
piece: its name as it was quoted, its length, its other keys, its comments.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from pomdp_hier.errors import HierarchyError
from pomdp_hier.hierarchy.readers.newick import parse_newick, quoted_name
from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["NodePiece", "newick_like", "rebuilt_text"]


@dataclass(slots=True, eq=False)
class NodePiece:
    """A node in a text.

    Attributes:
        name: What it is called, ``None`` if it is not.
        parent: The place of the piece that it hangs under; -1 at the root.
        is_leaf: Whether nothing hangs under it.
        head: Its text up to its opening bracket and with it; all of a leaf's.
        tail: Its text from the spaces before its closing bracket on.
        lead: What stands before it: spaces, and a comma unless it is the first.
        key: Its name as a key, in JSON whose keys are the names.
        wrap: What stands around such a key that is in a list.
    """

    name: Hashable
    parent: int
    is_leaf: bool
    head: str
    tail: str = ""
    lead: str = ""
    key: str = ""
    wrap: tuple[str, str] | None = None


def _as_it_is(piece: NodePiece, holder: str) -> tuple[str, str]:
    return piece.head, piece.tail


def rebuilt_text(
    tree: Hierarchy,
    pieces: Sequence[NodePiece],
    new: Callable[[Hashable], NodePiece],
    fitted: Callable[[NodePiece, str], tuple[str, str]] = _as_it_is,
) -> str:
    """Return the text of a tree out of the pieces of its source.

    Args:
        tree: The tree.
        pieces: All of the source, parents before what is below them.
        new: Makes the piece of a node that the source does not have, by its label.
        fitted: Returns the text before and after what hangs under a piece, given the last letter before it.

    Raises:
        HierarchyError: The source names an item more often than the tree does.
    """
    if sum(piece.is_leaf for piece in pieces) != tree.n_items:
        raise HierarchyError("an item stands more than once in the source, and where it is now cannot be told")
    places = _places(tree, pieces)
    first, second, later = dict[int, int](), dict[int, str](), Counter[str]()
    for place, piece in enumerate(pieces):
        if first.setdefault(piece.parent, place) != place:
            second.setdefault(piece.parent, piece.lead)
            later[piece.lead] += 1
    usual = later.most_common(1)[0][0] if later else ","
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    below, written = tree.to_children(), list[str]()
    stack: list[str | tuple[int, str, str]] = [(tree.root, "", "")]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            written.append(top)
            continue
        node, lead, bracket = top
        place = places[node]
        piece = new(labels[node]) if place < 0 else pieces[place]
        head, tail = fitted(piece, bracket)
        written.append(lead + head)
        stack.append(tail)
        begun = []
        for number, child in enumerate(below[node - tree.n_items] if node >= tree.n_items else ()):
            its = places[child]
            stays = place >= 0 and its >= 0 and pieces[its].parent == place and (first[place] == its) == (number == 0)
            start = pieces[first[place]].lead if place in first else ""
            usual_here = start if number == 0 else second.get(place, usual)
            begun.append((child, pieces[its].lead if stays else usual_here, head[-1]))
        stack.extend(reversed(begun))
    return "".join(written)


def _places(tree: Hierarchy, pieces: Sequence[NodePiece]) -> list[int]:
    """Return the piece of each node, -1 for one that is new.

    A node is the piece of its name. One that has none is known by its number in the tree that was read, which is its
    label where it is another now; of several with one name, a node is the one that most of what is below it was below.
    """
    by_name: dict[tuple[bool, Hashable], list[int]] = {}
    for place, piece in enumerate(pieces):
        by_name.setdefault((piece.is_leaf, piece.name), []).append(place)
    inner = [place for place, piece in enumerate(pieces) if not piece.is_leaf]
    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    places = [-1] * tree.n_nodes
    taken: Counter[Hashable] = Counter()
    for item, label in enumerate(labels[: tree.n_items]):
        found = by_name.get((True, label), [])
        places[item] = found[taken[label]] if taken[label] < len(found) else -1
        taken[label] += 1
    below, used = tree.to_children(), set[int]()
    for node in reversed(tree._reading_order().tolist()):
        if node < tree.n_items:
            continue
        label = labels[node]
        found = by_name.get((False, label), []) if label is not None else []
        if len(found) > 1:
            votes = Counter(pieces[places[child]].parent for child in below[node - tree.n_items] if places[child] >= 0)
            found = [place for place, _ in votes.most_common() if pieces[place].name == label and place not in used]
        elif not found and isinstance(label, int | None):
            number = (node if label is None else label) - tree.n_items
            root = next(place for place in inner if pieces[place].parent < 0)
            found = [root] if node == tree.root else inner[number : number + 1] if number >= 0 else []
            found = [place for place in found if pieces[place].name is None]
        places[node] = found[0] if found else -1
        used.add(places[node])
    return places


def newick_like(tree: Hierarchy, source: str) -> str:
    """Return a tree as Newick, with the lengths, comments and quotes of the text that it came in.

    Example:
        >>> text = "((a:1,b:2)x:3, 'c':4)r;"
        >>> newick_like(Hierarchy.from_newick(text).with_parents([4, 3, 3, -1, 3]), text)  # item 1 moved
        "((a:1)x:3, b:2, 'c':4)r;"
    """
    found = parse_newick(source)
    pieces: list[NodePiece] = []
    last: dict[int, NodePiece] = {}
    for place, name in enumerate(found.without_support()):
        head, leaf, parent = found.heads[place], found.is_leaf[place], found.parents[place]
        bare = head.lstrip()
        lead = ("," if parent in last else "") + head[: len(head) - len(bare)]
        tail = "" if leaf else ")" + found.tails[place]
        pieces.append(NodePiece(name, parent, leaf, bare if leaf else bare + "(", tail, lead))
        last[parent] = pieces[-1]
    for parent, piece in last.items():  # the spaces before a closing bracket are the bracket's
        if parent >= 0:
            text = piece.head if piece.is_leaf else piece.tail
            bare = text.rstrip()
            piece.head, piece.tail = (bare, "") if piece.is_leaf else (piece.head, bare)
            pieces[parent].tail = text[len(bare) :] + pieces[parent].tail

    def new(label: Hashable) -> NodePiece:
        name = quoted_name(label if isinstance(label, str) else None)
        return NodePiece(label, -1, False, "(", ")" + name)

    return pieces[0].lead + rebuilt_text(tree, pieces, new) + source[found.end :]
