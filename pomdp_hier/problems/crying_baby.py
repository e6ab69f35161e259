"""The crying baby problem."""

from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP


def crying_baby(
    *, discount: Number = 0.9, becomes_hungry: Number = 0.1, cries_hungry: Number = 0.8, cries_sated: Number = 0.1
) -> POMDP:
    """Return the crying baby problem: feed a baby that cries more when it is hungry, or ignore it.

    A hungry baby costs 10 per step, feeding costs 5 and leaves it sated. Pass fractions for exact numbers.

    Args:
        discount: gamma.
        becomes_hungry: The probability that a sated baby that is ignored becomes hungry.
        cries_hungry: The probability that a hungry baby cries.
        cries_sated: The probability that a sated baby cries.

    Example:
        >>> problem = crying_baby()
        >>> problem.reward(problem.initial_belief, "feed")
        -10.0

    References:
        Kochenderfer (2015), *Decision Making Under Uncertainty*, section 6.1.
    """
    half = (becomes_hungry + (1 - becomes_hungry)) / 2  # one half in the number type of the arguments
    cries = {"hungry": cries_hungry, "sated": cries_sated}
    return POMDP(
        transition={
            ("hungry", "feed"): "sated",
            ("sated", "feed"): "sated",
            ("hungry", "ignore"): "hungry",
            ("sated", "ignore"): {"hungry": becomes_hungry, "sated": 1 - becomes_hungry},
        },
        observation={state: {"crying": p, "quiet": 1 - p} for state, p in cries.items()},
        reward={
            (state, action): hungry + fed
            for state, hungry in (("hungry", -10), ("sated", 0))
            for action, fed in (("feed", -5), ("ignore", 0))
        },
        initial_belief={"hungry": half, "sated": half},
        discount=discount,
        legal_actions=("feed", "ignore"),
        states=("hungry", "sated"),
        observations=("crying", "quiet"),
    )
