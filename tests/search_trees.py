"""Random trees with guidance and rewards, for the tests of the hierarchy search."""

from fractions import Fraction
from typing import Any

import numpy as np


def random_guidance(rng: np.random.Generator, n_nodes: int, *, exact: bool) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """eta and the rewards of a random tree: chains, wide nodes and one-child nodes occur; eta is above 0.001."""
    kind = int(rng.integers(3))
    children: dict[int, list[int]] = {}
    for node in range(1, n_nodes):
        lowest = {0: 0, 1: max(0, node - 2), 2: 0}[kind]
        parent = int(rng.integers(lowest, 1 + node // 4 if kind == 2 else node))
        children.setdefault(parent, []).append(node)
    eta = {}
    for node, below in children.items():
        weights = [Fraction(int(w)) for w in rng.integers(1, 10, size=len(below))]
        shares = [w / sum(weights) for w in weights]
        eta[node] = dict(zip(below, shares if exact else [float(p) for p in shares], strict=True))
    sizes = rng.integers(0, 100, size=n_nodes)
    rewards = {node: Fraction(int(size), 100) if exact else size / 100 for node, size in enumerate(sizes)}
    return eta, rewards


def height(eta: dict[Any, Any], root: Any = 0) -> int:
    """The number of levels below the root."""
    level, nodes = 0, [root]
    while any(node in eta for node in nodes):
        nodes = [child for node in nodes for child in eta.get(node, ())]
        level += 1
    return level


def a_path(rng: np.random.Generator, eta: dict[Any, Any], root: Any = 0) -> list[Any]:
    """The nodes of a random way from the root to a leaf cluster."""
    path = [root]
    while path[-1] in eta:
        below = list(eta[path[-1]])
        path.append(below[int(rng.integers(len(below)))])
    return path
