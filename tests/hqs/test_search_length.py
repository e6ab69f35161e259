"""The expected search length against the order of every pair of items, and its limits."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier import Hierarchy, expected_search_length, hqs_score
from pomdp_hier._engines import on_numpy
from pomdp_hier.errors import DataWarning, HierarchyError, MissingExtraError, ParameterError
from tests import scorer_oracle as oracle
from tests.extras import ENGINES

GROUPS = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
X_GROUPS = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]


def random_case(rng, least=1, most=14):
    """A random tree with chains, pairs, wide nodes and items at internal nodes, and random features."""
    n_items = int(rng.integers(least, most + 1))
    open_, children = rng.permutation(n_items).tolist(), []
    while len(open_) > 1 or not children:
        width = int(rng.integers(1, min(len(open_), 5) + 1)) if len(children) < 2 * n_items else len(open_)
        at = int(rng.integers(0, len(open_) - width + 1))
        children.append(open_[at : at + width])
        open_[at : at + width] = [n_items + len(children) - 1]
    tree = Hierarchy.from_children(children, n_items, singletons=bool(rng.integers(2)))
    return tree, rng.integers(-4, 5, size=(n_items, int(rng.integers(1, 4)))) / 2


def quiet(*given, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return expected_search_length(*given, **settings)


class Pairs:
    """Search lengths from the definition: how likely is each item, and each label, seen before x?"""

    def __init__(self, tree, sim, **options):
        self.tree, self.plain = tree, oracle.Oracle(tree, sim, **options)
        self.paths = [tree.path(item).tolist() for item in range(tree.n_items)]

    def path(self, item):
        path = self.paths[item]
        return path[:-1] if path[-1] == item and len(path) > 1 and not self.plain.enter else path

    def before(self, x, nodes):
        """The probability that searchers for x are at the last of these nodes before they find x."""
        own = self.path(x)
        for level, (mine, other) in enumerate(itertools.zip_longest(own, nodes)):
            if mine == other:
                continue
            if other is None:
                return Fraction(1)  # on the true path
            if mine is None:
                return Fraction(1, 2)  # x is looked for in a cluster that is not entered further
            children = self.tree.children(own[level - 1]).tolist()
            eta = dict(zip(children, self.plain.eta(x, own[level - 1], level - 1), strict=True))
            return eta[other] / (eta[other] + eta[mine])
        return Fraction(1, 2)

    def items(self, x):
        return 1 + sum(self.before(x, self.paths[y]) for y in range(self.tree.n_items) if y != x)

    def labels(self, x):
        total, own = Fraction(0), self.path(x)
        for node in range(self.tree.n_items, self.tree.n_nodes):
            at = self.tree.parent[node]
            nodes = [node]
            while at >= 0:
                nodes.insert(0, int(at))
                at = self.tree.parent[at]
            inside = nodes[: len(own)] == own
            total += 0 if inside else len(self.tree.children(node)) * self.before(x, nodes)
        return total


def check(tree, sim, found, cost, options):
    pairs, n_items = Pairs(tree, sim, **options), tree.n_items
    for x in range(n_items):
        items, labels = pairs.items(x), pairs.labels(x)
        value = 1 - (items + Fraction(cost) * labels - 1) * 2 / (n_items - 1) if n_items > 1 else 0
        auc = 1 - (items - 1) / (n_items - 1) if n_items > 1 else 0.5
        assert found.lengths[x] == pytest.approx(float(items + Fraction(cost) * labels), rel=1e-12)
        assert found.labels[x] == pytest.approx(float(labels), rel=1e-12)
        assert found.values[x] == pytest.approx(float(value), abs=1e-12 * (1 + abs(float(value))))
        assert found.auc[x] == pytest.approx(float(auc), abs=1e-12)


def against_pairs(seeds, engine):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        tree, X = random_case(rng)
        options = {"delta": float(rng.choice([0.05, 0.3, 2.0])), "nu": float(rng.choice([1.0, 1.3]))}
        options["enter_own_singleton"] = bool(rng.integers(2))
        cost = float(rng.choice([0.0, 1.0, 0.25]))
        found = quiet(X, tree, label_cost=cost, engine=engine, **options)
        check(tree, oracle.cosine(X), found, cost, options)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_order_of_every_pair_of_items(engine):
    against_pairs(range(25), engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_order_of_every_pair_of_items_in_1000_trees(engine):
    against_pairs(range(1000), engine)


@pytest.mark.parametrize("seed", range(4))
def test_every_kind_of_features(seed, monkeypatch):
    monkeypatch.setattr(on_numpy, "PIECE_PAIRS", 12)  # several pieces per level
    rng = np.random.default_rng(seed)
    tree, X = random_case(rng, least=5)
    S = rng.random((tree.n_items, tree.n_items))
    plain = {"delta": 0.2, "nu": 1.1}
    check(tree, oracle.cosine(X), quiet(sp.csr_matrix(X), tree, label_cost=1, **plain), 1, plain)
    check(tree, oracle.precomputed(S), quiet(S, tree, similarity="precomputed", **plain), 0, plain)
    far = {"delta": 2.0}
    check(tree, oracle.negative_euclidean(X), quiet(X, tree, similarity="negative_euclidean", **far), 0, far)


def test_a_worked_example():
    # Similarities of item 0: 2 to its group and 1 to the other one, which has two items. sigma(-1) = 1 / (1 + e).
    S = [[0, 2, 1, 1], [2, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]]
    found = expected_search_length(S, GROUPS, similarity="precomputed", delta=1.0)
    first = 1 / (1 + np.e)
    assert found.lengths == pytest.approx(np.full(4, 1.5 + 2 * first), rel=1e-15)
    assert found.score == pytest.approx(1 - (0.5 + 2 * first) / 1.5, rel=1e-15)
    assert found.auc == pytest.approx((1 + found.values) / 2, rel=1e-15)
    assert (found.mean_length, found.list_length) == (pytest.approx(1.5 + 2 * first), 2.5)
    labelled = expected_search_length(S, GROUPS, similarity="precomputed", delta=1.0, label_cost=10)
    assert labelled.lengths == pytest.approx(21.5 + 2 * first, rel=1e-15)  # two labels, at the root
    assert labelled.auc.tolist() == found.auc.tolist()
    assert labelled.labels.tolist() == [2.0] * 4
    assert labelled.with_label_cost(0).lengths == pytest.approx(found.lengths, rel=1e-14)
    assert found.with_label_cost(10).values == pytest.approx(labelled.values, rel=1e-14)
    assert found.with_label_cost(10).config == labelled.config
    with pytest.raises(ParameterError, match="label_cost"):
        found.with_label_cost(-1)


def star(n_items, singletons):
    return Hierarchy.from_children([list(range(n_items))], n_items, singletons=singletons)


@pytest.mark.parametrize("engine", ENGINES)
class TestLimits:
    def test_a_list_is_zero(self, engine):
        X = np.random.default_rng(0).random((7, 3))
        found = expected_search_length(X, star(7, False), engine=engine, label_cost=5)
        assert found.values.tolist() == [0.0] * 7
        assert found.auc.tolist() == [0.5] * 7
        hidden = expected_search_length(X, star(7, True), engine=engine, enter_own_singleton=False)
        assert hidden.values.tolist() == [0.0] * 7

    @pytest.mark.parametrize("seed", range(5))
    def test_guidance_without_information_is_zero(self, engine, seed):
        tree, X = random_case(np.random.default_rng(seed), least=2)
        assert quiet(np.ones_like(X), tree, engine=engine).values == pytest.approx(0, abs=1e-12)
        assert quiet(X, tree, engine=engine, delta=1e12).values == pytest.approx(0, abs=1e-11)
        assert quiet(X, tree, engine=engine, nu=1e300, delta=1e12).values == pytest.approx(0, abs=1e-11)

    def test_one_item_alone(self, engine):
        for tree in (Hierarchy.from_children([[0]], 1), Hierarchy.from_children([[0], [1]], 1, singletons=True)):
            found = expected_search_length([[1.0, 2.0]], tree, engine=engine)
            assert (found.score, found.lengths.tolist(), found.auc.tolist()) == (0.0, [1.0], [0.5])
            assert expected_search_length([[1.0, 2.0]], tree, engine=engine, label_cost=1).score == 0.0

    @pytest.mark.parametrize("delta", [1e-300, 1e-200, 1e-5, 1.0, 1e5, 1e12])
    def test_any_temperature(self, engine, delta):
        found = expected_search_length(X_GROUPS, GROUPS, delta=delta, engine=engine, label_cost=1)
        assert np.isfinite(found.values).all()
        assert (found.lengths >= 3.5).all()
        if delta < 1e-3:  # the correct group first, and two labels
            assert found.lengths.tolist() == [3.5] * 4
        swapped = expected_search_length(X_GROUPS, GROUPS.permuted([2, 1, 0, 3]), delta=delta, engine=engine)
        assert (swapped.values >= -1).all()
        assert swapped.score < 0

    def test_a_chain_costs_its_labels_alone(self, engine):
        chain = Hierarchy.from_children([[0, 1], [2, 3], [4], [6, 5], [7]], 4)
        alone = expected_search_length(X_GROUPS, GROUPS, delta=0.1, engine=engine)
        found = expected_search_length(X_GROUPS, chain, delta=0.1, engine=engine)
        assert found.lengths == pytest.approx(alone.lengths, rel=1e-14)
        first = (alone.lengths - 1.5) / 2  # the probability of the wrong group before the right one
        assert found.labels[:2].tolist() == [4.0, 4.0]  # of the root, of its child, and of the chain above the group
        assert found.labels[2:] == pytest.approx(3 + first[2:], rel=1e-12)

    def test_found_last(self, engine):
        X = [[1.0, 0.0], [0.9, 0.1], [1.0, 0.0], [1.0, 0.1], [-1.0, 0.2]]
        tree = Hierarchy.from_children([[0, 4], [1, 2, 3], [5, 6]], 5)
        found = expected_search_length(X, tree, engine=engine, delta=0.01)
        assert (found.values[0], found.auc[0]) == (-0.75, 0.125)  # before or after item 4, after the others
        own = Hierarchy.from_children([[0, 7], [1, 2, 3], [4], [5, 6]], 5)
        found = expected_search_length(X, own, engine=engine, delta=1e-4)
        assert (found.values[4], found.auc[4]) == (-0.5, 0.25)  # three items, then its own cluster

    def test_siblings_in_any_order(self, engine):
        tree, X = random_case(np.random.default_rng(3), least=8)
        turned = Hierarchy(tree.parent, tree.n_items, order=np.arange(tree.n_nodes)[::-1], singletons=tree.singletons)
        one, other = (quiet(X, each, engine=engine, label_cost=1, delta=0.2) for each in (tree, turned))
        assert one.lengths == pytest.approx(other.lengths, rel=1e-13)


def test_labels_charge_for_depth_and_breadth():
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((6, 4))
    X = np.repeat(centres, 10, axis=0) + 0.1 * rng.standard_normal((60, 4))
    groups = Hierarchy.from_labels(np.arange(60) // 10)
    wide = star(60, True)  # every item has a label of its own
    assert expected_search_length(X, wide).score > expected_search_length(X, groups).score
    assert (
        expected_search_length(X, wide, label_cost=1).score < 0 < expected_search_length(X, groups, label_cost=1).score
    )


class TestSamples:
    def test_a_sample_estimates_the_score(self):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.standard_normal((20, 5)), 30, axis=0) + 0.5 * rng.standard_normal((600, 5))
        tree = Hierarchy.from_labels(np.arange(600) // 30)
        whole = expected_search_length(X, tree, delta=0.1, label_cost=1)
        part = expected_search_length(X, tree, delta=0.1, label_cost=1, sample_size=200, random_state=0)
        assert part.values == pytest.approx(whole.values[part.sampled_items], rel=1e-13)
        low, high = part.interval()
        assert low < whole.score < high
        assert abs(part.score - whole.score) < 4 * part.standard_error
        narrow = expected_search_length(X, tree, delta=0.1, half_width=0.05, random_state=0)
        assert max(abs(end - narrow.score) for end in narrow.interval()) <= 0.05
        assert narrow.n_sampled < 600
        some = expected_search_length(X, tree, delta=0.1, label_cost=1, items=[5, 3])
        assert some.values == pytest.approx(whole.values[[5, 3]], rel=1e-13)
        assert some.auc == pytest.approx(whole.auc[[5, 3]], rel=1e-13)

    def test_the_interval_allows_for_labels(self):
        rng = np.random.default_rng(0)
        tree = Hierarchy.from_labels(rng.integers(20, size=100))
        found = expected_search_length(rng.random((100, 3)), tree, sample_size=30, random_state=0, label_cost=3)
        most = 100 + 3 * 20
        assert found.value_range == pytest.approx((1 - (most - 1) / 49.5, 1.0))

    def test_the_result_in_other_forms(self):
        found = expected_search_length(X_GROUPS, GROUPS, delta=0.1, label_cost=1)
        frame = found.to_frame()
        assert frame["lengths"].tolist() == found.lengths.tolist()
        assert "labels" in found.sentence()
        assert found.sentence() in found.summary()
        assert repr(found) == f"SearchLengthResult(score={found.score:.6f}, 4 items)"
        with pytest.raises(ValueError, match="read-only"):
            found.lengths[0] = 0.0


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    from pomdp_hier._engines import on_numba

    monkeypatch.setattr(on_numba, "PIECE_ITEMS", 37)
    rng = np.random.default_rng(0)
    tree, X = Hierarchy.from_labels(rng.integers(9, size=500)), rng.random((500, 4))
    runs = [expected_search_length(X, tree, engine="numba", threads=threads) for threads in (1, 2, 5)]
    assert all(run.lengths.tolist() == runs[0].lengths.tolist() for run in runs)
    plain = expected_search_length(X, tree, engine="numpy")
    assert runs[0].lengths == pytest.approx(plain.lengths, rel=1e-12)


def test_the_calibrated_temperature_is_that_of_the_score():
    rng = np.random.default_rng(0)
    X, tree = rng.random((60, 4)), Hierarchy.from_labels(np.arange(60) // 10)
    found = quiet(X, tree, delta="calibrated")
    assert found.config["delta_from"] == "calibrated"
    assert found.score == expected_search_length(X, tree, delta=found.config["delta"]).score


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"label_cost": -1}, "label_cost"),
        ({"label_cost": np.inf}, "label_cost"),
        ({"label_cost": "1"}, "label_cost"),
        ({"label_cost": None}, "label_cost"),
        ({"engine": "generic"}, "engine"),
        ({"engine": "fast"}, "engine"),
        ({"delta": 0}, "delta"),
        ({"random_state": 1}, "random_state"),
        ({"items": [4]}, "items"),
        ({"items": [1], "sample_size": 2}, "items"),
        ({"engine": "numpy", "threads": 2}, "threads"),
        ({"similarity": "nearby"}, "similarity"),
    ],
)
def test_wrong_arguments(settings, argument):
    with pytest.raises(ParameterError, match=argument):
        expected_search_length(X_GROUPS, GROUPS, **settings)


def test_a_tree_that_is_none():
    with pytest.raises(HierarchyError):
        expected_search_length(X_GROUPS, [[0, 1], [2, 3]])


def test_every_option_with_every_other():
    """No option changes the values, other than those that define them."""
    rng = np.random.default_rng(2)
    tree, X = random_case(rng, least=10)
    model = {"delta": [0.1, "calibrated"], "label_cost": [0, 1], "enter_own_singleton": [True, False]}
    runs = [{}, {"engine": "numpy"}, {"items": range(tree.n_items)}, {"sample_size": 1.0, "random_state": 0}]
    runs += [{"engine": "numba", "threads": 2}, {"sample_size": 1.0, "sampling": "simple", "random_state": 0}]
    for combination in itertools.product(*model.values()):
        options = dict(zip(model, combination, strict=True))
        first = quiet(X, tree, **options)
        for run in runs:
            try:
                other = quiet(X, tree, **options, **run)
            except MissingExtraError:
                continue
            assert other.lengths == pytest.approx(first.lengths, rel=1e-12), (options, run)
            assert other.score == pytest.approx(first.score, rel=1e-12, abs=1e-14)


def test_damage_lowers_it_where_hqs_rises():
    """The case of the README: HQS puts the shuffled tree above the half-shuffled one."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(30), 12, axis=0) + 0.3 * rng.random((360, 30))
    tree = Hierarchy.from_labels(np.arange(360) // 12)
    scores, lengths = [], []
    for share in (0.0, 0.2, 0.5, 1.0):
        chosen = rng.choice(360, round(share * 360), replace=False)
        items = np.arange(360)
        items[np.sort(chosen)] = chosen
        scores.append(hqs_score(X, tree.permuted(items), delta=0.05))
        lengths.append(expected_search_length(X, tree.permuted(items), delta=0.05).score)
    assert lengths == sorted(lengths, reverse=True)
    assert scores[2] < scores[3]


def test_the_items_looked_at_do_not_depend_on_the_label_cost():
    free = expected_search_length(X_GROUPS, GROUPS, delta=0.3)
    dear = expected_search_length(X_GROUPS, GROUPS, delta=0.3, label_cost=1e20)
    np.testing.assert_allclose(dear.looks, free.lengths, rtol=1e-14)
    np.testing.assert_allclose(dear.with_label_cost(0).lengths, free.lengths, rtol=1e-14)
    assert dear.sentence().startswith("Searchers who may go back look at 1.6 items and read 2 labels")
