"""Random POMDPs, and Bayes' rule written out on dense arrays: the ground truth of the tests of beliefs."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pomdp_hier import POMDP


@dataclass(frozen=True)
class Arrays:
    """T[a, s, s'], Z[a, s', o], R[a, s, s', o] and an initial belief."""

    T: Any
    Z: Any
    R: Any
    start: Any

    def problem(self, **options: Any) -> POMDP:
        return POMDP.from_arrays(self.T, self.Z, self.R, initial_belief=self.start, **options)

    def posterior(self, belief: Any, a: int, o: int) -> tuple[Any, Any]:
        """Evidence and posterior, by three nested loops and nothing shared with the package."""
        n = len(belief)
        mass = [sum(belief[s] * self.T[a][s][t] for s in range(n)) * self.Z[a][t][o] for t in range(n)]
        evidence = sum(mass)
        return evidence, [m / evidence for m in mass] if evidence else None


def random_arrays(rng: np.random.Generator, n_states: int, n_actions: int, n_observations: int) -> Arrays:
    """Rows with zeros in them, so that some observations are impossible and some states unreachable."""

    def rows(*shape: int) -> Any:
        weights = rng.random(shape) * (rng.random(shape) < 0.7)
        weights[..., 0] += (weights.sum(axis=-1) == 0) * 1.0
        return weights / weights.sum(axis=-1, keepdims=True)

    return Arrays(
        rows(n_actions, n_states, n_states),
        rows(n_actions, n_states, n_observations),
        rng.normal(size=(n_actions, n_states, n_states, n_observations)),
        rows(n_states),
    )


def exact_arrays(rng: np.random.Generator, n_states: int, n_actions: int, n_observations: int) -> Arrays:
    """The same in fractions."""

    def rows(*shape: int) -> Any:
        weights = rng.integers(0, 4, size=shape)
        weights[..., 0] += weights.sum(axis=-1) == 0
        sums = weights.sum(axis=-1, keepdims=True)
        return np.vectorize(lambda p, q: Fraction(int(p), int(q)), otypes=[object])(weights, sums)

    rewards = rng.integers(-5, 5, size=(n_actions, n_states, n_states, n_observations))
    return Arrays(
        rows(n_actions, n_states, n_states),
        rows(n_actions, n_states, n_observations),
        np.vectorize(lambda r: Fraction(int(r), 3), otypes=[object])(rewards),
        rows(n_states),
    )


@st.composite
def sizes_and_seed(draw: st.DrawFn) -> tuple[np.random.Generator, int, int, int]:
    """A generator and the numbers of states, actions and observations."""
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed), *(draw(st.integers(1, n)) for n in (6, 3, 4))


def errand(p: Any) -> POMDP:
    """From the start go near or far, or stop; afterwards one may only stop, which ends it. A small problem by hand."""
    prizes = {"start": 0, "near": Fraction(1, 2), "far": -1}
    return POMDP(
        transition=lambda s, a: {"near": p, "far": 1 - p} if a == "go" else "end",
        observation=lambda s, a: {s: 1} if a == "go" else {"home": 1},
        reward=lambda s, a, t: prizes[s] if a == "stop" and s != "end" else 0,
        initial_belief={"start": 1},
        terminal=["end"],
        legal_actions=lambda s: ["go", "stop"] if s == "start" else ["stop"],
        actions=["go", "stop"],
        states=["start", "near", "far", "end"],
        observations=["near", "far", "home"],
    )
