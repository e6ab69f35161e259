"""Large .pomdp files are read in blocks: the content and the errors are those of the reader of the whole grammar."""

import random
from typing import Any

import numpy as np
import pytest

from pomdp_hier.errors import PomdpFileError
from pomdp_hier.pomdp.pomdp_file import blocks, read_pomdp
from tests.pomdp.test_pomdp_file_errors import FAULTS

PREAMBLE = "discount: 0.5\nvalues: cost\nstates: a b T\nactions: go stay\nobservations: x y\nstart: a\n"
REST = "T: * uniform\nO: * uniform\n"


def arrays(text: str, **options: Any) -> list[Any]:
    """What a file says: its spaces, T, Z, the mean rewards and those of every step."""
    problem = read_pomdp(text, **options)
    compiled = problem.compiled
    matrices = [m.toarray() for m in (*compiled.transition, *compiled.observation)]
    steps = [
        problem.step_reward(s, a, t, o)
        for s in problem.states
        for a in problem.all_actions
        for t in problem.states
        for o in problem.all_observations
    ]
    spaces = (problem.states, problem.all_actions, problem.all_observations, problem.discount)
    return [spaces, steps, *(m.tobytes() for m in matrices), compiled.reward.tobytes()]


def message(text: str, **options: Any) -> str:
    with pytest.raises(PomdpFileError) as caught:
        read_pomdp(text, **options)
    return str(caught.value)


@pytest.fixture(params=[(1, 0), (60, 0), (60, 40), (400, 14)], ids=str)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Blocks of a few characters, and arrays for short runs; `off` reads with the whole grammar alone."""

    class Switch:
        def off(self) -> None:
            monkeypatch.setattr(blocks, "_SIZE", 10**9)

        def on(self) -> None:
            monkeypatch.setattr(blocks, "_SIZE", request.param[0])
            monkeypatch.setattr(blocks, "_SHORT", request.param[1])

    return Switch()


@pytest.mark.parametrize("normalize", [False, True])
def test_errors_keep_their_place(small: Any, normalize: bool) -> None:
    for text, *_ in FAULTS.values():
        for whole in (text + "\n", text.replace(REST, "T: go\n1 0 0\n0 1 0\n0 0 1\nT: stay identity\nO: * uniform\n")):
            found = []
            for switch in (small.off, small.on):
                switch()
                try:
                    found.append(arrays(whole, normalize=normalize))
                except PomdpFileError as error:
                    found.append([str(error)])
            assert found[0] == found[1], whole


def statement(draw: random.Random) -> str:
    """One statement in one of the forms that a file may have, regular or not."""
    action = draw.choice(["go", "stay", "0", "1", "*"])
    state, other = (draw.choice(["a", "b", "T", "0", "2", "02", "*"][: draw.choice([3, 7])]) for _ in range(2))
    observation = draw.choice(["x", "y", "1", "*"])
    number = draw.choice(["0.1", "1", "-0", "1.", ".25e0", "+0.5", "0", "1e-320", "- 3", "0.30000000000000004"])
    weights = [draw.choice(["0", "0.1", "7.5e-1", "0.3"]) for _ in range(9)]
    weights[0], weights[4] = "1e-3", "1E0"
    reward = draw.choice([number, "-1.5", ": 2"])
    return draw.choice(
        [
            f"T: {action} : {state} : {other} {number.lstrip('- ')}",
            f"T: {action} : {state}\n{' '.join(weights[:3])}",
            f"T: {action}\n{' '.join(weights)}",
            f"T: {action} : {state} uniform",
            f"T : {action}:{state} : {other} 0.5",
            f"T: {action} identity",
            f"  T: {action} : {state} : {other} 0.25 # T: go",
            f"O: {action} : {state} : {observation} {number.lstrip('- ')}",
            f"O: {action} : {state}\n{' '.join(weights[:2])}",
            f"O: {action}\n{' '.join(weights[:6])}",
            f"R: {action} : {state} : {other} : {observation} {reward}",
            f"R: {action} : {state} : {other} : {observation} -2.5e1",
            f"R: {action} : {state} : {other} 1 2",
            f"R: {action} : {state}\n1 2\n3 4\n5 6",
        ]
    )


@pytest.mark.parametrize("observed", [True, False])
def test_statements_in_any_order_give_the_same_arrays(small: Any, observed: bool) -> None:
    draw = random.Random(5)
    preamble = PREAMBLE if observed else PREAMBLE.replace("observations: x y\n", "")
    for _ in range(8):
        lines = [statement(draw) for _ in range(draw.choice([5, 60]))]
        if not observed:
            lines = [line for line in lines if line[0] == "T"] + [f"R: go : {s} : * : * 3.5" for s in "abT"] * 2
        end = [f"T: {a} : {s} : a 0.5" for a in ("go", "stay") for s in "abT"]  # every row has a sum
        end += [f"O: * : {s} : x 0.5" for s in "abT"] * observed
        text = preamble + REST * observed + draw.choice(["\n", "\n\n", " \n"]).join([*lines, *end]) + "\n"
        found = []
        for switch in (small.off, small.on):
            switch()
            found.append(arrays(text, normalize=True))
        assert found[0] == found[1], text


def test_large_statements_are_the_fractions_that_they_say(small: Any) -> None:
    numbers = [["0.125", "0.5", "0.375"], ["0", "1", "0"], ["0.1", "0.2", "0.7"]]
    matrix = "\n".join("  ".join(row) for row in numbers)
    text = f"{PREAMBLE}T: * identity\nT: stay\n{matrix}\nO: * uniform\nR: stay : * : * : * 3\n"
    small.on()
    floats, fractions = read_pomdp(text), read_pomdp(text, exact=True)
    for state, row in zip("abT", numbers, strict=True):
        exact = fractions.successors(state, "stay")
        assert floats.successors(state, "stay") == {s: float(p) for s, p in exact.items()}
        assert list(exact.values()) == [p for p in map(type(exact[next(iter(exact))]), row) if p]
    assert floats.expected_reward("a", "stay") == -3


def test_a_wrong_large_matrix_has_its_place(small: Any) -> None:
    for row, place in (("0.5 0.5 0 0", "10:5"), ("0.5 0.25 0", "8:1"), ("0.5 nan 0", "8:5"), ("1 0", "11:1")):
        text = f"{PREAMBLE}T: go\n{row}\n1 0 0\n0 0 1\nT: stay identity\nO: * uniform\n"
        small.off()
        expected = message(text)
        small.on()
        assert message(text) == expected
        assert expected.startswith(f"<text>:{place}: "), expected


def test_sections_after_the_tables_count(small: Any) -> None:
    small.on()
    text = "states: 2\nactions: 1\nobservations: 1\nT: 0 identity\nO: 0 uniform\nR: 0 : 0 : * : * 1\n"
    problem = read_pomdp(f"{text}discount: 0.25\nstart: 1\n")
    assert problem.discount == 0.25
    assert problem.initial_belief[1] == 1
    assert np.array_equal(problem.compiled.reward, [[1, 0]])


def test_errors_that_later_statements_hide_are_found(small: Any) -> None:
    for hidden in (
        "T: go : a : b 1.5",
        "O: go : a : x 2",
        "R: go 5 a : b : x 1",
        "T: go 1 a : b 0.5",
        "R: go : a : b 1 x 2",
    ):
        text = f"{PREAMBLE}{REST}{(hidden + chr(10)) * 30}{REST}R: * : * : * : * 1\n"
        small.off()
        expected = message(text)
        small.on()
        assert message(text) == expected
        assert expected.startswith("<text>:9:")


def test_a_name_at_the_begin_of_a_line_is_no_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    preamble = "discount: 0.5\nvalues: reward\nstates: a b T\nactions: 2\nobservations: 9\n"
    matrix = "0 1 0 1 0 0 0 0 1"  # of rewards by observation, and not of action 1
    text = f"{preamble}T : * identity\nO : * uniform\n" + f"R: 0 :\nT: 1 {matrix}\n" * 30
    monkeypatch.setattr(blocks, "_SIZE", len(text) - 1)
    problem = read_pomdp(text)
    assert problem.successors("a", 1) == {"a": 1}
    assert [problem.step_reward("T", 0, "b", o) for o in range(9)] == list(map(int, matrix.split()))


@pytest.mark.parametrize("wrong", ["T: go : a : b abc", "O: go : a : x 0.25", "T: go : c : b 1"])
def test_an_error_is_found_without_reading_the_whole_file_again(
    small: Any, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    rows = "T: go : a : b 0.25\nT: go : b : a 0.25\n" * 12
    text = f"{PREAMBLE.replace('start: a', '')}{REST}{rows}{wrong}\n{REST[:15]}R: * : * : * : * 1\n"
    small.off()
    expected = message(text)
    small.on()
    monkeypatch.setattr(blocks, "Reader", None)  # that of the whole grammar
    assert message(text) == expected
