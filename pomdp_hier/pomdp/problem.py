"""POMDP: the models, the discount, the initial belief, terminal states and legal actions in one place."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief
from pomdp_hier.pomdp.models import as_observation, as_reward, as_transition
from pomdp_hier.pomdp.numeric import Number, brief, is_number, is_symbolic, total

if TYPE_CHECKING:
    import pomdp_py
    from numpy.typing import ArrayLike

    from pomdp_hier.pomdp.tables import Tables
    from pomdp_hier.pomdp.tabular import TabularPOMDP

__all__ = ["POMDP"]


class POMDP:
    """A finite partially observable Markov decision process ``<S, A, T, R, Z, O, gamma>``.

    States, actions and observations are any hashable values. They need not be listed: what can be reached from the
    initial belief is found by following the models.

    Args:
        transition: A `TransitionModel`, a function ``(state, action) -> {next_state: p}`` (or the one next state), or a
            dict ``{(state, action): …}``.
        observation: An `ObservationModel`, a function ``(next_state, action[, state]) -> {observation: p}``, or a dict.
        reward: A `RewardModel`, a function ``(state, action[, next_state[, observation]]) -> number``, or a dict.
        initial_belief: A `Belief` or a mapping from state to probability.
        discount: gamma in [0, 1].
        terminal: The terminal states, or a function of the state. A terminal state is absorbing and worth 0,
            whatever the models say of it.
        legal_actions: The actions, legal everywhere; or a function that returns those legal in a state.
        legal_by: What that function is a function of: ``"state"``; ``"observation"`` (the last one made, ``None`` at
            the start); or ``"belief"`` (such a problem cannot be compiled).
        actions: All actions in their order, where ``legal_actions`` is a function; found by exploring when left out.
        states: All states in their order; those reachable from the initial belief when left out.
        observations: All observations in their order; found by exploring when left out.
        max_states: How many states exploring may meet before it gives up.
        tolerance: How far the mass of a row of the models, or of the initial belief, may be from 1 (exact numbers must
            sum to 1).

    Raises:
        ModelError: An argument is not what it should be.

    Example:
        >>> coin = POMDP(
        ...     transition=lambda s, a: s,
        ...     observation=lambda s, a: {s: 0.75, ("tails" if s == "heads" else "heads"): 0.25},
        ...     reward=lambda s, a: 1.0 if s == a else 0.0,
        ...     initial_belief={"heads": 0.5, "tails": 0.5},
        ...     legal_actions=["heads", "tails"],
        ... )
        >>> coin.states, coin.all_observations
        (('heads', 'tails'), ('heads', 'tails'))
        >>> coin.observation_probabilities(coin.initial_belief, "heads")
        {'heads': 0.5, 'tails': 0.5}

    References:
        Kaelbling, Littman and Cassandra (1998), section 3.
    """

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
    ) -> None:
        self.transition = as_transition(transition)
        self.observation = as_observation(observation)
        self.reward_model = as_reward(reward)
        self.tolerance = tolerance
        if not isinstance(initial_belief, Belief):
            initial_belief = Belief(initial_belief, tolerance=tolerance)
        self.initial_belief = initial_belief
        if not is_number(discount):
            raise ModelError(f"discount: {brief(discount)} is not a number; expected one in [0, 1], such as 0.95")
        if not is_symbolic(discount) and not 0 <= discount <= 1:
            raise ModelError(f"discount: {discount} is outside [0, 1]; write 95 % as 0.95")
        self.discount = discount
        for name, given in (("terminal", terminal or ()), ("legal_actions", legal_actions)):
            if isinstance(given, str) or not (callable(given) or isinstance(given, Iterable)):
                raise ModelError(f"{name}: {given!r} is neither a list nor a function; give a list, [{given!r}]")
        if isinstance(legal_actions, Mapping):  # its keys, states most likely, would be taken for actions
            raise ModelError(
                f"legal_actions: {brief(legal_actions)} is a dict; give a list, or a function of the state"
            )
        self._is_terminal = terminal if callable(terminal) else frozenset(terminal or ()).__contains__
        if legal_by not in ("state", "observation", "belief"):
            raise ModelError(f"legal_by: {legal_by!r} is not one of 'state', 'observation', 'belief'")
        self.legal_by = legal_by
        if callable(legal_actions):
            self._legal: Callable[[Any], Collection[Any]] | None = legal_actions
            self._everywhere: tuple[Any, ...] = ()
        else:
            self._legal, self._everywhere = None, _distinct("legal_actions", legal_actions)
            if not self._everywhere:
                raise ModelError("legal_actions: no action was given; a problem needs at least one")
            actions = self._everywhere if actions is None else actions
        self._given_actions = None if actions is None else _distinct("actions", actions)
        self._given_states = None if states is None else _distinct("states", states)
        self._given_observations = None if observations is None else _distinct("observations", observations)
        self.max_states = max_states
        self._rewards: dict[tuple[Any, Any], Number] = {}

    # --- other ways in -------------------------------------------------------------------------------------------

    @classmethod
    def from_functions(cls, **models: Any) -> "POMDP":
        """Return a problem from plain functions and dicts: the arguments of the class, under the name people look for.

        Example:
            >>> stay = POMDP.from_functions(transition=lambda s, a: s, observation=lambda s, a: "same",
            ...                             reward=lambda s, a: 1, initial_belief={"here": 1}, legal_actions=["wait"])
            >>> stay.states
            ('here',)
        """
        return cls(**models)

    @classmethod
    def from_arrays(
        cls,
        T: Any,
        Z: Any,
        R: Any,
        *,
        initial_belief: "ArrayLike | Belief | None" = None,
        discount: Number = 1,
        states: Sequence[Any] | None = None,
        actions: Sequence[Any] | None = None,
        observations: Sequence[Any] | None = None,
        terminal: Collection[Any] | Callable[[Any], bool] | None = None,
        tolerance: float = MASS_TOLERANCE,
    ) -> "POMDP":
        """Return problem from ``T[a, s, s']``, ``Z[a, s', o]`` and ``R[a, s]``, ``R[a, s, s']`` or ``R[a, s, s', o]``.

        Each of the three is an array (float, or object for fractions) or, for T and Z, a sequence of scipy sparse
        matrices, one an action; R may be a `RewardModel` or a function of names too. Names default to
        0, 1, 2, …; the initial belief defaults to the uniform one.

        Raises:
            ModelError: Shapes do not agree, or a row is not a distribution (within ``tolerance``).

        Example:
            >>> two = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]], discount=0.9)
            >>> two.successors(0, 0), two.expected_reward(0, 0)
            ({0: 0.5, 1: 0.5}, 1.0)
        """
        from pomdp_hier.pomdp.arrays import problem_from_arrays

        return problem_from_arrays(
            cls,
            T,
            Z,
            R,
            initial_belief=initial_belief,
            discount=discount,
            states=states,
            actions=actions,
            observations=observations,
            terminal=terminal,
            tolerance=tolerance,
        )

    @classmethod
    def from_agent(cls, agent: "pomdp_py.Agent", **options: Any) -> "POMDP":
        """Return the problem that a ``pomdp_py.Agent`` with finite spaces plans for; see `pomdp_hier.pomdp.bridge`."""
        from pomdp_hier.pomdp.bridge import problem_from_agent

        return problem_from_agent(agent, **options)

    # --- the spaces ----------------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> tuple[Any, ...]:
        """All states: those given, or those reachable from the initial belief in the order in which they are met."""
        return self._explored[0]

    @cached_property
    def all_actions(self) -> tuple[Any, ...]:
        """All actions: those given, or those that are legal somewhere."""
        return self._explored[1]

    @cached_property
    def all_observations(self) -> tuple[Any, ...]:
        """All observations: those given, or those that can be made."""
        return self._explored[2]

    @cached_property
    def _explored(self) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        """Follows the models from the initial belief (breadth first) through every action that may be legal."""
        if self._given_states and self._given_actions and self._given_observations:
            return self._given_states, self._given_actions, self._given_observations
        if self._given_actions is None and self.legal_by != "state":
            raise ModelError(
                f"actions: with legal actions by {self.legal_by} all actions cannot be found by exploring; "
                "pass actions=[...] in the order you want"
            )
        states = dict.fromkeys(self._given_states or self.initial_belief.support)
        queue = list(states)
        actions: dict[Any, None] = dict.fromkeys(self._given_actions or ())
        observations: dict[Any, None] = {}
        seen: tuple[set[Any], set[Any]] = (set(), set())
        for state in queue:  # grows while it is walked
            if self.is_terminal(state):
                continue
            for action in self.possible_actions(state):
                actions.setdefault(action)
                for next_state in self.successors(state, action):
                    made = dict.fromkeys(self.observation_distribution(next_state, action, state))
                    observations.update(made)
                    seen[self.is_terminal(next_state)].update((action, o) for o in made)
                    if next_state not in states:
                        states[next_state] = None
                        queue.append(next_state)
                        if len(states) > self.max_states:
                            raise ModelError(
                                f"states: more than {self.max_states} were met from the start, such as "
                                f"{brief(next_state)}; the problem is infinite, its states compare by identity (make "
                                f"{type(next_state).__name__} a frozen dataclass), or max_states is too small"
                            )
        over = [state for state in states if self.is_terminal(state)]
        if self.has_mixed_start or not seen[True].isdisjoint(seen[False]):
            for state in over:
                for action in actions:
                    observations.update(dict.fromkeys(self.observation_distribution(state, action, state)))
        return (
            self._given_states or tuple(states),
            self._given_actions or tuple(actions),
            self._given_observations or tuple(observations),
        )

    @property
    def has_mixed_start(self) -> bool:
        """Whether the initial belief holds both a terminal state and one that is not.

        What is observed in a terminal state after a further action matters only where a belief is over both kinds: from
        such a start, or after an observation that both give. Elsewhere the models need not answer for it.
        """
        return len({self.is_terminal(state) for state in self.initial_belief}) == 2

    @property
    def given_spaces(self) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None, tuple[Any, ...] | None]:
        """The states, actions and observations that were listed; ``None`` for those that exploring finds."""
        return self._given_states, self._given_actions, self._given_observations

    @property
    def legal_everywhere(self) -> tuple[Any, ...] | None:
        """The actions, where all of them are always legal; ``None`` where legality is a function."""
        return self._everywhere or None

    def possible_actions(self, state: Any) -> tuple[Any, ...]:
        """Return the actions that may be legal in the state: exactly those, where legality is by state."""
        if self._legal is not None and self.legal_by == "state":
            return tuple(self._legal(state))
        return self._given_actions or self._everywhere

    def is_terminal(self, state: Any) -> bool:
        """Whether the process ends in this state."""
        return bool(self._is_terminal(state))

    def is_over(self, belief: Belief) -> bool:
        """Whether the process has ended for certain: every state of the support is terminal."""
        return all(self.is_terminal(state) for state in belief)

    def actions(self, belief: Belief | None = None, observation: Hashable = None) -> tuple[Any, ...]:
        """Return the legal actions under the belief (the initial one by default); none once the process is over.

        By state, these are the actions legal in every state of the support that is not terminal, in the order of the
        first; `check_problem` reports where states that one observation leaves possible disagree.

        Args:
            belief: What the agent believes.
            observation: The last observation, which a problem with ``legal_by="observation"`` needs.

        Raises:
            ModelError: No action is legal in all states of the support.
        """
        belief = self.initial_belief if belief is None else belief
        if self.is_over(belief):
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
                f"legal_actions: no action is legal under a belief over {len(belief)} states (the first: "
                f"{brief(belief.support[0])}); make the state terminal, or give an action that waits"
            )
        return legal

    # --- one step ------------------------------------------------------------------------------------------------

    def successors(self, state: Any, action: Any) -> Mapping[Any, Number]:
        """``{s': T(s, a, s')}``; a terminal state stays where it is."""
        return {state: 1} if self.is_terminal(state) else self.transition.distribution(state, action)

    def observation_distribution(self, next_state: Any, action: Any, state: Any) -> Mapping[Any, Number]:
        """``{o: p(o | s, a, s')}``."""
        if self._observation_uses_state:
            return self.observation.distribution(next_state, action, state)
        return self.observation.distribution(next_state, action)

    @cached_property
    def _observation_uses_state(self) -> bool:
        return self.observation.uses_state

    def step_reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        """``R(s, a, s', o)``, 0 from a terminal state."""
        if self.is_terminal(state):
            return 0
        reward = self.reward_model.of_step(state, action, next_state, observation)
        if not is_number(reward):
            raise ModelError(f"reward of {brief(action)} in {brief(state)}: {brief(reward)} is not a number")
        return reward

    @cached_property
    def _reward_uses_observation(self) -> bool:
        return self.reward_model.uses_observation

    def expected_reward(self, state: Any, action: Any) -> Number:
        """``R(s, a) = sum_s' T(s, a, s') sum_o Z(s', a, o) R(s, a, s', o)``: the one place where it is taken."""
        key = (state, action)
        if key not in self._rewards:
            terms = []
            for next_state, probability in self.successors(state, action).items():
                if probability == 0:
                    continue
                if not self._reward_uses_observation or self.is_terminal(state):
                    terms.append(probability * self.step_reward(state, action, next_state))
                    continue
                for observation, likelihood in self.observation_distribution(next_state, action, state).items():
                    if likelihood != 0:
                        reward = self.step_reward(state, action, next_state, observation)
                        terms.append(probability * likelihood * reward)
            self._rewards[key] = total(terms)
        return self._rewards[key]

    def reward(self, belief: Belief, action: Any) -> Number:
        """``R_B(b, a) = sum_s b(s) R(s, a)``."""
        return belief.expectation(lambda state: self.expected_reward(state, action))

    def joint(self, belief: Belief, action: Any) -> dict[Any, dict[Any, Number]]:
        """``{o: {s': p(s', o | b, a)}}``: the numerator of Bayes' rule for every observation, exact zeros left out.

        ``p(s', o | b, a) = sum_s b(s) T(s, a, s') p(o | s, a, s')``; the sum over ``s'`` is the evidence of ``o``.
        """
        masses: dict[Any, dict[Any, Number]] = {}
        for state, next_state, flow in self.flows(belief, action):
            for observation, likelihood in self.observation_distribution(next_state, action, state).items():
                if likelihood != 0:
                    row = masses.setdefault(observation, {})
                    row[next_state] = row.get(next_state, 0) + flow * likelihood
        return masses

    def flows(self, belief: Belief, action: Any) -> list[tuple[Any, Any, Number]]:
        """Triples ``(s, s', p(s, s' | b, a))`` for all that is possible.

        Where observations do not depend on the state left, that state is ``None`` and its mass is summed over it.
        """
        if self._observation_uses_state:
            return [
                (state, next_state, weight * probability)
                for state, weight in belief.items()
                for next_state, probability in self.successors(state, action).items()
                if probability != 0
            ]
        reached: dict[Any, Number] = {}
        for state, weight in belief.items():
            for next_state, probability in self.successors(state, action).items():
                if probability != 0:
                    reached[next_state] = reached.get(next_state, 0) + weight * probability
        return [(None, next_state, mass) for next_state, mass in reached.items()]

    def predict(self, belief: Belief, action: Any) -> Belief:
        """Return the belief after the action and before the observation, ``sum_s b(s) T(s, a, s')``."""
        reached: dict[Any, Number] = {}
        for _, next_state, flow in self.flows(belief, action):
            reached[next_state] = reached.get(next_state, 0) + flow
        return Belief(reached, tolerance=max(self.tolerance, MASS_TOLERANCE))

    def observation_probabilities(self, belief: Belief, action: Any) -> dict[Any, Number]:
        """``{o: Pr(o | b, a)}`` over the observations that can be made."""
        return {o: total(row.values()) for o, row in self.joint(belief, action).items()}

    def observations(self, belief: Belief, action: Any) -> tuple[Any, ...]:
        """Return the observations that can be made after the action under the belief."""
        return tuple(self.joint(belief, action))

    # --- other forms ---------------------------------------------------------------------------------------------

    @cached_property
    def compiled(self) -> "TabularPOMDP":
        """The same problem as arrays, in float64; compiled once."""
        from pomdp_hier.pomdp.compiling import compile_problem

        return compile_problem(self)

    def tables(self) -> "Tables":
        """T, Z and R laid out for reading; a notebook shows them as HTML."""
        from pomdp_hier.pomdp.tables import Tables

        return Tables(self)

    def __repr__(self) -> str:
        sizes = "not explored"
        if "_explored" in self.__dict__:
            sizes = (
                f"{len(self.states)} states, {len(self.all_actions)} actions, {len(self.all_observations)} observations"
            )
        return f"<{type(self).__name__}: {sizes}, discount {self.discount}>"


def require_problem(problem: object, where: str) -> None:
    """Raise unless the value is a `POMDP`, as where arguments stand in another order.

    Raises:
        ModelError: It is something else.

    Example:
        >>> require_problem([1, 2], "check_problem")
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: check_problem: [1, 2] is no POMDP; make one with POMDP(...) or read_pomdp(...)
    """
    if not isinstance(problem, POMDP):
        raise ModelError(f"{where}: {brief(problem)} is no POMDP; make one with POMDP(...) or read_pomdp(...)")


def _distinct(name: str, values: Collection[Any]) -> tuple[Any, ...]:
    """Return the values as a tuple, refused when one stands there twice or cannot be hashed."""
    seen: set[Any] = set()
    if isinstance(values, set | frozenset):  # the order of a set of strings changes from run to run
        values = sorted(values, key=repr)
    for value in values:
        try:
            doubled = value in seen
            seen.add(value)
        except TypeError as error:
            raise ModelError(
                f"{name}: {brief(value)} is not hashable; use a string, a tuple or a frozen dataclass"
            ) from error
        if doubled:
            raise ModelError(f"{name}: {brief(value)} stands there twice")
    return tuple(values)
