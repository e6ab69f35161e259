"""Gains on held-out items: they shape neither the edits nor the clusters by which edits are chosen."""

import numpy as np
import pytest
import scipy.stats

from pomdp_hier import Hierarchy, evaluate, expected_search_length, improve
from pomdp_hier._intervals import mean_interval, welch_interval
from pomdp_hier.hqs.inputs import Settings, prepare
from pomdp_hier.improvement import apply_edits, choice
from pomdp_hier.improvement.choice import Choice, Problem, held_out_rises, part_of
from pomdp_hier.improvement.held_out import FoldGains, fold_of, measured
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.node_views import HQS, Objective
from pomdp_hier.improvement.result import Edit
from pomdp_hier.improvement.search import Limits
from tests.planted import clean_case, misplaced, swapped

SETTINGS = Settings(delta=0.05)


def broken_case(seed=0):
    X, tree = clean_case(seed=seed)
    return X + np.random.default_rng(seed).normal(size=X.shape) / 5, misplaced(swapped(tree)[0], 3, 4)[0]


def problem_of(X, tree, objective=HQS):
    kinds = ("move", "merge", "split")
    return Problem(prepare(X, tree, SETTINGS), Limits(kinds=kinds), None, 0.2, True, 0.95, 0, objective)


def test_a_part_is_the_tree_of_its_items_alone():
    X, tree = broken_case()
    items = np.array([0, 1, 7, 8, 9, 30, 44])
    part = part_of(prepare(X, tree, SETTINGS), items)
    small = part.prepared.hierarchy
    assert part.nodes[: len(items)].tolist() == items.tolist()
    for node in range(small.n_nodes):
        assert (
            np.sort(items[small.items(node)]).tolist()
            == np.intersect1d(items, tree.items(int(part.nodes[node]))).tolist()
        )
    assert small.levels.tolist() == tree.levels[part.nodes].tolist()
    np.testing.assert_array_equal(part.prepared.features.table, X[items])


def test_the_rows_of_a_fold_change_nothing_of_what_is_chosen_without_it(monkeypatch):
    X, tree = broken_case()
    fold = fold_of(tree.starts[:45], 3, 0)
    chosen = []
    run = Choice.run

    def recorded(self, *given):
        run(self, *given)
        chosen.append([one.proposal for one in self.edits])

    monkeypatch.setattr(Choice, "run", recorded)
    for rows in (X, np.where((fold == 0)[:, None], np.random.default_rng(1).normal(size=X.shape), X)):
        base = ScoredDraft(prepare(rows, tree, SETTINGS))
        next(held_out_rises(problem_of(rows, tree), base, 3, None))
    assert chosen[0] == chosen[1]
    assert chosen[0]


@pytest.mark.parametrize("label_cost", [None, 1.0])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.slow
def test_the_gain_of_a_fold_is_that_of_its_items_in_the_whole_tree_with_the_edits_chosen_without_it(seed, label_cost):
    X, tree = broken_case(seed)
    objective = Objective(label_cost)

    def values(changed):
        if label_cost is None:
            return evaluate(X, changed, delta=0.05).values
        return expected_search_length(X, changed, delta=0.05, label_cost=label_cost).values

    fold = fold_of(tree.starts[:45], 3, 0)
    before, base = values(tree), ScoredDraft(prepare(X, tree, SETTINGS), objective)
    rises = list(held_out_rises(problem_of(X, tree, objective), base, 3, None))
    for number, (items, rise) in enumerate(rises):
        np.testing.assert_array_equal(items, np.flatnonzero(fold == number))
        rest = np.flatnonzero(fold != number)
        part = part_of(prepare(X, tree, SETTINGS), rest)
        alone = Choice(problem_of(X[rest], part.prepared.hierarchy, objective))
        alone.run()
        edits = [
            Edit(
                kind, tuple(part.nodes[list(nodes)].tolist()), int(part.nodes[source]), int(part.nodes[target]), 1, 0.0
            )
            for kind, nodes, source, target in (one.proposal for one in alone.edits)
        ]
        assert all(edit.kind != "split" for edit in edits)
        after = values(apply_edits(tree, edits))
        moved = [edit.nodes[0] for edit in edits if edit.kind == "move" and edit.nodes[0] < tree.n_items]
        assert not np.isin(moved, items).any()
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(rise)), np.sort(moved))
        np.testing.assert_allclose(rise, np.where(np.isnan(rise), np.nan, after - before), atol=1e-12)
    raised = {"objective": "hqs"} if label_cost is None else {"label_cost": label_cost}
    found = improve(X, tree, folds=3, delta=0.05, **raised)
    held = np.concatenate([rise[items] for items, rise in rises])
    assert found.held_out.gain == pytest.approx(held.mean(), abs=1e-12)
    made = found.after.values - found.before.values
    made[[edit.nodes[0] for edit in found.edits if edit.kind == "move" and edit.nodes[0] < tree.n_items]] = np.nan
    more = np.nanmean(made - np.mean([rise for _, rise in rises], axis=0))
    error = np.sqrt(held.var(ddof=1) / 45 + more**2)
    half = scipy.stats.t.ppf(0.975, 44) * error
    low, high = found.held_out.interval
    assert (high - found.held_out.gain, found.held_out.gain - low) == pytest.approx((half, half))


def test_the_other_items_of_a_list_that_is_split_join_the_more_similar_side():
    kind = np.repeat([0, 1, 2], 20)
    X = np.eye(3)[kind] + 0.1 * np.random.default_rng(0).normal(size=(60, 3))
    tree = Hierarchy(np.r_[60 + np.minimum(kind, 1), 62, 62, -1], 60)  # the second list holds two kinds

    def reward(size, n):
        return float(size <= 0.4 * n)

    found = improve(X, tree, objective="hqs", kinds=["split"], delta=0.1, reward=reward, folds=2)
    (edit,) = found.edits
    assert sorted(edit.nodes) in (list(range(20, 40)), list(range(40, 60)))
    assert edit.held_out.n_items == 30
    assert found.held_out.confirmed


def test_folds_are_measured_until_enough_items_were_held_out(monkeypatch):
    monkeypatch.setattr(choice, "_ENOUGH", 20)
    X, tree = broken_case()
    assert improve(X, tree, folds=5, delta=0.05).held_out.n_items == 27


def test_a_gain_that_is_measured_on_no_or_one_item_is_not_confirmed():
    assert measured(np.array([0.5]), 0.95).interval == (-np.inf, np.inf)
    assert not measured(np.array([0.5]), 0.95).confirmed
    assert measured(np.array([0.5, 0.6]), 0.9).interval == mean_interval(np.array([0.5, 0.6]), 0.9)


def test_the_interval_allows_for_edits_that_differ_from_those_of_the_folds():
    rng = np.random.default_rng(0)
    rises = rng.normal(size=(3, 27))
    held = np.split(np.arange(27), 3)
    rises[1, 20] = np.nan  # moved by itself

    def over(made, weights=None, n=3):
        folds = FoldGains(27)
        for items, rise in zip(held[:n], rises[:n], strict=True):
            folds.add(items, rise)
        return folds.measured(made, 0.95, weights)

    own, same = np.concatenate([rise[items] for items, rise in zip(held, rises, strict=True)]), rises.mean(axis=0)
    assert over(same) == measured(own, 0.95)
    wider = measured(own, 0.95, further=0.3).interval
    assert wider[0] < measured(own, 0.95).interval[0] - 0.1
    assert over(same + 0.3).interval == pytest.approx(wider)
    assert over(same - 0.3).interval == pytest.approx(over(same + 0.3).interval)
    assert over(np.full(27, np.nan)) == measured(own, 0.95)
    assert np.isnan(over(same, n=0).gain)
    apart = same + np.arange(27.0)
    for weights in (np.arange(27.0), np.ones(27), np.r_[np.zeros(18), np.ones(9)]):
        further = np.average(np.delete(np.arange(27.0), 20), weights=np.delete(weights, 20))
        expected = measured(own, 0.95, weights, further)
        assert over(apart, weights).gain == pytest.approx(np.average(own, weights=weights))
        assert over(apart, weights).interval == pytest.approx(expected.interval)
    assert over(apart, np.ones(27)).interval == pytest.approx(over(apart).interval)


def test_every_item_is_in_one_fold_and_neighbours_in_different_ones():
    starts = np.random.default_rng(0).permutation(23)
    fold = fold_of(starts, 4, 1)
    assert np.bincount(fold).min() >= 5
    assert all(len(set(block)) == len(block) for block in np.array_split(fold[np.argsort(starts)][:20], 5))
    assert (fold_of(starts, 4, 1) == fold).all()
    assert (fold_of(starts, 4, 2) != fold).any()


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_interval_of_a_difference_is_welchs(confidence):
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=12), 3 * rng.normal(size=4)
    expected = scipy.stats.ttest_ind(one, other, equal_var=False).confidence_interval(confidence)
    assert welch_interval(one.mean() - other.mean(), (one, other), confidence) == pytest.approx(expected, rel=1e-12)
    assert np.isnan(welch_interval(0.0, (one, other[:1]), confidence)).all()  # one value has no known spread
    assert welch_interval(0.5, (np.ones(3), np.ones(2)), confidence) == (0.5, 0.5)
