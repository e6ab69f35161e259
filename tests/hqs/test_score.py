"""The public functions: the paper's numbers, settings, and what is refused."""

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier._engines import dispatch as engine
from pomdp_hier._engines.task import LookAhead, StoppingRule
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean, Precomputed
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import paper_reward
from pomdp_hier.hqs.inputs import calibrate_delta
from pomdp_hier.hqs.paper import PAPER_TABLE, PAPER_TEXT, load_amazon12
from pomdp_hier.hqs.score import evaluate, hqs_samples, hqs_score, oracle_value
from tests.extras import ENGINES

SHOP = load_amazon12()


def vectors(similarity):
    """Unit rows with these cosines."""
    values, axes = np.linalg.eigh(np.where(np.eye(12, dtype=bool), 1.0, similarity))
    return axes * np.sqrt(np.maximum(values, 0))


def dendrogram(n_items, seed=0):
    """A random binary tree of singletons, and features that follow it."""
    rng = np.random.default_rng(seed)
    roots = [(k, rng.standard_normal(6)) for k in range(n_items)]
    children, rows = [], dict(roots)
    alive = list(range(n_items))
    while len(alive) > 1:
        at = int(rng.integers(0, len(alive) - 1))
        children.append(alive[at : at + 2])
        alive[at : at + 2] = [n_items + len(children) - 1]
    tree = Hierarchy.from_children(children, n_items, singletons=True)
    X = np.array([rows[k] for k in range(n_items)])
    for node in range(n_items, tree.n_nodes):
        X[tree.items(node)] += rng.standard_normal(6) * 0.7
    return tree, X


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (PAPER_TABLE, [0.5715, -0.2802, -0.3097, -0.8477, 0.3266]),
        (PAPER_TEXT, [0.3918, -0.0535, -0.2113, -0.4256, 0.1562]),
        ({"delta": 0.01}, [0.4180, -0.0535, -0.2113, -0.4256, 0.1562]),
        ({"delta": 0.005, "tie": "search"}, [0.5220, -0.2802, -0.3097, -0.8477, 0.3266]),
    ],
)
def test_the_papers_scores(settings, expected):
    close = vectors(SHOP.similarity)
    for tree, score in zip(SHOP.hierarchies.values(), expected, strict=True):
        assert round(hqs_score(SHOP.similarity, tree, similarity="precomputed", **settings), 4) == score
        assert round(hqs_score(close, tree, engine="numpy", **settings), 4) == score
        assert round(hqs_score(close, tree, engine="numba", **settings), 4) == score


@pytest.mark.parametrize(("depth", "expected"), [(2, [0.5715, -0.3621, -0.3097, -0.8477, 0.3573])])
def test_two_steps_ahead(depth, expected):
    found = [
        hqs_score(SHOP.similarity, tree, similarity="precomputed", policy=LookAhead(depth), **PAPER_TABLE)
        for tree in SHOP.hierarchies.values()
    ]
    assert np.round(found, 4).tolist() == expected


def test_the_walk_through():
    result = evaluate(SHOP.similarity, SHOP.hierarchies["A"], similarity="precomputed", **PAPER_TABLE)
    assert result.stop_nodes[0] == 16
    assert result.values[0] == pytest.approx(0.6204, abs=5e-5)
    assert result.values[7] == pytest.approx(-0.6791, abs=5e-5)


def test_twins_agree():
    tree, X = dendrogram(60)
    result = evaluate(X, tree, delta=0.1)
    assert hqs_score(X, tree, delta=0.1) == result.score
    np.testing.assert_array_equal(hqs_samples(X, tree, delta=0.1), result.values)
    np.testing.assert_array_equal(oracle_value(result.path_probabilities, result.rewards), result.values)


def test_one_item_is_worth_nothing_and_never_nan():
    tree = Hierarchy.from_children([[0]], 1)
    for name in ("numpy", "numba"):
        for policy in ("one-step", "optimal", "descend", "hindsight", "search-root"):
            assert hqs_score([[1.0, 2.0]], tree, engine=name, policy=policy) == 0.0


@pytest.mark.parametrize("similarity", ["cosine", "inverse_sqeuclidean"])
@pytest.mark.parametrize("policy", ["one-step", "optimal"])
def test_engines_agree_on_many_blocks(similarity, policy):
    tree, X = dendrogram(3000)
    settings = {"similarity": similarity, "delta": 0.02 if similarity == "cosine" else 0.005, "policy": policy}
    one = evaluate(X, tree, engine="numpy", **settings)
    two = evaluate(X, tree, engine="numba", **settings)
    np.testing.assert_array_equal(one.stop_nodes, two.stop_nodes)
    np.testing.assert_allclose(one.values, two.values, atol=1e-12)
    assert len(np.unique(one.stop_levels)) > 5, "the case should be one where searches end at many levels"


@pytest.mark.parametrize("policy", ["one-step", "optimal", "hindsight"])
def test_the_same_bits_for_any_number_of_threads(policy, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr("pomdp_hier._engines.on_numba.PIECE_ITEMS", 100)
    tree, X = dendrogram(1500)
    results = [evaluate(X, tree, delta=0.2, engine="numba", threads=n, policy=policy) for n in (1, 2, 5)]
    for other in results[1:]:
        np.testing.assert_array_equal(other.values, results[0].values)
        np.testing.assert_array_equal(other.stop_nodes, results[0].stop_nodes)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", ["numpy", "auto"])
def test_items_in_another_order_are_worth_the_same(form, name):
    tree, X = dendrogram(1500)
    new = np.random.default_rng(5).permutation(1500)  # item k becomes item new[k]
    children = [[int(new[c]) if c < 1500 else int(c) for c in tree.children(n)] for n in range(1500, tree.n_nodes)]
    moved, other = np.empty_like(X), Hierarchy.from_children(children, 1500, singletons=True)
    moved[new] = X
    first = evaluate(form(X), tree, delta=0.2, engine=name)
    second = evaluate(form(moved), other, delta=0.2, engine=name)
    np.testing.assert_allclose(second.values[new], first.values, atol=1e-12)


def test_float32_features_change_little(tmp_path):
    tree, X = dendrogram(1500)
    X = X.astype("float32").astype("float64")
    np.save(tmp_path / "X.npy", X.astype("float32"))
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    for name in ("numpy", "numba"):
        exact = evaluate(X, tree, delta=0.2, engine=name)
        for same in (X.astype("float32"), on_disk):
            np.testing.assert_allclose(evaluate(same, tree, delta=0.2, engine=name).values, exact.values, atol=1e-12)


class Bold:
    """Descends while one child is more likely than not."""

    def __init__(self):
        self.seen = []

    def descend(self, eta, sizes, rewards, level):
        self.seen.append((eta.shape, tuple(sizes), level))
        np.testing.assert_allclose(rewards, paper_reward(sizes, 12))
        return eta.max(axis=1) > 0.5


class ByTheBook:
    """The paper's rule, from what a rule is given."""

    def descend(self, eta, sizes, rewards, level):
        here = paper_reward(sizes.sum(), 1500)
        return (eta**2 * (rewards + 1)).sum(axis=1) >= here + 1


def test_a_stopping_rule_of_ones_own():
    rule = Bold()
    assert isinstance(rule, StoppingRule)
    evaluate(SHOP.similarity, SHOP.hierarchies["B"], similarity="precomputed", policy=rule, **PAPER_TABLE)
    assert rule.seen[0] == ((12, 2), (6, 6), 0)
    assert all(shape[1] == len(sizes) for shape, sizes, _ in rule.seen)
    tree, X = dendrogram(1500)
    plain = evaluate(X, tree, delta=0.2, policy=LookAhead(1))
    np.testing.assert_array_equal(evaluate(X, tree, delta=0.2, policy=ByTheBook()).stop_nodes, plain.stop_nodes)


def test_the_order_of_the_policies():
    tree, X = dendrogram(400)
    value = {p: hqs_samples(X, tree, delta=0.2, policy=p) for p in ("one-step", "optimal", "descend", "hindsight")}
    for policy in ("one-step", "optimal", "descend"):
        assert (value["hindsight"] >= value[policy] - 1e-12).all()
    np.testing.assert_array_equal(hqs_samples(X, tree, policy="search-root"), 0.0)


def test_a_deep_caterpillar_stops_early_and_needs_no_recursion():
    n_items = 20_000
    children = [[n_items - 2, n_items - 1]] + [[n_items - 3 - k, n_items + k] for k in range(n_items - 2)]
    tree = Hierarchy.from_children(children, n_items, singletons=True)
    X = np.random.default_rng(0).standard_normal((n_items, 3))
    one, two = (evaluate(X, tree, delta=1.0, engine=name) for name in ("numpy", "numba"))
    assert tree.height == n_items - 1
    np.testing.assert_array_equal(one.stop_nodes, two.stop_nodes)
    np.testing.assert_array_equal(evaluate(sp.csr_matrix(X), tree, delta=1.0).stop_nodes, one.stop_nodes)


@pytest.mark.slow
def test_a_chain_of_only_children_is_descended_or_not_by_the_tie():
    n_levels = 20_000
    tree = Hierarchy.from_children([[0, 1], [2], *[[3 + k] for k in range(n_levels)]], 2)
    X = [[1.0, 0.0], [0.0, 1.0]]
    for name in ("numpy", "numba"):
        assert evaluate(X, tree, engine=name).stop_nodes.tolist() == [2, 2]
        assert evaluate(X, tree, engine=name, tie="search").stop_nodes.tolist() == [tree.root] * 2


@pytest.mark.parametrize("name", ENGINES)
def test_a_temperature_near_zero_is_the_certain_limit(name):
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, singletons=True)
    result = evaluate(np.eye(4) + 0.1, tree, delta=5e-324, policy="descend", engine=name)
    assert set(result.path_probabilities) <= {0.0, 0.25, 0.5, 1.0}


def test_a_temperature_that_overflows_is_the_uniform_limit():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, singletons=True)
    for name in ("numpy", "numba"):
        result = evaluate(np.eye(4) + 0.1, tree, delta=1e300, nu=1e300, policy="descend", engine=name)
        np.testing.assert_allclose(result.path_probabilities, 0.25)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"engine": "fortran"}, "engine: got 'fortran'"),
        ({"policy": "greedy"}, "policy: got 'greedy'.*'one-step'"),
        ({"tie": "flip"}, "tie: got 'flip'"),
        ({"similarity": "jaccard"}, "similarity: got 'jaccard'"),
        ({"delta": 0}, "delta: got 0"),
        ({"nu": -0.5}, "nu: got -0.5"),
        ({"threads": 0}, "threads: got 0"),
        ({"threads": "2"}, "threads: got '2'"),
        ({"reward": 3}, "reward: got 3; expected a function"),
        ({"reward": lambda size, n_items: 1e308}, r"at most 1e\+100"),
        ({"enter_own_singleton": "no"}, "enter_own_singleton: got 'no';"),
        ({"engine": "numba", "policy": Bold()}, "engine: got 'numba'"),
        ({"engine": "numba", "similarity": "precomputed"}, "engine: got 'numba'"),
    ],
)
def test_settings_that_are_refused(settings, said):
    with pytest.raises(ParameterError, match=said):
        evaluate(SHOP.similarity, SHOP.hierarchies["A"], **settings)
    with pytest.raises(ParameterError, match="depth: got 0"):
        LookAhead(0)
    for kind in (Cosine, InverseSquaredEuclidean, NegativeEuclidean, Precomputed):
        with pytest.raises(ParameterError, match="own_singleton: got nan"):
            kind(own_singleton=float("nan"))
    with pytest.raises(ParameterError, match="epsilon: got 5e-324"):
        InverseSquaredEuclidean(epsilon=5e-324)


def test_the_three_scores_take_the_same_arguments():
    expected = inspect.signature(evaluate).parameters
    for function in (hqs_score, hqs_samples):
        assert inspect.signature(function).parameters == expected


def test_numba_is_chosen_by_itself_and_missed_politely(monkeypatch):
    pytest.importorskip("numba")
    tree, X = dendrogram(20)
    assert evaluate(X, tree).config["engine"] == "numpy"  # so little is done before numba is loaded
    monkeypatch.setattr(engine, "STEP", 1.0)
    assert evaluate(X, tree).config["engine"] == "numba"
    monkeypatch.setattr(engine._imports, "is_installed", lambda: False)
    assert evaluate(X, tree).config["engine"] == "numpy"
    with pytest.raises(ImportError, match="pomdp-hier\\[fast\\]"):
        evaluate(X, tree, engine="numba")


def test_a_progress_bar_on_stderr_only(capsys):
    tree, X = dendrogram(50)
    for name in ("numpy", "numba"):
        evaluate(X, tree, engine=name, progress=True)
        out, err = capsys.readouterr()
        assert out == ""
        assert "50/50" in err


@pytest.mark.slow
def test_the_same_bits_for_any_number_of_blas_threads():
    program = """
        import hashlib
        from pomdp_hier.hqs.score import evaluate
        from tests.hqs.test_score import dendrogram
        tree, X = dendrogram(3000)
        values = evaluate(X, tree, delta=0.02, engine="numpy", policy="descend").path_probabilities
        print(hashlib.sha256(values.tobytes()).hexdigest())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    root = Path(__file__).parents[2]
    digests = set()
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": str(root)}
        answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=root)
        digests.add(answer.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize("engine", ["numpy", "generic"])
def test_a_calibrated_temperature_is_told(engine):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8, 3)) + np.repeat(np.eye(3)[:2] * 0.7, 4, axis=0)  # noisy, so that 0 is not best
    tree = Hierarchy.from_children([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], 8)
    found = evaluate(X, tree, delta="calibrated", engine=engine)
    delta = calibrate_delta(X, tree).delta
    assert found.config["delta"] == delta
    assert found.config["delta_from"] == "calibrated"
    assert found.score == evaluate(X, tree, delta=delta, engine=engine).score
    with pytest.raises(ParameterError, match="'calibrated'"):
        evaluate(X, tree, delta="best", engine=engine)


@pytest.mark.parametrize("policy", ["one-step", "optimal"])
def test_where_smaller_clusters_are_worth_no_more_a_step_is_a_loss_however_small(policy):
    tree, X = dendrogram(300)
    for delta in (0.001, 0.02):
        for name in ("numpy", "numba"):
            result = evaluate(X, tree, reward=lambda size, n_items: 0.5, engine=name, policy=policy, delta=delta)
            assert result.stop_levels.max() == 0
        steps = [
            evaluate(X, tree, reward=lambda size, n_items: float(size <= 5), engine=name, policy=policy, delta=delta)
            for name in ("numpy", "numba")
        ]
        np.testing.assert_array_equal(steps[0].stop_nodes, steps[1].stop_nodes)


@pytest.mark.parametrize("name", ENGINES)
def test_the_largest_features_that_are_allowed_do_not_overflow(name):
    n_items = 4_000
    X = np.where(np.arange(n_items)[:, None] < n_items // 2, 1e140, -1e140) * np.ones((n_items, 8))
    halves = [list(range(n_items // 2)), list(range(n_items // 2, n_items)), [n_items, n_items + 1]]
    tree = Hierarchy.from_children(halves, n_items)
    result = evaluate(X, tree, similarity="negative_euclidean", delta=1e140, engine=name)
    small = evaluate(X / 1e140, tree, similarity="negative_euclidean", delta=1.0, engine=name)
    np.testing.assert_allclose(result.values, small.values, atol=1e-12)
