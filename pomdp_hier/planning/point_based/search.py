"""Heuristic search: trials down the optimistic actions, with a backup of both bounds at each belief on the way up.

A trial starts at the root. At a belief it takes the action of the greatest upper value, then the observation with the
greatest weighted excess gap ``Pr(o | b, a) (U(tau) - L(tau) - eps / gamma^t)``. It ends where the gap is at most ``eps
/ gamma^t``. An action's upper value is updated only while it is the greatest; the initial one is that of TIB.

A vector has the value of its successors at the time of its backup, which age. At times the lower bound is
backed up at the beliefs of all trials, except where another of these backups has raised it. The controller that
continues with the best current vectors is evaluated by a linear system, and its vectors are added.

Sources: Smith and Simmons (2005), HSVI2; Kurniawati, Hsu and Lee (2008), SARSOP; Spaan and Vlassis (2005), Perseus; Ji
et al. (2007), point-based policy iteration.
"""

import copy

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._progress import Stop, StoppedEarlyError, look, never
from pomdp_hier.planning.point_based.blind_policies import blind_plans, blind_stage, cover, early_plans
from pomdp_hier.planning.point_based.initial_bounds import InitialBounds, informed_stage
from pomdp_hier.planning.point_based.linear_systems import controller_values, mdp_stage
from pomdp_hier.planning.point_based.model_arrays import SolverModel
from pomdp_hier.planning.point_based.stage import Children, HasKernels, Kernels, Stage

_TARGETS = (0.5, 0.9)
"""The share of the root's gap at which a trial ends, in turns: small for the lower bound, large for the upper."""

_FIRST, _GROWTH = 2, 1.15  # the trials before a pass over their beliefs, and their growth until the next
_PATIENCE = 1.5  # how much later the next pass is after one of little gain
# relative to the values: a rise that spares a backup, a gap that is not worth one, a gain per backup by rounding
_RAISED, _CLOSED, _NONE = 1e-6, 1e-4, 1e-9

_WORK_PER_BELIEF = 10_000
"""Products that an evaluation may take per belief added since the last one: about a tenth of the time."""

_PRODUCTS_PER_BELIEF = 25_000
"""Products of TIB that take as long as a belief of the search."""

_MOST_ENTRIES = 60_000_000
"""Entries of the matrix of an evaluation, which takes 5 GB and some seconds to make."""

_LEAST_SHARE = 1e-300  # of a state in the uniform belief: a division by the sum must not round to 0
_BYTES_PER_ENTRY = 80
"""Bytes that an evaluation takes per entry of its matrix, during its construction."""


class Schedule:
    """The trials until the next pass over the beliefs of all trials.

    The passes are rarer while one gains less than half of what the trials before it did, per backup.
    """

    def __init__(self) -> None:
        self.growth, self.due = _GROWTH, float(_FIRST)
        self.passed = 0, -np.inf, np.inf  # the backups and the bounds after the last pass

    def after(self, search: "Search", side: int, backups: int, bounds: tuple[float, float]) -> None:
        """Set the trials until the next pass, after one that started from the given backups and bounds."""
        of_trials = abs(bounds[side] - self.passed[1 + side]) / max(1, backups - self.passed[0])
        gain = abs(search.bounds[side] - bounds[side]) / max(1, search.backups - backups)
        gains = gain > max(of_trials / 2, _NONE * search.stages[-1].scale)
        self.growth = _GROWTH if gains else self.growth * _PATIENCE
        self.due, self.passed = self.growth * search.trials, (search.backups, *search.bounds)


class Search(HasKernels):
    """A search from one belief; `trial` narrows its bounds.

    Args:
        model: The problem.
        kernels: The inner loops.
        start: ``[n]``, the weights of the nonterminal states at the start.
        stages: The stages with their initial bounds; the search starts at the last one.
        most_bytes: The memory limit.
        stop: Whether to leave a trial or an evaluation.

    Attributes:
        backups: The number of belief backups.
        most_entries: The largest matrix of an evaluation, in entries: while it is made, no limit is checked.
        horizon: The number of actions to go; ``None`` for an infinite horizon.
    """

    def __init__(
        self,
        model: SolverModel,
        kernels: Kernels,
        start: Floats,
        stages: list[Stage],
        most_bytes: float = np.inf,
        stop: Stop = never,
    ) -> None:
        self.model, self.kernels, self.stages, self.most_bytes, self.stop = model, kernels, stages, most_bytes, stop
        self.most_entries = float(_MOST_ENTRIES)
        self.horizon = None if stages[-1].next is stages[-1] else len(stages)
        self.backups = self.trials = self._idle = self._changes = 0
        self._evaluated_at = self._failures = self._work = self._made_then = 0
        self._n_products = 50  # a guess
        self._below, self._above = Schedule(), Schedule()
        self.mass = float(start.sum())
        index = np.flatnonzero(start)
        offsets = np.array([0, len(index)])
        nodes = self.stages[-1].admit(offsets, index, start[index] / self.mass, np.zeros(1, dtype=np.uint64))
        self.root = int(nodes[0])

    def _look(self) -> None:
        """Raise `StoppedEarlyError` if a limit is reached; all bounds hold."""
        if self.stop() or (self.horizon is None and self.most_bytes < np.inf and self.n_bytes >= self.most_bytes):
            raise StoppedEarlyError

    def continued(self, fresh: "Search") -> "Search":
        """Return a copy with the inner loops and limits of another search of the same problem."""
        search = copy.deepcopy(self, {id(self.model): fresh.model})
        search.kernels, search.most_bytes, search.stop = fresh.kernels, fresh.most_bytes, fresh.stop
        search.most_entries = fresh.most_entries
        for stage in search.stages:
            stage.kernels = fresh.kernels
        search.trials, search._idle = 0, 0
        search._below.due = search._above.due = _FIRST
        return search

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower and the upper bound of the value at the start."""
        pool = self.stages[-1].pool
        lower, upper = self.mass * float(pool.lower[self.root]), self.mass * float(pool.upper[self.root])
        return lower, lower if 0 < lower - upper <= 1e-12 * self.stages[-1].scale else upper  # by rounding alone

    def begin(self) -> None:
        """Update the root's bounds before the first trial."""
        root, stage = np.array([self.root]), self.stages[-1]
        stage.open(self.root)
        self._raise_lower(stage, root)
        self._below.passed = self._above.passed = self.backups, *self.bounds

    def trial(self, deepest: int = 10_000) -> None:
        """Search down from the root once, and back up the beliefs on the path.

        Args:
            deepest: The largest number of actions to look ahead.

        Raises:
            StoppedEarlyError: A limit was reached on the way. What was found until then is kept.
        """
        stage, node = self.stages[-1], self.root
        pool = stage.pool
        target = _TARGETS[self.trials % 2] * float(pool.upper[node] - pool.lower[node])
        path: list[tuple[Stage, int]] = []
        while len(path) < deepest:
            action = self._improve(stage, node)
            self._raise_lower(stage, np.array([node]))
            path.append((stage, node))
            if stage.next is None or stage.pool.upper[node] - stage.pool.lower[node] <= target:
                break
            children = stage.children[node][action]
            if not len(children.node):
                break
            below = stage.next.pool
            self._raise_lower(stage.next, children.node)
            target = target / self.model.discount if self.model.discount else np.inf
            gap = below.upper[children.node] - below.lower[children.node]
            excess = children.probability * (gap - target)
            chosen = int(np.argmax(excess))
            if excess[chosen] <= 0:
                break
            stage, node = stage.next, int(children.node[chosen])
        for stage, node in reversed(path):
            self._look()
            self._back_up(stage, node)
        self.trials += 1
        if self.horizon is None:
            for schedule, side in ((self._below, 0), (self._above, 1)):
                if self.trials >= schedule.due:
                    self._pass(schedule, side)
        if self.horizon is None:  # less often after failures
            self._evaluate_if_due((self.stages[-1].pool.count - self._evaluated_at) >> self._failures)
        for stage in self.stages:
            stage.prune()
        changes = sum(stage.n_changes for stage in self.stages)
        self._idle = self._idle + 1 if changes == self._changes else 0
        self._changes = changes

    @property
    def is_stuck(self) -> bool:
        """Whether the last trials changed nothing, so that only rounding separates the bounds."""
        return self._idle >= 2 * len(_TARGETS)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the search."""
        return sum(stage.n_bytes for stage in self.stages)

    @property
    def work(self) -> int:
        """The products that the search has taken, by a rough estimate from its beliefs and backups."""
        of_action = self.model.n_outcomes // max(1, self.model.n_actions)
        return _PRODUCTS_PER_BELIEF * (self.stages[-1].pool.count + 2 * self.backups) + of_action * self.backups

    def tighten(self, initial: InitialBounds) -> None:
        """Take a tighter initial upper bound of an infinite horizon; what the search has found is kept."""
        self.stages[-1].tighten(initial.informed, initial.rests_on)

    # --- the controller below ------------------------------------------------------------------------------------

    def newest_vectors(self) -> tuple[list[int], Ints]:
        """Return the controller that continues with the best current vectors, as numbers ``[N]`` and ``[N, O]``.

        A node takes the action of its vector. Its successors are the best ones at the belief of the vector's backup.
        """
        stage = self.stages[-1]
        first = int(stage.pool.best[self.root])
        place = {first: 0}
        queue, after = [first], []
        for number in queue:  # grows while it is walked
            then = stage.after[number].copy()
            node = stage.made_at.get(number, -1)
            children = stage.children.get(node, {}).get(stage.actions[number])
            if children is not None:
                stage.refresh_lower(children.node)
                then[children.observation] = stage.pool.best[children.node]
            for k in then.tolist():
                if k not in place:
                    place[k] = len(queue)
                    queue.append(k)
            after.append([place[k] for k in then.tolist()])
        return queue, np.array(after, dtype=np.int64)

    def finish(self) -> None:
        """Evaluate the controller for the last time, if that takes at most about a tenth of the time so far."""
        if self.horizon is None and self.model.is_laid_out and self._made_then < len(self.stages[-1].actions):
            self._evaluate_if_due(self.stages[-1].pool.count)

    def _evaluate_if_due(self, n_beliefs: int) -> None:
        """Evaluate the controller if ``n_beliefs`` new beliefs pay for it."""
        affordable = n_beliefs * _WORK_PER_BELIEF
        if affordable < self._work:
            return
        numbers, after = self.newest_vectors()
        n_entries = int(self.model.n_transitions[[self.stages[-1].actions[k] for k in numbers]].sum())
        self._work = self._n_products * n_entries
        if n_entries > self.most_entries or affordable < self._work:
            return
        if self.n_bytes + _BYTES_PER_ENTRY * n_entries > self.most_bytes:
            return
        self._evaluated_at = self.stages[-1].pool.count
        self._failures = 0 if self._add_values(numbers, after) else self._failures + 1

    def _add_values(self, numbers: list[int], after: Ints) -> bool:
        """Add the vectors of a controller that improve the lower bound, and return whether any does."""
        stage = self.stages[-1]
        actions = np.array([stage.actions[k] for k in numbers])
        vectors, self._n_products = controller_values(
            self.model, actions, after, guess=stage.archive[numbers], stop=self.stop
        )
        made_at = [stage.made_at.get(k, -1) for k in numbers]
        better = np.array([self._is_better(stage, at, vector) for at, vector in zip(made_at, vectors, strict=True)])
        if better.any():
            added = np.array(stage.add_controller(vectors, actions, after))
            stage.made_at.update(zip(added.tolist(), made_at, strict=True))
            stage.keep_vectors(np.setdiff1d(stage.numbers[: stage.in_use], added[~better]))
            stage.refresh_lower(np.array([self.root]))
        self._made_then = len(stage.actions)
        return bool(better.any())

    def _is_better(self, stage: Stage, made_at: int, vector: Floats) -> bool:
        """Return whether a vector is better than all others at the belief of its backup, or at the root."""
        for node in {made_at, self.root} - {-1}:
            index, weight = stage.pool.row(node)
            if float(vector[index] @ weight) > stage.pool.lower[node] + 1e-13 * stage.scale:
                return True
        return False

    # --- one belief ----------------------------------------------------------------------------------------------

    def _improve(self, stage: Stage, node: int) -> int:
        """Update upper values of actions until the greatest is up to date, and return its action."""
        q = stage.open(node)
        done: set[int] = set()
        pool = stage.pool
        while True:
            action = int(np.argmax(q))
            if action in done:
                break
            done.add(action)
            self._look()
            children = stage.expand(node, action)
            value, source = float(stage.immediate[node][action]), None
            if stage.next is not None:
                below = stage.next.pool
                stage.next.refresh_upper(children.node)
                ahead = float(children.probability @ below.upper[children.node]) + children.lost
                value += self.model.discount * ahead
                source = below.source[children.node]
            if value < q[action]:
                q[action] = value
                reasons = list(stage.reasons[node])
                reasons[action] = (children, source)
                stage.reasons[node] = tuple(reasons)
        if -np.inf < q[action] < pool.upper[node] - 1e-13 * stage.scale:
            stage.add_point(node, float(q[action]), stage.reasons[node])
        return action

    def upper_backup(self, stage: Stage, node: int) -> float:
        """Back up the upper bound of a belief, and return its greatest action value."""
        action = self._improve(stage, node)  # which opens the belief
        return float(stage.q_upper[node][action])

    def _raise_lower(self, stage: Stage, nodes: Ints, with_fallback: bool = True) -> None:
        """Raise lower values by new vectors; where none is legal yet, add fallback plans."""
        stage.refresh_lower(nodes)
        if with_fallback and self.model.is_laid_out and not self.model.legal.all():
            for node in nodes.tolist():
                if stage.pool.lower[node] == -np.inf:
                    cover(stage, stage.pool.row(node)[0])
                    stage.refresh_lower(np.array([node]))

    def _pass(self, schedule: Schedule, side: int) -> None:
        """Back up one bound at the beliefs of all trials; the lower one unless another backup has raised it there."""
        stage = self.stages[-1]
        pool, backups, bounds = stage.pool, self.backups, self.bounds
        nodes = np.array([*reversed(stage.q_upper)], dtype=np.int64)
        stage.refresh_lower(nodes)
        before = pool.lower[nodes]
        for node, value in zip(nodes.tolist(), before.tolist(), strict=True):
            self._look()
            if side:
                if pool.upper[node] - value > _CLOSED * stage.scale:
                    self.backups += 1
                    self._improve(stage, node)
                continue
            self._raise_lower(stage, np.array([node]))
            if pool.lower[node] <= value + _RAISED * stage.scale and pool.upper[node] - value > _CLOSED * stage.scale:
                self._back_up_lower(stage, node)
        root = np.array([self.root])
        stage.refresh_lower(root)
        stage.refresh_upper(root)
        schedule.after(self, side, backups, bounds)

    def _back_up(self, stage: Stage, node: int) -> None:
        """Back up both bounds at a belief."""
        self._improve(stage, node)
        self._raise_lower(stage, np.array([node]))
        self._back_up_lower(stage, node)

    def _back_up_lower(self, stage: Stage, node: int) -> None:
        """Back up the lower bound at a belief by the actions that have been looked at."""
        pool = stage.pool
        self.backups += 1
        best, value = -1, -np.inf
        for action, children in stage.children[node].items():
            if stage.q_upper[node][action] <= pool.lower[node]:
                continue
            q = float(stage.immediate[node][action])
            if stage.next is not None:
                below = stage.next.pool
                self._raise_lower(stage.next, children.node)
                q += self.model.discount * float(children.probability @ below.lower[children.node])
            if q > value:
                best, value = action, q
        if best >= 0 and value > pool.lower[node] + 1e-13 * stage.scale:
            self._add_vector(stage, node, best)

    def _add_vector(self, stage: Stage, node: int, action: int) -> None:
        """Add the alpha vector of an action at a belief, with the best successor after each observation."""
        after = np.zeros(self.model.n_observations, dtype=np.int64)
        vector = self.model.reward[action]
        if stage.next is not None:
            below = stage.next.pool
            default = self._default(stage, action)
            self._raise_lower(stage.next, default.node, with_fallback=False)
            after[default.observation] = np.maximum(below.best[default.node], 0)
            children = stage.children[node][action]
            after[children.observation] = below.best[children.node]
            layout, archive = stage.layout, stage.next.archive
            vector = self.kernels.backup(layout, action, self.model.reward[action], self.model.discount, archive, after)
        vector = np.where(self.model.legal[action], vector, -np.inf)
        stage.made_at[stage.add_vector(vector, action, after)] = node
        stage.refresh_lower(np.array([node]))

    def _default(self, stage: Stage, action: int) -> Children:
        """Return the successors of the uniform belief, for observations that a belief excludes."""
        if action not in stage.default:
            index = np.flatnonzero(self.model.legal[action])
            weight = np.ones(len(index))
            below = stage.next
            assert below is not None
            observation, offsets, states, weights, probability, keys, lost = self.kernels.expand(
                stage.layout, action, index, weight, below.corner, _LEAST_SHARE
            )
            stage.default[action] = Children(
                observation, below.admit(offsets, states, weights, keys), probability, lost
            )
        return stage.default[action]


def infinite_stage(model: SolverModel, kernels: Kernels, initial: InitialBounds) -> list[Stage]:
    """Return the stage of an infinite horizon, which follows itself."""
    stage = Stage(model, kernels, initial.informed, None, initial.rests_on)
    stage.next = stage
    _add_blind(stage, initial.blind, np.maximum(initial.plans, 0))
    return [stage]


def finite_stages(model: SolverModel, kernels: Kernels, horizon: int, stop: Stop = never) -> list[Stage]:
    """Return the stages with 1 to ``horizon`` actions to go, with the bounds of FIB and of blind policies.

    Without outcomes, the bounds are those of the underlying MDP.

    Args:
        model: The problem.
        kernels: The inner loops.
        horizon: The number of actions.
        stop: Whether to leave; the bounds of the other stages are those of the least and the greatest values before.
    """
    plans = blind_plans(model) if model.is_laid_out else early_plans(model)
    stages: list[Stage] = []
    most = float(model.row_sums.max(initial=0.0)) * model.discount
    above = blind = None
    for _ in range(horizon):
        try:
            look(stop)
            if model.is_laid_out:
                above = informed_stage(model, model.outcomes, above, stop=stop)
            else:
                above = mdp_stage(model, above)
            blind = blind_stage(model, plans, np.zeros(model.reward.shape) if blind is None else blind)
        except StoppedEarlyError:
            greatest = 0.0 if above is None else max(0.0, float(above.max(initial=0.0)))
            above = np.where(model.legal, model.reward + most * greatest, -np.inf)
            blind = _least_ahead(model, plans, blind, most)
        stages.append(Stage(model, kernels, above, stages[-1] if stages else None))
        _add_blind(stages[-1], blind, np.maximum(plans, 0))
    return stages


def _least_ahead(model: SolverModel, plans: Ints, blind: Floats | None, most: float) -> Floats:
    """Return ``[A, n]``, a lower bound on the values of blind policies with one action more to go."""
    if blind is None or not model.legal.all():  # where actions are not legal, values are -inf
        return blind_stage(model, plans, np.zeros(model.reward.shape) if blind is None else blind)
    return model.reward + most * float(blind.min(initial=0.0))


def _add_blind(stage: Stage, vectors: Floats, after: Ints) -> None:
    for k in range(len(vectors)):
        stage.add_vector(vectors[k], k % stage.model.n_actions, after[k])
