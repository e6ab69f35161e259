"""Search policies on beliefs: what each decides, ties, and who beats whom in which model."""

from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier import Belief
from pomdp_hier._engines.task import AlwaysDescend, HindsightRule, LookAhead, SearchRoot
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.generic import search_environment, search_problem
from pomdp_hier.hqs.model import SearchState, search_environment_from_guidance, search_problem_from_guidance, three_node
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.hqs.policies import (
    DESCEND,
    SEARCH,
    AlgorithmOne,
    FixedLevel,
    HindsightSearch,
    OptimalSearch,
    PlannedSearch,
    PlansInEnvironment,
    RuleSearch,
    paper_readings,
    rtbss_policy,
    search_policy,
    true_path,
)
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.planning import QMDPPolicy, RandomPolicy
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import mdp_value, policy_value
from tests.search_trees import a_path, random_guidance

F = Fraction
SHOP = load_amazon12()


def item(name, number, delta=0.005):
    return [
        build(SHOP.similarity, SHOP.hierarchies[name], number, similarity="precomputed", delta=delta)
        for build in (search_problem, search_environment)
    ]


def test_algorithm_one_is_the_appendix():
    b, eta, r0, r1, r2 = F(2, 3), F(4, 5), F(1, 10), F(1, 2), F(3, 5)
    problem = three_node(eta, r0=r0, r1=r1, r2=r2, belief=b)
    decision = AlgorithmOne().decide(problem)
    assert decision.q_values[SEARCH] == b * (1 + r0) - 1
    assert decision.q_values[DESCEND] == b * (eta**2 * (r1 + 1) + (1 - eta) ** 2 * (r2 + 1)) - 1
    assert rtbss_policy(1).decide(problem).q_values == decision.q_values
    optimal = OptimalSearch().decide(problem)
    assert optimal.q_values == decision.q_values
    assert decision.action == optimal.action == SEARCH


@pytest.mark.parametrize("tie", ["descend", "search"])
@pytest.mark.parametrize(
    "make", [AlgorithmOne, OptimalSearch, lambda tie: rtbss_policy(1, tie), lambda tie: rtbss_policy(3, tie)]
)
def test_an_exact_tie_goes_as_told(make, tie):
    # One certain child of the same worth, in fractions and in floats.
    for one in (F(1), 1.0):
        problem = search_problem_from_guidance({"a": {"b": one}, "b": {"c": one}}, dict.fromkeys("abc", one / 4))
        decision = make(tie).decide(problem)
        assert decision.action == (DESCEND if tie == "descend" else SEARCH)
        assert set(decision.ties) == {SEARCH, DESCEND}


def test_a_leaf_cluster_is_searched():
    problem = three_node(0.9, r1=0.5, r2=0.5)
    at_leaf = Belief({SearchState("c1", 1): 0.4, SearchState("c1", 0): 0.6})
    for policy in (
        *map(search_policy, ("one-step", "optimal", "descend", "search-root")),
        *paper_readings().values(),
        AlgorithmOne(),
    ):
        assert policy.decide(problem, at_leaf).action == SEARCH


@given(st.integers(0, 2**32 - 1), st.integers(2, 14))
def test_the_optimal_policy_is_what_full_look_ahead_finds(seed, n_nodes):
    rng = np.random.default_rng(seed)
    eta, rewards = random_guidance(rng, n_nodes, exact=True)
    problem = search_problem_from_guidance(eta, rewards)
    deep = rtbss_policy(max(1, min(n_nodes, 8)))
    for tie in ("descend", "search"):
        optimal = OptimalSearch(tie)
        first = optimal.decide(problem)
        planned = PlannedSearch(deep.planner, tie).decide(problem)
        assert first.action == planned.action
        # in the agent's own model no policy is worth more, and it is worth what it says
        assert policy_value(optimal, problem).value == first.value == planned.value
        assert policy_value(AlgorithmOne(tie), problem).value <= first.value


@given(st.integers(0, 2**32 - 1), st.integers(2, 14))
def test_no_policy_beats_the_clairvoyant_one_in_the_environment(seed, n_nodes):
    rng = np.random.default_rng(seed)
    eta, rewards = random_guidance(rng, n_nodes, exact=True)
    path = a_path(rng, eta)
    problem = search_problem_from_guidance(eta, rewards)
    environment = search_environment_from_guidance(eta, rewards, path)
    best = max((rewards[node] + 1) * p - 1 for node, p in true_path(environment))
    for tie in ("descend", "search"):
        clairvoyant = HindsightSearch(tie).for_environment(environment)
        assert policy_value(clairvoyant, problem, environment).value == best
    assert mdp_value(environment) == pytest.approx(float(best), abs=1e-12)
    for policy in (AlgorithmOne(), OptimalSearch(), search_policy("descend"), search_policy("search-root")):
        assert policy_value(policy, problem, environment).value <= best


def test_the_clairvoyant_tie_is_the_deepest_or_the_first():
    eta = {"a": {"b": F(1)}, "b": {"c": F(1, 2), "d": F(1, 2)}}
    rewards = {"a": F(0), "b": F(0), "c": F(1, 4), "d": F(1, 4)}
    environment = search_environment_from_guidance(eta, rewards, ["a", "b", "c"])
    problem = search_problem_from_guidance(eta, rewards)
    stops = {}
    for tie in ("descend", "search"):
        policy = HindsightSearch(tie).for_environment(environment)
        stops[tie] = policy.decide(problem).action
    assert stops == {"descend": DESCEND, "search": SEARCH}


def test_policies_that_need_the_environment_say_so():
    problem, environment = item("A", 0)
    for policy in (HindsightSearch(), PlansInEnvironment(QMDPPolicy())):
        with pytest.raises(PlanningError, match=r"Call for_environment\(environment\)"):
            policy.decide(problem)
    seeing = PlansInEnvironment(QMDPPolicy()).for_environment(environment)
    clairvoyant = HindsightSearch().for_environment(environment)
    assert policy_value(seeing, problem, environment).value == pytest.approx(
        policy_value(clairvoyant, problem, environment).value
    )
    assert hasattr(PlansInEnvironment(RandomPolicy(0)).seeded(1), "for_environment")
    assert not hasattr(PlansInEnvironment(QMDPPolicy()), "seeded")


def test_names_and_rules_find_their_policies():
    assert search_policy("one-step", "search").tie == "search"
    assert search_policy(LookAhead(1, "search")).planner.depth == 1
    assert search_policy(LookAhead(3)).planner.depth == 3
    assert isinstance(search_policy(LookAhead(None, "search")), OptimalSearch)
    assert isinstance(search_policy(HindsightRule()), HindsightSearch)
    problem = three_node(0.9, r1=0.5, r2=0.5)
    assert search_policy(SearchRoot()).decide(problem).action == SEARCH
    assert search_policy(AlwaysDescend()).decide(problem).action == DESCEND
    own = AlgorithmOne()
    assert search_policy(own) is own
    with pytest.raises(ParameterError, match="policy: got 'best'"):
        search_policy("best")
    with pytest.raises(ParameterError, match="Pass hierarchy="):
        search_policy(FixedLevel(1))
    with pytest.raises(ParameterError, match="level: got -1"):
        FixedLevel(-1)


class Wide:
    """Descends where a child holds most of the guidance; remembers what any of its copies was shown."""

    seen: ClassVar[set[tuple[object, ...]]] = set()

    def descend(self, eta, sizes, rewards, level):
        for row in eta:
            self.seen.add((*np.round(row, 9).tolist(), *sizes.tolist(), *np.round(rewards, 9).tolist(), level))
        return eta.max(axis=1) > 0.6


def test_a_rule_of_the_users_own_sees_the_same_on_both_routes():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4], [5, 6, 7]], 5)
    X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.7, 0.7]])
    seen, results = [], []
    for engine in ("auto", "generic"):
        Wide.seen.clear()
        results.append(evaluate(X, tree, policy=Wide(), delta=0.3, engine=engine))
        seen.append(set(Wide.seen))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 5
    assert np.array_equal(results[0].stop_nodes, results[1].stop_nodes)
    assert np.allclose(results[0].values, results[1].values, atol=1e-13)
    decision = RuleSearch(Wide(), tree).decide(search_problem(X, tree, 0, delta=0.001))
    assert decision.action == DESCEND


@pytest.mark.parametrize("level", [0, 1, 2, 9])
def test_fixed_level_stops_there_or_at_a_leaf(level):
    for tree in SHOP.hierarchies.values():
        result = evaluate(SHOP.similarity, tree, similarity="precomputed", policy=FixedLevel(level))
        for number in range(12):
            assert result.stop_levels[number] == min(level, len(tree.path(number)) - 1)


@pytest.mark.parametrize("policy", [AlgorithmOne(), OptimalSearch()])
def test_a_problem_that_is_no_search_is_refused(policy):
    with pytest.raises(ModelError, match=r"state: got 'tiger-left'"):
        policy.decide(tiger())


@pytest.mark.parametrize("policy", [AlgorithmOne(), OptimalSearch()])
def test_a_dict_does_for_a_belief(policy):
    problem = three_node(0.9, r1=0.5, r2=0.5)
    states = {state: problem.initial_belief[state] for state in problem.initial_belief}
    assert policy.decide(problem, states).action == policy.decide(problem).action


@pytest.mark.parametrize("engine", ["numpy", "generic"])
@pytest.mark.parametrize(
    "answer",
    [
        lambda m: np.full(m, 0.3),
        lambda m: np.full(m, np.nan),
        lambda m: ["search"] * m,
        lambda m: None,
        lambda m: np.ones(m + 1, dtype=bool),
        lambda m: [[True], [True, False]],
    ],
    ids=["probability", "nan", "words", "nothing", "length", "ragged"],
)
def test_a_rule_that_says_neither_yes_nor_no_is_named(engine, answer):
    class Rule:
        def descend(self, eta, sizes, rewards, level):
            return answer(len(eta))

    with pytest.raises(ParameterError, match=r"policy: got .* from .*Rule.* at level 0"):
        evaluate(SHOP.similarity, SHOP.hierarchies["A"], similarity="precomputed", engine=engine, policy=Rule())


@pytest.mark.parametrize(
    "policy",
    [
        AlgorithmOne(),
        OptimalSearch(),
        rtbss_policy(2),
        HindsightSearch(),
        PlansInEnvironment(rtbss_policy(1)),
        search_policy("descend"),
        search_policy(FixedLevel(1), hierarchy=SHOP.hierarchies["E"]),
    ],
    ids=repr,
)
def test_a_policy_decides_at_the_belief_that_it_is_given(policy):
    tree = SHOP.hierarchies["E"]
    given = {"similarity": "precomputed", "delta": 0.005}
    problem = search_problem(SHOP.similarity, tree, 0, **given)
    world = search_environment(SHOP.similarity, tree, 0, **given)
    if hasattr(policy, "for_environment"):
        policy = policy.for_environment(world)
    leaf = Belief.certain(SearchState(true_path(world)[-1][0], 1))
    assert policy.decide(problem).action == policy.decide(problem, problem.initial_belief).action == DESCEND
    assert policy.decide(problem, leaf).action == SEARCH


def test_a_rule_that_is_a_bare_function_is_pointed_to_descend():
    tree = Hierarchy.from_children([[0], [1], [2, 3]], 2)
    with pytest.raises(ParameterError, match=r"descend\(eta, sizes, rewards, level\)"):
        evaluate([[1.0, 0.0], [0.0, 1.0]], tree, policy=lambda eta, sizes, rewards, level: eta.max(axis=1) > 0.5)
