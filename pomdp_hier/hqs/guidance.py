"""Guidance: how probably the searcher steps to each child, a softmax of similarities with a temperature per level."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import is_real
from pomdp_hier._arrays import Floats
from pomdp_hier._messages import brief
from pomdp_hier.errors import Argument, ParameterError

__all__ = ["check_temperature", "guidance", "temperatures"]


def check_temperature(delta: float, nu: float) -> None:
    """Raise unless delta is positive and nu at least 1, both finite.

    Raises:
        ParameterError: If they are not.

    Example:
        >>> check_temperature(0.01, 1.0)
    """
    if not (_is_finite(delta) and delta > 0):
        raise ParameterError(
            Argument("delta"), f" is {brief(delta)}; the temperature must be a positive number, such as 0.01"
        )
    if not (_is_finite(nu) and nu >= 1):
        raise ParameterError(
            Argument("nu"), f" is {brief(nu)}; the temperature's growth per level must be a number of at least 1"
        )


def _is_finite(value: object) -> bool:
    return is_real(value) and math.isfinite(value)


def temperatures(levels: npt.ArrayLike, delta: float, nu: float = 1.0) -> Any:
    """Return ``delta_t = delta * nu**t`` for each level t (root 0); infinity, the uniform limit, where it overflows.

    Example:
        >>> temperatures([0, 1, 100_000], 0.01, 1.1)
        array([0.01 , 0.011,   inf])

    References:
        Huang, Piao, Moreno and Hurley, equation of guidance.
    """
    with np.errstate(over="ignore"):
        return delta * np.power(float(nu), np.asarray(levels, dtype=np.float64))


def guidance(similarities: npt.ArrayLike, delta: float, nu: float = 1.0, level: int = 0) -> Floats:
    """Return ``eta``, the probabilities of stepping to each child, along the last axis.

    ``eta(c, c') = softmax of sim(x, c') / delta_t`` with the largest similarity taken off first, so that nothing
    overflows; one child has probability 1 exactly. Source: Huang, Piao, Moreno and Hurley, equation of guidance.

    Args:
        similarities: ``[..., children]``.
        delta: Temperature at the root; positive.
        nu: Its growth per level; at least 1.
        level: Level of the node that the children belong to.

    Example:
        >>> guidance([0.061, 0.0277], 0.005).round(4)
        array([0.9987, 0.0013])
    """
    check_temperature(delta, nu)
    values = np.asarray(similarities, dtype=np.float64)
    with np.errstate(over="ignore"):  # a temperature near 0 takes the others' exponents to -inf, and their weights to 0
        weights = np.exp((values - values.max(axis=-1, keepdims=True)) / temperatures(level, delta, nu))
    eta: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return eta
