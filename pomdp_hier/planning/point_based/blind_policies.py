"""Blind policies: the same action at every step, where it is legal, and lower bounds on their values.

Source: Hauskrecht (2000), Value-function approximations for POMDPs.
"""

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier.planning.point_based.linear_systems import Stop, controller_values, never
from pomdp_hier.planning.point_based.model_arrays import Outcomes, SolverModel


def blind_plans(model: SolverModel, outcomes: Outcomes) -> Ints:
    """Return ``[A, O]``, the next action of each blind policy after each observation.

    It is the same action, or the first that is always legal where that one may not be; -1 where none is.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import outcomes_of, solver_model
        >>> from pomdp_hier.problems import tiger
        >>> model = solver_model(tiger().compiled)
        >>> blind_plans(model, outcomes_of(model)).tolist()
        [[0, 0], [1, 1], [2, 2]]
    """
    after = repeated(model)
    if model.legal.all():
        return after
    pair = (outcomes.row // model.size) * model.n_observations + outcomes.observation
    flat = np.ones((after.size, model.n_actions), dtype=bool)
    np.logical_and.at(flat, pair, outcomes.usable)
    usable: Bools = flat.reshape(*after.shape, -1)
    for a in range(model.n_actions):
        for o in range(model.n_observations):
            if not usable[a, o, a]:
                after[a, o] = int(usable[a, o].argmax()) if usable[a, o].any() else -1
    return after


def repeated(model: SolverModel) -> Ints:
    """Return ``[A, O]``, the same action after every observation."""
    return np.repeat(np.arange(model.n_actions), model.n_observations).reshape(model.n_actions, -1)


def blind_values(model: SolverModel, plans: Ints, stop: Stop = never) -> Floats:
    """Return ``[A, n]``, lower bounds on the values of blind policies over an infinite horizon.

    Args:
        model: The problem, whose `slack` is finite.
        plans: ``[A, O]``, the next action after each observation.
        stop: Whether to leave; what has not been evaluated gets its least reward at every step.
    """
    if (plans != repeated(model)).any():
        return controller_values(model, np.arange(model.n_actions), plans, stop=stop)[0]
    again = np.zeros((1, model.n_observations), dtype=np.int64)
    values = np.empty(model.reward.shape)
    for a, reward in enumerate(model.reward):
        if stop():
            values[a] = np.where(model.legal[a], min(0.0, float(reward.min(initial=0.0))) * model.slack, -np.inf)
        else:
            values[a] = controller_values(model, np.array([a]), again, stop=stop)[0][0]
    return values


def blind_stage(model: SolverModel, plans: Ints, ahead: Floats) -> Floats:
    """Return ``[A, n]``, the values of blind policies with one action more to go than ``ahead``.

    Args:
        model: The problem.
        plans: ``[A, O]``, the next action after each observation.
        ahead: ``[A, n]``, their values with one action less.
    """
    row = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    observation, state = np.divmod(model.column, model.size)
    then = plans[row // model.size, observation]
    unusable = ~model.legal.ravel()
    unusable[row[then < 0]] = True
    then_values = ahead.ravel()[then * model.size + state]
    unusable[row[then_values == -np.inf]] = True
    then_values = np.where(np.isfinite(then_values), then_values, 0.0)
    values = np.bincount(row, weights=model.probability * then_values, minlength=unusable.size)
    flat = model.reward.ravel() + model.discount * values
    return np.where(unusable, -np.inf, flat).reshape(model.reward.shape)
