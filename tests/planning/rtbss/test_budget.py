"""A search with a budget of nodes: what it finds, and the fallback that decides where the budget is not enough."""

import pickle

import pytest

from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning import RTBSS, RandomPolicy, solve
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.simulation import policy_value, simulate
from tests.pomdp_models import random_problem, tiger

ENGINES = ["plain", "arrays"]


@pytest.mark.parametrize("engine", ENGINES)
def test_budget(engine):
    problem = random_problem(3, states=3, actions=3, observations=2)
    with pytest.raises(PlanningError, match=r"^budget: got 1; .* 3 actions to depth"):
        RTBSS(3, budget=1, engine=engine).decide(problem)
    free = RTBSS(3, prune=False, engine=engine).decide(problem)
    whole = RTBSS(3, budget=free.stats["nodes"], prune=False, engine=engine).decide(problem)
    assert whole.stats["complete"]
    assert whole.value == free.value
    part = RTBSS(3, budget=free.stats["nodes"] - 1, prune=False, engine=engine).decide(problem)
    assert not part.stats["complete"]
    assert part.q_values[2] == float("inf")
    assert part.stats["status"][2] == "bound"
    assert part.q_values[0] == free.q_values[0]


@pytest.mark.parametrize("engine", ["plain", "arrays"])
@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("tie", ["first", "all"])
def test_a_fallback_decides_where_the_budget_is_not_enough_for_one_action(engine, prune, tie):
    problem = tiger()
    settings = {"prune": prune, "ties": tie, "engine": engine}
    planner = RTBSS(3, budget=1, fallback=lambda belief: "open-right", **settings)
    for again in (planner, pickle.loads(pickle.dumps(RTBSS(3, budget=1, fallback=FirstAction(), **settings)))):
        decision = again.decide(problem)
        assert decision.stats["fallback"] is True
        assert decision.stats["complete"] is False
        assert set(decision.stats["status"].values()) == {"bound"}
    assert planner.decide(problem).action == "open-right"
    enough = RTBSS(3, budget=10**6, fallback=lambda belief: "open-right", **settings).decide(problem)
    assert enough.action == RTBSS(3, **settings).decide(problem).action == "listen"
    assert "fallback" not in enough.stats
    # A whole run goes through, deciding by the fallback.
    assert (
        policy_value(planner, problem, horizon=2).value
        == policy_value(lambda b: "open-right", problem, horizon=2).value
    )


@pytest.mark.parametrize(
    "fallback",
    [value_iteration(tiger(), 3), solve(tiger(), horizon=3).policy, RandomPolicy(0), FirstAction()],
    ids=["optimal", "solution", "random", "first"],
)
def test_a_fallback_that_always_decides_earns_what_it_earns_by_itself(fallback):
    """It knows the time, and draws anew, as it does by itself."""
    problem, names = tiger(), ("at_step", "seeded", "action_probabilities")
    planner = RTBSS(3, budget=1, fallback=fallback)
    assert [hasattr(planner, name) for name in names] == [hasattr(fallback, name) for name in names]
    assert policy_value(planner, problem, horizon=3).value == policy_value(fallback, problem, horizon=3).value
    runs = [simulate(p, problem, horizon=3, n_episodes=20).values.tolist() for p in (planner, fallback)]
    assert runs[0] == runs[1]
    enough = RTBSS(3, budget=10**6, fallback=fallback)
    assert policy_value(enough, problem, horizon=1).value == -1


def test_a_fallback_without_a_budget_is_refused():
    with pytest.raises(ParameterError, match=r"^fallback: got FirstAction\(\) without"):
        RTBSS(3, fallback=FirstAction())
    with pytest.raises(ParameterError, match="policy: got 3; expected"):
        RTBSS(3, budget=1, fallback=3)


def test_a_subtree_that_is_met_again_is_counted_once():
    stats = RTBSS(3, engine="plain", prune=False).decide(tiger()).stats
    assert (stats["nodes"], stats["reused"]) == (9, 16)
