"""Which steps of a search are choices, out of what, worked by hand."""

import numpy as np
import pytest

from pomdp_hier import Hierarchy, read_searches
from pomdp_hier.features.affinity import affinity
from pomdp_hier.searches.choices import choices_of

# root 14: a 12 (leaf clusters 8, 9), b 13 (leaf clusters 10, 11)
TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13]], 8)
X = np.random.default_rng(0).random((8, 4))


def choices(*clicks, item=7, tree=TREE, **options):
    rows = [("p", item, step, node) for step, node in enumerate(clicks)]
    return choices_of(affinity(X[: tree.n_items], tree), read_searches(rows, tree, **options))


def found(made):
    """The node, the chosen child and the alternatives of each choice."""
    parts = np.split(made.children, np.cumsum(made.counts)[:-1]) if len(made) else []
    return [
        (node, chosen, part.tolist())
        for node, chosen, part in zip(made.node.tolist(), made.chosen.tolist(), parts, strict=True)
    ]


def test_steps_down_are_choices_and_steps_up_are_none():
    made = choices(12, 8, 12, 9, 14, 13, 11)
    assert found(made) == [(14, 12, [12, 13]), (12, 8, [8, 9]), (13, 11, [10, 11])]
    # at 12 the second time only 9 is left, and at 14 only 13, since all below 12 was seen
    assert made.left_out == {"forced": 2, "returns": 2}
    assert made.on_path.tolist() == [True, False, True]
    assert made.level.tolist() == [0, 1, 1]
    assert (made.correct_at >= 0).tolist() == [True, False, True]


def test_a_branch_that_is_left_early_stays_an_alternative():
    made = choices(12, 14, 12)
    assert found(made) == [(14, 12, [12, 13])] * 2
    assert made.repeated.tolist() == [False, True]


def test_a_click_further_down_is_a_choice_at_each_node_and_one_elsewhere_a_return_first():
    assert found(choices(8, 10)) == [(14, 12, [12, 13]), (12, 8, [8, 9]), (14, 13, [12, 13]), (13, 10, [10, 11])]
    assert found(choices(8, 9))[2:] == []  # 8 is exhausted, so that 9 is the only one


def test_an_exhausted_child_that_is_entered_again_is_no_choice():
    made = choices(8, 12, 8, 12)
    assert found(made) == [(14, 12, [12, 13]), (12, 8, [8, 9])]
    assert made.left_out["exhausted"] == 1


def test_a_look_at_an_item_leaves_its_list_when_the_search_leaves_it():
    made = choices(8, 0, 1, 12, 9)
    assert found(made) == [(14, 12, [12, 13]), (12, 8, [8, 9])]
    assert made.left_out == {"returns": 1, "forced": 1}


@pytest.mark.filterwarnings("ignore:.*outside the tree")
def test_nothing_is_known_of_a_click_from_outside():
    made = choices(12, "help", 13, 10)
    assert found(made) == [(14, 12, [12, 13]), (13, 10, [10, 11])]
    assert made.left_out["outside"] == 2


def test_a_first_node_that_was_given_is_not_chosen():
    assert found(choices(8, 10, start="first")) == [(14, 13, [12, 13]), (13, 10, [10, 11])]


def test_a_choice_beside_the_item_alone_is_left_out():
    tree = Hierarchy.from_children([[0, 1], [2, 4], [5, 3]], 4)  # items 2 and 3 are clusters of their own
    assert found(choices(5, 4, item=2, tree=tree)) == [(6, 5, [5, 3])]
    assert choices(5, 4, item=2, tree=tree).left_out["singleton"] == 1
    assert found(choices(5, 4, item=3, tree=tree)) == [(5, 4, [2, 4])]


def test_similarities_are_those_of_the_item_to_the_alternatives():
    close = affinity(X, TREE)
    made = choices(12, 9, 14, 13, 10, item=4)
    for at, (node, _, children) in enumerate(found(made)):
        row = close.batch(np.array([4])).expand(np.array([0]), np.array([node]))
        wanted = [row[TREE.children(node).tolist().index(child)] for child in children]
        first = made.firsts[at]
        assert made.similarities[first : first + made.counts[at]].tolist() == wanted


def test_links_are_the_alternatives_from_the_root_down():
    links = [(0, 7), (0, 6), (0, 2), (0, 1), (4, 0), (4, 1)]
    made = choices(0, 7, 4, 1, item=6, start="first", links=links)
    # from 0 to 7: under 12 lie 2 and 1, under 13 lie 7 and 6, both in 11; from 7 nothing is linked: a step in the tree
    assert found(made)[0] == (14, 13, [12, 13])
    assert made.sizes[:2].tolist() == [2, 2]
    assert made.left_out["forced"] >= 1
    lost = choices(0, 5, item=6, start="first", links=links)
    assert (len(lost), lost.left_out) == (0, {"no_links": 1})


def test_left_out_is_said():
    assert choices(12, 8, 12, 9, 14, 13, 11).left_out_lines() == ["2 returns", "2 steps with one alternative"]
