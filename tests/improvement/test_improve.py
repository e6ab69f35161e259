"""`improve`: planted faults are undone, gains are exact and hold on other items, limits are kept, slips are told."""

import warnings
from functools import partial

import numpy as np
import pytest

from pomdp_hier import Hierarchy, evaluate, expected_search_length, hqs_score, improve
from pomdp_hier._intervals import mean_interval, welch_interval
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hqs.inputs import Settings, prepare
from pomdp_hier.improvement import apply_edits
from pomdp_hier.improvement.choice import Choice
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.result import KINDS, Edit, changes_of
from tests.planted import catalogue, clean_case, misplaced, swapped

DELTA = {"delta": 0.02}
BY_HQS = {"objective": "hqs"}


def named(tree):
    inner = [f"group {k}" for k in range(tree.n_nodes - tree.n_items)]
    return Hierarchy(tree.parent, tree.n_items, labels=[f"item {k}" for k in range(tree.n_items)] + inner)


def test_exchanged_clusters_go_home_as_both_halves_of_the_items_say():
    X, tree = clean_case()
    better = improve(X, swapped(tree)[0], folds=3, **BY_HQS, **DELTA)
    assert better.tree == improve(X, swapped(tree)[0], folds=0, **DELTA).tree == tree
    assert [(edit.kind, edit.n_items, edit.held_out.n_items, edit.sound) for edit in better.edits] == [
        ("move", 5, 45, True),
        ("move", 5, 45, True),
    ]
    assert all(np.isnan(edit.probability) and edit.held_out.confirmed for edit in better.edits)
    assert better.held_out.gain > 0.1


def test_misplaced_items_go_home_by_their_odds():
    X, tree = clean_case()
    better = improve(X, misplaced(misplaced(tree, 0, -1)[0], 17, 5)[0], folds=3, **DELTA)
    assert better.tree == tree
    assert better.status == "converged"
    assert [(edit.nodes, edit.n_items, edit.sound) for edit in better.edits] == [((0,), 1, True), ((17,), 1, True)]
    assert all(edit.target_probability > 0.9 and edit.held_out.n_items == 0 for edit in better.edits)
    assert "2 items moved; expected share of moves to a wrong place" in better.summary()


def shelves(seed, least, few):
    """Eight shelves of two or three subjects each; the last ones with few items."""
    rng = np.random.default_rng(seed)
    sizes, group = rng.integers(least, 25, 8), np.array([0, 0, 0, 1, 1, 1, 2, 2])
    sizes[8 - len(few) :] = few
    shelf, n_items = np.repeat(np.arange(8), sizes), int(sizes.sum())
    topics, subjects = rng.random((8, 12)) ** 4, rng.random((3, 12)) ** 4
    X = np.abs(topics[shelf] + 0.7 * subjects[group[shelf]] + 0.25 * rng.standard_normal((n_items, 12)))
    return X, Hierarchy(np.r_[n_items + shelf, n_items + 8 + group, [n_items + 11] * 3, -1], n_items)


def test_a_few_items_at_the_target_do_not_make_a_cluster_belong_there():
    X, tree = shelves(38, 1, (1, 2))
    found = improve(X, tree, delta=0.05, folds=0, kinds=("move", "merge"))
    (apart,) = found.apart
    assert (apart.kind, apart.nodes, apart.target, apart.reason) == ("merge", (71,), 73, "place")
    scored = ScoredDraft(prepare(X, tree, Settings(delta=0.05)))
    more, at_source, at_target = scored.closer(71, 74, 73)
    assert (len(more), len(at_source), len(at_target)) == (26, 34, 3)
    assert mean_interval(more, 0.9)[0] > 0  # by its items alone
    assert welch_interval(more.mean(), (more, at_source, at_target), 0.9)[0] < 0


@pytest.mark.parametrize(("seed", "kind"), [(35, "move"), (32, "merge")])
def test_a_cluster_that_is_not_more_similar_to_its_target_stays_though_held_out_items_gain(seed, kind):
    X, tree = shelves(seed, 2, ())
    found = improve(X, tree, delta=0.05, folds=0, kinds=("move", "merge"))
    (apart,) = (edit for edit in found.apart if edit.reason == "place")
    assert (apart.kind, apart.held_out.confirmed, apart.sound) == (kind, True, False)
    assert "not more similar" in apart.support
    everything = improve(X, tree, delta=0.05, folds=0, kinds=("move", "merge"), sound_only=False)
    assert apart.nodes not in {edit.nodes for edit in found.edits}
    assert apart.nodes in {edit.nodes for edit in everything.edits}


def test_moves_that_are_not_probable_enough_are_listed_apart_and_made_on_request():
    X, whole, broken, moved = catalogue(48, 0.125, seed=0)
    found = improve(X, broken, delta=0.05, **BY_HQS, folds=0)
    sure, doubtful = ([edit.nodes[0] for edit in edits] for edits in (found.edits, found.apart))
    assert set(sure) | set(doubtful[: 6 - len(sure)]) == set(moved)
    assert 0 < len(sure) < 6
    assert {edit.reason for edit in found.apart} == {"odds"}
    assert np.mean([1 - edit.target_probability for edit in found.edits]) <= 0.2
    lines = found.summary().splitlines()
    at = lines.index(f"not made, as they are not sound: {len(found.apart)} edits")
    assert all("not probable enough to move" in line for line in lines[at + 1 :])
    after = hqs_score(X, found.tree, delta=0.05)
    for edit in found.apart:
        alone = hqs_score(X, apply_edits(broken, [*found.edits, edit]), delta=0.05)
        assert edit.gain == pytest.approx(alone - after, abs=1e-12)
    everything = improve(X, broken, delta=0.05, **BY_HQS, folds=0, sound_only=False)
    assert everything.tree == whole
    assert everything.apart == ()
    assert [edit.reason for edit in everything.edits] == [""] * len(sure) + ["odds"] * len(doubtful)
    assert [row["made"] for row in found.to_rows()] == [True] * len(sure) + [False] * len(doubtful)
    strict = improve(X, broken, delta=0.05, **BY_HQS, folds=0, expected_wrong=0.0)
    assert strict.edits == ()
    assert len(strict.apart) == 6


def test_features_that_say_nothing_move_nothing():
    X, tree = clean_case()
    found = improve(np.random.default_rng(0).normal(size=X.shape), tree, folds=2, **DELTA)
    assert [edit for edit in found.edits if edit.nodes[0] < 45] == []
    assert any("next to nothing" in note for note in found.notes)


def test_similarities_of_pairs_move_no_item_and_say_so():
    X, tree = clean_case()
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    given = {"similarity": "precomputed", "folds": 2, **DELTA}
    assert improve(units @ units.T, swapped(tree)[0], **given).tree == tree
    found = improve(units @ units.T, misplaced(tree, 0, -1)[0], **given)
    assert all(edit.nodes[0] >= 45 for edit in found.edits)
    assert "no item is moved by itself" in found.summary()


def test_an_interrupt_of_the_odds_says_nothing_of_similarities(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pomdp_hier.improvement.choice.misfiled_items", interrupted)
    X, tree = clean_case()
    found = improve(X, tree, folds=2, **DELTA)
    assert (found.edits, found.notes, found.status, found.tree) == ((), (), "interrupted", tree)


def test_the_moves_that_are_not_made_are_listed_up_to_a_number(monkeypatch):
    monkeypatch.setattr("pomdp_hier.improvement.choice._MOST_APART", 2)
    X, _, broken, _ = catalogue(48, 0.125, seed=0)
    assert len(improve(X, broken, delta=0.05, folds=0, expected_wrong=0.0).apart) == 2


def test_probable_moves_that_the_score_does_not_see_are_apart_and_named():
    X, tree = clean_case()
    broken = misplaced(misplaced(tree, 0, -1)[0], 17, 5)[0]
    found = improve(X, broken, policy="search-root", folds=2, **BY_HQS)  # no search leaves the root
    assert found.edits == ()
    assert [(edit.nodes, edit.reason) for edit in found.apart] == [((0,), "gain"), ((17,), "gain")]
    assert "2 items to be moved by the odds, but the score gains less than 1e-06: listed apart" in found.summary()
    assert improve(X, broken, policy="search-root", folds=0, sound_only=False, **BY_HQS).tree == tree
    assert improve(X, broken, folds=0).tree == tree  # searchers who go back leave the root


def net(found):
    """Whether every node whose parent an edit changes gets one new parent, another one than before."""
    draft, changed = Draft(found.hierarchy), []
    for edit in found.edits:
        before = draft.parent.copy()
        draft.apply(changes_of(draft, edit.kind, edit.nodes, edit.source, edit.target))
        changed += [node for node, parent in enumerate(before) if draft.parent[node] != parent]
    return len(changed) == len(set(changed))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_edits_are_net(seed):
    X, tree = clean_case(top=3, middle=3, items=8, seed=seed)
    rng = np.random.default_rng(seed)
    X += rng.normal(size=X.shape) / 4
    shelf = np.where(tree.parent[:72] == 76, 75 + rng.integers(2, size=72), tree.parent[:72])  # two lists are one kind
    parent = np.r_[shelf, tree.parent[72:]]
    parent[rng.choice(72, 6, replace=False)] = 72 + rng.integers(9, size=6)
    broken = Hierarchy(parent, 72)
    for given in ({}, {"sound_only": False}, {"kinds": KINDS}):
        found = improve(X, broken, folds=0, delta=0.05, **given)
        assert net(found)
        assert all(edit.gain >= 1e-6 for edit in found.edits if edit.sound)
        assert all(found.hierarchy.parent[edit.nodes[0]] != edit.target for edit in found.edits if edit.kind == "move")
        if not given.get("kinds"):
            assert not any(edit.flattens for edit in found.edits)
            assert set(found.tree.levels[:72]) == {3}


def test_levels_are_kept_by_default_where_all_items_have_the_same():
    X, tree = clean_case()
    parent = tree.parent.copy()
    parent[0] = 56
    mixed = Hierarchy(parent, 45)  # item 0 beside clusters, and far from home
    assert [edit.nodes for edit in improve(X, mixed, folds=0, **DELTA).edits] == [(0,)]
    assert improve(X, mixed, folds=0, keep_levels=True, **DELTA).edits == ()


def test_edits_that_flatten_are_made_on_request_alone_and_named():
    kind = np.repeat(np.arange(9), 6)
    X = np.eye(9)[kind] + 0.2 * np.random.default_rng(0).random((54, 9))
    tree = Hierarchy(np.r_[54 + kind, 63 + np.arange(9) % 3, 66, 66, 66, -1], 54)  # the groups of lists mean nothing
    assert not any(edit.flattens for edit in improve(X, tree, folds=0, delta=0.1, **BY_HQS).edits)
    assert improve(X, tree, kinds=KINDS, folds=0, delta=0.1, keep_levels=True, **BY_HQS).tree.height == 2
    free = improve(X, tree, kinds=["remove-level"], folds=0, delta=0.1, keep_levels=False, **BY_HQS)
    assert free.tree.height == 1
    assert [(edit.kind, edit.flattens) for edit in free.edits] == [("remove-level", True)]
    assert "flattens the tree" in free.edits[0].support
    assert "1 edit flattens the tree. HQS does not charge for breadth" in free.summary()
    listed = improve(X, tree, kinds=["remove-level"], folds=0, delta=0.1, keep_levels=False, label_cost=0)
    assert "The search length without label cost does not charge for breadth" in listed.summary()
    read = improve(X, tree, kinds=["remove-level"], folds=0, delta=0.1, keep_levels=False, label_cost=0.01)
    assert read.edits[0].flattens
    assert "does not charge" not in read.summary()


def test_nothing_is_found_in_a_clean_tree():
    X, tree = clean_case()
    found = improve(X, tree, kinds=["move", "merge", "remove", "collapse"], **DELTA)
    assert (found.edits, found.tree, found.gain) == ((), tree, 0.0)


@pytest.mark.parametrize(
    ("scored", "given"),
    [
        (evaluate, {**BY_HQS, **DELTA}),
        (partial(expected_search_length, label_cost=1), DELTA),
        pytest.param(partial(expected_search_length, label_cost=0), {"label_cost": 0, **DELTA}, marks=pytest.mark.slow),
    ],
)
def test_each_gain_is_exact_given_the_edits_before_and_they_add_up(scored, given):
    X, tree = clean_case()
    rng = np.random.default_rng(1)
    parent = swapped(tree)[0].parent.copy()
    for item in rng.choice(tree.n_items, 3, replace=False):
        parent[item] = rng.choice(np.flatnonzero(tree.is_leaf))
    broken = named(tree.with_parents(parent))
    better = improve(X, broken, folds=2, **given)
    assert len(better.edits) > 2
    score, values = scored(X, broken, **DELTA).score, better.before.values
    for count, edit in enumerate(better.edits, start=1):
        changed = apply_edits(broken, better.edits[:count])
        now = scored(X, changed, **DELTA)
        rises, values = now.values - values, now.values
        assert [rise for _, rise in edit.most_improved] == pytest.approx([r for r in -np.sort(-rises)[:5] if r > 1e-9])
        assert now.score - score == pytest.approx(edit.gain, abs=1e-12)
        score = now.score
        losses = [loss for _, loss in edit.most_worsened]
        assert losses == sorted(losses)
        assert edit.n_worsened >= len(losses)
        assert edit.n_improved >= len(edit.most_improved)
    assert score == better.after.score
    said = better.summary(limit=99).splitlines()
    low, high = better.held_out.interval
    assert said[0] == (
        f"{better.score_name} {better.before.score:.4f} -> {score:.4f} by {len(better.edits)} edits: "
        f"{better.gain:+.4f} on all items, {better.held_out.gain:+.4f} ({low:+.4f} to {high:+.4f}) on held-out items"
    )
    made = [line for line in said if line.startswith("  ") and ". " in line][: len(better.edits)]
    assert made == [f"{at:>3}. {edit.gain:+.6f} {edit} ({edit.support})" for at, edit in enumerate(better.edits, 1)]
    assert any(line.endswith(f": {better.upper_bound:.4f}") for line in said)
    assert better.gain == pytest.approx(sum(edit.gain for edit in better.edits), abs=1e-12)
    assert better.tree.item_labels == broken.item_labels
    assert set(better.tree.labels) <= set(broken.labels)
    assert better.after.score <= better.upper_bound
    again = improve(X, broken, folds=2, **given)
    assert repr((again.edits, again.held_out)) == repr((better.edits, better.held_out))  # NaN equals none


@pytest.mark.slow
def test_what_is_fixed_stays_and_limits_are_kept():
    X, tree = clean_case()
    broken, (one, other), _ = swapped(tree)
    broken = named(broken)
    first = improve(X, broken, max_edits=1, folds=0, **DELTA)
    assert (len(first.edits), first.status) == (1, "max_edits")
    assert improve(X, broken, max_edits=0, folds=0, **DELTA).edits == ()
    moved = {
        node
        for edit in improve(X, broken, fixed=[f"group {one - 45}", other], folds=0, **DELTA).edits
        for node in edit.nodes
    }
    assert moved.isdisjoint((one, other))
    level = int(broken.levels[one])
    some = improve(X, broken, fixed_levels=[level, level + 1], folds=0, **DELTA)
    assert some.edits == some.apart == ()
    alone = Hierarchy([*tree.parent[:44], 45 + 13, *tree.parent[45:], 54], 45)  # item 44 alone, elsewhere
    assert 44 in {node for edit in improve(X, alone, folds=0, **DELTA).edits for node in edit.nodes}
    kept = improve(X, alone, fixed=[58], folds=0, **DELTA)
    assert 44 not in {node for edit in kept.edits for node in edit.nodes}
    safe = improve(X, broken, max_loss=0.0, folds=0, **DELTA)
    assert (safe.after.values >= safe.before.values - 1e-12).all()
    assert improve(X, broken, time_limit=0, **DELTA).status == "time"


def test_an_interrupt_returns_the_best_so_far(monkeypatch):
    X, tree = clean_case()
    apply = Choice._apply

    def interrupted(choice, one, trial):
        apply(choice, one, trial)
        raise KeyboardInterrupt

    broken = misplaced(misplaced(tree, 0, -1)[0], 17, 5)[0]
    monkeypatch.setattr(Choice, "_apply", interrupted)
    found = improve(X, broken, **DELTA)
    assert (len(found.edits), found.status) == (1, "interrupted")
    assert found.after.score == pytest.approx(found.before.score + found.edits[0].gain)
    assert "when interrupted: further edits may exist" in found.summary()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kinds": ["shuffle"]}, "kinds: got 'shuffle'"),
        ({"kinds": []}, "kinds: got"),
        ({"fixed": ["nobody"]}, "fixed: label: got 'nobody'"),
        ({"fixed": [99]}, "fixed: label: got 99"),
        ({"fixed_levels": [7]}, r"fixed_levels: got 7; .* to 3"),
        ({"max_edits": -1}, "max_edits: got -1;"),
        ({"max_loss": -0.5}, "max_loss: got -0.5"),
        ({"time_limit": "soon"}, "time_limit: got 'soon'"),
        ({"folds": 10**20}, "folds: got 100000000000000000000;"),
        ({"folds": 1}, "folds: got 1"),
        ({"confidence": 2}, "confidence: got 2"),
        ({"expected_wrong": 1}, "expected_wrong: got 1;"),
        ({"sound_only": 1}, "sound_only: got 1"),
        ({"keep_levels": "yes"}, "keep_levels: got 'yes'"),
        ({"objective": "hqs", "policy": "optimal"}, 'policy: got optimal.*policy="one-step"'),
        ({"engine": "generic"}, "engine: got 'generic'.*engine='auto'"),
        ({"objective": "cost"}, "objective: got 'cost'"),
        ({"objective": "hqs", "label_cost": 1}, 'label_cost: got 1; .*objective="search_length"'),
        ({"objective": "search_length", "label_cost": -1}, "label_cost: got -1;"),
        ({"objective": "search_length", "policy": "descend"}, 'policy: got descend.*objective="hqs"'),
        ({"objective": "search_length", "tie": "search"}, 'tie: got search.*objective="hqs"'),
        ({"objective": "search_length", "reward": lambda size, n: 0.0}, 'reward: .*objective="hqs"'),
        ({"objective": "search_length", "engine": "generic"}, "engine: got 'generic'"),
    ],
)
def test_what_cannot_be_is_said(given, text):
    X, tree = clean_case()
    with pytest.raises(ParameterError, match=text):
        improve(X, named(tree), **given)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (
            Edit("remove", (57,), 57, 57, 45, 0.0),
            "node: got 57, .*removed",
        ),
        (Edit("remove", (3,), 45, 45, 1, 0.0), "node: got 3"),
        (Edit("merge", (45,), 54, 48, 1, 0.0), "node: got 45; expected a sibling of node 48"),
        (Edit("split", (40,), 45, 58, 1, 0.0), "got 40; .*directly below node 45"),
        (Edit("split", (45,), 57, 58, 1, 0.0), "node: got 57, .*split"),
        (Edit("move", (99,), 54, 46, 1, 0.0), "node: got 99, .*moved"),
        (Edit("juggle", (1,), 54, 46, 1, 0.0), "kind: got 'juggle'"),
        ((1, 46), r"edits: got \(1, 46\)"),
    ],
)
def test_edits_that_cannot_be_made_are_refused(edit, text):
    _, tree = clean_case()
    with pytest.raises(ParameterError, match=text):
        apply_edits(tree, [edit])


def test_a_tree_of_one_list_and_one_of_one_item_have_nothing_to_improve():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flat = improve(np.eye(4), Hierarchy([4, 4, 4, 4, -1], 4))
        assert flat.edits == ()
        assert improve([[1.0, 2.0]], Hierarchy([-1], 1)).edits == ()


OPTIONS = {
    "expected_wrong": [0.0, 0.2, 0.9],
    "sound_only": [True, False],
    "keep_levels": [None, True, False],
    "kinds": [["move"], ["merge", "split"], ["remove", "remove-level"], ["collapse", "collapse-below"], None],
    "fixed": [(), ("group 9", "item 3", 50)],
    "fixed_levels": [(), (1,), (2,)],
    "max_edits": [None, 0, 2],
    "max_loss": [None, 0.0, 0.1],
    "folds": [0, 2],
    "singletons": [False, True],
    "objective": ["hqs", "search_length"],
    "label_cost": [None, 0.0, 2.0],
    "sample_weight": [None, np.arange(45) % 4],
    "engine": ["auto", "numpy"],
    "policy": ["one-step", "descend", "hindsight"],
    "nu": [1.0, 1.4],
}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_options_go_together(seed):
    rng = np.random.default_rng(seed)
    given = {name: values[int(rng.integers(len(values)))] for name, values in OPTIONS.items()}
    X, tree = clean_case(seed=seed)
    tree = named(misplaced(swapped(tree)[0], 3, 4)[0]).with_singletons(given.pop("singletons"))
    if given["objective"] == "hqs":
        given.pop("label_cost")
    else:
        given.pop("policy")
    kinds = given.pop("kinds") or ["move", "merge", "split", "remove", "remove-level", "collapse", "collapse-below"]
    found = improve(X, tree, kinds=kinds, delta=0.1, **given)
    settings = {"delta": 0.1, "nu": given["nu"], "sample_weight": given["sample_weight"]}
    if given["objective"] == "hqs":
        score = hqs_score(X, found.tree, policy=given["policy"], **settings)
        assert (found.score_name, found.label_cost) == ("HQS", None)
    else:
        cost = 1.0 if given["label_cost"] is None else given["label_cost"]
        score = expected_search_length(X, found.tree, label_cost=cost, **settings).score
        assert found.label_cost == cost
    assert found.after.score == pytest.approx(score, abs=1e-12)
    assert found.after.score <= found.upper_bound + 1e-12
    assert found.gain == pytest.approx(sum(edit.gain for edit in found.edits), abs=1e-12)
    if len(found.edits) == 1:
        rises = found.after.values - found.before.values
        edit = found.edits[0]
        assert (edit.n_improved, edit.n_worsened) == ((rises > 1e-12).sum(), (rises < -1e-12).sum())
    assert all((edit.gain >= 1e-6 or not given["sound_only"]) and edit.kind in kinds for edit in found.edits)
    assert len(found.edits) <= (99 if given["max_edits"] is None else given["max_edits"])
    if given["max_loss"] is not None:
        assert (found.after.values - found.before.values).min() >= -given["max_loss"] - 1e-12
    still = [tree.node(label) if isinstance(label, str) else label for label in given["fixed"]]
    still += [node for level in given["fixed_levels"] for node in np.flatnonzero(tree.levels == level).tolist()]
    for node in still:
        now = found.tree.node(tree.labels[node])
        assert found.tree.labels[found.tree.parent[now]] == tree.labels[tree.parent[node]]
    assert found.tree.item_labels == tree.item_labels
    assert found.tree.singletons == tree.singletons
    assert (found.held_out.n_items == tree.n_items) == bool(given["folds"] and found.edits)
    assert len(found.to_rows()) == len(found.edits) + len(found.apart)
    assert net(found)
    assert found.summary().startswith(f"{found.score_name} ")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit("move", (1,), 5, 6, 1, 0.1, names=("1", "5", "6")), "move 1 from 5 to 6"),
        (Edit("merge", (5,), 7, 6, 2, 0.1, names=("5", "7", "6")), "merge 5 into 6"),
        (Edit("split", (1,), 5, 9, 2, 0.1, names=("1", "5", "new")), "split 5: 1 become a new cluster"),
        (Edit("remove", (5,), 5, 7, 2, 0.1, names=("5", "5", "7")), "remove 5"),
    ],
)
def test_an_edit_says_what_goes_where(edit, said):
    assert str(edit) == said
