"""A POMDP as spaces and models, its queries, and Bayes' rule on its models."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from pomdp_hier._arguments import check_flag, is_integer, is_one_of, is_real
from pomdp_hier._progress import slow_work
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief, as_belief
from pomdp_hier.pomdp.models import Kept, as_observation, as_reward, as_transition, rows_of
from pomdp_hier.pomdp.numeric import Number, is_finite, is_number, is_symbolic, is_text, mean, total, unquoted
from pomdp_hier.pomdp.signatures import Signature, bind, require_pickled
from pomdp_hier.pomdp.spaces import distinct, listed_values, require_action

# A belief as every function takes it.
Given: TypeAlias = Belief | Mapping[Any, Number]

_WEIGHTS = (Belief, Mapping)
_NOWHERE: Callable[[Any], bool] = frozenset().__contains__


class CorePOMDP:
    """The base class of `POMDP`, which documents the arguments."""

    def __init__(
        self,
        *,
        transition: Any,
        observation: Any,
        reward: Any,
        initial_belief: Belief | Mapping[Any, Number],
        discount: Number = 1,
        terminal: Collection[Any] | Callable[[Any], bool] | None = None,
        legal_actions: Collection[Any] | Callable[[Any], Collection[Any]],
        legal_by: Literal["state", "observation", "belief"] = "state",
        actions: Sequence[Any] | None = None,
        states: Sequence[Any] | None = None,
        observations: Sequence[Any] | None = None,
        max_states: int = 1_000_000,
        tolerance: float = MASS_TOLERANCE,
        belief_reward: Callable[..., Number] | None = None,
        keep_rows: bool = False,
    ) -> None:
        self.transition = as_transition(transition)
        self.observation = as_observation(observation)
        self.reward_model = as_reward(reward)
        check_flag("keep_rows", keep_rows)
        self._next, self._seen = rows_of(self.transition), rows_of(self.observation)
        if keep_rows:
            self._next, self._seen = Kept(self._next), Kept(self._seen)
        if not (is_real(tolerance) and 0 <= tolerance < 1):
            raise ModelError(f"tolerance: got {brief(tolerance)}; expected a number in [0, 1). Use 1e-9, for example.")
        self.tolerance = tolerance
        if not (is_integer(max_states) and max_states >= 1):
            raise ModelError(f"max_states: got {brief(max_states)}; expected an integer of at least 1.")
        if not isinstance(initial_belief, Belief):
            initial_belief = Belief(initial_belief, tolerance=tolerance)
        self.initial_belief = initial_belief
        if not is_finite(discount):
            raise ModelError(f"discount: got {brief(discount)}; expected a number in [0, 1].{unquoted(discount)}")
        if not is_symbolic(discount) and not 0 <= discount <= 1:
            remedy = f" Write {discount} % as {float(discount) / 100:g}." if 2 <= discount <= 100 else ""
            raise ModelError(f"discount: got {discount}; expected a number in [0, 1].{remedy}")
        self.discount = discount
        if not is_one_of(legal_by, "state", "observation", "belief"):
            raise ModelError(f"legal_by: got {brief(legal_by)}; expected 'state', 'observation' or 'belief'.")
        self.legal_by = legal_by
        self.listed_terminal: tuple[Any, ...] | None = None
        if callable(terminal):
            self._is_terminal = bind("terminal", terminal).call
        else:
            if terminal is not None:
                self.listed_terminal = listed_values("terminal", terminal, "states, or a function of the state")
            self._is_terminal = frozenset(self.listed_terminal).__contains__ if self.listed_terminal else _NOWHERE
        if callable(legal_actions):
            signature = Signature((legal_by,), ((legal_by,),))
            self._legal: Callable[[Any], Collection[Any]] | None = bind("legal_actions", legal_actions, signature).call
            self._everywhere: tuple[Any, ...] = ()
        else:
            if isinstance(legal_actions, Mapping):  # its keys, most likely states, would be taken for actions
                raise ModelError(
                    f"legal_actions: got {brief(legal_actions)}; expected actions, or a function of the state."
                )
            self._legal = None
            self._everywhere = distinct(
                "legal_actions", legal_actions, f"a list of actions, or a function of the {legal_by}"
            )
            if not self._everywhere:
                raise ModelError("legal_actions: got no action; expected at least one.")
            actions = self._everywhere if actions is None else actions
        self._given_actions = None if actions is None else distinct("actions", actions)
        self._given_states = None if states is None else distinct("states", states)
        self._given_observations = None if observations is None else distinct("observations", observations)
        self._known_actions = None if self._given_actions is None else dict.fromkeys(self._given_actions)
        self.max_states = max_states
        if belief_reward is not None and not callable(belief_reward):
            raise ModelError(
                f"belief_reward: got {brief(belief_reward)}; expected a function of the belief, and perhaps the action."
            )
        self._belief_reward = None if belief_reward is None else bind("belief_reward", belief_reward)
        self._rewards: dict[tuple[Any, Any], Number] = {}

    def require_action(self, action: Any) -> None:
        """Raise unless the action is one of the problem's, where these are listed."""
        if self._known_actions is not None:
            require_action(action, self._known_actions)

    @property
    def belief_tolerance(self) -> float:
        """The largest distance from 1 of the sum of a belief's probabilities."""
        return max(self.tolerance, MASS_TOLERANCE)

    def as_belief(self, belief: Given) -> Belief:
        """Return a `Belief` for a `Belief` or a dict."""
        return belief if isinstance(belief, Belief) else as_belief(belief, self.belief_tolerance)

    # --- the spaces ----------------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> tuple[Any, ...]:
        """All states: the listed ones, or those reachable from the initial belief, in breadth-first order."""
        return self._explored[0]

    @cached_property
    def all_actions(self) -> tuple[Any, ...]:
        """All actions: the listed ones, or those that are legal in some state."""
        return self._explored[1]

    @cached_property
    def all_observations(self) -> tuple[Any, ...]:
        """All observations: the listed ones, or those of positive probability."""
        return self._explored[2]

    @cached_property
    def _explored(self) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        """Follow the models breadth first from the initial belief, under every possible action."""
        if self._given_states and self._given_actions and self._given_observations:
            return self._given_states, self._given_actions, self._given_observations
        if self._given_actions is None and self.legal_by != "state":
            raise ModelError(
                f"actions: got none, with legal actions by {self.legal_by}; expected all actions. Pass actions=[...]."
            )
        states = dict.fromkeys(self._given_states or self.initial_belief.support)
        queue = list(states)
        actions: dict[Any, None] = dict.fromkeys(self._given_actions or ())
        observations: dict[Any, None] = {}
        made_after: dict[tuple[Any, bool], set[Any]] = {}  # observations after an action, by terminal
        asked: set[tuple[Any, Any]] = set()
        with slow_work("exploring", "states") as bar:
            for state in queue:  # grows while it is walked
                bar.update()
                if self.is_terminal(state):
                    continue
                for action in self.possible_actions(state):
                    actions.setdefault(action)
                    for next_state in self.successors(state, action):
                        if not self._observation_uses_state:
                            if (action, next_state) in asked:
                                continue
                            asked.add((action, next_state))
                        made = dict.fromkeys(self.observation_distribution(next_state, action, state))
                        observations.update(made)
                        made_after.setdefault((action, self.is_terminal(next_state)), set()).update(made)
                        if next_state not in states:
                            states[next_state] = None
                            queue.append(next_state)
                            self._require_few(states, next_state)
        terminal = [state for state in states if self.is_terminal(state)]
        nothing: set[Any] = set()
        if self.has_mixed_start or any(
            not made_after.get((action, True), nothing).isdisjoint(made_after.get((action, False), nothing))
            for action in actions
        ):
            for state in terminal:
                for action in actions:
                    observations.update(dict.fromkeys(self.observation_distribution(state, action, state)))
        return (
            self._given_states or tuple(states),
            self._given_actions or tuple(actions),
            self._given_observations or tuple(observations),
        )

    def _require_few(self, states: Collection[Any], newest: Any) -> None:
        if len(states) > self.max_states:
            raise ModelError(
                f"states: got more than {self.max_states} from the start, such as {brief(newest)}; expected a finite "
                f"problem. Make {type(newest).__name__} a frozen dataclass, if its states compare by identity, or pass "
                "a larger max_states."
            )

    @property
    def has_mixed_start(self) -> bool:
        """Whether the support of the initial belief has both terminal and nonterminal states.

        If no belief mixes terminal and nonterminal states, the models need not define observations in terminal states.
        A mixed belief arises from a mixed start, or from an observation that is possible in both.
        """
        return len({self.is_terminal(state) for state in self.initial_belief}) == 2

    @property
    def given_spaces(self) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None, tuple[Any, ...] | None]:
        """The listed states, actions and observations; ``None`` for a space that exploration finds."""
        return self._given_states, self._given_actions, self._given_observations

    @property
    def legal_everywhere(self) -> tuple[Any, ...] | None:
        """The actions, where all are legal everywhere; ``None`` where legal actions are a function."""
        return self._everywhere or None

    def possible_actions(self, state: Any) -> tuple[Any, ...]:
        """Return the actions that can be legal in the state; the legal ones, where they depend on the state."""
        if self._legal is not None and self.legal_by == "state":
            return tuple(self._legal(state))
        return self._given_actions or self._everywhere

    def is_terminal(self, state: Any) -> bool:
        """Return whether the state is terminal."""
        over = self._is_terminal(state)
        if over is False or over is True:
            return over
        if isinstance(over, bool | np.bool_) or (is_integer(over) and over in (0, 1)):
            return bool(over)
        raise ModelError(f"terminal({brief(state)}): got {brief(over)}; expected True or False. Return one of them.")

    def is_terminal_belief(self, belief: Given) -> bool:
        """Return whether the belief is terminal: every state of its support is terminal."""
        return all(self.is_terminal(state) for state in self.as_belief(belief))

    def actions(self, belief: Given | None = None, observation: Hashable = None) -> tuple[Any, ...]:
        """Return the legal actions under the belief (the initial one by default); none if it is terminal.

        These are the actions that are legal in every nonterminal state of the support, in the order of the first state.
        `check_problem` reports states with different legal actions that one history leaves possible.
        """
        belief = self.initial_belief if belief is None else self.as_belief(belief)
        if self.is_terminal_belief(belief):
            return ()
        if self._legal is None:
            return self._everywhere
        if self.legal_by == "belief":
            legal = tuple(self._legal(belief))
        elif self.legal_by == "observation":
            legal = tuple(self._legal(observation))
        else:
            sets = [tuple(self._legal(state)) for state in belief if not self.is_terminal(state)]
            legal = sets[0]
            for other in sets[1:]:
                if other != legal:
                    legal = tuple(action for action in legal if action in other)
        if not legal:
            raise ModelError(
                f"legal_actions: got no action that is legal in all {len(belief)} states of a belief (the first: "
                f"{brief(belief.support[0])}); expected one. Make the state terminal, or add an action that waits."
            )
        return legal

    # --- one step ------------------------------------------------------------------------------------------------

    def successors(self, state: Any, action: Any) -> Mapping[Any, Number]:
        """Return ``{s': T(s, a, s')}``; a terminal state is absorbing."""
        self.require_action(action)
        return {state: 1} if self.is_terminal(state) else self._next(state, action)

    def observation_distribution(self, next_state: Any, action: Any, state: Any) -> Mapping[Any, Number]:
        """Return ``{o: p(o | s, a, s')}``."""
        self.require_action(action)
        if self._observation_uses_state:
            return self._seen(next_state, action, state)
        return self._seen(next_state, action)

    @cached_property
    def _observation_uses_state(self) -> bool:
        return self.observation.uses_state

    def step_reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        """Return ``R(s, a, s', o)``, 0 from a terminal state."""
        self.require_action(action)
        if self.is_terminal(state):
            return 0
        reward = self.reward_model.of_step(state, action, next_state, observation)
        if not is_number(reward):
            raise ModelError(
                f"reward of {brief(action)} in {brief(state)}: got {'the text ' * is_text(reward)}{brief(reward)}; "
                f"expected a number.{unquoted(reward)}"
            )
        return reward

    @cached_property
    def _reward_uses_observation(self) -> bool:
        return self.reward_model.uses_observation

    @cached_property
    def _reward_uses_next_state(self) -> bool:
        return self.reward_model.uses_next_state

    def expected_reward(self, state: Any, action: Any) -> Number:
        """Return ``R(s, a)``, the mean of the reward over next states and observations.

        It is ``sum_s' T(s, a, s') sum_o Z(s', a, o) R(s, a, s', o)``. Rows of T and Z are not normalised: the weights
        of the mean sum to 1 only as closely as the rows do.
        """
        self.require_action(action)
        key = (state, action)
        if key not in self._rewards:
            self._rewards[key] = self._mean_reward(state, action)
        return self._rewards[key]

    def _mean_reward(self, state: Any, action: Any) -> Number:
        if self.is_terminal(state) or not (self._reward_uses_next_state or self._reward_uses_observation):
            return self.step_reward(state, action, None)
        terms = []
        for next_state, probability in self.successors(state, action).items():
            if probability == 0:
                continue
            if not self._reward_uses_observation:
                terms.append((probability, self.step_reward(state, action, next_state)))
                continue
            for observation, likelihood in self.observation_distribution(next_state, action, state).items():
                if likelihood != 0:
                    reward = self.step_reward(state, action, next_state, observation)
                    terms.append((probability * likelihood, reward))
        return mean(terms, lambda: f"reward of {brief(action)} in {brief(state)}")

    def reward(self, belief: Given, action: Any) -> Number:
        """Return ``rho(b, a) = sum_s b(s) R(s, a)``, plus the belief-dependent reward, if the problem has one.

        The latter is weighted by the probability that the state is not terminal.
        """
        belief = self.as_belief(belief)
        weighted = [(p, self.expected_reward(state, action)) for state, p in belief.items()]
        linear = mean(weighted, lambda: f"reward of {brief(action)}")
        if self._belief_reward is None:
            return linear
        running = [p for state, p in belief.items() if not self.is_terminal(state)]
        weight = 1 if len(running) == len(belief) else total(running)
        return linear + weight * self.belief_reward(belief, action)

    @property
    def given_belief_reward(self) -> Callable[..., Number] | None:
        """The function of the belief-dependent reward; ``None`` if there is none."""
        return None if self._belief_reward is None else self._belief_reward.call

    @property
    def has_belief_reward(self) -> bool:
        """Whether a part of the reward is a function of the belief."""
        return self._belief_reward is not None

    def belief_reward(self, belief: Given, action: Any) -> Number:
        """Return the part of the reward that is a function of the belief; 0 if there is none."""
        belief = self.as_belief(belief)
        self.require_action(action)
        if self._belief_reward is None:
            return 0
        reward: Number = self._belief_reward.call(*(belief, action)[: self._belief_reward.count])
        if not is_finite(reward):
            raise ModelError(
                f"belief_reward of {brief(action)}: got {brief(reward)} at {brief(belief)}; expected a finite number."
            )
        return reward

    def require_state_rewards(self, what: str) -> None:
        """Raise an error for a belief-dependent reward, where all rewards must be those of states."""
        if self._belief_reward is not None:
            raise ModelError(
                f"belief_reward: got a function; expected none for {what}: rewards must be those of states. Use RTBSS "
                "or AndOrTree with leaf_value='zero', and policy_value or simulate with a horizon."
            )

    def joint(self, belief: Given, action: Any) -> dict[Any, dict[Any, Number]]:
        """Return ``{o: {s': p(s', o | b, a)}}``, the numerators of Bayes' rule, without exact zeros.

        ``p(s', o | b, a) = sum_s b(s) T(s, a, s') p(o | s, a, s')``; the sum over ``s'`` is the evidence of ``o``.
        """
        masses: dict[Any, dict[Any, Number]] = {}
        for state, next_state, flow in self.flows(belief, action):
            for observation, likelihood in self.observation_distribution(next_state, action, state).items():
                if likelihood != 0:
                    row = masses.setdefault(observation, {})
                    row[next_state] = row.get(next_state, 0) + flow * likelihood
        return masses

    def flows(self, belief: Given, action: Any) -> list[tuple[Any, Any, Number]]:
        """Return triples ``(s, s', p(s, s' | b, a))`` of positive probability; for weights of states as in `joint`.

        Where observations do not depend on the previous state, that state is ``None`` and summed over.
        """
        weights = belief if isinstance(belief, _WEIGHTS) else as_belief(belief)
        if self._observation_uses_state:
            return [
                (state, next_state, weight * probability)
                for state, weight in weights.items()
                for next_state, probability in self.successors(state, action).items()
                if probability != 0
            ]
        return [(None, next_state, p) for next_state, p in self._reached(weights, action).items()]

    def _reached(self, weights: Any, action: Any) -> dict[Any, Number]:
        """Return ``{s': sum_s b(s) T(s, a, s')}`` for weights of states."""
        pairs = weights.items()
        if pairs and self._known_actions is not None:
            require_action(action, self._known_actions)
        ends, rows = self._is_terminal, self._next
        kept = rows if isinstance(rows, Kept) else None  # its rows need no call
        reached: dict[Any, Number] = {}
        for state, weight in pairs:
            over = ends is not _NOWHERE and ends(state) is not False and self.is_terminal(state)
            row = {state: 1} if over else rows(state, action) if kept is None else kept[state, action]
            if not reached:
                reached = {next_state: weight * p for next_state, p in row.items() if p != 0}
                continue
            for next_state, probability in row.items():
                if probability != 0:
                    reached[next_state] = reached.get(next_state, 0) + weight * probability
        return reached

    def numerators(self, belief: Given, action: Any, observation: Any) -> dict[Any, Number]:
        """Return ``{s': p(s', o | b, a)}`` for one observation: one row of `joint`, for weights of states as there."""
        row: dict[Any, Number] = {}
        belief = belief if isinstance(belief, _WEIGHTS) else as_belief(belief)
        if self._observation_uses_state:
            for state, next_state, flow in self.flows(belief, action):
                likelihood = self._seen(next_state, action, state).get(observation, 0)
                if likelihood != 0:
                    row[next_state] = row.get(next_state, 0) + flow * likelihood
            return row
        rows = self._seen
        kept = rows if isinstance(rows, Kept) else None
        for next_state, flow in self._reached(belief, action).items():
            seen = rows(next_state, action) if kept is None else kept[next_state, action]
            likelihood = seen.get(observation, 0)
            if likelihood != 0:
                row[next_state] = flow * likelihood
        return row

    def predict(self, belief: Given, action: Any) -> Belief:
        """Return the belief after the action and before the observation, ``sum_s b(s) T(s, a, s')``."""
        reached: dict[Any, Number] = {}
        for _, next_state, flow in self.flows(self.as_belief(belief), action):
            reached[next_state] = reached.get(next_state, 0) + flow
        return Belief(reached, tolerance=self.belief_tolerance)

    def observation_probabilities(self, belief: Given, action: Any) -> dict[Any, Number]:
        """Return ``{o: Pr(o | b, a)}`` over the possible observations."""
        joint = self.joint(self.as_belief(belief), action)
        return {o: total(row.values()) for o, row in joint.items()}

    def observations(self, belief: Given, action: Any) -> tuple[Any, ...]:
        """Return the possible observations after the action under the belief."""
        return tuple(self.joint(self.as_belief(belief), action))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the state for `pickle`."""
        functions = {"terminal": self._is_terminal, "legal_actions": self._legal}
        functions["belief_reward"] = self.given_belief_reward
        for name in ("transition", "observation", "reward_model"):
            model = getattr(self, name)
            functions[name.removesuffix("_model")] = getattr(model, "function", type(model))
        require_pickled(functions)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        sizes = "states not enumerated yet"
        if "_explored" in self.__dict__:
            sizes = (
                f"{len(self.states)} states, {len(self.all_actions)} actions, {len(self.all_observations)} observations"
            )
        return f"<{type(self).__name__}: {sizes}, discount {self.discount}>"
