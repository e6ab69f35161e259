"""Cluster sums against plain addition, for trees of every shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.features import dense
from pomdp_hier.features import membership as members
from pomdp_hier.features.membership import at_children, children_of, cluster_sums, contains, membership, ranges
from pomdp_hier.features.similarity import Cosine, NegativeEuclidean
from pomdp_hier.hierarchy.tree import Hierarchy
from tests.scorer_oracle import features, trees


def plain(tree, X):
    return np.array([X[tree.items(node)].sum(axis=0) for node in range(tree.n_items, tree.n_nodes)]).reshape(
        -1, X.shape[1]
    )


@pytest.mark.parametrize("run", [4096, 2])
@given(data=st.data())
def test_sums_are_sums(run, data):
    tree = data.draw(trees())
    X = data.draw(features(tree.n_items))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "RUN", run)
        found = cluster_sums(tree, lambda items: X[items], X.shape[1])
    np.testing.assert_array_equal(found, plain(tree, X))
    np.testing.assert_array_equal(membership(tree, np.arange(tree.n_nodes)) @ X, np.concatenate([X, found]))


def test_a_chain_and_a_caterpillar_of_many_levels():
    n_items = 30_000
    children = [[0, 1]] + [[k + 1, n_items + k - 1] for k in range(1, n_items - 1)]
    tree = Hierarchy.from_children(children, n_items)
    X = np.ones((n_items, 2))
    np.testing.assert_array_equal(cluster_sums(tree, lambda items: X[items], 2)[:, 0], tree.sizes[n_items:])
    chain = Hierarchy.from_children([[0, 1]] + [[2 + k] for k in range(30_000)], 2)
    np.testing.assert_array_equal(cluster_sums(chain, lambda items: X[items], 2), 2.0)


def test_order_of_addition_is_the_same_for_equal_subtrees():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) * 10.0 ** rng.integers(-8, 8, (40, 1))
    inner = [[10, 11, 12, 13], [14, 15, 16, 17, 18, 19], [40, 41]]
    tree = Hierarchy.from_children([*inner, [*range(10), 42, *range(20, 40)]], 40)
    alone = Hierarchy.from_children([[0, 1, 2, 3], [4, 5, 6, 7, 8, 9], [10, 11]], 10)
    found = cluster_sums(tree, lambda items: X[items], 3)[:3]
    np.testing.assert_array_equal(found, cluster_sums(alone, lambda items: X[10 + items], 3))


@given(
    data=st.data(), dtype=st.sampled_from(["float32", "float64"]), kind=st.sampled_from([Cosine(), NegativeEuclidean()])
)
def test_compiled_sums_and_lengths_have_the_same_bits(data, dtype, kind):
    pytest.importorskip("numba")
    tree = data.draw(trees())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    X = (rng.standard_normal((tree.n_items, 11)) * 10.0 ** rng.integers(-8, 8, (tree.n_items, 1))).astype(dtype)
    run = data.draw(st.sampled_from([2, 4096]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "RUN", run)
        patch.setattr(dense, "RUN", run)
        patch.setattr(dense, "VALUE_SECONDS", 1.0)
        ours, theirs = (dense.DenseAffinity(X, tree, kind, compiled=compiled) for compiled in (True, False))
    for name in ("largest", "lengths", "sums"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_sums_are_written_to_the_given_array(tmp_path):
    tree = Hierarchy.from_children([[0, 1], [2, 3]], 3)
    out = np.memmap(tmp_path / "sums", dtype=float, mode="w+", shape=(2, 1))
    assert cluster_sums(tree, lambda items: items[:, None].astype(float), 1, out=out) is out
    np.testing.assert_array_equal(out, [[1.0], [3.0]])


@given(tree=trees())
def test_children_and_places(tree):
    nodes = np.arange(tree.n_nodes)
    children, counts = children_of(tree, nodes)
    assert children.tolist() == [int(c) for node in nodes for c in tree.children(node)]
    assert counts.tolist() == [len(tree.children(node)) for node in nodes]
    assert at_children(tree.sizes, nodes, children).tolist() == tree.sizes[children].tolist()
    for node in nodes:  # which is worked out once for all that stand there
        thrice = np.repeat(node, 3)
        children, counts = children_of(tree, thrice)
        assert (children.tolist(), counts.tolist()) == (list(tree.children(node)) * 3, [len(tree.children(node))] * 3)
        assert at_children(tree.sizes, thrice, children).tolist() == tree.sizes[children].tolist()
    inside = contains(tree, nodes[:, None], tree.starts[None, : tree.n_items])
    assert all(set(np.flatnonzero(inside[node])) == set(tree.items(node).tolist()) for node in nodes)


def test_no_ranges():
    assert ranges([], []).tolist() == []
    assert ranges([4, 7, 1], [0, 0, 2]).tolist() == [1, 2]
