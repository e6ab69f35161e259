"""Rewards by size, and their rises from parent to child."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import node_rewards, paper_reward


def test_the_papers_formula():
    sizes = np.arange(1, 101)
    expected = [1 - (math.exp(n / 100) - 1) / (math.e - 1) for n in sizes]
    np.testing.assert_allclose(paper_reward(sizes, 100), expected, atol=2e-16)
    assert paper_reward(7, 7) == 0.0


def test_near_the_root_no_digit_is_lost():
    n_items = 10**9
    first = Fraction(1, n_items)
    exact = 1 - float(first) / 2  # of (e - exp(1 - h)) / (h e) = 1 - h/2 + ...
    assert paper_reward(n_items - 1, n_items) == pytest.approx(float(first) * math.e / (math.e - 1) * exact, rel=1e-14)


def test_rises_are_differences_without_cancellation():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6]], 4, singletons=True)
    rewards = node_rewards(tree)
    above = np.where(tree.parent < 0, np.arange(tree.n_nodes), tree.parent)
    np.testing.assert_allclose(rewards.rise, rewards.reward - rewards.reward[above], atol=2e-16)
    assert rewards.rise[tree.root] == 0.0
    assert rewards.rise[6] == 0.0, "an only child is worth its parent exactly"


def test_a_reward_of_ones_own_is_asked_once_a_size():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, singletons=True)
    asked = []

    def reward(size, n_items):
        asked.append((size, n_items))
        return 1 / size

    rewards = node_rewards(tree, reward)
    assert asked == [(1, 4), (2, 4), (4, 4)]
    np.testing.assert_array_equal(rewards.reward, 1 / tree.sizes)
    np.testing.assert_array_equal(rewards.rise, [0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.0])


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (lambda size, n_items: size / n_items, "got 0.25 for 1 item.*0.5 for 2"),
        (lambda size, n_items: -1.0, "got -1.0 for 1 item"),
        (lambda size, n_items: math.nan, "got nan"),
    ],
)
def test_rewards_that_are_none(reward, said):
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, singletons=True)
    with pytest.raises(ParameterError, match=said):
        node_rewards(tree, reward)


def test_the_largest_reward_there_can_be():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    assert node_rewards(tree, lambda size, n_items: 1e100).reward.tolist() == [1e100] * 7
    with pytest.raises(ParameterError, match=r"got 2e\+100 for 1 item\(s\); .* at most 1e\+100"):
        node_rewards(tree, lambda size, n_items: 2e100)


def test_features_in_the_place_of_the_tree_are_refused():
    with pytest.raises(HierarchyError, match="expected a Hierarchy"):
        node_rewards([[1.0, 0.0]])
