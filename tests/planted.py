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


def catalogue(
    n_items: int = 5_612,
    misfiled: float = 0.05,
    seed: int = 0,
    columns: int = 64,
    noise: float = 0.6,
    n_shelves: int | None = None,
) -> tuple[np.ndarray, Hierarchy, Hierarchy, np.ndarray]:
    """A made catalogue of ten items a shelf, eight shelves a department and so on: features drawn along the tree.

    The number of shelves can be given instead.

    Returns:
        The features, the tree that they were drawn along, the same with a share of its items on other shelves, and
        these items.
    """
    rng = np.random.default_rng(seed)
    n_shelves = n_shelves or max(4, n_items // 10)
    shelf = np.sort(rng.integers(n_shelves, size=n_items))
    shelf[:n_shelves] = np.arange(n_shelves)  # none is empty
    parts, parent, above = rng.normal(size=(n_shelves, columns)), [shelf + n_items], np.arange(n_shelves)
    first, count = n_items, n_shelves
    while count > 1:
        fewer = 1 if count <= 20 else -(-count // 8)
        up = np.minimum(np.arange(count) // 8, fewer - 1)
        parent.append(up + first + count)
        above = up[above]
        if fewer > 1:
            parts += rng.normal(size=(fewer, columns))[above]
        first, count = first + count, fewer
    whole = np.concatenate([*parent, [-1]])
    X = parts[shelf] + noise * rng.normal(size=(n_items, columns)) * np.sqrt(len(parent))
    others = np.setdiff1d(np.arange(n_items), np.unique(shelf, return_index=True)[1])  # so that no shelf is left empty
    moved = np.sort(rng.choice(others, int(misfiled * n_items), replace=False))
    broken = whole.copy()
    broken[moved] = n_items + (shelf[moved] + rng.integers(1, n_shelves, size=len(moved))) % n_shelves
    return X, Hierarchy(whole, n_items), Hierarchy(broken, n_items), moved
