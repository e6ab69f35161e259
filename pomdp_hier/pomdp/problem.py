"""POMDP: a problem from models, functions, arrays or an agent, with its arrays and tables."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import pomdp_py
from numpy.typing import ArrayLike

from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.array_models import arguments_from_arrays
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief
from pomdp_hier.pomdp.compiling import compile_problem
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.from_agent import arguments_from_agent
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.tables import Tables
from pomdp_hier.pomdp.tabular import TabularPOMDP


class POMDP(CorePOMDP):
    """A finite partially observable Markov decision process ``<S, A, T, R, Z, O, gamma>``.

    States, actions and observations are any hashable values. Spaces that are not listed are found by following the
    models from the initial belief.

    The names of a function's parameters decide its arguments, in any order: ``s`` or ``state``, ``a`` or ``action``,
    ``next_state``, ``sp``, ``s2`` or ``t``, ``o`` or ``obs`` (all of them: `pomdp_hier.pomdp.signatures.KNOWN_NAMES`).
    Parameters with other names have the order below, if that leaves one reading.

    Args:
        transition: A `TransitionModel`, a function ``(state, action) -> {next_state: p}`` (or the one next state), or a
            dict ``{(state, action): …}``.
        observation: An `ObservationModel`, a function ``(next_state, action[, state]) -> {observation: p}``, or a dict.
        reward: A `RewardModel`, a function ``(state, action[, next_state[, observation]]) -> number``, or a dict.
        initial_belief: A `Belief` or a mapping from state to probability.
        discount: gamma in [0, 1].
        terminal: The terminal states, or a function of the state. A terminal state is absorbing with
            value 0, whatever the models return for it.
        legal_actions: The actions, if all are legal everywhere, or a function of the state.
        legal_by: The argument of that function: ``"state"``; ``"observation"`` (the last one, ``None`` at the start);
            or ``"belief"`` (such a problem cannot be compiled).
        actions: All actions in their order, where ``legal_actions`` is a function; the actions found by default.
        states: All states in their order; those reachable from the initial belief by default.
        observations: All observations in their order; the observations found by default.
        max_states: The largest number of states that exploration may find.
        tolerance: The largest distance from 1 of the sum of a row or of the initial belief; exact numbers must sum
            to 1.
        belief_reward: A function ``(belief[, action]) -> number`` that is added to the expected reward of each action,
            such as the negative entropy of the belief (a rho-POMDP). `RTBSS`, `AndOrTree`, `policy_value` and
            `simulate` use it. Named bounds do not hold for it, so that `RTBSS` then prunes by functions alone; what
            needs alpha vectors or pomdp-py raises `ModelError`.

    Raises:
        ModelError: An argument is invalid.

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
        Kaelbling, Littman and Cassandra (1998), section 3; Araya-Lopez et al. (2010), rho-POMDPs.
    """

    @classmethod
    def from_functions(cls, **models: Any) -> "POMDP":
        """Return a problem from plain functions and dicts; the arguments are those of the class.

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
        initial_belief: ArrayLike | Belief | None = None,
        discount: Number = 1,
        states: Sequence[Any] | None = None,
        actions: Sequence[Any] | None = None,
        observations: Sequence[Any] | None = None,
        terminal: Collection[Any] | Callable[[Any], bool] | None = None,
        tolerance: float = MASS_TOLERANCE,
    ) -> "POMDP":
        """Return the problem from ``T[a, s, s']``, ``Z[a, s', o]``, ``R[a, s]``, ``R[a, s, s']`` or ``R[a, s, s', o]``.

        Each of the three is an array (float, or object for fractions) or, for T and Z, a sequence of scipy sparse
        matrices, one per action; R may be a `RewardModel` or a function of names too. Names default to
        0, 1, 2, …; the initial belief defaults to the uniform one.

        Raises:
            ModelError: Shapes do not agree, or a row is not a distribution (within ``tolerance``).

        Example:
            >>> two = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]], discount=0.9)
            >>> two.successors(0, 0), two.expected_reward(0, 0)
            ({0: 0.5, 1: 0.5}, 1.0)
        """
        models = arguments_from_arrays(
            T,
            Z,
            R,
            initial_belief=initial_belief,
            states=states,
            actions=actions,
            observations=observations,
            tolerance=tolerance,
        )
        return cls(discount=discount, terminal=terminal, **models)

    @classmethod
    def from_agent(
        cls,
        agent: pomdp_py.Agent,
        *,
        discount: Number | None = None,
        terminal: Iterable[Any] | Callable[[Any], bool] | None = None,
        states: Sequence[Any] | None = None,
        actions: Sequence[Any] | None = None,
        observations: Sequence[Any] | None = None,
        legal_actions: Collection[Any] | Callable[[Any], Collection[Any]] | None = None,
        tolerance: float | None = None,
        normalize: bool = False,
        n_samples: int | None = None,
    ) -> "POMDP":
        """Return the problem of an agent with finite spaces, from its current belief.

        States, actions and observations stay the agent's objects. Models of this package are used unchanged. Other
        models give the ``probability`` of every member of the space, and the reward by ``sample``, which must not be
        random. Spaces that are not listed are found from the belief: ``sample`` finds the outcomes of each step until
        their probabilities sum to 1. `check_problem` compares samples with probabilities.

        Args:
            agent: The agent; of a ``pomdp_py.POMDP``, its ``.agent``.
            discount: gamma, by default 1, or that of the problem for an agent of `to_agent`.
            terminal: The terminal states, or a function of the state; pomdp-py has none.
            states, actions, observations: The spaces, if they should not be found from the belief.
            legal_actions: The legal actions, or a function of the state; those of the policy model by default.
            tolerance: The largest distance from 1 of the sum of a row, by default 1e-6, or that of the problem for an
                agent of `to_agent`.
            normalize: Whether to divide each row and the belief by its sum.
            n_samples: The number of samples whose frequencies make each row, for models without a correct
                ``probability``; exact where samples are always the same.

        Raises:
            ModelError: A space is not listed and cannot be sampled, a model is missing, or a setting has no effect.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> from pomdp_hier.pomdp import to_agent
            >>> POMDP.from_agent(to_agent(tiger())).successors("tiger-left", "listen")
            {'tiger-left': 1}
        """
        return cls(
            **arguments_from_agent(
                agent,
                discount=discount,
                terminal=terminal,
                states=states,
                actions=actions,
                observations=observations,
                legal_actions=legal_actions,
                tolerance=tolerance,
                normalize=normalize,
                n_samples=n_samples,
            )
        )

    @cached_property
    def compiled(self) -> TabularPOMDP:
        """The same problem as arrays, in float64; compiled once."""
        self.require_state_rewards("arrays, alpha vectors and bounds")
        return compile_problem(self)

    def tables(self) -> Tables:
        """Return T, Z and R as tables, which a notebook shows as HTML."""
        return Tables(self)


def require_problem(problem: object, where: str) -> None:
    """Raise an error unless the value is a `POMDP`.

    Raises:
        ModelError: It is something else.

    Example:
        >>> require_problem([1, 2], "check_problem")
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: check_problem: got [1, 2]; expected a POMDP. Make one with POMDP(...) or ...
    """
    if not isinstance(problem, POMDP):
        raise ModelError(
            f"{where}: got {brief(problem)}; expected a POMDP. Make one with POMDP(...) or read_pomdp(...)."
        )
