"""Checks of arguments, with one pattern of message for every subpackage, and numbers as arrays."""

import os
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from numbers import Real
from typing import Any, ParamSpec, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._text import brief, listed
from pomdp_hier.errors import Argument, ParameterError, Setting

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


def as_floats(values: Any) -> Floats:
    """Return real numbers as an array in float64; text that looks like a number is not one.

    Example:
        >>> as_floats([1, 2]).tolist()
        [1.0, 2.0]
        >>> as_floats([1, "2"])
        Traceback (most recent call last):
        TypeError: text, which is not a number
    """
    array = np.asarray(values)
    if array.dtype.kind in "USTc" or (array.dtype == object and any(isinstance(v, str | bytes) for v in array.flat)):
        raise TypeError("complex numbers" if array.dtype.kind == "c" else "text, which is not a number")
    if array.dtype.kind not in "biufO":
        raise TypeError(f"{array.dtype}, which are not numbers")
    return array.astype(np.float64, copy=False)


def as_integers(values: Any) -> Ints:
    """Return integers as an array in int64.

    Example:
        >>> as_integers([[0, 1]]).tolist()
        [[0, 1]]
        >>> as_integers([0.5])
        Traceback (most recent call last):
        TypeError: float64, which are not integers
    """
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{array.dtype}, which are not integers")
    return array.astype(np.int64, copy=False)


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether the value is an integer of Python or numpy, other than True and False."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_real(value: object) -> TypeGuard[float]:
    """Return whether the value is a real number that a float can hold, other than True and False.

    Example:
        >>> is_real(0.5), is_real(np.float32(0.5)), is_real("0.5"), is_real(1j), is_real(True), is_real(10**400)
        (True, True, False, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether the value is a path that a file system accepts, without NUL or half a surrogate pair.

    Example:
        >>> is_path("tiger.alpha"), is_path(""), is_path("tiger\\0.alpha"), is_path("\\ud800"), is_path(5)
        (True, False, False, False, False)
    """
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    try:
        return isinstance(path, str) and path != "" and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def is_one_of(value: object, *words: object) -> bool:
    """Return whether the value is one of the given words; an array is never compared with a word.

    Example:
        >>> is_one_of("first", "first", "all"), is_one_of(np.array(["first"]), "first", "all")
        (True, False)
    """
    return any(value is word or (isinstance(value, str) and value == word) for word in words)


def unexpected(name: str, value: object, expected: str, *advice: str | Setting) -> ParameterError:
    """Return the error for an argument with a wrong value; `advice` says what to do, and may name settings.

    Example:
        >>> print(unexpected("depth", 0, "an integer of at least 1"))
        depth: got 0; expected an integer of at least 1.
    """
    return ParameterError(Argument(name), f": got {brief(value)}; expected {expected}.", *advice)


def check_integer(name: str, value: object, least: int = 0, most: int | None = None, *, unit: str = "") -> None:
    """Raise an error unless the value is an integer within the bounds."""
    if not (is_integer(value) and value >= least and (most is None or value <= most)):
        upper = "" if most is None else f" and at most {most:,}"
        raise unexpected(name, value, f"an integer of at least {least}{upper}" + (f" ({unit})" if unit else ""))


def check_flag(name: str, value: object) -> None:
    """Raise `ParameterError` unless the value is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise unexpected(name, value, "True or False")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise `ParameterError` unless the value is one of the choices.

    Example:
        >>> check_choice("form", "linen", ("auto", "lines"))
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: form: got 'linen'; expected one of 'auto', 'lines'.
    """
    if not is_one_of(value, *choices):
        raise unexpected(name, value, f"one of {listed(choices, limit=len(choices))}")


def check_text(name: str, value: object) -> None:
    """Raise `ParameterError` unless the value is a text that is not empty, or ``None``."""
    if value is not None and (not isinstance(value, str) or not value):
        raise unexpected(name, value, "text or None")


def check_path(name: str, value: object) -> None:
    """Raise `ParameterError` unless the value is a path, see `is_path`."""
    if not is_path(value):
        raise unexpected(name, value, "a path that is not empty, without NUL")


def check_level(name: str, value: object) -> None:
    """Raise `ParameterError` unless the value is a confidence level, between 0 and 1."""
    if not (is_real(value) and 0 < value < 1):
        raise unexpected(name, value, "a number between 0 and 1, such as 0.95")


def check_kind(name: str, value: object, kind: Any, source: str) -> None:
    """Raise an error unless the value is of a class, as where features are given in place of a result.

    Example:
        >>> check_kind("result", [0.5], float, "the result of evaluate(X, hierarchy)")
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: result: got a list; expected the result of evaluate(X, hierarchy).
    """
    if not isinstance(value, kind):
        raise ParameterError(Argument(name), f": got a {type(value).__name__}; expected {source}.")


def numbered(named: Iterable[tuple[object, T]]) -> dict[str, T]:
    """Return the values by their names as text; a repeated name gets a number.

    Example:
        >>> numbered([("a", 0.5), (1, 0.25), ("1", 0.125)])
        {'a': 0.5, '1': 0.25, '1 (2)': 0.125}
    """
    known: dict[str, T] = {}
    for given, value in named:
        name = text = str(given)
        count = 1
        while name in known:
            count += 1
            name = f"{text} ({count})"
        known[name] = value
    return known


def generator(name: str, seed: Any) -> np.random.Generator:
    """Return the numpy generator of a seed, or the given generator.

    Example:
        >>> generator("seed", -1)
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: seed: got -1; expected an integer of at least 0, a numpy Generator, ...
    """
    return _seeded(np.random.default_rng, name, seed, "an integer of at least 0, a numpy Generator, or None")


def entropy(name: str, seed: Any) -> Any:
    """Return the entropy of numpy's seed sequence for a seed."""
    return _seeded(np.random.SeedSequence, name, seed, "an integer of at least 0, or None").entropy


def _seeded(make: Callable[[Any], R], name: str, seed: Any, expected: str) -> R:
    try:
        if not isinstance(seed, range):  # which may be longer than any list of numbers
            return make(seed)
        reason = "is a range"
    except (ValueError, TypeError) as error:
        reason = f"numpy: {error}"
    raise unexpected(name, seed, f"{expected} ({reason})")


def same_arguments(other: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a function with ``**settings`` the signature of the function that it calls, for ``help`` and type checkers.

    Example:
        >>> def power(base: float, *, exponent: float = 2.0) -> float:
        ...     return base**exponent
        >>> @same_arguments(power)
        ... def shown(*given: Any, **settings: Any) -> str:
        ...     return str(power(*given, **settings))
        >>> print(signature(shown), shown(3.0))
        (base: float, *, exponent: float = 2.0) -> str 9.0
    """

    def dressed(function: Callable[..., R]) -> Callable[P, R]:
        returns = function.__annotations__["return"]
        function.__signature__ = signature(other).replace(return_annotation=returns)  # type: ignore[attr-defined]
        return function

    return dressed
