"""The search for edits of clusters against brute force, and what it may not do."""

import contextlib
import itertools

import numpy as np
import pytest

from pomdp_hier import Hierarchy, hqs_score
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hqs.inputs import Settings, prepare
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.search import Limits, Proposal, Search
from tests.planted import clean_case, misplaced, swapped


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
    also = ("remove-level",) if kind == "merge" else ()  # merging the last siblings removes a level
    search = Search(prepare(X, tree, Settings(delta=0.15)), Limits(kinds=(kind, *also), max_edits=1))
    search.run()
    assert best > 0.01
    assert [(made.proposal.kind, made.rise.sum() / tree.n_items) for made in search.made] == [
        (kind, pytest.approx(best, abs=1e-12))
    ]


@pytest.mark.parametrize("singletons", [False, True])
def test_what_is_worth_collapsing_comes_in_the_order_of_what_it_gains(singletons):
    X, tree = messy_case(4, singletons)
    given = {"delta": 0.3, "policy": "descend"}
    found = Search(prepare(X, tree, Settings(**given)), Limits())._collapsible()
    before, gains = evaluate(X, tree, **given).values, {}
    for node in range(tree.n_items, tree.n_nodes):
        draft = Draft(tree)
        draft.apply(draft.collapsed(node))
        rise = evaluate(X, draft.tree(), **given).values - before
        gains[node] = rise.sum()
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
    proposed = list(Search(prepared, Limits())._splits())
    assert [one.source for one in proposed] == sorted(room, key=room.get, reverse=True)
    assert all(0 < len(one.nodes) < tree.sizes[one.source] for one in proposed)


def test_a_list_of_two_kinds_is_split_and_its_new_cluster_has_the_next_number():
    X, tree = clean_case()
    parent = np.where(tree.parent == 46, 45, tree.parent)[np.arange(tree.n_nodes) != 46]
    one = Hierarchy(np.where(parent > 46, parent - 1, parent), 45)
    search = Search(prepare(X, one, Settings(delta=0.02)), Limits(kinds=("split",)))
    search.run()
    assert [(made.proposal.source, made.proposal.target, len(made.proposal.nodes)) for made in search.made] == [
        (45, 57, 5)
    ]
    split = search.scored.draft.tree()
    assert hqs_score(X, split, delta=0.02) == pytest.approx(hqs_score(X, tree, delta=0.02), abs=1e-12)


FLATTENING = {
    "a level": (Proposal("remove-level", (54, 55, 56), 57, 57), True),
    "a middle node": (Proposal("remove", (54,), 57, 57), True),
    "a leaf cluster": (Proposal("remove", (45,), 54, 54), True),
    "a list of items": (Proposal("collapse", (54,), 54, 54), True),
    "siblings that remain": (Proposal("merge", (45,), 54, 46), False),
    "the last siblings": (Proposal("merge", (45, 46), 54, 47), True),
    "a move": (Proposal("move", (45,), 54, 55), False),
    "a split": (Proposal("split", (0, 1), 45, 58), False),
}


@pytest.mark.parametrize("name", FLATTENING)
def test_an_edit_flattens_where_a_level_of_choices_goes_and_a_list_grows(name):
    X, tree = clean_case()
    proposal, flattens = FLATTENING[name]
    prepared = prepare(X, tree, Settings(delta=0.02))
    assert Search(prepared, Limits()).flattens(proposal) is flattens
    assert (Search(prepared, Limits(kinds=("move", "merge", "split"))).attempt(proposal) is None) is flattens


def test_a_node_with_one_child_is_removed_without_flattening():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4], [5], [6, 7]], 4)  # chains above both lists
    search = Search(prepare(np.eye(4), tree, Settings(), warn=False), Limits())
    assert not search.flattens(Proposal("remove", (6,), 8, 8))


def test_levels_are_kept_where_they_are_to_be_and_no_node_moves_twice():
    X, tree = clean_case()
    prepared = prepare(X, tree, Settings(delta=0.02))
    kept = Search(prepared, Limits(keep_levels=True))
    assert kept.attempt(Proposal("remove", (54,), 57, 57)) is None
    assert kept.attempt(Proposal("move", (45,), 54, 57)) is None
    assert Search(prepared, Limits()).attempt(Proposal("move", (45,), 54, 57)) is not None
    there = Proposal("move", (45,), 54, 55)
    kept.make(there, kept.attempt(there))
    assert kept.attempt(Proposal("move", (45,), 55, 54)) is None
    assert kept.attempt(Proposal("move", (46,), 54, 54)) is None  # where it is
