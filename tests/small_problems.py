"""Random small problems with everything that a solver may meet: ends, legal actions, impossible outcomes, costs."""

from typing import Any

import numpy as np

from pomdp_hier import POMDP

KINDS = ("plain", "ends", "legal by state", "legal by observation", "observes the state left")


def small_problem(seed: int, *, kind: str | None = None, discount: float | None = None, unit: float = 1.0) -> POMDP:
    """Return a problem of up to 4 states, 3 actions and 3 observations; the seed decides all that is left out.

    Rewards are integers times ``unit``.
    """
    rng = np.random.default_rng(seed)
    n_states, n_actions, n_observations = (int(rng.integers(1, most + 1)) for most in (4, 3, 3))
    kind = KINDS[int(rng.integers(len(KINDS)))] if kind is None else kind
    gamma = float(rng.choice([0.5, 0.8, 0.95, 0.99, 0.999])) if discount is None else discount

    def rows(*shape: int) -> Any:
        weights = rng.integers(1, 8, size=shape) * (rng.random(shape) < 0.6)
        weights[..., 0] += weights.sum(axis=-1) == 0
        return weights / weights.sum(axis=-1, keepdims=True)

    T, start = rows(n_actions, n_states, n_states), rows(n_states)
    Z = rows(n_states, n_actions, n_states, n_observations)  # [state left, action, state reached, observation]
    R = rng.integers(-9, 10, size=(n_actions, n_states, n_states, n_observations)) - float(rng.choice([0, 10, -10]))
    left = kind == "observes the state left"
    terminal = [n_states - 1] if kind == "ends" and n_states > 1 else []
    if terminal:
        start = (start + np.eye(n_states)[0]) / 2  # the process is not over at the start
    states, actions, observations = range(n_states), range(n_actions), range(n_observations)
    allowed = {x: [0, *(a for a in range(1, n_actions) if rng.random() < 0.5)] for x in (*range(9), None)}
    by_observation = kind == "legal by observation"

    def spread(row: Any) -> dict[int, float]:
        return {int(i): float(row[i]) for i in np.flatnonzero(row)}

    def at(s: int) -> int:
        return s if left else 0

    legal: Any = list(actions)
    if kind.startswith("legal"):
        legal = allowed.__getitem__
    observe: Any = lambda t, a: spread(Z[0, a, t])  # noqa: E731
    if left:
        observe = lambda t, a, s: spread(Z[at(s), a, t])  # noqa: E731
    return POMDP(
        transition=lambda s, a: spread(T[a, s]),
        observation=observe,
        reward=lambda s, a, t, o: float(R[a, s, t, o]) * unit,
        initial_belief=spread(start),
        discount=gamma,
        terminal=terminal,
        legal_actions=legal,
        legal_by="observation" if by_observation else "state",
        states=list(states),
        actions=list(actions),
        observations=list(observations),
    )
