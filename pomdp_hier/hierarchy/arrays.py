"""Array algorithms on the parents of a rooted tree, by pointer doubling, and checks of the readers' arguments.

``parent[v]`` is -1 at a root. Each function takes about ``log2(height)`` passes of plain array operations, without
recursion. A chain of a million nodes costs twenty passes, a balanced tree five.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pomdp_hier._arguments import Ints, is_integer, unexpected
from pomdp_hier._io.formats import held
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import (
    Argument,
    HierarchyError,
    ParameterError,
    PomdpHierError,
    Setting,
)

_LONGEST_RANGE = 10_000_000  # a longer one holds nothing, but would fill the memory as a list


def dense(what: str, values: Any) -> Any:
    """Return the values, iterators as lists."""
    hides = hasattr(values, "tocsr") or isinstance(values, np.ma.MaskedArray)
    if hides or (isinstance(values, np.ndarray) and not values.ndim):
        remedy = "expected a dense array. Give .toarray(), or a list" if hides else "expected a list"
        raise ParameterError(f"{what}: got {type(values).__name__} of shape {values.shape}; {remedy}.")
    if _is_long_range(values):
        raise ParameterError(f"{what}: got {brief(values)}; expected a range of at most {_LONGEST_RANGE:,} numbers.")
    return held(what, values)


def is_row(value: object) -> bool:
    """Return whether a value can be read as a list; text, dictionaries, iterators and very long ranges cannot."""
    listable = (
        isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) and hasattr(value, "__len__")
    )
    return listable and getattr(value, "ndim", 1) != 0 and not _is_long_range(value)


def _is_long_range(value: object) -> bool:
    return isinstance(value, range) and bool(value[_LONGEST_RANGE:])  # len() would fail beyond 2**63


def as_text(where: str, value: object) -> str:
    """Return an id or a name as text."""
    try:
        return str(value)
    except (ValueError, RecursionError):
        raise ParameterError(f"{where}: got {brief(value)}; expected text or a number of fewer digits.") from None


def as_ids(name: str, values: Any) -> tuple[Hashable, ...]:
    """Return a list, array or column of ids as a tuple."""
    values = dense(name, values)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise unexpected(name, values, "a list of ids")
    return require_hashable(name, values.tolist() if isinstance(values, np.ndarray) else values, ParameterError)


def require_hashable(
    name: str, values: Iterable[Any], error: type[PomdpHierError] = HierarchyError
) -> tuple[Hashable, ...]:
    """Return the ids as a tuple; raise ``error`` for one that is not hashable, with its place."""
    found = tuple(values)
    for place, value in enumerate(found):
        try:
            hash(value)
        except TypeError:
            raise error(f"{name}[{place}]: got {brief(value)}; expected an id such as text or a number.") from None
    return found


def _jumps(parent: Ints) -> Iterator[Ints]:
    """Yield the ancestors 1, 2, 4, ... steps up; the sentinel ``n`` is above every root.

    Raises `HierarchyError` without a text if there is a cycle.
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
    """Return the sum of ``values`` over the path from each node to its root, both included."""
    total = np.append(values, 0)
    for jump in _jumps(parent):
        total += total[jump]
    return total[:-1]


def sum_below(parent: Ints, values: Ints) -> Ints:
    """Return the sum of ``values`` over each node's subtree, the node included."""
    total = np.append(values, 0).astype(np.float64)  # bincount adds in float64: exact below 2**53
    for jump in _jumps(parent):
        total += np.bincount(jump, weights=total, minlength=total.size)
        total[-1] = 0.0
    return total[:-1].astype(np.int64)


def min_below(parent: Ints, values: Ints) -> Ints:
    """Return the least of ``values`` over each node's subtree, the node included."""
    least = np.append(values, np.iinfo(np.int64).max)
    for jump in _jumps(parent):
        np.minimum.at(least, jump, least.copy())
    return least[:-1]


def cycle_error(names: Sequence[object]) -> HierarchyError:
    """Return the error for the nodes of a cycle, each below the next, by their names."""
    return HierarchyError(
        f"parents: got a cycle of {counted(len(names), 'node')}, {listed(names)}, each below the next; expected a "
        "tree. Remove one of these links."
    )


def cycle_through(parent: Ints) -> list[int]:
    """Return the nodes of one cycle, each followed by its parent, or an empty list."""
    n = parent.size
    jump = np.append(np.where(parent < 0, n, parent), n)
    for _ in range(n.bit_length() + 1):
        jump = jump[jump]
    stuck = np.flatnonzero(jump[:n] < n)
    if not stuck.size:
        return []
    start = min(int(jump[stuck[0]]), n)  # more than n steps up: a node of the cycle itself
    cycle, node = [start], int(parent[start])
    while node != start:
        cycle.append(node)
        node = int(parent[node])
    least = cycle.index(min(cycle))
    return cycle[least:] + cycle[:least]


def integer_row(values: ArrayLike, what: str) -> Ints:
    """Return the values as a row of integers."""
    try:
        numbers = np.asarray(dense(what, values))
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise HierarchyError(
            f"{what}: got {brief(values)}; expected a list or array of node numbers. Give integers."
        ) from None
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise HierarchyError(f"{what}: got {brief(values)}; expected a list or array of node numbers. Give integers.")
    return numbers.astype(np.int64)


def checked_labels(labels: Sequence[Hashable] | None, n_items: int, n_nodes: int) -> tuple[Hashable, ...] | None:
    if labels is None:
        return None
    names = tuple(labels) if isinstance(labels, tuple | list) else as_ids("labels", labels)
    if len(names) == n_items:
        names += tuple(range(n_items, n_nodes))
    if len(names) != n_nodes:
        raise HierarchyError(
            f"labels: got {len(names)}; expected one per node ({n_nodes}) or one per item ({n_items})."
        )
    return require_hashable("labels", names)


def kept_labels(names: tuple[Hashable, ...] | None, keep: Ints, root: int) -> tuple[Hashable, ...] | None:
    """Return the names of the kept nodes; a node without a name gets its old number if its number changes."""
    if np.array_equal(keep, np.arange(keep.size)):
        return None if names is None else names[: keep.size]
    if names is None:
        return tuple(keep.tolist())
    return tuple(
        old if names[old] is None and old not in (new, root) else names[old] for new, old in enumerate(keep.tolist())
    )


def check_tree(parent: Ints, n_items: int, labels: tuple[Hashable, ...] | None) -> None:
    """Raise an error unless the parents are one rooted tree over the items; nodes are named by their labels."""

    def named(nodes: Sequence[int]) -> str:
        return listed(nodes if labels is None else [labels[node] for node in nodes])

    n_nodes = parent.size
    if not n_nodes:
        raise HierarchyError("parents: got no nodes; expected at least one item. Add the items.")
    wrong_count = HierarchyError(
        Argument("n_items"), f": got {n_items} for {counted(n_nodes, 'node')}; expected 1..{n_nodes}."
    )
    if n_items > n_nodes:
        raise wrong_count
    bad = np.flatnonzero((parent < -1) | (parent >= n_nodes) | ((parent >= 0) & (parent < n_items)))
    if bad.size:
        raise HierarchyError(
            f"parent of node {named(bad[:1].tolist())}: got {parent[bad[0]]}; expected -1 (the root) or an internal "
            f"node, {n_items}..{n_nodes - 1}. Correct it, or n_items."
        )
    cycle = cycle_through(parent)
    if cycle:
        raise cycle_error(cycle if labels is None else [labels[node] for node in cycle])
    if not n_items:
        raise wrong_count
    roots = np.flatnonzero(parent < 0).tolist()
    if len(roots) > 1:
        items = [root for root in roots if root < n_items]
        missing = f" (items in no cluster: {named(items)})" if items else ""
        raise HierarchyError(
            f"parents: got {len(roots)} roots, {named(roots)}{missing}; expected one. Add the missing parents, or "
            "place the roots under a new node: pass ",
            Setting("add_root", True),
            ".",
        )


def in_number_order(nodes: list[int], ids: Sequence[Hashable], start: int) -> list[int]:
    """Return the nodes sorted by id if the ids are the integers from ``start`` on (or their text), else unchanged."""
    numbers = [number for node in nodes if (number := number_of(ids[node])) is not None]
    if len(numbers) < len(nodes):
        return nodes
    by_id = sorted(zip(numbers, nodes, strict=True))
    return [node for _, node in by_id] if [n for n, _ in by_id] == list(range(start, start + len(nodes))) else nodes


def number_of(name: Hashable) -> int | None:
    """Return the integer that an id is, also as text, or ``None``."""
    if isinstance(name, str):
        return int(name) if name.isascii() and name.isdigit() and len(name) < 19 and str(int(name)) == name else None
    return int(name) if is_integer(name) else None
