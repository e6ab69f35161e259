"""The search on arrays, dense and sparse, whole and in pieces, against the recursion; and how it merges beliefs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ModelError
from pomdp_hier.planning import RTBSS, ImmediateValue
from pomdp_hier.planning.rtbss import arrays as rtbss_arrays
from pomdp_hier.planning.rtbss.arrays import expand, merge, products, touches
from tests.extras import few
from tests.pomdp_models import random_problem, search_tree


@pytest.fixture(params=["dense", "sparse"])
def kind(request, monkeypatch):
    if request.param == "sparse":
        monkeypatch.setattr(rtbss_arrays, "_DENSE", 0)
    return request.param


def random_search(seed: int) -> POMDP:
    """A search tree of three levels with its own guidance."""
    rng = np.random.default_rng(seed)
    children: dict[str, list[str]] = {}
    level, guide, rewards = ["r"], {}, {"r": 0.05}
    for _ in range(2):
        below = []
        for node in level:
            names = [f"{node}{i}" for i in range(int(rng.integers(1, 4)))]
            weights = rng.random(len(names)) + 0.05
            guide |= {(node, name): w for name, w in zip(names, (weights / weights.sum()).tolist(), strict=True)}
            rewards |= {name: rewards[node] + (1 - rewards[node]) * rng.random() for name in names}
            children[node] = names
            below += names
        level = below
    return search_tree(children, lambda c, d: guide[c, d], rewards)


@pytest.mark.parametrize("seed", few(1, range(4)))
@pytest.mark.parametrize("fringe", ["zero", "immediate", ImmediateValue("search")])
def test_search_trees(kind, seed, fringe):
    problem = random_search(seed)
    for depth in (1, 2, 3, 4):
        plain = RTBSS(depth, fringe, engine="plain", prune=False).decide(problem)
        for merge_tolerance in (0.0, 1e-9, None):
            arrays = RTBSS(depth, fringe, engine="arrays", merge_tolerance=merge_tolerance).decide(problem)
            assert arrays.value == pytest.approx(plain.value, abs=1e-9)
            assert arrays.action == plain.action


@pytest.mark.parametrize("seed", few(2, range(4)))
def test_in_pieces(kind, seed, monkeypatch):
    problem = random_problem(seed, states=5, observations=3, discount=0.9, terminal=seed % 2 == 0)
    whole = RTBSS(4, prune=False, engine="arrays").decide(problem)
    monkeypatch.setattr(rtbss_arrays, "_CHUNK", 100)
    pieces = RTBSS(4, prune=False, engine="arrays").decide(problem)
    assert pieces.value == pytest.approx(whole.value, abs=1e-12)
    assert pieces.stats["nodes"] >= whole.stats["nodes"]


@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(2, 4),
    rewards=st.sampled_from(["positive", "negative", "mixed"]),
    fringe=st.sampled_from(["zero", "immediate", ImmediateValue(0)]),
    bound=st.sampled_from(["fib", "qmdp", "range"]),
    discount=st.sampled_from([0.0, 0.5, 1.0]),
    terminal=st.booleans(),
    ties=st.booleans(),
)
def test_engines_agree(seed, depth, rewards, fringe, bound, discount, terminal, ties):
    problem = random_problem(seed, actions=2, discount=discount, rewards=rewards, terminal=terminal, ties=ties)
    plain = RTBSS(depth, fringe, engine="plain", prune=False, tie_tolerance=1e-9).decide(problem)
    arrays = RTBSS(depth, fringe, bound, engine="arrays", tie_tolerance=1e-9).decide(problem)
    assert arrays.value == pytest.approx(plain.value, abs=1e-10)
    assert arrays.ties == plain.ties


def test_observations_that_depend_on_the_state_left(kind):
    problem = POMDP(
        transition=lambda s, a: {s: 0.6, 1 - s: 0.4},
        observation=lambda next_state, action, state: {"moved" if next_state != state else "stayed": 0.9, "?": 0.1},
        reward=lambda s, a: 2.0 if s == a else -1.0,
        initial_belief={0: 0.7, 1: 0.3},
        discount=0.9,
        legal_actions=[0, 1],
    )
    plain = RTBSS(4, engine="plain", prune=False).decide(problem)
    assert RTBSS(4, engine="arrays").decide(problem).value == pytest.approx(plain.value, abs=1e-12)


def test_a_belief_without_a_legal_action_is_refused(kind):
    problem = POMDP(
        transition=lambda s, a: {"a": 0.5, "b": 0.5},
        observation=lambda next_state, a: "same",
        reward=lambda s, a: 1,
        initial_belief={"start": 1},
        legal_actions=lambda s: {"start": ["go"], "a": ["only-a"], "b": ["only-b"]}[s],
    )
    for engine in ("plain", "arrays"):
        with pytest.raises(ModelError, match="all 2 states"):
            RTBSS(2, engine=engine).decide(problem)


def test_expand_is_bayes(kind):
    problem = random_problem(1, states=4, observations=3)
    compiled = problem.compiled
    search = RTBSS(2, engine="arrays")._array_search(problem)
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet(np.ones(4), size=5)
    rows = beliefs if kind == "dense" else sparse.csr_array(beliefs)
    children = expand(rows, search._outcomes[1], 3)
    for i, evidence in enumerate(children.evidence):
        mass = compiled.outcome(beliefs[children.parent[i]], 1, int(children.observation[i]))
        assert evidence == pytest.approx(mass.sum(), abs=1e-15)
        row = children.rows[[i]].toarray()[0] if kind == "sparse" else children.rows[i]
        np.testing.assert_allclose(row, mass / mass.sum(), atol=1e-15)


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_merge_is_equality(seed, as_sparse, labelled):
    rng = np.random.default_rng(seed)
    pool = rng.dirichlet(np.ones(4), size=6) * (rng.random((6, 4)) < 0.8)
    rows = pool[rng.integers(6, size=15)]
    labels = rng.integers(3, size=15) if labelled else None
    kept, child = merge(sparse.csr_array(rows) if as_sparse else rows, labels, 0.0)
    keys = [(row.tobytes(), None if labels is None else int(labels[i])) for i, row in enumerate(rows)]
    assert len(kept) == len(set(keys))
    assert [keys[kept[c]] for c in child] == keys
    assert kept.tolist() == sorted(kept.tolist())


def test_merge_tolerance():
    rows = np.array([[0.3, 0.7], [0.3 + 1e-13, 0.7 - 1e-13], [0.31, 0.69]])
    assert len(merge(rows, None, 0.0)[0]) == 3
    kept, child = merge(rows, None, 1e-9)
    assert kept.tolist() == [0, 2]
    assert child.tolist() == [0, 0, 1]


def test_near_beliefs_of_other_supports_stay_apart(kind):
    """Wait; after x (one half) take 1 and the fringe is worth 1; after y only waiting is legal, then the fringe."""
    rare = 1e-9
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {"x": 0.5, "y": 0.5} if s == "A" else {"y": 1.0},
        reward=lambda s, a: 1.0 if a == "take" else 0.0,
        initial_belief={"A": 1 - rare, "B": rare},
        legal_actions=lambda s: ["wait", "take"] if s == "A" else ["wait"],
    )
    for engine in ("plain", "arrays"):
        for tolerance in (0.0, 1e-12, 1e-6, 0.5):
            decision = RTBSS(2, "immediate", engine=engine, merge_tolerance=tolerance).decide(problem)
            assert decision.value == pytest.approx(1.25, abs=1e-6)


def test_rows_of_other_supports_are_not_merged():
    rows = np.array([[1.0, 0.0], [1.0 - 1e-9, 1e-9], [1.0, 0.0]])
    for given_rows in (rows, sparse.csr_array(rows)):
        kept, child = merge(given_rows, None, 1e-3)
        assert kept.tolist() == [0, 1]
        assert child.tolist() == [0, 1, 0]


@pytest.mark.parametrize("engine", ["plain", "arrays"])
@pytest.mark.parametrize("tolerance", [1e-9, 1e-3, 0.3])
def test_coarse_merging_never_calls_a_sound_bound_wrong(engine, tolerance):
    for seed in range(3):
        problem = random_problem(seed, states=4, observations=3, discount=1.0, terminal=seed % 2 == 0)
        for bound in ("fib", "qmdp", "range"):
            RTBSS(4, upper_bound=bound, engine=engine, merge_tolerance=tolerance).decide(problem)


def test_by_belief_near_beliefs_of_other_legal_actions_stay_apart():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {"x": 0.5 + (s - 0.5) * 2e-6, "y": 0.5 - (s - 0.5) * 2e-6},
        reward=lambda s, a: 1.0 if a == "bet" else 0.0,
        initial_belief={0: 0.5, 1: 0.5},
        legal_actions=lambda b: ["wait", "bet"] if b[1] > 0.5 else ["wait"],
        legal_by="belief",
        actions=["wait", "bet"],
    )
    exact = RTBSS(2, merge_tolerance=None).decide(problem).value
    assert exact == pytest.approx(0.5, abs=1e-5)  # only after x is betting legal
    assert RTBSS(2, merge_tolerance=0.01).decide(problem).value == pytest.approx(exact, abs=1e-12)


def test_a_shared_fingerprint_merges_nothing(monkeypatch):
    from pomdp_hier.planning.rtbss import arrays as rtbss_rows

    monkeypatch.setattr(rtbss_rows, "_fingerprints", lambda rows, tolerance: np.zeros(len(rows), dtype=np.uint64))
    kept, child = merge(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), None, 0.0)
    assert kept.tolist() == child.tolist() == [0, 1, 2]


def test_impossible_states_silence_infinite_entries():
    table = np.array([[1.0, np.inf, 2.0], [0.0, 1.0, -np.inf]])
    beliefs = np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    for rows in (beliefs, sparse.csr_array(beliefs)):
        assert products(rows, table).tolist() == [[1.5, -np.inf], [np.inf, 1.0]]
        assert touches(rows, np.array([[False, True, False]])).tolist() == [[False], [True]]


def test_the_last_observation_keeps_equal_beliefs_apart():
    """The belief never changes, but only after "door" may the agent leave."""
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda next_state, a: {"door": 0.25, "wall": 0.75},
        reward=lambda s, a: 10 if a == "leave" else 0,
        initial_belief={"here": 1},
        discount=0.5,
        legal_actions=lambda o: ["wait", "leave"] if o == "door" else ["wait"],
        legal_by="observation",
        actions=["wait", "leave"],
    )
    assert Belief.certain("here") == problem.initial_belief
    for engine in ("plain", "arrays"):
        decision = RTBSS(2, engine=engine).decide(problem)
        assert decision.value == 0.5 * 0.25 * 10
        assert RTBSS(2, engine=engine).decide(problem, observation="door").value == 10 + 0.5 * 0.25 * 10


def test_rows_merge_only_with_rows_of_their_own_label():
    rows = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    kept, child = merge(rows, np.array([0, 1, 0, 0]), 0.0)
    assert (kept.tolist(), child.tolist()) == ([0, 1, 3], [0, 1, 0, 2])
