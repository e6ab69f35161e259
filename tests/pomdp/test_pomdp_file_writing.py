"""Writing `.pomdp` files: what is read back is the same problem, to the last bit."""

import io
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.pomdp_file import read_pomdp, write_pomdp
from pomdp_hier.pomdp.problem import POMDP


def rewritten(problem: POMDP, **options: bool) -> POMDP:
    file = io.StringIO()
    write_pomdp(problem, file)
    return read_pomdp(file.getvalue(), tolerance=1e-9, **options)


def random_problem(seed: int, reward_places: int) -> POMDP:
    rng = np.random.default_rng(seed)
    n_actions, n_states, n_observations = rng.integers(1, 4), rng.integers(1, 6), rng.integers(1, 5)

    def rows(*shape: int) -> np.ndarray:
        weights = rng.random(shape) * (rng.random(shape) < 0.5)
        weights[..., 0] += 1e-3
        return weights / weights.sum(axis=-1, keepdims=True)

    shape = (n_actions, n_states, n_states, n_observations)[:reward_places]
    return POMDP.from_arrays(
        rows(n_actions, n_states, n_states),
        rows(n_actions, n_states, n_observations),
        rng.choice([0.0, -1.0, 1 / 3, 1e-17, 123456.789e10], size=shape),
        initial_belief=rows(n_states),
        discount=float(rng.random()),
    )


@given(st.integers(0, 10**6), st.integers(2, 4))
def test_a_round_trip_is_exact(seed: int, reward_places: int) -> None:
    problem = random_problem(seed, reward_places)
    copy = rewritten(problem)
    assert (copy.states, copy.all_actions, copy.all_observations) == (
        problem.states,
        problem.all_actions,
        problem.all_observations,
    )
    assert copy.discount == problem.discount
    assert copy.initial_belief == problem.initial_belief
    for a in problem.all_actions:
        for s in problem.states:
            assert copy.successors(s, a) == problem.successors(s, a)
            assert copy.observation_distribution(s, a, None) == problem.observation_distribution(s, a, None)
            for t in problem.successors(s, a):
                for o in problem.observation_distribution(t, a, s):
                    assert copy.step_reward(s, a, t, o) == problem.step_reward(s, a, t, o)


def test_a_file_read_and_written_twice_stays_the_same() -> None:
    first, second = io.StringIO(), io.StringIO()
    write_pomdp(random_problem(5, 4), first)
    write_pomdp(read_pomdp(first.getvalue()), second)
    assert first.getvalue() == second.getvalue()


def corridor(**changes: object) -> POMDP:
    """Three cells in a row; the last one is terminal."""
    arguments: dict[str, object] = {
        "transition": lambda s, a: {(s[0], s[1] + 1): 0.75, s: 0.25},
        "observation": lambda s, a: {"end" if s[1] == 2 else "way": 1},
        "reward": lambda s, a, next_state: 10 if next_state[1] == 2 else -1,
        "initial_belief": {("row", 0): 1},
        "discount": 0.9,
        "terminal": [("row", 2)],
        "legal_actions": ["east"],
    }
    return POMDP(**(arguments | changes))  # type: ignore[arg-type]


def test_terminals_are_absorbing_and_names_that_are_no_words_become_comments(tmp_path) -> None:
    path = tmp_path / "corridor.pomdp"
    write_pomdp(corridor(), path)
    text = path.read_text(encoding="utf-8")
    assert (
        "states: 3\n# 0: ('row', 0)\n# 1: ('row', 1)\n# 2: ('row', 2)\nactions: east\nobservations: way end\n" in text
    )
    copy = read_pomdp(path)
    assert copy.successors(2, "east") == {2: 1}
    assert copy.expected_reward(2, "east") == 0
    assert copy.expected_reward(0, "east") == -1
    assert copy.expected_reward(1, "east") == 0.75 * 10 - 0.25
    assert copy.compiled.reward.tolist() == corridor().compiled.reward.tolist()


def test_names_that_are_numbers_or_odd_words_come_back() -> None:
    names = ["2", "0", "T", "a.b", "-"]
    problem = POMDP.from_arrays(np.eye(5)[None], np.eye(5)[None], np.arange(5.0)[None], states=names, actions=["R"])
    copy = rewritten(problem)
    assert copy.states == tuple(names)
    assert copy.all_actions == ("R",)
    assert [copy.expected_reward(s, "R") for s in names] == [0, 1, 2, 3, 4]
    one = POMDP.from_arrays([[[1.0]]], [[[1.0]]], [[0.0]], states=["7"], actions=["x y"], observations=["*"])
    assert (rewritten(one).states, rewritten(one).all_actions, rewritten(one).all_observations) == ((0,), (0,), (0,))


def test_fractions_that_are_decimals_come_back_exact() -> None:
    tenth = Fraction(1, 10)
    array = np.array([[[tenth, 1 - tenth], [Fraction(0), Fraction(1)]]], dtype=object)
    problem = POMDP.from_arrays(array, array, np.array([[3 * tenth, Fraction(-1)]], dtype=object), discount=1 - tenth)
    copy = rewritten(problem, exact=True)
    assert copy.discount == Fraction(9, 10)
    assert copy.successors(0, 0) == {0: tenth, 1: 1 - tenth}
    assert copy.expected_reward(0, 0) == Fraction(3, 10)


def test_a_state_that_is_never_reached_needs_no_observation() -> None:
    problem = POMDP(
        transition={("start", "go"): "end", ("end", "go"): "end"},
        observation={("end", "go"): "seen"},
        reward=lambda s, a: 1.0,
        initial_belief={"start": 1},
        legal_actions=["go"],
    )
    assert rewritten(problem).successors("start", "go") == {"end": 1}


UNWRITABLE = {
    "depend on the previous state": {"observation": lambda s, a, state: {state[1]: 1}},
    "legal actions by observation": {
        "legal_actions": lambda o: ["east"],
        "legal_by": "observation",
        "actions": ["east"],
    },
    "'jump', which is not legal in state": {"legal_actions": lambda s: ["east", "jump"] if s[1] == 0 else ["east"]},
    "got nan; expected a finite number": {"reward": lambda s, a: float("nan")},
    "a name of the problem's space": {"states": [("row", 0), ("row", 2)], "observations": ["way", "end"]},
}


@pytest.mark.parametrize("message", UNWRITABLE)
def test_what_the_format_cannot_say_is_refused_and_no_file_is_left(message: str, tmp_path) -> None:
    path = tmp_path / "no.pomdp"
    with pytest.raises(ModelError, match=message):
        write_pomdp(corridor(**UNWRITABLE[message]), path)
    assert not path.exists()


def test_arguments_in_the_other_order_are_refused():
    with pytest.raises(ModelError, match=r"write_pomdp: got 'out.pomdp'"):
        write_pomdp("out.pomdp", io.StringIO())
