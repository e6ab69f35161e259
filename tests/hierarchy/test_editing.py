"""A tree being edited: what each edit makes of it, what it keeps, and what cannot be."""

import pytest

from pomdp_hier import Hierarchy
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.editing import Draft


def chain():
    """Items 0..4; e holds d and 4, d holds c, c holds a (0, 1) and b (2, 3)."""
    lists = [[0, 1], [2, 3], [5, 6], [7], [8, 4]]
    return Hierarchy.from_children(lists, 5, labels=["v", "w", "x", "y", "z", "a", "b", "c", "d", "e"])


def test_nested_nodes_are_taken_out_together_and_one_after_the_other():
    together, one_by_one = Draft(chain()), Draft(chain())
    together.apply(together.without([5, 7, 8]))
    for node in (7, 5, 8):
        one_by_one.apply(one_by_one.without([node]))
    assert together.tree() == one_by_one.tree() == Hierarchy.from_children([[2, 3], [0, 1, 5, 4]], 5)
    assert together.tree().labels[5:] == ("b", "e")


def test_a_part_becomes_a_cluster_beside_the_rest_and_is_called_after_it():
    draft = Draft(chain())
    draft.apply(draft.parted(5, [1]))
    draft.apply(draft.moved(2, 5))
    draft.apply(draft.parted(5, [2]))
    tree = draft.tree()
    assert tree == Hierarchy.from_children([[0], [3], [1], [2], [5, 6, 7, 8], [9], [10, 4]], 5)
    assert tree.labels[5:] == ("a", "b", "c", "d", "e", "a (part)", "a (part 2)")
    paths = Hierarchy.from_paths({"x": "A > B", "y": "A > B", "z": "A > C"})
    halved = Draft(paths)
    halved.apply(halved.parted(paths.node(("A", "B")), [0]))
    assert ("A", "B (part)") in halved.tree().labels


def test_a_copy_is_edited_by_itself():
    draft = Draft(chain())
    other = draft.copy()
    other.apply(other.collapsed(7))
    assert draft.tree() == chain()
    assert other.tree() == Hierarchy.from_children([[0, 1, 2, 3], [5], [6, 4]], 5)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda draft: draft.without([9]), "node: got 9, .*removed"),
        (lambda draft: draft.without([0]), "node: got 0"),
        (lambda draft: draft.merged([5], 5), "node: got 5; expected a sibling of node 5"),
        (lambda draft: draft.merged([8], 5), "node: got 8; expected a sibling of node 5"),
        (lambda draft: draft.parted(9, [4]), "node: got 9, .*split"),
        (lambda draft: draft.parted(5, [0, 1]), "directly below node 5"),
        (lambda draft: draft.parted(5, []), "directly below node 5"),
        (lambda draft: draft.collapsed(2), "node: got 2"),
        (lambda draft: draft.moved(7, 5), "target: got 5, which is inside node 7"),
        (lambda draft: draft.moved("a", 5), "node: got 'a'; expected the number"),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(edit, text):
    draft = Draft(chain())
    with pytest.raises(ParameterError, match=text):
        edit(draft)
    assert draft.tree() == chain()
