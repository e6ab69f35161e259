"""check_problem: a list of the issues of a problem."""

import random
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pomdp_py

from pomdp_hier._arguments import is_real, unexpected
from pomdp_hier._progress import slow_work
from pomdp_hier._text import brief
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.from_pomdp_py import ForeignObservation, ForeignTransition
from pomdp_hier.pomdp.models import (
    FAILED,
    MODEL_ERRORS,
    Finding,
    IssueList,
    Location,
    ModelIssue,
    ObservationModel,
    TransitionModel,
)
from pomdp_hier.pomdp.numeric import (
    Number,
    is_finite,
    is_nonnegative,
    is_number,
    is_symbolic,
    nearly_equal,
    positive_part,
    total,
    unquoted,
)
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.spaces import nearest

_N_SAMPLES = 200  # samples per row, for the first rows of models with a sample() method
_MOST_ROWS = 1_000
_MOST_COMPARED = 200  # states that are compared with each other
_FEWER_SAMPLES = 50
_FOREIGN = (ForeignTransition, ForeignObservation)
_REMEDY = "expected the same. Override distribution() alone."
_FOREIGN_REMEDY = "expected the same. Change sample() or probability(), or count samples: from_agent(n_samples=1000)."
_MAX_EXPANSIONS = 200_000  # the largest number of state-action pairs in the search for sets of possible states


def _listed(what: str, name: Any, space: Collection[Any]) -> str:
    """Return the remedy for a name that is not in the listed space."""
    return f"expected one of {len(space)} listed names. List the {what}, or use {nearest(name, space) or 'another'}."


def check_problem(problem: POMDP, tolerance: float | None = None) -> list[ModelIssue]:
    """List the errors of a problem; an empty list if there are none.

    It asks the models about each listed or reachable state, under each possible action. The table of `ModelIssue` has
    all kinds of error; an error that a model raises is one of them. Legal actions are compared within each set of
    states that one history leaves possible, over at most 200,000 steps from such states.

    Args:
        problem: The problem to check.
        tolerance: The largest distance of a row's sum from 1, the problem's tolerance by default; exact numbers must
            sum to 1.

    Example:
        >>> leaky = POMDP(transition=lambda s, a: {"a": 0.5, "b": 0.4}, observation=lambda s, a: "dark",
        ...               reward=lambda s, a: 0, initial_belief={"a": 1}, legal_actions=["go"])
        >>> for issue in check_problem(leaky):
        ...     print(issue)
        row-sum: transition from 'a' under 'go': got 0.9; expected 1. Divide the row by its sum, if it has weights.
        row-sum: transition from 'b' under 'go': got 0.9; expected 1. Divide the row by its sum, if it has weights.
    """
    require_problem(problem, "check_problem")
    if tolerance is not None and not (is_real(tolerance) and tolerance >= 0):
        raise unexpected("tolerance", tolerance, "a number of at least 0", " Use 1e-9, for example.")
    checker = _Checker(problem, problem.tolerance if tolerance is None else tolerance)
    state = random.getstate()
    try:
        random.seed(0)  # models sample with Python's global generator
        with warnings.catch_warnings(), checker.bar:
            warnings.simplefilter("ignore")
            checker.walk()
    finally:
        random.setstate(state)
    return checker.issues


class _Checker(IssueList):
    """A breadth-first walk over a problem that collects its issues."""

    def __init__(self, problem: POMDP, tolerance: float) -> None:
        super().__init__()
        self.problem = problem
        self.tolerance = tolerance
        states, _, observations = problem.given_spaces
        self.state_space = None if states is None else frozenset(states)
        self.observation_space = None if observations is None else frozenset(observations)
        self.states: dict[Any, None] = {}
        self.terminal: set[Any] = set()
        self.uses_state = problem.observation.uses_state
        self.legal_differs = problem.legal_by == "state" and problem.legal_everywhere is None
        self.uses_observation = problem.reward_model.uses_observation
        self._sensed: dict[tuple[Any, Any, Any], Mapping[Any, Number]] = {}
        # the possible next states per (state, action), each with its possible observations
        self._outcomes: dict[tuple[Any, Any], list[tuple[Any, tuple[Any, ...]]]] = {}
        self._legal: dict[Any, tuple[Any, ...]] = {}
        self._left: set[Any] = set()  # states that some action leaves
        self._rows_sampled = 0
        self._first_states: list[Any] = []
        self.bar = slow_work("checking", "states", None if states is None else len(states))

    # --- the walk ------------------------------------------------------------------------------------------------

    def walk(self) -> None:
        problem = self.problem
        self._start()
        given = problem.given_spaces[0]
        self.states = dict.fromkeys(given or problem.initial_belief.support)
        queue = list(self.states)
        for state in queue:  # grows while it is walked
            self.bar.update()
            self._compared(state)
            is_terminal = self.ask(Location("terminal({})", state), problem.is_terminal, state)
            is_terminal = is_terminal is True
            if is_terminal:
                self.terminal.add(state)
            actions = self._actions(state, is_terminal)
            self._legal[state] = tuple(actions)
            for action in actions:
                if is_terminal:
                    self._terminal(state, action)
                    continue
                for next_state in self._step(state, action):
                    if given is None and next_state not in self.states:
                        self.states[next_state] = None
                        queue.append(next_state)
            if len(self.states) > problem.max_states:
                self.add(
                    "too-many-states",
                    "what can be reached from the initial belief",
                    len(self.states),
                    f"expected at most {problem.max_states:,}. Compare states by fields, or pass a larger max_states.",
                )
                return
        self._terminals()
        self._legal_within_one_observation()

    def _terminals(self) -> None:
        """Check that listed terminal states exist, and find other states that seem to be terminal."""
        listed = self.problem.listed_terminal
        for state in listed or ():
            if state not in self.states:
                near = nearest(state, self.states)
                remedy = f"Use {near}, or remove it" if near else "Remove it, or list it among the states"
                self.add("not-in-space", "terminal", state, f"expected a state that can be reached. {remedy}.")
        if listed == ():
            return
        ends = [s for s in self.states if s not in self._left and s not in self.terminal and self._legal.get(s)]
        for state in filter(self._is_entered, ends):
            rewards = [(self._kept_reward(state, action), action) for action in self._legal[state]]
            reward, action = next((pair for pair in rewards if pair[0]), (0, None))
            if reward:
                self.add(
                    "possible-terminal",
                    Location("state {}", state),
                    Finding(f"a reward of {brief(reward)} per {brief(action)} in a state that no action leaves"),
                    "expected a terminal state. List it in terminal, or pass terminal=[] if its rewards continue.",
                )

    def _is_entered(self, state: Any) -> bool:
        """Return whether another state leads to this one."""
        ask = self.problem.transition.distribution
        pairs = ((s, action) for s in self._left for action in self._legal[s])
        flows = (self.ask(Location("transition from {} under {}", *pair), ask, *pair) for pair in pairs)
        return any(isinstance(flow, (Mapping, Belief)) and flow.get(state, 0) != 0 for flow in flows)

    def _kept_reward(self, state: Any, action: Any) -> Number:
        """Return a reward of staying in the state that is not 0; 0 if there is none."""
        seen = self._observations(state, action, state) if self.uses_observation else (None,)
        for observation in seen:
            try:
                reward = self.problem.reward_model.of_step(state, action, state, observation)
            except MODEL_ERRORS:
                continue
            if is_finite(reward) and reward != 0:
                return reward
        return 0

    def _start(self) -> None:
        for state in self.problem.initial_belief:
            if self.state_space is not None and state not in self.state_space:
                self.add("not-in-space", "initial belief", state, _listed("state", state, self.state_space))
        self._sum("initial belief", self.problem.initial_belief)

    def _actions(self, state: Any, is_terminal: bool) -> Iterable[Any]:
        location = Location("legal_actions({})", state)
        actions = self.ask(location, self.problem.possible_actions, state)
        if actions is FAILED:
            return ()
        if not actions and not is_terminal:
            self.add(
                "no-legal-action", location, Finding("none"), "expected an action. Make the state terminal, or add one."
            )
        listed = self.problem.given_spaces[1]
        for action in actions:
            if listed is not None and action not in listed:
                self.add("not-in-space", location, action, _listed("action", action, listed))
        return tuple(actions)

    def _step(self, state: Any, action: Any) -> Iterable[Any]:
        """Check one state and action; return the next states of positive probability."""
        problem = self.problem
        location = Location("transition from {} under {}", state, action)
        flow = self._row(location, self.state_space, problem.transition.distribution, state, action)
        self._again(location, flow, state, action)
        self._samples(location, problem.transition, TransitionModel, flow, state, action)
        reached = []
        for next_state, probability in flow.items():
            if probability == 0:
                continue
            reached.append(next_state)
            seen = self._observations(next_state, action, state)
            if self.legal_differs:
                self._outcomes.setdefault((state, action), []).append((next_state, tuple(positive_part(seen))))
            for observation in seen if self.uses_observation else (None,):
                self._reward(state, action, next_state, observation)
        if len(reached) != 1 or reached[0] != state:
            self._left.add(state)
        return reached

    # --- rows ----------------------------------------------------------------------------------------------------

    def _row(
        self, location: Location, space: frozenset[Any] | None, function: Callable[..., Any], *arguments: Any
    ) -> Mapping[Any, Number]:
        """Return the distribution of a model after its checks, without invalid entries."""
        row = self.ask(location, function, *arguments)
        if row is FAILED:
            return {}
        if not isinstance(row, (Mapping, Belief)):
            self.add("invalid-distribution", location, row, "expected a dict from outcome to probability.")
            return {}
        kinds = set(map(type, row.values()))
        if (
            (kinds == {float} or kinds == {int})
            and all(map((0).__le__, row.values()) if kinds == {int} else map((0.0).__le__, row.values()))
            and abs(sum(row.values()) - 1) <= (self.tolerance if kinds == {float} else 0)
            and (space is None or row.keys() <= space)
        ):  # the fast path: valid distributions of floats or integers
            return dict(row.items())
        self._sum(location, row)
        for outcome, probability in row.items():
            if space is not None and outcome not in space and probability != 0:
                self.add("not-in-space", location, outcome, _listed("outcome", outcome, space))
        return {outcome: p for outcome, p in row.items() if is_number(p) and (space is None or outcome in space)}

    def _sum(self, location: Location | str, row: Mapping[Any, Number] | Belief) -> None:
        for outcome, probability in row.items():
            if not is_nonnegative(probability):
                self.add(
                    "invalid-probability",
                    f"{location}, outcome {brief(outcome)}",
                    probability,
                    "expected a number in [0, 1]." + unquoted(probability),
                )
                return
        row_sum = total(row.values())
        if not nearly_equal(row_sum, 1, self.tolerance):
            remedy = "" if row_sum == 0 else " Divide the row by its sum, if it has weights."
            self.add("row-sum", location, row_sum, f"expected 1.{remedy}")

    def _observations(self, next_state: Any, action: Any, state: Any) -> Mapping[Any, Number]:
        key = (next_state, action, state if self.uses_state else None)
        if key not in self._sensed:
            model = self.problem.observation
            arguments = (next_state, action, state) if self.uses_state else (next_state, action)
            location = Location("observation in {} after {}" + " from {}" * self.uses_state, *arguments)
            row = self._row(location, self.observation_space, model.distribution, *arguments)
            if not self.uses_state:
                self._samples(location, model, ObservationModel, row, next_state, action)
            self._sensed[key] = row
        return self._sensed[key]

    def _samples(self, location: Location, model: Any, base: type, row: Mapping[Any, Number], *arguments: Any) -> None:
        """Compare overrides of ``probability`` and ``sample`` with the distribution."""
        says_probability = type(model).probability is not base.probability  # type: ignore[attr-defined]
        has_samples = type(model).sample is not base.sample  # type: ignore[attr-defined]
        if isinstance(model, _FOREIGN):
            has_samples = model.rows.can_differ
        if not row or not (says_probability or has_samples) or any(is_symbolic(p) for p in row.values()):
            return
        if says_probability:
            for outcome, p in row.items():
                got = self.ask(f"probability, {location}", model.probability, outcome, *arguments)
                if got is not FAILED and not nearly_equal(got, p, self.tolerance):
                    self.add(
                        "inconsistent-probability",
                        f"{location}, outcome {brief(outcome)}",
                        Finding(f"probability() says {got}, distribution() says {p}"),
                        _REMEDY,
                    )
        if has_samples:
            self._frequencies(location, model, row, *arguments)

    def _frequencies(self, location: Location, model: Any, row: Mapping[Any, Number], *arguments: Any) -> None:
        self._rows_sampled += 1
        n = _N_SAMPLES if self._rows_sampled <= _MOST_ROWS else _FEWER_SAMPLES
        counts: dict[Any, int] = {}
        for _ in range(n):
            sample = self.ask(f"sample, {location}", model.sample, *arguments)
            if sample is FAILED:
                return
            counts[sample] = counts.get(sample, 0) + 1
        for outcome in dict.fromkeys((*counts, *row)):
            p, share = float(row.get(outcome, 0)), counts.get(outcome, 0) / n
            # six standard deviations and three samples: no false alarm in any number of rows
            if abs(share - p) > 6 * (max(0.0, p * (1 - p)) / n) ** 0.5 + (3 / n if p else 0):
                self.add(
                    "inconsistent-samples",
                    f"{location}, outcome {brief(outcome)}",
                    Finding(f"{share:z.3f} of {n} samples, distribution() says {p:z.3f}"),
                    _FOREIGN_REMEDY if isinstance(model, _FOREIGN) else _REMEDY,
                )

    # --- states --------------------------------------------------------------------------------------------------

    def _compared(self, state: Any) -> None:
        """Check that a state equals itself, and that its equality and hash are consistent."""
        location = Location("state {}", state)
        remedy = "expected states that compare by their fields. Use a frozen dataclass on pomdp_hier's State."
        if self.ask(location, lambda: state == state) is not True or hash(state) != hash(state):
            found = Finding("a state that is not equal to itself, or whose hash changes")
            self.add("inconsistent-equality", location, found, remedy)
        if isinstance(state, (str, int, float, tuple)):
            return
        other_type = object()
        if self.ask(location, lambda: state != other_type) is not True:
            found = Finding("a state that is neither equal nor unequal to an object of another type")
            self.add("inconsistent-equality", location, found, remedy)
        if len(self._first_states) < _MOST_COMPARED:
            twin = self.ask(location, self._twin, state)
            if twin is not None and twin is not FAILED:
                found = Finding(f"a state that equals {brief(twin)} with another hash")
                self.add("inconsistent-equality", location, found, remedy)
            self._first_states.append(state)

    def _twin(self, state: Any) -> Any:
        """Return one of the first states that equals this one and has another hash, if any."""
        return next((s for s in self._first_states if s == state and hash(s) != hash(state)), None)

    def _again(self, location: Location, flow: Mapping[Any, Number], state: Any, action: Any) -> None:
        """Check that two calls of a model return equal states."""
        if not any(isinstance(s, pomdp_py.State) or hasattr(s, "__dict__") for s in flow):
            return
        again = self.ask(location, self.problem.transition.distribution, state, action)
        for other in () if again is FAILED else again:
            if other not in flow and self.state_space is None:
                self.add(
                    "inconsistent-equality",
                    location,
                    Finding(f"two calls with two states {brief(other)} that are not equal, or differ in their hash"),
                    "expected states that compare by their fields. Use a frozen dataclass on pomdp_hier's State.",
                )
                return

    def _terminal(self, state: Any, action: Any) -> None:
        """Check that a terminal state is absorbing with reward 0, as pomdp-py's planners call the models directly."""
        transition, reward = self.problem.transition, self.problem.reward_model
        where = f"terminal state {brief(state)} under {brief(action)}"
        try:
            flow = dict(transition.distribution(state, action))
        except MODEL_ERRORS:
            return
        left = {s: p for s, p in flow.items() if s != state and p != 0}
        if left:
            self.add(
                "terminal-not-absorbing",
                where,
                next(iter(left)),
                "expected the state itself. Let the transition model return {state: 1}.",
            )
            return
        try:
            reward_here = reward.of_step(state, action, state)
        except MODEL_ERRORS:
            return
        if not is_number(reward_here) or reward_here != 0:
            self.add("terminal-reward", where, reward_here, "expected 0. Let the reward model return 0 for it.")

    # --- rewards and legal actions -------------------------------------------------------------------------------

    def _reward(self, state: Any, action: Any, next_state: Any, observation: Any) -> None:
        form = "reward of {} from {} to {}" + " seeing {}" * self.uses_observation
        location = Location(form, action, state, next_state, observation)
        reward = self.ask(location, self.problem.reward_model.of_step, state, action, next_state, observation)
        if reward is FAILED or is_symbolic(reward):
            return
        if not is_finite(reward):
            self.add("reward-not-finite", location, reward, "expected a finite number." + unquoted(reward))

    def _legal_within_one_observation(self) -> None:
        """Follow the sets of states that one history leaves possible, which should have the same legal actions."""
        if not self.legal_differs:
            return
        states, known = list(self.states), {state: i for i, state in enumerate(self.states)}
        legal = [() if state in self.terminal else self._legal.get(state, ()) for state in states]
        start = frozenset(known[s] for s in self.problem.initial_belief if s in known)
        if self._observed_legal(start, known, legal):
            return
        outcomes = self._numbered_outcomes(known)
        locations: dict[frozenset[int], Location | str] = {start: "at the start"}
        queue, expansions = [start], 0
        for together in queue:  # grows while it is walked
            running = sorted(i for i in together if legal[i])
            if not running:
                continue
            common = [action for action in legal[running[0]] if all(action in legal[i] for i in running)]
            self._compare_legal(locations[together], [(states[i], legal[i]) for i in running])
            for action in common:
                expansions += len(running)
                if expansions > _MAX_EXPANSIONS:
                    return
                after: dict[Any, set[int]] = {}
                for i in running:
                    for observation, next_states in outcomes.get((i, action), ()):
                        after.setdefault(observation, set()).update(next_states)
                for observation, possible in after.items():
                    if (key := frozenset(possible)) not in locations:
                        locations[key] = Location("after {} and {}", action, observation)
                        queue.append(key)

    def _observed_legal(self, start: frozenset[int], known: Mapping[Any, int], legal: list[tuple[Any, ...]]) -> bool:
        """Return whether the start and each observation alone determine the legal actions, whatever came before."""
        running = {legal[i] for i in start} - {()}
        after: dict[Any, tuple[Any, ...]] = {}
        for pairs in self._outcomes.values():
            for next_state, seen in pairs:
                actions = legal[known[next_state]] if next_state in known else ()
                for observation in seen if actions else ():
                    if after.setdefault(observation, actions) != actions:
                        return False
        return len(running) <= 1

    def _numbered_outcomes(self, known: Mapping[Any, int]) -> dict[tuple[int, Any], list[tuple[Any, list[int]]]]:
        """Return the next states per observation, by index, for each state index and action."""
        numbered = {}
        for (state, action), pairs in self._outcomes.items():
            after: dict[Any, list[int]] = {}
            for next_state, seen in pairs:
                if next_state in known:
                    for observation in seen:
                        after.setdefault(observation, []).append(known[next_state])
            numbered[known[state], action] = list(after.items())
        return numbered

    def _compare_legal(self, location: Location | str, sets: list[tuple[Any, tuple[Any, ...]]]) -> None:
        first, legal = sets[0]
        for state, other in sets[1:]:
            if other != legal and set(other) != set(legal):
                differ = brief(sorted(map(str, set(other) ^ set(legal))))
                self.add(
                    "inconsistent-legal-actions",
                    location,
                    Finding(f"{brief(first)} and {brief(state)} differ in {differ}"),
                    "expected the same legal actions. Give both the same, or distinguish them by the observation.",
                )
                return
