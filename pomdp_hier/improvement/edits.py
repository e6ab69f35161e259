"""Edits as data, and the trees that they make."""

from collections.abc import Iterable

from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.editing import Draft, Parents
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.improvement.result import Edit

KINDS: tuple[str, ...] = ("move", "merge", "split", "remove", "remove-level", "collapse", "collapse-below")


def apply_edits(hierarchy: Hierarchy, edits: Iterable[Edit]) -> Hierarchy:
    """Return the hierarchy after edits, one after the other, by the numbers of the tree that is given.

    Nodes keep their names; a cluster that is left without items is dropped, and later nodes then move up in number.

    Args:
        hierarchy: The tree.
        edits: What `improve` returned for it, or some of that in the same order.

    Raises:
        ParameterError: An edit cannot be made, as one of a node that is not there, or that takes out the root.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> apply_edits(tree, [Edit("merge", (5,), 6, 4, 2, 0.0)]).to_children()
        [[0, 1, 2, 3], [4]]
    """
    require_hierarchy(hierarchy)
    draft = Draft(hierarchy)
    for edit in edits:
        if not isinstance(edit, Edit):
            raise ParameterError(f"an edit is {brief(edit)}; give what improve(X, hierarchy).edits holds")
        draft.apply(changes_of(draft, edit.kind, edit.nodes, edit.source, edit.target))
    return draft.tree()


def changes_of(draft: Draft[Hierarchy], kind: str, nodes: Iterable[int], source: int, target: int) -> Parents:
    """Return the new parents that an edit gives to nodes.

    Raises:
        ParameterError: It cannot be made.
    """
    if kind == "move":
        changes: Parents = {}
        for node in nodes:
            changes |= draft.moved(node, target)
        return changes
    if kind == "merge":
        return draft.merged(nodes, target)
    if kind == "split":
        return draft.parted(source, nodes)
    if kind == "collapse":
        changes = {}
        for node in nodes:
            changes |= draft.collapsed(node)
        return changes
    if kind in ("remove", "remove-level", "collapse-below"):
        return draft.without(nodes)
    raise ParameterError(f"kind is {brief(kind)}; expected {', '.join(map(repr, KINDS))}")
