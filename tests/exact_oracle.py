"""The optimal value of one belief by enumeration, written out as it is defined: the ground truth of the planners."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from pomdp_hier import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, total


def exact_value(
    problem: POMDP,
    belief: Belief | None = None,
    horizon: int = 1,
    *,
    observation: Hashable = None,
    final_value: Callable[[Belief], Number] | None = None,
) -> Number:
    """Return the optimal value of one belief, by enumeration of every action and observation; exact for fractions.

    It carries the unnormalised masses ``w(s) = Pr(s, o_1 … o_t | b, a_1 … a_t)``, so that no step divides:
    ``V_t(w) = max_a sum_s w(s) R(s, a) + gamma sum_o V_{t-1}(w_{a, o})``. ``final_value`` is the value of a belief
    after the last step, 0 by default.
    """
    belief = problem.initial_belief if belief is None else problem.as_belief(belief)
    return _enumerate(problem, belief.get_histogram(), observation, horizon, final_value)


def _enumerate(
    problem: POMDP,
    masses: dict[Any, Number],
    observation: Hashable,
    horizon: int,
    final_value: Callable[[Belief], Number] | None,
) -> Number:
    if all(problem.is_terminal(state) for state in masses) or (horizon == 0 and final_value is None):
        return 0
    belief = Belief.normalized(masses)
    if final_value is not None and horizon == 0:
        return total(masses.values()) * final_value(belief)

    def q_value(action: Any) -> Number:
        here = total(mass * problem.expected_reward(state, action) for state, mass in masses.items())
        ahead = (
            _enumerate(problem, row, seen, horizon - 1, final_value) for seen, row in _step(problem, masses, action)
        )
        return here + problem.discount * total(ahead)

    return max(q_value(action) for action in problem.actions(belief, observation))


def _step(problem: POMDP, masses: dict[Any, Number], action: Any) -> Iterable[tuple[Hashable, dict[Any, Number]]]:
    """Return the masses after the action, by observation."""
    rows: dict[Hashable, dict[Any, Number]] = {}
    for state, mass in masses.items():
        for next_state, probability in problem.successors(state, action).items():
            for seen, likelihood in problem.observation_distribution(next_state, action, state).items():
                if probability != 0 and likelihood != 0:
                    row = rows.setdefault(seen, {})
                    row[next_state] = row.get(next_state, 0) + mass * probability * likelihood
    return rows.items()
