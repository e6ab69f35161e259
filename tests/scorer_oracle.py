"""A second scorer, straight from the paper's equations: slow, plain, and sharing no line with the engine.

Similarities are formed item by item, beliefs and values are exact fractions of the float guidance, and the policy
compares the two sides as the paper writes them: ``Q(b, search) = b (r + 1) - 1`` and the expectation over the children
one step, or several, further down. Made for trees of a few dozen items.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pomdp_hier.hierarchy.tree import Hierarchy

Sim = Callable[[int, list[int]], float]


def cosine(X: Any, leave_out: bool = True, own_singleton: float = 1.0) -> Sim:
    """The mean cosine to the (other) members."""
    rows = [[float(v) for v in row] for row in X]

    def cos(x: int, y: int) -> float:
        long_x, long_y = math.hypot(*rows[x]), math.hypot(*rows[y])
        if long_x == 0 or long_y == 0:
            return 0.0
        return math.fsum((a / long_x) * (b / long_y) for a, b in zip(rows[x], rows[y], strict=True))

    def sim(x: int, members: list[int]) -> float:
        if members == [x]:
            return own_singleton
        others = [y for y in members if not (leave_out and y == x)]
        return math.fsum(cos(x, y) for y in others) / len(others)

    return sim


def squared_distance(X: Any, leave_out: bool, mean: bool) -> Sim:
    """The squared distance to the centroid of the (other) members."""
    rows = [[float(v) for v in row] for row in X]

    def distance(x: int, members: list[int]) -> float:
        others = [y for y in members if not (leave_out and y == x)] or [x]
        total = Fraction(0)
        for d in range(len(rows[0])):
            centre = sum(Fraction(rows[y][d]) for y in others) / len(others)
            total += (Fraction(rows[x][d]) - centre) ** 2
        return float(total / (len(rows[0]) if mean else 1))

    return distance


def inverse_sqeuclidean(
    X: Any, epsilon: float = 1e-4, leave_out: bool = False, mean: bool = False, own_singleton: float | None = None
) -> Sim:
    """One over the squared distance and a bit."""
    distance = squared_distance(X, leave_out, mean)

    def sim(x: int, members: list[int]) -> float:
        if members == [x] and own_singleton is not None:
            return own_singleton
        return 1 / (distance(x, members) + epsilon)

    return sim


def negative_euclidean(X: Any, leave_out: bool = False, mean: bool = False, own_singleton: float | None = None) -> Sim:
    """Less the distance."""
    distance = squared_distance(X, leave_out, mean)

    def sim(x: int, members: list[int]) -> float:
        if members == [x] and own_singleton is not None:
            return own_singleton
        return -math.sqrt(distance(x, members))

    return sim


def precomputed(S: Any, own_singleton: float = 1.0) -> Sim:
    """The mean of given similarities to the other members."""

    def sim(x: int, members: list[int]) -> float:
        others = [y for y in members if y != x]
        return math.fsum(float(S[x][y]) for y in others) / len(others) if others else own_singleton

    return sim


def paper_reward(size: int, n_items: int) -> float:
    """The paper's reward."""
    return 1 - (math.exp(size / n_items) - 1) / (math.e - 1)


@dataclass(frozen=True)
class Scored:
    """One item: its value, where its search stops, and how close its closest decision was (None: none was open)."""

    value: float
    stop: int
    probability: float
    margin: float | None


class Oracle:
    """Scores the items of one tree."""

    def __init__(
        self,
        tree: Hierarchy,
        sim: Sim,
        *,
        delta: float,
        nu: float = 1.0,
        tie: str = "descend",
        depth: int | None = 1,
        policy: str = "plan",
        enter_own_singleton: bool = True,
        reward: Callable[[int, int], float] = paper_reward,
    ) -> None:
        self.tree, self.sim, self.delta, self.nu, self.tie = tree, sim, delta, nu, tie
        self.depth = 10**6 if depth is None else depth
        self.policy, self.enter, self.reward = policy, enter_own_singleton, reward

    def worth(self, node: int) -> Fraction:
        """``r(c) + 1``."""
        return Fraction(self.reward(int(self.tree.sizes[node]), self.tree.n_items)) + 1

    def eta(self, x: int, node: int, level: int) -> list[Fraction]:
        """The guidance to the children, each probability a float taken exactly."""
        children = [int(c) for c in self.tree.children(node)]
        sims = [self.sim(x, [int(y) for y in self.tree.items(c)]) for c in children]
        try:
            temperature = max(self.delta * self.nu**level, 2.0**-1022)  # as the package, where nu below 1 underflows
        except OverflowError:
            temperature = math.inf
        weights = [math.exp((s - max(sims)) / temperature) for s in sims]
        return [Fraction(w / math.fsum(weights)) for w in weights]

    def legal(self, x: int, node: int) -> bool:
        """Whether descending is an action here."""
        children = [int(c) for c in self.tree.children(node)]
        return bool(children) and (self.enter or x not in children)

    def search(self, b: Fraction, node: int) -> Fraction:
        """``Q(b, search)``."""
        return b * self.worth(node) - 1

    def descend(self, x: int, b: Fraction, node: int, level: int, depth: int) -> Fraction:
        """``Q(b, descend)`` when the agent plans that many steps ahead and searches at the end."""
        total = Fraction(0)
        children = [int(c) for c in self.tree.children(node)]
        for child, eta in zip(children, self.eta(x, node, level), strict=True):
            best = self.search(eta * b, child)
            if depth > 1 and self.legal(x, child):
                best = max(best, self.descend(x, eta * b, child, level + 1, depth - 1))
            total += eta * best
        return total

    def score(self, x: int) -> Scored:
        """Follows the path of item x to where the policy stops."""
        node, level, b, closest = self.tree.root, 0, Fraction(1), None
        seen = [(self.search(b, node), node, b)]
        while self.legal(x, node) and self.policy != "search-root":
            if self.policy == "plan":
                # Beliefs cancel: with b = 1 the two sides keep their digits however unlikely the path is.
                margin = self.descend(x, Fraction(1), node, level, self.depth) - self.search(Fraction(1), node)
                if len(self.tree.children(node)) > 1:
                    closest = min(abs(float(margin)), 1.0 if closest is None else closest)
                if margin < 0 or (margin == 0 and self.tie == "search"):
                    break
            children = [int(c) for c in self.tree.children(node)]
            rank = next(j for j, c in enumerate(children) if x in self.tree.items(c))
            b *= self.eta(x, node, level)[rank]
            node, level = children[rank], level + 1
            seen.append((self.search(b, node), node, b))
        if self.policy == "hindsight":
            best = max(value for value, _, _ in seen)
            close = [abs(float(best - value)) for value, _, _ in seen if value != best]
            closest = min(close, default=None)
            ties = [entry for entry in seen if entry[0] == best]
            _, node, b = ties[-1] if self.tie == "descend" else ties[0]
        return Scored(float(self.search(b, node)), node, float(b), closest)


@st.composite
def trees(draw: st.DrawFn, max_items: int = 14) -> Hierarchy:
    """Trees of every shape: wide, deep, pairs, chains of one child, leaf clusters of any size, items by clusters."""
    n_items = draw(st.integers(1, max_items))
    order = draw(st.permutations(range(n_items)))
    open_: list[int] = list(order)
    children: list[list[int]] = []
    pairs = draw(st.booleans())
    while len(open_) > 1 or not children:
        width = min(2, len(open_)) if pairs else draw(st.integers(1, max(1, min(len(open_), 5))))
        at = draw(st.integers(0, len(open_) - width))
        children.append(open_[at : at + width])
        open_[at : at + width] = [n_items + len(children) - 1]
        if len(children) > 3 * n_items:
            children.append(open_)
            break
    return Hierarchy.from_children(children, n_items, singletons=draw(st.booleans()))


@st.composite
def features(draw: st.DrawFn, n_items: int) -> np.ndarray:
    """Small integers and halves: rows of zeros, duplicates and equal similarities come about by themselves."""
    columns = draw(st.integers(1, 4))
    value = st.integers(-4, 4).map(lambda k: k / 2)
    rows: Sequence[Any] = draw(
        st.lists(st.lists(value, min_size=columns, max_size=columns), min_size=n_items, max_size=n_items)
    )
    return np.array(rows, dtype=float).reshape(n_items, columns)
