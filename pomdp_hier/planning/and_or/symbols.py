"""Expressions on an AND-OR tree, written as one would by hand; numbers pass through unchanged."""

from collections.abc import Iterable
from typing import Any

from pomdp_hier.pomdp.numeric import Number, is_symbolic


def tidy(value: Number) -> Number:
    """Return the expression as a constant plus a product, where that is shorter; a number as it is.

    Example:
        >>> import sympy
        >>> b, r = sympy.symbols("b r")
        >>> tidy(b * r - (1 - b)), tidy(0.5)
        (b*(r + 1) - 1, 0.5)
    """
    if not is_symbolic(value):
        return value
    import sympy

    if value.has(sympy.Max):
        return value
    plain = sympy.simplify(value)
    constant, rest = sympy.expand(plain).as_coeff_Add()
    return min((constant + _upright(sympy.factor(rest)), value, plain), key=sympy.count_ops)


def _upright(product: Any) -> Any:
    """Return the product with ``1 - x`` in place of ``x - 1``, the sign taken out."""
    import sympy

    factors = []
    for factor in sympy.Mul.make_args(product):
        base, exponent = factor.as_base_exp()
        if base.is_Add and exponent.is_Integer and base.as_coeff_Add()[0].is_negative:
            factors += [sympy.Integer(-1) ** exponent, (-base) ** exponent]
        else:
            factors.append(factor)
    return sympy.Mul(*factors)


def tidy_sum(reward: Number, discount: Number, branches: Iterable[tuple[Number, Number]]) -> Number:
    """``reward + discount * sum p v`` over pairs ``(p, v)`` of expressions, keeping the factors that the values have.

    Example:
        >>> import sympy
        >>> b, e, r, q = sympy.symbols("b e r q")
        >>> tidy_sum(0, 1, [(e, b * e * (r + 1) - 1), (1 - e, b * (1 - e) * (q + 1) - 1)])
        b*(e**2*(r + 1) + (1 - e)**2*(q + 1)) - 1
    """
    import sympy

    branches = [(p, v) for p, v in branches if v != 0]
    if not branches:
        return reward
    pairs = [(sympy.sympify(p), sympy.sympify(v)) for p, v in branches]
    chances: set[Any] = set().union(*(p.free_symbols for p, _ in pairs))
    terms = list(sympy.Add.make_args(sympy.sympify(reward)))
    for p, v in pairs:
        terms.extend(discount * p * term for term in sympy.Add.make_args(v))
    # what no belief and no reward enters, a constant of the values weighted with chances that sum to 1, adds up first
    fixed = sympy.Add(*(t for t in terms if t.free_symbols <= chances))
    rest = sympy.Add(*(t for t in terms if not t.free_symbols <= chances))
    return min((sympy.simplify(fixed) + sympy.factor_terms(rest), tidy(fixed + rest)), key=sympy.count_ops)
