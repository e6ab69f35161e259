"""A changed tree in the format that it came in: the rows, ids and columns of its source, with new places."""

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from pomdp_hier._text import brief
from pomdp_hier.errors import HierarchyError, HierarchyWarning, ReaderError
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.hierarchy.readers.paths import PathFormat
from pomdp_hier.hierarchy.round_trip.tables import links_like, paths_like
from pomdp_hier.hierarchy.round_trip.text import json_like, newick_like
from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["FORMATS", "written_like"]

FORMATS = ("json", "children", "nested", "newick", "parents", "edges", "paths")
_MARK = "\ufeff"


def written_like(tree: Hierarchy, source: str, form: str, read: Callable[[str], Hierarchy], /, **columns: Any) -> str:
    """Return a tree as text of the format that it came in: of a tree that is as it was, the same text.

    A row, an object or a length stays what it was but for where it says that its node hangs. Nodes that are gone lose
    theirs; new ones get one, with blanks in the other columns. What is returned has been read again and is this tree;
    JSON whose form cannot hold it is written as `Hierarchy.to_json` does.

    Args:
        tree: The tree, whose labels are those of the source.
        source: The text that it was read from.
        form: One of ``json``, ``children``, ``nested``, ``newick``, ``parents``, ``edges`` and ``paths``.
        read: Reads such a text, with the options that the source was read with.
        **columns: What the reader was told of the table: ``id`` or ``item``, ``parent``, ``child``, ``path``,
            ``levels``, ``sep``, and whether paths are in a table, as ``form="table"``.

    Raises:
        ReaderError: For another format.
        HierarchyError: The format cannot hold the tree: two nodes of one id, or more levels than the table has columns.

    Example:
        >>> text = "id,parent,price\\nall,0,\\ntea,all,\\nsalt,tea,2\\nmint,tea,3\\noat,all,4\\n"
        >>> labels = Hierarchy.from_parents(text).labels
        >>> labels
        ('salt', 'mint', 'oat', 'all', 'tea')
        >>> moved = Hierarchy([3, 4, 4, -1, 3], 3, labels=labels)
        >>> print(written_like(moved, text, "parents", Hierarchy.from_parents), end="")
        id,parent,price
        all,0,
        tea,all,
        salt,all,2
        mint,tea,3
        oat,tea,4
    """
    if form not in FORMATS:
        raise ReaderError(f"form is {brief(form)}; a tree can be written back as {', '.join(FORMATS)}")
    text = source.removeprefix(_MARK)
    mark = source[: len(source) - len(text)]
    is_json = form in ("json", "children", "nested") or (form == "edges" and text.lstrip().startswith(("[", "{")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HierarchyWarning)  # what the reader says of the source has been said
        try:
            if is_json:
                written = json_like(tree, text, form, read)
            elif form == "newick":
                written = newick_like(tree, text)
            elif form == "paths":
                written = paths_like(tree, text, PathFormat(**columns))
            else:
                written = links_like(tree, text, form, columns, read(text))
            _check_same(tree, mark + written, read)
        except HierarchyError:
            if not is_json:
                raise
            written = text if tree == read(text) else tree.to_json() + "\n"
    return mark + written


def _check_same(tree: Hierarchy, written: str, read: Callable[[str], Hierarchy]) -> None:
    """Raise HierarchyError if what is written has not the same items below the same clusters, in any order."""
    try:
        again = read(written)
    except HierarchyError as error:
        raise HierarchyError("what would be written could not be read: ", *error.parts, "; or write .json") from error
    found = []
    for one in (tree, again):
        names = NodeNames(one, last_part=True)
        below = [hash(names[item]) for item in range(one.n_items)] + [0] * (one.n_nodes - one.n_items)
        for node in reversed(one._reading_order().tolist()):
            if node != one.root:
                below[one.parent[node]] += below[node]
        found.append(Counter(below))
    if found[0] != found[1]:
        raise HierarchyError("what would be written would be read as another tree; write .json")
