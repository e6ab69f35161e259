"""Blind policies: the same action at every step, where it is legal, fallback plans, and lower bounds on their values.

Source: Hauskrecht (2000), Value-function approximations for POMDPs.
"""

from typing import TYPE_CHECKING

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._progress import Stop, never
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.point_based.linear_systems import below_solution, controller_values
from pomdp_hier.planning.point_based.model_arrays import SolverModel

if TYPE_CHECKING:
    from pomdp_hier.planning.point_based.stage import Stage

Support = tuple[int, ...]

_MOST_SETS = 20_000


def blind_plans(model: SolverModel) -> Ints:
    """Return ``[A, O]``, the next action of each blind policy after each observation.

    It is the same action, or the first that is always legal where that one may not be; -1 where none is.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import solver_model
        >>> from pomdp_hier.problems import tiger
        >>> blind_plans(solver_model(tiger().compiled)).tolist()
        [[0, 0], [1, 1], [2, 2]]
    """
    after = repeated(model)
    if model.legal.all():
        return after
    outcomes = model.outcomes
    pair = (outcomes.row // model.size) * model.n_observations + outcomes.observation
    flat = np.ones((after.size, model.n_actions), dtype=bool)
    np.logical_and.at(flat, pair, outcomes.usable)
    return _allowed(after, flat.reshape(*after.shape, -1))


def early_plans(model: SolverModel) -> Ints:
    """Return ``[A, O]`` as `blind_plans`, without outcomes: the same next action after every observation.

    Example:
        >>> from pomdp_hier.planning.point_based.model_arrays import solver_model
        >>> from pomdp_hier.problems import tiger
        >>> early_plans(solver_model(tiger().compiled)).tolist()
        [[0, 0], [1, 1], [2, 2]]
    """
    if model.legal.all():
        return repeated(model)
    met = [np.unique(step.indices[step.data > 0]) for step in model.steps]
    usable = np.array([model.legal[:, states].all(axis=1) for states in met])
    then = _allowed(np.arange(model.n_actions)[:, None], usable[:, None])
    return np.repeat(then, model.n_observations, axis=1)


def _allowed(after: Ints, usable: Bools) -> Ints:
    """Return the actions ``[A, O]``, or the first usable ``[A, O, A]`` where it is not; -1 without any."""
    same = np.take_along_axis(usable, after[..., None], axis=2)[..., 0]
    return np.where(same, after, np.where(usable.any(axis=2), usable.argmax(axis=2), -1))


def repeated(model: SolverModel) -> Ints:
    """Return ``[A, O]``, the same action after every observation."""
    return np.repeat(np.arange(model.n_actions), model.n_observations).reshape(model.n_actions, -1)


def blind_values(model: SolverModel, plans: Ints, stop: Stop = never) -> Floats:
    """Return ``[A, n]``, lower bounds on the values of blind policies over an infinite horizon.

    Args:
        model: The problem, whose `slack` is finite.
        plans: ``[A, O]``, the next action after each observation. Outcomes are laid out where it depends on this one.
        stop: Whether to leave; what has not been evaluated gets its least reward at every step.
    """
    if not model.legal.all() and (plans == plans[:, :1]).all() and model.has_early_steps:
        return controller_values(model.unobserved, np.arange(model.n_actions), plans[:, :1], stop=stop)[0]
    if (plans != repeated(model)).any():
        return controller_values(model, np.arange(model.n_actions), plans, stop=stop)[0]
    values = np.empty(model.reward.shape)
    for a, reward in enumerate(model.reward):
        if stop():
            values[a] = min(0.0, float(reward.min(initial=0.0))) * model.slack
        else:
            near = np.zeros(model.size)
            values[a], _ = below_solution(model.steps[a], reward, model.discount, model.slack, near, stop)
    return np.where(model.legal, values, -np.inf)


def blind_stage(model: SolverModel, plans: Ints, ahead: Floats) -> Floats:
    """Return ``[A, n]``, the values of blind policies with one action more to go than ``ahead``.

    Args:
        model: The problem.
        plans: ``[A, O]``, the next action after each observation.
        ahead: ``[A, n]``, their values with one action less.
    """
    if model.legal.all() and (plans == repeated(model)).all() and np.isfinite(ahead).all():
        stepped = np.stack([step @ values for step, values in zip(model.steps, ahead, strict=True)])
        return model.reward + model.discount * stepped
    if not model.is_laid_out and model.has_early_steps and (plans == plans[:, :1]).all():
        model, plans = model.unobserved, plans[:, :1]
    indptr, column, probability, _ = model.layout
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    observation, state = np.divmod(column, model.size)
    then = plans[row // model.size, observation]
    unusable = ~model.legal.ravel()
    unusable[row[then < 0]] = True
    then_values = ahead.ravel()[then * model.size + state]
    unusable[row[then_values == -np.inf]] = True
    then_values = np.where(np.isfinite(then_values), then_values, 0.0)
    values = np.bincount(row, weights=probability * then_values, minlength=unusable.size)
    flat = model.reward.ravel() + model.discount * values
    return np.where(unusable, -np.inf, flat).reshape(model.reward.shape)


# --- fallback plans --------------------------------------------------------------------------------------------------


def cover(stage: "Stage", index: Ints) -> None:
    """Add vectors of a fallback plan that is legal in all of the given states.

    The plan takes the first action that is legal in every possible state, and follows the set of possible states. These
    sets are the nodes of a finite controller. It serves beliefs under which no blind policy is legal.

    Args:
        stage: The stage of the vectors; stages below it get theirs.
        index: The positions of the possible states.

    Raises:
        ModelError: No action is legal after some observations.
        PlanningError: The plan needs too many sets of states.
    """
    support = tuple(sorted(index.tolist()))
    if stage.next is stage:
        _cover_infinite(stage, support)
    else:
        _cover_finite(stage, support, {})


def _first_action(model: SolverModel, support: Support) -> int:
    legal = model.legal[:, list(support)].all(axis=1)
    if not legal.any():
        raise model.dead_end(np.array(support))
    return int(legal.argmax())


def _following(model: SolverModel, support: Support, action: int) -> dict[int, Support]:
    """Return the possible states after each observation."""
    rows: dict[int, set[int]] = {}
    indptr, columns, _, _ = model.layout
    for s in support:
        row = action * model.size + s
        for column in columns[indptr[row] : indptr[row + 1]].tolist():
            rows.setdefault(column // model.size, set()).add(column % model.size)
    return {o: tuple(sorted(states)) for o, states in rows.items()}


def _cover_finite(stage: "Stage", support: Support, known: dict[tuple[int, Support], int]) -> int:
    """Add the plan's vectors from the last action back, and return the number of the first."""
    model = stage.model
    action = _first_action(model, support)
    after = np.zeros(model.n_observations, dtype=np.int64)
    vector = model.reward[action]
    if stage.next is not None:
        for o, states in _following(model, support, action).items():
            key = (id(stage.next), states)
            if key not in known:
                known[key] = _cover_finite(stage.next, states, known)
            after[o] = known[key]
        reward, archive = model.reward[action], stage.next.archive
        vector = stage.kernels.backup(stage.layout, action, reward, model.discount, archive, after)
    return stage.add_vector(_only_at(support, vector[list(support)], model.size), action, after)


def _only_at(support: Support, values: Floats, size: int) -> Floats:
    vector = np.full(size, -np.inf)
    vector[list(support)] = values
    return vector


def _cover_infinite(stage: "Stage", support: Support) -> None:
    """Add the plan's vectors, by one linear system over pairs of set and state."""
    model = stage.model
    nodes: dict[Support, int] = {support: 0}
    queue, actions, following = [support], [], []
    for states in queue:  # grows while it is walked
        actions.append(_first_action(model, states))
        following.append(_following(model, states, actions[-1]))
        for then in following[-1].values():
            if then not in nodes:
                nodes[then] = len(queue)
                queue.append(then)
        if len(queue) > _MOST_SETS:
            raise PlanningError(
                f"legal_actions: got more than {_MOST_SETS:,} sets of possible states under the first legal actions; "
                "expected at most that. Make an action legal in every state, or set legal_by='observation'."
            )
    after = np.zeros((len(queue), model.n_observations), dtype=np.int64)
    for i, rows in enumerate(following):
        after[i, list(rows)] = [nodes[then] for then in rows.values()]
    vectors, _ = controller_values(model, np.array(actions), after)
    stage.add_controller(vectors, np.array(actions), after)
