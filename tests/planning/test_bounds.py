"""Every bound of the same depth and leaf values holds, and the sharper ones are sharper."""

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning import RTBSS, ImmediateValue, value_bound
from pomdp_hier.planning.bounds import bound_tables, reward_range
from pomdp_hier.planning.leaf_values import leaf_vectors
from tests.exact_oracle import exact_value
from tests.extras import few
from tests.pomdp_models import random_problem, search_tree, tiger
from tests.small_problems import small_problem


@pytest.mark.parametrize("seed", few(3, range(6)))
@pytest.mark.parametrize("rewards", ["positive", "negative", "mixed"])
@pytest.mark.parametrize("leaf", ["zero", "immediate", ImmediateValue(2)])
def test_admissible_and_ordered(seed, rewards, leaf):
    problem = random_problem(seed, rewards=rewards, discount=[0.0, 0.5, 1.0][seed % 3], terminal=seed % 2 == 0)
    compiled, vectors = problem.compiled, leaf_vectors(problem, leaf)
    depth = 3
    tables = {
        kind: bound_tables(compiled, kind, depth, vectors) @ compiled.initial
        for kind in ("fib", "qmdp", "range", "blind")
    }
    for d in range(1, depth + 1):
        exact = RTBSS(d, leaf, prune=False, engine="plain").decide(problem).q_values
        values = np.array([exact[a] for a in problem.all_actions])
        assert (values <= tables["fib"][d - 1] + 1e-10).all()
        assert (tables["fib"][d - 1] <= tables["qmdp"][d - 1] + 1e-10).all()
        assert (tables["qmdp"][d - 1] <= tables["range"][d - 1] + 1e-10).all()
        assert (tables["blind"][d - 1] <= values + 1e-10).all()


def test_an_infinite_horizon_bound_would_be_wrong_for_costs():
    """All rewards are -1: two steps cost -2, which the bound of a longer horizon lies below."""
    problem = random_problem(1, rewards="negative")
    compiled = problem.compiled
    assert (bound_tables(compiled, "fib", 50)[-1].max() < bound_tables(compiled, "fib", 2)[-1]).all()


def test_of_a_fully_observed_problem_they_are_exact():
    problem = POMDP.from_arrays(
        T=[[[0.5, 0.5], [0.2, 0.8]], [[1, 0], [0.9, 0.1]]], Z=[np.eye(2), np.eye(2)], R=[[-1, 2], [0.5, -3]]
    )
    compiled = problem.compiled
    exact = RTBSS(4, prune=False, engine="plain").decide(problem, problem.initial_belief)
    for kind in ("fib", "qmdp"):
        np.testing.assert_allclose(
            bound_tables(compiled, kind, 4)[-1] @ compiled.initial, list(exact.q_values.values())
        )


def test_tiger_by_hand():
    compiled = tiger().compiled
    assert reward_range(compiled) == (-100.0, 10.0)
    np.testing.assert_allclose(bound_tables(compiled, "range", 2)[1], compiled.reward + 0.95 * 10)
    np.testing.assert_allclose(bound_tables(compiled, "qmdp", 2)[1], compiled.reward + 0.95 * 10)
    # each state taken alone opens the right door after either sound; after a door, the two sides cannot be told apart
    np.testing.assert_allclose(bound_tables(compiled, "fib", 2)[1, 0], -1 + 0.95 * (0.85 * 10 + 0.15 * 10))
    np.testing.assert_allclose(bound_tables(compiled, "fib", 2)[1, 1], compiled.reward[1] + 0.95 * -1)
    np.testing.assert_allclose(bound_tables(compiled, "blind", 3)[2, 0], -1 - 0.95 - 0.95**2)


def test_legality_tightens_and_loosens():
    """A leaf can only be searched, so that no bound hopes to descend there, and nothing blind descends for ever."""
    problem = search_tree(
        {"c0": ["c1", "c2"]}, lambda c, d: {"c1": 0.7, "c2": 0.3}[d], {"c0": 0.1, "c1": 0.5, "c2": 0.6}
    )
    compiled = problem.compiled
    descend, search = (compiled.action_index[a] for a in ("descend", "search"))
    at_leaf = compiled.state_index["c1", 0]
    table = bound_tables(compiled, "fib", 3)
    assert table[2, search, at_leaf] == -1
    assert table[2, descend, compiled.state_index["c0", 1]] == pytest.approx(0.49 * 1.5 + 0.09 * 1.6 - 1)
    assert bound_tables(compiled, "blind", 3)[2, descend, at_leaf] == -np.inf


def loops(problem, leaf, depth):
    """The three bounds as their docstrings define them, by loops over states; ``{name: {(d, a, s): value}}``."""
    states, actions, seen = problem.states, problem.all_actions, problem.all_observations
    alive = [s for s in states if not problem.is_terminal(s)]
    by_observation = problem.legal_by == "observation"
    after = {o: set(problem.actions(Belief.certain(alive[0]), o)) for o in (*seen, None)} if by_observation else None
    allowed = {s: set(actions) if by_observation else set(problem.actions(Belief.certain(s))) for s in alive}
    stops = {"zero": [None], "immediate": list(actions)}.get(leaf, [getattr(leaf, "action", None)])

    def legal(a, s):
        return a is None or s not in allowed or a in allowed[s]

    def stop(a, s):
        return 0.0 if a is None or s not in allowed or a not in allowed[s] else problem.expected_reward(s, a)

    def ahead(found, s, a):  # what outcomes are worth, where one that cannot happen weighs nothing
        return problem.discount * sum(p * value for p, value in found(s, a) if p) if problem.discount else 0.0

    def informed(s, a):
        for o in seen:
            row = {
                t: p * problem.observation_distribution(t, a, s).get(o, 0) for t, p in problem.successors(s, a).items()
            }
            row = {t: p for t, p in row.items() if p}
            if any(t in allowed for t in row):
                usable = [b for b in options if all(legal(b, t) for t in row)]
                usable = [b for b in usable if b is None or after is None or b in after[o]]
                values = [sum(p * last[b, t] for t, p in row.items()) for b in usable]
                yield 1.0, max(values, default=np.inf)

    def seeing(s, a):
        for t, p in problem.successors(s, a).items():
            usable = [b for b in options if legal(b, t)]
            if d > 1 and after is not None:
                usable = [b for b in usable if any(b in after[o] for o in (*seen, None))]
            yield p, max((last[b, t] for b in usable), default=np.inf)

    def blind(s, a):
        for t, p in problem.successors(s, a).items():
            if d > 1:
                yield p, last[a, t]
                continue
            b = a if leaf == "immediate" else stops[0]
            everywhere = b is None or after is None or all(b in after[o] for o in (*seen, None))
            yield p, stop(b, t) if t not in allowed or (everywhere and legal(b, t)) else -np.inf

    tables = {}
    for name, found in (("fib", informed), ("qmdp", seeing), ("blind", blind)):
        last, options, tables[name] = {(b, s): stop(b, s) for b in stops for s in states}, stops, {}
        for d in range(1, depth + 1):
            last = {(a, s): 0.0 for a in actions for s in states} | {
                (a, s): problem.expected_reward(s, a) + ahead(found, s, a) for s in alive for a in allowed[s]
            }
            if name == "blind":
                once = [a for a in actions if after is not None and not all(a in after[o] for o in (*seen, None))]
                last |= {(a, s): -np.inf for a in actions for s in states if not legal(a, s) or a in once}
            tables[name] |= {(d, *key): value for key, value in last.items()}
            options = actions
    return tables, allowed


def partly_legal(seed, by):
    """Four states of which one is terminal, three actions; each is legal in some states, or after some observations."""
    random = np.random.default_rng(seed)
    base = random_problem(seed, states=4, observations=3, terminal=seed % 2 == 0)
    sets = {key: [0, 1, 2][: int(random.integers(1, 4))] for key in (*range(4), None)}
    sets = {key: sorted(random.permutation(3)[: len(chosen)].tolist()) for key, chosen in sets.items()}
    return POMDP(
        transition=base.successors,
        observation=base.observation_distribution,
        reward=base.expected_reward,
        initial_belief=base.initial_belief,
        discount=[0.0, 0.5, 1.0, 0.9][seed % 4],
        terminal=[s for s in base.states if base.is_terminal(s)],
        legal_actions=lambda key: sets[key],
        legal_by=by,
        actions=[0, 1, 2],
        states=base.states,
        observations=base.all_observations,
    )


@pytest.mark.parametrize("by", ["state", "observation"])
@pytest.mark.parametrize("leaf", ["zero", "immediate", ImmediateValue(1)])
def test_where_few_actions_are_legal_the_tables_are_those_of_the_definitions(by, leaf):
    kinds = set()
    for seed in range(4):
        problem = partly_legal(seed, by)
        compiled, vectors = problem.compiled, leaf_vectors(problem, leaf)
        expected, allowed = loops(problem, leaf, 3)
        for name in ("fib", "qmdp", "blind"):
            table = bound_tables(compiled, name, 3, vectors)
            for (d, a, s), value in expected[name].items():
                if s in allowed and (name == "blind" or a in allowed[s]):
                    got = table[d - 1, compiled.action_index[a], compiled.state_index[s]]
                    assert got == pytest.approx(value, abs=1e-12), (seed, name, d, a, s)
                    kinds.add(value if np.isinf(value) else "finite")
    assert {"finite", -np.inf} <= kinds
    assert by == "observation" or np.inf in kinds


def test_a_leaf_that_is_only_bounded_bounds_nothing_from_below():
    problem = tiger()
    vectors = leaf_vectors(problem, lambda problem, belief: 5 * max(belief.values()), convex=True)
    assert vectors.vectors.tolist() == [[5.0, 5.0]]
    assert (bound_tables(problem.compiled, "blind", 2, vectors) == -np.inf).all()


def test_a_dead_end_bounds_nothing_that_does_not_lead_there():
    legal = {"fork": ["go"], "left": ["l"], "right": ["r"], "home": ["go", "l", "r"]}
    problem = POMDP(
        transition=lambda s, a: {"left": 0.5, "right": 0.5} if s == "fork" else s,
        observation=lambda s, a: "dark",
        reward=lambda s, a: 1,
        initial_belief={"fork": 0.5, "home": 0.5},
        discount=0.5,
        legal_actions=legal.__getitem__,
    )
    compiled = problem.compiled
    table = bound_tables(compiled, "fib", 4)
    go, at = compiled.action_index["go"], compiled.state_index
    assert table[:, go, at["fork"]].tolist() == [1, np.inf, np.inf, np.inf]  # no action is legal on both sides
    assert table[:, go, at["home"]].tolist() == [1, 1.5, 1.75, 1.875]


def test_the_same_action_over_and_over_has_to_be_legal_after_everything():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {"hot": 0.5, "cold": 0.5},
        reward=lambda s, a: 2,
        initial_belief={"here": 1},
        legal_actions=lambda o: ["look"] if o == "cold" else ["look", "dig"],
        legal_by="observation",
        actions=["look", "dig"],
    )
    compiled = problem.compiled
    for leaf, first in ((ImmediateValue("dig"), -np.inf), (ImmediateValue("look"), 4.0)):
        assert bound_tables(compiled, "blind", 1, leaf_vectors(problem, leaf)).tolist() == [[[first], [-np.inf]]]


@pytest.mark.parametrize("kind", ["fib", "qmdp", "range", "blind"])
def test_of_a_short_horizon_the_public_bound_holds(kind):
    for seed in range(4):
        problem = small_problem(seed)
        compiled, exact = problem.compiled, float(exact_value(problem, horizon=3))
        table = value_bound(problem, kind, horizon=3)
        legal = [compiled.action_index[a] for a in problem.actions(problem.initial_belief)]
        support = compiled.initial > 0
        found = max(float(table[a, support] @ compiled.initial[support]) for a in legal)
        assert (found <= exact + 1e-9) if kind == "blind" else (found >= exact - 1e-9)
        assert (table[:, compiled.terminal] == 0).all()


def test_the_greatest_reward_for_ever_and_what_has_no_bound():
    assert value_bound(tiger(), "range")[0] == pytest.approx([-1 + 0.95 * 200] * 2)
    for kind, horizon, argument in (("mdp", None, "kind"), ("tib", 3, "kind"), ("fib", 0, "horizon")):
        with pytest.raises(ParameterError, match=f"^{argument}: got"):
            value_bound(tiger(), kind, horizon=horizon)
    with pytest.raises(PlanningError, match=r"^kind: got 'range' with a greatest reward of 10"):
        value_bound(tiger(discount=1), "range")
