import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pomdp_py
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import as_belief, histogram


def test_a_belief_is_a_read_only_mapping_that_is_zero_elsewhere():
    b = Belief({"a": 0.25, "b": 0.75, "c": 0})
    assert (b["a"], b["c"], b["nowhere"]) == (0.25, 0, 0)
    assert (b.get("c"), b.probability("b")) == (0, 0.75)
    assert b.support == tuple(b) == ("a", "b")
    assert dict(b) == dict(b.items()) == {"a": 0.25, "b": 0.75}
    assert (len(b), "a" in b, "c" in b) == (2, True, False)
    assert Belief(b) == b
    with pytest.raises(TypeError, match="immutable"):
        b["a"] = 1


def test_the_callers_dict_is_copied():
    given_ = {"a": 0.5, "b": 0.5}
    b = Belief(given_)
    given_["a"] = 1.0
    b.get_histogram()["b"] = 7
    assert b["a"] == b["b"] == 0.5


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ({"a": -0.1, "b": 1.1}, r"got -0\.1 .* of state 'a'"),
        ({"a": math.nan}, "got nan .* of state 'a'"),
        ({"a": math.inf}, "sum to inf"),
        ({"a": 0.5, "b": 0.4}, r"2 probabilities that sum to 0\.9; expected 1"),
        ({}, "0 probabilities that sum to 0"),
        ({"a": Fraction(1, 2), "b": Fraction(499, 1000)}, "999/1000"),
        ({"a": "1"}, "got the text '1' .* of state 'a'"),
        ({"a": None}, "got None .* of state 'a'"),
    ],
)
def test_what_is_no_distribution_is_refused(probabilities, message):
    with pytest.raises(ModelError, match=message):
        Belief(probabilities)


def test_the_tolerance_is_for_floats_alone():
    assert Belief({"a": 0.5, "b": 0.4999}, tolerance=1e-3)["b"] == 0.4999  # and nothing is rescaled
    with pytest.raises(ModelError):
        Belief({"a": Fraction(1, 2), "b": Fraction(4999, 10000)}, tolerance=1e-3)


def test_tiny_probabilities_are_kept():
    assert len(Belief({"a": 1.0, "b": 1e-300})) == 2


def test_normalising():
    assert Belief.normalized({"a": Fraction(1), "b": Fraction(2)})["b"] == Fraction(2, 3)
    assert Belief.normalized({"a": 1e-320, "b": 3e-320})["b"] == pytest.approx(0.75, abs=1e-3)
    for weights in ({}, {"a": 0.0}, {"a": math.inf}, {"a": math.nan}, {"a": -1, "b": 3}):
        with pytest.raises(ModelError):
            Belief.normalized(weights)


def test_equal_beliefs_have_equal_hashes_whatever_their_order_or_number_type():
    one, other = Belief({"a": 0.25, "b": 0.75}), Belief({"b": Fraction(3, 4), "a": Fraction(1, 4)})
    assert one == other
    assert hash(one) == hash(other)
    assert one != Belief({"a": 1})
    assert one != {"a": 0.25, "b": 0.75}
    assert pickle.loads(pickle.dumps(other)) == one


def test_symbols():
    x = sympy.Symbol("x")
    b = Belief({"a": x, "b": 1 - x})
    assert b.expectation({"a": 1, "b": 2}.get).equals(2 - x)
    with pytest.raises(ModelError, match="sum to"):
        Belief({"a": x, "b": x})
    with pytest.raises(ModelError, match="probability of state 'a'"):
        Belief({"a": sympy.Symbol("n", negative=True), "b": 1})


def test_entropy_and_expectation():
    assert Belief.uniform(range(8)).entropy() == pytest.approx(3 * math.log(2), abs=1e-15)
    assert Belief.certain("a").entropy() == 0.0
    assert Belief.uniform([1, 2, 3, 2], number=Fraction).expectation(lambda s: s) == 2
    with pytest.raises(ModelError, match="expected at least one"):
        Belief.uniform([])


def test_drawing_follows_the_probabilities():
    b = Belief({"a": 0.2, "b": 0.8})
    rng = np.random.default_rng(0)
    assert sum(b.sample(rng) == "a" for _ in range(5000)) / 5000 == pytest.approx(0.2, abs=0.02)
    state = random.getstate()
    random.seed(1)
    drawn = [b.random() for _ in range(5)]
    random.seed(1)
    assert [b.random() for _ in range(5)] == drawn
    random.setstate(state)
    assert b.mpe() == b.argmax() == "b"


def test_pomdp_py_takes_it_as_a_belief():
    assert isinstance(Belief.certain(1), pomdp_py.GenerativeDistribution)


def test_a_repr_is_short():
    assert len(repr(Belief.uniform(range(1000)))) < 400


@given(
    st.dictionaries(st.integers(), st.fractions(min_value=0, max_value=5), min_size=1, max_size=9).filter(
        lambda w: any(w.values())
    )
)
def test_normalised_fractions_sum_to_one_exactly(weights):
    assert sum(Belief.normalized(weights).values()) == 1


def test_normalising_does_not_make_floats_of_integers_that_sum_to_one():
    assert isinstance(Belief.normalized({"a": 1, "b": 0})["a"], int)


@pytest.mark.parametrize("given", [[0.5, 0.5], ["left", "right"], "left", None, [([1], 1.0)]])
def test_what_gives_no_probabilities_is_refused_with_a_remedy(given):
    with pytest.raises(ModelError, match=r"expected a dict, \{state: probability\}"):
        Belief(given)


def test_a_mapping_stands_for_a_belief_and_nothing_else_does():
    belief = Belief({"a": 1})
    assert as_belief(belief) is belief
    assert as_belief({"a": 0.5, "b": 0.5}) == Belief({"a": 0.5, "b": 0.5})
    with pytest.raises(ModelError, match=r"belief: got \[0.5, 0.5\]"):
        as_belief([0.5, 0.5])
    with pytest.raises(ModelError, match="sum to 10"):
        as_belief({"a": 5, "b": 5})


def test_pairs_of_one_state_add_up():
    assert Belief([("a", 0.2), ("b", 0.6), ("a", 0.2)])["a"] == 0.4
    assert dict(Belief.normalized(iter([("a", Fraction(1)), ("b", Fraction(1)), ("a", Fraction(1))])).items()) == {
        "a": Fraction(2, 3),
        "b": Fraction(1, 3),
    }
    with pytest.raises(ModelError, match=r"sum to 1\.2"):
        Belief([("a", 0.6), ("a", 0.6)])


def test_weighted_particles_are_read_as_they_are_sampled():
    rng = np.random.default_rng(0)
    particles = [(int(v), float(w)) for v, w in zip(rng.integers(5, size=40), rng.random(40), strict=True)]
    expected = {v: sum(w for u, w in particles if u == v) / sum(w for _, w in particles) for v, _ in particles}
    assert histogram(pomdp_py.WeightedParticles(particles)) == pytest.approx(expected, abs=1e-15)
    assert histogram(pomdp_py.Particles(["a", "b", "a", "a"])) == {"a": 0.75, "b": 0.25}
    assert histogram(pomdp_py.Histogram({"a": 0.75, "b": 0.25})) == {"a": 0.75, "b": 0.25}
    moves = POMDP(
        transition=lambda s, a: pomdp_py.WeightedParticles([("a", 1), ("b", 2), ("a", 1)]),
        observation=lambda s, a: "o",
        reward=lambda s, a: 0,
        initial_belief={"a": 1},
        legal_actions=["go"],
    )
    assert moves.successors("a", "go") == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (0.15000000000000002, "0.15"),
        (0.9697986577181208, "0.969799"),
        (0.5, "0.5"),
        (1e-9, "1e-09"),
        (1 - 1e-9, "0.999999999"),
        (Fraction(1, 3), "1/3"),
    ],
)
def test_a_belief_prints_six_digits_and_never_a_false_certainty(probability, shown):
    assert str(Belief({"a": probability, "b": 1 - probability})).startswith(f"{{'a': {shown},")
