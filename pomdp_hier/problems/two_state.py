"""Problems of two states: the tiger and the crying baby."""

from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP

_SIDES = ("left", "right")


def tiger(*, discount: Number = 0.95, accuracy: Number = 0.85) -> POMDP:
    """Return the tiger problem: a tiger behind one of two doors.

    Listening costs 1. Opening a door has reward 10, or -100 with the tiger behind it, and moves the tiger at random.
    Pass fractions for exact numbers.

    Args:
        discount: gamma.
        accuracy: The probability of hearing the tiger where it is.

    Example:
        >>> problem = tiger()
        >>> problem.states, problem.reward(problem.initial_belief, "open-left")
        (('tiger-left', 'tiger-right'), -45.0)

    References:
        Cassandra, Kaelbling and Littman (1994); Kaelbling, Littman and Cassandra (1998), section 5.1.
    """
    half = (accuracy + (1 - accuracy)) / 2  # one half in the number type of the accuracy
    states = tuple(f"tiger-{side}" for side in _SIDES)
    heard = tuple(f"hear-{side}" for side in _SIDES)
    transition = {(s, a): dict.fromkeys(states, half) for s in states for a in ("open-left", "open-right")}
    transition |= {(s, "listen"): {s: 1} for s in states}
    observation = {(s, a): dict.fromkeys(heard, half) for s in states for a in ("open-left", "open-right")}
    reward: dict[tuple[str, str], Number] = {(s, "listen"): -1 for s in states}
    for here, other in (_SIDES, _SIDES[::-1]):
        state = f"tiger-{here}"
        observation[state, "listen"] = {f"hear-{here}": accuracy, f"hear-{other}": 1 - accuracy}
        reward |= {(state, f"open-{here}"): -100, (state, f"open-{other}"): 10}
    return POMDP(
        transition=transition,
        observation=observation,
        reward=reward,
        initial_belief=dict.fromkeys(states, half),
        discount=discount,
        legal_actions=("listen", "open-left", "open-right"),
        states=states,
        observations=heard,
    )


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
