"""Bayes' rule on the models of a problem: the mass of an outcome, its evidence, and the division by the evidence.

The rule is::

    b'(s') = sum_s b(s) T(s, a, s') Z(s', a, o) / Pr(o | b, a)

and ``Pr(o | b, a)``, the evidence, is the sum of its numerators over s'. Only what the belief can reach is visited, so
that the support grows where the models say so. Floats, fractions and expressions stay what they are.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ImpossibleObservationError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.name_checks import require_observation
from pomdp_hier.pomdp.numeric import Number, total

# What simplifies a probability that is an expression, and gives back a number as it is.
Simplify = Callable[[Number], Number]


def mass(problem: CorePOMDP, belief: Belief, action: Any, observation: Any) -> dict[Any, Number]:
    """``{s': p(s', o | b, a)}``: the numerator of the rule for the one observation, exact zeros left out."""
    require_observation(observation)
    row: dict[Any, Number] = {}
    for state, next_state, flow in problem.flows(belief, action):
        likelihood = problem.observation_distribution(next_state, action, state).get(observation, 0)
        if likelihood != 0:
            row[next_state] = row.get(next_state, 0) + flow * likelihood
    return row


def evidence(row: Mapping[Any, Number], simplify: Simplify | None = None) -> Number:
    """``Pr(o | b, a)``, the sum of the numerators."""
    whole = total(row.values())
    return whole if simplify is None else simplify(whole)


def posterior(
    problem: CorePOMDP, belief: Belief, action: Any, observation: Any, simplify: Simplify | None = None
) -> Belief:
    """Return the belief after the action and the observation.

    Raises:
        ImpossibleObservationError: ``Pr(o | b, a)`` is 0.
    """
    row = mass(problem, belief, action, observation)
    normaliser = evidence(row, simplify)
    if normaliser == 0:
        raise impossible(
            belief,
            action,
            observation,
            f"what can be observed is {listed(problem.observations(belief, action))}; the observation or the model is "
            "wrong",
        )
    return _divided(row, normaliser, simplify)


def branches(
    problem: CorePOMDP, belief: Belief, action: Any, simplify: Simplify | None = None
) -> Iterator[tuple[Any, Number, Belief]]:
    """Each observation that can follow, with its evidence and the posterior, from one pass over the models."""
    for observation, row in problem.joint(belief, action).items():
        normaliser = evidence(row, simplify)
        if normaliser != 0:
            yield observation, normaliser, _divided(row, normaliser, simplify)


def _divided(row: Mapping[Any, Number], normaliser: Number, simplify: Simplify | None) -> Belief:
    """Divide by the evidence; integers stay exact where it is 1."""
    if simplify is None:
        return Belief(row if normaliser == 1 else {state: p / normaliser for state, p in row.items()})
    return Belief({state: simplify(p / normaliser) for state, p in row.items()})


def impossible(belief: Belief, action: Any, observation: Any, why: str = "") -> ImpossibleObservationError:
    """Return the error for an observation of probability 0, with belief, action and observation in brief."""
    likely = belief.argmax()
    return ImpossibleObservationError(
        f"observation {brief(observation)} has probability 0 after action {brief(action)} under a belief over "
        f"{len(belief)} states (most probable: {brief(likely)}, {belief[likely]}); "
        + (why or "the observation or the model is wrong")
    )
