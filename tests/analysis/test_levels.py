"""Levels taken out and cuts of dendrograms, each held against the scores of the trees that come of them."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from pomdp_hier import Hierarchy, evaluate, expected_search_length
from pomdp_hier.analysis import best_cut, compare, score_by_levels
from pomdp_hier.analysis.levels import BestCut, _cut, _fronts, _splits, without_levels
from pomdp_hier.errors import HierarchyError, ParameterError
from pomdp_hier.features.similarity import Cosine
from tests.planted import clean_case


def features(n=24, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 6))[rng.integers(5, size=n)] + 0.6 * rng.normal(size=(n, 6))


def dendrogram(X, method="average", **kwargs):
    return Hierarchy.from_linkage(linkage(X, method), **kwargs)


SETTINGS = [
    {"delta": 0.1},
    {"delta": 0.005},
    {"delta": 1e-4},
    {"delta": 0.3, "tie": "search"},
    {"delta": 0.1, "nu": 1.5},
    {"delta": 0.5, "similarity": "negative_euclidean"},
    {"delta": 0.02, "similarity": "inverse_sqeuclidean"},
    {"delta": 0.1, "similarity": Cosine(leave_out=True, own_singleton=0.2)},
    {"delta": 0.1, "reward": lambda size, n_items: 1 - size / n_items},
    {"delta": 0.002, "reward": lambda size, n_items: 0.5},  # weights that get lost beside 1 still decide
    {"delta": 1e-308, "similarity": "inverse_sqeuclidean"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s)))
def test_each_flat_cut_has_the_score_of_its_tree(settings):
    X = features()
    tree = dendrogram(X)
    found = best_cut(X, tree, **settings)
    fronts = list(_fronts(tree, _splits(tree, 24)))
    scores = [evaluate(X, _cut(tree, [front]), **settings).score for front in fronts]
    assert [len(front) for front in fronts] == list(range(1, 25))
    np.testing.assert_allclose(found.curve, scores, rtol=0, atol=1e-12)
    assert found.score == pytest.approx(max(scores), abs=1e-12)
    assert evaluate(X, found.tree, **settings).score == pytest.approx(found.score, abs=1e-12)
    assert found.n_clusters == (int(np.argmax(scores)) + 1,)


def test_many_items_and_clusters_in_blocks_and_groups(monkeypatch):
    monkeypatch.setattr("pomdp_hier.analysis.levels._BLOCK", 50)
    X = features(n=130, seed=3)
    tree = dendrogram(X, "ward")
    found = best_cut(X, tree, delta=0.05, max_clusters=90)
    for k in (2, 31, 32, 33, 34, 64, 65, 90):
        flat = _cut(tree, [list(_fronts(tree, _splits(tree, k)))[-1]])
        assert found.curve[k - 1] == pytest.approx(evaluate(X, flat, delta=0.05).score, abs=1e-12)
    assert len(found.curve) == 90


def test_cuts_are_those_of_scipy():
    X = features()
    Z = linkage(X, "complete")
    tree = Hierarchy.from_linkage(Z)
    for k in (2, 5, 11):
        flat = _cut(tree, [list(_fronts(tree, _splits(tree, k)))[-1]])
        scipys = fcluster(Z, k, "maxclust")
        same = flat.leaf_of_item[:, None] == flat.leaf_of_item
        assert np.array_equal(same, scipys[:, None] == scipys)


def test_a_tree_of_any_fan_out_is_cut_the_largest_cluster_first():
    X, tree = clean_case()
    found = best_cut(X, tree, delta=0.02)
    there = np.flatnonzero(~np.isnan(found.curve)) + 1
    assert there[:3].tolist() == [1, 3, 5]  # the root into 3 clusters, then one of them into 3
    for front in _fronts(tree, _splits(tree, 45)):
        assert found.curve[len(front) - 1] == pytest.approx(
            evaluate(X, _cut(tree, [front]), delta=0.02).score, abs=1e-12
        )


def test_a_second_level_is_the_best_of_those_tried_or_left_out():
    X = features(n=60, seed=1)
    tree = dendrogram(X, "ward")
    one, two = (best_cut(X, tree, levels=levels, delta=0.05) for levels in (1, 2))
    assert two.score >= one.score
    assert evaluate(X, two.tree, delta=0.05).score == pytest.approx(two.score, abs=1e-12)
    fronts = list(_fronts(tree, _splits(tree, 60)))
    pairs = [(one.n_clusters[0], k) for k in range(2, 61) if k != one.n_clusters[0]]
    every = {
        tuple(sorted(pair)): evaluate(X, _cut(tree, [fronts[k - 1] for k in sorted(pair)]), delta=0.05).score
        for pair in pairs
    }
    assert max(every.values()) >= two.score
    if len(two.n_clusters) == 2:
        assert two.score == pytest.approx(every[two.n_clusters], abs=1e-12)


def test_names_stay():
    X = features(n=6)
    tree = dendrogram(X, labels=[f"item {k}" for k in range(6)])
    assert best_cut(X, tree, delta=0.1).tree.item_labels == tuple(f"item {k}" for k in range(6))
    named = Hierarchy(tree.parent, 6, labels=[f"node {k}" for k in range(11)])
    front = list(_fronts(named, _splits(named, 3)))[-1]
    inner = [(k, node) for k, node in enumerate([*front, named.root], start=6) if node >= 6]
    assert [_cut(named, [front]).labels[k] for k, _ in inner] == [named.labels[node] for _, node in inner]


def test_a_single_item_has_one_cut():
    found = best_cut([[1.0, 2.0]], Hierarchy.from_children([[0]], 1))
    assert (found.score, found.n_clusters) == (0.0, (1,))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"levels": 0}, "levels: got 0"),
        ({"max_clusters": 1.5}, "max_clusters: got 1.5"),
        ({"policy": "descend"}, "policy: got 'descend'"),
        ({"sample_size": 3}, "sample_size: got 3"),
        ({"engine": "numpy"}, "engine: got 'numpy'"),
        ({"colour": 1}, "colour: got an unknown setting"),
    ],
)
def test_what_a_cut_cannot_use_is_refused(arguments, told):
    X = features(n=6)
    with pytest.raises(ParameterError, match=told):
        best_cut(X, dendrogram(X), **arguments)


# --- levels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["bottom", "top"])
def test_levels_have_the_scores_and_differences_of_their_trees(side):
    X, tree = clean_case()
    found = score_by_levels(X, tree, remove_from=side, delta=0.02)
    assert found.n_levels == (2, 1, 0)
    assert found.trees[0] == tree
    for kept, one, score, difference in zip(found.n_levels, found.trees, found.scores, found.differences, strict=True):
        assert one == without_levels(tree, kept, side)
        assert score == evaluate(X, one, delta=0.02).score
        if kept < 2:
            peer = compare(X, {"less": one, "whole": tree}, measures=False, delta=0.02).differences[0]
            assert (difference.difference, difference.low, difference.high) == (peer.difference, peer.low, peer.high)
    assert found.n_clusters == tuple(one.n_nodes - one.n_items for one in found.trees)
    assert found.scores[-1] == 0
    assert [row["hqs"] for row in found.to_rows()] == list(found.scores)


def test_what_is_left_of_a_tree_by_hand():
    tree = Hierarchy.from_children([[0, 1], [2], [5, 6], [7, 3, 4]], 5)  # 8 is the root, 7 above 5 and 6
    assert without_levels(tree, 1, "bottom") == Hierarchy.from_children([[0, 1, 2], [5, 3, 4]], 5)
    assert without_levels(tree, 1, "top") == Hierarchy.from_children([[0, 1], [2], [5, 6, 3, 4]], 5)
    assert without_levels(tree, 0, "bottom") == without_levels(tree, 0, "top") == Hierarchy.from_children([range(5)], 5)
    assert without_levels(tree, 2, "top") is tree


def test_a_level_that_tells_nothing_is_advised_away():
    # The true pairs are at the bottom; the level above puts unlike pairs together.
    X = np.repeat(np.eye(4), 6, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(24, 4))
    leaves = [list(range(6 * k, 6 * k + 6)) for k in range(4)]
    mixed = [list(range(12)), list(range(12, 24))]
    tree = Hierarchy.from_children([*leaves, [24, 25], [26, 27], [28, 29]], 24)
    assert len(mixed) == 2
    found = score_by_levels(X, tree, remove_from="top", delta=0.05)
    assert found.n_levels[found.best] == 1
    assert "\nKeep 1 level of 2: without the topmost level the tree is better.\n" in found.summary()
    kept = score_by_levels(X, tree, remove_from="bottom", delta=0.05)
    assert kept.best == int(np.argmax(kept.scores))
    for short, best in ((1e-14, 1), (1e-10, 0)):  # of scores that are equal to rounding that with the fewest levels
        results = tuple(SimpleNamespace(score=score) for score in (0.5, 0.5 - short, 0.1))
        assert replace(kept, results=results).best == best


def test_so_many_levels_are_tried_at_equal_steps():
    X = features(n=40)
    tree = dendrogram(X, "single")
    found = score_by_levels(X, tree, limit=5, delta=0.1)
    deepest = int(tree.levels[40:].max())
    assert len(found.n_levels) == 5
    assert found.n_levels[0] == deepest
    assert found.n_levels[-1] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"remove_from": "left"}, "remove_from: got 'left'"),
        ({"limit": 1}, "limit: got 1"),
        ({"colour": 1}, "colour: got an unknown setting"),
    ],
)
def test_what_levels_cannot_use_is_refused(arguments, told):
    X, tree = clean_case()
    with pytest.raises(ParameterError, match=told):
        score_by_levels(X, tree, **arguments)


def test_no_tree_is_refused():
    for function in (score_by_levels, best_cut):
        with pytest.raises(HierarchyError):
            function(features(), [[0, 1]])


def test_pairs_of_every_cut_are_nested():
    X = features(n=12)
    tree = dendrogram(X)
    fronts = list(_fronts(tree, _splits(tree, 12)))
    for a, b in combinations(range(2, 12, 3), 2):
        cut = _cut(tree, [fronts[a], fronts[b]])
        assert int(cut.levels[12:].max()) <= 2


def test_what_a_cut_says():
    X = features(n=30)
    found = best_cut(X, dendrogram(X), delta=0.1)
    lines = found.summary().splitlines()
    k = found.n_clusters[0]
    assert lines[-1] == f"The best cut is a flat one, of {k} clusters: {found.score:.4f}."
    assert f"{k:>8}  {found.score:>8.4f}" in lines
    assert [row["hqs"] for row in found.to_rows()] == found.curve.tolist()


def test_the_figure_has_each_score_and_marks_the_best():
    pytest.importorskip("matplotlib")
    from pomdp_hier.report import draw_score_curve

    X, tree = clean_case()
    advice = score_by_levels(X, tree, delta=0.02)
    ax = draw_score_curve(advice)
    line = next(line for line in ax.lines if len(line.get_xdata()) == 3)
    assert list(line.get_ydata()) == list(advice.scores)
    assert ax.lines[-1].get_xdata() == [advice.n_levels[advice.best]]
    cut = best_cut(X, tree, delta=0.02)
    assert draw_score_curve(cut).texts[0].get_text().split()[0] == str(cut.n_clusters[-1])
    with pytest.raises(ParameterError, match="found: got a list"):
        draw_score_curve([1])


def test_of_equal_flat_cuts_the_summary_has_the_fewest_clusters():
    curve = np.linspace(0.1, 0.2, 40)
    curve[[7, 8]] = 0.5
    found = BestCut(dendrogram(features(n=6)), 0.5, (8,), curve)
    shown = [int(line.split()[0]) for line in found.summary().splitlines()[1:-1]]
    assert 8 in shown
    assert 9 not in shown


def test_clusters_are_split_by_number_only_where_every_parent_has_a_higher_one():
    tree = Hierarchy.from_children([[6, 3], [0, 1], [5, 2]], 4, singletons=True)
    assert _splits(tree, 4) == [4, 6, 5]


def test_what_is_said_of_levels_and_cuts_stands_in_its_column():
    found = score_by_levels(features(), dendrogram(features()), limit=4, delta=0.1)
    head, _, *lines = found.summary().splitlines()
    assert head.split() == ["levels", "clusters", "hqs", "gain", "95", "%", "interval"]
    for row, line in zip(found.to_rows()[1:], lines, strict=False):
        told = [float(word) for word in line.replace(" to ", " ").split()]
        kept = [row[name] for name in ("n_levels", "n_clusters", "hqs", "gain", "gain_ci_low", "gain_ci_high")]
        assert told == pytest.approx(kept, abs=6e-5)
    assert best_cut(features(), dendrogram(features())).summary().splitlines()[0].split() == ["clusters", "hqs"]


def test_a_flatter_tree_with_a_better_score_comes_with_what_the_score_leaves_out():
    """Middle clusters that mix their items mislead; without them there are more labels to read at the root."""
    rng = np.random.default_rng(0)
    leaf = np.repeat(np.arange(16), 6)
    X = np.eye(16)[leaf] + rng.random((96, 16)) * 0.1
    parent = np.r_[96 + leaf, 112 + rng.permutation(np.arange(16) % 4), [116] * 4, -1]
    tree = Hierarchy(parent, 96)
    weights = rng.integers(0, 5, 96)
    for given in ({}, {"sample_weight": weights}, {"sample_size": 40, "random_state": 1}):
        found = score_by_levels(X, tree, remove_from="top", delta=0.2, **given)
        assert found.best == 1
        lengths = [
            expected_search_length(X, one, delta=0.2, label_cost=1, **given) for one in (tree, found.trees[found.best])
        ]
        if "sample_size" not in given:  # trees of another leaf order have another sample
            assert found.lengths == pytest.approx([one.mean_length for one in lengths], rel=1e-12)
        said = found.summary()
        assert "HQS does not charge for breadth" in said
        assert "The widest node has 4 children in the whole tree, and 16 in this one" in said
    fits, whole = clean_case()
    kept = score_by_levels(fits, whole, delta=0.1)
    assert (kept.lengths, kept.caveats()) == (None, [])
