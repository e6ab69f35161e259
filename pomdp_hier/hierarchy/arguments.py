"""Checks of the lists and names that the readers and the methods of a tree take."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from pomdp_hier._arguments import unexpected
from pomdp_hier._io.memory import held
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError

_LONGEST_RANGE = 10_000_000  # a longer one holds nothing, but would fill the memory as a list


def dense(what: str, values: Any) -> Any:
    """Return the values, iterators as lists.

    Raises:
        ParameterError: An array is sparse, masked or without dimensions, a range is too long for a list, or an iterator
            has more than 20 million values or needs more than half of the memory that is left.

    Example:
        >>> dense("edges", [(0, 1)])
        [(0, 1)]
    """
    hides = hasattr(values, "tocsr") or isinstance(values, np.ma.MaskedArray)
    if hides or (isinstance(values, np.ndarray) and not values.ndim):
        remedy = "expected a dense array. Give .toarray(), or a list." if hides else "expected a list."
        raise ParameterError(f"{what}: got {type(values).__name__} of shape {values.shape}; {remedy}")
    if _is_long_range(values):
        raise ParameterError(f"{what}: got {brief(values)}; expected a range of at most {_LONGEST_RANGE:,} numbers.")
    return held(what, values)


def is_row(value: object) -> bool:
    """Return whether a value can be read as a list; text, dictionaries, iterators and very long ranges cannot.

    Example:
        >>> is_row([1, 2]), is_row(range(3)), is_row("ab"), is_row(np.array(1)), is_row(range(10**12))
        (True, True, False, False, False)
    """
    listable = (
        isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) and hasattr(value, "__len__")
    )
    return listable and getattr(value, "ndim", 1) != 0 and not _is_long_range(value)


def _is_long_range(value: object) -> bool:
    return isinstance(value, range) and bool(value[_LONGEST_RANGE:])  # len() would fail beyond 2**63


def as_text(where: str, value: object) -> str:
    """Return an id or a name as text.

    Raises:
        ParameterError: Python cannot write it: an integer of too many digits, or lists a thousand deep.

    Example:
        >>> as_text("items", 3)
        '3'
    """
    try:
        return str(value)
    except (ValueError, RecursionError):
        raise ParameterError(f"{where}: got {brief(value)}; expected text or a number of fewer digits.") from None


def as_ids(name: str, values: Any) -> tuple[Hashable, ...]:
    """Return a list, array or column of ids as a tuple.

    Raises:
        ParameterError: The value is not a list, or an id in it is not hashable.

    Example:
        >>> as_ids("items", ["a", 1])
        ('a', 1)
    """
    values = dense(name, values)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise unexpected(name, values, "a list of ids")
    found = tuple(values.tolist() if isinstance(values, np.ndarray) else values)
    for place, value in enumerate(found):
        try:
            hash(value)
        except TypeError:
            raise ParameterError(
                f"{name}[{place}]: got {brief(value)}; expected an id such as text or a number."
            ) from None
    return found
