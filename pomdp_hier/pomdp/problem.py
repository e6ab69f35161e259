"""POMDP: a problem from models, functions, arrays or an agent, and its other forms, arrays and tables."""

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

    States, actions and observations are any hashable values. They need not be listed: what can be reached from the
    initial belief is found by following the models.

    A function gets what the names of its parameters say, in any order: ``s`` or ``state``, ``a`` or ``action``,
    ``next_state``, ``sp``, ``s2`` or ``t``, ``o`` or ``obs`` (all of them: `pomdp_hier.pomdp.signatures.KNOWN_NAMES`).
    Parameters of other names are taken in the order below, where that leaves one reading.

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
        matrices, one an action; R may be a `RewardModel` or a function of names too. Names default to
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
        """Return the problem that an agent with finite spaces plans for, from its current belief on.

        States, actions and observations stay the agent's own objects. Models of this package are taken as they are;
        others are asked for the ``probability`` of every member of the space, and for the reward's ``sample``, which
        must not be random. Spaces that are neither listed by the agent's models nor given here are walked from its
        belief: ``sample`` finds the outcomes of each step, and ``probability`` is asked for those alone, until it sums
        to 1. `check_problem` holds draws against probabilities.

        Args:
            agent: The agent; of a ``pomdp_py.POMDP``, its ``.agent``.
            discount: gamma; agents have none, so that 1 is taken if left out (one of `to_agent` knows its problem's).
            terminal: The terminal states, or a function of the state; pomdp-py has none.
            states, actions, observations: The spaces, where they should not be walked.
            legal_actions: The legal actions, or a function of the state; those of the policy model by default.
            tolerance: How far the sum of a row may be from 1; 1e-6 by default, for an agent of `to_agent` as in its
                problem.
            normalize: Whether to divide each row by its sum, and the belief by its mass.
            n_samples: The number of samples whose frequencies make each row, for models without a correct
                ``probability``; exact where samples are always the same.

        Raises:
            ModelError: A space is neither listed nor given nor can be drawn, a model is missing, or a setting would do
                nothing.

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
        return compile_problem(self)

    def tables(self) -> Tables:
        """T, Z and R laid out for reading; a notebook shows them as HTML."""
        return Tables(self)


def require_problem(problem: object, where: str) -> None:
    """Raise unless the value is a `POMDP`, as where arguments stand in another order.

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
