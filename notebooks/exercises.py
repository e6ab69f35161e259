"""The exercises of the notebooks: correct answers, and hints for common wrong ones."""

from collections.abc import Mapping
from fractions import Fraction as F
from math import isclose
from typing import Any, NamedTuple

__all__ = ["EXERCISES", "check"]


class Exercise(NamedTuple):
    """The correct answer, a hint per common wrong one, and the steps to the answer, for any other."""

    right: F | float
    hints: Mapping[F | float, str]
    steps: tuple[str, ...]


_ANY = 5e-4  # an answer is right to three decimals
_NEAR = 0.02  # as is one to two decimals
_LAST = "The solution is below this cell."
_given: dict[str, list[str]] = {}  # the hints that each exercise has given

EXERCISES = {
    "1.1": Exercise(
        F(1, 3),
        {
            F(1, 9): "That is p(<c1,1> | <c0,1>), the numerator. Divide by the probability of seeing c1.",
            F(2, 3): "That is the belief that the item is NOT there.",
            1: "It was certain at the root; descending may take the wrong branch.",
        },
        (
            "Write the numerator of Bayes' rule for each of <c1,1> and <c1,0>, then divide by their sum.",
            "The numerators are eta^2 b for <c1,1> and eta (1 - eta b) for <c1,0>, with b = 1.",
        ),
    ),
    "1.2": Exercise(
        0,
        {
            1: "That would be correct if the searcher always reached the correct shelf.",
            F(1, 2): "Both of the two steps can fail: the move (eta) and the belief about it (eta again).",
            -1: "Sum over both shelves: each is reached with probability 1/2.",
        },
        (
            "For each shelf, multiply the probability to come there, the belief there and r + 1. Add both, and subtract 1.",
            "Each shelf gives 1/2 * 1/2 * 2.",
        ),
    ),
    "1.3": Exercise(
        F(9, 41),
        {
            F(19, 81): "The other shelf, reached with probability 1/10, can hold the item as well: add (1 - eta)^2.",
            F(1, 9): "The searcher has to reach the shelf (eta), and the item has to be there (eta again).",
            F(50, 41): "That is r + 1.",
        },
        (
            "Set eta^2 (r + 1) + (1 - eta)^2 (r + 1) - 1 equal to the value of searching, 0.",
            "Then (0.81 + 0.01)(r + 1) = 1.",
        ),
    ),
    "2.1": Exercise(
        F(1, 3),
        {
            F(2, 9): "That is the numerator, eta^2 b. Divide by the evidence, eta.",
            F(2, 3): "That would be correct if the item were certain to be below: multiply by b.",
            F(4, 9): "That is eta^2; b is missing, and the division by the evidence.",
        },
        (
            "Write the numerator of Bayes' rule for each of <c',1> and <c',0>, then divide by their sum.",
            "The numerators are eta^2 b and eta (1 - eta b), and their sum is eta.",
        ),
    ),
    "2.2": Exercise(
        F(2, 3),
        {
            F(1, 3): "That is the posterior. The evidence adds the numerators of both states, and b drops out.",
            F(2, 9): "That is the numerator for <c',1> alone; add the one for <c',0>.",
        },
        (
            "The probability is the sum of the two numerators of exercise 2.1.",
            "The numerators are 2/9 and 4/9.",
        ),
    ),
    "2.3": Exercise(
        F(1, 4),
        {
            F(23, 12): "Multiply the three, rather than add them.",
            F(1, 16): "Each step multiplies by eta, not by eta squared: the evidence divides one of them out.",
        },
        (
            "Each step multiplies the belief by its guidance.",
            "It is 1/2 * 2/3 * 3/4.",
        ),
    ),
    "3.1": Exercise(
        0.8347,
        {
            0.75: "That would be the linear reward, 1 - |c|/N.",
            0.1653: "That is the loss; subtract it from 1.",
            0.284: "That is exp(1/4) - 1; divide it by e - 1 and subtract it from 1.",
        },
        (
            "Put |c|/N = 3/12 into the formula of the reward.",
            "The exponential of 0.25 is 1.2840, and e - 1 is 1.7183.",
        ),
    ),
    "3.2": Exercise(
        F(7, 25),
        {
            F(7, 10): "That is the belief at node 20. One more step multiplies by its guidance.",
            F(11, 10): "Multiply the two, rather than add them.",
            F(3, 5): "That is the belief in the other child.",
            F(2, 5): "That would be correct if the item were certain to be below node 20.",
        },
        (
            "By the last notebook the belief is multiplied by the guidance at each step.",
            "It is 0.7 * 0.4: below node 17 is an only child, with a guidance of 1.",
        ),
    ),
    "3.3": Exercise(
        0.1529,
        {
            1.8347: "That is the loss of the one item. HQS is the mean over twelve.",
            0.0696: "The value of a lost item is -1, not 0.",
            -0.1529: "By how much it falls is asked: the number is positive.",
        },
        (
            "HQS is the mean over twelve items. One value falls from the reward of exercise 3.1 to -1.",
            "It is (0.8347 + 1) / 12.",
        ),
    ),
    "4.1": Exercise(
        F(18, 25),
        {
            F(17, 10): "Multiply the two, rather than add them.",
            F(4, 5): "That would be correct if the item were certain to be below the first node.",
            F(81, 100)
            * F(16, 25): "Each step multiplies by the guidance once: the evidence divides the other one out.",
        },
        (
            "By notebook 2 the belief is multiplied by the guidance at each step.",
            "It is 0.9 * 0.8.",
        ),
    ),
    "4.2": Exercise(
        -0.0061,
        {
            0.0411: "Reaching the node has probability eta, and the item is there with probability eta: eta squared.",
            -0.0110: "The other child, reached with probability 0.05, can hold the item as well.",
            0.9939: "Subtract 1, the cost of a failed search.",
            0: "That is the value of searching at the root. Descending is close to it, and the decision needs the difference.",
        },
        (
            "Q = eta^2 (r1 + 1) + (1 - eta)^2 (r2 + 1) - 1, with b = 1: which reward belongs to the hub?",
            "It is 0.9025 * 1.0958 + 0.0025 * 1.9625 - 1.",
        ),
    ),
    "4.3": Exercise(
        0,
        {
            -1: "That is the value of descending. The hindsight policy need not descend.",
            1: "The value is near 1 only for an item found in a singleton; this one is never reached.",
        },
        (
            "The hindsight policy knows where a descent leads, and takes the better of searching here and descending.",
            "At the root the cluster is everything: what is its reward?",
        ),
    ),
    "5.1": Exercise(
        F(289, 298),
        {
            F(17, 20): "That is after the first time. Update once more.",
            F(289, 400): "That is the numerator, 0.85 squared. Divide by the sum of both numerators.",
            F(9, 298): "That is the probability of the tiger on the right.",
        },
        (
            "Write the numerator of Bayes' rule for each door after both sounds, then divide by their sum.",
            "The numerators are 0.85^2 and 0.15^2; the uniform belief cancels.",
        ),
    ),
    "5.2": Exercise(
        F(-13, 2),
        {
            F(-167, 2): "That is for opening the left door, where the tiger probably is.",
            F(17, 2): "Subtract the cost if the tiger is on the right.",
            -15: "Add the reward if the tiger is on the left.",
        },
        (
            "Weight the reward of each state by its probability: 10 for the tiger on the left, -100 for the right.",
            "It is 0.85 * 10 - 0.15 * 100.",
        ),
    ),
    "5.3": Exercise(
        F(9, 10),
        {
            F(10, 11): "There the value of opening is 0. The value of listening is -1, so that less is sufficient.",
            F(1, 10): "That is the probability of the tiger on the right.",
        },
        (
            "Set 10 p - 100 (1 - p) equal to -1, the reward of listening.",
            "Then 110 p = 99.",
        ),
    ),
    "6.1": Exercise(
        0.6225,
        {0.5: "That would be the linear reward, 1 - |c|/N.", 0.3775: "That is the loss; subtract it from 1."},
        (
            "Put |c|/N = 1/2 into 1 - (exp(|c|/N) - 1) / (e - 1).",
            "The exponential of 0.5 is 1.6487, and e - 1 is 1.7183.",
        ),
    ),
    "6.2": Exercise(
        F(3, 10),
        {
            F(11, 10): "Multiply the two, rather than add them.",
            F(1, 2): "That would be correct if the item were certain to be below the first node.",
            F(9, 100): "Each step multiplies by the guidance once: the evidence divides the other one out.",
        },
        (
            "By notebook 2 the belief is multiplied by the guidance at each step.",
            "It is 0.6 * 0.5.",
        ),
    ),
    "6.3": Exercise(
        -0.5413,
        {
            0.8347: "That is the value for certain guidance. Here each child has probability 1/4, and so has the item in it.",
            -0.8853: "Each of the four children can be reached: add all four terms.",
            0.4587: "Subtract 1, the cost of a failed search.",
        },
        (
            "Add for each child: the probability to come there, the belief there, and r + 1. Then subtract 1.",
            "It is 4 * 1/16 * (r + 1) - 1, with the reward r of a cluster of a quarter, 0.8347.",
        ),
    ),
    "7.1": Exercise(
        8.5 / (1 - 0.95**2),
        {
            8.5 / 0.05: "A round takes two steps: discount by 0.95 squared.",
            9 / (1 - 0.95**2): "The door is opened a step later: discount the 10.",
            200.0: "Listening costs 1 every other step.",
        },
        (
            "Let v be the value before listening: v = -1 + 0.95 * 10 + 0.95^2 v.",
            "Then v = 8.5 / (1 - 0.9025).",
        ),
    ),
    "7.2": Exercise(
        F(1, 2),
        {
            F(17, 20): "That is after the first sound. The second is evidence against it.",
            F(289, 298): "That is after two sounds from the same side.",
        },
        (
            "Write the numerator of Bayes' rule for each door after both sounds, then divide by their sum.",
            "The numerators are 0.85 * 0.15 and 0.15 * 0.85.",
        ),
    ),
    "7.3": Exercise(
        -20,
        {
            -1: "That is one step. The horizon is infinite, with discounted rewards.",
            F(-20, 19): "Divide by 1 - 0.95, not by 0.95.",
            -19: "The first step is not discounted.",
        },
        (
            "Every step has the reward -1, and each later one is discounted by 0.95 once more: a geometric series.",
            "It is -1 / (1 - 0.95).",
        ),
    ),
    "8.1": Exercise(
        F(8, 17),
        {
            F(1, 10): "That is before the crying is heard. Weight it by the probability of crying in each state.",
            F(2, 25): "That is the numerator. Divide by the probability of crying, hungry or not.",
            F(8, 9): "A hungry baby is rare: weight 0.8 and 0.1 by the predicted belief, 0.1 and 0.9.",
        },
        (
            "First predict: how probable is it that a sated baby is hungry one step later? Then weight by the crying.",
            "The numerators are 0.1 * 0.8 for hungry and 0.9 * 0.1 for sated.",
        ),
    ),
    "8.2": Exercise(
        0.7453,
        {
            0.7053: "That is in the third edition. The last step of every run costs 0.04 less in the fourth.",
            0.6653: "The last step costs less, not more.",
        },
        (
            "The editions differ in the last move alone: in the fourth it no longer costs 0.04.",
            "It is 0.7053 + 0.04.",
        ),
    ),
    "8.3": Exercise(
        -4,
        {
            -20: "That is for a discount of 0.95.",
            -1: "That is one step. The horizon is infinite, with discounted rewards.",
        },
        (
            "Every step has the reward -1, and each later one is discounted by 0.75 once more: a geometric series.",
            "It is -1 / (1 - 0.75).",
        ),
    ),
}


def _of_text(answer: str) -> F:
    """Return the number of a text: a fraction, a decimal with point or comma, or percent."""
    text = answer.strip().replace("\N{MINUS SIGN}", "-").replace(",", ".")
    return F(text.removesuffix("%").strip()) / 100 if text.endswith("%") else F(text)


def check(exercise: str, answer: Any) -> None:
    """Print whether an answer is right to three decimals, or a hint that was not given before.

    Any number type is accepted: 1/3, F(1, 3), "1/3", "33.3 %" and 0.333 are the same.
    """
    right, hints, steps = EXERCISES[exercise]
    if answer is None:
        print(f"Exercise {exercise}: replace None by your answer")
        return
    try:
        number = float(_of_text(answer) if isinstance(answer, str) else answer)
    except (TypeError, ValueError, ArithmeticError):
        print(f"Exercise {exercise}: {answer!r} is not a number; write one, such as 0.25 or F(1, 4)")
        return
    if isclose(number, right, rel_tol=_ANY, abs_tol=_ANY):
        _given.pop(exercise, None)
        exact = f", nearly: exactly it is {right}" if isinstance(right, F) and abs(number - right) > 1e-6 else ""
        print(f"Exercise {exercise}: right{exact}")
        return
    told = _given.setdefault(exercise, [])
    own = [text for wrong, text in hints.items() if isclose(number, wrong, rel_tol=_ANY, abs_tol=_ANY)]
    coarse = isclose(number, right, rel_tol=_NEAR) or (number and isclose(number, round(float(right), 2), abs_tol=1e-9))
    if not own and (coarse or (right == 0 and abs(number) < _NEAR / 2)):
        print(f"Exercise {exercise}: nearly. Give three decimals, or a fraction such as F(1, 4).")
        return
    if not own and 0 < right < 1 and isclose(number, 100 * right, rel_tol=_NEAR):
        print(f"Exercise {exercise}: in percent. Divide by 100, or write it as text, such as '25%'.")
        return
    hint = next((text for text in (*own, *steps) if text not in told), _LAST)
    told.append(hint)
    print(f"Exercise {exercise}: not yet. {hint}")
