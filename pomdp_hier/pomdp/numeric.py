"""Arithmetic that is the same for floats, fractions and symbols.

Probabilities and rewards may be floats, ``fractions.Fraction`` (exact) or sympy expressions. What differs between them
is kept here: how to add many of them, when a sum counts as one, and how to sample from weights.
"""

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Number as _Number
from numbers import Rational, Real
from typing import Any, TypeVar

from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError

# A float, an int, a Fraction, a numpy scalar or a sympy expression: whatever adds, multiplies and compares with 0.
Number = Any

K = TypeVar("K", bound=Hashable)

_FLOATS = {float}
_PLAIN = {float, int}  # by far the most frequent, and told apart from others faster by type than by number class


def is_symbolic(value: Number) -> bool:
    """Return whether the value is an expression, such as a sympy symbol."""
    return type(value) not in _PLAIN and not isinstance(value, _Number) and hasattr(value, "free_symbols")


def is_number(value: object) -> bool:
    """Return whether the value is a number or an expression."""
    return isinstance(value, _Number) or is_symbolic(value)


def is_text(value: object) -> bool:
    """Return whether the value is text, which may look like a number."""
    return isinstance(value, str | bytes)


def unquoted(value: object) -> str:
    """Return advice for a text that looks like a number."""
    try:
        return " Write it without quotes." if is_text(value) and math.isfinite(float(value)) else ""  # type: ignore[arg-type]
    except ValueError:
        return ""


def is_nonnegative(value: Number) -> bool:
    """Return whether the value is a real number of at least 0, or an expression not known to be negative."""
    if type(value) in _PLAIN:
        return bool(value >= 0)
    if is_symbolic(value):
        return value.is_negative is not True and value.is_real is not False
    return isinstance(value, (Real, Decimal)) and bool(value >= 0)  # type: ignore[operator]  # both compare with 0


def is_finite(value: object) -> bool:
    """Return whether the value is a finite real number of any size, or an expression."""
    if type(value) in _PLAIN:
        return bool(-math.inf < value < math.inf)  # type: ignore[operator]
    return is_symbolic(value) or (isinstance(value, (Real, Decimal)) and float("-inf") < value < float("inf"))  # type: ignore[operator]


def as_float(value: Number, where: str) -> float:
    """Return the value as a float; raise for text, symbols and numbers that are too large."""
    if is_text(value):
        raise ModelError(f"{where}: got the text {brief(value)}; expected a number.{unquoted(value)}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ModelError(f"{where}: got {brief(value)}; expected a number below 1.8e308. Use a larger unit.") from error
    except (TypeError, ValueError) as error:
        remedy = " Substitute numbers for its symbols." if is_symbolic(value) else ""
        raise ModelError(f"{where}: got {brief(value)}; expected a number.{remedy}") from error
    if not math.isfinite(number):
        raise ModelError(f"{where}: got {number}; expected a finite number.")
    return number


def shown(value: Number) -> str:
    """Return the text of a number for a message, such as 1/3 for a fraction."""
    short = isinstance(value, Fraction) and value.denominator.bit_length() + value.numerator.bit_length() < 100
    return str(value) if short else brief(value)


def is_exact(value: Number) -> bool:
    """Return whether the value is an integer, a fraction or an expression, which need no tolerance."""
    return isinstance(value, Rational) or is_symbolic(value)


def total(values: Iterable[Number]) -> Number:
    """Return the sum: correctly rounded for floats (``math.fsum``), exact for fractions and expressions."""
    terms = list(values)
    kinds = set(map(type, terms))
    if kinds == _FLOATS:
        try:
            return math.fsum(terms)
        except (ValueError, OverflowError):  # infinities of both signs, or a partial sum out of range
            pass
    if Decimal in kinds and len(kinds) > 1:  # which adds to no other type
        terms = [Fraction(term) if type(term) is Decimal and term.is_finite() else term for term in terms]
        kinds = set(map(type, terms))
    if any(issubclass(kind, float) for kind in kinds) and all(issubclass(kind, Real) for kind in kinds):
        try:
            return math.fsum(float(term) for term in terms)
        except (ValueError, OverflowError):  # infinities of both signs, or a partial sum out of range
            infinite = [term for term in terms if not -math.inf < term < math.inf]
            return float(sum(infinite)) if infinite else _nearest_float(sum(map(_exactly, terms)))
    return sum(terms, start=0)


def within_floats(value: Number, most: float = sys.float_info.max) -> Number:
    """Return a value that is computed from finite rewards.

    Example:
        >>> within_floats(2.0), within_floats(Fraction(1, 3))
        (2.0, Fraction(1, 3))
    """
    if isinstance(value, float) and abs(value) > most:
        raise ModelError(
            f"reward: got rewards whose sum is {value:.3g}; expected at most {most:.3g} in size. Write all rewards in "
            "a larger unit."
        )
    return value


def _exactly(value: Number) -> Fraction:
    return Fraction(value if isinstance(value, Rational) else float(value))


def _nearest_float(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def mean(pairs: Sequence[tuple[Number, Number]], what: Callable[[], str]) -> Number:
    """Return ``sum of w * v`` over pairs of weight and value."""
    try:
        return total([weight * value for weight, value in pairs])
    except (OverflowError, TypeError) as error:
        kinds = sorted({type(number).__name__ for pair in pairs for number in pair})
        raise ModelError(
            f"{what()}: got numbers of types {', '.join(kinds)} ({error}); expected floats, or fractions alone."
        ) from error


def nearly_equal(value: Number, target: Number, tolerance: float) -> bool:
    """Return whether ``|value - target| <= tolerance``, and for exact numbers whether they are equal.

    An expression is equal when its difference from the target simplifies to zero.
    """
    difference = value - target
    if is_symbolic(difference):
        return bool(difference == 0 or simplified(difference) == 0)
    if is_exact(difference):
        return bool(difference == 0)
    return bool(abs(difference) <= tolerance)


_FACTORED = 200  # the largest number of operations for which an expression is factored


def simplified(value: Number) -> Number:
    """Return the simplified expression, 0 if it vanishes and factored if it is short; numbers unchanged.

    A quotient of polynomials is put in lowest terms, in time that grows with its terms. For other expressions, and
    those with floats, sympy searches for a short form, which takes longer.

    Example:
        >>> simplified(0.5)
        0.5
    """
    if not is_symbolic(value):
        return value
    if not value.is_rational_function() or any(atom.is_Float for atom in value.atoms()):
        return value.simplify()
    plain = value.cancel()
    return plain.factor() if plain.count_ops() <= _FACTORED else plain


def positive_part(weights: Mapping[K, Number]) -> dict[K, Number]:
    """Return the entries whose weight is not exactly zero, in their order."""
    return {key: weight for key, weight in weights.items() if weight != 0}


def sampled_outcome(weights: Mapping[K, Number], uniform: float) -> K:
    """Return the outcome at the given point of the cumulative distribution, ``uniform`` in [0, 1)."""
    threshold = uniform * float(total(weights.values()))
    cumulative = 0.0
    outcome = None
    for key, weight in weights.items():
        if weight != 0:
            outcome = key
            cumulative += float(weight)
            if threshold < cumulative:
                break
    return outcome  # type: ignore[return-value]  # some weight is positive
