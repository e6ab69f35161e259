"""Base classes of the three models of a POMDP, and the issues of models. A subclass defines one method.

The method of each class, over the outcomes of positive probability:

- `TransitionModel.distribution`: ``{next_state: p(next_state | state, action)}``
- `ObservationModel.distribution`: ``{observation: p(observation | next_state, action[, state])}``
- `RewardModel.reward`: the reward of ``(state, action, next_state[, observation])``

An override without the last parameter does not depend on it, and is called less often. A plain function or a dict can
replace a subclass (`as_transition`, `as_observation`, `as_reward`). The names of a function's parameters decide its
arguments (`signatures`).
"""

import random
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MethodType
from typing import Any, TypeVar

import pomdp_py

from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import histogram
from pomdp_hier.pomdp.numeric import Number, sampled_outcome
from pomdp_hier.pomdp.signatures import Bound, bind, required_order
from pomdp_hier.pomdp.spaces import nearest

M = TypeVar("M")

_MOST_KEPT = 1_000_000  # entries of the rows that a model keeps, some hundreds of megabytes

# Errors of a user's model; anything else (a full memory, an interrupt) is not caused by the model.
MODEL_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)

_MODELS = (pomdp_py.TransitionModel, pomdp_py.ObservationModel, pomdp_py.RewardModel)


class Row(dict[Any, Number]):
    """A row of a model that is kept, and cannot be changed: ``dict(row)`` can."""

    __slots__ = ()

    def _refuse(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError("a row of a model is read-only; change a copy, dict(row).")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def copy(self) -> dict[Any, Number]:
        """Return a dict that can be changed."""
        return dict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments of a dict."""
        return dict, (dict(self),)


class Kept(dict[tuple[Any, ...], Row]):
    """The rows of a function that is called once for the same arguments; bounded, and pickled empty."""

    def __init__(self, function: Callable[..., Mapping[Any, Number]]) -> None:
        super().__init__()
        self._function, self._n_entries = function, 0

    def __missing__(self, key: tuple[Any, ...]) -> Row:
        row = Row(self._function(*key))
        if self._n_entries + len(row) >= _MOST_KEPT:  # without space, the rows before are forgotten
            self.clear()
            self._n_entries = 0
        self[key] = row
        self._n_entries += len(row) + 1
        return row

    def __call__(self, *key: Any) -> Row:
        """Return the row of these arguments."""
        return self[key]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the function alone."""
        return Kept, (self._function,)


def rows_of(model: Any) -> Callable[..., Mapping[Any, Number]]:
    """Return the kept rows of a model of arrays, and the function ``distribution`` of any other."""
    rows = getattr(model, "rows", None)
    return rows if isinstance(rows, Kept) else model.distribution


class TransitionModel(pomdp_py.TransitionModel):
    """``T(s, a, s')``, the probability of the next state given state and action.

    Example:
        >>> class Walk(TransitionModel):
        ...     def distribution(self, state, action):
        ...         return {state + 1: 0.9, state: 0.1}
        >>> Walk().probability(1, 0, "forward"), Walk().argmax(0, "forward")
        (0.9, 1)
    """

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        """Return the probabilities of all possible next states; they sum to 1."""
        raise NotImplementedError(f"{type(self).__name__} must define distribution(state, action).")

    def probability(self, next_state: Any, state: Any, action: Any) -> Number:
        """Return ``p(next_state | state, action)``."""
        return self.distribution(state, action).get(next_state, 0)

    def sample(self, state: Any, action: Any) -> Any:
        """Return a next state sampled with Python's global ``random``, as pomdp-py does."""
        return sampled_outcome(self.distribution(state, action), random.random())

    def argmax(self, state: Any, action: Any) -> Any:
        """Return the most probable next state; the first if several tie."""
        return _most_probable(self.distribution(state, action))


class ObservationModel(pomdp_py.ObservationModel):
    """``Z(s', a, o)``, the probability of the observation in the next state; it may depend on the previous state.

    Example:
        >>> class Noisy(ObservationModel):
        ...     def distribution(self, next_state, action):
        ...         return {next_state: 0.8, "nothing": 0.2}
        >>> Noisy().probability("nothing", 3, "look")
        0.2
    """

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        """Return the probabilities of all possible observations; they sum to 1."""
        raise NotImplementedError(f"{type(self).__name__} must define distribution(next_state, action, state=None).")

    def probability(self, observation: Any, next_state: Any, action: Any) -> Number:
        """Return ``p(observation | next_state, action)``."""
        return self.distribution(next_state, action).get(observation, 0)

    def sample(self, next_state: Any, action: Any) -> Any:
        """Return an observation sampled with Python's global ``random``, as pomdp-py does."""
        return sampled_outcome(self.distribution(next_state, action), random.random())

    def argmax(self, next_state: Any, action: Any) -> Any:
        """Return the most probable observation; the first if several tie."""
        return _most_probable(self.distribution(next_state, action))

    @property
    def uses_state(self) -> bool:
        """Whether the distribution also depends on the previous state."""
        return _count("observation", self.distribution) > 2


class RewardModel(pomdp_py.RewardModel):
    """``R(s, a, s', o)``, the reward; most models use the first two or three arguments.

    Example:
        >>> class Toll(RewardModel):
        ...     def reward(self, state, action, next_state):
        ...         return -1 if next_state != state else 0
        >>> Toll().sample(0, "forward", 1)
        -1
    """

    def reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        """Return the reward of the step, in the problem's unit."""
        raise NotImplementedError(
            f"{type(self).__name__} must define reward(state, action, next_state, observation=None)."
        )

    def probability(self, reward: Number, state: Any, action: Any, next_state: Any) -> float:
        """Return 1 if this is the reward of the step, else 0."""
        return float(reward == self.of_step(state, action, next_state))

    def sample(self, state: Any, action: Any, next_state: Any) -> Number:
        """Return the reward of the step (pomdp-py's name for it)."""
        return self.of_step(state, action, next_state)

    def argmax(self, state: Any, action: Any, next_state: Any) -> Number:
        """Return the reward of the step (pomdp-py's name for it)."""
        return self.of_step(state, action, next_state)

    def of_step(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        """Return the reward of the step, by the arguments that `reward` takes."""
        return self.reward(*(state, action, next_state, observation)[: _count("reward", self.reward)])

    @property
    def uses_observation(self) -> bool:
        """Whether the reward also depends on the observation."""
        return _count("reward", self.reward) > 3

    @property
    def uses_next_state(self) -> bool:
        """Whether the reward depends on the next state."""
        return _count("reward", self.reward) > 2


def _count(what: str, method: Callable[..., Any]) -> int:
    """Return the number of arguments of an overriding method, in the order of the overridden method."""
    function = getattr(method, "__func__", None)
    return required_order(what, method) if function is None else _count_of_class(what, function)


@lru_cache(maxsize=1024)
def _count_of_class(what: str, function: Callable[..., Any]) -> int:
    return required_order(what, MethodType(function, object()))


def _bound(what: str, function: Callable[..., Any]) -> Bound:
    if isinstance(function, type) and issubclass(function, _MODELS):
        raise ModelError(
            f"{what}: got the class {function.__name__}; expected an instance. Call {function.__name__}()."
        )
    return bind(what, function)


def _most_probable(distribution: Mapping[Any, Number]) -> Any:
    return max(distribution, key=distribution.__getitem__)


def _as_distribution(outcome: Any) -> Mapping[Any, Number]:
    """Return a mapping unchanged, and any other value as a certain outcome."""
    if isinstance(outcome, Mapping):
        return outcome
    if isinstance(outcome, pomdp_py.GenerativeDistribution):
        return histogram(outcome)
    if outcome is None:
        raise ModelError(
            "distribution: got None from the model; expected an outcome or a dict, {outcome: probability}. "
            'Return a name such as "nothing", for an empty observation.'
        )
    try:
        return {outcome: 1}
    except TypeError as error:
        raise ModelError(
            f"distribution: got {brief(outcome)}, not hashable; expected an outcome or a dict. Use a string, a tuple "
            "or a frozen dataclass, and for several outcomes a dict, {outcome: probability}."
        ) from error


def _look_up(table: Mapping[Any, Any], what: str, *keys: tuple[Hashable, ...] | Hashable) -> Any:
    """Return the entry under the first of the keys that the table has."""
    for key in keys:
        if key in table:
            return table[key]
    raise ModelError(
        f"{what}: got a dict without {brief(keys[0])}; expected an entry for every combination."
        f" Add it, or use {_near_key(table, keys[0]) or 'a function'}."
    )


def _near_key(table: Mapping[Any, Any], key: Hashable) -> str:
    """Return the key of the dict that is most similar to the missing one."""
    if not isinstance(key, tuple):
        return nearest(key, table)
    if key[::-1] in table:
        return f"the other order of keys: the dict has {brief(key[::-1])}"
    parts = zip(*(known for known in table if isinstance(known, tuple) and len(known) == len(key)), strict=True)
    near = (nearest(part, set(known)) for part, known in zip(key, parts, strict=False) if part not in known)
    return next(filter(None, near), "")


class _FunctionTransition(TransitionModel):
    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        self._call = _bound("transition", function).call

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return _as_distribution(self._call(state, action))


class _FunctionObservation(ObservationModel):
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        bound = _bound("observation", function)
        self._call, self._uses_state = bound.call, bound.count > 2

    @property
    def uses_state(self) -> bool:
        return self._uses_state

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        arguments = (next_state, action, state) if self._uses_state else (next_state, action)
        return _as_distribution(self._call(*arguments))


class _FunctionReward(RewardModel):
    def __init__(self, function: Callable[..., Number]) -> None:
        self.function = function
        bound = _bound("reward", function)
        self._call, self._uses_next_state, self._uses_observation = bound.call, bound.count > 2, bound.count > 3

    @property
    def uses_observation(self) -> bool:
        return self._uses_observation

    @property
    def uses_next_state(self) -> bool:
        return self._uses_next_state

    def of_step(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        return self.reward(state, action, next_state, observation)

    def reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        if self._uses_observation:
            return self._call(state, action, next_state, observation)
        return self._call(state, action, next_state) if self._uses_next_state else self._call(state, action)


# A function with the dict as its first argument looks it up; it is at the top of the module, for pickle.


def _transition_entry(table: Mapping[Any, Any], state: Any, action: Any) -> Any:
    return _look_up(table, "transition", (state, action))


def _observation_entry(table: Mapping[Any, Any], next_state: Any, action: Any) -> Any:
    return _look_up(table, "observation", (next_state, action), next_state)  # the second key serves all actions


def _reward_entry(table: Mapping[Any, Number], state: Any, action: Any) -> Any:
    return _look_up(table, "reward", (state, action))


def _step_reward_entry(table: Mapping[Any, Number], state: Any, action: Any, next_state: Any) -> Any:
    return _look_up(table, "reward", (state, action, next_state), (state, action))


def _as_model(what: str, model: Any, kind: type[M], method: str, made: Callable[[Any], M], entry: Any) -> M:
    """Return a model, or the one that a function or the entries of a dict make."""
    if isinstance(model, kind):
        _count(what, getattr(model, method))
        return model
    if isinstance(model, Mapping):
        return made(partial(entry, dict(model)))
    if callable(model):
        return made(model)
    raise ModelError(f"{what}: got {brief(model)}; expected a function, a dict or an instance of {kind.__name__}.")


def as_transition(model: Any) -> TransitionModel:
    """Return the transition model for a model, a function ``(state, action)`` or a dict ``{(state, action): …}``."""
    return _as_model("transition", model, TransitionModel, "distribution", _FunctionTransition, _transition_entry)


def as_observation(model: Any) -> ObservationModel:
    """Return the observation model for a model, a function ``(next_state, action[, state])`` or a dict."""
    return _as_model("observation", model, ObservationModel, "distribution", _FunctionObservation, _observation_entry)


def as_reward(model: Any) -> RewardModel:
    """Return the reward model for a model, a function ``(state, action[, next_state[, observation]])`` or a dict."""
    by_step = isinstance(model, Mapping) and any(isinstance(key, tuple) and len(key) == 3 for key in model)
    entry = _step_reward_entry if by_step else _reward_entry
    return _as_model("reward", model, RewardModel, "reward", _FunctionReward, entry)


FAILED = object()  # the result of a model that raised an error


class Finding(str):
    """A finding as text; any other value of an issue is a model's, and is shown by its ``repr``."""


@dataclass(frozen=True)
class ModelIssue:
    """One error of a problem.

    Attributes:
        code: The kind of the error, from the table below.
        location: The model and its arguments.
        value: The wrong sum, number or state, or the message of an error.
        remedy: What was expected, and what to do.

    The codes:

    | code | error |
    |---|---|
    | ``row-sum`` | The probabilities of a row or of the initial belief do not sum to 1. |
    | ``invalid-probability`` | A probability is negative, NaN or not a number. |
    | ``invalid-distribution`` | A model returns something other than a distribution. |
    | ``not-in-space`` | A state, action or observation is not listed, or a terminal state cannot be reached. |
    | ``not-hashable`` | A value cannot be hashed. |
    | ``inconsistent-equality`` | Equality and hash of a state contradict each other, or change from call to call. |
    | ``inconsistent-probability`` | ``probability`` contradicts ``distribution``. |
    | ``inconsistent-samples`` | ``sample`` contradicts ``distribution``. |
    | ``inconsistent-legal-actions`` | States that one history leaves possible have different legal actions. |
    | ``no-legal-action`` | A nonterminal state has no legal action. |
    | ``terminal-not-absorbing`` | A model leaves a terminal state. |
    | ``terminal-reward`` | A terminal state has a reward other than 0. |
    | ``possible-terminal`` | A state that no action leaves keeps its reward, and is not listed as terminal. |
    | ``reward-not-finite`` | A reward is infinite, NaN or not a number. |
    | ``model-error`` | A model raises an error. |
    | ``too-many-states`` | More than ``max_states`` states are reachable. |

    Example:
        >>> print(ModelIssue("row-sum", "transition from 'a' under 'go'", 0.9, "expected 1. Divide it by its sum."))
        row-sum: transition from 'a' under 'go': got 0.9; expected 1. Divide it by its sum.
    """

    code: str
    location: str
    value: Any
    remedy: str

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, Finding) else brief(self.value, 120)
        return f"{self.code}: {self.location}: got {value}; {self.remedy}"


class Location:
    """A model and its arguments, formatted only for an issue."""

    __slots__ = ("_form", "_values")

    def __init__(self, form: str, *values: Any) -> None:
        self._form, self._values = form, values

    def __str__(self) -> str:
        return self._form.format(*map(brief, self._values))


class IssueList:
    """The issues found so far, and calls of models whose errors become issues."""

    def __init__(self) -> None:
        self.issues: list[ModelIssue] = []

    def add(self, code: str, location: Location | str, value: Any, remedy: str) -> None:
        """Add an issue, unless one of the last 50 has its code and location."""
        issue = ModelIssue(code, str(location), value, remedy)
        if issue.location not in {other.location for other in self.issues[-50:] if other.code == code}:
            self.issues.append(issue)

    def ask(self, location: Location | str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the function's result; after an error add an issue and return ``FAILED``."""
        try:
            return function(*arguments)
        except MODEL_ERRORS as error:
            message = Finding(f"{type(error).__name__}: {error}")
            if "hashable" in str(error):
                self.add(
                    "not-hashable",
                    location,
                    message,
                    "expected values that can be hashed. Use strings, tuples or frozen dataclasses.",
                )
            else:
                self.add("model-error", location, message, "expected a result for everything that can be reached.")
            return FAILED
