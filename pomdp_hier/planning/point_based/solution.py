"""The result of `solve`: bounds, alpha vectors, belief points, history, policy, controller and certificate."""

import os
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Floats, check_integer, check_path, unexpected
from pomdp_hier._text import counted
from pomdp_hier.errors import PlanningError
from pomdp_hier.planning.alpha_vectors import LeafVectors
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.decision import Decision, where_to_decide
from pomdp_hier.planning.point_based.certificate import write_certificate
from pomdp_hier.planning.point_based.saved_search import SavedSearch, open_search, require_settings, settings_of
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier.planning.point_based.stage import Stage
from pomdp_hier.planning.pomdp_py_planners import AgentPlanner
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.problem import POMDP

_MOST_UNKNOWNS = 1_000_000


def archived_controller(problem: POMDP, search: Search) -> FiniteStateController:
    """Return the controller of all vectors behind the lower bound, whose value is at least the bound by construction.

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
    """Return a controller that continues with the newest vectors, or ``None`` where it would be too large.

    Its value must be checked: newer vectors are better at the beliefs of their backups, not everywhere.

    Args:
        problem: The problem.
        search: The search, of an infinite horizon; others have no such controller.
    """
    if search.horizon is not None:
        return None
    numbers, after = search.newest_vectors()
    if len(numbers) * problem.compiled.n_states > _MOST_UNKNOWNS:
        return None
    return FiniteStateController(problem, np.array([search.stages[0].actions[k] for k in numbers]), after)


@dataclass(frozen=True)
class Progress:
    """The bounds at one time of the search.

    Attributes:
        seconds: CPU seconds since the start.
        backups: The number of belief backups.
        lower, upper: The bounds.
        n_bytes: The approximate memory of the search.
    """

    seconds: float
    backups: int
    lower: float
    upper: float
    n_bytes: int


@dataclass(frozen=True, eq=False)
class BeliefPoints:
    """The belief points of the upper bound.

    Attributes:
        beliefs: ``[P, S]``, CSR.
        values: ``[P]``, an upper bound of the optimal value of each.
    """

    beliefs: sparse.csr_array = field(repr=False)
    values: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"BeliefPoints({len(self)} beliefs, {self.beliefs.shape[1]} states)"


_ENDS = {
    "rounding": "as close as floats allow",
    "time": "time limit reached",
    "memory": "memory limit reached",
    "trials": "max_trials reached",
}


@dataclass(frozen=True, eq=False)
class Solution:
    """Lower and upper bounds on the optimal value, with their policy and certificate.

    Attributes:
        lower: A lower bound on the value of `policy` from the start belief.
        upper: An upper bound on the value of every policy.
        status: Why the search ended. ``"converged"``: the gap is at most the precision. ``"rounding"``: floats give no
            closer bounds, or cannot represent the precision. ``"time"``, ``"memory"``, ``"trials"``: a limit was
            reached. ``"interrupted"``: Ctrl-C.
        history: The bounds over CPU seconds and backups.
        problem: The problem.
        horizon: The number of actions; ``None`` for an infinite horizon.
        belief: The start belief; ``None`` for the problem's initial belief.
        observation: The last observation before the start.
        search: The state of the search, which the other attributes and methods read.

    Example:
        >>> from pomdp_hier.planning import solve
        >>> from pomdp_hier.problems import tiger
        >>> solution = solve(tiger(), horizon=3)
        >>> solution
        Solution(lower=2.3098, upper=2.3098, status='converged')
        >>> solution.policy.decide(tiger()).action
        'listen'
    """

    lower: float
    upper: float
    status: str
    history: tuple[Progress, ...] = field(repr=False)
    problem: POMDP = field(repr=False)
    horizon: int | None = field(repr=False)
    belief: Belief | None = field(repr=False)
    observation: Hashable = field(repr=False)
    search: Search = field(repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """The numbers of the problem, the horizon and the start, as a checkpoint holds them."""
        start = self.problem.initial_belief if self.belief is None else self.belief
        return settings_of(self.problem, self.horizon, start, self.observation)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the search to a file, from which ``solve(problem, checkpoint=path)`` continues on any machine.

        Args:
            path: A new file, or a checkpoint of the same problem, horizon and start, which is overwritten.

        Raises:
            CheckpointError: The file is another one, is in use, or cannot be written.

        Example:
            >>> import tempfile
            >>> from pomdp_hier.planning import solve
            >>> from pomdp_hier.problems import tiger
            >>> folder = tempfile.TemporaryDirectory()
            >>> solve(tiger(), precision=0.1).save(folder.name + "/tiger")
            >>> solve(tiger(), precision=0.1, checkpoint=folder.name + "/tiger").search.trials
            0
            >>> folder.cleanup()
        """
        check_path("path", path)
        with open_search(path) as file:
            assert file is not None
            require_settings(file, self.settings)
            SavedSearch.save(file, self.search, self.settings)

    @property
    def gap(self) -> float:
        """The difference of the bounds, which is the largest possible optimality gap of `policy`."""
        return self.upper - self.lower

    @property
    def alpha_vectors(self) -> Floats:
        """The vectors ``[K, S]`` of the lower bound at the start; 0 at terminal states, -inf where not legal.

        Where legal actions depend on the last observation, they are those of the actions legal at the start.
        """
        return self._vectors(self.search.model.at_start)

    def _vectors(self, kind: int) -> Floats:
        """Return the vectors of the lower bound for one set of legal actions."""
        stage, model = self.search.stages[-1], self.search.model
        full = np.full((stage.in_use, model.compiled.n_states), -np.inf)
        full[:, model.compiled.terminal] = 0.0
        here = np.flatnonzero(model.kind == kind)
        full[:, model.state[here]] = stage.block[here, : stage.in_use].T
        return full

    @property
    def alpha_actions(self) -> tuple[Any, ...]:
        """The action of each of the alpha vectors."""
        stage, names = self.search.stages[-1], self.search.model.compiled.actions
        return tuple(names[stage.actions[k]] for k in stage.numbers[: stage.in_use].tolist())

    @property
    def points(self) -> BeliefPoints:
        """The points of the upper bound at the start: the corner beliefs first, then the reached beliefs."""
        stage, model = self.search.stages[-1], self.search.model
        points, n = stage.points, stage.points.count
        indptr, index, weight = points.csr
        entries = int(indptr[n])
        rows = sparse.csr_array(
            (weight[:entries], model.state[index[:entries]], indptr[: n + 1]), shape=(n, model.compiled.n_states)
        )
        corners = sparse.csr_array(
            (np.ones(model.size), model.state, np.arange(model.size + 1)), shape=(model.size, model.compiled.n_states)
        )
        values = np.array([stage.value[node] for node in points.node[:n].tolist()])
        return BeliefPoints(sparse.csr_array(sparse.vstack([corners, rows])), np.append(stage.corner, values))

    def bounds(self, belief: Any, *, observation: Hashable = None, to_go: int | None = None) -> tuple[float, float]:
        """Return the lower and the upper bound of the value of any belief.

        Args:
            belief: A `Belief` or a dict.
            observation: The last observation, where legal actions depend on it.
            to_go: The number of actions to go, for a finite horizon; all of them by default.

        Raises:
            ModelError: A state is not one of the problem's.
            ParameterError: The solution has a shorter or an infinite horizon.

        Example:
            >>> from pomdp_hier.planning import solve
            >>> from pomdp_hier.problems import tiger
            >>> lower, upper = solve(tiger()).bounds({"tiger-left": 1})
            >>> lower <= 10 + 0.95 * 19.3714 <= upper
            True
        """
        model = self.search.model
        weights = model.weights(self.problem.as_belief(belief), observation)
        index = np.flatnonzero(weights)
        stage = self._stage(to_go)
        if not len(index) or stage is None:
            return 0.0, 0.0
        return stage.bounds(index, weights[index])

    def _stage(self, to_go: int | None) -> Stage | None:
        """Return the stage with ``to_go`` actions to go, or ``None`` for 0."""
        stages, horizon = self.search.stages, self.search.horizon
        if to_go is None:
            return stages[-1]
        check_integer("to_go", to_go, 0, unit="actions")
        if horizon is None or to_go > horizon:
            held = "None, as the solution has no horizon" if horizon is None else f"at most {horizon}, its horizon"
            raise unexpected("to_go", to_go, held)
        return stages[to_go - 1] if to_go > 0 else None

    @property
    def policy(self) -> "SolutionPolicy":
        """The policy of the best alpha vector at each belief, with a value of at least `lower`."""
        return SolutionPolicy(self)

    @property
    def leaf(self) -> LeafVectors:
        """The lower bound as leaf values of `RTBSS`: ``RTBSS(d, leaf_value=solution)``."""
        model, infinite = self.search.model, self.horizon is None
        if model.compiled.legal_after is None:
            return LeafVectors.of(self.alpha_vectors, name="the solution", below_optimum=infinite)
        kinds = range(int(model.kind_after.max()) + 1)
        usable = np.repeat(model.kind_after[:, None] == np.array(kinds), self.search.stages[-1].in_use, axis=1)
        vectors = np.concatenate([self._vectors(kind) for kind in kinds])
        return LeafVectors.of(vectors, usable, name="the solution", below_optimum=infinite)

    def action_bound(self, problem: POMDP, belief: Belief, action: Any, depth: int) -> float:
        """Return ``R(b, a) + gamma sum_o Pr(o | b, a) U(tau)``, which bounds `RTBSS` with `leaf` at any depth.

        A look-ahead to the lower bound is at most optimal. With a horizon, U is that of ``depth - 1`` actions to go,
        which bounds a look-ahead to leaf values of 0.

        Example:
            >>> from pomdp_hier.planning import RTBSS, solve
            >>> from pomdp_hier.problems import tiger
            >>> solution = solve(tiger(), precision=1.0)
            >>> online = RTBSS(2, leaf_value=solution, upper_bound=solution)
            >>> solution.lower <= online.decide(tiger()).value <= solution.upper
            True
        """
        compiled = problem.compiled
        weights, position = compiled.vector(belief), compiled.action_index[action]
        total = float(compiled.reward[position] @ weights)
        to_go = None if self.horizon is None else depth - 1
        for o, probability, posterior in compiled.branches(weights, position):
            then = compiled.belief(posterior)
            observation = compiled.observations[o] if problem.legal_by == "observation" else None
            total += compiled.discount * probability * self.bounds(then, observation=observation, to_go=to_go)[1]
        return total

    def controller(self) -> FiniteStateController:
        """Return a finite-state controller whose exact value at the start is at least `lower`.

        It has one node per alpha vector in use, with the successors of the belief of its backup. Where rounding or old
        vectors make its value less than `lower`, it has all vectors behind the lower bound.

        Example:
            >>> from pomdp_hier.planning import solve
            >>> from pomdp_hier.problems import tiger
            >>> solution = solve(tiger(), precision=1e-3)
            >>> controller = solution.controller()
            >>> controller.value() >= solution.lower - 1e-9, len(controller) < 20
            (True, True)
        """
        search, start = self.search, self.belief or self.problem.initial_belief
        small = compact_controller(self.problem, search)
        least = self.lower - 1e-9 * max(1.0, abs(self.lower))
        with suppress(PlanningError):  # it may repeat actions indefinitely at a discount of 1
            if small is not None and small.value(start) >= least:
                return small.minimised()
        return archived_controller(self.problem, search).minimised()

    def certificate(self) -> dict[str, Any]:
        """Return a certificate of the bounds for ``json.dump`` and `pomdp_hier.planning.verify`.

        The certified bounds are wider by the possible rounding errors.
        """
        return write_certificate(self.search, at_start=self.belief is None and self.observation is None)

    def __repr__(self) -> str:
        return f"Solution(lower={self.lower:.6g}, upper={self.upper:.6g}, status={self.status!r})"

    def __str__(self) -> str:
        """Return the bounds, why the search ended, and the problem's horizon and discount."""
        ends = "an infinite horizon" if self.horizon is None else counted(self.horizon, "action")
        seconds = self.history[-1].seconds if self.history else 0.0
        status = _ENDS.get(self.status, self.status)
        return (
            f"optimal value in [{self.lower:z.6g}, {self.upper:z.6g}], {status} after {seconds:z.3g} CPU s, over "
            f"{ends} at discount {self.problem.discount}"
        )


class SolutionPolicy(AgentPlanner):
    """The policy of a solution, for evaluation and, with `plan`, for pomdp-py's loop.

    Args:
        solution: The solution.
        to_go: The number of actions to go, for a finite horizon; all of them by default.

    Example:
        >>> from pomdp_hier.planning import solve
        >>> from pomdp_hier.problems import tiger
        >>> SolutionPolicy(solve(tiger())).decide(tiger(), {"tiger-left": 0.97, "tiger-right": 0.03}).action
        'open-right'
    """

    name = "point-based"

    def __init__(self, solution: Solution, to_go: int | None = None) -> None:
        self.solution, self.to_go, self.problem = solution, to_go, solution.problem

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the action of the best alpha vector, with the lower bound as its value.

        Raises:
            ModelError: The belief is not a belief over the solved problem.
            PlanningError: The belief is terminal.
        """
        belief, legal = where_to_decide(problem, belief, observation)
        search = self.solution.search
        weights = search.model.weights(belief, observation)
        stage = search.stages[-1] if self.to_go is None else search.stages[min(self.to_go, len(search.stages)) - 1]
        index = np.flatnonzero(weights)
        lower, upper = stage.bounds(index, weights[index])
        if lower == -np.inf:  # no vector for these states: any legal action
            return Decision(legal[0], stats={"upper": upper})
        values = weights[index] @ stage.block[index, : stage.in_use]
        action = search.model.compiled.actions[stage.actions[int(stage.numbers[int(np.argmax(values))])]]
        return Decision(action, value=lower, stats={"upper": upper})

    def at_step(self, step: int) -> "SolutionPolicy":
        """Return the policy after ``step`` actions of the horizon, at most that of the last action."""
        if self.solution.search.horizon is None:
            return self
        return SolutionPolicy(self.solution, max(1, self.solution.search.horizon - step))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the solution and the number of actions to go."""
        return SolutionPolicy, (self.solution, self.to_go)

    def __repr__(self) -> str:
        return f"SolutionPolicy({self.solution!r})"
