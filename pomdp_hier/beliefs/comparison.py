"""Comparison of two belief updaters over histories.

A *history* is a sequence of (action, observation) pairs from the initial belief. Along each history, the reference and
the candidate update their own beliefs. After a difference, the longer histories continue from the reference's belief,
so that every difference is measured by itself.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import check_integer, generator, is_one_of, same_arguments
from pomdp_hier._progress import slow_work
from pomdp_hier._text import brief, shown
from pomdp_hier.beliefs.updaters import CompleteUpdater, FunctionUpdater, as_updater
from pomdp_hier.errors import Argument, ModelError, ParameterError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_exact, is_nonnegative, is_symbolic, simplified
from pomdp_hier.pomdp.problem import POMDP, require_problem

History = tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class UpdaterComparison:
    """The absolute differences of two updaters, and the numbers of compared and skipped histories.

    Attributes:
        n_compared: The number of histories at whose end the two posteriors were compared.
        n_skipped: The number of histories skipped because of ``max_histories``; in the random mode also one per action
            that was not followed. Longer histories after them are skipped too, and not counted.
        depth: The length of the longest history.
        tolerance: The largest difference of equal numbers.
        max_difference: The largest difference of posterior probabilities; infinite if the candidate raised an error, or
            if the difference is an expression.
        max_evidence_difference: The largest difference of ``Pr(o | b, a)``; ``None`` if the candidate is a function.
        max_total_difference: The largest difference of the candidate's ``sum_o Pr(o | b, a) b'(s')`` from the
            prediction, by the law of total probability.
        first_history: The shortest history with a difference; ``None`` if they agree.
        reason: The difference there, as text.
        n_different: The number of histories at whose end posteriors or evidence differ by more than the tolerance.
        worst_history: The first history with the largest difference.
        worst_reason: The difference there, as text.

    Example:
        >>> from pomdp_hier import BayesUpdater
        >>> from pomdp_hier.problems import tiger
        >>> deaf = compare_updaters(BayesUpdater(tiger()), lambda b, a, o: b, tiger(), depth=1, tolerance=1e-9)
        >>> deaf.agrees, round(deaf.max_difference, 2), deaf.first_history
        (False, 0.35, (('listen', 'hear-left'),))
    """

    n_compared: int
    n_skipped: int
    depth: int
    tolerance: float
    max_difference: float
    max_evidence_difference: float | None
    max_total_difference: float
    first_history: History | None = None
    reason: str = field(default="", repr=False)
    n_different: int = 0
    worst_history: History | None = field(default=None, repr=False)
    worst_reason: str = field(default="", repr=False)

    @property
    def agrees(self) -> bool:
        """Whether no difference is above the tolerance."""
        return self.first_history is None

    def __str__(self) -> str:
        verdict = "agree on" if self.agrees else f"DISAGREE on {self.n_different:,} of"
        left_out = f"; at least {self.n_skipped:,} more were left out" if self.n_skipped else ""
        evidence = "not given" if self.max_evidence_difference is None else f"{self.max_evidence_difference:.3g}"
        lines = [
            f"The updaters {verdict} {self.n_compared:,} histories of up to {self.depth} steps{left_out}.",
            f"  largest difference of posteriors:  {self.max_difference:.3g}  (tolerance {self.tolerance:g})",
            f"  largest difference of evidence:    {evidence}",
            f"  law of total probability, off by:  {self.max_total_difference:.3g}",
        ]
        if self.first_history is not None:
            lines += [f"  first history:  {_steps(self.first_history)}", f"  {self.reason}"]
        if self.worst_history not in (None, self.first_history):
            lines += [f"  worst history:  {_steps(self.worst_history)}", f"  {self.worst_reason}"]
        return "\n".join(lines)


def _steps(history: History | None) -> str:
    return " -> ".join(f"{shown(a)}, {shown(o)}" for a, o in history or ()) or "(the initial belief)"


def compare_updaters(
    reference: Any,
    candidate: Any,
    problem: POMDP,
    *,
    depth: int,
    tolerance: float | None = None,
    max_histories: int = 10_000,
    mode: Literal["all", "random"] = "all",
    seed: int | np.random.Generator | None = None,
) -> UpdaterComparison:
    """Compare two updaters on the histories that are reachable from the problem's initial belief.

    A comparison of more than two seconds shows a progress bar on a terminal.

    Args:
        reference: The correct updater, usually `BayesUpdater`.
        candidate: The updater to check, or a function ``(belief, action, observation)``.
        problem: The problem.
        depth: The length of the longest history.
        tolerance: The largest absolute difference of equal numbers. It is required for floats; exact numbers must be
            equal by default.
        max_histories: The largest number of compared histories.
        mode: ``"all"`` compares the histories in order of length; ``"random"`` samples runs, for large problems, with
            uniform legal actions and with observations by their probability.
        seed: The seed or generator of the random mode.

    Raises:
        ParameterError: Depth or max_histories is below 1, the mode is unknown, or floats come without a tolerance.

    Example:
        >>> from pomdp_hier import BayesUpdater
        >>> from pomdp_hier.beliefs import TabularUpdater
        >>> from pomdp_hier.problems import tiger
        >>> problem = tiger()
        >>> result = compare_updaters(BayesUpdater(problem), TabularUpdater(problem), problem, depth=3, tolerance=1e-12)
        >>> result.agrees, result.n_compared, result.n_skipped
        (True, 258, 0)
    """
    check_integer("depth", depth, 1)
    check_integer("max_histories", max_histories, 1)
    if tolerance is not None and not is_nonnegative(tolerance):
        raise ParameterError(
            Argument("tolerance"), f": got {brief(tolerance)}; expected a number of at least 0, such as 1e-12, or None."
        )
    require_problem(problem, "compare_updaters, third argument")
    if not is_one_of(mode, "all", "random"):
        raise ParameterError(f"mode: got {brief(mode)}; expected 'all' or 'random'.")
    comparison = _Comparison(reference, candidate, problem, depth, tolerance, max_histories)
    comparison.check_numbers(problem.initial_belief.values())
    with slow_work("comparing updaters", "histories") as comparison.bar:
        if mode == "all":
            comparison.walk()
        else:
            comparison.sample(generator("seed", seed))
    return comparison.result()


@same_arguments(compare_updaters)
def assert_updaters_agree(*given: Any, **settings: Any) -> UpdaterComparison:
    """Return the result of `compare_updaters`; for tests.

    Args:
        reference, candidate, problem, settings: As for `compare_updaters`.

    Raises:
        AssertionError: The updaters differ; the message names the first history.

    Example:
        >>> from pomdp_hier import BayesUpdater
        >>> from pomdp_hier.problems import tiger
        >>> assert_updaters_agree(BayesUpdater(tiger()), lambda b, a, o: b, tiger(), depth=1, tolerance=1e-9)
        Traceback (most recent call last):
        AssertionError: The updaters DISAGREE on 2 of 6 histories of up to 1 steps.
          largest difference of posteriors:  0.35  (tolerance 1e-09)
          largest difference of evidence:    not given
          law of total probability, off by:  0
          first history:  'listen', 'hear-left'
          posterior of 'tiger-left': expected 0.85, got 0.5
    """
    agreement = compare_updaters(*given, **settings)
    if not agreement.agrees:
        raise AssertionError(str(agreement))
    return agreement


@dataclass(frozen=True)
class _Node:
    """The end of one history: the two beliefs, the last observation and its probability."""

    history: History
    reference: Belief
    candidate: Belief
    observation: Any = None
    evidence: Number = 1


class _Comparison:
    """The state of one comparison: counters, the largest differences, the first difference."""

    def __init__(
        self, reference: Any, candidate: Any, problem: POMDP, depth: int, tolerance: float | None, max_histories: int
    ) -> None:
        self.problem = problem
        self.reference: CompleteUpdater = as_updater(reference, problem)
        self.candidate: CompleteUpdater = as_updater(candidate, problem)
        self.is_function = candidate is not None and not hasattr(candidate, "evidence")
        # the candidate's own result: an invalid distribution is a difference, where its wrapper would raise
        self.function = self.candidate.call if isinstance(self.candidate, FunctionUpdater) else self.candidate.update
        self.depth, self.tolerance, self.max_histories = depth, tolerance, max_histories
        self.bar: tqdm[Any]
        self.n_compared = self.n_skipped = 0
        self.max_difference = self.max_evidence_difference = self.max_total_difference = 0.0
        self.first_history: History | None = None
        self.reason = ""
        self.different: set[History] = set()
        self.worst: tuple[float, History | None, str] = (0.0, None, "")

    def result(self) -> UpdaterComparison:
        return UpdaterComparison(
            n_compared=self.n_compared,
            n_skipped=self.n_skipped,
            depth=self.depth,
            tolerance=self.tolerance or 0.0,
            max_difference=self.max_difference,
            max_evidence_difference=None if self.is_function else self.max_evidence_difference,
            max_total_difference=self.max_total_difference,
            first_history=self.first_history,
            reason=self.reason,
            n_different=len(self.different),
            worst_history=self.worst[1],
            worst_reason=self.worst[2],
        )

    # --- which histories -----------------------------------------------------------------------------------------

    def walk(self) -> None:
        """Compare all histories breadth first up to the limit; then count the others."""
        start = self.problem.initial_belief
        queue = deque([_Node((), start, start)])
        while queue:
            node = queue.popleft()
            for action in self.problem.actions(node.reference, node.observation):
                nodes = self._step(node, action)
                if len(node.history) + 1 < self.depth:
                    queue.extend(nodes)

    def sample(self, rng: np.random.Generator) -> None:
        """Compare random runs up to the limit, or until 100 runs in a row have no new history."""
        start = self.problem.initial_belief
        root = _Node((), start, start)
        followed: dict[tuple[History, Any], list[_Node]] = {}
        met: dict[History, int] = {}
        stale = 0
        while self.n_compared < self.max_histories and stale < 100:
            before = self.n_compared
            node = root
            while len(node.history) < self.depth:
                actions = self.problem.actions(node.reference, node.observation)
                met[node.history] = len(actions)
                if not actions:
                    break
                action = actions[int(rng.integers(len(actions)))]
                step = (node.history, action)
                if step not in followed:
                    followed[step] = self._step(node, action)
                    if len(node.history) + 1 < self.depth:
                        met.update((child.history, 1) for child in followed[step])
                nodes = followed[step]
                if not nodes:
                    break
                cumulative = np.cumsum(
                    [1.0 if is_symbolic(child.evidence) else float(child.evidence) for child in nodes]
                )
                chosen = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
                node = nodes[min(int(chosen), len(nodes) - 1)]
            stale = stale + 1 if self.n_compared == before else 0
        self.n_skipped += sum(met.values()) - len(followed)

    # --- one step ------------------------------------------------------------------------------------------------

    def _step(self, node: _Node, action: Any) -> list[_Node]:
        """Compare the histories after a node and one action, up to the limit."""
        branches = list(self.reference.branches(node.reference, action))
        self.bar.update(len(branches))
        left = max(0, self.max_histories - self.n_compared)
        self.n_skipped += max(0, len(branches) - left)
        nodes: list[_Node] = []
        mixture: dict[Any, Number] = {}
        for observation, evidence, posterior in branches[:left]:
            history = (*node.history, (action, observation))
            self.n_compared += 1
            own_evidence, answer = self._answer(history, node.candidate, evidence)
            if answer is not None:
                for state, probability in answer.items():
                    mixture[state] = mixture.get(state, 0) + own_evidence * probability
            follows = posterior
            if answer is not None and self._agrees_on(history, posterior, answer):
                follows = _as_belief(answer, posterior)
            nodes.append(_Node(history, posterior, follows, observation, evidence))
        if len(nodes) == len(branches):
            self._compare_totals(node, action, mixture, len(branches))
        return nodes

    def _answer(
        self, history: History, belief: Belief, evidence: Number
    ) -> tuple[Number, Belief | Mapping[Any, Number] | None]:
        """Return the candidate's evidence and posterior; an invalid distribution is a difference, not an error."""
        action, observation = history[-1]
        try:
            own = evidence if self.is_function else self.candidate.evidence(belief, action, observation)
            answer: Any = self.function(belief, action, observation)
        except (ArithmeticError, LookupError, ValueError) as error:  # a ModelError is a ValueError
            self.max_difference = math.inf
            self._differ(history, math.inf, f"the candidate raised {type(error).__name__}: {error}")
            return evidence, None
        if not self.is_function:
            self._compare_evidence(history, evidence, own)
        if not isinstance(answer, (Belief, Mapping)):
            self.max_difference = math.inf
            self._differ(
                history, math.inf, f"the candidate returned {brief(answer)}, which is neither a Belief nor a mapping"
            )
            return own, None
        return own, answer

    def _agrees_on(self, history: History, expected: Belief, answer: Belief | Mapping[Any, Number]) -> bool:
        gap, state = self._gap(expected, answer)
        self.max_difference = max(self.max_difference, gap)
        if gap <= (self.tolerance or 0.0):
            return True
        got = answer.get(state, 0)
        self._differ(history, gap, f"posterior of {shown(state)}: {_in_words(expected[state], got)}")
        return False

    def _compare_evidence(self, history: History, expected: Number, got: Number) -> None:
        self.check_numbers((expected, got))
        gap = _size(got - expected)
        self.max_evidence_difference = max(self.max_evidence_difference, gap)
        if gap > (self.tolerance or 0.0):
            self._differ(history, gap, f"evidence: {_in_words(expected, got)}")

    def _compare_totals(self, node: _Node, action: Any, mixture: Mapping[Any, Number], n_branches: int) -> None:
        gap, state = self._gap(self.reference.predict(node.reference, action), mixture)
        self.max_total_difference = max(self.max_total_difference, gap)
        # evidence and posteriors may each be off by the tolerance, and rows of floats by the problem's
        allowed = max((1 + n_branches) * self.tolerance, self.problem.tolerance) if self.tolerance else 0.0
        if gap > allowed:
            self._part(
                (*node.history, (action, "(all observations)")),
                "law of total probability: the posteriors, weighted by their evidence, differ from the prediction of "
                f"{shown(state)} by {gap:.3g}",
            )

    def _gap(self, expected: Belief, answer: Belief | Mapping[Any, Number]) -> tuple[float, Any]:
        """Return the largest absolute difference, and the state where it is."""
        self.check_numbers(expected.values())
        self.check_numbers(answer.values())
        largest, where = 0.0, None
        for state in dict.fromkeys((*expected, *answer)):
            gap = _size(answer.get(state, 0) - expected[state])
            if gap > largest:
                largest, where = gap, state
        return largest, where

    def check_numbers(self, numbers: Any) -> None:
        """Raise an error for floats without a tolerance."""
        if self.tolerance is None:
            for number in numbers:
                if not is_exact(number):
                    raise ParameterError(
                        f"tolerance: got None for the float {brief(number)}; expected a tolerance, such as 1e-12. "
                        "Give one, or use fractions alone."
                    )

    def _differ(self, history: History, gap: float, reason: str) -> None:
        """Record a difference at the end of a history, and its size."""
        self.different.add(history)
        if gap > self.worst[0]:
            self.worst = gap, history, reason
        self._part(history, reason)

    def _part(self, history: History, reason: str) -> None:
        if self.first_history is None:
            self.first_history, self.reason = history, reason


def _size(difference: Number) -> float:
    """Return the absolute value; infinite for NaN, and for an expression that does not simplify to a number."""
    difference = simplified(difference)
    if is_symbolic(difference) or difference != difference:
        return math.inf
    return abs(float(difference)) or (0.0 if difference == 0 else math.ulp(0.0))


def _in_words(expected: Number, got: Number) -> str:
    """Return text with both numbers, and with the difference of expressions."""
    values = f"expected {shown(simplified(expected), 60)}, got {shown(simplified(got), 60)}"
    difference = got - expected
    return f"{values}, apart by {shown(simplified(difference), 60)}" if is_symbolic(difference) else values


def _as_belief(answer: Belief | Mapping[Any, Number], otherwise: Belief) -> Belief:
    """Return the answer, which agrees within the tolerance, as a belief from which to continue."""
    if isinstance(answer, Belief):
        return answer
    try:
        return Belief.normalized(answer)
    except ModelError:  # a probability just below 0
        return otherwise
