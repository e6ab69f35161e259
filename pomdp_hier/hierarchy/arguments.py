"""Arguments of the readers and of a tree's methods, each kind checked in one place."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pomdp_hier._arguments import is_one_of, is_whole
from pomdp_hier._io.memory import held
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import Argument, ParameterError

_LONGEST_RANGE = 10_000_000  # a longer one holds nothing, but would fill the memory as a list


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise `ParameterError` unless ``value`` is one of ``choices``.

    Example:
        >>> check_choice("form", "lines", ("auto", "lines", "table"))
    """
    if not is_one_of(value, *choices):
        raise ParameterError(Argument(name), f"={brief(value)} is unknown: choose one of {listed(choices)}")


def check_flag(name: str, value: object) -> None:
    """Raise `ParameterError` unless ``value`` is true or false.

    Example:
        >>> check_flag("singletons", True)
    """
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(Argument(name), f"={brief(value)}, expected True or False")


def check_text(name: str, value: object) -> None:
    """Raise `ParameterError` unless ``value`` is text that is not empty, or ``None``.

    Example:
        >>> check_text("sep", None)
    """
    if value is not None and (not isinstance(value, str) or not value):
        raise ParameterError(Argument(name), f"={brief(value)}, expected text or None")


def dense(what: str, values: Any) -> Any:
    """Return ``values``, iterators as lists; no range too long for one, no array sparse, masked or without dimensions.

    Raises:
        ParameterError: It is one of these, or an iterator goes on beyond 20 million values or half of the memory left.

    Example:
        >>> dense("edges", [(0, 1)])
        [(0, 1)]
    """
    hides = hasattr(values, "tocsr") or isinstance(values, np.ma.MaskedArray)
    if hides or (isinstance(values, np.ndarray) and not values.ndim):
        remedy = "give .toarray(), or a list" if hides else "expected a list"
        raise ParameterError(f"{what}: got {type(values).__name__} of shape {values.shape}; {remedy}")
    if _is_long_range(values):
        raise ParameterError(f"{what}: got {brief(values)}, expected a range of at most {_LONGEST_RANGE:,} numbers")
    return held(what, values)


def is_row(value: object) -> bool:
    """Whether a value can be read as a list: no text, dictionary, iterator, array without dimensions or too long range.

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
        ParameterError: It cannot be shown, as an integer of more digits than Python writes, or lists a thousand deep.

    Example:
        >>> as_text("items", 3)
        '3'
    """
    try:
        return str(value)
    except (ValueError, RecursionError):
        raise ParameterError(f"{where}: got {brief(value)}, expected text or a number of fewer digits") from None


def as_number(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` if it is a whole number of at least ``least``.

    Raises:
        ParameterError: It is something else.

    Example:
        >>> as_number("n_items", 3)
        3
    """
    if not (is_whole(value) and value >= least):
        expected = "a positive integer" if least == 1 else f"a whole number, {least} or more"
        raise ParameterError(Argument(name), f"={brief(value)}, expected {expected}")
    return int(value)


def as_ids(name: str, values: Any) -> tuple[Hashable, ...]:
    """Return a list, array or column of ids as a tuple.

    Raises:
        ParameterError: It is no list, or an id in it is not hashable.

    Example:
        >>> as_ids("items", ["a", 1])
        ('a', 1)
    """
    values = dense(name, values)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ParameterError(Argument(name), f"={brief(values)}, expected a list of ids")
    found = tuple(values.tolist() if isinstance(values, np.ndarray) else values)
    for place, value in enumerate(found):
        try:
            hash(value)
        except TypeError:
            raise ParameterError(
                f"{name}[{place}] is {brief(value)}, expected an id such as a string or a number"
            ) from None
    return found
