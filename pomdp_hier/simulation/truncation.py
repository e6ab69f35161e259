"""How long a run may be: to its end or the horizon, or until what can still come is worth less than a stated error.

With a discount below 1 the rewards after step ``t`` add up to at most ``gamma^t max|R| / (1 - gamma)``. With a discount
of 1 nothing bounds them, and where nothing ends a run a horizon is asked for.
"""

import math

import numpy as np

from pomdp_hier._arguments import check_integer
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.pomdp.numeric import is_nonnegative, is_symbolic
from pomdp_hier.pomdp.problem import POMDP

_SHORT = 32  # actions up to which a run is no concern; only then is the environment looked through
_EXPLORED = 10_000  # states to look at for one that ends the process
_LONGEST = 100_000  # actions of a run that nothing bounds


class Truncation:
    """Says when runs of an environment are cut off.

    Args:
        environment: What generates the rewards.
        problem: The agent's model, by which a run may end as well.
        horizon: The most actions in a run; ``None`` for no limit. One of more than 100,000 actions does not keep runs
            from being cut off before, where rewards and a discount bound what can still come.
        truncation_error: Without a horizon of less, the error that a cut may make, in rewards.

    Attributes:
        error: What the cuts that were made can have left out of a run's return, 0 if none was made but the horizon's.

    Raises:
        ParameterError: The horizon is negative, or the cut-off is not positive.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> length = Truncation(tiger(), tiger(), None, 1e-9)
        >>> next(step for step in range(10_000) if length.is_reached(step)), length.error < 1e-9
        (553, True)
    """

    def __init__(self, environment: POMDP, problem: POMDP, horizon: int | None, truncation_error: float) -> None:
        if horizon is not None:
            check_integer("horizon", horizon, 0, unit="actions")
        if not (is_nonnegative(truncation_error) and 0 < truncation_error < math.inf):
            raise ParameterError(
                f"truncation_error: {brief(truncation_error)}; expected a positive number of rewards, such as 1e-9"
            )
        self.environment = environment
        self.problem = problem
        self.horizon = horizon
        self.truncation_error = truncation_error
        self.error = 0.0
        self._last: int | None = None

    def is_reached(self, step: int) -> bool:
        """Whether a run that is still going on after so many actions is cut off.

        Raises:
            PlanningError: Nothing bounds what can still come, and either nothing ends a run or this one is very long.
        """
        if self.horizon is not None and step >= self.horizon:
            return True
        if step < _SHORT or (self.horizon is not None and self.horizon <= _LONGEST):
            return False
        if self._last is None:
            self._last, self._error = self._bound()
        if step < self._last:
            return False
        if math.isinf(self._error):
            if self.horizon is not None:
                return False
            raise PlanningError(
                f"horizon: a run is still going on after {step:,} actions, and nothing bounds what can still come "
                f"({self._why}); give a horizon"
            )
        self.error = max(self.error, self._error)
        return True

    def _bound(self) -> tuple[int, float]:
        """Return after how many actions to cut, and what is left out at the most: infinite where nothing bounds it."""
        gamma = self.environment.discount
        if is_symbolic(gamma):
            self._why = f"the discount is {brief(gamma)}"
            return _LONGEST, math.inf
        if gamma == 1:
            self._why = "the discount is 1"
            if self.horizon is None and not (_can_end(self.environment) or _can_end(self.problem)):
                raise PlanningError("horizon: with a discount of 1 and no state that ends the process, give a horizon")
            return _LONGEST, math.inf
        try:
            largest = float(np.abs(self.environment.compiled.reward).max(initial=0.0))
        except ModelError as error:
            self._why = f"the rewards cannot be listed: {error}"
            return _LONGEST, math.inf
        if gamma == 0 or largest == 0:
            return _SHORT, 0.0
        scale = largest / (1 - float(gamma))
        last = max(_SHORT, math.ceil(math.log(self.truncation_error / scale) / math.log(gamma)))
        return last, scale * float(gamma) ** last


def _can_end(problem: POMDP) -> bool:
    """Whether a state that ends the process can be reached, as far as one looks."""
    queue = list(problem.initial_belief.support)
    seen = set(queue)
    for state in queue:  # grows while it is walked
        if problem.is_terminal(state) or len(seen) > _EXPLORED:
            return True
        for action in problem.possible_actions(state):
            new = [s for s in problem.successors(state, action) if s not in seen]
            seen.update(new)
            queue.extend(new)
    return False
