"""Structure: counts, chains, wide nodes, lopsided splits and catch-alls, each in a tree made for it."""

import numpy as np
import pytest

from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.analysis.structure import CatchAll, Chain, WideNode, check_structure
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from tests.planted import clean_case


def test_a_healthy_tree_has_nothing_to_say():
    X, tree = clean_case()
    report = check_structure(tree, diagnose(X, tree, delta=0.05))
    assert report.sentences() == []
    assert (report.n_items, report.n_clusters, report.n_leaves, report.height) == (45, 13, 9, 2)
    assert (report.max_children, report.mean_children, report.largest_leaf, report.mean_level) == (3, 3, 5, 2)


def test_chains_at_the_root_in_the_middle_and_at_the_end():
    tree = Hierarchy.from_children([[0, 1], [4], [5], [2, 3], [6, 7], [8], [9]], 4)
    report = check_structure(tree)
    assert set(report.chains) == {Chain(10, 2), Chain(6, 2)}
    assert "4 nodes with one child only, the longest chain 2" in report.sentences()[0]
    deep = Hierarchy.from_children([[0, 1], *([2 + k] for k in range(50_000))], 2)
    assert check_structure(deep).chains == (Chain(deep.root, 50_000),)


def test_wide_and_lopsided():
    n_items = 119
    tree = Hierarchy.from_children([[k] for k in range(n_items)] + [list(range(n_items, 2 * n_items))], n_items)
    report = check_structure(tree, wide=100)
    assert report.wide == (WideNode(tree.root, n_items),)
    assert "widest with 119 children" in report.sentences()[0]
    ladder = Hierarchy.from_children([[0, 1], *([30 + k, k + 2] for k in range(28))], 30)
    found = check_structure(ladder).lopsided
    assert [part.node for part in found] == list(range(ladder.root, ladder.root - 11, -1))
    assert found[0].share == pytest.approx(29 / 30)
    assert check_structure(ladder, lopsided=0.96).lopsided == found[:6]


def test_a_catch_all_draws_from_its_siblings():
    rng = np.random.default_rng(0)
    X = np.zeros((50, 5))
    for group in range(4):
        X[group * 10 : group * 10 + 10, group] = 1
    X[40:, :4] = 1  # a bit of everything
    X[[0, 10, 20]] = X[40]
    X += rng.random(X.shape) * 0.01
    tree = Hierarchy.from_children([*(list(range(k, k + 10)) for k in range(0, 50, 10)), [50, 51, 52, 53, 54]], 50)
    report = check_structure(tree, diagnose(X, tree, delta=0.05))
    (found,) = report.catch_alls
    assert isinstance(found, CatchAll)
    assert (found.node, found.n_siblings, found.n_items) == (54, 3, 3)
    assert found.expected_errors == pytest.approx(3, abs=0.3)
    assert "3 items of 3 siblings" in report.sentences()[0]
    assert check_structure(tree).catch_alls == ()


def test_limits_and_another_tree():
    X, tree = clean_case()
    for name, value in (("wide", 0), ("wide", "many"), ("lopsided", 0.0), ("lopsided", 1.5), ("lopsided", "much")):
        with pytest.raises(ParameterError, match=f"{name}: got {value!r}"):
            check_structure(tree, **{name: value})
    with pytest.raises(ParameterError, match="diagnosis: got a Hierarchy"):
        check_structure(tree, tree)
    with pytest.raises(ParameterError, match="another hierarchy"):
        check_structure(tree.permuted(np.roll(np.arange(45), 7)), diagnose(X, tree))
