"""The temperature of the guidance: ``delta_t = delta * nu**t`` at level t."""

import math
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from pomdp_hier.errors import Argument, ParameterError

__all__ = ["check_temperature", "temperatures"]


def check_temperature(delta: float, nu: float) -> None:
    """Raise unless delta is positive and nu at least 1, both finite.

    Raises:
        ParameterError: If they are not.

    Example:
        >>> check_temperature(0.01, 1.0)
    """
    if not (_is_finite(delta) and delta > 0):
        raise ParameterError(
            Argument("delta"), f" is {delta!r}; the temperature must be a positive number, such as 0.01"
        )
    if not (_is_finite(nu) and nu >= 1):
        raise ParameterError(
            Argument("nu"), f" is {nu!r}; the temperature's growth per level must be a number of at least 1"
        )


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


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
