"""RTBSS on a compiled problem: all beliefs of one depth together, equal ones once, the last steps in closed form.

The forward pass turns the beliefs with ``d`` actions to go into those with ``d - 1``: one product per action gives the
posteriors of all observations. It prunes actions whose upper bound is below the value of a blind policy, and merges
equal posteriors. The backward pass sums the values. Where the leaf values are a maximum of linear functions, so is the
value of the last one or two steps. These then need no expansion.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier.planning.alpha_vectors import LeafVectors, illegal_at_leaf
from pomdp_hier.planning.decision import TERMINAL_VALUE, outcome_matrix
from pomdp_hier.planning.rtbss.recursive import BudgetExhausted, Pruning
from pomdp_hier.pomdp.tabular import TabularPOMDP

Rows = Any  # [n, S]: an ndarray, or a CSR array where states are many and supports small


@dataclass(frozen=True, eq=False)
class Children:
    """The posteriors of beliefs after one action.

    Attributes:
        rows: ``[m, S]``, the posteriors.
        evidence: ``[m]``, ``Pr(o | b, a)``, all positive.
        parent: ``[m]``, the belief that each comes from.
        observation: ``[m]``.
    """

    rows: Rows
    evidence: Floats
    parent: Ints
    observation: Ints


def expand(beliefs: Rows, outcomes: Any, n_observations: int) -> Children:
    """Return the posteriors of all beliefs after every possible observation, by one product.

    Args:
        beliefs: ``[n, S]``.
        outcomes: ``[S, O * S']`` of one action, of the same kind (dense or sparse).
        n_observations: O.
    """
    n, size = beliefs.shape
    joint = beliefs @ outcomes
    if sparse.issparse(joint):
        joint.eliminate_zeros()
    joint = joint.reshape((n * n_observations, size))
    if sparse.issparse(joint):
        joint = joint.tocsr()
    evidence = np.asarray(joint.sum(axis=1), dtype=np.float64).ravel()
    possible = np.flatnonzero(evidence > 0)
    rows, evidence = joint[possible], evidence[possible]
    if sparse.issparse(rows):
        rows.data /= np.repeat(evidence, np.diff(rows.indptr))
    else:
        rows = rows / evidence[:, None]
    parent, observation = np.divmod(possible, n_observations)
    return Children(rows, evidence, parent, observation)


def stack(parts: list[Rows]) -> Rows:
    """Return the matrices below one another."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def products(beliefs: Rows, table: Floats) -> Floats:
    """Return ``[n, K]``, ``sum_s b(s) table[k, s]``, where probability 0 times an infinite entry is 0."""
    infinite = ~np.isfinite(table)
    if not infinite.any():
        return np.asarray(beliefs @ table.T)
    result = np.asarray(beliefs @ np.where(infinite, 0.0, table).T)
    for sign in (np.inf, -np.inf):
        result[touches(beliefs, table == sign)] = sign
    return result


def touches(beliefs: Rows, marked: Bools) -> Bools:
    """Return ``[n, K]``, whether the belief gives a marked state (``[K, S]``) positive probability."""
    support = beliefs.astype(bool).astype(np.float64) if sparse.issparse(beliefs) else (beliefs > 0).astype(np.float64)
    return np.asarray(support @ marked.T.astype(np.float64)) > 0


def merge(rows: Rows, labels: Ints | None, tolerance: float) -> tuple[Ints, Ints]:
    """Return the rows to keep, and the kept row that represents each row.

    Rows are merged if they are bit-for-bit identical. With a tolerance, the same entries must be positive, and each
    must lie in the same cell of that width. Labels (the last observation, where it matters) must agree as well, so
    that merged beliefs have the same legal actions.

    Args:
        rows: ``[n, S]``.
        labels: ``[n]`` or ``None``.
        tolerance: The width of a cell, 0 for equality.

    Example:
        >>> merge(np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]), None, 0.0)
        (array([0, 1]), array([0, 1, 0]))
    """
    keys = _fingerprints(rows, tolerance)
    if labels is not None:
        keys = keys * _MULTIPLIER + labels.astype(np.uint64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # in order of first appearance
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    kept, inverse = first[order], position[inverse]
    if not _same(rows, kept[inverse], tolerance) or (labels is not None and (labels != labels[kept[inverse]]).any()):
        kept = inverse = np.arange(rows.shape[0])  # two different rows share a fingerprint: nothing is merged
    return kept, inverse


_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, from the golden ratio: spreads the bits of a product


def _bits(values: Floats, tolerance: float) -> NDArray[np.uint64]:
    if tolerance > 0:  # no cell of a positive probability is the one of 0
        return (np.rint(values / tolerance).astype(np.int64) + (values > 0)).view(np.uint64)
    return np.ascontiguousarray(values).view(np.uint64)


def _weights(columns: Ints) -> NDArray[np.uint64]:
    """Return an odd multiplier for each column."""
    mixed = (columns.astype(np.uint64) + np.uint64(1)) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    return (mixed * np.uint64(0xBF58476D1CE4E5B9)) | np.uint64(1)


def _fingerprints(rows: Rows, tolerance: float) -> NDArray[np.uint64]:
    """Return ``[n]``, sums modulo 2^64 of mixed bits, which are equal for equal rows."""
    n, size = rows.shape
    if not sparse.issparse(rows):
        bits = _bits(rows, tolerance)
        bits = (bits ^ (bits >> np.uint64(32))) * _weights(np.arange(size))
        return np.asarray((bits ^ (bits >> np.uint64(31))).sum(axis=1, dtype=np.uint64))
    bits = _bits(rows.data, tolerance)
    bits = (bits ^ (bits >> np.uint64(32))) * _weights(rows.indices)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits ^ (bits >> np.uint64(31)), dtype=np.uint64)])
    return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]).reshape(n)


def _same(rows: Rows, stand_in: Ints, tolerance: float) -> bool:
    """Return whether every row equals its representative, within the tolerance and with the same support."""
    others = np.flatnonzero(stand_in != np.arange(len(stand_in)))
    if not len(others):
        return True
    these, those = rows[others], rows[stand_in[others]]
    if tolerance > 0 and _any((these > 0) != (those > 0)):
        return False
    return not _any(abs(these - those) > tolerance)


def _any(marked: Any) -> bool:
    return bool(marked.nnz if sparse.issparse(marked) else marked.any())


_DENSE = 4_000_000  # entries of all outcome matrices (32 MB) up to which dense products are faster
_CHUNK = 8_000_000  # entries of one product (64 MB); larger layers are split


@dataclass(frozen=True, eq=False)
class _Layer:
    """The beliefs of one depth, with the links from the values of the next depth to theirs.

    Attributes:
        q: ``[n, A]``, the reward of each expanded action, ``-inf`` for the others.
        upper: ``[n, A]``, the upper bounds, or ``None``.
        terminal: ``[n]``, bool: the belief is terminal.
        cell, weight, child: Of each branch: ``n * A + a`` of the action, ``gamma * Pr(o | b, a)``, and its belief in
            the next layer.
        depth: The number of actions to go.
    """

    q: Floats
    upper: Floats | None
    terminal: Bools
    cell: Ints
    weight: Floats
    child: Ints
    depth: int


@dataclass(eq=False)
class ArraySearch:
    """A depth-limited search over the arrays of a problem; `q_value` starts it from one belief.

    Attributes:
        compiled: The problem.
        leaf: The leaf values.
        pruning: The upper bound, as a table; without one all actions are expanded.
        lower: A table ``[d - 1, a, s]`` of lower bounds of the d-step values.
        merge_tolerance: Beliefs that agree to this tolerance are expanded once; 0 means equal, ``None`` never.
        budget: The largest number of expanded nodes.
        nodes, pruned, reused: The numbers of expanded beliefs, pruned actions and merged beliefs.
    """

    compiled: TabularPOMDP
    leaf: LeafVectors
    pruning: Pruning
    lower: Floats | None = None
    merge_tolerance: float | None = 0.0
    budget: int | None = None
    nodes: int = 0
    pruned: int = 0
    reused: int = 0

    def __post_init__(self) -> None:
        compiled = self.compiled
        self._dense = compiled.n_actions * compiled.n_observations * compiled.n_states**2 <= _DENSE
        matrices = [outcome_matrix(compiled, a) for a in range(compiled.n_actions)]
        self._outcomes = [m.toarray() for m in matrices] if self._dense else matrices
        self._actions = LeafVectors(compiled.reward, compiled.legal, compiled.legal_after)
        self._base, self._tail = self._closed_form()
        self._folded = self._fold()

    # --- forward and backward ------------------------------------------------------------------------------------

    def q_value(self, belief: Floats, action: int, depth: int) -> float:
        """Return ``Q_depth(b, a)`` of one belief ``[S]``.

        Raises:
            BudgetExhausted: More nodes would be needed than the budget allows.
            PlanningError: An upper bound lies below the value it should bound, or no leaf vector is legal.
        """
        here = float(self.compiled.reward[action] @ belief)
        if self.compiled.discount == 0:
            return here
        rows = belief[None, :] if self._dense else sparse.csr_array(belief[None, :])
        children = expand(rows, self._outcomes[action], self.compiled.n_observations)
        beliefs, seen, child = self._merged(children.rows, children.observation)
        values = self._values(beliefs, seen, depth - 1)
        return here + self.compiled.discount * float(children.evidence @ values[child])

    def _values(self, beliefs: Rows, seen: Ints, depth: int) -> Floats:
        """Return ``[n]``, ``V_depth`` of each belief; ``seen`` is the observation before it (-1: none)."""
        layers: list[_Layer] = []
        last = self._base + (self._folded is not None)
        while depth > last and beliefs.shape[0]:
            chunk = self._chunk(beliefs)
            if beliefs.shape[0] > chunk:
                spans = [slice(i, i + chunk) for i in range(0, beliefs.shape[0], chunk)]
                values = np.concatenate([self._values(beliefs[span], seen[span], depth) for span in spans])
                break
            layer, beliefs, seen = self._forward(beliefs, seen, depth)
            layers.append(layer)
            depth -= 1
        else:
            values = self._tail_values(beliefs, seen, depth)
        for layer in reversed(layers):
            values = self._backward(layer, values)
        return values

    def _chunk(self, beliefs: Rows) -> int:
        compiled = self.compiled
        if self._dense:
            width: float = compiled.n_actions * compiled.n_observations * compiled.n_states
        else:
            reach = max(m.nnz for m in self._outcomes) / compiled.n_states
            width = compiled.n_actions * reach * max(1.0, beliefs.nnz / beliefs.shape[0])
        return max(1, int(_CHUNK / max(1.0, width)))

    def _forward(self, beliefs: Rows, seen: Ints, depth: int) -> tuple[_Layer, Rows, Ints]:
        compiled = self.compiled
        n_actions = compiled.n_actions
        self._count(beliefs.shape[0])
        terminal = self._is_terminal(beliefs)
        tried = self._usable(beliefs, seen, self._actions)
        self._check_dead_ends(beliefs, seen, tried, terminal)
        tried[terminal] = False
        upper = None
        if self.pruning.table is not None and self.lower is not None:
            upper = products(beliefs, self.pruning.table[depth - 1])
            sure = np.where(tried, products(beliefs, self.lower[depth - 1]), -np.inf).max(axis=1)
            hopeless = tried & (upper + self.pruning.slack < sure[:, None])
            self.pruned += int(hopeless.sum())
            tried &= ~hopeless
        q = np.where(tried, products(beliefs, compiled.reward), -np.inf)
        parts, cells = [], []
        for a in range(n_actions):
            rows = np.flatnonzero(tried[:, a])
            if len(rows):
                chosen = beliefs if len(rows) == beliefs.shape[0] else beliefs[rows]
                parts.append(expand(chosen, self._outcomes[a], compiled.n_observations))
                cells.append(rows[parts[-1].parent] * n_actions + a)
        if not parts:
            nothing = np.zeros(0, dtype=np.int64)
            return _Layer(q, upper, terminal, nothing, np.zeros(0), nothing, depth), beliefs[:0], seen[:0]
        weight = compiled.discount * np.concatenate([part.evidence for part in parts])
        observation = np.concatenate([part.observation for part in parts])
        beliefs, seen, child = self._merged(stack([part.rows for part in parts]), observation)
        return _Layer(q, upper, terminal, np.concatenate(cells), weight, child, depth), beliefs, seen

    def _backward(self, layer: _Layer, values: Floats) -> Floats:
        added = np.bincount(layer.cell, weights=layer.weight * values[layer.child], minlength=layer.q.size)
        q = layer.q + added.reshape(layer.q.shape)
        if layer.upper is not None:
            self._check_bounds(q, layer.upper, layer.depth)
        return np.where(layer.terminal, TERMINAL_VALUE, q.max(axis=1))

    def _check_bounds(self, q: Floats, upper: Floats, depth: int) -> None:
        with np.errstate(invalid="ignore"):  # -inf - inf of actions that were not tried
            wrong = q > upper + np.maximum(self.pruning.check_slack, 1e-9 * np.maximum(1.0, np.abs(q)))
        if wrong.any():
            row, action = np.argwhere(wrong)[0]
            name = self.compiled.actions[action]
            self.pruning.check(float(q[row, action]), float(upper[row, action]), name, depth)

    def _merged(self, rows: Rows, observation: Ints) -> tuple[Rows, Ints, Ints]:
        """Return the merged beliefs, the observation before each, and the merged belief of each row."""
        if self.merge_tolerance is None:
            return rows, observation, np.arange(rows.shape[0])
        labels = None if self.compiled.legal_after is None else observation
        kept, child = merge(rows, labels, self.merge_tolerance)
        self.reused += rows.shape[0] - len(kept)
        return (rows if len(kept) == rows.shape[0] else rows[kept]), observation[kept], child

    def _count(self, nodes: int) -> None:
        if self.budget is not None and self.nodes + nodes > self.budget:
            raise BudgetExhausted
        self.nodes += nodes

    # --- legality ------------------------------------------------------------------------------------------------

    def _is_terminal(self, beliefs: Rows) -> Bools:
        terminal = self.compiled.terminal
        if not terminal.any():
            return np.zeros(beliefs.shape[0], dtype=bool)
        return ~touches(beliefs, ~terminal[None, :])[:, 0]

    def _usable(self, beliefs: Rows, seen: Ints, vectors: LeafVectors) -> Bools:
        """Return ``[n, K]``, whether the vector (or action) is legal under the belief."""
        if vectors.legal.all():
            usable = np.ones((beliefs.shape[0], len(vectors.vectors)), dtype=bool)
        else:
            usable = ~touches(beliefs, ~vectors.legal)
        return usable if vectors.legal_after is None else usable & vectors.legal_after[seen]

    def _check_dead_ends(self, beliefs: Rows, seen: Ints, usable: Bools, terminal: Bools) -> None:
        """Raise the error of `TabularPOMDP.legal_actions` for a belief under which nothing is legal."""
        for row in np.flatnonzero(~usable.any(axis=1) & ~terminal)[:1]:
            belief = beliefs[[row]].toarray()[0] if sparse.issparse(beliefs) else beliefs[row]
            self.compiled.legal_actions(belief, int(seen[row]))
            first = int(np.flatnonzero((belief > 0) & ~self.compiled.terminal)[0])
            raise illegal_at_leaf(self.leaf.name, self.compiled.states[first])

    # --- the last steps in closed form ---------------------------------------------------------------------------

    def _closed_form(self) -> tuple[int, LeafVectors]:
        """Return the greatest depth whose value is a known maximum of linear functions, and these functions."""
        leaf, compiled = self.leaf, self.compiled
        always = leaf.legal.all() and (leaf.legal_after is None or leaf.legal_after.all())
        if len(leaf.vectors) > 1 or not always:
            return 0, leaf
        ahead = np.stack([matrix @ leaf.vectors[0] for matrix in compiled.transition])
        return 1, replace(self._actions, vectors=compiled.reward + compiled.discount * ahead)

    def _fold(self) -> Floats | None:
        """Return ``[S, A * O * K]``, the expectation of each leaf vector after each outcome; ``None`` if too large."""
        vectors, size = self._tail.vectors, self.compiled.n_states
        width = self.compiled.n_actions * self.compiled.n_observations * len(vectors)
        everything_legal = self.compiled.legal.all() and self.compiled.legal_after is None
        if not (self._dense and everything_legal and width * size <= _DENSE):
            return None
        blocks = [m.reshape(size, -1, size) @ vectors.T for m in self._outcomes]
        return np.stack(blocks, axis=1).reshape(size, width)

    def _tail_values(self, beliefs: Rows, seen: Ints, depth: int) -> Floats:
        if depth > self._base and self._folded is not None:
            return self._folded_values(beliefs, self._folded)
        tail = self._tail if depth == self._base else self.leaf
        if depth:
            self._count(beliefs.shape[0])
        usable, terminal = self._usable(beliefs, seen, tail), self._is_terminal(beliefs)
        self._check_dead_ends(beliefs, seen, usable, terminal)
        values = np.where(usable, products(beliefs, tail.vectors), -np.inf).max(axis=1)
        return np.where(terminal, TERMINAL_VALUE, values)

    def _folded_values(self, beliefs: Rows, folded: Floats) -> Floats:
        compiled = self.compiled
        self._count(beliefs.shape[0])
        shape = (-1, compiled.n_actions, compiled.n_observations, len(self._tail.vectors))
        rows = max(1, _CHUNK // folded.shape[1])
        values = np.empty(beliefs.shape[0])
        for start in range(0, len(values), rows):
            span = slice(start, start + rows)
            ahead = (beliefs[span] @ folded).reshape(shape).max(axis=3).sum(axis=2)
            values[span] = (beliefs[span] @ compiled.reward.T + compiled.discount * ahead).max(axis=1)
        return values
