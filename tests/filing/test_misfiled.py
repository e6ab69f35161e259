"""What `find_misfiled` finds, what it does not depend on, and what it says where it cannot tell."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier import Hierarchy, find_misfiled
from pomdp_hier.errors import FeatureError, HierarchyError, ParameterError
from pomdp_hier.filing import centroids, misfiled
from tests.extras import few
from tests.planted import catalogue


@pytest.fixture(scope="module")
def case():
    return catalogue(300, 0.05, seed=1)


@pytest.fixture(scope="module")
def found(case):
    X, _, broken, _ = case
    return find_misfiled(X, broken)


def test_planted_items_come_first_and_are_sent_home(case, found):
    _, whole, _, moved = case
    first = found.order[: len(moved)]
    assert np.isin(first, moved).mean() >= 0.9
    assert (found.targets[moved] == whole.parent[moved]).mean() >= 0.9
    assert found.rate == pytest.approx(0.05, abs=0.02)
    assert found.auc > 0.95
    assert found.gain > 1.0


def test_an_untouched_tree_has_no_flags(case):
    X, whole, *_ = case
    clean = find_misfiled(X, whole)
    assert (clean.probabilities > 0.5).sum() == 0
    assert len(clean.select()) == 0


@pytest.mark.parametrize("target", [True, False])
def test_the_selection_is_the_longest_head_within_the_expected_share(found, target):
    head = found.select(0.1, target=target)
    likely = found.order[found.probabilities[found.order] >= 0.5]
    np.testing.assert_array_equal(likely, found.order[: len(likely)])
    right = (found.target_probabilities if target else found.probabilities)[likely]
    means = np.cumsum(1 - right) / np.arange(1, len(right) + 1)
    assert len(head) > 0
    np.testing.assert_array_equal(head, found.order[: len(head)])
    assert means[len(head) - 1] <= 0.1
    assert (means[len(head) :] > 0.1).all()
    assert len(found.select(0.0)) <= len(head) <= len(found.select(0.5, target=target))
    assert len(found.select(0.99, target=False)) == len(likely)


def test_items_to_move_are_the_longest_list_by_the_probability_of_their_target(found):
    head = found.to_move(0.2)
    right = np.sort(found.target_probabilities)[::-1]
    right = right[right >= 0.5]
    means = np.cumsum(1 - right) / np.arange(1, len(right) + 1)
    assert len(head) == (np.flatnonzero(means <= 0.2) + 1).max()
    np.testing.assert_array_equal(found.target_probabilities[head], right[: len(head)])
    with pytest.raises(ParameterError, match="expected_wrong"):
        found.to_move(1)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), "0.1", None])
def test_a_share_outside_of_its_range_is_refused(found, share):
    with pytest.raises(ParameterError, match="expected_wrong"):
        found.select(share)


def test_sparse_features_give_what_dense_ones_give(case, monkeypatch):
    X, _, broken, _ = case
    monkeypatch.setattr(
        misfiled, "item_weights", lambda made: np.ones(len(made.home))
    )  # the weight by terms is sparse's
    monkeypatch.setattr("pomdp_hier.filing.model.item_weights", lambda made: np.ones(len(made.home)))
    dense, sparse = find_misfiled(X, broken), find_misfiled(sp.csr_array(X), broken)
    np.testing.assert_allclose(sparse.probabilities, dense.probabilities, atol=1e-6)
    np.testing.assert_array_equal(sparse.targets, dense.targets)


def test_float32_and_scaled_rows_change_nothing(case, found):
    X, _, broken, _ = case
    longer = X * np.random.default_rng(0).uniform(1e-150, 1e150, size=(len(X), 1))
    np.testing.assert_allclose(find_misfiled(longer, broken).log_odds, found.log_odds, atol=1e-4)
    np.testing.assert_allclose(
        find_misfiled(X.astype(np.float32), broken).probabilities, found.probabilities, atol=1e-3
    )


@pytest.mark.parametrize("sample", few(1, [150, 3000]))
def test_another_numbering_of_the_items_changes_nothing(case, monkeypatch, sample):
    monkeypatch.setattr("pomdp_hier.filing.model._SAMPLE", sample)
    X, _, broken, _ = case
    number = np.random.default_rng(0).permutation(len(X))  # item number[i] is what item i was
    again = find_misfiled(X[np.argsort(number)], broken.permuted(number))
    once = find_misfiled(X, broken)
    np.testing.assert_allclose(again.log_odds[number], once.log_odds, atol=1e-5)
    np.testing.assert_array_equal(again.targets[number], once.targets)


def test_the_size_of_the_blocks_changes_nothing(case, found, monkeypatch):
    monkeypatch.setattr(centroids, "_BLOCK_VALUES", 700)
    X, _, broken, _ = case
    np.testing.assert_allclose(find_misfiled(X, broken).log_odds, found.log_odds, atol=1e-6)


def test_a_sample_of_the_homes_finds_about_the_same(case, found, monkeypatch):
    for name, value in (("_ALL_HOMES", 20), ("_BEST", 9), ("_OTHERS", 6)):
        monkeypatch.setattr(f"pomdp_hier.filing.model.{name}", value)
    X, _, broken, moved = case
    again = find_misfiled(X, broken)
    assert again.rate == pytest.approx(found.rate, abs=0.005)
    assert len(np.intersect1d(again.order[: len(moved)], found.order[: len(moved)])) >= 0.9 * len(moved)


def test_an_interrupt_leaves_the_items_judged_so_far(case, monkeypatch):
    monkeypatch.setattr(centroids, "_BLOCK_VALUES", 2000)
    add, calls = misfiled._Judged.add, []

    def interrupted(judged, items):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(items)
        add(judged, items)

    monkeypatch.setattr(misfiled._Judged, "add", interrupted)
    X, _, broken, _ = case
    found = find_misfiled(X, broken)
    judged = np.concatenate(calls)
    others = np.setdiff1d(np.arange(300), judged)
    assert found.status == "interrupted"
    assert np.isfinite(found.probabilities[judged]).all()
    assert np.isnan(found.probabilities[others]).all()
    assert (found.targets[others] == -1).all()
    np.testing.assert_array_equal(np.sort(found.order[: len(judged)]), np.sort(judged))
    assert any("Interrupted" in note for note in found.notes)
    assert np.isin(found.select(0.5), judged).all()


def test_an_interrupt_before_anything_is_judged_ends_the_call(case, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(misfiled, "fit_model", interrupted)
    with pytest.raises(KeyboardInterrupt, match="none of 300 items judged"):
        find_misfiled(case[0], case[2])


def test_the_fit_shows_its_progress(case, monkeypatch):
    shown = []

    class Bar(contextlib.nullcontext):
        def update(self, n=1):
            shown.append((self.what, n))

    def bar(progress, what, *_, **__):
        assert progress is True
        made = Bar()
        made.enter_result, made.what = made, what
        return made

    monkeypatch.setattr(misfiled, "shown_progress", bar)
    find_misfiled(case[0], case[2], progress=True)
    steps = [n for what, n in shown if what == "misfiled, fit"]
    assert len(steps) > 10
    assert sum(n for what, n in shown if what == "misfiled") == 300


# ---- where it cannot tell


def said(found, words):
    return any(words in line for line in found.sentences())


@pytest.mark.parametrize("kind", ["random features", "shuffled places"])
def test_features_that_say_nothing_flag_nothing(case, kind):
    X, whole, *_ = case
    rng = np.random.default_rng(2)
    found = find_misfiled(rng.normal(size=X.shape) if kind == "random features" else rng.permutation(X), whole)
    assert (found.probabilities > 0.5).sum() == 0
    assert said(found, "next to nothing")
    assert not said(found, "distinguished")
    sure = replace(found, probabilities=np.ones(300), target_probabilities=np.ones(300))
    assert [len(sure.select(0.9)), len(sure.select(target=False)), len(sure.to_move())] == [0, 0, 0]


def test_a_column_of_another_scale_is_named(case):
    X, whole, *_ = catalogue(600, 0.0, seed=1)
    scaled = X.copy()
    scaled[:, 7] *= 1000
    found = find_misfiled(scaled, whole)
    assert (found.probabilities > 0.5).sum() == 0
    assert said(found, "column 7 ")
    assert said(found, "only the order")
    assert not said(find_misfiled(case[0], case[1]), "scale")


def twins(seed=0):
    """Ten shelves, of which 8 and 9 hold the same kind of items; some of both are on shelf 0."""
    rng = np.random.default_rng(seed)
    shelf = np.repeat(np.arange(10), 30)
    X = rng.normal(size=(9, 20))[np.minimum(shelf, 8)] + 0.4 * rng.normal(size=(300, 20))
    moved = np.array([240, 241, 242, 270, 271])
    shelf[moved] = 0
    return X, Hierarchy(np.r_[300 + shelf, np.full(10, 310), -1], 300), moved


@pytest.mark.parametrize("size", [2, 3])
def test_twins_have_at_least_three_items(size):
    rng = np.random.default_rng(0)
    shelf = np.repeat(np.arange(10), [30] * 8 + [size] * 2)
    X = rng.normal(size=(9, 20))[np.minimum(shelf, 8)] + 0.1 * rng.normal(size=(len(shelf), 20))
    first, root = len(shelf), len(shelf) + 10
    found = find_misfiled(X, Hierarchy(np.r_[first + shelf, np.full(10, root), -1], first))
    assert found.twins == ((root - 2, root - 1),) * (size == 3)


def test_clusters_that_are_twins_are_both_targets_and_named():
    X, tree, moved = twins()
    found = find_misfiled(X, tree)
    assert set(found.order[:5]) == set(moved)
    ends = np.column_stack([found.targets, found.second_targets])[moved]
    assert (np.sort(ends, axis=1) == [308, 309]).all()
    assert found.twins == ((308, 309),)
    assert said(found, "node 308 and node 309")
    assert not found.odd[moved].any()


def test_items_that_fit_nowhere_are_odd_and_have_no_proposed_place():
    rng = np.random.default_rng(0)
    shelf = np.repeat(np.arange(20), 25)
    kinds = 3.0 * np.eye(20, 60)
    X = kinds[shelf] + rng.normal(size=(500, 60))
    odd = np.array([7, 107, 207])
    X[odd] = kinds[12:].sum(axis=0) + rng.normal(size=(3, 60))  # of eight other kinds at once
    found = find_misfiled(X, Hierarchy(np.r_[500 + shelf, np.full(20, 520), -1], 500))
    assert set(found.order[:3]) == set(odd)
    nowhere = odd[found.odd[odd]]
    assert len(nowhere) > 0
    assert said(found, "odd item")
    assert (found.target_probabilities[nowhere] < 0.5).all()
    rows = {int(row["item_id"]): row for row in found.to_rows(3)}
    assert all(rows[item]["target_path"] == "" for item in nowhere.tolist())


def test_rows_of_zeros_are_not_judged(case):
    X, _, broken, _ = case
    empty = X.copy()
    empty[[3, 4]] = 0.0
    for table in (empty, sp.csr_array(empty)):
        found = find_misfiled(table, broken)
        assert found.order[-2:].tolist() == [3, 4]
        assert found.targets[[3, 4]].tolist() == [-1, -1]
        assert (found.probabilities[[3, 4]] < 0.5).all()
        assert found.n_terms[[3, 4]].tolist() == [0, 0]
        assert said(found, "2 items without features")
        assert not np.isin([3, 4], found.select(0.5)).any()


def test_a_text_of_one_word_is_weaker_evidence_than_one_of_many():
    rng = np.random.default_rng(0)
    shelf = np.repeat(np.arange(6), 20)
    words = [6 * (rng.random(60) < 0.5) + (np.arange(60) // 10 == kind) * 6 for kind in shelf]
    X = np.array([row * (rng.random(60) < 0.6) for row in words], dtype=float)
    X[0], X[1] = 0.0, 0.0
    X[0, 25] = 1.0  # one word of shelf 2
    X[1, 20:30] = 1.0  # ten of them
    found = find_misfiled(sp.csr_array(X), Hierarchy(np.r_[120 + shelf, np.full(6, 126), -1], 120))
    assert found.n_terms[:2].tolist() == [1, 10]
    assert found.probabilities[0] < found.probabilities[1]


@pytest.mark.parametrize("seed", range(6))
def test_the_six_misfiled_of_48_come_first_and_are_probable(seed):
    X, whole, broken, moved = catalogue(48, 0.125, seed)
    found = find_misfiled(X, broken)
    assert set(found.order[:6]) == set(moved)
    assert (found.targets[moved] == whole.parent[moved]).all()
    assert (found.target_probabilities[moved] > 0.6).all()
    assert (np.delete(found.probabilities, moved) < 0.05).all()
    assert set(found.to_move(0.3)) == set(moved)
    assert set(found.to_move(0.01)) <= set(moved)


def test_one_raincoat_among_the_shoes_is_to_be_moved():
    X = np.array([[5.0, 0, 1], [5, 0, 0], [0, 5, 4], [0, 5, 2], [0, 5, 3]])
    found = find_misfiled(X, Hierarchy.from_children([[0, 1, 2], [3, 4], [5, 6]], 5))
    assert found.to_move().tolist() == [2]
    assert found.informative
    assert 0.8 < found.probabilities[2] < 0.99


def test_small_catalogues_are_named():
    X, _, broken, _ = catalogue(48, 0.125, seed=3)
    found = find_misfiled(X, broken)
    assert said(found, "Fewer than 100")
    assert not said(find_misfiled(*catalogue(120, 0.0, seed=3)[:2]), "Fewer than 100")


@pytest.mark.slow
def test_misfiled_among_siblings_are_found_where_there_are_many():
    X, whole, *_ = catalogue(1000, 0.0, seed=4, noise=0.8)
    rng = np.random.default_rng(0)
    parent, moved = whole.parent.copy(), []
    for item in rng.permutation(1000):
        others = np.setdiff1d(np.flatnonzero(whole.parent == whole.parent[whole.parent[item]]), whole.parent[item])
        if len(moved) < 50 and (parent[:1000] == parent[item]).sum() > 2 and len(others):
            parent[item] = rng.choice(others)
            moved.append(item)
    found = find_misfiled(X, Hierarchy(parent, 1000))
    assert np.isin(found.order[:50], moved).mean() > 0.6


# ---- shapes of trees


def test_outer_items_of_large_wide_homes_stay_among_many_small_narrow_ones():
    rng = np.random.default_rng(2)
    sizes = np.r_[200, [60] * 2, [20] * 4, [5] * 10, [3] * 10]
    kind = np.repeat(np.arange(27), sizes)
    spread = 0.3 * np.sqrt(sizes / 200)
    points = rng.uniform(-1, 1, (27, 2))[kind] + spread[kind][:, None] * rng.normal(size=(480, 2))
    tree = Hierarchy(np.r_[480 + kind, np.full(27, 507), -1], 480)
    found = find_misfiled(np.c_[points, np.ones(480)], tree)
    assert not (found.probabilities[:320] > 0.5).any()
    assert found.rate < 0.01


def test_a_tree_with_one_home_has_nothing_to_say():
    found = find_misfiled(np.eye(3), Hierarchy.from_children([[0, 1, 2]], 3))
    assert found.probabilities.tolist() == [0, 0, 0]
    assert found.targets.tolist() == [-1, -1, -1]
    assert said(found, "one cluster")
    assert found.select().tolist() == []
    assert found.to_rows() == []
    alone = find_misfiled(np.eye(1), Hierarchy([-1], 1))
    assert alone.probabilities.tolist() == [0]


def test_features_of_zeros_alone_are_not_judged():
    found = find_misfiled(np.zeros((4, 2)), Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4))
    assert (found.targets == -1).all()
    assert (found.probabilities < 0.5).all()
    assert said(found, "4 items without features")


def test_homes_of_one_item_and_items_beside_clusters():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(1, 8)) + 0.1 * rng.normal(size=(10, 8)) for _ in range(3)])
    parent = np.r_[np.full(10, 30), np.full(9, 31), 33, np.full(9, 32), 34, [34, 34, 34, 32, -1]]
    found = find_misfiled(X, Hierarchy(parent, 30))  # item 19 alone in a cluster below another's, item 29 at the root
    assert np.isfinite(found.probabilities).all()
    assert (found.targets >= 30).all()
    assert (found.targets != parent[:30]).all()


def test_duplicates_get_one_answer():
    X, whole, *_ = catalogue(200, 0.0, seed=5)
    same = np.flatnonzero(whole.parent[:200] == whole.parent[100])[:2]
    X[same[1]] = X[same[0]]
    found = find_misfiled(X, whole)
    assert found.log_odds[same[0]] == pytest.approx(found.log_odds[same[1]], abs=1e-9)


def test_the_most_similar_items_are_those_of_the_largest_cosine(case, found):
    X, _, broken, moved = case
    item, node = int(moved[0]), int(found.targets[moved[0]])
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    others = np.setdiff1d(broken.items(node), [item])
    expected = others[np.argsort(-(units[others] @ units[item]))[:3]]
    assert set(found.similar(item, node)) == set(expected)


def test_rows_name_places_by_their_paths():
    paths = {f"boot {k}": "Shoes > Boots" for k in range(4)} | {f"parka {k}": "Coats > Warm" for k in range(4)}
    paths["boot 9"] = "Coats > Warm"
    paths |= {"cap": "Coats > Thin", "shoe": "Shoes > Low"}
    tree = Hierarchy.from_paths(paths)
    X = np.array(
        [
            [1.0, 0.1 * k % 0.3, 0.0] if "boot" in name else [0.0, 1.0, name in ("cap", "shoe")]
            for k, name in enumerate(tree.item_labels)
        ]
    )
    row = find_misfiled(X, tree).to_rows(1)[0]
    assert (row["rank"], row["item_name"]) == (1, "boot 9")
    assert (row["source_path"], row["target_path"]) == ("Coats > Warm", "Shoes > Boots")
    assert row["similar_at_source"].count("parka") == 3
    assert row["similar_at_target"].count("boot") == 3
    assert row["probability"] == pytest.approx(row["odds"] / (1 + row["odds"]))


def test_wrong_features_and_trees_are_refused():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    with pytest.raises(FeatureError, match="3 rows"):
        find_misfiled(np.eye(3), tree)
    with pytest.raises(HierarchyError, match="hierarchy"):
        find_misfiled(np.eye(4), [[0, 1], [2, 3]])
    with pytest.raises(ParameterError, match="progress"):
        find_misfiled(np.eye(4), tree, progress="yes")
