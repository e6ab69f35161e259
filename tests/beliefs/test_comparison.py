import io
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
import sympy

from pomdp_hier import POMDP, BayesUpdater, Belief, compare_updaters
from pomdp_hier import _progress as progress
from pomdp_hier.beliefs import TabularUpdater, assert_updaters_agree
from pomdp_hier.beliefs.updaters import FunctionUpdater
from pomdp_hier.errors import ImpossibleObservationError, ModelError, ParameterError
from pomdp_hier.problems import tiger
from tests.random_problems import exact_arrays, random_arrays

EXACT = tiger(accuracy=Fraction(17, 20), discount=Fraction(19, 20))


def bayes(belief, action, observation):
    return BayesUpdater(EXACT).update(belief, action, observation)


def test_exact_numbers_agree_exactly_and_every_history_is_compared():
    agreement = assert_updaters_agree(BayesUpdater(EXACT), bayes, EXACT, depth=3)
    assert (agreement.n_compared, agreement.n_skipped) == (6 + 6**2 + 6**3, 0)
    assert (agreement.max_difference, agreement.max_total_difference) == (0.0, 0.0)
    assert agreement.max_evidence_difference is None
    assert "agree on 258 histories of up to 3 steps." in str(agreement)


def test_floats_need_a_tolerance():
    problem = tiger()
    with pytest.raises(ParameterError, match="expected a tolerance"):
        compare_updaters(BayesUpdater(problem), TabularUpdater(problem), problem, depth=1)
    with pytest.raises(ParameterError, match="expected a tolerance"):
        compare_updaters(BayesUpdater(EXACT), TabularUpdater(EXACT), EXACT, depth=1)


def test_an_updater_is_compared_by_its_evidence_too():
    right = BayesUpdater(EXACT)
    doubled = FunctionUpdater(bayes, EXACT, evidence=lambda b, a, o: 2 * right.evidence(b, a, o))
    agreement = compare_updaters(right, doubled, EXACT, depth=2)
    assert not agreement.agrees
    assert agreement.max_difference == 0
    assert agreement.max_evidence_difference > 0.5
    assert agreement.first_history == (("listen", "hear-left"),)
    assert "evidence: expected 1/2, got 1" in agreement.reason.replace("Fraction(1, 2)", "1/2").replace(
        "Fraction(1, 1)", "1"
    )


def test_the_first_history_is_the_shortest():
    def wrong_after_two(belief, action, observation):
        posterior = bayes(belief, action, observation)
        return posterior if max(posterior.values()) < Fraction(9, 10) else Belief.certain(posterior.argmax())

    agreement = compare_updaters(BayesUpdater(EXACT), wrong_after_two, EXACT, depth=3)
    assert agreement.first_history == (("listen", "hear-left"), ("listen", "hear-left"))
    assert "'tiger-left': expected 289/298, got 1" in agreement.reason
    with pytest.raises(AssertionError, match="'listen', 'hear-left' -> 'listen', 'hear-left'"):
        assert_updaters_agree(BayesUpdater(EXACT), wrong_after_two, EXACT, depth=3)


def test_a_mapping_that_is_not_normalised_is_a_difference_not_an_error():
    def unnormalised(belief, action, observation):
        return EXACT.joint(belief, action)[observation]

    agreement = compare_updaters(BayesUpdater(EXACT), unnormalised, EXACT, depth=2)
    assert agreement.first_history == (("listen", "hear-left"),)
    assert 0.4 < agreement.max_difference < 1
    assert agreement.max_total_difference > 0.1


@pytest.mark.parametrize("answer", [None, "left", 3])
def test_an_answer_that_is_no_belief_is_a_difference(answer):
    agreement = compare_updaters(BayesUpdater(EXACT), lambda b, a, o: answer, EXACT, depth=1)
    assert agreement.max_difference == math.inf
    assert "neither a Belief nor a mapping" in agreement.reason


def test_a_candidate_that_raises_or_gives_nan_is_a_difference():
    def raises(belief, action, observation):
        raise ImpossibleObservationError("I do not think so")

    agreement = compare_updaters(BayesUpdater(EXACT), raises, EXACT, depth=1)
    assert "raised ImpossibleObservationError: I do not think so" in str(agreement)
    problem = tiger()
    agreement = compare_updaters(
        BayesUpdater(problem), lambda b, a, o: {"tiger-left": math.nan}, problem, depth=1, tolerance=1e-9
    )
    assert agreement.max_difference == math.inf
    assert not agreement.agrees


def test_the_cap_counts_what_it_leaves_out():
    agreement = compare_updaters(BayesUpdater(EXACT), bayes, EXACT, depth=3, max_histories=50)
    assert agreement.n_compared == 50
    # 6 + 36 were compared whole, 8 of 216; of those all 208 others were met
    assert agreement.n_skipped == 208
    assert "at least 208 more were left out" in str(agreement)


def test_random_runs_cover_a_small_problem_and_repeat_with_the_seed():
    everything = compare_updaters(BayesUpdater(EXACT), bayes, EXACT, depth=2, mode="random", seed=0)
    assert (everything.n_compared, everything.n_skipped) == (42, 0)
    some = [
        compare_updaters(BayesUpdater(EXACT), bayes, EXACT, depth=6, mode="random", seed=3, max_histories=100)
        for _ in range(2)
    ]
    assert some[0] == some[1]
    assert some[0].n_compared == 100
    assert some[0].n_skipped > 0


def test_random_runs_find_a_fault():
    rigged = random_arrays(np.random.default_rng(2), 12, 4, 4).problem()
    right = BayesUpdater(rigged)

    def swapped(belief, action, observation):
        posterior = right.update(belief, action, observation)
        return (
            posterior if action != 2 else Belief(dict(zip(reversed(list(posterior)), posterior.values(), strict=True)))
        )

    agreement = compare_updaters(
        right, swapped, rigged, depth=5, tolerance=1e-12, mode="random", seed=0, max_histories=200
    )
    assert not agreement.agrees
    assert agreement.first_history[-1][0] == 2


def test_expressions_are_compared_as_expressions():
    p = sympy.Symbol("p", positive=True)
    problem = tiger(accuracy=p, discount=1)
    right = BayesUpdater(problem)
    assert_updaters_agree(right, lambda b, a, o: right.update(b, a, o), problem, depth=2)
    wrong = compare_updaters(right, lambda b, a, o: b, problem, depth=1)
    assert wrong.max_difference == math.inf
    assert wrong.reason == "posterior of 'tiger-left': expected p, got 1/2, apart by -(2*p - 1)/2"


def test_differences_of_expressions_are_simplified():
    """Bayes' rule after hearing the tiger on the left twice, and what an updater says that stays at the first."""
    p = sympy.Symbol("p", positive=True)
    problem, right = tiger(accuracy=p, discount=1), BayesUpdater(tiger(accuracy=p, discount=1))
    deaf = compare_updaters(
        right, lambda b, a, o: b if b != problem.initial_belief else right.update(b, a, o), problem, depth=2
    )
    exact, _, difference = (
        deaf.reason.removeprefix("posterior of 'tiger-left': expected ")
        .replace(", got p, apart by ", "|")
        .partition("|")
    )
    assert sympy.sympify(exact).equals(sympy.sympify("p**2 / (p**2 + (1 - p)**2)"))
    assert sympy.sympify(difference).is_Mul
    assert set(sympy.solve(sympy.sympify(difference), sympy.Symbol("p"))) == {0, 1, sympy.Rational(1, 2)}


def test_a_comparison_that_takes_a_while_shows_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(progress, "PATIENCE", 0)
    for mode in ("all", "random"):
        monkeypatch.setattr(sys, "stderr", Terminal())
        right = BayesUpdater(tiger(discount=1))
        compare_updaters(right, right, tiger(discount=1), depth=1, tolerance=1e-9, mode=mode, seed=0)
        assert "comparing updaters: " in sys.stderr.getvalue()


def test_a_difference_of_numbers_among_expressions_is_a_number():
    p = sympy.Symbol("p")
    problem = tiger(accuracy=p, discount=1)
    right = BayesUpdater(problem)

    def shifted(b, a, o):
        posterior = dict(right.update(b, a, o))
        return {s: posterior[s] + sympy.Rational(k, 10) for s, k in zip(posterior, (1, -1), strict=True)}

    found = compare_updaters(right, shifted, problem, depth=1)
    assert found.max_difference == pytest.approx(0.1)
    assert found.n_different == found.n_compared


def test_a_finished_process_ends_its_histories():
    problem = POMDP(
        transition=lambda s, a: "done" if a == "stop" else s,
        observation=lambda s, a: s,
        reward=lambda s, a: 0,
        initial_belief={"on": 1},
        terminal=["done"],
        legal_actions=["stop", "wait"],
    )
    right = BayesUpdater(problem)
    assert compare_updaters(right, right, problem, depth=10).n_compared == 20
    assert compare_updaters(right, right, problem, depth=3, mode="random", seed=0).n_compared == 6


def test_deep_histories_do_not_recurse():
    problem = exact_arrays(np.random.default_rng(0), 3, 1, 1).problem()
    right = BayesUpdater(problem)
    assert compare_updaters(right, right, problem, depth=300).n_compared == 300


@pytest.mark.parametrize("options", [{"depth": 0}, {"depth": 1, "max_histories": 0}, {"depth": 1, "mode": "some"}])
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(ParameterError):
        compare_updaters(BayesUpdater(EXACT), bayes, EXACT, **options)


def test_a_division_by_zero_in_the_candidate_is_a_difference_with_its_history():
    def divides(belief, action, observation):
        posterior = bayes(belief, action, observation)
        return {state: p / (1 if action == "listen" else 0) for state, p in posterior.items()}

    agreement = compare_updaters(BayesUpdater(EXACT), divides, EXACT, depth=2)
    assert agreement.first_history == (("open-left", "hear-left"),)
    assert "the candidate raised ZeroDivisionError" in agreement.reason


def test_a_negative_tolerance_and_a_missing_problem_are_refused():
    bayes = BayesUpdater(tiger())
    with pytest.raises(ParameterError, match=r"tolerance: got -1e-09"):
        compare_updaters(bayes, bayes, tiger(), depth=1, tolerance=-1e-9)
    with pytest.raises(ModelError, match=r"compare_updaters, third argument"):
        compare_updaters(bayes, bayes, bayes, depth=1, tolerance=1e-9)


def test_how_many_histories_differ_and_where_most():
    problem = tiger()
    right = BayesUpdater(problem)

    def wrong(belief, action, observation):
        posterior = right.update(belief, action, observation)
        if action != "listen":
            return posterior
        shift = 0.1 if observation == "hear-left" else 0.25
        p = max(0.0, float(posterior["tiger-left"]) - shift)
        return {"tiger-left": p, "tiger-right": 1 - p}

    found = compare_updaters(right, wrong, problem, depth=1, tolerance=1e-9)
    assert (found.n_compared, found.n_different) == (6, 2)
    assert found.first_history == (("listen", "hear-left"),)
    assert found.worst_history == (("listen", "hear-right"),)
    text = str(found)
    assert "The updaters DISAGREE on 2 of 6 histories of up to 1 steps." in text
    assert "worst history:  'listen', 'hear-right'" in text
    assert compare_updaters(right, right, problem, depth=2, tolerance=1e-9).n_different == 0


@pytest.mark.parametrize(("shift", "parts"), [(0.0025, False), (0.0035, True)])
def test_what_posteriors_add_up_to_may_be_off_by_the_tolerance_of_each_and_of_the_evidence(shift, parts):
    class Shifted(BayesUpdater):
        def predict(self, belief, action):
            left, right = (super(Shifted, self).predict(belief, action)[s] for s in ("tiger-left", "tiger-right"))
            return Belief({"tiger-left": left - shift, "tiger-right": right + shift})

    problem = tiger()  # two observations: three numbers, each off by 0.001 at the most
    agreement = compare_updaters(Shifted(problem), BayesUpdater(problem), problem, depth=1, tolerance=1e-3)
    assert agreement.agrees is not parts
    if parts:
        assert "by their evidence, differ from the prediction of 'tiger-left' by 0.0035" in str(agreement)


def test_the_cap_of_random_runs_counts_what_they_met_and_left_out():
    listening = POMDP(
        transition=lambda s, a: s,
        observation=lambda t, a: {"left": Fraction(1, 4), "right": Fraction(3, 4)},
        reward=lambda s, a: 0,
        initial_belief={"here": 1},
        legal_actions=["listen"],
    )
    updater = BayesUpdater(listening)
    found = compare_updaters(updater, updater, listening, depth=2, mode="random", seed=0, max_histories=2)
    # the two histories of one step; left out are the two after one of them, and at least one after the other
    assert (found.n_compared, found.n_skipped) == (2, 3)
