"""Plans for beliefs where no repeated action is legal: the first legal action of all that is possible, over and over.

Where legal actions depend on the state and observations do not tell which hold, a plan must follow the set of states
that are still possible. These sets are the nodes of a finite controller, which is solved and added to the vectors.
"""

import numpy as np

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.point_based.controller_values import controller_values
from pomdp_hier.planning.point_based.model_arrays import SolverModel
from pomdp_hier.planning.point_based.stage import Stage

Support = tuple[int, ...]

_MOST_SETS = 20_000


def cover(stage: Stage, index: Ints) -> None:
    """Add vectors of a plan that is legal when the state is one of those given.

    Args:
        stage: Where to add them, and to the stages below.
        index: The positions of the possible states.

    Raises:
        ModelError: No action is legal after some observations.
        PlanningError: Too many sets of states can follow one another.
    """
    support = tuple(sorted(index.tolist()))
    if stage.next is stage:
        _cover_endless(stage, support)
    else:
        _cover_finite(stage, support, {})


def _first_action(model: SolverModel, support: Support) -> int:
    legal = model.legal[:, list(support)].all(axis=1)
    if not legal.any():
        raise model.dead_end(np.array(support))
    return int(legal.argmax())


def _following(model: SolverModel, support: Support, action: int) -> dict[int, Support]:
    """Return the states that are possible after each observation."""
    rows: dict[int, set[int]] = {}
    for s in support:
        row = action * model.size + s
        for column in model.column[model.indptr[row] : model.indptr[row + 1]].tolist():
            rows.setdefault(column // model.size, set()).add(column % model.size)
    return {o: tuple(sorted(states)) for o, states in rows.items()}


def _cover_finite(stage: Stage, support: Support, known: dict[tuple[int, Support], int]) -> int:
    """Add the plan's vectors from the last action on, and return the number of the first."""
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


def _cover_endless(stage: Stage, support: Support) -> None:
    """Add the plan's vectors from one linear system over pairs of set and state."""
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
                "expected fewer. Make an action legal in every state, or set legal_by='observation'."
            )
    after = np.zeros((len(queue), model.n_observations), dtype=np.int64)
    for i, rows in enumerate(following):
        after[i, list(rows)] = [nodes[then] for then in rows.values()]
    vectors, _ = controller_values(model, np.array(actions), after)
    stage.add_controller(vectors, np.array(actions), after)
