"""Problems of pomdp-py's models and agents."""

import random
import warnings
from typing import Any

import pomdp_py
import pytest
from pomdp_py.problems.rocksample.rocksample_problem import minimal_instance
from pomdp_py.problems.tiger.tiger_problem import TigerProblem

from benchmarks import pomdp_py_problems as table
from pomdp_hier import POMDP, check_problem
from pomdp_hier.errors import ModelError
from pomdp_hier.planning import RTBSS
from pomdp_hier.pomdp import to_agent
from pomdp_hier.pomdp.spaces import seeded_random
from pomdp_hier.problems import tiger

SMEAR = 1e-3  # what the models leave to each outcome that cannot happen, as load_unload does


class Walk(pomdp_py.TransitionModel):
    """Along 0, 1, 2, 3: a step to the right with probability 3/4."""

    def probability(self, next_state: int, state: int, action: str) -> float:
        ahead = min(state + 1, 3)
        if ahead == state:
            return 1.0 if next_state == state else SMEAR
        return {ahead: 0.75, state: 0.25}.get(next_state, SMEAR)

    def sample(self, state: int, action: str) -> int:
        return min(state + 1, 3) if random.random() < 0.75 else state


class ListedWalk(Walk):
    def get_all_states(self) -> list[int]:
        return [0, 1, 2, 3]


class Sight(pomdp_py.ObservationModel):
    """Whether the end is reached, without an error."""

    def probability(self, observation: bool, next_state: int, action: str) -> float:
        return 1.0 if observation is (next_state == 3) else SMEAR

    def sample(self, next_state: int, action: str) -> bool:
        return next_state == 3


class Toll(pomdp_py.RewardModel):
    def sample(self, state: int, action: str, next_state: int, normalized: bool = False, **_: Any) -> float:
        assert normalized is False  # a fourth argument that is no observation
        return float(next_state - state)


class Rule(pomdp_py.PolicyModel):
    def get_all_actions(self, state: Any = None, history: Any = None) -> set[str]:
        return {"go"}


def walker(**changes: Any) -> pomdp_py.Agent:
    arguments: dict[str, Any] = {
        "init_belief": pomdp_py.Histogram({0: 1.0}),
        "policy_model": Rule(),
        "transition_model": Walk(),
        "observation_model": Sight(),
        "reward_model": Toll(),
    }
    return pomdp_py.Agent(**(arguments | changes))


def test_spaces_that_nobody_lists_are_walked_from_the_belief() -> None:
    before = random.getstate()
    problem = POMDP.from_agent(walker())
    assert set(problem.states) == {0, 1, 2, 3}
    assert set(problem.all_observations) == {False, True}
    assert random.getstate() == before
    for state in (0, 1, 2):
        assert problem.successors(state, "go") == {state: 0.25, state + 1: 0.75}
    assert problem.successors(3, "go") == {3: 1.0}
    assert problem.expected_reward(0, "go") == 0.75
    assert check_problem(problem) == []


def test_rows_of_listed_spaces_are_kept_within_a_tolerance_or_normalised() -> None:
    agent = walker(transition_model=ListedWalk())
    with pytest.raises(ModelError, match=r"from 0: .* sum to 1\.00[12].*; expected 1 \(tolerance 1e-06\)"):
        _ = POMDP.from_agent(agent).compiled
    smeared = {0: 0.25, 1: 0.75, 2: SMEAR, 3: SMEAR}
    assert POMDP.from_agent(agent, tolerance=0.02).successors(0, "go") == smeared
    assert POMDP.from_agent(agent, tolerance=0.02).compiled.n_states == 4
    normal = POMDP.from_agent(agent, normalize=True)
    assert normal.successors(0, "go") == pytest.approx({s: p / 1.002 for s, p in smeared.items()}, abs=1e-15)
    assert sum(normal.successors(0, "go").values()) == pytest.approx(1, abs=1e-15)


def test_rows_can_be_counted_from_draws() -> None:
    class Unsaid(Walk):
        def probability(self, next_state: int, state: int, action: str) -> float:
            raise NotImplementedError

    one, other = (POMDP.from_agent(walker(transition_model=Unsaid()), n_samples=2_000) for _ in range(2))
    assert one.successors(0, "go")[1] == pytest.approx(0.75, abs=0.06)
    assert one.successors(3, "go") == {3: 1}
    assert one.observation_distribution(3, "go", None) == {True: 1}
    assert one.successors(0, "go") == other.successors(0, "go")
    assert sum(one.successors(1, "go").values()) == 1
    with pytest.raises(ModelError, match=r"NotImplementedError from .*Unsaid\.probability .* or count samples"):
        _ = POMDP.from_agent(walker(transition_model=Unsaid())).states


def test_a_row_that_can_lack_a_rare_outcome_is_drawn_until_it_cannot() -> None:
    class Rare(Walk):
        def probability(self, next_state: int, state: int, action: str) -> float:
            return {0: 0.995, 1: 0.005}[next_state]

        def sample(self, state: int, action: str) -> int:
            return int(random.random() < 0.005)

    assert POMDP.from_agent(walker(transition_model=Rare())).successors(0, "go") == {0: 0.995, 1: 0.005}


def test_draws_that_contradict_probabilities_are_faults() -> None:
    class Optimist(Walk):
        def sample(self, state: int, action: str) -> int:
            return min(state + 1, 3) if random.random() < 0.25 else state

    faults = check_problem(POMDP.from_agent(walker(transition_model=Optimist())))
    assert {fault.code for fault in faults} == {"inconsistent-samples"}
    assert "transition from 0 under 'go', outcome 1" in {fault.location for fault in faults}
    assert "n_samples=1000" in faults[0].remedy
    assert check_problem(POMDP.from_agent(walker(transition_model=Optimist()), n_samples=50)) == []


def test_states_that_are_equal_without_an_equal_hash_are_faults() -> None:
    class Loaded(pomdp_py.State):  # as load_unload's, which compares ``self.loaded`` with itself
        def __init__(self, x: int, loaded: bool) -> None:
            self.x, self.loaded = x, loaded

        def __hash__(self) -> int:
            return hash((self.x, self.loaded))

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loaded) and self.x == other.x

        def __repr__(self) -> str:
            return f"Loaded({self.x}, {self.loaded})"

    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: s.x,
        reward=lambda s, a: 0,
        initial_belief={Loaded(1, True): 0.5, Loaded(1, False): 0.25, Loaded(2, True): 0.25},
        legal_actions=["stay"],
    )
    (fault,) = check_problem(problem)
    assert (fault.code, fault.location) == ("inconsistent-equality", "state Loaded(1, False)")
    assert fault.value == "a state that equals Loaded(1, True) with another hash"


def broken(base: type, method: str) -> Any:
    def raises(self: Any, *_: Any, **__: Any) -> Any:
        raise TypeError("Population must be a sequence")

    return type("Broken", (base,), {method: raises})()


@pytest.mark.parametrize(
    ("part", "base", "method", "words"),
    [
        (
            "transition_model",
            Walk,
            "sample",
            r"transition from 0 under 'go': got TypeError from .*Population.* states=",
        ),
        (
            "transition_model",
            Walk,
            "probability",
            r"probability of \d, transition from 0 under 'go': got TypeError",
        ),
        ("observation_model", Sight, "sample", r"observation in \d after 'go': got TypeError from .* observations="),
        ("reward_model", Toll, "sample", r"reward of 'go' from 0 to \d: got TypeError from .*Population"),
        ("policy_model", Rule, "get_all_actions", "legal actions in 0: .* pass legal_actions="),
    ],
)
def test_what_a_foreign_class_raises_is_told_with_its_place(part: str, base: type, method: str, words: str) -> None:
    agent = walker(**{part: broken(base, method)})
    with pytest.raises(ModelError, match=words):
        _ = POMDP.from_agent(agent, actions=["go"]).compiled


def test_settings_that_would_do_nothing_are_refused() -> None:
    own = to_agent(tiger())
    for settings in ({"normalize": True}, {"n_samples": 10}):
        with pytest.raises(ModelError, match=r"(normalize|n_samples): got"):
            POMDP.from_agent(own, **settings)
    for n_samples in (0, 2.5, True):
        with pytest.raises(ModelError, match=r"n_samples: got .*; expected an integer"):
            POMDP.from_agent(walker(), n_samples=n_samples)
    silent = type("Silent", (pomdp_py.TransitionModel,), {"probability": Walk.probability})()
    with pytest.raises(ModelError, match="n_samples: got 10"):
        POMDP.from_agent(walker(transition_model=silent), n_samples=10)
    with pytest.raises(ModelError, match=r"expected a pomdp_py.Agent. Pass its \.agent"):
        POMDP.from_agent(TigerProblem.create())


@pytest.mark.parametrize("settings", [{}, {"normalize": True}, {"tolerance": 0.1}, {"n_samples": 500}])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_every_setting_goes_with_every_way_to_say_spaces(settings: dict[str, Any], listed: bool, given: bool) -> None:
    agent = walker(transition_model=ListedWalk() if listed else Walk())
    spaces: dict[str, Any] = {"states": [0, 1, 2, 3], "observations": [False, True]} if given else {}
    if (listed or given) and not settings:
        settings = {"tolerance": 0.1}
    problem = POMDP.from_agent(agent, discount=0.9, terminal=[3], legal_actions=["go"], **spaces, **settings)
    value = RTBSS(depth=4).decide(problem).value
    assert value == pytest.approx(2.4, abs=0.1)  # whatever the smear adds, and the draws miss
    smeared = bool(spaces or listed)  # the end among the states that the model may go on to
    assert {fault.code for fault in check_problem(problem)} <= ({"terminal-not-absorbing"} if smeared else set())


def test_a_belief_about_objects_is_a_belief_over_their_states() -> None:
    class Pair(pomdp_py.OOState):
        pass

    class About(pomdp_py.OOBelief):
        def mpe(self, **_: Any) -> Pair:
            return Pair(super().mpe().object_states)

    def at(name: str, place: int) -> pomdp_py.ObjectState:
        return pomdp_py.ObjectState(name, {"place": place})

    belief = About(
        {
            "a": pomdp_py.Histogram({at("a", 0): 0.25, at("a", 1): 0.75}),
            "b": pomdp_py.Histogram({at("b", 0): 0.5, at("b", 2): 0.5}),
        }
    )
    start = POMDP.from_agent(walker(init_belief=belief)).initial_belief
    assert len(start) == 4
    assert start[Pair({"a": at("a", 1), "b": at("b", 2)})] == 0.375
    assert {type(state) for state in start} == {Pair}


def test_pomdp_pys_tiger_and_rocksample_come_in_and_go_out_with_one_call_each() -> None:
    theirs = POMDP.from_agent(TigerProblem.create().agent, discount=0.95)
    assert check_problem(theirs) == []
    assert RTBSS(depth=3).decide(theirs).value == pytest.approx(RTBSS(depth=3).decide(tiger()).value, abs=1e-6)
    random.seed(0)
    agent = minimal_instance().agent
    rocks = POMDP.from_agent(agent, discount=0.95, terminal=lambda s: s.terminal, normalize=True)
    assert len(rocks.states) == 24  # 2 x 2 cells and 2 exits, two rocks
    assert RTBSS(depth=2).decide(rocks).value == pytest.approx(0.95 * 10)  # east, and out
    out = to_agent(rocks)
    search = pomdp_py.POUCT(
        max_depth=3, discount_factor=0.95, num_sims=100, exploration_const=10, rollout_policy=out.policy_model
    )
    with seeded_random(1):
        assert search.plan(out) in rocks.all_actions


pytest.importorskip("matplotlib")  # pomdp-py's load_unload loads it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "faults", "slack"),
    [
        ("tiger", (2, 3, 2), set(), 100),
        ("rocksample 3 × 3, 2 rocks", (48, 7, 3), set(), 10),
        ("load_unload", (20, 2, 3), {"inconsistent-equality"}, 80),
        ("tag, 12 cells", (156, 5, 13), {"terminal-not-absorbing", "terminal-reward"}, 15),
        ("mos 3 × 3, 1 object", (569, 6, 11), {"terminal-not-absorbing"}, 400),
    ],
)
def test_a_problem_comes_in_is_checked_and_earns_the_same(
    name: str, sizes: Any, faults: set[str], slack: float
) -> None:
    with table.made_to_run(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, make, search = next(case for case in table.cases() if case[0] == name)
        row = table.one_row(name, make, search, 3)
    assert (row["states"], row["actions"], row["observations"]) == sizes
    assert set(row["issues"]) == faults
    for planner in ("there", "out again"):  # too few runs to tell more than that none of them misses the goal
        (one, half), (other, other_half) = row["here"]["return"], row[planner]["return"]
        assert abs(one - other) <= 2 * (half + other_half) + slack
