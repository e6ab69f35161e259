"""After any edit, what is kept of the score is what scoring the changed tree anew says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.errors import ParameterError, PomdpHierError
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.inputs import Settings, prepare
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.search_length import expected_search_length
from pomdp_hier.improvement import incremental
from pomdp_hier.improvement.choice import part_of
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.node_views import HQS, Objective
from tests.extras import few
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


def check(tree, X, given, rng, n_edits, objective=HQS):
    def anew(changed):
        if objective is HQS:
            return evaluate(X, changed, delta=0.3, engine="numpy", **given)
        return expected_search_length(X, changed, delta=0.3, engine="numpy", label_cost=objective.label_cost, **given)

    weights = given.get("sample_weight")
    settings = {name: value for name, value in given.items() if name != "sample_weight"}
    prepared = prepare(X, tree, Settings(delta=0.3, **settings), warn=False, sample_weight=weights)
    scored = ScoredDraft(prepared, objective)
    assert scored.values == pytest.approx(anew(tree).values, abs=1e-12)
    for _ in range(n_edits):
        trial = scored.trial(random_edit(scored.draft, rng))
        before, old = scored.values, anew(scored.draft.tree())
        scored.apply(scored.trial(trial.changes, anew=True))
        expected = anew(scored.draft.tree())
        assert scored.values == pytest.approx(expected.values, abs=1e-12)
        before = before.copy()
        before[trial.items] += trial.rise
        assert before == pytest.approx(expected.values, abs=1e-12)
        gain = prepared.total(trial.rise, trial.items) / tree.n_items
        assert gain == pytest.approx(expected.score - old.score, abs=1e-12)


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


UNUSED = ("policy", "tie", "reward")  # by the search length


def length_case(name, seed):
    """A tree, features, settings and an objective of the search length, with weights in every second case."""
    rng = np.random.default_rng(seed)
    tree = some_tree(rng)
    given = {key: value for key, value in SETTINGS[name].items() if key not in UNUSED}
    given |= {"sample_weight": rng.choice([0.0, 1.0, 2.5], tree.n_items, p=[0.2, 0.4, 0.4])} if seed % 2 else {}
    return tree, features(name, tree.n_items, rng), given, rng


@pytest.mark.parametrize("label_cost", few(1, [1.0, 0.0]))
@pytest.mark.parametrize("name", [name for name in SETTINGS if not set(SETTINGS[name]) & set(UNUSED)])
def test_gains_in_search_length_are_those_of_the_changed_tree(name, label_cost):
    seed = list(SETTINGS).index(name)
    tree, X, given, rng = length_case(name, seed)
    check(tree, X, given, rng, 4, Objective(label_cost))


@pytest.mark.slow
@pytest.mark.parametrize("label_cost", [0.0, 1.0, 7.5])
@pytest.mark.parametrize("name", [name for name in SETTINGS if not set(SETTINGS[name]) & set(UNUSED)])
def test_gains_in_search_length_of_many_trees(name, label_cost):
    for seed in range(30):
        tree, X, given, rng = length_case(name, seed)
        check(tree, X, given, rng, 6, Objective(label_cost))


@pytest.mark.parametrize("label_cost", [0.0, 1.0])
def test_the_search_length_of_a_half_is_that_of_its_tree(label_cost):
    tree, X, _, rng = length_case("plain", 1)
    weights = np.where(np.arange(9) % 2, 1.0, 3.0)
    whole = prepare(X, tree, Settings(delta=0.3), sample_weight=weights, warn=False)
    items = np.array([0, 2, 3, 5, 8])
    part = part_of(whole, items).prepared
    scored = ScoredDraft(part, Objective(label_cost))
    for _ in range(3):
        scored.apply(scored.trial(random_edit(scored.draft, rng)))
        settings = {"delta": 0.3, "label_cost": label_cost, "sample_weight": weights[items]}
        found = expected_search_length(X[items], scored.draft.tree(), **settings)
        assert scored.values == pytest.approx(found.values, abs=1e-12)


def test_every_edit_is_tried_and_labels_change_far_above_it():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [8, 9], [11, 10], [12, 6], [13, 7]], 8)
    X = np.random.default_rng(0).normal(size=(8, 3))
    scored = ScoredDraft(prepare(X, tree, Settings(delta=0.3)), Objective(1.0))
    draft = scored.draft
    edits = {
        "move an item": draft.moved(0, 9),
        "move an item beside clusters": draft.moved(0, 12),
        "move a cluster": draft.moved(8, 12),
        "merge": draft.merged([8], 9),
        "remove": draft.without([11]),
        "remove two levels": draft.without([11, 12]),
        "collapse": draft.collapsed(12),
        "split": draft.parted(8, [0]),
    }
    for name, changes in edits.items():
        trial, changed = scored.trial(changes), scored.copy()
        changed.apply(changed.trial(changes, anew=True))
        found = expected_search_length(X, changed.draft.tree(), delta=0.3, label_cost=1.0)
        old = expected_search_length(X, tree, delta=0.3, label_cost=1.0)
        rise = np.zeros(8)
        rise[trial.items] = trial.rise
        assert rise == pytest.approx(found.values - old.values, abs=1e-12), name
        if name not in ("move an item", "move a cluster"):  # item 7, beside them all at the root, sees other labels
            assert abs(rise[7]) > 1e-12, name


@pytest.mark.parametrize("label_cost", [0.0, 0.1, 1.0, 4.0])
def test_no_tree_exceeds_the_bound_on_the_search_length(label_cost):
    item = np.arange(27)
    groups = [item // 9, 3 + item // 3, 12 + item]  # searchers who are never wrong
    X = sum(np.eye(39)[group] for group in groups)
    tree = Hierarchy.from_paths([f"{k // 9} > {k // 3} > {k}" for k in item], sep=">")
    rng, best = np.random.default_rng(0), -np.inf
    for weights in (None, rng.random(27) ** 8):
        for start in (tree, tree.with_singletons(True), Hierarchy.from_children([item], 27)):
            prepared = prepare(X, start, Settings(delta=1e-3), sample_weight=weights, warn=False)
            scored = ScoredDraft(prepared, Objective(label_cost))
            for _ in range(12):
                score = prepared.total(scored.values, item) / 27
                assert score <= scored.upper_bound + 1e-12
                best = max(best, score) if weights is None else best
                scored.apply(scored.trial(random_edit(scored.draft, rng)))
    equal = ScoredDraft(prepare(X, tree, Settings(), warn=False), Objective(label_cost))
    assert equal.upper_bound < best + 0.1


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
@given(trees(), st.integers(0, 99))
def test_after_every_edit_the_values_are_those_of_the_changed_tree(name, tree, seed):
    rng = np.random.default_rng(seed)
    if tree.n_nodes > tree.n_items:
        check(tree, features(name, tree.n_items, rng), SETTINGS[name], rng, 3)


PLACES = {  # node, source, target: the items compared with at the source, and at the target
    "another subject": ((10, 13, 14), [3, 4, 5], [6, 7, 8, 9]),
    "a sibling": ((10, 13, 11), [5], [3, 4]),
    "up": ((11, 13, 15), [0, 1, 2, 5], [6, 7, 8, 9]),
    "the only sibling": ((13, 15, 14), [], [6, 7, 8, 9]),
}


@pytest.mark.parametrize("name", ["plain", "sparse", "precomputed"])
@pytest.mark.parametrize(("edit", "here", "there"), PLACES.values(), ids=PLACES)
def test_a_cluster_is_compared_with_what_else_is_at_its_source_and_target(edit, here, there, name):
    tree = Hierarchy.from_children([[0, 1, 2], [3, 4], [6, 7, 8], [10, 11, 5], [12, 9], [13, 14]], 10)
    X = features(name, 10, np.random.default_rng(3))
    scored = ScoredDraft(prepare(X, tree, Settings(**SETTINGS[name])))
    rows = X.toarray() if name == "sparse" else X

    def similarity(item, members):
        if name == "precomputed":
            return rows[item, members].mean()
        unit = rows / np.linalg.norm(rows, axis=1)[:, None]
        return (unit[members] @ unit[item]).mean()

    moved = scored.seen[edit[0]].members if here else []
    more = [similarity(item, there) - similarity(item, here) for item in moved]
    at_source, at_target = ([similarity(item, moved) for item in some if len(moved)] for some in (here, there))
    for found, expected in zip(scored.closer(*edit), (more, at_source, at_target), strict=True):
        assert found == pytest.approx(np.array(expected), abs=1e-12)
