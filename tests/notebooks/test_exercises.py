"""The notebooks' exercises: right is right, solutions solve, and wrong answers are told what is wrong."""

import importlib.util
import json
import re
from decimal import Decimal
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest
import sympy

from pomdp_hier import BayesUpdater, three_node
from pomdp_hier.hqs.guidance import paper_reward
from pomdp_hier.hqs.model import Descend, Node, SearchState, search_problem_from_guidance
from pomdp_hier.planning import solve
from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.problems import crying_baby, tiger

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def loaded():
    specification = importlib.util.spec_from_file_location("exercises", FOLDER / "exercises.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


exercises = loaded()


def descended(*guidance):
    """The belief that the item is below, after descending through nodes of these guidances."""
    names = [f"n{k}" for k in range(len(guidance) + 1)]
    eta = {a: {b: F(p), f"{b} beside": 1 - F(p)} for a, b, p in zip(names, names[1:], guidance, strict=False)}
    nodes = {"n0"} | {child for children in eta.values() for child in children}
    problem = search_problem_from_guidance(eta, {node: F(1, 2) for node in nodes}, root="n0")
    updater, belief = BayesUpdater(problem), problem.initial_belief
    for name in names[1:]:
        belief = updater.update(belief, Descend(), Node(name))
    return belief[SearchState(names[-1], 1)]


def heard(problem, action, *observations):
    """The belief after an action that is followed by each observation."""
    belief = problem.initial_belief
    for observation in observations:
        belief = BayesUpdater(problem).update(belief, action, observation)
    return belief


def descend_q(eta, r1, r2, b=1):
    """``Q(b, descend)`` of the three-node problem by value iteration of two steps, less what searching would get."""
    problem = three_node(eta, r0=-1, r1=r1, r2=r2, belief=b)
    return value_iteration(problem, 2).value(problem.initial_belief)


def half_belief(eta):
    problem = three_node(eta, belief=F(1, 2))
    updater = BayesUpdater(problem)
    start = problem.initial_belief
    return updater.update(start, Descend(), Node("c1"))[SearchState("c1", 1)], updater.evidence(
        start, Descend(), Node("c1")
    )


exact_tiger = tiger(accuracy=F(17, 20))
sure = {"sated": 1}

# Each right answer once more, by the framework and not by hand.
COMPUTED = {
    "1.1": lambda: descended(F(1, 3)),
    "1.2": lambda: descend_q(0.5, 1.0, 1.0),
    "1.3": lambda: sympy.solve(0.82 * (sympy.Symbol("r") + 1) - 1)[0],
    "2.1": lambda: half_belief(F(2, 3))[0],
    "2.2": lambda: half_belief(F(2, 3))[1],
    "2.3": lambda: descended(F(1, 2), F(2, 3), F(3, 4)),
    "3.1": lambda: paper_reward(3, 12),
    "3.2": lambda: descended(F(7, 10), F(2, 5)),
    "3.3": lambda: (paper_reward(3, 12) - -1) / 12,
    "4.1": lambda: descended(F(9, 10), F(4, 5)),
    "4.2": lambda: descend_q(0.95, paper_reward(30, 32), paper_reward(2, 32)),
    "4.3": lambda: paper_reward(32, 32),
    "5.1": lambda: heard(exact_tiger, "listen", "hear-left", "hear-left")["tiger-left"],
    "5.2": lambda: exact_tiger.reward(heard(exact_tiger, "listen", "hear-left"), "open-right"),
    "5.3": lambda: (100 - 1) / (100 + 10),
    "6.1": lambda: paper_reward(1, 2),
    "6.2": lambda: descended(F(3, 5), F(1, 2)),
    "6.3": lambda: 4 * (1 / 4) * (1 / 4 * (1 + paper_reward(1, 4)) - 1),
    "7.1": lambda: solve(tiger(accuracy=1.0), precision=1e-4).lower,
    "7.2": lambda: heard(exact_tiger, "listen", "hear-left", "hear-right")["tiger-left"],
    "7.3": lambda: -1 / (1 - 0.95),
    "8.1": lambda: BayesUpdater(crying_baby()).update(sure, "ignore", "crying")["hungry"],
    "8.2": lambda: 0.705308 + 0.04,
    "8.3": lambda: -1 / (1 - 0.75),
}


@pytest.fixture(autouse=True)
def forgotten():
    """No hint is remembered from another test."""
    exercises._given.clear()


def told(capsys, number, answer):
    exercises.check(number, answer)
    return capsys.readouterr().out


@pytest.mark.parametrize("number", exercises.EXERCISES)
def test_what_counts_as_right_is_what_the_framework_computes(number, capsys):
    assert told(capsys, number, float(COMPUTED[number]())).startswith(f"Exercise {number}: right")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_has_three_exercises_one_by_hand_with_solutions_that_solve_them(path, capsys):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    found = [k for k, text in enumerate(texts) if "answer = None\ncheck(" in text]
    numbers = [re.search(r'check\("(\d\.\d)", answer\)', texts[k])[1] for k in found]
    assert numbers == [number for number in exercises.EXERCISES if number[0] == path.name[0]]
    assert len(numbers) >= 3
    assert sum("*By hand.*" in texts[k - 1] for k in found) == 1
    for k, number in zip(found, numbers, strict=True):
        assert texts[k - 1].startswith(f"**{number}**")
        assert texts[k + 1].startswith("<details><summary>Solution</summary>")
        (answer,) = re.findall(r"`answer = ([^`]+)`", texts[k + 1])
        assert told(capsys, number, eval(answer, {"F": F})) == f"Exercise {number}: right\n"


@pytest.mark.parametrize("number", exercises.EXERCISES)
def test_each_wrong_answer_is_told_its_own_hint_and_then_further_steps(number, capsys):
    exercise = exercises.EXERCISES[number]
    for wrong, hint in exercise.hints.items():
        assert told(capsys, number, wrong) == f"Exercise {number}: not yet. {hint}\n"
    # A hint that was given is not given again, whatever the answer.
    wrong = next(iter(exercise.hints))
    for hint in (*exercise.steps, exercises._LAST, exercises._LAST):
        assert told(capsys, number, wrong) == f"Exercise {number}: not yet. {hint}\n"
    told(capsys, number, exercise.right)
    assert told(capsys, number, 1234.5) == f"Exercise {number}: not yet. {exercise.steps[0]}\n"


@pytest.mark.parametrize("number", exercises.EXERCISES)
def test_a_coarse_decimal_is_nearly_right_and_no_wrong_answer_with_a_hint_is(number, capsys):
    exercise = exercises.EXERCISES[number]
    right = float(exercise.right)
    coarse = right * 1.01 if right else 0.005
    nearly = f"Exercise {number}: nearly. Give three decimals, or a fraction such as F(1, 4).\n"
    hinted = any(abs(float(wrong) - coarse) < 1e-3 for wrong in exercise.hints)
    assert hinted or abs(coarse - right) < 5e-4 or told(capsys, number, coarse) == nearly


def test_a_decimal_of_a_third_is_nearly_a_third(capsys):
    assert told(capsys, "1.1", 0.33) == "Exercise 1.1: nearly. Give three decimals, or a fraction such as F(1, 4).\n"
    assert told(capsys, "1.1", 0.333) == "Exercise 1.1: right, nearly: exactly it is 1/3\n"
    assert told(capsys, "2.2", "0.667") == "Exercise 2.2: right, nearly: exactly it is 2/3\n"
    assert told(capsys, "3.1", 0.835) == "Exercise 3.1: right\n"
    assert told(capsys, "5.2", "\N{MINUS SIGN}6.5") == "Exercise 5.2: right\n"
    assert "in percent. Divide by 100" in told(capsys, "1.1", 33.3)
    assert "nearly. Give" in told(capsys, "4.2", -0.01)  # rounded to two decimals
    assert "not yet. That is the value of searching" in told(capsys, "4.2", 0)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_says_which_precision_it_wants(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    (said,) = [text for text in ("".join(cell["source"]) for cell in cells) if text.startswith("## Exercises")]
    assert "to three decimals or as a fraction such as `F(1, 4)`" in said


@pytest.mark.parametrize(
    "answer",
    [
        F(1, 3), 1 / 3, np.float32(1 / 3), Decimal("0.333333333"), sympy.Rational(1, 3), "1/3", 0.333333, " 1/3 ",
        "33.33333%", "33.33333 %", "0,333333",
    ],
)  # fmt: skip
def test_a_right_answer_is_right_in_any_number_type(capsys, answer):
    assert told(capsys, "1.1", answer) == "Exercise 1.1: right\n"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "replace None by your answer"),
        (0.3, "not yet. Write the numerator"),
        ("a third", "'a third' is not a number"),
        ("1/0", "'1/0' is not a number"),
        ([0.3], "is not a number"),
        ("%", "is not a number"),
        (10**400, "is not a number"),
    ],
)
def test_what_is_no_right_answer_is_told(capsys, answer, says):
    assert says in told(capsys, "1.1", answer)
