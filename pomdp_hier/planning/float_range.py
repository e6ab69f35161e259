"""The range of floats: checks that they can hold the values of a problem."""

import numpy as np

from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.tabular import TabularPOMDP

LEAST = 1e-280
"""The least size of values: 1e-15 of it, the unit of the rounding errors in bounds, is a normal float."""

GREATEST = 1e300


def horizon_sum(discount: float, horizon: int | None) -> float:
    """Return an upper bound on the sum of the discounts over a horizon; 1 if there is none.

    Example:
        >>> horizon_sum(0.5, None), horizon_sum(0.5, 1), horizon_sum(1, 3), horizon_sum(1, None)
        (2.0, 1.0, 3.0, 1.0)
    """
    indefinite = 1 / (1 - discount) if discount < 1 else None
    return float(min((n for n in (horizon, indefinite) if n is not None), default=1))


def require_float_range(compiled: TabularPOMDP, steps: float = 1.0) -> None:
    """Raise unless floats can hold sums of the greatest reward over ``steps`` actions.

    Args:
        compiled: The problem.
        steps: An upper bound on the sum of the discounts over the horizon.

    Raises:
        ModelError: The greatest reward is too large or too small; the message names its state and action.

    Example:
        >>> from pomdp_hier import POMDP
        >>> require_float_range(POMDP.from_arrays(T=[[[1]]], Z=[[[1]]], R=[[1e300]]).compiled, 10)
        Traceback (most recent call last):
        pomdp_hier.errors.ModelError: reward: got 1e+300 (state 0, action 0); expected at most 1e+299 in size, ...
    """
    sizes = np.where(compiled.legal & ~compiled.terminal, np.abs(compiled.reward), 0.0)
    action, state = np.unravel_index(int(sizes.argmax()), sizes.shape)
    size, most = float(sizes[action, state]), GREATEST / max(1.0, steps)
    if size <= most and (size >= LEAST or size == 0):
        return
    limit = f"at most {most:.3g}" if size > most else f"at least {LEAST:.3g}"
    raise ModelError(
        f"reward: got {float(compiled.reward[action, state]):.6g} (state {brief(compiled.states[state])}, action "
        f"{brief(compiled.actions[action])}); expected {limit} in size, so that floats hold the values. Write all "
        f"rewards in a {'larger' if size > most else 'smaller'} unit."
    )
