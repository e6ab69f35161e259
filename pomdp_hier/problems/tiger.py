"""The tiger problem."""

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
