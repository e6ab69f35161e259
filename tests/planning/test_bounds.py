"""Every bound bounds the same depth with the same fringe, and the sharper ones are sharper."""

import numpy as np
import pytest

from pomdp_hier.planning import RTBSS, ImmediateValue
from pomdp_hier.planning.bounds import blind_bound, fib_bound, qmdp_bound, range_bound, reward_range
from pomdp_hier.planning.leaf_values import leaf_vectors
from pomdp_hier.pomdp import POMDP, Belief
from tests.pomdp_models import random_problem, search_tree, tiger


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rewards", ["positive", "negative", "mixed"])
@pytest.mark.parametrize("fringe", ["zero", "immediate", ImmediateValue(2)])
def test_admissible_and_ordered(seed, rewards, fringe):
    problem = random_problem(seed, rewards=rewards, discount=[0.0, 0.5, 1.0][seed % 3], terminal=seed % 2 == 0)
    compiled, vectors = problem.compiled, leaf_vectors(problem, fringe)
    depth = 3
    tables = {f: f(compiled, depth, vectors) @ compiled.initial for f in (fib_bound, qmdp_bound, range_bound)}
    blind = blind_bound(compiled, depth, vectors) @ compiled.initial
    for d in range(1, depth + 1):
        exact = RTBSS(d, fringe, prune=False, engine="plain").decide(problem).q_values
        values = np.array([exact[a] for a in problem.all_actions])
        assert (values <= tables[fib_bound][d - 1] + 1e-10).all()
        assert (tables[fib_bound][d - 1] <= tables[qmdp_bound][d - 1] + 1e-10).all()
        assert (tables[qmdp_bound][d - 1] <= tables[range_bound][d - 1] + 1e-10).all()
        assert (blind[d - 1] <= values + 1e-10).all()


def test_an_infinite_horizon_bound_would_be_wrong_for_costs():
    """All rewards are -1: two steps cost -2, which the bound of a longer horizon lies below."""
    problem = random_problem(1, rewards="negative")
    compiled = problem.compiled
    assert (fib_bound(compiled, 50)[-1].max() < fib_bound(compiled, 2)[-1]).all()


def test_of_a_fully_observed_problem_they_are_exact():
    problem = POMDP.from_arrays(
        T=[[[0.5, 0.5], [0.2, 0.8]], [[1, 0], [0.9, 0.1]]], Z=[np.eye(2), np.eye(2)], R=[[-1, 2], [0.5, -3]]
    )
    compiled = problem.compiled
    exact = RTBSS(4, prune=False, engine="plain").decide(problem, problem.initial_belief)
    for bound in (fib_bound, qmdp_bound):
        np.testing.assert_allclose(bound(compiled, 4)[-1] @ compiled.initial, list(exact.q_values.values()))


def test_tiger_by_hand():
    compiled = tiger().compiled
    assert reward_range(compiled) == (-100.0, 10.0)
    np.testing.assert_allclose(range_bound(compiled, 2)[1], compiled.reward + 0.95 * 10)
    np.testing.assert_allclose(qmdp_bound(compiled, 2)[1], compiled.reward + 0.95 * 10)
    # each state taken alone opens the right door after either sound; after a door, the two sides cannot be told apart
    np.testing.assert_allclose(fib_bound(compiled, 2)[1, 0], -1 + 0.95 * (0.85 * 10 + 0.15 * 10))
    np.testing.assert_allclose(fib_bound(compiled, 2)[1, 1], compiled.reward[1] + 0.95 * -1)
    np.testing.assert_allclose(blind_bound(compiled, 3)[2, 0], -1 - 0.95 - 0.95**2)


def test_legality_tightens_and_loosens():
    """A leaf can only be searched, so that no bound hopes to descend there, and nothing blind descends for ever."""
    problem = search_tree(
        {"c0": ["c1", "c2"]}, lambda c, d: {"c1": 0.7, "c2": 0.3}[d], {"c0": 0.1, "c1": 0.5, "c2": 0.6}
    )
    compiled = problem.compiled
    descend, search = (compiled.action_index[a] for a in ("descend", "search"))
    at_leaf = compiled.state_index["c1", 0]
    table = fib_bound(compiled, 3)
    assert table[2, search, at_leaf] == -1
    assert table[2, descend, compiled.state_index["c0", 1]] == pytest.approx(0.49 * 1.5 + 0.09 * 1.6 - 1)
    assert blind_bound(compiled, 3)[2, descend, at_leaf] == -np.inf


def loops(problem, fringe, depth):
    """The three bounds as their docstrings define them, by loops over states; ``{name: {(d, a, s): value}}``."""
    states, actions, seen = problem.states, problem.all_actions, problem.all_observations
    alive = [s for s in states if not problem.is_terminal(s)]
    by_observation = problem.legal_by == "observation"
    after = {o: set(problem.actions(Belief.certain(alive[0]), o)) for o in (*seen, None)} if by_observation else None
    allowed = {s: set(actions) if by_observation else set(problem.actions(Belief.certain(s))) for s in alive}
    stops = {"zero": [None], "immediate": list(actions)}.get(fringe, [getattr(fringe, "action", None)])

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
            if row:
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
            b = a if fringe == "immediate" else stops[0]
            everywhere = b is None or after is None or all(b in after[o] for o in (*seen, None))
            yield p, stop(b, t) if everywhere and legal(b, t) else -np.inf

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
@pytest.mark.parametrize("fringe", ["zero", "immediate", ImmediateValue(1)])
def test_where_few_actions_are_legal_the_tables_are_those_of_the_definitions(by, fringe):
    kinds = set()
    for seed in range(4):
        problem = partly_legal(seed, by)
        compiled, vectors = problem.compiled, leaf_vectors(problem, fringe)
        expected, allowed = loops(problem, fringe, 3)
        for name, bound in (("fib", fib_bound), ("qmdp", qmdp_bound), ("blind", blind_bound)):
            table = bound(compiled, 3, vectors)
            for (d, a, s), value in expected[name].items():
                if name == "blind" or (s in allowed and a in allowed[s]):
                    got = table[d - 1, compiled.action_index[a], compiled.state_index[s]]
                    assert got == pytest.approx(value, abs=1e-12), (seed, name, d, a, s)
                    kinds.add(value if np.isinf(value) else "finite")
    assert {"finite", -np.inf} <= kinds
    assert by == "observation" or np.inf in kinds


def test_a_fringe_that_is_only_bounded_bounds_nothing_from_below():
    problem = tiger()
    vectors = leaf_vectors(problem, lambda problem, belief: 5 * max(belief.values()), convex=True)
    assert vectors.vectors.tolist() == [[5.0, 5.0]]
    assert (blind_bound(problem.compiled, 2, vectors) == -np.inf).all()


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
    table = fib_bound(compiled, 4)
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
    for fringe, first in ((ImmediateValue("dig"), -np.inf), (ImmediateValue("look"), 4.0)):
        assert blind_bound(compiled, 1, leaf_vectors(problem, fringe)).tolist() == [[[first], [-np.inf]]]
