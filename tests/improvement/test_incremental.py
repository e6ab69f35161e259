"""After any edit, what is kept of the score is what scoring the changed tree anew says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp_hier.errors import ParameterError, PomdpHierError
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.inputs import prepare
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.settings import Settings
from pomdp_hier.improvement import incremental
from pomdp_hier.improvement.incremental import ScoredDraft
from tests.scorer_oracle import trees


class Bold:
    """A stopping rule of one's own that looks at everything it is told."""

    def descend(self, eta, sizes, rewards, level):
        return (eta.max(axis=1) > 0.4 + 0.02 * level) & (rewards.mean() > 0) & (sizes.min() < 9)


def alike(items, cluster):
    return items @ cluster.centroid + 0.1 * cluster.contains - 0.01 * cluster.size


SETTINGS = {
    "plain": {},
    "deltas by level": {"nu": 1.7},
    "search on a tie": {"tie": "search"},
    "descend": {"policy": "descend", "nu": 1.3},
    "hindsight": {"policy": "hindsight"},
    "root": {"policy": "search-root"},
    "own rule": {"policy": Bold()},
    "reward": {"reward": lambda size, n: 1 - (size / n) ** 0.5},
    "flat reward": {"reward": lambda size, n: float(size < 4)},
    "outside its singleton": {"enter_own_singleton": False},
    "cosine with itself": {"similarity": Cosine(leave_out=False, own_singleton=0.5)},
    "inverse": {"similarity": InverseSquaredEuclidean(epsilon=0.1)},
    "inverse without itself": {"similarity": InverseSquaredEuclidean(leave_out=True, mean=True, own_singleton=2.0)},
    "distance": {"similarity": NegativeEuclidean(leave_out=True)},
    "own similarity": {"similarity": alike},
    "precomputed": {"similarity": "precomputed"},
    "sparse": {},
    "sparse distance": {"similarity": "negative_euclidean"},
    "near": {"similarity": "negative_euclidean"},
    "sparse near": {"similarity": "negative_euclidean"},
}


def features(name, n_items, rng):
    import scipy.sparse as sp

    X = rng.normal(size=(n_items, 3))
    if name.endswith("near"):  # products cancel, so that differences are looked at
        X = 100 * X[np.arange(n_items) // 3] + X / 1e6
    if name == "precomputed":
        X = X @ rng.normal(size=(3, 3)) @ X.T  # not the same both ways
        X[np.arange(n_items), np.arange(n_items)] = np.nan
    sparse = np.hstack([np.where(X > 0, X, 0.0), np.ones((n_items, 1))])
    return sp.csr_matrix(sparse) if name.startswith("sparse") else X


def random_edit(draft, rng):
    """Some edit that the draft takes, or none."""
    inner = [node for node, below in draft.below.items()]
    node = int(rng.integers(len(draft.parent)))
    target = int(rng.choice(inner))
    siblings = [v for v in inner if v != target and draft.parent[v] == draft.parent[target] >= 0]
    below = draft.below[target]
    attempts = [
        lambda: draft.moved(node, target),
        lambda: draft.merged([int(rng.choice(siblings))] if siblings else [], target),
        lambda: draft.without([int(v) for v in rng.choice(inner, size=min(len(inner), int(rng.integers(1, 4))))]),
        lambda: draft.collapsed(target),
        lambda: draft.parted(target, [v for v in below if rng.random() < 0.5]),
    ]
    try:
        return attempts[int(rng.integers(len(attempts)))]()
    except ParameterError:
        return {}


def check(tree, X, given, rng, n_edits):
    scored = ScoredDraft(prepare(X, tree, Settings(delta=0.3, **given), warn=False))
    assert scored.values == pytest.approx(evaluate(X, tree, delta=0.3, engine="numpy", **given).values, abs=1e-12)
    for _ in range(n_edits):
        trial = scored.trial(random_edit(scored.draft, rng))
        before = scored.values
        scored.apply(scored.trial(trial.changes, anew=True))
        expected = evaluate(X, scored.draft.tree(), delta=0.3, engine="numpy", **given).values
        assert scored.values == pytest.approx(expected, abs=1e-12)
        before = before.copy()
        before[trial.items] += trial.rise
        assert before == pytest.approx(expected, abs=1e-12)


def some_tree(rng):
    """Nine items below five inner nodes, chains and items beside clusters among them."""
    inner = [9 + int(rng.integers(k + 1, 6)) for k in range(5)]
    items = [*rng.permutation(5)[:5].tolist(), *rng.integers(6, size=4).tolist()]
    return Hierarchy([*(9 + k for k in items), *inner, -1], 9, singletons=bool(rng.integers(2)))


@pytest.mark.parametrize("name", SETTINGS)
def test_after_some_edits_the_values_are_those_of_the_changed_tree(name):
    rng = np.random.default_rng(list(SETTINGS).index(name))
    tree = some_tree(rng)
    check(tree, features(name, tree.n_items, rng), SETTINGS[name], rng, 4)


@pytest.mark.parametrize("name", ["plain", "cosine with itself", "precomputed", "sparse", "near"])
def test_a_single_item_that_moves_takes_its_similarities_along(name):
    rng = np.random.default_rng(4)
    tree = some_tree(rng)
    X, given = features(name, tree.n_items, rng), {"policy": "descend", **SETTINGS[name]}
    scored = ScoredDraft(prepare(X, tree, Settings(delta=0.3, **given), warn=False))
    before = scored.values
    for item, target in zip(range(9), rng.choice(np.arange(9, tree.n_nodes), 9), strict=True):
        if tree.parent[item] != target:
            trial, draft = scored.trial(scored.draft.moved(item, int(target))), scored.draft.copy()
            draft.apply(trial.changes)
            after = before.copy()
            after[trial.items] += trial.rise
            assert after == pytest.approx(evaluate(X, draft.tree(), delta=0.3, engine="numpy", **given).values)


def test_a_tree_that_needs_more_memory_than_there_is_is_refused(monkeypatch):
    tree = Hierarchy.from_children([[0, 1, 2], [3, 4], [5, 6]], 5, singletons=True)
    prepared = prepare(np.eye(5), tree, Settings())
    needed = 3 * 8 * (3 * 3 + 2 * 2 + 5 * 2)  # three numbers of 8 bytes for each item and child along its path
    monkeypatch.setattr(incremental, "memory_available", lambda: needed)
    ScoredDraft(prepared)
    monkeypatch.setattr(incremental, "memory_available", lambda: needed - 1)
    with pytest.raises(PomdpHierError, match="got a declared size of 552 bytes"):
        ScoredDraft(prepared)


@pytest.mark.parametrize("policy", ["descend", "one-step", Bold()])
def test_a_cluster_that_comes_to_another_level_takes_its_temperatures_along(policy):
    lists = [[0, 1], [2, 3], [4, 5], [6, 7], [10, 11], [14, 12], [15, 13], [8, 9], [16, 17]]
    tree = Hierarchy.from_children([*lists], 10)
    X = np.random.default_rng(3).normal(size=(10, 3))
    given = {"delta": 0.6, "nu": 2.5, "policy": policy}
    for node, target in ((14, 18), (15, 18), (14, 17)):
        scored = ScoredDraft(prepare(X, tree, Settings(**given)))
        trial = scored.trial(scored.draft.moved(node, target))
        scored.apply(scored.trial(trial.changes, anew=True))
        expected = evaluate(X, scored.draft.tree(), engine="numpy", **given).values
        assert scored.values == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
@settings(max_examples=15, deadline=None)
@given(trees(), st.integers(0, 99))
def test_after_every_edit_the_values_are_those_of_the_changed_tree(name, tree, seed):
    rng = np.random.default_rng(seed)
    if tree.n_nodes > tree.n_items:
        check(tree, features(name, tree.n_items, rng), SETTINGS[name], rng, 3)
