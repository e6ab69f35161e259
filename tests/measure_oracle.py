"""Pairs of items and where they meet, found one pair at a time: what the fast measures are checked against."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from pomdp_hier.hierarchy import Hierarchy
from tests.hierarchy_oracle import samples


def inner_path(tree: Hierarchy, item: int) -> list[int]:
    """The inner nodes above an item, lowest first."""
    nodes, node = [], int(tree.parent[item])
    while node >= 0:
        nodes.append(node)
        node = int(tree.parent[node])
    return nodes


def meeting(tree: Hierarchy, i: int, j: int) -> int:
    """The lowest inner node that holds both items."""
    above = set(inner_path(tree, j))
    return next(node for node in inner_path(tree, i) if node in above)


def pairs(tree: Hierarchy) -> list[tuple[int, int, int]]:
    """Every pair of items with the node where it meets."""
    return [(i, j, meeting(tree, i, j)) for i, j in combinations(range(tree.n_items), 2)]


def cosines(X) -> np.ndarray:
    """The cosine of every two rows, 0 for a row of zeros."""
    rows = [np.asarray(row, dtype=float) for row in X]
    result = np.zeros((len(rows), len(rows)))
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            scale = np.sqrt(one @ one) * np.sqrt(other @ other)
            result[i, j] = one @ other / scale if scale else 0.0
    return result


@st.composite
def trees_with_features(draw, signed: bool = True) -> tuple[Hierarchy, np.ndarray]:
    """Any small tree, and features with duplicates but without rows of zeros."""
    tree = draw(samples()).hierarchy(draw(st.booleans()))
    low = -3 if signed else 0
    row = st.lists(st.integers(low, 3), min_size=3, max_size=3).filter(any)
    return tree, np.array(draw(st.lists(row, min_size=tree.n_items, max_size=tree.n_items)), dtype=float)
