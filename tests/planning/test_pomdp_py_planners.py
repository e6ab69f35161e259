"""pomdp-py's POUCT and POMCP as planners."""

import os
import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning import POMCP, POUCT, RTBSS, Policy, pomdp_py_planners
from pomdp_hier.problems import tiger

PLANNERS = [POUCT, POMCP]
CHILDREN = {"root": ("fruit", "tool"), "fruit": (), "tool": ()}


def search(accuracy: float = 0.9, **changes: Any) -> POMDP:
    """A small search: an item hides in one of two clusters; descend towards it, then search where one stands.

    A descent leads to the right child with the accuracy; the place is seen, the item never is. Searching ends the run.
    """

    def transition(state: Any, action: str) -> dict[Any, float]:
        place, item = state
        if action == "search":
            return {("over", item): 1}
        wrong = next(c for c in CHILDREN[place] if c != item)
        return {(item, item): accuracy, (wrong, item): 1 - accuracy}

    def legal(state: Any) -> list[str]:
        return ["descend", "search"] if CHILDREN[state[0]] else ["search"]

    def reward(state: Any, action: str) -> float:
        if action == "descend":
            return -0.1
        return 1.0 if state[0] == state[1] else 0.3 if state[0] == "root" else -1.0

    arguments: dict[str, Any] = {
        "transition": transition,
        "observation": lambda s, a: {s[0]: 1},
        "reward": reward,
        "initial_belief": {("root", "fruit"): 0.25, ("root", "tool"): 0.75},
        "terminal": lambda s: s[0] == "over",
        "legal_actions": legal,
    }
    return POMDP(**(arguments | changes))


def signature(node: Any) -> tuple[Any, ...]:
    """A search tree as nested tuples: visits and values of actions, and the observations under them."""
    return tuple(
        (str(action), child.num_visits, child.value, tuple((str(o), signature(v)) for o, v in child.children.items()))
        for action, child in node.children.items()
    )


@pytest.mark.parametrize("planner", PLANNERS)
def test_it_listens_to_the_tiger_and_opens_the_other_door(planner: type[POUCT]) -> None:
    problem = tiger()
    assert planner(depth=3, simulations=1000, seed=1).decide(problem).action == "listen"
    sure = Belief({"tiger-left": 0.999, "tiger-right": 0.001})
    assert planner(depth=1, simulations=1000, seed=1).decide(problem, sure).action == "open-right"


@pytest.mark.parametrize("rollout", ["random", "mdp"])
@pytest.mark.parametrize("planner", PLANNERS)
def test_every_seed_listens_under_the_uniform_belief(planner: type[POUCT], rollout: str) -> None:
    problem = tiger()
    decisions = [planner(10, 200, rollout=rollout, seed=seed).decide(problem) for seed in range(4)]
    assert [decision.action for decision in decisions] == ["listen"] * 4
    # Rewards from -100 to 10, and Hoeffding's scale for the sum of ten of them.
    scale = 110 * np.sqrt(sum(0.95 ** (2 * t) for t in range(10)))
    assert decisions[0].stats["exploration"] == pytest.approx(scale)


@pytest.mark.parametrize("planner", PLANNERS)
def test_rollouts_of_the_underlying_mdp_know_the_state(planner: type[POUCT]) -> None:
    # Below the first action a run opens the right door each time, for 10: there is no other tree below one observation.
    decision = planner(depth=6, simulations=4, rollout="mdp", seed=0).decide(tiger(), Belief.certain("tiger-left"))
    after = sum(10 * 0.95**t for t in range(1, 6))
    q = {"listen": -1 + after, "open-left": -100 + after, "open-right": 10 + after}
    assert decision.q_values == pytest.approx(q)
    with pytest.raises(ParameterError, match="rollout: got 'greedy'"):
        planner(rollout="greedy")


def test_rollouts_of_the_mdp_take_legal_actions_and_end_without_a_discount() -> None:
    exact = RTBSS(depth=2).decide(search())
    decision = POUCT(depth=4, simulations=2000, seed=2, exploration=1.0, rollout="mdp").decide(search())
    assert decision.action == exact.action


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("accuracy", [0.9, 0.5])
def test_the_small_search_is_solved(planner: type[POUCT], accuracy: float) -> None:
    problem = search(accuracy)
    exact = RTBSS(depth=2).decide(problem)
    decision = planner(depth=4, simulations=4000, seed=2, exploration=1.0).decide(problem)
    assert decision.action == exact.action == ("descend" if accuracy == 0.9 else "search")
    assert decision.q_values["search"] == 0.3
    # Inside the search one action is left, so that the mean return is unbiased: within 4 standard errors.
    spread = 2 * np.sqrt(accuracy * (1 - accuracy) / decision.stats["visits"]["descend"])
    assert decision.q_values["descend"] == pytest.approx(float(exact.q_values["descend"]), abs=4 * spread)


@pytest.mark.parametrize("planner", PLANNERS)
def test_one_action_ahead_the_values_are_mean_rewards(planner: type[POUCT]) -> None:
    problem = tiger()
    belief = Belief({"tiger-left": 0.8, "tiger-right": 0.2})
    decision = planner(depth=1, simulations=3000, seed=3, exploration=1e6).decide(problem, belief)
    assert decision.q_values["listen"] == -1
    for action in ("open-left", "open-right"):
        error = 110 * 0.4 / np.sqrt(decision.stats["visits"][action])
        # POMCP first draws 1,000 states from the belief, whose share of tigers varies as well
        error += 110 * 0.4 / np.sqrt(1000) * (planner is POMCP)
        assert decision.q_values[action] == pytest.approx(problem.reward(belief, action), abs=4 * error)


@pytest.mark.parametrize("planner", PLANNERS)
def test_values_are_in_double_precision_and_every_run_looks_equally_far(planner: type[POUCT]) -> None:
    stay = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "same",
        reward=lambda s, a: 0.1,
        initial_belief={"here": 1},
        legal_actions=["wait", "look"],
    )
    for depth in (1, 2, 3, 7):
        decision = planner(depth=depth, simulations=300, seed=0).decide(stay)
        assert decision.value == pytest.approx(0.1 * depth, abs=1e-14)  # not 0.10000000149 times the depth
        assert set(decision.q_values) == {"wait", "look"}
        assert decision.stats["exploration"] == pytest.approx(np.sqrt(depth))  # a range of 0 counts as 1


def test_the_values_are_those_of_pomdp_pys_tree_up_to_its_precision() -> None:
    planner = POUCT(depth=3, simulations=2000, seed=5)
    decision = planner.decide(tiger())
    assert planner.tree is not None
    for action, child in planner.tree.children.items():
        assert child.num_visits == decision.stats["visits"][action]
        assert child.value == pytest.approx(decision.q_values[action], rel=1e-5)
    assert sum(decision.stats["visits"].values()) == 1999
    assert decision.value == max(decision.q_values.values())
    assert decision.ties == (decision.action,)


def test_a_run_earns_nothing_after_the_end() -> None:
    corridor = POMDP(
        transition=lambda s, a: {s + 1: 1},
        observation={(s, "east"): s for s in (1, 2, 3)},  # the models need not answer for the end
        reward={(s, "east"): (-1 if s < 2 else 10) for s in (0, 1, 2)},
        initial_belief={0: 1},
        discount=0.5,
        terminal=[3],
        legal_actions=["east"],
    )
    for depth in (3, 4, 12):
        assert POUCT(depth=depth, simulations=50, seed=1).decide(corridor).value == -1 - 0.5 + 0.25 * 10
    with pytest.raises(PlanningError, match="belief: got terminal"):
        POUCT(seed=1).decide(corridor, Belief.certain(3))


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_run_ends_with_the_process_however_deep_it_may_look(planner: type[POUCT]) -> None:
    goal = POMDP(
        transition=lambda s, a: "goal" if a == "go" else s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1.0 * (a == "go"),
        terminal=["goal"],
        initial_belief={"start": 0.75, "goal": 0.25},  # a run may begin at the end as well
        discount=0.5,
        legal_actions=["go", "wait"],
    )
    sampled = []
    original = pomdp_py_planners._Simulator.sample

    def counted(self: Any, state: Any, action: Any) -> Any:
        sampled.append(state.value)
        return original(self, state, action)

    decisions = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pomdp_py_planners._Simulator, "sample", counted)
        for depth in (30, 100_000):
            sampled.clear()
            decisions[depth] = planner(depth=depth, simulations=200, seed=1).decide(goal)
            assert len(sampled) < 200 * 5  # two steps a run, on average
            assert sampled.count("goal") <= 200  # once for the runs that begin there, and never after a step
    assert decisions[30].q_values == decisions[100_000].q_values


def test_a_belief_over_the_end_and_other_states_weighs_both() -> None:
    problem = search(0.9, initial_belief={("root", "tool"): 0.5, ("over", "tool"): 0.5})
    decision = POUCT(depth=3, simulations=4000, seed=1).decide(problem)
    assert decision.q_values["search"] == pytest.approx(
        0.15, abs=4 * 0.15 / np.sqrt(decision.stats["visits"]["search"])
    )


@pytest.mark.parametrize("planner", PLANNERS)
def test_nodes_have_the_actions_that_are_legal_after_their_history(planner: type[POUCT]) -> None:
    by_place = {None: ["descend", "search"], "root": ["descend", "search"], "fruit": ["search"], "tool": ["search"]}
    rules: list[dict[str, Any]] = [
        {},
        {"legal_actions": by_place.get, "legal_by": "observation", "actions": ["descend", "search"]},
        {
            "legal_actions": lambda b: ["descend", "search"] if b.support[0][0] == "root" else ["search"],
            "legal_by": "belief",
            "actions": ["descend", "search"],
        },
    ]
    trees = []
    for rule in rules:
        search_planner = planner(depth=4, simulations=500, seed=7)
        search_planner.decide(search(**rule))
        root = search_planner.tree
        assert root is not None
        assert [str(a) for a in root.children] == ["descend", "search"]
        assert all([str(a) for a in node.children] == ["search"] for node in root["descend"].children.values())
        trees.append(signature(root))
    assert trees[0] == trees[1] == trees[2]


def test_observations_may_depend_on_the_state_left_and_rewards_on_the_observation() -> None:
    problem = POMDP(
        transition=lambda s, a: 1 - s,
        observation=lambda s, a, state: {state: 0.75, 1 - state: 0.25},
        reward=lambda s, a, next_state, observation: 4.0 if observation == s else -4.0,
        initial_belief={0: 0.5, 1: 0.5},
        legal_actions=["flip"],
    )
    decision = POUCT(depth=1, simulations=4000, seed=1).decide(problem)
    assert decision.value == pytest.approx(2, abs=4 * 4 * np.sqrt(0.75 / 4000))


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_seed_fixes_the_tree_and_the_global_random_state_stays(planner: type[POUCT]) -> None:
    random.seed(11)
    before = random.getstate()
    one, same, other = (planner(depth=4, simulations=300, seed=seed) for seed in (1, 1, 2))
    decisions = [p.decide(tiger()) for p in (one, same, other)]
    assert random.getstate() == before
    assert signature(one.tree) == signature(same.tree) != signature(other.tree)
    assert decisions[0] == decisions[1]
    assert one.decide(tiger()) == same.decide(tiger())  # the second decision too, which draws anew
    assert signature(one.tree) == signature(same.tree)
    again = one.seeded(1)
    assert type(again) is planner
    assert again.decide(tiger()) == decisions[0]


SCRIPT = """
from pomdp_hier.planning import POMCP, POUCT
from pomdp_hier.problems import tiger
from tests.planning.test_pomdp_py_planners import search, signature
for planner in (POUCT, POMCP):
    for problem in (tiger(), search()):
        instance = planner(depth=4, simulations=300, seed=3)
        print(instance.decide(problem), signature(instance.tree))
"""


@pytest.mark.slow
def test_the_tree_does_not_depend_on_pythonhashseed() -> None:
    def output(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first = output("0")
    assert len(first) > 1000
    assert output("4242") == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0}, "depth: got 0"),
        ({"simulations": 1}, "simulations: got 1"),
        ({"exploration": -1.0}, "exploration: got -1.0"),
        ({"exploration": float("nan")}, "exploration: got nan"),
    ],
)
def test_arguments_out_of_range(arguments: dict[str, Any], message: str) -> None:
    for planner in PLANNERS:
        with pytest.raises(ParameterError, match=message):
            planner(**arguments)
    with pytest.raises(ParameterError, match="particles: got 0"):
        POMCP(particles=0)


def test_too_few_runs_to_try_every_action() -> None:
    with pytest.raises(PlanningError, match=r"got 3 for 3 legal actions.*at least 4"):
        POUCT(simulations=3, seed=1).decide(tiger())
    assert min(POUCT(simulations=4, seed=1).decide(tiger()).stats["visits"].values()) == 1


def test_symbols_are_refused_and_fractions_taken() -> None:
    sympy = pytest.importorskip("sympy")
    with pytest.raises(PlanningError, match="problem: got p"):
        POUCT(seed=1).decide(tiger(accuracy=sympy.Symbol("p")), Belief.certain("tiger-left"))
    exact = tiger(accuracy=Fraction(17, 20), discount=Fraction(19, 20))
    assert POUCT(depth=2, simulations=100, seed=1).decide(exact).action == "listen"


def test_they_are_policies() -> None:
    assert isinstance(POUCT(), Policy)
    assert repr(POMCP(3, 10)) == "POMCP(depth=3, simulations=10)"


@pytest.mark.parametrize("planner", [POUCT, POMCP])
def test_what_is_observed_may_depend_on_the_state_that_was_left(planner: type[POUCT]) -> None:
    def reward(state: str, action: str) -> float:
        return {"look": 0.0, "left": 1.0 if state == "L" else -1.0, "right": 1.0 if state == "R" else -1.0}[action]

    problem = POMDP(
        transition=lambda s, a: s if a == "look" else "end",
        observation=lambda t, a, s: s if a == "look" else "done",
        reward=reward,
        initial_belief={"L": 0.5, "R": 0.5},
        terminal=["end"],
        legal_actions=["left", "right", "look"],
    )
    decision = planner(depth=2, simulations=400, seed=0).decide(problem)
    assert decision.action == "look"
    assert decision.value == pytest.approx(1, abs=0.25)  # after a look one knows; with one mixed-up sensor it is 0


def test_an_exploration_of_0_is_a_number_like_others() -> None:
    assert POUCT(exploration=0).exploration == 0
    assert POUCT(exploration=0.5).exploration == 0.5
    with pytest.raises(ParameterError, match=r"exploration: got -0.5"):
        POUCT(exploration=-0.5)
