from fractions import Fraction

import pytest
import sympy
from hypothesis import given

from pomdp_hier import POMDP, BayesUpdater, Belief
from pomdp_hier.errors import ImpossibleObservationError, ModelError
from pomdp_hier.problems import tiger
from tests.random_problems import exact_arrays, random_arrays, sizes_and_seed


@given(sizes_and_seed())
def test_posteriors_are_those_of_dense_bayes_to_the_last_fraction(drawn):
    arrays = exact_arrays(*drawn)
    problem = arrays.problem()
    updater = BayesUpdater(problem)
    for a in problem.all_actions:
        branches = {o: (p, b) for o, p, b in updater.branches(problem.initial_belief, a)}
        for o in problem.all_observations:
            evidence, posterior = arrays.posterior(arrays.start, a, o)
            assert updater.evidence(problem.initial_belief, a, o) == evidence
            assert (o in branches) == (evidence != 0)
            if evidence:
                updated = updater.update(problem.initial_belief, a, o)
                assert [updated[s] for s in problem.states] == posterior
                assert branches[o] == (evidence, updated)


@given(sizes_and_seed())
def test_posteriors_of_floats_are_those_of_dense_bayes(drawn):
    arrays = random_arrays(*drawn)
    problem = arrays.problem()
    updater = BayesUpdater(problem)
    for a in problem.all_actions:
        for o, evidence, belief in updater.branches(problem.initial_belief, a):
            expected_evidence, posterior = arrays.posterior(arrays.start, a, o)
            assert evidence == pytest.approx(expected_evidence, abs=1e-14)
            assert [belief[s] for s in problem.states] == pytest.approx(posterior, abs=1e-14)


def test_the_support_grows_where_the_model_says_so_without_any_list_of_states():
    walk = POMDP(
        transition=lambda s, a: {s - 1: Fraction(1, 2), s + 1: Fraction(1, 2)},
        observation=lambda s, a: "dark",
        reward=lambda s, a: 0,
        initial_belief={0: 1},
        legal_actions=["go"],
        max_states=10,
    )
    updater = BayesUpdater(walk)
    belief = walk.initial_belief
    for _ in range(20):
        belief = updater.update(belief, "go", "dark")
    assert len(belief) == 21
    assert belief[20] == Fraction(1, 2**20)
    assert updater.predict(belief, "go")[21] == Fraction(1, 2**21)


def test_symbols_stay_symbols():
    p, b = sympy.symbols("p b", positive=True)
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {"hit": p, "miss": 1 - p} if s == "on" else {"miss": 1},
        reward=lambda s, a: 0,
        initial_belief={"on": b, "off": 1 - b},
        legal_actions=["look"],
    )
    updater = BayesUpdater(problem)
    assert updater.update(problem.initial_belief, "look", "hit") == Belief.certain("on")
    missed = updater.update(problem.initial_belief, "look", "miss")
    assert sympy.simplify(missed["on"] - b * (1 - p) / (1 - b * p)) == 0


def test_terminal_states_stay_where_they_are():
    problem = POMDP(
        transition=lambda s, a: {"work": Fraction(1, 2), "done": Fraction(1, 2)},
        observation=lambda s, a: "dark",
        reward=lambda s, a: 0,
        initial_belief={"work": 1},
        terminal=["done"],
        legal_actions=["go"],
    )
    updater = BayesUpdater(problem)
    belief = updater.update(updater.update(problem.initial_belief, "go", "dark"), "go", "dark")
    assert belief["done"] == Fraction(3, 4)


def test_ways_to_one_state_add_up_where_the_observation_depends_on_the_state_left():
    half = Fraction(1, 2)
    problem = POMDP(
        transition=lambda s, a: {"here": half, "there": half},
        observation=lambda t, a, s: {"moved": Fraction(3, 4), "quiet": Fraction(1, 4)} if t != s else {"quiet": 1},
        reward=lambda s, a: 0,
        initial_belief={"here": Fraction(1, 3), "there": Fraction(2, 3)},
        legal_actions=["go"],
    )
    updater = BayesUpdater(problem)
    # quiet in "here": stayed with 1/3 * 1/2, came from "there" with 2/3 * 1/2 * 1/4
    quiet = {"here": Fraction(1, 6) + Fraction(1, 12), "there": Fraction(1, 3) + Fraction(1, 24)}
    evidence = sum(quiet.values())
    assert updater.evidence(problem.initial_belief, "go", "quiet") == evidence
    posterior = updater.update(problem.initial_belief, "go", "quiet")
    assert dict(posterior) == {state: mass / evidence for state, mass in quiet.items()}
    assert {o: b for o, _, b in updater.branches(problem.initial_belief, "go")}["quiet"] == posterior


def test_a_misspelt_action_is_refused_though_the_model_would_answer_for_it():
    updater = BayesUpdater(tiger())
    start = tiger().initial_belief
    for ask in (lambda: updater.update(start, "lisen", "hear-left"), lambda: updater.predict(start, "lisen")):
        with pytest.raises(ModelError, match=r"action: got 'lisen'.*3"):
            ask()
    with pytest.raises(ModelError, match="'lisen'"):
        updater.evidence(start, "lisen", "hear-left")


def test_an_impossible_observation_comes_with_those_that_are_possible():
    with pytest.raises(ImpossibleObservationError, match=r"got 'left'"):
        BayesUpdater(tiger()).update(tiger().initial_belief, "listen", "left")


def test_a_dict_is_a_belief_if_it_sums_to_1_and_a_list_is_none():
    updater = BayesUpdater(tiger())
    fair = {"tiger-left": 0.5, "tiger-right": 0.5}
    assert updater.update(fair, "listen", "hear-left")["tiger-left"] == 0.85
    assert updater.evidence(fair, "listen", "hear-left") == 0.5
    with pytest.raises(ModelError, match="sum to 10"):
        updater.update(dict.fromkeys(fair, 5), "listen", "hear-left")
    with pytest.raises(ModelError, match="expected a Belief or a dict"):
        updater.predict([0.5, 0.5], "listen")


def test_something_else_than_a_problem_is_refused():
    with pytest.raises(ModelError, match=r"BayesUpdater: .* expected a POMDP"):
        BayesUpdater({"tiger-left": 1.0})
