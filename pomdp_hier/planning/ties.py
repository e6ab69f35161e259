"""Ties between actions: which values count as equal, and the best of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from pomdp_hier.pomdp.numeric import Number, is_symbolic


def is_tied(value: Number, best: Number, tolerance: float = 0.0) -> bool:
    """Return whether ``best - value <= tolerance``; symbolic expressions must be equal.

    Example:
        >>> is_tied(1.0, 1.0 + 1e-12), is_tied(1.0, 1.0 + 1e-12, tolerance=1e-9)
        (False, True)
    """
    if is_symbolic(value) or is_symbolic(best):
        return bool(value == best)
    return bool(value == best) or bool(best - value <= tolerance)


def best_and_tied(q_values: Mapping[Any, Number], tolerance: float = 0.0) -> tuple[Number, tuple[Any, ...]]:
    """Return the greatest value and the actions that have it, in the order given.

    Example:
        >>> best_and_tied({"left": 1, "wait": 0, "right": 1})
        (1, ('left', 'right'))
    """
    best = largest(q_values.values())
    return best, tuple(action for action, value in q_values.items() if is_tied(value, best, tolerance))


def largest(values: Iterable[Number]) -> Number:
    """Return the greatest value; for expressions that cannot be compared, their symbolic maximum.

    Example:
        >>> largest([1, 3, 2])
        3
    """
    first, *others = values
    best = first
    for value in others:
        try:
            best = value if value > best else best
        except TypeError:  # sympy: a relation between symbols has no truth value
            from sympy import Max

            best = Max(best, value)
    return best
