"""Guidance: how probably the searcher steps to each child, a softmax of similarities with a temperature per level."""

import numpy as np
import numpy.typing as npt

from pomdp_hier._arrays import Floats
from pomdp_hier.hqs.temperature import check_temperature, temperatures

__all__ = ["guidance"]


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
