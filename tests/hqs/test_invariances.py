"""What must not change a score, a baseline or a measure: names, the order of children and items, only children."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier import measures
from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.inputs import calibrate_delta
from pomdp_hier.hqs.score import evaluate
from tests import scorer_oracle as oracle

SEEDS = st.integers(0, 999)
POLICIES = st.sampled_from(["one-step", "optimal", "descend", "hindsight"])


def everything(X, tree, **options):
    """Every figure of a tree that should not depend on how it is written down."""
    found = diagnose(X, tree, engine="numpy", **options)
    calibration = calibrate_delta(X, tree, bounds=(0.01, 2.0)).trees["tree"]
    return {
        "values": found.result.values,
        "levels": found.result.stop_levels,
        "lost": found.left_path_level,
        "ends": tree.sizes[found.ends_at],
        "misled": np.sort(found.wrong_branch_loss[found.wrong_branch_loss > 1e-13]),
        "stopped": found.early_stop_loss.sum(),
        "first branch": found.first_branch_accuracy,
        "delta": calibration.delta if calibration.n_steps else np.nan,
        "dasgupta": measures.dasgupta_cost(X, tree, normalized=False),
        "cophenetic": measures.cophenetic_correlation(X, tree),
        "levels' cophenetic": measures.cophenetic_correlation(X, tree, heights="levels"),
        "purity": measures.dendrogram_purity(tree, (X[:, 0] > 0).tolist()),
        "f": measures.class_f_score(tree, (X[:, 0] > 0).tolist()).f,
    }


def same(one, other, items=slice(None)):
    for name, figure in one.items():
        there = other[name]
        if np.ndim(figure) and name != "misled":
            there = there[items]
        tolerance = 1e-5 if name in ("delta", "cophenetic", "levels' cophenetic") else 1e-10
        np.testing.assert_allclose(figure, there, atol=tolerance, err_msg=name)


def with_only_children(tree: Hierarchy, nodes: list[int]) -> Hierarchy:
    """The tree with a new node between each of these clusters and its parent, or above the root."""
    parent = tree.parent.tolist()
    for node in nodes:
        parent.append(parent[node])
        parent[node] = len(parent) - 1
    return Hierarchy(parent, tree.n_items, singletons=tree.singletons)


@given(oracle.trees(), SEEDS, POLICIES)
@pytest.mark.slow
def test_numbers_names_and_the_order_of_children(tree, seed, policy):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(tree.n_items, 3))
    number = np.concatenate([np.arange(tree.n_items), rng.permutation(np.arange(tree.n_items, tree.n_nodes)), [-1]])
    parent = np.empty(tree.n_nodes, dtype=int)
    parent[number[:-1]] = number[tree.parent]
    names = [f"node {k}" for k in range(tree.n_nodes)]
    order = rng.permutation(tree.n_nodes)
    other = Hierarchy(parent, tree.n_items, order=order, singletons=tree.singletons, labels=names)
    same(everything(X, tree, delta=0.3, policy=policy), everything(X, other, delta=0.3, policy=policy))


@given(oracle.trees(), SEEDS, POLICIES)
def test_the_order_of_items(tree, seed, policy):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(tree.n_items, 3))
    perm = rng.permutation(tree.n_items)
    Y = np.empty_like(X)
    Y[perm] = X
    other = everything(Y, tree.permuted(perm), delta=0.3, policy=policy)
    same(everything(X, tree, delta=0.3, policy=policy), other, perm)


@given(oracle.trees(), SEEDS, st.sampled_from(["one-step", "optimal"]), st.data())
@pytest.mark.slow
def test_an_only_child_more_changes_nothing(tree, seed, policy, data):
    X = np.random.default_rng(seed).normal(size=(tree.n_items, 3))
    inner = np.flatnonzero(np.arange(tree.n_nodes) >= tree.n_items)
    nodes = data.draw(st.lists(st.sampled_from(inner.tolist() or [tree.root]), max_size=3))
    nodes = [node for node in nodes if node >= tree.n_items]
    longer = with_only_children(tree, nodes)
    assert longer.is_cluster[: tree.n_items].tolist() == tree.is_cluster[: tree.n_items].tolist()
    options = {"delta": 0.3, "policy": policy, "engine": "numpy"}
    one, other = evaluate(X, tree, **options), evaluate(X, longer, **options)
    np.testing.assert_allclose(one.values, other.values, atol=1e-12)
    np.testing.assert_array_equal(tree.sizes[one.stop_nodes], longer.sizes[other.stop_nodes])
    assert diagnose(X, longer, other, **options).first_branch_accuracy == pytest.approx(
        diagnose(X, tree, one, **options).first_branch_accuracy, nan_ok=True
    )
    costs = [measures.dasgupta_cost(X, each, normalized=False) for each in (tree, longer)]
    assert costs[0] == pytest.approx(costs[1], abs=1e-10)
    if policy == "one-step" and calibrate_delta(X, tree).trees["tree"].n_steps:
        assert calibrate_delta(X, longer).delta == pytest.approx(calibrate_delta(X, tree).delta, rel=1e-9)
