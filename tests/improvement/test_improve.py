"""`improve`: planted faults are undone, gains are exact and hold on other items, limits are kept, slips are told."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from pomdp_hier import Hierarchy, evaluate, hqs_score, improve
from pomdp_hier.errors import ParameterError
from pomdp_hier.improvement import apply_edits
from pomdp_hier.improvement.result import Edit, HeldOutGain
from tests.planted import clean_case, misplaced, swapped

DELTA = {"delta": 0.02}


def named(tree):
    inner = [f"group {k}" for k in range(tree.n_nodes - tree.n_items)]
    return Hierarchy(tree.parent, tree.n_items, labels=[f"item {k}" for k in range(tree.n_items)] + inner)


def test_planted_faults_are_undone_and_that_of_clusters_holds_on_the_rest():
    X, tree = clean_case()
    found = []
    for broken in (swapped(tree)[0], misplaced(misplaced(tree, 0, -1)[0], 17, 5)[0]):
        better = improve(X, broken, folds=3, **DELTA)
        assert better.tree == tree
        assert better.status == "converged"
        assert [edit.n_items for edit in better.edits] == [broken.sizes[edit.nodes[0]] for edit in better.edits]
        found.append(better)
    assert found[0].held_out.confirmed
    assert all(edit.confirmed for edit in found[0].edits)
    assert all(edit.held_out.gain > 0 for edit in found[1].edits)


def test_nothing_is_found_in_a_clean_tree():
    X, tree = clean_case()
    found = improve(X, tree, kinds=["move", "merge", "remove", "collapse"], **DELTA)
    assert (found.edits, found.tree, found.gain) == ((), tree, 0.0)


def test_each_gain_is_exact_given_the_edits_before_and_they_add_up():
    X, tree = clean_case()
    rng = np.random.default_rng(1)
    parent = tree.parent.copy()
    for item in rng.choice(tree.n_items, 5, replace=False):
        parent[item] = rng.choice(np.flatnonzero(tree.is_leaf))
    broken = named(tree.with_parents(parent))
    better = improve(X, broken, folds=2, **DELTA)
    assert len(better.edits) > 2
    score, values = hqs_score(X, broken, **DELTA), better.before.values
    for count, edit in enumerate(better.edits, start=1):
        changed = apply_edits(broken, better.edits[:count])
        rises, values = evaluate(X, changed, **DELTA).values - values, evaluate(X, changed, **DELTA).values
        assert [rise for _, rise in edit.most_improved] == pytest.approx([r for r in -np.sort(-rises)[:5] if r > 1e-9])
        assert hqs_score(X, changed, **DELTA) - score == pytest.approx(edit.gain, abs=1e-12)
        score = hqs_score(X, changed, **DELTA)
        losses = [loss for _, loss in edit.most_worsened]
        assert losses == sorted(losses)
        assert edit.n_worsened >= len(losses)
        assert edit.n_improved >= len(edit.most_improved)
    assert score == better.after.score
    said = better.summary(limit=99).splitlines()
    assert said[0] == f"score {better.before.score:.4f} -> {score:.4f}, {better.gain:+.4f} by {len(better.edits)} edits"
    low, high = better.held_out.interval
    assert f"held-out items: {better.held_out.gain:+.4f} ({low:+.4f} to {high:+.4f}; " in said[1]
    sure = better.numbered(confirmed=True)
    assert [line for line in said if line.startswith("  ") and ". " in line] == [
        f"{at:>3}. {edit.gain:+.4f} {edit}" for at, edit in sure + better.numbered(confirmed=False)
    ]
    for most in range(len(better.edits)):
        assert sum(line.startswith("  ") and ". " in line for line in better.summary(most).splitlines()) == most
    assert replace(better, held_out=HeldOutGain(0.1, n_items=1)).numbered(confirmed=True) == sure
    assert any(line.endswith(f": {better.upper_bounds['any']:.4f}") for line in said)
    doubtful = len(better.edits) - len(sure)
    assert doubtful == sum(int(line.split()[-2]) for line in said if line.startswith("also applied"))
    assert better.gain == pytest.approx(sum(edit.gain for edit in better.edits), abs=1e-12)
    assert better.tree.item_labels == broken.item_labels
    assert set(better.tree.labels) <= set(broken.labels)
    assert better.after.score <= better.upper_bounds["any"]
    again = improve(X, broken, folds=2, **DELTA)
    assert (again.edits, again.held_out) == (better.edits, better.held_out)


def test_what_is_fixed_stays_and_limits_are_kept():
    X, tree = clean_case()
    broken, (one, other), _ = swapped(tree)
    broken = named(broken)
    first = improve(X, broken, max_edits=1, folds=0, **DELTA)
    assert (first.numbered(confirmed=True), first.numbered(confirmed=False)) == ([(1, first.edits[0])], [])
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
    assert some.edits == ()
    alone = Hierarchy([*tree.parent[:44], 45 + 13, *tree.parent[45:], 54], 45)  # item 44 alone, elsewhere
    assert 44 in {node for edit in improve(X, alone, folds=0, **DELTA).edits for node in edit.nodes}
    kept = improve(X, alone, fixed=[58], folds=0, **DELTA)
    assert 44 not in {node for edit in kept.edits for node in edit.nodes}
    safe = improve(X, broken, max_loss=0.0, folds=0, **DELTA)
    assert (safe.after.values >= safe.before.values - 1e-12).all()
    assert improve(X, broken, time_limit=0, **DELTA).status == "time"


def test_an_interrupt_returns_the_best_so_far(monkeypatch):
    X, tree = clean_case()
    broken = swapped(tree)[0]
    from pomdp_hier.improvement.search import Search

    make = Search._make

    def interrupted(self, proposal, trial):
        make(self, proposal, trial)
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "_make", interrupted)
    found = improve(X, broken, **DELTA)
    assert (len(found.edits), found.status) == (1, "interrupted")
    assert found.after.score == pytest.approx(found.before.score + found.edits[0].gain)
    assert "when interrupted: further edits may exist" in found.summary()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kinds": ["shuffle"]}, "kinds: got 'shuffle'; expected some of 'move', 'merge'"),
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
        ({"policy": "optimal"}, 'policy: got optimal.*policy="one-step"'),
        ({"engine": "generic"}, "engine: got 'generic'.*engine='auto'"),
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
        (Edit("remove", (3,), 45, 45, 1, 0.0), "node: got 3; expected an internal node"),
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
    "kinds": [["move"], ["merge", "split"], ["remove", "remove-level"], ["collapse", "collapse-below"], None],
    "fixed": [(), ("group 9", "item 3", 50)],
    "fixed_levels": [(), (1,), (2,)],
    "max_edits": [None, 0, 2],
    "max_loss": [None, 0.0, 0.1],
    "folds": [0, 2],
    "singletons": [False, True],
    "policy": ["one-step", "descend", "hindsight"],
    "nu": [1.0, 1.4],
}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_options_go_together(seed):
    rng = np.random.default_rng(seed)
    given = {name: values[int(rng.integers(len(values)))] for name, values in OPTIONS.items()}
    X, tree = clean_case(seed=seed)
    tree = named(misplaced(swapped(tree)[0], 3, 4)[0]).with_singletons(given.pop("singletons"))
    kinds = given.pop("kinds") or ["move", "merge", "split", "remove", "remove-level", "collapse", "collapse-below"]
    found = improve(X, tree, kinds=kinds, delta=0.1, **given)
    settings = {"delta": 0.1, "policy": given["policy"], "nu": given["nu"]}
    assert found.after.score == pytest.approx(hqs_score(X, found.tree, **settings), abs=1e-12)
    assert found.gain == pytest.approx(sum(edit.gain for edit in found.edits), abs=1e-12)
    if len(found.edits) == 1:
        rises = found.after.values - found.before.values
        edit = found.edits[0]
        assert (edit.n_improved, edit.n_worsened) == ((rises > 1e-12).sum(), (rises < -1e-12).sum())
    assert all(edit.gain > 0 and edit.kind in kinds for edit in found.edits)
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
    assert len(found.to_rows()) == len(found.edits)
    assert found.summary().startswith("score ")


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
