"""Sums along the paths of a rooted tree given by its parents, by pointer doubling.

``parent[v]`` is -1 at a root. Each function takes about ``log2(height)`` passes of plain array operations, so that a
chain of a million nodes costs twenty passes and a balanced tree five: no recursion, and no Python step per node.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pomdp_hier._arrays import Ints
from pomdp_hier._text import counted, listed
from pomdp_hier.errors import HierarchyError


def _jumps(parent: Ints) -> Iterator[Ints]:
    """Yield the ancestors 1, 2, 4, ... steps up; the sentinel ``n`` stands above every root.

    Raises `HierarchyError` with no text when the jumps never end, which only a cycle can do.
    """
    n = parent.size
    jump = np.append(np.where(parent < 0, n, parent), n)
    for _ in range(n.bit_length() + 1):
        if (jump == n).all():
            return
        yield jump
        jump = jump[jump]
    raise HierarchyError


def sum_to_root(parent: Ints, values: Ints) -> Ints:
    """Return the sum of ``values`` over the path from each node to its root, both included.

    Example:
        >>> sum_to_root(np.array([2, 2, -1]), np.array([1, 1, 1]))
        array([2, 2, 1])
    """
    total = np.append(values, 0)
    for jump in _jumps(parent):
        total += total[jump]
    return total[:-1]


def sum_below(parent: Ints, values: Ints) -> Ints:
    """Return the sum of ``values`` over each node's subtree, the node included.

    Example:
        >>> sum_below(np.array([2, 2, -1]), np.array([1, 1, 0]))
        array([1, 1, 2])
    """
    total = np.append(values, 0).astype(np.float64)  # bincount adds in float64: exact below 2**53
    for jump in _jumps(parent):
        total += np.bincount(jump, weights=total, minlength=total.size)
        total[-1] = 0.0
    return total[:-1].astype(np.int64)


def min_below(parent: Ints, values: Ints) -> Ints:
    """Return the least of ``values`` over each node's subtree, the node included.

    Example:
        >>> min_below(np.array([2, 2, -1]), np.array([4, 3, 9]))
        array([4, 3, 3])
    """
    least = np.append(values, np.iinfo(np.int64).max)
    for jump in _jumps(parent):
        np.minimum.at(least, jump, least.copy())
    return least[:-1]


def cycle_error(names: Sequence[object]) -> HierarchyError:
    """Return the error for nodes that run in a cycle, each below the next, by their names."""
    return HierarchyError(
        f"the parents run in a cycle of {counted(len(names), 'node')}: {listed(names)}, each below the next and "
        "the last below the first; remove one of these links"
    )


def cycle_through(parent: Ints) -> list[int]:
    """Return the nodes of one cycle, each followed by its parent; empty if every node reaches a root.

    Example:
        >>> cycle_through(np.array([1, 2, 1, -1]))
        [1, 2]
    """
    n = parent.size
    jump = np.append(np.where(parent < 0, n, parent), n)
    for _ in range(n.bit_length() + 1):
        jump = jump[jump]
    stuck = np.flatnonzero(jump[:n] < n)
    if not stuck.size:
        return []
    start = min(int(jump[stuck[0]]), n)  # more than n steps up from a node that never ends: on the cycle itself
    cycle, node = [start], int(parent[start])
    while node != start:
        cycle.append(node)
        node = int(parent[node])
    least = cycle.index(min(cycle))
    return cycle[least:] + cycle[:least]
