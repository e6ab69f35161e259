"""A ``pomdp_py.Agent`` as a problem: what `POMDP.from_agent` asks of the agent's models and spaces."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pomdp_py

from pomdp_hier._messages import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.bridged import bridged_action, unwrapped
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number

__all__ = ["arguments_from_agent"]


def arguments_from_agent(
    agent: pomdp_py.Agent,
    *,
    discount: Number | None,
    terminal: Iterable[Any] | Callable[[Any], bool] | None,
    states: Sequence[Any] | None,
    actions: Sequence[Any] | None,
    observations: Sequence[Any] | None,
) -> dict[str, Any]:
    """Return the arguments of the problem that an agent plans for; see `POMDP.from_agent`."""
    if not isinstance(agent, pomdp_py.Agent):
        raise ModelError(f"agent: {brief(agent)} is no pomdp_py.Agent; a POMDP is planned for with decide(problem)")
    source = getattr(agent, "problem", None)  # as `ProblemAgent` has it
    source = source if isinstance(source, CorePOMDP) else None
    if source is not None:
        discount = source.discount if discount is None else discount
        if terminal is None:
            terminal = lambda state: source.is_terminal(unwrapped(state))  # noqa: E731
    models = {
        "transition": agent.transition_model,
        "observation": agent.observation_model,
        "reward": agent.reward_model,
    }
    for name, model in models.items():
        if model is None:
            raise ModelError(f"agent: it has no {name} model; a generative model alone cannot be read exactly")
    transition, observation = models["transition"], models["observation"]
    if not isinstance(transition, TransitionModel):
        states = _listed("states", states, lambda: agent.all_states)
        transition = _ListedTransition(transition, states)
    if not isinstance(observation, ObservationModel):
        observations = _listed("observations", observations, lambda: agent.all_observations)
        observation = _ListedObservation(observation, observations)
    actions = _listed("actions", actions, lambda: agent.all_actions)
    return {
        "transition": transition,
        "observation": observation,
        "reward": models["reward"] if isinstance(models["reward"], RewardModel) else models["reward"].sample,
        "initial_belief": _belief_of(agent),
        "discount": 1 if discount is None else discount,
        "terminal": terminal if terminal is None or callable(terminal) else tuple(terminal),
        "states": states,
        "actions": actions,
        "observations": observations,
        **_legality(agent, source, actions),
    }


class _ListedTransition(TransitionModel):
    """A model that knows single probabilities, over a list of states."""

    def __init__(self, model: pomdp_py.TransitionModel, states: Sequence[Any]) -> None:
        self._model = model
        self._states = states

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return _positive((s, self._model.probability(s, state, action)) for s in self._states)


class _ListedObservation(ObservationModel):
    """A model that knows single probabilities, over a list of observations."""

    uses_state = False

    def __init__(self, model: pomdp_py.ObservationModel, observations: Sequence[Any]) -> None:
        self._model = model
        self._observations = observations

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        return _positive((o, self._model.probability(o, next_state, action)) for o in self._observations)


def _positive(pairs: Iterable[tuple[Any, Number]]) -> dict[Any, Number]:
    return {key: p for key, p in pairs if p != 0}


def _listed(what: str, given: Sequence[Any] | None, ask: Callable[[], Iterable[Any]]) -> tuple[Any, ...]:
    """Return the members of a space, sets in a fixed order."""
    if given is not None:
        return tuple(given)
    try:
        members = ask()
    except (NotImplementedError, AttributeError) as error:
        raise ModelError(f"{what}: the agent's models do not list them; pass {what}=[...]") from error
    return tuple(sorted(members, key=repr)) if isinstance(members, AbstractSet) else tuple(members)


def _belief_of(agent: pomdp_py.Agent) -> Belief:
    belief = agent.belief
    if isinstance(belief, Belief):
        return belief
    try:
        return Belief(belief.get_histogram())
    except (NotImplementedError, AttributeError) as error:
        raise ModelError(f"agent: its belief {brief(belief)} is not over finitely many states") from error


def _legality(agent: pomdp_py.Agent, source: CorePOMDP | None, actions: Sequence[Any]) -> dict[str, Any]:
    """Return the arguments that say which actions are legal where."""
    if source is not None:
        if source.legal_everywhere is not None:
            return {"legal_actions": actions}
        return {"legal_actions": _bridged_rule(source), "legal_by": source.legal_by}
    parameters = inspect.signature(agent.policy_model.get_all_actions).parameters
    if "state" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {"legal_actions": actions}

    def legal(state: Any) -> list[Any]:
        allowed = set(agent.policy_model.get_all_actions(state=state))
        return [action for action in actions if action in allowed]

    return {"legal_actions": legal}


def _bridged_rule(source: CorePOMDP) -> Callable[[Any], tuple[Any, ...]]:
    """Return a problem's rule for legal actions, for the bridged values."""
    alive = Belief.certain(next(s for s in source.states if not source.is_terminal(s)))

    def legal(given: Any) -> tuple[Any, ...]:
        if source.legal_by == "observation":
            return tuple(map(bridged_action, source.actions(alive, unwrapped(given))))
        if source.legal_by == "belief":
            return tuple(map(bridged_action, source.actions(Belief({unwrapped(s): p for s, p in given.items()}))))
        return tuple(map(bridged_action, source.actions(Belief.certain(unwrapped(given)))))

    return legal
