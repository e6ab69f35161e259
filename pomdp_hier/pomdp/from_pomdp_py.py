"""Agents and models of pomdp-py as problems and models with whole rows, for `POMDP.from_agent`."""

import inspect
import itertools
import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pomdp_py

from pomdp_hier._arguments import is_integer
from pomdp_hier._text import brief, counted
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import Belief, histogram
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.models import MODEL_ERRORS, ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number, positive_part, total
from pomdp_hier.pomdp.spaces import bridged_action, unwrapped

# An outcome as probable as what a row lacks would stay away from draws after the last new one with probability e^-20.
_EXPECTED_MISSES = 20
_MOST_SAMPLES = 10_000
_NO_SAMPLE = (pomdp_py.TransitionModel.sample, pomdp_py.ObservationModel.sample)


def asked(location: Callable[[], str], remedy: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of another package's function; an error names the location."""
    try:
        return function(*arguments)
    except MODEL_ERRORS as error:
        name = getattr(function, "__qualname__", None) or type(function).__name__
        raise ModelError(
            f"{location()}: got {type(error).__name__} from {name.removeprefix('<locals>.')} ({error}); "
            f"expected an answer. Change it, or {remedy}."
        ) from error


class ForeignRows:
    """The rows of one model, each the probabilities of all outcomes, computed once.

    Listed outcomes get their ``probability``. Otherwise ``sample`` finds the outcomes, and the row is complete once
    their probabilities sum to 1. An incomplete row ends when its missing outcomes were due 20 times since the last new
    outcome, or after 10,000 samples. With ``n_samples``, rows are the frequencies of n samples instead.
    """

    def __init__(
        self,
        model: Any,
        outcomes: Sequence[Any] | None,
        form: str,
        space: str,
        *,
        tolerance: float,
        normalize: bool,
        n_samples: int | None,
    ) -> None:
        self._model = model
        self._outcomes = outcomes
        self._form = form
        self._space = space
        self._tolerance = tolerance
        self._normalize = normalize
        self._n_samples = n_samples
        self._known: dict[tuple[Any, ...], Mapping[Any, Number]] = {}
        self._random = random.Random(0).getstate()

    def of(self, *given: Any) -> Mapping[Any, Number]:
        """Return the row for the arguments, without exact zeros."""
        if given not in self._known:
            self._known[given] = self._row(given)
        return self._known[given]

    @property
    def can_differ(self) -> bool:
        """Whether the model has samples that can be compared with its probabilities."""
        return self._n_samples is None and type(self._model).sample not in _NO_SAMPLE

    def sampled(self, *given: Any) -> Any:
        """Return one sample of the model."""
        return asked(lambda: self._location(given), f"pass {self._space}=[...]", self._model.sample, *given)

    def _location(self, given: tuple[Any, ...]) -> str:
        return self._form.format(*map(brief, given))

    def _row(self, given: tuple[Any, ...]) -> Mapping[Any, Number]:
        if self._n_samples is not None:
            row = self._counted(given, self._n_samples)
        elif self._outcomes is not None:
            row = positive_part({outcome: self._probability(outcome, given) for outcome in self._outcomes})
        else:
            row = self._found(given)
        if not self._normalize:
            return row
        row_sum = total(row.values())
        if not row_sum > 0:
            raise ModelError(
                f"{self._location(given)}: got probabilities of {counted(len(row), 'outcome')} "
                f"that sum to {brief(row_sum)}; "
                "expected a positive sum. Change the model, or count samples of it with n_samples=1000."
            )
        return row if row_sum == 1 else {outcome: p / row_sum for outcome, p in row.items()}

    def _probability(self, outcome: Any, given: tuple[Any, ...]) -> Number:
        return asked(
            lambda: f"probability of {brief(outcome)}, {self._location(given)}",
            "count samples instead (n_samples=1000)",
            self._model.probability,
            outcome,
            *given,
        )

    def _found(self, given: tuple[Any, ...]) -> Mapping[Any, Number]:
        """Return the probabilities of the outcomes that samples find."""
        row: dict[Any, Number] = {}
        row_sum, quiet = 0.0, 0
        with _Stream(self):
            for _ in range(_MOST_SAMPLES):
                outcome = self.sampled(*given)
                quiet += 1
                if outcome not in row:
                    quiet = 0
                    row[outcome] = self._probability(outcome, given)
                    row_sum = total(row.values())
                if row_sum >= 1 - self._tolerance or quiet * (1 - row_sum) >= _EXPECTED_MISSES:
                    break
        return positive_part(row)

    def _counted(self, given: tuple[Any, ...], n: int) -> Mapping[Any, Number]:
        counts: dict[Any, int] = {}
        with _Stream(self):
            for _ in range(n):
                outcome = self.sampled(*given)
                counts[outcome] = counts.get(outcome, 0) + 1
        return {outcome: count / n for outcome, count in counts.items()}


class _Stream:
    """A scope in which Python's global ``random`` continues the stream of the rows."""

    def __init__(self, rows: ForeignRows) -> None:
        self._rows = rows

    def __enter__(self) -> None:
        self._before = random.getstate()
        random.setstate(self._rows._random)

    def __exit__(self, *_: object) -> None:
        self._rows._random = random.getstate()
        random.setstate(self._before)


class ForeignTransition(TransitionModel):
    """A transition model of pomdp-py's interface."""

    def __init__(self, model: pomdp_py.TransitionModel, states: Sequence[Any] | None, **how: Any) -> None:
        self.rows = ForeignRows(model, states, "transition from {} under {}", "states", **how)

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return self.rows.of(state, action)

    def sample(self, state: Any, action: Any) -> Any:
        """Return a sample of the model, which `check_problem` compares with its probabilities."""
        return self.rows.sampled(state, action) if self.rows.can_differ else super().sample(state, action)


class ForeignObservation(ObservationModel):
    """An observation model of pomdp-py's interface."""

    uses_state = False

    def __init__(self, model: pomdp_py.ObservationModel, observations: Sequence[Any] | None, **how: Any) -> None:
        self.rows = ForeignRows(model, observations, "observation in {} after {}", "observations", **how)

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        return self.rows.of(next_state, action)

    def sample(self, next_state: Any, action: Any) -> Any:
        """Return a sample of the model, which `check_problem` compares with its probabilities."""
        return self.rows.sampled(next_state, action) if self.rows.can_differ else super().sample(next_state, action)


class ForeignReward(RewardModel):
    """A reward model of pomdp-py's interface, whose ``sample`` must not be random."""

    uses_observation = False

    def __init__(self, model: pomdp_py.RewardModel) -> None:
        self._model = model

    def reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        return asked(
            lambda: f"reward of {brief(action)} from {brief(state)} to {brief(next_state)}",
            "pass a reward model with the problem",
            self._model.sample,
            state,
            action,
            next_state,
        )


# The problems of pomdp-py give probability 1e-9 to impossible outcomes, so that beliefs keep them.
_TOLERANCE = 1e-6
_MOST_STATES = 1_000_000  # of a belief that is a product of beliefs about objects


def arguments_from_agent(
    agent: pomdp_py.Agent,
    *,
    discount: Number | None,
    terminal: Iterable[Any] | Callable[[Any], bool] | None,
    states: Sequence[Any] | None,
    actions: Sequence[Any] | None,
    observations: Sequence[Any] | None,
    legal_actions: Collection[Any] | Callable[[Any], Collection[Any]] | None,
    tolerance: float | None,
    normalize: bool,
    n_samples: int | None,
) -> dict[str, Any]:
    """Return the arguments of the problem that an agent plans for; see `POMDP.from_agent`."""
    if not isinstance(agent, pomdp_py.Agent):
        remedy = "Pass its .agent." if isinstance(agent, pomdp_py.POMDP) else ""
        remedy = "It is a POMDP already: use it." if isinstance(agent, CorePOMDP) else remedy or "Pass one."
        raise ModelError(f"agent: got {brief(agent)}; expected a pomdp_py.Agent. {remedy}")
    source = getattr(agent, "problem", None)  # of a `ProblemAgent`
    source = source if isinstance(source, CorePOMDP) else None
    if source is not None:
        discount = source.discount if discount is None else discount
        tolerance = source.tolerance if tolerance is None else tolerance
        if terminal is None:
            terminal = lambda state: source.is_terminal(unwrapped(state))  # noqa: E731
    transition, observation, reward = _models_of(agent)
    tolerance = _TOLERANCE if tolerance is None else tolerance
    how: dict[str, Any] = {"tolerance": tolerance, "normalize": normalize, "n_samples": n_samples}
    _require_use(how, isinstance(transition, TransitionModel) and isinstance(observation, ObservationModel))
    if not isinstance(transition, TransitionModel):
        states = _listed(states, lambda: agent.all_states)
        _require_outcomes("states", states, n_samples, transition, pomdp_py.TransitionModel)
        transition = ForeignTransition(transition, states, **how)
    if not isinstance(observation, ObservationModel):
        observations = _listed(observations, lambda: agent.all_observations)
        _require_outcomes("observations", observations, n_samples, observation, pomdp_py.ObservationModel)
        observation = ForeignObservation(observation, observations, **how)
    actions = _listed(actions, lambda: agent.all_actions)
    if actions is None:
        raise ModelError("actions: got none from the agent's policy model; expected a list. Pass actions=[...].")
    legal = _legality(agent, source, actions) if legal_actions is None else {"legal_actions": legal_actions}
    return {
        "transition": transition,
        "observation": observation,
        "reward": reward if isinstance(reward, RewardModel) else ForeignReward(reward),
        "initial_belief": _belief_of(agent, tolerance, normalize),
        "discount": 1 if discount is None else discount,
        "terminal": terminal if terminal is None or callable(terminal) else tuple(terminal),
        "states": states,
        "actions": actions,
        "observations": observations,
        "tolerance": tolerance,
        **legal,
    }


def _models_of(agent: pomdp_py.Agent) -> tuple[Any, Any, Any]:
    models = {
        "transition": agent.transition_model,
        "observation": agent.observation_model,
        "reward": agent.reward_model,
    }
    for name, model in models.items():
        if model is None:
            raise ModelError(
                f"agent: got no {name} model; expected one, as generative models have no probabilities. Add one."
            )
    return models["transition"], models["observation"], models["reward"]


def _require_use(how: Mapping[str, Any], exact: bool) -> None:
    """Raise an error for a setting without an effect or with a wrong value."""
    n_samples = how["n_samples"]
    if n_samples is not None and not (is_integer(n_samples) and n_samples >= 1):
        raise ModelError(
            f"n_samples: got {brief(n_samples)}; expected an integer of at least 1 (samples per row), or None."
        )
    for name in ("normalize", "n_samples"):
        if exact and how[name]:
            raise ModelError(
                f"{name}: got {brief(how[name])}; expected no such setting for models with distributions. Leave it out."
            )


def _listed(given: Sequence[Any] | None, ask: Callable[[], Iterable[Any]]) -> tuple[Any, ...] | None:
    """Return the members of a space, sets in a fixed order; None where the agent does not list them."""
    if given is None:
        try:
            given = ask()  # type: ignore[assignment]
        except (NotImplementedError, AttributeError):
            return None
    return tuple(sorted(given, key=repr)) if isinstance(given, AbstractSet) else tuple(given)  # type: ignore[arg-type]


def _require_outcomes(what: str, listed: Sequence[Any] | None, n_samples: int | None, model: Any, base: type) -> None:
    if type(model).sample is not base.sample:  # type: ignore[attr-defined]
        return
    if n_samples is not None:
        raise ModelError(
            f"n_samples: got {brief(n_samples)}; expected None, as {type(model).__name__} has no sample. "
            f"Pass {what}=[...]."
        )
    if listed is None:
        raise ModelError(
            f"{what}: got none from the agent's models, and {type(model).__name__} has no sample; expected a list. "
            f"Pass {what}=[...]."
        )


def _belief_of(agent: pomdp_py.Agent, tolerance: float, normalize: bool) -> Belief:
    belief = agent.belief
    if isinstance(belief, Belief):
        return belief
    try:
        weights = _of_objects(belief) if isinstance(belief, pomdp_py.OOBelief) else histogram(belief)
    except (NotImplementedError, AttributeError) as error:
        raise ModelError(f"agent: got the belief {brief(belief)}; expected one over finitely many states.") from error
    return Belief.normalized(weights) if normalize else Belief(weights, tolerance=tolerance)


def _of_objects(belief: pomdp_py.OOBelief) -> dict[Any, Number]:
    """Return the product of independent beliefs about objects, over states of the belief's class."""
    beliefs = {name: histogram(part) for name, part in belief.object_beliefs.items()}
    size = math.prod(map(len, beliefs.values()))
    if size > _MOST_STATES:
        raise ModelError(
            f"agent: got a belief over {size:,} states; expected at most {_MOST_STATES:,}. Use fewer objects."
        )
    kind = type(belief.mpe())
    return {
        kind(dict(zip(beliefs, objects, strict=True))): math.prod(
            beliefs[n][o] for n, o in zip(beliefs, objects, strict=True)
        )
        for objects in itertools.product(*beliefs.values())
    }


def _legality(agent: pomdp_py.Agent, source: CorePOMDP | None, actions: Sequence[Any]) -> dict[str, Any]:
    if source is not None:
        if source.legal_everywhere is not None:
            return {"legal_actions": actions}
        return {"legal_actions": _bridged_rule(source), "legal_by": source.legal_by}
    parameters = inspect.signature(agent.policy_model.get_all_actions).parameters
    if "state" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {"legal_actions": actions}

    def legal(state: Any) -> list[Any]:
        allowed = asked(
            lambda: f"legal actions in {brief(state)}",
            "pass legal_actions=...",
            lambda: set(agent.policy_model.get_all_actions(state=state)),
        )
        return [action for action in actions if action in allowed]

    return {"legal_actions": legal}


def _bridged_rule(source: CorePOMDP) -> Callable[[Any], tuple[Any, ...]]:
    """Return a problem's function of legal actions, for wrapped values."""
    nonterminal = Belief.certain(next(s for s in source.states if not source.is_terminal(s)))

    def legal(given: Any) -> tuple[Any, ...]:
        if source.legal_by == "observation":
            return tuple(map(bridged_action, source.actions(nonterminal, unwrapped(given))))
        if source.legal_by == "belief":
            return tuple(map(bridged_action, source.actions(Belief({unwrapped(s): p for s, p in given.items()}))))
        return tuple(map(bridged_action, source.actions(Belief.certain(unwrapped(given)))))

    return legal
