"""Reading `.pomdp` files: every construct of the grammar, each in a small file written for it."""

import io
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.pomdp.problem import POMDP

PREAMBLE = "discount: 0.5\nvalues: reward\nstates: a b c\nactions: go stay\nobservations: x y\n"
REST = "T: * uniform\nO: * uniform\n"


def T(problem: POMDP, action: object) -> list[list[float]]:
    return problem.compiled.transition[problem.all_actions.index(action)].toarray().tolist()


def Z(problem: POMDP, action: object) -> list[list[float]]:
    observation = problem.compiled.observation
    assert observation is not None
    return observation[problem.all_actions.index(action)].toarray().tolist()


TIGER = """\
# the tiger, on several lines
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right
observations: tiger-left tiger-right
T:listen
identity
T:open-left
uniform
T:open-right
uniform
O:listen
0.85 0.15
0.15 0.85
O:open-left uniform
O : open-right
uniform
R:listen : * : * : * -1
R:open-left : tiger-left : * : * -100
R:open-left : tiger-right : * : * 10
R:open-right : tiger-left : * : * 10
R:open-right : tiger-right:*:* -100
"""


def test_tiger() -> None:
    tiger = read_pomdp(TIGER)
    assert tiger.states == ("tiger-left", "tiger-right")
    assert tiger.all_actions == ("listen", "open-left", "open-right")
    assert tiger.all_observations == tiger.states
    assert tiger.discount == 0.95
    assert tiger.initial_belief == Belief.uniform(tiger.states)
    assert T(tiger, "listen") == [[1, 0], [0, 1]]
    assert T(tiger, "open-left") == [[0.5, 0.5]] * 2
    assert Z(tiger, "listen") == [[0.85, 0.15], [0.15, 0.85]]
    assert tiger.compiled.reward.tolist() == [[-1, -1], [-100, 10], [10, -100]]
    assert [tiger.expected_reward(s, "open-left") for s in tiger.states] == [-100, 10]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\n", " "])
def test_line_ends_and_one_line_files(end: str) -> None:
    text = end.join(line for line in TIGER.splitlines() if not line.startswith("#"))
    assert read_pomdp(text).compiled.reward.tolist() == read_pomdp(TIGER).compiled.reward.tolist()


def test_ways_to_give_the_source(tmp_path) -> None:
    path = tmp_path / "tiger.pomdp"
    path.write_bytes(b"\xef\xbb\xbf" + TIGER.encode() + b"\x1a")
    with path.open("rb") as binary, path.open(encoding="utf-8-sig") as text:
        for source in (path, str(path), binary, text, io.StringIO(TIGER), TIGER):
            assert read_pomdp(source).states == ("tiger-left", "tiger-right")
    path.write_bytes(b"# caf\xe9\n" + TIGER.encode())
    assert read_pomdp(path).discount == 0.95
    with pytest.raises(FileNotFoundError):
        read_pomdp(tmp_path / "none.pomdp")


def test_counts_become_numbers_from_0() -> None:
    problem = read_pomdp(
        "discount:1 values:reward states:3 actions:02 observations:1 T:0 identity T:1 uniform O:* uniform"
    )
    assert (problem.states, problem.all_actions, problem.all_observations) == ((0, 1, 2), (0, 1), (0,))
    assert T(problem, 0) == np.eye(3).tolist()


def test_sections_in_any_order_and_names_over_lines() -> None:
    text = "O: * uniform\nstart: b\nobservations:\n# none yet\n y\tn\nT: * identity\nactions: go\n"
    text += "states:\n a\n\n b\nvalues: reward"
    problem = read_pomdp(text)
    assert problem.states == ("a", "b")
    assert problem.discount == 1  # no discount: a finite horizon
    assert problem.initial_belief == Belief.certain("b")


def test_the_last_discount_and_values_count_and_plurals_are_taken() -> None:
    problem = read_pomdp(PREAMBLE + REST + "discount: .25\nvalues: costs\nR: * : * : * : * 2\n")
    assert problem.discount == 0.25
    assert problem.expected_reward("a", "go") == -2


def test_costs_turn_the_sign_and_zero_stays_positive() -> None:
    problem = read_pomdp(PREAMBLE.replace("reward", "cost") + REST + "R: go : * : * : * 4\nR: go : b : * : * 0\n")
    assert [problem.step_reward(s, "go", "a", "x") for s in "ab"] == [-4, 0]
    assert str(problem.step_reward("b", "go", "a", "x")) == "0.0"


NUMBERS = {
    "1.": 1.0,
    ".5": 0.5,
    "+1": 1.0,
    "-1.0e+02": -100.0,
    "2E1": 20.0,
    "1.e-3": 0.001,
    "- 7": -7.0,
    "+ .5e1": 5.0,
    "007": 7.0,
    "1e-320": 1e-320,
    "123456789012345678901234567890": 1.2345678901234568e29,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers(text: str) -> None:
    problem = read_pomdp(PREAMBLE + REST + f"R: go : a : b : x {text}\n")
    assert problem.step_reward("a", "go", "b", "x") == NUMBERS[text]


def test_a_colon_may_stand_before_the_number() -> None:
    text = "T: go : a : a : 0.25 T: go : a : b : .75 T: go : a : c : 0 O: go : a : x : 1 O: go : a : y : 0 "
    problem = read_pomdp(PREAMBLE + REST + text + "R: go : a : a : x : -3\n")
    assert T(problem, "go")[0] == [0.25, 0.75, 0]
    assert problem.step_reward("a", "go", "a", "x") == -3


def test_signs_between_numbers_part_them() -> None:
    problem = read_pomdp(PREAMBLE + REST + "R: go : a : b 1-2\nR: go : b : b -1 - 2\n")
    assert [problem.step_reward(s, "go", "b", o) for s in "ab" for o in "xy"] == [1, -2, -1, -2]


STARTS = {
    "": [1 / 3, 1 / 3, 1 / 3],
    "start: uniform": [1 / 3, 1 / 3, 1 / 3],
    "start: 0.5 0.25 0.25": [0.5, 0.25, 0.25],
    "start:\n0 1 0": [0, 1, 0],
    "start: b": [0, 1, 0],
    "start: 2": [0, 0, 1],
    "start include: a 2": [0.5, 0, 0.5],
    "start  include : b b": [0, 1, 0],
    "start: c a": [0.5, 0, 0.5],
    "start exclude: a": [0, 0.5, 0.5],
    "start exclude: a 1": [0, 0, 1],
    "start include: *": [1 / 3, 1 / 3, 1 / 3],
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("early", [True, False])
def test_start_and_reset(start: str, early: bool) -> None:
    reset = "T: go : b\nreset\nT: stay reset\n"
    problem = read_pomdp(PREAMBLE + (f"{start}\n{REST}{reset}" if early else f"{REST}{reset}{start}\n"))
    assert problem.compiled.initial.tolist() == STARTS[start]
    assert T(problem, "go") == [[1 / 3] * 3, STARTS[start], [1 / 3] * 3]
    assert T(problem, "stay") == [STARTS[start]] * 3


def test_start_with_one_state() -> None:
    for start in ("0", "1", "1.0", "only", "uniform"):
        text = f"states: only\nactions: 1\nobservations: 1\nstart: {start}\nT: * identity\nO: * identity"
        assert read_pomdp(text).initial_belief == Belief.certain("only")


def test_transitions_by_entry_row_and_matrix() -> None:
    problem = read_pomdp(
        PREAMBLE
        + """
        T: go : a : b 1
        T: go : b
        0.25 0.25
        0.5
        T: go : 2 uniform
        T: stay 1 0 0
        0 1 0 0 0
        1
        O: go : a : x 0.25  O: go : a : y 0.75
        O: go : b  0 1
        O: 0 : c uniform
        O: stay
        1 0  0 1
        0.5 0.5
        """
    )
    assert T(problem, "go") == [[0, 1, 0], [0.25, 0.25, 0.5], [1 / 3] * 3]
    assert T(problem, "stay") == np.eye(3).tolist()
    assert Z(problem, "go") == [[0.25, 0.75], [0, 1], [0.5, 0.5]]
    assert Z(problem, "stay") == [[1, 0], [0, 1], [0.5, 0.5]]


def test_wildcards_and_the_last_assignment_wins() -> None:
    problem = read_pomdp(
        PREAMBLE
        + """
        T: * : * : * 0.7
        T: * : * : * 0.0
        T: go : a : a 1
        T: go : a : * 0
        T: go : * : c 1.0
        T: go : b : c 0
        T: go : b : b 0.25
        T: go : b : a 0.75
        T: go : b : b 0.5
        T: go : b : a 0.5
        T: stay uniform
        T: stay : c identity-is-no-row-so-this-is-a-comment-below
        """.replace(
            "T: stay : c identity-is-no-row-so-this-is-a-comment-below", "T: stay : c 0 0 1 # T: stay : c 1 0 0"
        )
        + """
        O: * uniform
        O: go : * 0 1
        O: * : b : *0.5
        O: stay
        1 0 1 0 1 0
        O: * : c
        0 1
        """
    )
    assert T(problem, "go") == [[0, 0, 1], [0.5, 0.5, 0], [0, 0, 1]]
    assert T(problem, "stay") == [[1 / 3] * 3, [1 / 3] * 3, [0, 0, 1]]
    assert Z(problem, "go") == [[0, 1], [0.5, 0.5], [0, 1]]
    assert Z(problem, "stay") == [[1, 0], [1, 0], [0, 1]]
    assert problem.compiled.observation[0].nnz == 4  # nothing but exact zeros is dropped, and they are


def test_an_action_written_alone_leaves_the_others_as_they_were() -> None:
    problem = read_pomdp(PREAMBLE + "T: * identity\nO: * uniform\nT: go : a : a 0\nT: go : a : b 1\nT: * : c : c 1\n")
    assert T(problem, "go") == [[0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert T(problem, "stay") == np.eye(3).tolist()


def test_rewards_by_entry_row_matrix_and_wildcard() -> None:
    problem = read_pomdp(
        PREAMBLE
        + REST
        + """
        R: * : * : * : * -1
        R: go : a : b : y 5
        R: go : b : c
        1 2
        R: stay : c
        1 2 3 4 5 6
        R: stay : c : * : y 9
        R: stay : c : a : y 7
        R: * : b : a : * 3
        """
    )

    def r(state: str, action: str, next_state: str, observation: str) -> float:
        return problem.step_reward(state, action, next_state, observation)

    assert r("a", "go", "b", "y") == 5
    assert r("a", "go", "b", "x") == -1
    assert [r("b", "go", "c", o) for o in "xy"] == [1, 2]
    assert [r("c", "stay", s, o) for s in "abc" for o in "xy"] == [1, 7, 3, 9, 5, 9]
    assert [r("b", a, "a", o) for a in ("go", "stay") for o in "xy"] == [3] * 4


def test_compiled_rewards_are_the_expectations_of_the_generic_route() -> None:
    rng = np.random.default_rng(7)
    lines = [PREAMBLE, "T: * uniform", "O: *\n0.85 0.15\n0.25 0.75\n1 0"]
    for _ in range(40):
        places = [rng.choice([*names, "*"]) for names in (["go", "stay"], "abc", "abc", "xy")]
        kept = int(rng.integers(2, 5))
        size = {4: 1, 3: 2, 2: 6}[kept]
        lines.append(f"R: {' : '.join(places[:kept])} {' '.join(map(str, rng.integers(-9, 10, size)))}")
        problem = read_pomdp("\n".join(lines))
        for i, action in enumerate(problem.all_actions):
            expected = [problem.expected_reward(s, action) for s in problem.states]
            assert problem.compiled.reward[i].tolist() == expected


def test_reward_that_needs_no_observation_says_so() -> None:
    problem = read_pomdp(PREAMBLE + REST + "R: go : * : * : * 1\n")
    assert not problem.reward_model.uses_observation
    assert not problem.reward_model.uses_next_state
    assert read_pomdp(PREAMBLE + REST + "R: go : a\n1 2 3 4 5 6\n").reward_model.uses_observation


def test_names_may_be_section_words_numbers_and_have_dots() -> None:
    text = """
    states: T O R start
    actions: start.now reset-it uniform_2 T
    observations: 2 1 states
    start: R
    T: * identity
    T: T : T : O 1
    T: T : T : T 0
    T: T : R : start 1
    T: T : R : R 0
    O: * : * : 1 1
    O: T : O : 1 0
    O: T : O : states 1
    R: T : T : O : states 5
    R: T : R
    0 0 0 0 0 0 0 0 0 1 1 1
    """
    problem = read_pomdp(text)
    assert problem.initial_belief == Belief.certain("R")
    assert problem.transition.distribution("T", "T") == {"O": 1}
    assert problem.transition.distribution("R", "T") == {"start": 1}
    assert problem.observation.distribution("T", "T") == {"1": 1}  # a name that is a number is a name first
    assert problem.observation.distribution("O", "T") == {"states": 1}
    assert problem.step_reward("T", "T", "O", "states") == 5
    assert problem.step_reward("R", "T", "start", "1") == 1


def test_a_file_without_observations_is_an_mdp_whose_states_are_seen() -> None:
    text = """
    discount: 0.9
    values: reward
    states: a b
    actions: go
    start: 1
    T: go
    0 1
    1 0
    R: go
    1 2 3 4
    R: go : b
    5 6
    R: go : a : b 7
    R: go : b : a : * 8
    """
    problem = read_pomdp(text)
    assert problem.all_observations == problem.states
    assert Z(problem, "go") == [[1, 0], [0, 1]]
    assert problem.initial_belief == Belief.certain("b")
    assert [problem.step_reward(s, "go", t) for s in "ab" for t in "ab"] == [1, 7, 8, 6]


def test_sums_within_the_tolerance_are_kept_as_they_are() -> None:
    thirds = "0.33333 0.33333 0.33333"  # off by 1e-5, the default tolerance, to the last bit
    problem = read_pomdp(f"{PREAMBLE}start: {thirds}\nT: * identity\nT: go : a {thirds}\nO: * uniform\n")
    assert T(problem, "go")[0] == [0.33333] * 3
    assert problem.initial_belief["a"] == 0.33333
    prediction = problem.predict(problem.initial_belief, "go")
    tables = problem.compiled
    same = tables.belief(tables.predict(tables.initial, 0))  # a belief whose mass is not 1 is none elsewhere
    assert dict(same.items()) == pytest.approx(dict(prediction.items()), abs=1e-15)
    exactly = read_pomdp(
        f"{PREAMBLE}start: {thirds}\nT: * identity\nT: go : a {thirds}\nO: * uniform\n", normalize=True
    )
    assert T(exactly, "go")[0] == [1 / 3] * 3
    assert exactly.initial_belief["a"] == 1 / 3
    wide = f"{PREAMBLE}T: * identity\nT: go : a 1 1 0\nO: * uniform\nO: go : b 0.5 0.4\n"
    assert T(read_pomdp(wide, normalize=True), "go")[0] == [0.5, 0.5, 0]
    assert Z(read_pomdp(wide.replace("1 1 0", "1 0 0"), tolerance=0.2), "go")[1] == [0.5, 0.4]


def test_exact_reads_decimals_as_fractions() -> None:
    text = "discount: .95 values: cost states: a b actions: go observations: x y start: .1 9e-1 "
    text += "T: go uniform O: go : * 0.85 0.15 R: go : a : * : * 1.1 R: go : b : b -.3 +2"
    problem = read_pomdp(text, exact=True)
    assert problem.discount == Fraction(19, 20)
    assert problem.initial_belief["b"] == Fraction(9, 10)
    assert problem.transition.distribution("a", "go") == {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert problem.observation.distribution("a", "go")["x"] == Fraction(17, 20)
    assert problem.expected_reward("a", "go") == Fraction(-11, 10)
    assert problem.expected_reward("b", "go") == Fraction(1, 2) * (Fraction(3, 10) * Fraction(17, 20) - Fraction(3, 10))
    assert problem.compiled.reward[0, 0] == -1.1
    assert problem.compiled.discount == 0.95
    thirds = "states: 3 actions: 1 observations: 1 T: 0 identity T: 0 : 0 0.33 0.33 0.33 O: * uniform"
    normalized = read_pomdp(thirds, exact=True, normalize=True)
    assert normalized.transition.distribution(0, 0)[0] == Fraction(1, 3)


def test_a_problem_from_a_file_pickles() -> None:
    copy = pickle.loads(pickle.dumps(read_pomdp(TIGER)))
    assert copy.compiled.reward.tolist() == read_pomdp(TIGER).compiled.reward.tolist()
    assert copy.expected_reward("tiger-left", "open-left") == -100


def test_wildcards_on_a_large_space_cost_no_more_than_their_output() -> None:
    text = "discount:0.9 values:reward states:5000 actions:10 observations:20 T:* identity O:* uniform "
    problem = read_pomdp(text + "T:*:7:8 1 T:*:7:7 0 R:*:*:*:* -1 R:3:*:*:7 1 R:*:9:*:* 4")
    transition, observation = problem.compiled.transition, problem.compiled.observation
    assert all(matrix is transition[0] for matrix in transition)
    assert all(matrix is observation[0] for matrix in observation)
    assert problem.compiled.reward[3, 0] == pytest.approx(-0.9, abs=1e-15)
    assert problem.compiled.reward[3, 9] == 4
    assert problem.transition.distribution(7, 2) == {8: 1}


@pytest.mark.parametrize("tolerance", [-1, 1, float("nan")])
def test_a_tolerance_that_is_none(tolerance: float) -> None:
    with pytest.raises(ParameterError, match="tolerance"):
        read_pomdp(TIGER, tolerance=tolerance)


def test_errors_are_model_errors() -> None:
    with pytest.raises(ModelError):
        read_pomdp("states: 0\n")


# --- against dense arrays written by slicing --------------------------------------------------------------------------

SIZES = {"a": 2, "s": 3, "o": 2}
NAMES = {"a": ["go", "stay"], "s": ["a", "b", "c"], "o": ["x", "y"]}
PLACES = {"T": "ass", "O": "aso", "R": "asso"}


def dense_shape(word: str) -> tuple[int, ...]:
    return tuple(SIZES[kind] for kind in PLACES[word])


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, tuple[str, tuple[Any, ...], np.ndarray]]:
    """A random statement as text, and as (table, slices, values)."""
    word = draw(st.sampled_from("TOR"))
    kinds = PLACES[word]
    named = draw(st.integers(2 if word == "R" else 1, len(kinds)))
    slices: list[Any] = []
    elements = []
    for kind in kinds[:named]:
        index = draw(st.integers(-1, SIZES[kind] - 1))
        slices.append(slice(None) if index < 0 else index)
        elements.append("*" if index < 0 else draw(st.sampled_from([str(index), NAMES[kind][index]])))
    shape = dense_shape(word)[named:]
    size = int(np.prod(shape))
    head = f"{word}: {' : '.join(elements)}"
    shorthand = draw(st.sampled_from(["uniform", "identity", "reset", None, None, None])) if word != "R" else None
    if shorthand == "uniform" and shape:
        return f"{head} uniform", (word, tuple(slices), np.full(shape, 1 / shape[-1]))
    if shorthand == "identity" and word == "T" and named == 1:
        return f"{head} identity", (word, tuple(slices), np.eye(3))
    if shorthand == "reset" and word == "T" and shape:
        return f"{head}\nreset", (word, tuple(slices), np.broadcast_to([0.5, 0.0, 0.5], shape))
    values = draw(st.lists(st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0]), min_size=size, max_size=size))
    return f"{head} {' '.join(map(str, values))}", (word, tuple(slices), np.reshape(values, shape))


@pytest.mark.slow
@given(st.lists(statements(), max_size=25))
def test_any_statements_mean_what_slices_of_dense_arrays_mean(drawn: list[Any]) -> None:
    dense = {word: np.zeros(dense_shape(word)) for word in "TOR"}
    dense["T"][:] = np.eye(3)
    dense["O"][:] = 0.5
    lines = [PREAMBLE, "start include: a c", "T: * identity", "O: * uniform"]
    for line, (word, slices, values) in drawn:
        lines.append(line)
        dense[word][slices] = values
    for word in "TO":  # an empty row is refused, so that it is given a first entry at the end
        for a, s in np.argwhere(dense[word].sum(axis=-1) == 0):
            lines.append(f"{word}: {a} : {s} : 0 1")
            dense[word][a, s, 0] = 1
    problem = read_pomdp("\n".join(lines), normalize=True)
    for a, action in enumerate(problem.all_actions):
        assert np.allclose(T(problem, action), dense["T"][a] / dense["T"][a].sum(-1, keepdims=True), rtol=0, atol=1e-15)
        assert np.allclose(Z(problem, action), dense["O"][a] / dense["O"][a].sum(-1, keepdims=True), rtol=0, atol=1e-15)
        for index in np.ndindex(3, 3, 2):
            s, t, o = (NAMES[kind][i] for kind, i in zip("sso", index, strict=True))
            assert problem.step_reward(s, action, t, o) == dense["R"][(a, *index)]
        means = np.einsum("st,to,sto->s", T(problem, action), Z(problem, action), dense["R"][a])
        assert np.allclose(problem.compiled.reward[a], means, rtol=0, atol=1e-14)
