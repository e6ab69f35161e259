"""Small POMDPs that several tests share: tiger, a sensor, a wide tree, the three-node search, random models."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from pomdp_hier import POMDP, Belief


def tiger(discount: Any = 0.95, accuracy: Any = 0.85) -> POMDP:
    """The tiger problem, of whatever kind of number the accuracy is."""
    half = (accuracy + 1 - accuracy) / 2 if isinstance(accuracy, Fraction) else 0.5

    def transition(state, action):
        return {state: 1} if action == "listen" else {"left": half, "right": half}

    def observation(next_state, action):
        if action != "listen":
            return {"hear-left": half, "hear-right": half}
        other = {"left": "right", "right": "left"}[next_state]
        return {f"hear-{next_state}": accuracy, f"hear-{other}": 1 - accuracy}

    def reward(state, action):
        if action == "listen":
            return -1
        return -100 if action == f"open-{state}" else 10

    return POMDP(
        transition=transition,
        observation=observation,
        reward=reward,
        initial_belief={"left": half, "right": half},
        discount=discount,
        legal_actions=["listen", "open-left", "open-right"],
    )


def sensor(accuracy: Any, prior: Any = None, *, discount: Any = 1) -> POMDP:
    """A hidden bit that stays; `look` costs 1 and is right so often, a guess (10 or -20) ends the run."""
    if prior is None:
        prior = Fraction(1, 2) if isinstance(accuracy, Fraction) else 0.5
    return POMDP(
        transition=lambda s, a: s if a == "look" else "end",
        observation=lambda s, a: {s: accuracy, 1 - s: 1 - accuracy} if a == "look" else "done",
        reward=lambda s, a: -1 if a == "look" else (10 if a == s else -20),
        initial_belief={1: prior, 0: 1 - prior},
        terminal=["end"],
        discount=discount,
        legal_actions=["look", 0, 1],
    )


def grid(actions: int, observations: int) -> POMDP:
    """One state, many actions and observations, no two actions worth the same."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda next_state, a: {o: (1 + o) / sum(range(1, observations + 1)) for o in range(observations)},
        reward=lambda s, a: float(a),
        initial_belief={"here": 1},
        legal_actions=range(actions),
    )


def search_tree(
    children: dict[str, list[str]],
    eta: Callable[[str, str], Any],
    rewards: dict[str, Any],
    belief: Any = 1,
) -> POMDP:
    """The search of a hierarchy: descend with guidance eta, or search here; a leaf can only be searched."""

    def transition(state, action):
        node, found = state
        if action == "search":
            return {("end", found): 1}
        result: dict[Any, Any] = {}
        for child in children[node]:
            e = eta(node, child)
            if found:
                result[child, 1] = e * e
                result[child, 0] = e * (1 - e)
            else:
                result[child, 0] = e
        return result

    def reward(state, action, next_state):
        if action == "descend":
            return 0
        return rewards[state[0]] if next_state[1] else -1

    def legal(state):
        return ["descend", "search"] if children.get(state[0]) else ["search"]

    root = next(iter(children))
    return POMDP(
        transition=transition,
        observation=lambda s, a: {s if a == "search" else s[0]: 1},
        reward=reward,
        initial_belief={(root, 1): belief, (root, 0): 1 - belief},
        terminal=lambda s: s[0] == "end",
        legal_actions=legal,
    )


def three_node(eta: Any, r0: Any, r1: Any, r2: Any, belief: Any = 1) -> POMDP:
    """A root with two children: the paper's smallest search."""
    guide = {"c1": eta, "c2": 1 - eta}
    return search_tree({"c0": ["c1", "c2"]}, lambda node, child: guide[child], {"c0": r0, "c1": r1, "c2": r2}, belief)


def random_problem(
    seed: int,
    *,
    states: int = 3,
    actions: int = 3,
    observations: int = 2,
    discount: float = 1.0,
    rewards: str = "mixed",
    terminal: bool = False,
    ties: bool = False,
) -> POMDP:
    """A random POMDP; rewards are ``"positive"``, ``"negative"`` or ``"mixed"``, with ties a few integers."""
    rng = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        weights = rng.random(shape) ** 3 * (rng.random(shape) < 0.7)
        weights[..., 0] += 1e-3
        return weights / weights.sum(axis=-1, keepdims=True)

    low, high = {"positive": (0, 10), "negative": (-10, 0), "mixed": (-10, 10)}[rewards]
    R = rng.uniform(low, high, (actions, states))
    if ties:
        R = np.rint(R / 5) * 5
        R[-1] = R[0]
    T, Z = rows(actions, states, states), rows(actions, states, observations)
    if ties:
        T[-1], Z[-1] = T[0], Z[0]
    return POMDP.from_arrays(
        T, Z, R, initial_belief=rows(states), discount=discount, terminal=[states - 1] if terminal else None
    )


def random_fractions(seed: int, *, states: int = 3, actions: int = 2, observations: int = 2) -> POMDP:
    """A random POMDP in fractions."""
    rng = np.random.default_rng(seed)

    def row(n: int) -> list[Fraction]:
        weights = [Fraction(int(w)) for w in rng.integers(0, 5, n)]
        weights[int(rng.integers(n))] += 1
        return [w / sum(weights) for w in weights]

    T = np.array([[row(states) for _ in range(states)] for _ in range(actions)], dtype=object)
    Z = np.array([[row(observations) for _ in range(states)] for _ in range(actions)], dtype=object)
    R = np.array([[Fraction(int(v), 3) for v in rng.integers(-9, 9, states)] for _ in range(actions)], dtype=object)
    start = Belief(dict(enumerate(row(states))))
    return POMDP.from_arrays(T, Z, R, initial_belief=start, discount=Fraction(9, 10))
