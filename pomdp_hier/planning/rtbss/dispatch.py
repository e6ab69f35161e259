"""Which search RTBSS takes: the one on arrays counts in float64, the plain one in the problem's own numbers."""

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, is_exact, is_symbolic

_EXACT: weakref.WeakKeyDictionary[POMDP, tuple[bool, bool]] = weakref.WeakKeyDictionary()


def has_symbols(problem: POMDP) -> bool:
    """Whether symbols occur in the models or the initial belief."""
    return _scanned(problem)[0] or any(is_symbolic(p) for p in problem.initial_belief.values())


def has_exact_numbers(problem: POMDP, belief: Belief) -> bool:
    """Whether fractions or symbols occur in the belief or the models; integers count as floats.

    Example:
        >>> from fractions import Fraction
        >>> from pomdp_hier.problems import tiger
        >>> has_exact_numbers(tiger(), Belief({"tiger-left": Fraction(1, 3), "tiger-right": Fraction(2, 3)}))
        True
    """
    return any(map(_is_exact, belief.values())) or _scanned(problem)[1]


def _is_exact(value: Number) -> bool:
    return is_exact(value) and not isinstance(value, (int, np.integer))


def _scanned(problem: POMDP) -> tuple[bool, bool]:
    """Whether symbols, and whether fractions or symbols, occur in the models; it stops at the first symbol."""
    if problem not in _EXACT:
        exact = False
        for value in _numbers(problem):
            if is_symbolic(value):
                _EXACT[problem] = True, True
                break
            exact = exact or _is_exact(value)
        else:
            _EXACT[problem] = False, exact
    return _EXACT[problem]


def _numbers(problem: POMDP) -> Iterator[Any]:
    """Yield the numbers of the models, as they come."""
    yield problem.discount
    seen: set[Any] = set()
    for state in problem.states:
        if problem.is_terminal(state):
            continue
        by_state = problem.legal_by == "state"
        for action in problem.actions(Belief.certain(state)) if by_state else problem.all_actions:
            yield problem.expected_reward(state, action)
            for next_state, probability in problem.successors(state, action).items():
                yield probability
                key = (next_state, action, state if problem.observation.uses_state else None)
                if key not in seen:
                    seen.add(key)
                    yield from problem.observation_distribution(next_state, action, state).values()
