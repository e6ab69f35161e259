"""Two searchers with other actions: their models are sound, and they do what they are made for."""

from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import Belief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hqs.generic import search_environment, search_problem
from pomdp_hier.hqs.model import SearchState, search_environment_from_guidance, search_problem_from_guidance
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.hqs.policies import DESCEND, SEARCH, AlgorithmOne, OptimalSearch
from pomdp_hier.hqs.return_search import BACK, Enter, GreedyChild, TrailState, backtracking_search, choosing_search
from pomdp_hier.planning import RTBSS, ImmediateValue
from pomdp_hier.simulation import policy_value, simulate
from tests.search_trees import a_path, random_guidance

F = Fraction
SHOP = load_amazon12()
ETA = {"a": {"b": F(3, 4), "c": F(1, 4)}, "b": {"d": F(2, 3), "e": F(1, 3)}}
REWARDS = {"a": F(0), "b": F(1, 4), "c": F(3, 4), "d": F(1, 2), "e": F(3, 4)}


def models(path=("a", "b", "d")):
    return search_problem_from_guidance(ETA, REWARDS), search_environment_from_guidance(ETA, REWARDS, path)


def item(name, number, delta):
    return [
        build(SHOP.similarity, SHOP.hierarchies[name], number, similarity="precomputed", delta=delta)
        for build in (search_problem, search_environment)
    ]


def sound(problem):
    """Every row of every model is a distribution over the problem's own states."""
    for state in problem.states:
        if problem.is_terminal(state):
            continue
        for action in problem.actions(Belief.certain(state)):
            successors = problem.successors(state, action)
            assert sum(successors.values()) == 1
            assert set(successors) <= set(problem.states)
            for after in successors:
                assert sum(problem.observation_distribution(after, action, state).values()) == 1


def test_the_models_are_sound():
    for build in (choosing_search, backtracking_search):
        agent, world = build(*models())
        sound(agent)
        sound(world)


def test_choosing_a_child_moves_there_and_the_belief_follows():
    agent, world = choosing_search(*models())
    assert agent.actions() == (SEARCH, Enter("b"), Enter("c"))
    assert agent.successors(SearchState("a", 1), Enter("c")) == {
        SearchState("c", 1): F(1, 4),
        SearchState("c", 0): F(3, 4),
    }
    assert agent.successors(SearchState("a", 0), Enter("c")) == {SearchState("c", 0): 1}
    assert world.successors(SearchState("a", 1), Enter("c")) == {SearchState("c", 0): 1}
    assert world.successors(SearchState("a", 1), Enter("b")) == {SearchState("b", 1): 1}
    assert world.successors(SearchState("b", 0), Enter("d")) == {SearchState("d", 0): 1}


def test_the_greedy_searcher_is_worth_all_or_nothing():
    # 3/4 * 5/4 < 1: it searches the root at once. With a larger guidance it goes on, right or wrong.
    assert policy_value(GreedyChild(), *choosing_search(*models())).value == 0
    eta = {"a": {"b": F(9, 10), "c": F(1, 10)}}
    for own, value in (("b", F(1, 4)), ("c", -1)):
        pair = (search_problem_from_guidance(eta, REWARDS), search_environment_from_guidance(eta, REWARDS, ["a", own]))
        assert policy_value(GreedyChild(), *choosing_search(*pair)).value == value


def test_greedy_q_values_are_the_agents():
    agent, _ = choosing_search(*models())
    decision = GreedyChild().decide(agent)
    planned = RTBSS(1, leaf_value=ImmediateValue(SEARCH)).decide(agent)
    assert decision.q_values == planned.q_values
    assert decision.action == planned.action


@pytest.mark.parametrize("seed", range(8))
def test_without_backs_it_is_the_plain_search(seed):
    rng = np.random.default_rng(seed)
    eta, rewards = random_guidance(rng, 8, exact=True)
    problem = search_problem_from_guidance(eta, rewards)
    environment = search_environment_from_guidance(eta, rewards, a_path(rng, eta))
    agent, world = backtracking_search(problem, environment, backs=0)
    plan = RTBSS(8, leaf_value=ImmediateValue(SEARCH))
    assert policy_value(plan, agent).value == policy_value(OptimalSearch(), problem).value
    assert policy_value(plan, agent, world).value == policy_value(plan, problem, environment).value


def test_turning_back_restores_the_belief_and_costs_its_price():
    agent, world = backtracking_search(*models(), backs=1, price=F(1, 100))

    def out_and_back(problem, belief, observation):
        if observation is None:
            return DESCEND
        node, backs = observation
        return BACK if backs and node != "a" else SEARCH

    value = policy_value(out_and_back, agent, world, trace=True)
    assert value.value == REWARDS["a"] - F(1, 100)
    last = value.visits[-1].belief
    assert last[TrailState("a", "a", 0)] == 1


def test_whoever_can_turn_back_is_worth_at_least_as_much_to_themselves():
    plan = RTBSS(3, leaf_value=ImmediateValue(SEARCH))
    worth = [policy_value(plan, backtracking_search(*models(), backs=backs)[0]).value for backs in (0, 1, 2)]
    assert worth == sorted(worth)
    agent, world = backtracking_search(*models(("a", "b", "d")), backs=1)
    exact = float(policy_value(plan, agent, world))
    low, high = simulate(plan, agent, world, n_episodes=4000, seed=2, confidence=0.999).interval
    assert low <= exact <= high


def test_on_a_good_tree_turning_back_and_choosing_help_on_a_bad_one_they_hurt():
    plan = RTBSS(2, leaf_value=ImmediateValue(SEARCH))
    for name, number, better in (("A", 0, True), ("D", 0, False)):
        problem, environment = item(name, number, 0.005)
        plain = float(policy_value(AlgorithmOne(), problem, environment))
        back = float(policy_value(plan, *backtracking_search(problem, environment, backs=2)))
        chosen = float(policy_value(GreedyChild(), *choosing_search(problem, environment)))
        assert (back > plain) == better
        assert (chosen > plain) == better


def test_what_cannot_be():
    with pytest.raises(ParameterError, match="backs: got -1"):
        backtracking_search(*models(), backs=-1)
