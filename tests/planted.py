"""A clean synthetic case, and the same tree with one fault planted in it."""

import numpy as np

from pomdp_hier.hierarchy import Hierarchy


def clean_case(top: int = 3, middle: int = 3, items: int = 5, seed: int = 0) -> tuple[np.ndarray, Hierarchy]:
    """Items that lie close together by subgroup, and subgroups by group: features, and the tree that fits them."""
    rng = np.random.default_rng(seed)
    n_items, dimensions = top * middle * items, top + top * middle
    X = np.zeros((n_items, dimensions))
    groups = []
    for group in range(top):
        for sub in range(middle):
            number = group * middle + sub
            rows = slice(number * items, (number + 1) * items)
            X[rows, group] = 1.0
            X[rows, top + number] = 1.0
            groups.append(list(range(rows.start, rows.stop)))
    X += rng.random(X.shape) * 0.1
    n_leaves = top * middle
    tops = [[n_items + group * middle + sub for sub in range(middle)] for group in range(top)]
    root = [n_items + n_leaves + group for group in range(top)]
    return X, Hierarchy.from_children([*groups, *tops, root], n_items)


def swapped(tree: Hierarchy) -> tuple[Hierarchy, tuple[int, int], int]:
    """The tree with a subgroup of the first group and one of the last exchanged, these two, and where they part."""
    first, *_, last = tree.children(tree.root).tolist()
    one, other = int(tree.children(first)[0]), int(tree.children(last)[1])
    parent = tree.parent.copy()
    parent[one], parent[other] = last, first
    return Hierarchy(parent, tree.n_items), (one, other), tree.root


def misplaced(tree: Hierarchy, item: int, target: int) -> tuple[Hierarchy, int]:
    """The tree with one item moved to another leaf cluster, by its number, and that cluster."""
    leaves = np.flatnonzero(tree.is_leaf)
    cluster = int(leaves[target])
    parent = tree.parent.copy()
    parent[item] = cluster
    return Hierarchy(parent, tree.n_items), cluster
