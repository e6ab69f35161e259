"""Finite-state controllers: a node says the action, the observation says the next node.

The value of node k in state s solves ``v_k(s) = R(s, a_k) + gamma sum_o sum_s' p(s', o | s, a_k) v_{k'(o)}(s')``, one
linear system in N S unknowns, in floats or in fractions.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.planning.controllers.vectors import VectorPolicy
from pomdp_hier.planning.decision import Decision
from pomdp_hier.planning.fringe import FringeVectors
from pomdp_hier.planning.outcomes import outcome_matrix
from pomdp_hier.pomdp import POMDP, Belief

__all__ = ["Controller"]


_MOST_FRACTIONS = 3_000


@dataclass(frozen=True, eq=False)
class Controller:
    """A finite-state controller for a problem.

    Attributes:
        problem: The problem.
        actions: ``[N]``, the position of each node's action.
        after: ``[N, O]``, the next node after each observation; -1 where the run is over or the observation cannot be
            made.
        start: The node to start in.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> exact = tiger(discount=Fraction(19, 20), accuracy=Fraction(17, 20))
        >>> listening = Controller(exact, np.array([0]), np.array([[0, 0]]))
        >>> round(listening.value(), 6), listening.value(exact=True)
        (-20.0, Fraction(-20, 1))

    References:
        Hansen (1998), Solving POMDPs by searching in policy space.
    """

    problem: POMDP = field(repr=False)
    actions: Ints = field(repr=False)
    after: Ints = field(repr=False)
    start: int = 0

    def __post_init__(self) -> None:
        compiled, n = self.problem.compiled, len(self.actions)
        if self.after.shape != (n, compiled.n_observations) or not 0 <= self.start < n:
            raise ModelError(
                f"controller: {n} actions, successors {self.after.shape}, start {self.start}; expected [N], "
                f"[N, {compiled.n_observations}] and a start below N"
            )
        if self.actions.min() < 0 or self.actions.max() >= compiled.n_actions or self.after.max(initial=-1) >= n:
            raise ModelError(
                f"controller: an action is not below {compiled.n_actions}, or a successor not below {n}; positions "
                "start at 0"
            )

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def action_names(self) -> tuple[Any, ...]:
        """The action of each node."""
        return tuple(self.problem.compiled.actions[a] for a in self.actions.tolist())

    # --- values --------------------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> Floats:
        """``[N, S]``, the value of each node in each state; -inf where one of its actions is not legal, NaN never.

        Raises:
            PlanningError: The controller may run for ever without a discount.
        """
        from scipy.sparse.linalg import spsolve

        compiled, n, size = self.problem.compiled, len(self), self.problem.compiled.n_states
        rows, columns, data = [], [], []
        lost = np.zeros((n, size), dtype=bool)
        reward = np.zeros((n, size))
        alive = ~compiled.terminal
        for a in np.unique(self.actions).tolist():
            matrix = outcome_matrix(compiled, a).tocoo()
            observation, state = np.divmod(matrix.col.astype(np.int64), size)
            here = np.flatnonzero(alive[matrix.row] & alive[state] & compiled.legal[a, matrix.row])
            for k in np.flatnonzero(self.actions == a).tolist():
                then = self.after[k, observation[here]]
                on = here[then >= 0]
                rows.append(k * size + matrix.row[on])
                columns.append(then[then >= 0] * size + state[on])
                data.append(matrix.data[on])
                lost[k] = alive & ~compiled.legal[a]
                reward[k] = np.where(alive, compiled.reward[a], 0.0)
        row, column = np.concatenate(rows), np.concatenate(columns)
        gone = lost.ravel()
        before = -1
        while int(gone.sum()) != before:  # whoever can come to what is not legal is lost as well
            before = int(gone.sum())
            gone[row[gone[column]]] = True
        kept = ~gone[row]
        step = sparse.csc_array((np.concatenate(data)[kept], (row[kept], column[kept])), shape=(n * size, n * size))
        system = sparse.csc_array(sparse.eye_array(n * size, format="csc") - compiled.discount * step)
        if compiled.discount == 1 and not _ends(step):
            raise PlanningError("controller: it may run for ever without a discount, so that it has no value")
        values = np.asarray(spsolve(system, reward.ravel())).reshape(n, size)
        return np.where(gone.reshape(n, size), -np.inf, values)

    @cached_property
    def exact_values(self) -> list[list[Fraction | None]]:
        """``[N][S]``, the values in fractions, of the model's numbers as decimals; ``None`` where not legal.

        Raises:
            PlanningError: There are more than 3,000 unknowns.
        """
        from pomdp_hier.planning.controllers.fractions_solved import solve_in_fractions

        if len(self) * len(self.problem.states) > _MOST_FRACTIONS:
            raise PlanningError(
                f"controller: {len(self)} nodes times {len(self.problem.states)} states are more than "
                f"{_MOST_FRACTIONS:,} unknowns for fractions; minimise it, or take the values in floats"
            )
        _ = self.values  # refuses what has no value
        return solve_in_fractions(self.problem, self.actions.tolist(), self.after.tolist())

    def value(self, belief: Any = None, *, exact: bool = False) -> Any:
        """Return the value from the start node.

        Args:
            belief: What holds at the start; the problem's initial belief by default.
            exact: Whether to compute in fractions.
        """
        belief = self.problem.initial_belief if belief is None else self.problem.as_belief(belief)
        if not exact:
            weights = self.problem.compiled.vector(belief)
            support = np.flatnonzero(weights)
            return float(self.values[self.start, support] @ weights[support])
        from pomdp_hier.planning.certificates.exact_model import as_fraction

        index = self.problem.compiled.state_index
        row = self.exact_values[self.start]
        total = Fraction(0)
        for state, p in belief.items():
            value = row[index[state]]
            if value is None:
                raise PlanningError("controller: an action that it takes is not legal under the belief")
            total += as_fraction(p, "belief") * value
        return total

    # --- as a policy ---------------------------------------------------------------------------------------------

    @cached_property
    def vectors(self) -> VectorPolicy:
        """The values of the nodes as a policy of alpha vectors, which is at least as good from every belief."""
        return VectorPolicy(self.values, self.actions)

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the action of the node that is best at the belief: what the controller earns, or more."""
        return self.vectors.decide(problem, belief, observation=observation)

    @property
    def leaf(self) -> FringeVectors:
        """The values of the nodes as what `RTBSS` looks ahead to: ``RTBSS(d, lower_bound=controller)``.

        Example:
            >>> from pomdp_hier.planning import RTBSS
            >>> from pomdp_hier.problems import tiger
            >>> listening = Controller(tiger(), np.array([0]), np.array([[0, 0]]))
            >>> round(RTBSS(3, lower_bound=listening).decide(tiger()).value, 6) >= round(listening.value(), 6)
            True
        """
        after = self.problem.compiled.legal_after
        return FringeVectors.of(self.values, None if after is None else after[:, self.actions])

    # --- other controllers ---------------------------------------------------------------------------------------

    def minimised(self) -> "Controller":
        """Return the least controller that does the same from the start: nodes that cannot be told apart are one.

        Observations that cannot be made after a node's action tell nothing.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> twice = Controller(tiger(), np.array([0, 0, 1]), np.array([[1, 1], [0, 0], [2, 2]]))
            >>> len(twice.minimised())
            1
        """
        compiled = self.problem.compiled
        made = np.zeros((compiled.n_actions, compiled.n_observations), dtype=bool)
        for a in range(compiled.n_actions):
            made[a, outcome_matrix(compiled, a).tocoo().col // compiled.n_states] = True
        after = np.where(made[self.actions], self.after, -1)
        block, n_blocks = self.actions.copy(), 0
        while True:
            seen = np.column_stack([block, np.where(after >= 0, block[after], -1)])
            rows, block = np.unique(seen, axis=0, return_inverse=True)
            block = block.ravel()
            if len(rows) == n_blocks:
                break
            n_blocks = len(rows)
        return self._kept(after, block)

    def _kept(self, after: Ints, block: Ints) -> "Controller":
        """Return the controller of one node a block, those that the start leads to, in the order of their coming."""
        first = {int(b): int(k) for k, b in reversed(list(enumerate(block)))}
        order = {int(block[self.start]): 0}
        queue = [int(block[self.start])]
        for b in queue:  # grows while it is walked
            for then in after[first[b]].tolist():
                if then >= 0 and int(block[then]) not in order:
                    order[int(block[then])] = len(order)
                    queue.append(int(block[then]))
        nodes = [first[b] for b in queue]
        renamed = [[order[int(block[then])] if then >= 0 else -1 for then in after[k].tolist()] for k in nodes]
        return replace(self, actions=self.actions[nodes], after=np.array(renamed, dtype=np.int64), start=0)

    def beliefs(self) -> list[Belief | None]:
        """Return for each node the belief at which a run from the start first comes there, ``None`` where none does."""
        compiled = self.problem.compiled
        found: list[Floats | None] = [None] * len(self)
        found[self.start] = compiled.initial
        queue = [self.start]
        for k in queue:  # grows while it is walked
            belief = found[k]
            if belief is None or compiled.terminal[belief > 0].all():
                continue
            for o, _, posterior in compiled.branches(belief, int(self.actions[k])):
                then = int(self.after[k, o])
                if then >= 0 and found[then] is None:
                    found[then] = posterior
                    queue.append(then)
        return [None if belief is None else _rounded(compiled.states, belief) for belief in found]


def _rounded(states: Sequence[Any], belief: Floats) -> Belief:
    positions = np.flatnonzero(belief)
    return Belief.normalized({states[i]: float(belief[i]) for i in positions.tolist()})


def _ends(step: sparse.csc_array) -> bool:
    """Return whether no state of a chain can be met twice."""
    from scipy.sparse.csgraph import connected_components

    count, _ = connected_components(step, directed=True, connection="strong")
    return bool(count == step.shape[0] and not step.diagonal().any())
