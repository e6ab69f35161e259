"""The paper's search problem through the bridge to pomdp-py."""

import pytest

from pomdp_hier.hqs.model import three_node
from pomdp_hier.planning import POMCP, POUCT, RTBSS
from pomdp_hier.pomdp import to_agent, to_environment
from tests.extras import few
from tests.planning.test_pomdp_py_planners import signature


@pytest.mark.parametrize("eta", few(1, [0.7, 0.3, 0.95]))
@pytest.mark.parametrize("planner", [POUCT, POMCP])
def test_a_search_for_an_item_is_planned_as_by_exact_look_ahead(eta: float, planner: type[POUCT]) -> None:
    problem = three_node(eta)
    exact = RTBSS(depth=4).decide(problem)
    searches = [planner(depth=4, simulations=2000, seed=1, exploration=0.5) for _ in range(2)]
    decisions = [search.decide(problem) for search in searches]
    assert decisions[0].action == exact.action
    assert decisions[0].value == pytest.approx(float(exact.value), abs=0.1)
    assert decisions[0] == decisions[1]
    assert signature(searches[0].tree) == signature(searches[1].tree)
    assert len(searches[0].tree.children) == 2  # search and descend at the root


def test_the_run_ends_with_a_search() -> None:
    problem = three_node(0.95)
    agent, environment, planner = to_agent(problem), to_environment(problem, seed=2), RTBSS(depth=4)
    actions = []
    while not environment.is_terminal:
        action = planner.plan(agent)
        actions.append(type(action).__name__)
        observation, _ = environment.execute(action)
        agent.update(action, observation)
    assert actions[-1] == "Search"
    assert len(actions) <= 3
    assert environment.execute(action)[1] == 0
    assert agent.valid_actions(history=agent.history)
