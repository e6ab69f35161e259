"""Bayes' rule on the models of a problem: posteriors, their evidence, and the error for an impossible observation."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ImpossibleObservationError
from pomdp_hier.pomdp.belief import Belief, belief_of_own
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.numeric import Number, total
from pomdp_hier.pomdp.spaces import require_observation

# Simplifies a probability that is an expression, and returns any other number unchanged.
Simplify = Callable[[Number], Number]


def joint_row(problem: CorePOMDP, belief: Belief, action: Any, observation: Any) -> dict[Any, Number]:
    """Return ``{s': p(s', o | b, a)}``, the numerator of Bayes' rule, without exact zeros."""
    require_observation(observation)
    return problem.numerators(belief, action, observation)


def evidence_of(row: Mapping[Any, Number], simplify: Simplify | None = None) -> Number:
    """Return the evidence ``Pr(o | b, a)``, the sum of the numerators."""
    whole = total(row.values())
    return whole if simplify is None else simplify(whole)


def bayes_posterior(
    problem: CorePOMDP, belief: Belief, action: Any, observation: Any, simplify: Simplify | None = None
) -> Belief:
    """Return the posterior by Bayes' rule after the action and the observation."""
    require_observation(observation)
    row = problem.numerators(belief, action, observation)
    normaliser = total(row.values()) if simplify is None else evidence_of(row, simplify)
    if normaliser == 0:
        raise impossible_observation(
            belief,
            action,
            observation,
            f"one of the possible observations, {listed(problem.observations(belief, action))}",
        )
    return _divided(row, normaliser, simplify)


def posterior_branches(
    problem: CorePOMDP, belief: Belief, action: Any, simplify: Simplify | None = None
) -> Iterator[tuple[Any, Number, Belief]]:
    """Yield each possible observation, its evidence and the posterior, from one pass over the models."""
    for observation, row in problem.joint(belief, action).items():
        normaliser = evidence_of(row, simplify)
        if normaliser != 0:
            yield observation, normaliser, _divided(row, normaliser, simplify)


def _divided(row: dict[Any, Number], normaliser: Number, simplify: Simplify | None) -> Belief:
    """Return the row, which nobody else holds, divided by the evidence; integers stay exact where it is 1."""
    if simplify is not None:
        return Belief({state: simplify(p / normaliser) for state, p in row.items()})
    posterior = row if normaliser == 1 else {state: p / normaliser for state, p in row.items()}
    sums_to_one = type(normaliser) is float and 0 < normaliser < math.inf
    return belief_of_own(posterior, sums_to_one)


def impossible_observation(
    belief: Belief, action: Any, observation: Any, expected: str = "a possible one"
) -> ImpossibleObservationError:
    """Return the error for an observation of probability 0; `expected` says which observations are possible."""
    likely = belief.argmax()
    return ImpossibleObservationError(
        f"observation: got {brief(observation)}, which has probability 0 after action {brief(action)} "
        f"under a belief over {len(belief)} states (most probable: {brief(likely)}, {belief[likely]}); "
        f"expected {expected}. Correct the observation or the model."
    )
