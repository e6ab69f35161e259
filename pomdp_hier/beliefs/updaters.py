"""Belief updaters: the interface, Bayes' rule on models and on arrays, and weighted samples."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from pomdp_hier._arguments import Floats, check_integer, generator
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.pomdp.bayes import (
    Simplify,
    bayes_posterior,
    evidence_of,
    impossible_observation,
    joint_row,
    posterior_branches,
)
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.core import Given
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.signatures import SIGNATURES, Signature, bind, required_order
from pomdp_hier.pomdp.spaces import require_action, require_observation
from pomdp_hier.pomdp.tabular import TabularPOMDP


class BayesUpdater:
    """Exact belief updates by Bayes' rule.

    The rule is::

        b'(s') = sum_s b(s) T(s, a, s') Z(s', a, o) / Pr(o | b, a)

    It visits the states that the belief can reach only. Floats, fractions and sympy expressions keep their type.

    Args:
        problem: Any `POMDP`; its spaces need not be finite or listed.
        simplify: A function that simplifies expressions and returns numbers unchanged, applied to evidence and
            posteriors; none by default.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> updater = BayesUpdater(tiger())
        >>> updater.update(tiger().initial_belief, "listen", "hear-left")["tiger-left"]
        0.85

    References:
        Kaelbling, Littman and Cassandra (1998), section 3.3.
    """

    def __init__(self, problem: POMDP, *, simplify: Simplify | None = None) -> None:
        require_problem(problem, "BayesUpdater")
        self.problem = problem
        self._simplify = simplify

    def predict(self, belief: Given, action: Any) -> Belief:
        """Return the belief after the action and before the observation, ``sum_s b(s) T(s, a, s')``."""
        return self.problem.predict(self.problem.as_belief(belief), action)

    def evidence(self, belief: Given, action: Any, observation: Any) -> Number:
        """Return the observation probability ``Pr(o | b, a)``, 0 if the observation is impossible."""
        row = joint_row(self.problem, self.problem.as_belief(belief), action, observation)
        return evidence_of(row, self._simplify)

    def evidences(self, belief: Given, action: Any) -> dict[Any, Number]:
        """Return ``{o: Pr(o | b, a)}`` over the possible observations, from one pass over the models."""
        joint = self.problem.joint(self.problem.as_belief(belief), action)
        return {observation: evidence_of(row, self._simplify) for observation, row in joint.items()}

    def update(self, belief: Given, action: Any, observation: Any) -> Belief:
        """Return the posterior after the action and the observation.

        Raises:
            ImpossibleObservationError: ``Pr(o | b, a)`` is 0.
            ModelError: The action is not one of the problem's, or the belief is invalid.
        """
        return bayes_posterior(self.problem, self.problem.as_belief(belief), action, observation, self._simplify)

    def branches(self, belief: Given, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Return each possible observation, its probability and the posterior, from one pass over the models.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> updater = BayesUpdater(tiger())
            >>> [(o, p) for o, p, _ in updater.branches(tiger().initial_belief, "listen")]
            [('hear-left', 0.5), ('hear-right', 0.5)]
        """
        return posterior_branches(self.problem, self.problem.as_belief(belief), action, self._simplify)


_OF_ACTION = Signature(("belief", "action"), (("belief", "action"),))


@runtime_checkable
class BeliefUpdater(Protocol):
    """The interface of a belief updater: the next belief and its evidence.

    Planners also use two optional methods. Bayes' rule on the problem's models replaces those that are missing:

    - ``predict(belief, action)``: the belief after the action and before the observation.
    - ``branches(belief, action)``: triples ``(observation, Pr(o | b, a), posterior)`` for all possible observations,
      from one pass over the models.

    Example:
        >>> class Deaf:
        ...     def update(self, belief, action, observation):
        ...         return belief
        ...     def evidence(self, belief, action, observation):
        ...         return 0.5
        >>> isinstance(Deaf(), BeliefUpdater)
        True
    """

    def update(self, belief: Belief, action: Any, observation: Any) -> Belief:
        """Return the posterior ``b'(s') = p(s' | b, a, o)``.

        Raises:
            ImpossibleObservationError: ``Pr(o | b, a)`` is 0.
        """
        ...

    def evidence(self, belief: Belief, action: Any, observation: Any) -> Number:
        """Return the observation probability ``Pr(o | b, a)``."""
        ...


@runtime_checkable
class CompleteUpdater(BeliefUpdater, Protocol):
    """A `BeliefUpdater` with both optional methods, as `as_updater` returns it."""

    def predict(self, belief: Belief, action: Any) -> Belief:
        """Return the belief after the action and before the observation."""
        ...

    def branches(self, belief: Belief, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Return each possible observation, its probability and the posterior."""
        ...


class FunctionUpdater:
    """An updater from a function ``(belief, action, observation) -> Belief | mapping``.

    The names of a function's parameters decide its arguments.

    Args:
        function: Returns the posterior, as a `Belief` or a mapping from state to probability.
        problem: The problem, for Bayes' rule in place of functions that are not given.
        evidence: A function of the same arguments that returns ``Pr(o | b, a)``.
        predict: A function of belief and action that returns the belief before the observation.
        branches: A function of belief and action that returns ``(observation, Pr(o | b, a), posterior)`` for all
            possible observations; also the default of evidence.
        simplify: A function that simplifies evidence; see `BayesUpdater`.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> stubborn = FunctionUpdater(lambda b, a, o: b, tiger())
        >>> stubborn.update(tiger().initial_belief, "listen", "hear-left") == tiger().initial_belief
        True
    """

    def __init__(
        self,
        function: Callable[[Belief, Any, Any], Belief | Mapping[Any, Number]],
        problem: POMDP,
        *,
        evidence: Callable[[Belief, Any, Any], Number] | None = None,
        predict: Callable[[Belief, Any], Belief] | None = None,
        branches: Callable[[Belief, Any], Iterable[tuple[Any, Number, Belief]]] | None = None,
        simplify: Simplify | None = None,
    ) -> None:
        self.problem = problem
        self._bayes = BayesUpdater(problem, simplify=simplify)
        self.call = bind("updater", function).call
        self._evidence = evidence and bind("evidence", evidence, SIGNATURES["updater"]).call
        self._predict = predict and bind("predict", predict, _OF_ACTION).call
        self._branches = branches and bind("branches", branches, _OF_ACTION).call

    def update(self, belief: Given, action: Any, observation: Any) -> Belief:
        """Return the function's result as a `Belief`.

        Raises:
            ModelError: The result is not a distribution.
        """
        self.problem.require_action(action)
        return as_belief(self.call(self.problem.as_belief(belief), action, observation))

    def evidence(self, belief: Given, action: Any, observation: Any) -> Number:
        """Return ``Pr(o | b, a)``."""
        known = self.problem.as_belief(belief)
        if self._evidence is None and self._branches is not None:
            return next((p for seen, p, _ in self._branches(known, action) if seen == observation), 0)
        return (self._evidence or self._bayes.evidence)(known, action, observation)

    def predict(self, belief: Given, action: Any) -> Belief:
        """Return the belief after the action and before the observation."""
        return (self._predict or self._bayes.predict)(self.problem.as_belief(belief), action)

    def branches(self, belief: Given, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Yield each possible observation, its probability and the function's posterior."""
        known = self.problem.as_belief(belief)
        if self._branches is not None:
            yield from self._branches(known, action)
            return
        for observation, likely in self._bayes.evidences(known, action).items():
            evidence = likely if self._evidence is None else self._evidence(known, action, observation)
            if evidence != 0:
                yield observation, evidence, self.update(known, action, observation)


def as_updater(updater: Any, problem: POMDP, *, simplify: Callable[[Number], Number] | None = None) -> CompleteUpdater:
    """Return an updater with all four methods, for planning and simulation.

    Args:
        updater: ``None`` for Bayes' rule; an object with ``update`` or ``branches``, and perhaps others of the four
            methods; or a function ``(belief, action, observation) -> Belief | mapping``.
        problem: The problem, for Bayes' rule in place of missing methods.
        simplify: A function that simplifies the probabilities of Bayes' rule.

    Raises:
        ParameterError: It is none of these.
        ModelError: The function cannot be called with belief, action and observation.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> as_updater(lambda b, a, o: b, tiger()).evidence(tiger().initial_belief, "listen", "hear-left")
        0.5
    """
    if updater is None:
        return BayesUpdater(problem, simplify=simplify)
    if isinstance(updater, type):
        raise ParameterError(
            f"updater: got the class {updater.__name__}; expected an instance. Call {updater.__name__}(problem)."
        )
    if isinstance(updater, CompleteUpdater):
        required_order("updater", updater.update)
        return updater
    branches = getattr(updater, "branches", None)
    function = getattr(updater, "update", _choice_of(branches) if branches else updater)
    if not callable(function) or isinstance(updater, Mapping):  # which has another update()
        raise ParameterError(
            f"updater: got {brief(updater)}; expected a function (belief, action, observation), or an object with "
            "update(belief, action, observation) or branches(belief, action)."
        )
    others = {name: getattr(updater, name, None) for name in ("evidence", "predict")}
    return FunctionUpdater(function, problem, branches=branches, simplify=simplify, **others)


def _choice_of(branches: Callable[[Belief, Any], Iterable[tuple[Any, Number, Belief]]]) -> Callable[..., Belief]:
    """Return an update that looks up the observation in the branches."""

    def update(belief: Belief, action: Any, observation: Any) -> Belief:
        for seen, _, posterior in branches(belief, action):
            if seen == observation:
                return posterior
        raise impossible_observation(belief, action, observation)

    return update


B = TypeVar("B", Belief, Floats)


class TabularUpdater:
    """Bayes' rule in float64 on the arrays of a problem, for a `Belief` or an array ``[S]``.

    Arrays are in the order of ``problem.states``; they need no look-up of names and are faster. Predictions use a dense
    transition matrix where that is faster, as measured by ``benchmarks/belief_update.py``. This is for up to 100
    states, for up to 1,000 states with at least 15 % nonzero entries, and beyond that with 50 %.

    Args:
        problem: A `POMDP` or its compiled arrays (``problem.compiled``).

    Raises:
        ModelError: The problem cannot be compiled.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> updater = TabularUpdater(tiger())
        >>> updater.update(np.array([0.5, 0.5]), "listen", "hear-left")
        array([0.85, 0.15])
    """

    def __init__(self, problem: POMDP | TabularPOMDP) -> None:
        if not isinstance(problem, TabularPOMDP):
            require_problem(problem, "TabularUpdater")
        self.compiled = problem if isinstance(problem, TabularPOMDP) else problem.compiled

    def predict(self, belief: B, action: Any) -> B:
        """Return the belief after the action and before the observation, ``sum_s b(s) T(s, a, s')``."""
        return self._like(belief, self.compiled.predict(self._vector(belief), self._action(action)))

    def evidence(self, belief: Belief | Floats, action: Any, observation: Any) -> float:
        """Return the observation probability ``Pr(o | b, a)``, 0 if the observation is impossible."""
        position = self._position(observation)
        if position is None:
            return 0.0
        return float(self.compiled.outcome(self._vector(belief), self._action(action), position).sum())

    def update(self, belief: B, action: Any, observation: Any) -> B:
        """Return the posterior after the action and the observation, in the form of the given belief.

        Raises:
            ImpossibleObservationError: ``Pr(o | b, a)`` is 0.
        """
        position = self._position(observation)
        vector = self._vector(belief)
        mass = None if position is None else self.compiled.outcome(vector, self._action(action), position)
        evidence = 0.0 if mass is None else mass.sum()
        if mass is None or not evidence > 0:
            raise impossible_observation(self.compiled.belief(vector), action, observation)
        return self._like(belief, mass / evidence)

    def branches(self, belief: B, action: Any) -> Iterator[tuple[Any, float, B]]:
        """Yield each possible observation, its probability and the posterior, from one product."""
        names = self.compiled.observations
        for o, evidence, posterior in self.compiled.branches(self._vector(belief), self._action(action)):
            yield names[o], evidence, self._like(belief, posterior)

    def _action(self, action: Any) -> int:
        require_action(action, self.compiled.action_index)
        return self.compiled.action_index[action]

    def _position(self, observation: Any) -> int | None:
        require_observation(observation)
        return self.compiled.observation_index.get(observation)

    def _vector(self, belief: Belief | Floats) -> Floats:
        if not isinstance(belief, np.ndarray):
            return self.compiled.vector(belief)
        if belief.shape != (self.compiled.n_states,):
            raise ModelError(
                f"belief: got shape {belief.shape}; expected ({self.compiled.n_states},), one number per state."
            )
        return belief

    def _like(self, belief: B, vector: Floats) -> B:
        return self.compiled.belief(vector) if isinstance(belief, Belief | Mapping) else vector


_MOST_PARTICLES = 100_000_000


class ParticleUpdater:
    """Approximate belief updates with particles: sample states and next states, and weight them by likelihood.

    States are sampled from the belief by systematic resampling, next states from the transition model. The posterior
    keeps the weights instead of resampling, which has a lower variance. The error falls as
    ``1 / sqrt(n_particles)``.

    Args:
        problem: Any `POMDP` with numbers that convert to floats.
        n_particles: The number of particles per update.
        seed: A seed or a `numpy.random.Generator`; the same seed and the same calls give the same beliefs.

    Raises:
        ParameterError: The number of particles is below 1 or above 100 million, or the seed is invalid.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> updater = ParticleUpdater(tiger(), n_particles=1000, seed=0)
        >>> round(updater.update(tiger().initial_belief, "listen", "hear-left")["tiger-left"], 2)
        0.85

    References:
        Gordon, Salmond and Smith (1993); Thrun (1999).
    """

    def __init__(self, problem: POMDP, n_particles: int = 1000, seed: int | np.random.Generator | None = None) -> None:
        check_integer("n_particles", n_particles, 1, _MOST_PARTICLES)
        require_problem(problem, "ParticleUpdater")
        self.problem = problem
        self.n_particles = n_particles
        self.rng = generator("seed", seed)

    def predict(self, belief: Given, action: Any) -> Belief:
        """Return the belief after the action and before the observation: the share of particles in each state."""
        shares: dict[Any, float] = {}
        for _, next_state, share in self._moved(belief, action):
            shares[next_state] = shares.get(next_state, 0.0) + share
        return Belief.normalized(shares)

    def evidence(self, belief: Given, action: Any, observation: Any) -> float:
        """Return an unbiased estimate of ``Pr(o | b, a)``: the mean likelihood of the particles."""
        require_observation(observation)
        return sum(self._weights(belief, action).get(observation, {}).values())

    def update(self, belief: Given, action: Any, observation: Any) -> Belief:
        """Return the weighted particles as a belief.

        Raises:
            ImpossibleObservationError: No particle has a positive likelihood.
        """
        require_observation(observation)
        belief = self.problem.as_belief(belief)
        weights = self._weights(belief, action).get(observation)
        if not weights:
            raise impossible_observation(
                belief,
                action,
                observation,
                f"one of positive likelihood for some of {self.n_particles} particles, or more particles",
            )
        return Belief.normalized(weights)

    def branches(self, belief: Given, action: Any) -> Iterator[tuple[Any, float, Belief]]:
        """Yield each observation of some particle, its estimated probability and posterior, from one sample."""
        for observation, weights in self._weights(belief, action).items():
            yield observation, sum(weights.values()), Belief.normalized(weights)

    def _weights(self, belief: Given, action: Any) -> dict[Any, dict[Any, float]]:
        """Return ``{o: {s': share of the particles times likelihood}}``."""
        weights: dict[Any, dict[Any, float]] = {}
        for state, next_state, share in self._moved(belief, action):
            for observation, p in self.problem.observation_distribution(next_state, action, state).items():
                if p != 0:
                    row = weights.setdefault(observation, {})
                    row[next_state] = row.get(next_state, 0.0) + share * float(p)
        return weights

    def _moved(self, belief: Given, action: Any) -> Iterator[tuple[Any, Any, float]]:
        """Yield triples of state, next state and the share of the particles with both."""
        belief = self.problem.as_belief(belief)
        cumulative = np.cumsum([float(p) for p in belief.values()])
        marks = (self.rng.random() + np.arange(self.n_particles)) / self.n_particles * cumulative[-1]
        chosen = np.minimum(np.searchsorted(cumulative, marks, side="right"), len(belief) - 1)
        support = belief.support
        for i, count in enumerate(np.bincount(chosen, minlength=len(support)).tolist()):
            if count:
                successors = self.problem.successors(support[i], action)
                probabilities = np.array([float(p) for p in successors.values()])
                counts = self.rng.multinomial(count, probabilities / probabilities.sum())
                for next_state, moved in zip(successors, counts.tolist(), strict=True):
                    if moved:
                        yield support[i], next_state, moved / self.n_particles
