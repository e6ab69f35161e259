"""Controllers from a search: alpha vectors are nodes, and what follows each observation is an edge."""

import numpy as np

from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier.pomdp import POMDP

_MOST_UNKNOWNS = 1_000_000


def archived_controller(problem: POMDP, search: Search) -> FiniteStateController:
    """Return the controller of all vectors that the lower bound rests on: worth at least the bound, by construction.

    Args:
        problem: The problem.
        search: The search.
    """
    top = len(search.stages) - 1
    first = (top, int(search.stages[top].pool.best[search.root]))
    place = {first: 0}
    queue, actions, after = [first], [], []
    for i, number in queue:  # grows while it is walked
        stage = search.stages[i]
        actions.append(stage.actions[number])
        row = []
        for then in stage.after[number].tolist():
            key = (i if search.horizon is None else i - 1, then)
            if stage.next is None:
                row.append(-1)
                continue
            if key not in place:
                place[key] = len(queue)
                queue.append(key)
            row.append(place[key])
        after.append(row)
    return FiniteStateController(problem, np.array(actions, dtype=np.int64), np.array(after, dtype=np.int64))


def compact_controller(problem: POMDP, search: Search) -> FiniteStateController | None:
    """Return a controller that goes on with the newest vectors, or ``None`` where it would be too large.

    Its value must be looked at: newer vectors are better at the beliefs where they were made, not everywhere.

    Args:
        problem: The problem.
        search: The search, of an endless horizon; others have no such controller.
    """
    if search.horizon is not None:
        return None
    numbers, after = search.newest_vectors()
    if len(numbers) * problem.compiled.n_states > _MOST_UNKNOWNS:
        return None
    return FiniteStateController(problem, np.array([search.stages[0].actions[k] for k in numbers]), after)
