"""The search against brute force: all collapses of small trees, and all moves of an item or a cluster."""

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp_hier import Hierarchy, hqs_score, improve
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hqs.inputs import prepare
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.settings import Settings
from pomdp_hier.improvement.collapse import best_collapse
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.search import Limits, Search
from tests.improvement.test_incremental import some_tree
from tests.planted import clean_case, misplaced, swapped
from tests.scorer_oracle import trees


def all_collapses(X, tree, **given):
    """The best score over every choice of nodes of which only a list of their items is left."""
    inner = range(tree.n_items, tree.n_nodes)
    best = -2.0
    for count in range(len(inner) + 1):
        for nodes in itertools.combinations(inner, count):
            draft = Draft(tree)
            for node in nodes:
                draft.apply(draft.collapsed(node))
            best = max(best, hqs_score(X, draft.tree(), engine="numpy", **given))
    return best


SETTINGS = [
    {"delta": 0.3},
    {"delta": 0.3, "policy": "descend", "nu": 1.5},
    {"delta": 0.1, "tie": "search", "enter_own_singleton": False},
    {"delta": 0.3, "policy": "descend", "reward": lambda size, n: 1 - (size / n) ** 2},
]


@pytest.mark.slow
@pytest.mark.parametrize("given_settings", SETTINGS)
@settings(max_examples=12, deadline=None)
@given(tree=trees(8), seed=st.integers(0, 99))
def test_the_best_collapse_is_the_best_of_all(given_settings, tree, seed):
    if not 1 <= tree.n_nodes - tree.n_items <= 6:
        return
    X = np.random.default_rng(seed).normal(size=(tree.n_items, 3))
    scored = ScoredDraft(prepare(X, tree, Settings(**given_settings)))
    best = best_collapse(scored)
    draft = Draft(tree)
    for node in best.nodes:
        draft.apply(draft.collapsed(node))
    assert hqs_score(X, draft.tree(), engine="numpy", **given_settings) == pytest.approx(best.score, abs=1e-12)
    assert best.score == pytest.approx(all_collapses(X, tree, **given_settings), abs=1e-12)


@pytest.mark.slow
def test_the_best_collapse_of_a_tree_with_a_split_that_helps_nobody():
    tree = Hierarchy.from_children([[0, 2], [1, 3], [4, 5], [6, 7], [8, 9]], 6)
    X = np.array([[1, 0], [1, 0.1], [1, 0], [1, 0.1], [0, 1], [0, 1]])
    for given_settings in SETTINGS:
        best = best_collapse(ScoredDraft(prepare(X, tree, Settings(**given_settings))))
        assert best.score == pytest.approx(all_collapses(X, tree, **given_settings), abs=1e-12)
        assert best.score > hqs_score(X, tree, **given_settings) or given_settings.get("policy") != "descend"


@pytest.mark.parametrize("seed", [1, 3, 16])  # in the last two, some items of a node stop there, others go on
def test_the_best_collapse_of_a_few_trees_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    tree = some_tree(rng)
    X = rng.normal(size=(9, 3))
    given_settings = {"delta": 0.3, "policy": "descend" if seed < 2 else "one-step"}
    best = best_collapse(ScoredDraft(prepare(X, tree, Settings(**given_settings))))
    assert best.score == pytest.approx(all_collapses(X, tree, **given_settings), abs=1e-12)
    draft = Draft(tree)
    for node in best.nodes:
        draft.apply(draft.collapsed(node))
    assert hqs_score(X, draft.tree(), engine="numpy", **given_settings) == pytest.approx(best.score, abs=1e-12)


def test_an_item_that_is_held_out_is_not_moved_by_itself():
    X, tree = noisy_case(np.random.default_rng(2))
    prepared = prepare(X, tree, Settings(delta=0.15))
    scored = ScoredDraft(prepared)
    moved = {node for edit in improve(X, tree, folds=0, delta=0.15).edits for node in edit.nodes}
    assert moved
    for item in moved:
        voters = np.arange(12) != item
        proposals = list(Search(scored, prepared, Limits(), voters=voters)._proposals(("move",)))
        assert item not in {proposal.nodes[0] for proposal in proposals}


def all_moves(X, tree, **given):
    """The best gain of any one move: each tried, which other tests hold against scoring the tree that it makes."""
    scored, best = ScoredDraft(prepare(X, tree, Settings(**given))), 0.0
    for node in range(tree.n_nodes):
        for target in range(tree.n_items, tree.n_nodes):
            try:
                trial = scored.trial(scored.draft.moved(node, target))
            except ParameterError:
                continue
            best = max(best, float(trial.rise.sum()) / tree.n_items)
    return best


def edits_of(kind, draft):
    """All single edits of a kind that a draft takes."""
    tree, inner = draft.tree(), sorted(draft.below)
    tries = {
        "remove": [lambda v=v: draft.without([v]) for v in inner],
        "collapse": [lambda v=v: draft.collapsed(v) for v in inner],
        "merge": [
            lambda v=v, u=u: draft.merged([v], u)
            for v, u in itertools.permutations(inner, 2)
            if draft.parent[v] == draft.parent[u] >= 0
        ],
        "remove-level": [
            lambda k=k: draft.without([v for v in inner if tree.levels[v] == k]) for k in range(1, tree.height + 1)
        ],
        "collapse-below": [
            lambda m=m: draft.without([v for v in inner if draft.parent[v] >= 0 and tree.sizes[v] < m])
            for m in (2, 3, 5, 10, 20)
        ],
    }
    for attempt in tries[kind]:
        with contextlib.suppress(ParameterError):
            yield attempt()


def messy_case(seed, singletons):
    """Groups that are hard to tell apart, two of them exchanged and an item misfiled; the root has the first number."""
    X, tree = clean_case(top=2, middle=2, items=4, seed=seed)
    X += np.random.default_rng(seed).normal(size=X.shape) / 2
    parent = misplaced(swapped(tree)[0], 3, 3)[0].parent.copy()
    parent[5] = parent[parent[5]]  # beside clusters
    n_items, last = tree.n_items, tree.n_items + tree.n_nodes - 1
    turned = [last - v if v >= n_items else v for v in parent]
    return X, Hierarchy([*turned[:n_items], *turned[: n_items - 1 : -1]], n_items, singletons=singletons)


@pytest.mark.parametrize("kind", ["remove", "merge", "collapse", "remove-level", "collapse-below"])
@pytest.mark.parametrize(("seed", "singletons"), [(3, False), (4, True)])
def test_the_first_edit_of_a_kind_is_the_best_of_all(kind, seed, singletons):
    X, tree = messy_case(seed, singletons)
    scored = ScoredDraft(prepare(X, tree, Settings(delta=0.15)))
    best = max(float(scored.trial(changes).rise.sum()) / tree.n_items for changes in edits_of(kind, scored.draft))
    found = improve(X, tree, kinds=[kind], max_edits=1, folds=0, delta=0.15)
    assert best > 0.01
    assert found.gain == pytest.approx(best, abs=1e-12)
    assert [edit.kind for edit in found.edits] == [kind]


@pytest.mark.parametrize("voters", [None, np.arange(16) % 3 > 0])
@pytest.mark.parametrize("singletons", [False, True])
def test_what_is_worth_collapsing_comes_in_the_order_of_what_it_gains(singletons, voters):
    X, tree = messy_case(4, singletons)
    given = {"delta": 0.3, "policy": "descend"}
    prepared = prepare(X, tree, Settings(**given))
    found = Search(ScoredDraft(prepared), prepared, Limits(), voters=voters)._collapsible()
    before, gains = evaluate(X, tree, **given).values, {}
    for node in range(tree.n_items, tree.n_nodes):
        draft = Draft(tree)
        draft.apply(draft.collapsed(node))
        rise = evaluate(X, draft.tree(), **given).values - before
        gains[node] = rise[voters if voters is not None else slice(None)].sum()
    assert found == sorted((node for node in gains if gains[node] > 1e-10), key=gains.get, reverse=True)
    assert len(found) > 1


def test_lists_are_split_in_the_order_of_what_smaller_ones_would_be_worth():
    sizes = [3, 4, 5, 9, 12]  # three are too few to be split
    tree = Hierarchy([*np.repeat(np.arange(33, 38), sizes), *[38] * 5, -1], 33)
    halves = np.arange(33)[:, None] % 2 - [[0.5, 0.5]]  # each list has two clear ones
    X = np.hstack([2 * np.eye(5)[np.repeat(np.arange(5), sizes)], halves])
    X += 0.3 * np.random.default_rng(0).normal(size=X.shape)

    def reward(size, n):
        return (size <= 5) / 2 + (1 - size / n) / 2

    given = {"delta": 0.2, "policy": "descend", "reward": reward}
    result, prepared = evaluate(X, tree, **given), prepare(X, tree, Settings(**given))
    arriving = np.bincount(result.stop_nodes, weights=result.path_probabilities, minlength=38)[33:]
    rise = {m: reward((m + 1) // 2, 33) - reward(m, 33) for m in sizes}
    room = {33 + at: arriving[at] * rise[m] for at, m in enumerate(sizes) if m > 3}
    proposed = list(Search(ScoredDraft(prepared), prepared, Limits())._splits())
    assert [one.source for one in proposed] == sorted(room, key=room.get, reverse=True)
    assert all(0 < len(one.nodes) < tree.sizes[one.source] for one in proposed)


def test_a_list_of_two_kinds_is_split_and_its_new_cluster_has_the_next_number():
    X, tree = clean_case()
    parent = np.where(tree.parent == 46, 45, tree.parent)[np.arange(tree.n_nodes) != 46]
    one = Hierarchy(np.where(parent > 46, parent - 1, parent), 45)
    found = improve(X, one, kinds=["split"], folds=0, delta=0.02)
    assert hqs_score(X, found.tree, delta=0.02) == pytest.approx(hqs_score(X, tree, delta=0.02), abs=1e-12)
    assert [(row["source_id"], row["target_id"], row["n_items"]) for row in found.to_rows()] == [("45", "new 57", 5)]


def noisy_case(rng):
    """Twelve items in three lists drawn along a tree, two or three of them misfiled."""
    centres = np.eye(4)[[0, 1, 2]]
    shelf = np.repeat(np.arange(3), 4)
    X = centres[shelf] + 0.25 * rng.normal(size=(12, 4))
    moved = rng.choice(12, int(rng.integers(2, 4)), replace=False)
    shelf[moved] = (shelf[moved] + 1) % 3
    return X, Hierarchy([*(12 + shelf), 15, 16, 16, 16, -1], 12)


def test_moves_are_held_against_brute_force():
    shares = []
    for seed in range(3):
        X, tree = noisy_case(np.random.default_rng(seed))
        possible = all_moves(X, tree, delta=0.15)
        found = improve(X, tree, kinds=["move"], max_edits=1, folds=0, delta=0.15)
        assert found.gain <= possible + 1e-12
        shares.append(found.gain / possible if possible > 1e-9 else 1.0)
    assert np.mean(shares) > 0.85
    assert np.median(shares) == pytest.approx(1.0)
