"""The engines against the plain scorer, and against each other."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier._engines import on_numpy
from pomdp_hier._engines.dispatch import run_engine, run_lengths
from pomdp_hier._engines.on_numpy import weigh
from pomdp_hier._engines.task import AlwaysDescend, HindsightRule, LookAhead
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.features import dense
from pomdp_hier.features.membership import own_ranks
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.score import evaluate
from tests import scorer_oracle as oracle
from tests.engines.tasks import chain, grouped, task_of
from tests.extras import ENGINES, INSTALLED_ENGINES, few


def manhattan(items, cluster):
    return -np.abs(np.asarray(items - cluster.centroid)).sum(axis=1)


def plain_manhattan(X):
    def sim(x, members):
        centre = [math.fsum(float(X[y][d]) for y in members) / len(members) for d in range(X.shape[1])]
        return -math.fsum(abs(float(X[x][d]) - centre[d]) for d in range(X.shape[1]))

    return sim


@st.composite
def similarities(draw):
    """A similarity, its plain counterpart, and the scale of its values."""
    leave_out, mean = draw(st.booleans()), draw(st.booleans())
    own = draw(st.sampled_from([None, 1.0]))
    return draw(
        st.sampled_from(
            [
                (Cosine(leave_out), lambda X: oracle.cosine(X, leave_out), 1.0),
                (
                    InverseSquaredEuclidean(0.01, leave_out, mean, own),
                    lambda X: oracle.inverse_sqeuclidean(X, 0.01, leave_out, mean, own),
                    10.0,
                ),
                (
                    NegativeEuclidean(leave_out, mean, own),
                    lambda X: oracle.negative_euclidean(X, leave_out, mean, own),
                    1.0,
                ),
            ]
        )
    )


@st.composite
def cases(draw):
    tree = draw(oracle.trees())
    X = draw(oracle.features(tree.n_items))
    options = {
        "delta": draw(st.sampled_from([0.05, 0.2, 1.0])),
        "nu": draw(st.sampled_from([0.6, 1.0, 1.3, 1e200])),
        "tie": draw(st.sampled_from(["descend", "search"])),
        "enter_own_singleton": draw(st.booleans()),
    }
    return tree, X, options


def check(result, plain, tolerance=1e-12):
    for item, (value, stop) in enumerate(zip(result.values, result.stop_nodes, strict=True)):
        expected = plain.score(item)
        if expected.margin is None or expected.margin > 1e-10:
            assert stop == expected.stop, item
            assert value == pytest.approx(expected.value, abs=tolerance)
            assert result.path_probabilities[item] == pytest.approx(expected.probability, abs=tolerance)


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return evaluate(*args, **kwargs)


@pytest.fixture(scope="class", params=[False, True], ids=["whole", "pieces"])
def _pieces(request):
    """Runs with the usual sizes of batches and pieces, and with tiny ones, so that small trees have several."""
    if not request.param:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_numpy, "PIECE_PAIRS", 12)
        patch.setattr(dense.DenseAffinity, "batch_items", 7)
        patch.setattr(dense, "MANY", 6)
        patch.setattr(dense, "TILE", 2)
        patch.setattr(dense, "PIECE_VALUES", 3)
        yield


@pytest.mark.usefixtures("_pieces")
class TestAgainstThePlainScorer:
    @pytest.mark.parametrize("engine", ENGINES)
    @given(case=cases(), kind=similarities())
    def test_one_step(self, case, kind, engine):
        tree, X, options = case
        similarity, plain, scale = kind
        options = {**options, "delta": options["delta"] * scale}
        check(quiet(X, tree, similarity=similarity, engine=engine, **options), oracle.Oracle(tree, plain(X), **options))

    @given(case=cases(), kind=similarities())
    def test_sparse(self, case, kind):
        tree, X, options = case
        similarity, plain, scale = kind
        options = {**options, "delta": options["delta"] * scale}
        result = quiet(sp.csr_matrix(X), tree, similarity=similarity, **options)
        check(result, oracle.Oracle(tree, plain(X), **options))

    @pytest.mark.parametrize("engine", ENGINES)
    @given(case=cases(), depth=st.sampled_from([2, 3, None]))
    def test_looking_further_ahead(self, case, depth, engine):
        tree, X, options = case
        tie = options["tie"]
        policy = "optimal" if depth is None else LookAhead(depth, tie)
        plain = oracle.Oracle(tree, oracle.cosine(X), depth=depth, **options)
        check(quiet(X, tree, policy=policy, engine=engine, **options), plain)
        if engine == "numpy":
            check(quiet(sp.csr_matrix(X), tree, policy=policy, **options), plain)

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("policy", ["descend", "search-root", "hindsight"])
    @given(case=cases())
    def test_other_policies(self, case, policy, engine):
        tree, X, options = case
        plain = oracle.Oracle(tree, oracle.cosine(X), policy=policy, **options)
        check(quiet(X, tree, policy=policy, engine=engine, **options), plain)

    @given(case=cases(), data=st.data())
    def test_precomputed(self, case, data):
        tree, _, options = case
        n_items = tree.n_items
        S = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=n_items**2, max_size=n_items**2))) / 9
        S = S.reshape(n_items, n_items)
        np.fill_diagonal(S, np.nan)
        check(
            evaluate(S, tree, similarity="precomputed", **options),
            oracle.Oracle(tree, oracle.precomputed(S), **options),
        )

    @given(case=cases())
    def test_a_similarity_of_ones_own(self, case):
        tree, X, options = case
        plain = oracle.Oracle(tree, plain_manhattan(X), **options)
        check(evaluate(X, tree, similarity=manhattan, **options), plain)
        check(evaluate(sp.csr_matrix(X), tree, similarity=manhattan, **options), plain)

    @pytest.mark.parametrize("engine", ENGINES)
    @given(case=cases())
    def test_a_reward_of_ones_own(self, case, engine):
        def reward(size, n_items):
            return 1 - size / n_items

        tree, X, options = case
        plain = oracle.Oracle(tree, oracle.cosine(X), reward=reward, **options)
        check(quiet(X, tree, reward=reward, engine=engine, **options), plain)


def plain_path_probability(tree, X, kind, delta, item):
    """What a search for the item that never stops finds it with, in extended precision."""
    X, probability = X.astype(np.longdouble), np.longdouble(1.0)
    unit = X / np.sqrt((X**2).sum(axis=1))[:, None]
    cosines = unit @ unit[item]
    node = item if tree.is_cluster[item] else int(tree.parent[item])
    while node != tree.root:
        own, node, values = node, int(tree.parent[node]), []
        for child in tree.children(node):
            members, size = tree.items(child), int(tree.sizes[child])
            left_out = child == own and kind.leave_out and size > 1
            if isinstance(kind, Cosine):
                value = (cosines[members].sum() - left_out * cosines[item]) / (size - left_out)
                values.append(1.0 if int(child) == item else value)
                continue
            gap = ((X[item] - X[members].mean(axis=0)) ** 2).sum() * (int(child) != item)
            gap *= (np.longdouble(size) / (size - 1)) ** 2 if left_out else 1
            values.append(1 / (gap + np.longdouble(kind.epsilon)) if hasattr(kind, "epsilon") else -np.sqrt(gap))
        values = np.array(values)
        probability /= np.exp((values - values[list(tree.children(node)).index(own)]) / delta).sum()
    return probability


def check_path_probabilities(tree, X, kind, delta, items, tolerances):
    """The probabilities of the engines against the plain ones, relative to them; tolerances for numpy and for numba."""
    settings = {"similarity": kind, "policy": "descend", "delta": delta}
    found = [evaluate(X, tree, engine=engine, **settings).path_probabilities for engine in INSTALLED_ENGINES]
    for item in items:
        expected = plain_path_probability(tree, X, kind, delta, item)
        if expected > 1e-300:
            for ours, tolerance, engine in zip(found, tolerances, INSTALLED_ENGINES, strict=False):
                assert abs(ours[item] / expected - 1) < tolerance, (engine, item)


@pytest.mark.parametrize("leave_out", few(1, [True, False]))
@pytest.mark.parametrize("shape", [pytest.param("caterpillar", marks=pytest.mark.slow), "ladder", "wide"])
def test_products_that_follow_from_those_above_stay_exact_on_deep_trees(shape, leave_out):
    """A child's dot product as what its siblings leave of the parent's: the error must not pile up on the way down."""
    n_items = 1_500
    ladder = [[3 * k, 3 * k + 1, 3 * k + 2] + ([n_items + k - 1] if k else []) for k in range(n_items // 3)]
    groups = [list(range(10 * k, 10 * k + 10)) for k in range(n_items // 10)]
    wide = [*groups, list(range(n_items, n_items + len(groups)))]
    tree = Hierarchy.from_children({"caterpillar": chain(n_items), "ladder": ladder, "wide": wide}[shape], n_items)
    # All alike, so that sums are as long as they can be and what is left of them small.
    X = 1.0 + 0.3 * np.random.default_rng(0).standard_normal((n_items, 7))
    check_path_probabilities(tree, X, Cosine(leave_out), 0.1, [0, 1, 2, 255, 700, 1_100, 1_499], (2e-12, 2e-12))


def nested_features(tree, ratio, rng):
    """Items about their clusters' places, which are ever closer the further down: by the ratio from level to level."""
    places = np.zeros((tree.n_nodes, 5))
    for node in np.argsort(tree.levels)[1:]:
        near = ratio ** int(tree.levels[tree.parent[node]])
        places[node] = places[tree.parent[node]] + near * rng.standard_normal(5)
    return places[: tree.n_items]


@pytest.mark.parametrize(
    "kind",
    [Cosine(), InverseSquaredEuclidean(1.0), NegativeEuclidean(leave_out=True)],
    ids=["cosine", "inverse", "negative"],
)
@pytest.mark.parametrize("data", ["noise", "nested", "far"])
@pytest.mark.parametrize(
    "shape", ["caterpillar", *(pytest.param(shape, marks=pytest.mark.slow) for shape in ("chain", "balanced", "wide"))]
)
def test_derived_products_are_exact(shape, data, kind):
    """The larger child's product or distance is what the smaller one leaves of the parent's, unless that is little."""
    n_items, rng = 256, np.random.default_rng(0)
    lists = {
        "caterpillar": [[0, 1, 2]] + [[k + 2, n_items + k - 1] for k in range(1, n_items - 2)],
        "chain": chain(n_items),
        "balanced": grouped(n_items, 2),
        "wide": grouped(n_items, 5),
    }[shape]
    tree = Hierarchy.from_children(lists, n_items, singletons=shape == "balanced")
    X = rng.standard_normal((n_items, 5))
    delta = 0.02 if kind == InverseSquaredEuclidean(1.0) else 0.2
    # 1e4 takes four digits from the features themselves, before anything is computed; numpy makes a distance anew only
    # where it keeps less than three.
    tolerances = (1e-8, 1e-11)
    if data == "far":
        X += 1e4
        tolerances = (1e-6, 1e-7)
    elif data == "nested":  # what is left of the distances above is next to nothing, and small differences matter
        X = nested_features(tree, 0.85 if shape in {"caterpillar", "chain"} else 0.25, rng)
        tolerances = (1e-11, 1e-11)
        if kind == InverseSquaredEuclidean(1.0):
            kind, delta = InverseSquaredEuclidean(1e-6), 1e4
        elif isinstance(kind, NegativeEuclidean):
            delta = 0.01
    if isinstance(kind, Cosine):
        tolerances = (1e-11, 1e-11)
    check_path_probabilities(tree, X, kind, delta, [0, 1, 2, 3, *range(4, n_items, 84)], tolerances)


def test_outliers_that_cancel_above_leave_the_distances_below():
    """Two rows are far longer than what tells the others apart: products would have lost it."""
    tree = Hierarchy.from_children(grouped(256, 2), 256, singletons=True)
    X = np.random.default_rng(0).standard_normal((256, 5))
    X[0], X[255] = 1e9, -1e9
    kind = InverseSquaredEuclidean(1.0)
    check_path_probabilities(tree, X, kind, 0.02, [1, 2, 3, *range(4, 254, 14)], (1e-11, 1e-11))


@pytest.mark.slow
def test_products_with_cancellation_are_not_derived():
    """An item's product as what the rest leaves of the whole would carry the rounding of the whole."""
    n_items = 100_000
    tree = Hierarchy.from_children(chain(n_items), n_items, singletons=True)
    X = 1.0 + 0.3 * np.random.default_rng(0).standard_normal((n_items, 3))
    items = np.arange(n_items - 100, n_items)  # the first hundred on the way down
    for engine in INSTALLED_ENGINES:
        found = run_engine(task_of(X, tree), items, engine, lambda done: None).probabilities
        for item in (n_items - 1, n_items - 2, n_items - 9, n_items - 30):
            expected = plain_path_probability(tree, X, Cosine(), 0.1, item)
            assert abs(found[item - items[0]] / expected - 1) < 5e-12, (engine, item)


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    from pomdp_hier._engines import on_numba

    monkeypatch.setattr(on_numba, "PIECE_ITEMS", 37)
    n_items = 1_000
    nodes = np.arange(2 * n_items - 2).reshape(-1, 2)
    sizes = np.ones(2 * n_items - 1)
    for k, pair in enumerate(nodes):
        sizes[n_items + k] = sizes[pair].sum()
    tree = Hierarchy.from_linkage(np.column_stack([nodes, np.arange(1.0, n_items), sizes[n_items:]]))
    X = np.random.default_rng(0).standard_normal((n_items, 9)).astype("float32")
    for policy in ("descend", "optimal"):
        runs = [evaluate(X, tree, engine="numba", threads=threads, policy=policy) for threads in (1, 2, 5)]
        for run in runs[1:]:
            np.testing.assert_array_equal(run.values, runs[0].values)
            np.testing.assert_array_equal(run.stop_nodes, runs[0].stop_nodes)


def equal_children(n_children):
    """A tree of that many pairs of items, all of them alike: the guidance is ``1 / n_children`` at every step."""
    n_items = 2 * n_children
    pairs = [[2 * k, 2 * k + 1] for k in range(n_children)]
    return Hierarchy.from_children([*pairs, list(range(n_items, n_items + n_children))], n_items)


@pytest.mark.parametrize("engine", [*ENGINES, "generic"])
@pytest.mark.parametrize("policy", ["one-step", "optimal", "hindsight"])
def test_an_exact_tie_is_a_tie_on_every_engine(policy, engine):
    """With rewards ``r' + 1 = k (r + 1)`` of k equal children, ``sum eta**2 (r' + 1) = r + 1``, whatever floats say."""
    for n_children in (3,) if engine == "generic" else (2, 3, 7, 11, 23, 49, 121):
        tree = equal_children(n_children)
        for at_root in (Fraction(0), Fraction(1, 2), Fraction(1, 10), Fraction(-3, 10)):
            below = n_children * (at_root + 1) - 1
            eta = Fraction(1, n_children)
            assert n_children * eta**2 * (below + 1) == at_root + 1  # and along the path: eta (r' + 1) = r + 1

            def reward(size, n_items, at_root=at_root, below=below):
                return float(at_root if size == n_items else below)

            settings = {"reward": reward, "policy": policy, "engine": engine, "delta": 0.1}
            for tie, level in (("descend", 1), ("search", 0)):
                found = evaluate(np.ones((tree.n_items, 3)), tree, tie=tie, **settings)
                assert (found.stop_levels == level).all(), (n_children, at_root, tie)


@pytest.mark.parametrize("engine", [*ENGINES, "generic"])
def test_the_smallest_loss_is_no_tie(engine):
    """Where a child is worth what its parent is, a step that may go wrong loses, were it once in 1e130 times."""
    tree, X = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4), [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    for gap in (8.0, 40.0, 300.0):
        settings = {"reward": lambda size, n_items: 0.5, "policy": "optimal", "delta": 1.0 / gap}
        assert (evaluate(X, tree, tie="descend", engine=engine, **settings).stop_levels == 0).all(), gap


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda m: np.full(m, 0.3), "float64 of shape"),
        (lambda m: np.full(m, np.nan), "float64"),
        (lambda m: ["search"] * m, "<U6"),
        (lambda m: None, r"object of shape \(\)"),
        (lambda m: np.ones(m + 1, bool), "bool of shape"),
        (lambda m: np.ones((m, 1), bool), "bool of shape"),
        (lambda m: [[True], [True, False]], "object"),
    ],
)
def test_a_rule_that_says_neither_yes_nor_no_is_refused_by_name(answer, said):
    class Odd:
        def descend(self, eta, sizes, rewards, level):
            return answer(len(eta))

        def __repr__(self):
            return "Odd()"

    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    for engine in ("numpy", "generic"):
        with pytest.raises(ParameterError, match=rf"policy: got {said}.* from Odd\(\) at level 0.*array of bool"):
            evaluate(np.eye(4) + 0.1, tree, policy=Odd(), engine=engine)


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_of_subnormal_numbers_score_alike_on_all_engines(compiled, monkeypatch):
    monkeypatch.setattr(dense, "VALUE_SECONDS", 1.0 if compiled else 0.0)
    rng, lists = np.random.default_rng(0), [[2 * k, 2 * k + 1] for k in range(7)]
    X = rng.standard_normal((8, 3)) * 10.0 ** rng.integers(-323, -300, (8, 1))
    X[0] = [0.3, -0.1, 0.2]
    for singletons in (False, True):
        tree = Hierarchy.from_children(lists, 8, singletons=singletons)
        expected = evaluate(X / np.abs(X).max(axis=1, keepdims=True), tree, policy="descend", delta=0.1).values
        for features, engine in ((X, "numpy"), (X, "numba"), (sp.csr_array(X), "numpy")):
            found = evaluate(features, tree, policy="descend", delta=0.1, engine=engine).values
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("width", [1, 3, 40])
def test_weights_of_lists_of_one_length_are_independent_of_others(width):
    rng = np.random.default_rng(width)
    tree = Hierarchy.from_children(
        [*([[2 * k, 2 * k + 1] for k in range(width)]), range(2 * width, 3 * width)], 2 * width
    )
    task, n = task_of(rng.normal(size=(2 * width, 3)), tree), 7
    nodes, children = np.full(n, tree.root), np.tile(tree.children(tree.root), n)
    similarities, counts = rng.normal(size=n * width), np.full(n, width)
    eta, margin, loss = weigh(task, similarities, np.arange(n) * width, counts, nodes, children)
    one_more = (  # a longer list behind them, after which they are no table
        np.append(similarities, rng.normal(size=width + 1)),
        np.append(np.arange(n) * width, n * width),
        np.append(counts, width + 1),
        np.append(nodes, tree.root),
        np.append(children, [*tree.children(tree.root), tree.root - 1]),
    )
    ragged_eta, ragged_margin, ragged_loss = weigh(task, *one_more)
    assert eta == pytest.approx(ragged_eta[: n * width], abs=1e-15)
    assert margin == pytest.approx(ragged_margin[:n], abs=1e-14)
    assert loss == pytest.approx(ragged_loss[:n], abs=1e-14)


@given(oracle.trees())
def test_the_child_that_holds_an_item_is_found_from_every_node(tree):
    nodes = np.arange(tree.n_nodes)
    for item in range(tree.n_items):
        ranks = own_ranks(tree, nodes, np.full(tree.n_nodes, tree.starts[item]))
        for node, rank in zip(nodes, ranks, strict=True):
            holding = [r for r, child in enumerate(tree.children(node)) if item in tree.items(child)]
            assert [rank] == (holding or [-1])
    for node in nodes:  # and those of all items from one node
        places = tree.starts[: tree.n_items]
        mixed = own_ranks(tree, np.append(np.full(tree.n_items, node), nodes), np.append(places, tree.starts))
        assert (own_ranks(tree, np.full(tree.n_items, node), places) == mixed[: tree.n_items]).all()


LOOK = on_numpy.Walk._look


def with_runs(rng, n_items, longest):
    """A random binary tree with up to this number of only children, one below the other, above each node."""
    parent, free = {}, list(range(n_items))
    while len(free) > 1:
        one, two = (free.pop(int(rng.integers(len(free)))) for _ in range(2))
        node = max([n_items - 1, *parent.values()]) + 1
        parent |= {one: node, two: node}
        for _ in range(int(rng.integers(longest + 1))):
            parent[node] = node + 1
            node += 1
        free.append(node)
    return Hierarchy([*(parent[node] for node in sorted(parent)), -1], n_items, singletons=True)


RULES = [LookAhead(1), AlwaysDescend(), LookAhead(1, "search"), HindsightRule(), LookAhead(None), LookAhead(2)]


@pytest.mark.parametrize("rule", few(2, RULES))
def test_runs_of_only_children_are_one_step(rule, monkeypatch):
    rng, calls = np.random.default_rng(0), []

    def counted(*given):
        calls.append(1)
        return LOOK(*given)

    monkeypatch.setattr(on_numpy.Walk, "_look", counted)
    for longest in (1, 4, 30):
        tree = with_runs(rng, int(rng.integers(4, 12)), longest)
        for enters in (True, False):
            task = replace(task_of(rng.random((tree.n_items, 3)), tree, rule=rule), enter_own_singleton=enters)
            items = np.arange(tree.n_items)
            calls.clear()
            found, n_calls = on_numpy.run(task, items, lambda done: None), len(calls)
            with monkeypatch.context() as patch:
                patch.setattr(on_numpy, "ends_of_runs", lambda tree: None)
                every = on_numpy.run(task, items, lambda done: None)
                lengths = run_lengths(task, items, "numpy", lambda done: None)
            for one, other in zip(run_lengths(task, items, "numpy", lambda done: None), lengths, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-13)
            np.testing.assert_array_equal(found.nodes, every.nodes)
            np.testing.assert_allclose(found.probabilities, every.probabilities, rtol=1e-14)
            if isinstance(rule, AlwaysDescend):
                assert n_calls < tree.n_items
                assert len(calls) - n_calls >= tree.height - 1
