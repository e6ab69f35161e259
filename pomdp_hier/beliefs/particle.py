"""ParticleUpdater: belief updates from weighted samples."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer, generator
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.core import Given, impossible_observation
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.spaces import require_observation

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
        """Return the belief before the observation: the share of the moved particles per state."""
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
        drawn = np.minimum(np.searchsorted(cumulative, marks, side="right"), len(belief) - 1)
        support = belief.support
        for i, count in enumerate(np.bincount(drawn, minlength=len(support)).tolist()):
            if count:
                successors = self.problem.successors(support[i], action)
                probabilities = np.array([float(p) for p in successors.values()])
                counts = self.rng.multinomial(count, probabilities / probabilities.sum())
                for next_state, moved in zip(successors, counts.tolist(), strict=True):
                    if moved:
                        yield support[i], next_state, moved / self.n_particles
