"""Arguments as they come in: whether a value is of the kind that is wanted, told in one place for every room."""

from collections.abc import Callable, Iterable
from inspect import signature
from numbers import Real
from typing import Any, ParamSpec, TypeGuard, TypeVar

import numpy as np

from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether the value is a whole number, of Python or numpy; True and False are none.

    Example:
        >>> is_whole(3), is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
        (True, True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_real(value: object) -> TypeGuard[float]:
    """Whether the value is a real number that a float can hold, of Python, numpy or fractions; True and False are none.

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


def is_one_of(value: object, *words: object) -> bool:
    """Whether the value is one of these words, asked without comparing what cannot be compared, as arrays.

    Example:
        >>> is_one_of("first", "first", "all"), is_one_of(np.array(["first"]), "first", "all")
        (True, False)
    """
    return any(value is word or (isinstance(value, str) and value == word) for word in words)


def check_whole(name: str, value: object, least: int = 0, most: int | None = None) -> None:
    """Raise unless the value is a whole number of at least, and perhaps at most, so much.

    Raises:
        ParameterError: It is another number, or none; ``True`` and ``False`` are none.
    """
    if not (is_whole(value) and value >= least and (most is None or value <= most)):
        upper = "" if most is None else f" and at most {most:,}"
        raise ParameterError(Argument(name), f" is {brief(value)}; give a whole number of at least {least}{upper}")


def numbered(named: Iterable[tuple[object, T]]) -> dict[str, T]:
    """Return values by their names as text; a text that comes again gets a number, so that none takes another's place.

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
    """Return the numpy generator of a seed, or the one that was given.

    Raises:
        ParameterError: Numpy has none for it.

    Example:
        >>> generator("seed", -1)
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: seed is -1 (expected non-negative integer); expected a number of at ...
    """
    return _seeded(np.random.default_rng, name, seed, "a number of at least 0, a numpy Generator, or None")


def entropy(name: str, seed: Any) -> Any:
    """Return what numpy's seed sequence of a seed starts from.

    Raises:
        ParameterError: Numpy has none for it.

    Example:
        >>> entropy("seed", 7)
        7
    """
    return _seeded(np.random.SeedSequence, name, seed, "a number of at least 0, or None").entropy


def _seeded(make: Callable[[Any], R], name: str, seed: Any, expected: str) -> R:
    try:
        if not isinstance(seed, range):  # which may be longer than any list of numbers
            return make(seed)
        reason = "a range"
    except (ValueError, TypeError) as error:
        reason = str(error)
    raise ParameterError(Argument(name), f" is {brief(seed)} ({reason}); expected {expected}")


def check_level(name: str, value: object) -> None:
    """Raise unless the value is a level of confidence.

    Raises:
        ParameterError: It is not between 0 and 1.
    """
    if not (is_real(value) and 0 < value < 1):
        raise ParameterError(Argument(name), f" is {brief(value)}; expected a number between 0 and 1, such as 0.95")


def check_flag(name: str, value: object) -> None:
    """Raise unless the value is true or false.

    Raises:
        ParameterError: It is something else.
    """
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(Argument(name), f" is {brief(value)}; expected True or False")


def check_kind(name: str, value: object, kind: Any, source: str) -> None:
    """Raise unless the value is of a class, as where features or a path stand in the place of a result.

    Args:
        name: The argument's name.
        value: What was given.
        kind: The class, or several.
        source: What returns such values, for the message.

    Raises:
        ParameterError: It is of another class.

    Example:
        >>> check_kind("result", [0.5], float, "what evaluate(X, hierarchy) returns")
        Traceback (most recent call last):
        pomdp_hier.errors.ParameterError: result: got a list; give what evaluate(X, hierarchy) returns
    """
    if not isinstance(value, kind):
        raise ParameterError(f"{name}: got a {type(value).__name__}; give {source}")


def same_arguments(other: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a function that hands on its arguments those of another, for ``help`` and for type checkers.

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
