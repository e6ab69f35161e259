"""Finite-state controllers: each node has an action, and each observation leads to the next node.

The value of node k in state s solves ``v_k(s) = R(s, a_k) + gamma sum_o sum_s' p(s', o | s, a_k) v_{k'(o)}(s')``, a
linear system in N S unknowns, in floats or in fractions.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints, as_integers, is_integer
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, PlanningError
from pomdp_hier.planning.alpha_vectors import LeafVectors
from pomdp_hier.planning.controllers.graph import ControllerGraph, controller_graph
from pomdp_hier.planning.decision import Decision, Policy, outcome_matrix, where_to_decide
from pomdp_hier.planning.policies import AlphaVectorPolicy
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.problem import POMDP

_MOST_FRACTIONS = 3_000
_MOST_BELIEFS = 2_000
_NOT_LEGAL = (
    "controller: got one with an action that is not legal; expected legal actions in all states it can reach. "
    "Build it by solve(problem).controller()."
)


@dataclass(frozen=True, eq=False)
class FiniteStateController:
    """A finite-state controller for a problem.

    Attributes:
        problem: The problem.
        actions: ``[N]``, the index of each node's action.
        after: ``[N, O]``, the next node after each observation; -1 if the run ends or the observation is impossible.
        start: The start node.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> exact = tiger(discount=Fraction(19, 20), accuracy=Fraction(17, 20))
        >>> listening = FiniteStateController(exact, np.array([0]), np.array([[0, 0]]))
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
        compiled = self.problem.compiled
        try:
            object.__setattr__(self, "actions", as_integers(self.actions))
            object.__setattr__(self, "after", as_integers(self.after))
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(
                f"controller: got actions {brief(self.actions)} and successors {brief(self.after)}; expected indices."
            ) from error
        n = self.actions.size
        if (
            self.actions.ndim != 1
            or self.after.shape != (n, compiled.n_observations)
            or not (is_integer(self.start) and 0 <= self.start < n)
        ):
            raise ModelError(
                f"controller: got {n} actions, successors of shape {self.after.shape} and start {self.start}; expected "
                f"shapes [N] and [N, {compiled.n_observations}], and a start below N."
            )
        if self.actions.min() < 0 or self.actions.max() >= compiled.n_actions or self.after.max(initial=-1) >= n:
            raise ModelError(
                f"controller: got actions up to {self.actions.max()}, successors up to {self.after.max(initial=-1)}; "
                f"expected actions from 0 to {compiled.n_actions - 1}, and successors from -1 to {n - 1}."
            )

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        value = ""
        with suppress(PlanningError):  # there may be none
            value = f", value={self.value():.6g}"
        return f"FiniteStateController({len(self)} nodes, start={self.start}{value})"

    @property
    def action_names(self) -> tuple[Any, ...]:
        """The action of each node."""
        return tuple(self.problem.compiled.actions[a] for a in self.actions.tolist())

    # --- values --------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Floats:
        """``[N, S]``, the value of each node in each state.

        It is -inf where one of its actions is not legal, or where it may run indefinitely without a discount.

        Raises:
            PlanningError: Floats cannot hold the values.
        """
        return self._solved[0]

    @cached_property
    def _solved(self) -> tuple[Floats, Bools]:
        """The values, and a mask ``[N, S]`` of values that do not exist: indefinite runs without a discount."""
        from scipy.sparse.linalg import spsolve

        step, reward, illegal = self._system()
        compiled, shape = self.problem.compiled, reward.shape
        removed = _spread(step, illegal.ravel())
        step = _without(step, removed)
        indefinite = _spread(step, _repeats(step)) if compiled.discount == 1 else np.zeros_like(removed)
        removed |= indefinite
        step = _without(step, removed)
        system = sparse.csc_array(sparse.eye_array(len(removed), format="csc") - compiled.discount * step)
        solved = np.asarray(spsolve(system, np.where(removed, 0.0, reward.ravel())))
        if not np.isfinite(solved).all():
            raise PlanningError(
                f"controller: got rewards up to {np.abs(reward).max():.3g}, whose sums exceed the floats; expected "
                "values below 1e308. Write all rewards in a larger unit."
            )
        values = solved.reshape(shape)
        return np.where(removed.reshape(shape), -np.inf, values), indefinite.reshape(shape)

    def _system(self) -> tuple[sparse.csc_array, Floats, Bools]:
        """Return the transition matrix ``[N S, N S]`` of node and state, the rewards, and a mask of illegal actions."""
        compiled, n, size = self.problem.compiled, len(self), self.problem.compiled.n_states
        rows, columns, data = [], [], []
        illegal = np.zeros((n, size), dtype=bool)
        reward = np.zeros((n, size))
        alive = ~compiled.terminal
        for a in np.unique(self.actions).tolist():
            matrix = outcome_matrix(compiled, a).tocoo()
            observation, state = np.divmod(matrix.col.astype(np.int64), size)
            here = np.flatnonzero(alive[matrix.row] & alive[state] & compiled.legal[a, matrix.row])
            for k in np.flatnonzero(self.actions == a).tolist():
                then = self.after[k, observation[here]]
                on = here[then >= 0]
                illegal[k] = alive & ~compiled.legal[a]
                if compiled.legal_after is not None:
                    legal = compiled.legal_after[observation[on], self.actions[then[then >= 0]]]
                    illegal[k, matrix.row[on[~legal]]] = True
                rows.append(k * size + matrix.row[on])
                columns.append(then[then >= 0] * size + state[on])
                data.append(matrix.data[on])
                reward[k] = np.where(alive, compiled.reward[a], 0.0)
        entries = np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))
        return sparse.csc_array(entries, shape=(n * size, n * size)), reward, illegal

    @cached_property
    def stops(self) -> bool:
        """Whether a run may have no next node before it terminates, as in a plan of n actions."""
        compiled, size = self.problem.compiled, self.problem.compiled.n_states
        for a in np.unique(self.actions).tolist():
            matrix = outcome_matrix(compiled, a).tocoo()
            nonterminal = (
                ~compiled.terminal[matrix.row] & ~compiled.terminal[matrix.col % size] & compiled.legal[a, matrix.row]
            )
            seen = np.unique(matrix.col[nonterminal] // size)
            if (self.after[np.ix_(self.actions == a, seen)] < 0).any():
                return True
        return False

    @cached_property
    def exact_values(self) -> list[list[Fraction | None]]:
        """``[N][S]``, the values in fractions, from floats as decimals; ``None`` where there is none.

        Raises:
            PlanningError: There are more than 3,000 unknowns.
        """
        from pomdp_hier.planning.certificates.exact_model import solve_in_fractions

        if len(self) * len(self.problem.states) > _MOST_FRACTIONS:
            raise PlanningError(
                f"controller: got {len(self)} nodes times {len(self.problem.states)} states; expected at most "
                f"{_MOST_FRACTIONS:,} unknowns for fractions. Call minimised(), or value() with exact=False."
            )
        indefinite = np.flatnonzero(self._solved[1]).tolist()
        return solve_in_fractions(self.problem, self.actions.tolist(), self.after.tolist(), indefinite)

    def value(self, belief: Any = None, *, exact: bool = False) -> Any:
        """Return the value from the start node.

        Args:
            belief: The belief at the start; the problem's initial belief by default.
            exact: Whether to compute in fractions.

        Raises:
            PlanningError: The controller may run indefinitely without a discount, or takes an action that is not legal.
        """
        belief = self.problem.initial_belief if belief is None else self.problem.as_belief(belief)
        weights = self.problem.compiled.vector(belief)
        support = np.flatnonzero(weights)
        if self._solved[1][self.start, support].any():
            raise PlanningError(
                "controller: got one that may run indefinitely at a discount of 1; expected one that terminates. Use "
                "policy_value with a horizon, or a discount below 1."
            )
        if not exact:
            expected = float(self.values[self.start, support] @ weights[support])
            if expected == -np.inf:
                raise PlanningError(_NOT_LEGAL)
            return expected
        from pomdp_hier.planning.certificates.exact_model import as_fraction

        index = self.problem.compiled.state_index
        row = self.exact_values[self.start]
        total = Fraction(0)
        for state, p in belief.items():
            value = row[index[state]]
            if value is None:
                raise PlanningError(_NOT_LEGAL)
            total += as_fraction(p, "belief") * value
        return total

    # --- as a policy ---------------------------------------------------------------------------------------------

    @cached_property
    def vectors(self) -> AlphaVectorPolicy:
        """The values of the nodes as a policy of alpha vectors: the action of the best node at each belief.

        Below a discount of 1 it is at least as good as a controller of infinite horizon. Without a discount it may
        repeat actions of equal value indefinitely.
        """
        return AlphaVectorPolicy(self.values, self.actions)

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the action of the best node at the belief; for a finite-horizon controller, that of its start node.

        A single decision has no node. Simulations and exact evaluations move from node to node, by `with_memory`.
        """
        policy = (
            AlphaVectorPolicy(self.values[[self.start]], self.actions[[self.start]]) if self.stops else self.vectors
        )
        return policy.decide(problem, belief, observation=observation)

    def with_memory(self, memory: int | None) -> Policy:
        """Return the policy of one node, the start node for ``None``.

        Raises:
            PlanningError: In ``decide``: the controller has no such node, as after its last action.

        Example:
            >>> from pomdp_hier.planning import solve
            >>> from pomdp_hier.problems import tiger
            >>> two = solve(tiger(), horizon=2).controller()
            >>> two.with_memory(two.remember(None, "hear-left")).decide(tiger()).value
            -1.0
        """
        return _Node(self, self.start if memory is None else memory)

    def remember(self, memory: int | None, observation: Hashable) -> int:
        """Return the next node after an observation at a node; -1 for none."""
        position = self.problem.compiled.observation_index.get(observation, -1)
        node = self.start if memory is None else memory
        return int(self.after[node, position]) if node >= 0 and position >= 0 else -1

    @cached_property
    def _made(self) -> Bools:
        """``[A, O]``, the possible observations after each action."""
        compiled = self.problem.compiled
        made = np.zeros((compiled.n_actions, compiled.n_observations), dtype=bool)
        for a in range(compiled.n_actions):
            made[a, outcome_matrix(compiled, a).tocoo().col // compiled.n_states] = True
        return made

    @property
    def leaf(self) -> LeafVectors:
        """The values of the nodes as leaf values: ``RTBSS(d, leaf_value=controller)``.

        For a controller with a horizon of n actions, it is the value of the start node. The search is then ``d + n``
        actions long.

        Example:
            >>> from pomdp_hier.planning import RTBSS
            >>> from pomdp_hier.problems import tiger
            >>> listening = FiniteStateController(tiger(), np.array([0]), np.array([[0, 0]]))
            >>> round(RTBSS(3, leaf_value=listening).decide(tiger()).value, 6) >= round(listening.value(), 6)
            True
        """
        after, nodes = self.problem.compiled.legal_after, [self.start] if self.stops else list(range(len(self)))
        usable = None if after is None else after[:, self.actions[nodes]]
        return LeafVectors.of(self.values[nodes], usable, "the controller", below_optimum=not self.stops)

    # --- as a graph ----------------------------------------------------------------------------------------------

    def graph(self, *, name: Callable[[Any], str] = str, limit: int = 200) -> ControllerGraph:
        """Return the nodes that a run from the start visits most, with beliefs, and edges with their observations.

        Example:
            >>> from pomdp_hier.planning import solve
            >>> from pomdp_hier.problems import tiger
            >>> graph = solve(tiger()).controller().graph(limit=3)
            >>> [node.action for node in graph.nodes], graph.n_left_out, round(graph.left_out_share, 2)
            (['listen', 'listen', 'listen'], 2, 0.26)
        """
        return controller_graph(self, name, limit)

    def to_dict(self, *, name: Callable[[Any], str] = str, limit: int = 200) -> dict[str, Any]:
        """Return nodes, each with belief, value and share of the steps, and edges as plain values, fit for JSON.

        Args:
            name: The function that names states, actions and observations.
            limit: The greatest number of nodes; the most visited ones are kept, and the share of the others given.

        Raises:
            ParameterError: The limit is not a positive integer.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> FiniteStateController(tiger(), np.array([0]), np.array([[0, 0]])).to_dict()["edges"]
            [{'source': 0, 'target': 0, 'observations': ['hear-left', 'hear-right'], 'probability': 1.0}]
        """
        return self.graph(name=name, limit=limit).to_dict()

    def to_text(self, *, name: Callable[[Any], str] = str, limit: int = 200) -> str:
        """Return one line per node, with ``*`` at the start, and one per edge; arguments as for `to_dict`.

        Example:
            >>> from pomdp_hier.planning import solve
            >>> from pomdp_hier.problems import tiger
            >>> print(solve(tiger(), horizon=2).controller().to_text())
            * 0 listen  V -1.95  tiger-left .5, tiger-right .5
                  hear-left, hear-right -> 1
              1 listen  V -1     tiger-left .85, tiger-right .15
                  ends with probability 1
        """
        return self.graph(name=name, limit=limit).to_text()

    def to_dot(self, *, name: Callable[[Any], str] = str, limit: int = 200) -> str:
        """Return the graph in DOT, the language of Graphviz; arguments as for `to_dict`."""
        return self.graph(name=name, limit=limit).to_dot()

    def to_tikz(self, *, name: Callable[[Any], str] = str, limit: int = 200) -> str:
        """Return the graph as a TikZ picture, in layers from the start; arguments as for `to_dict`."""
        return self.graph(name=name, limit=limit).to_tikz()

    # --- other controllers ---------------------------------------------------------------------------------------

    def minimised(self) -> "FiniteStateController":
        """Return the smallest equivalent controller: no unreachable nodes, equivalent nodes merged.

        Impossible observations are ignored.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> twice = FiniteStateController(tiger(), np.array([0, 0, 1]), np.array([[1, 1], [0, 0], [2, 2]]))
            >>> len(twice.minimised())
            1
        """
        after = np.where(self._made[self.actions], self.after, -1)
        block, n_blocks = self.actions.copy(), 0
        while True:
            seen = np.column_stack([block, np.where(after >= 0, block[after], -1)])
            rows, block = np.unique(seen, axis=0, return_inverse=True)
            block = block.ravel()
            if len(rows) == n_blocks:
                break
            n_blocks = len(rows)
        return self._kept(after, block)

    def _kept(self, after: Ints, block: Ints) -> "FiniteStateController":
        """Return the controller with one node per block, those reachable from the start, in order of discovery."""
        first = {int(b): int(k) for k, b in reversed(list(enumerate(block)))}
        order = {int(block[self.start]): 0}
        queue = [int(block[self.start])]
        for b in queue:  # grows during the loop
            for then in after[first[b]].tolist():
                if then >= 0 and int(block[then]) not in order:
                    order[int(block[then])] = len(order)
                    queue.append(int(block[then]))
        nodes = [first[b] for b in queue]
        renamed = [[order[int(block[then])] if then >= 0 else -1 for then in after[k].tolist()] for k in nodes]
        return replace(self, actions=self.actions[nodes], after=np.array(renamed, dtype=np.int64), start=0)

    def beliefs(self) -> list[Belief | None]:
        """Return the first belief of a run at each node, from the start; ``None`` where none was found.

        Runs are followed breadth first: each node's first belief, then further ones, at most 2,000.
        """
        compiled = self.problem.compiled
        found: list[Floats | None] = [None] * len(self)
        found[self.start] = compiled.initial
        first: deque[tuple[int, Floats]] = deque([(self.start, compiled.initial)])
        later: deque[tuple[int, Floats]] = deque()
        known = {(self.start, compiled.initial.round(9).tobytes())}
        while (first or later) and any(belief is None for belief in found):
            k, belief = first.popleft() if first else later.popleft()
            if compiled.terminal[belief > 0].all():
                continue
            for o, _, posterior in compiled.branches(belief, int(self.actions[k])):
                then = int(self.after[k, o])
                if then < 0:
                    continue
                if found[then] is None:
                    found[then] = posterior
                    first.append((then, posterior))
                elif len(known) < _MOST_BELIEFS and (then, posterior.round(9).tobytes()) not in known:
                    later.append((then, posterior))
                known.add((then, posterior.round(9).tobytes()))
        return [None if belief is None else _rounded(compiled.states, belief) for belief in found]


@dataclass(frozen=True)
class _Node:
    """A node of a controller as a policy."""

    controller: FiniteStateController
    node: int

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the node's action, and its value at the belief if it has one."""
        belief, _ = where_to_decide(problem, belief, observation)
        if self.node < 0:
            raise PlanningError(
                f"controller: got the observation {brief(observation)} without a next node; expected a run within "
                "its steps. Set horizon to its number of actions, or solve with horizon=None."
            )
        weights = problem.compiled.vector(belief)
        support = np.flatnonzero(weights)
        value = float(self.controller.values[self.node, support] @ weights[support])
        return Decision(self.controller.action_names[self.node], value=value if np.isfinite(value) else None)


def _rounded(states: Sequence[Any], belief: Floats) -> Belief:
    positions = np.flatnonzero(belief)
    return Belief.normalized({states[i]: float(belief[i]) for i in positions.tolist()})


def _spread(step: sparse.csc_array, marked: Bools) -> Bools:
    """Return the marked states and all states that can reach them."""
    row, column = step.tocoo().coords
    marked, before = marked.copy(), -1
    while int(marked.sum()) != before:
        before = int(marked.sum())
        marked[row[marked[column]]] = True
    return marked


def _without(step: sparse.csc_array, removed: Bools) -> sparse.csc_array:
    """Return the transition matrix with the rows of removed states set to zero."""
    left = sparse.csc_array(sparse.diags_array((~removed).astype(np.float64)) @ step)
    left.eliminate_zeros()
    return left


def _repeats(step: sparse.csc_array) -> Bools:
    """Return a mask of the states of a chain that can be visited twice."""
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(step, directed=True, connection="strong")
    again: Bools = (np.bincount(label)[label] > 1) | (step.diagonal() != 0)
    return again
