"""Bounds over an infinite horizon on the arrays of the solver: the underlying MDP, FIB and TIB.

Each is a sequence of bounds, and can be left at any time with the last one. FIB assumes that the state is known before
each action; it starts from the values of the underlying MDP. TIB assumes the state before the *last* action, and the
observation since: the belief after action a in state s and observation o is ``beta(s, a, o)``. With a value for each of
these beliefs and each action,

    ``Q(beta, a) = R(beta, a) + gamma sum_o max_a' sum_s beta(s) Pr(o | s, a) Q(beta(s, a, o), a')``

This is at least the optimal value, which is convex in the belief, and at most FIB.

Sources: Hauskrecht (2000), Value-function approximations for POMDPs; Krale, Koops, Junges, Simão and Jansen (2025),
Tighter value-function approximations for POMDPs.
"""

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._progress import Stop, StoppedEarlyError, look, never
from pomdp_hier.planning.point_based.blind_policies import blind_plans, blind_values, early_plans
from pomdp_hier.planning.point_based.linear_systems import POLICY_STEPS, even, lowered, mdp_bound, solved
from pomdp_hier.planning.point_based.model_arrays import Outcomes, SolverModel
from pomdp_hier.planning.point_based.on_numpy import mixed, rounded_bits

_PIECE = 2_000_000  # products between two questions whether to stop, about a hundredth of a second
_LARGEST_SYSTEM = 10_000_000  # outcomes up to which FIB solves linear equations
_SWEEPS_OF_FIB = 1_000
_LONG_SWEEP = 200_000_000  # products of a step of FIB that trials take turns with, about a second
_SOLVED = 1e-10  # relative to the greatest value: a residual of FIB by less ends its policy iteration
_CLOSE = 1e-3  # relative to the greatest value: a fall of FIB by less ends its sweeps
_MOST_TERMS = 15_000_000  # products per sweep and action of TIB, in some hundreds of megabytes
_TERMS_AT_ONCE = 500_000
_TERM_BYTES = 60  # of memory, while they are collected
_PRODUCTS_PER_TERM = 30  # as long as it takes to collect one
_MOST_WORK = 1_000_000_000  # products in all, some seconds
_LEAST_WEIGHT = 1e-290  # below, floats and certificates do not represent the ratio of two weights
_SWEEPS = 200
_SETTLED = 1e-4  # relative to the greatest value: a sweep that changes less is the last


@dataclass(frozen=True, eq=False)
class OutcomeBeliefs:
    """The beliefs after one action from a known state, with a bound of each action's value.

    Attributes:
        belief: ``[B, n]`` CSR, distinct rows that sum to 1.
        value: ``[B, A]``, -inf where the action is not legal.
        row: ``[G]``, the belief after each of the outcomes.
        outcomes: The outcomes.
    """

    belief: sparse.csr_array
    value: Floats
    row: Ints
    outcomes: Outcomes

    @property
    def n_bytes(self) -> int:
        """The memory of the beliefs and their values."""
        return int(self.value.nbytes + self.row.nbytes + 3 * self.belief.data.nbytes)


@dataclass(frozen=True, eq=False)
class InitialBounds:
    """The bounds from which a search starts.

    Attributes:
        blind: ``[K, n]``, the values of blind policies; -inf where an action is not legal. The action of row k is k
            modulo A.
        plans: ``[K, O]``, the next row of each.
        informed: ``[A, n]``, an upper bound: TIB, FIB, or what came before; -inf where an action is not legal.
        rests_on: The beliefs of TIB; ``None`` without it.
        work: Products of the next step of FIB or TIB, while it is computed; 0 for bounds that are new.
        of_tib: Whether that step is one of TIB.
    """

    blind: Floats
    plans: Ints
    informed: Floats
    rests_on: OutcomeBeliefs | None = None
    work: int = 0
    of_tib: bool = False

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the bounds."""
        beliefs = 0 if self.rests_on is None else self.rests_on.n_bytes
        return int(self.blind.nbytes + self.informed.nbytes + beliefs)

    def at(self, weights: Floats, slack: Floats) -> tuple[float, float]:
        """Return the bounds at a belief ``[n]``, widened by rounding; the lower is -inf if no blind policy is legal."""
        index = np.flatnonzero(weights)
        below, above = self.blind[:, index] @ weights[index], self.informed[:, index] @ weights[index]
        largest = max(float(np.abs(t[np.isfinite(t)]).max(initial=0.0)) for t in (self.blind, self.informed))
        margin = 1e-14 * largest * float(slack.max()) * float(weights.sum())
        return float(below.max()) - margin, float(above.max()) + margin


def initial_bounds(model: SolverModel, stop: Stop = never, most_bytes: float = np.inf) -> Iterator[InitialBounds]:
    """Yield closer and closer bounds: from the reward range, the MDP and blind policies, FIB, and TIB at last.

    Before a long step of FIB or TIB, the last bounds are repeated, with the work, so that a caller can do other work
    meanwhile.
    A large model has bounds before its outcomes are laid out, and these remain if that is left.

    Args:
        model: The problem, whose `slack` is finite.
        stop: Whether to stop; what is yielded is a bound all the same.
        most_bytes: The memory that many outcomes, and TIB, may take.

    Raises:
        StoppedEarlyError: It was stopped while outcomes were laid out that are needed for any bound.
        PlanningError: The outcomes exceed the available memory; what was yielded are bounds.
    """
    early = None
    if model.is_large and model.has_early_steps:
        plans = early_plans(model)
        if sum(step.nnz for step in model.steps) > _PIECE:
            yield InitialBounds(blind_values(model, plans, _at_once), plans, mdp_bound(model, _at_once))
        early = InitialBounds(blind_values(model, plans, stop), plans, mdp_bound(model, stop))
        yield early
    try:
        model.lay_out(stop, most_bytes)
    except StoppedEarlyError:
        if early is None:
            raise
        return
    outcomes, plans = model.outcomes, blind_plans(model)
    if early is None or (plans != early.plans).any():
        blind = blind_values(model, plans, stop)
        if early is not None:
            blind, plans = np.concatenate([blind, early.blind]), _together(plans, early.plans)
        informed = mdp_bound(model, stop) if early is None else early.informed
        yield InitialBounds(blind, plans, informed)
    else:
        blind, informed = early.blind, early.informed
    work = outcomes.matrix.nnz * model.n_actions
    for informed in informed_steps(model, outcomes, informed, stop):  # noqa: B020 - from the last one on
        if work > _LONG_SWEEP:
            yield InitialBounds(blind, plans, informed)
            yield InitialBounds(blind, plans, informed, work=work)
    if not stop():
        yield InitialBounds(blind, plans, informed)
    if not stop():
        last = InitialBounds(blind, plans, informed)
        tighter = tighter_steps(model, outcomes, informed, stop, most_bytes)
        try:
            while True:
                yield replace(last, work=next(tighter), of_tib=True)
        except StopIteration as end:
            yield InitialBounds(blind, plans, *end.value)


def _at_once() -> bool:
    """Stop at the bounds of the least and the greatest reward."""
    return True


def _together(plans: Ints, others: Ints) -> Ints:
    """Return the plans ``[2 A, O]`` of two sets of blind policies."""
    return np.concatenate([plans, np.where(others < 0, -1, others + len(plans))])


# --- the fast informed bound -----------------------------------------------------------------------------------------


def informed_stage(
    model: SolverModel,
    outcomes: Outcomes,
    ahead: Floats | None,
    usable: Bools | None = None,
    otherwise: float = 0.0,
    stop: Stop = never,
) -> Floats:
    """Return ``[A, n]``, one backup of the fast informed bound; -inf where an action is not legal.

    ``Q(a, s) = R(s, a) + gamma sum_o max_k sum_s' p(s', o | s, a) v_k(s')``

    Args:
        model: The problem.
        outcomes: Its outcomes.
        ahead: ``[K, n]``, the vectors ``v_k``, of the actions with one action less to go; ``None`` for 0.
        usable: ``[G, K]``, which vectors are legal after each outcome; the legal actions by default.
        otherwise: The value of an outcome after which no vector is legal. The search raises an error there.
        stop: Whether to leave.

    Raises:
        StoppedEarlyError: It was left.
    """
    if ahead is not None and model.discount:
        usable = outcomes.usable if usable is None else usable
        return _backed(model, outcomes, best_usable(_values_after(outcomes, ahead, usable, stop), usable, otherwise))
    return np.where(model.legal, model.reward, -np.inf)


def _values_after(outcomes: Outcomes, vectors: Floats, usable: Bools, stop: Stop = never) -> Floats:
    """Return ``[G, K]``, the value of each vector after each outcome, -inf where it is not legal there."""
    columns = np.ascontiguousarray(np.where(np.isfinite(vectors), vectors, 0.0).T)
    values = _product(outcomes.matrix, columns, stop)
    if np.isposinf(vectors).any():
        values = np.where(outcomes.matrix @ np.isposinf(vectors).T.astype(np.float64) > 0, np.inf, values)
    return np.where(usable, values, -np.inf)


def _product(matrix: sparse.csr_array, columns: Floats, stop: Stop) -> Floats:
    """Return ``matrix @ columns``, in pieces after each of which it can be left."""
    product = np.empty((matrix.shape[0], columns.shape[1]))
    for rows, piece in _pieces(matrix, columns, stop):
        product[rows] = piece
    return product


def _pieces(matrix: sparse.csr_array, columns: Floats, stop: Stop) -> Iterator[tuple[slice, Floats]]:
    """Yield ``matrix @ columns`` in pieces of rows."""
    height = max(1, int(_PIECE * matrix.shape[0] / max(1, matrix.nnz * columns.shape[1])))
    for first in range(0, matrix.shape[0], height):
        look(stop)
        indptr = matrix.indptr[first : first + height + 1]
        span = slice(indptr[0], indptr[-1])
        shape = (len(indptr) - 1, matrix.shape[1])
        piece = sparse.csr_array((matrix.data[span], matrix.indices[span], indptr - indptr[0]), shape=shape)
        yield slice(first, first + shape[0]), np.asarray(piece @ columns)


def _best_after(
    outcomes: Outcomes, vectors: Floats, chosen: Ints | None, even: float, stop: Stop
) -> tuple[Floats, Ints]:
    """Return ``[G]``, the greatest value ``[A, n]`` of a legal action after each outcome, and the action.

    A tie, within ``even``, does not replace the actions ``[G]`` chosen before.
    """
    columns = np.ascontiguousarray(np.where(np.isfinite(vectors), vectors, 0.0).T)
    best, choice = np.empty(len(outcomes.row)), np.empty(len(outcomes.row), dtype=np.int64)
    all_usable = 0 in outcomes.usable.strides[:1]  # one entry for all
    for rows, piece in _pieces(outcomes.matrix, columns, stop):
        values = piece if all_usable else np.where(outcomes.usable[rows], piece, -np.inf)
        at, pick = np.arange(len(values)), values.argmax(axis=1)
        best[rows] = values[at, pick]
        if chosen is not None:
            pick = np.where(best[rows] > values[at, chosen[rows]] + even, pick, chosen[rows])
        choice[rows] = pick
    return np.where(best == -np.inf, 0.0, best), choice


def best_usable(values: Floats, usable: Bools | None, otherwise: float = 0.0) -> Floats:
    """Return the row maxima ``[M]`` over usable entries, or ``otherwise`` where none is.

    Args:
        values: ``[M, K]``.
        usable: ``[M, K]``; ``None`` if all are.
        otherwise: The value of a row without a usable entry.
    """
    best: Floats = np.full(len(values), -np.inf)
    for k in range(values.shape[1]):  # numpy's maximum along a short axis takes three times as long
        np.maximum(best, values[:, k], out=best, where=True if usable is None else usable[:, k])
    return np.where(best == -np.inf, otherwise, best)


def informed_bound(model: SolverModel, outcomes: Outcomes, stop: Stop = never, start: Floats | None = None) -> Floats:
    """Return ``[A, n]``, the infinite-horizon fast informed bound, at least its fixed point; see `informed_steps`.

    Args:
        model: The problem, whose `slack` is finite.
        outcomes: Its outcomes.
        stop: Whether to return the bound so far.
        start: ``[A, n]``, an upper bound that a backup does not raise; by default that of the MDP.
    """
    *_, last = informed_steps(model, outcomes, mdp_bound(model, stop) if start is None else start, stop)
    return last


def informed_steps(model: SolverModel, outcomes: Outcomes, upper: Floats, stop: Stop = never) -> Iterator[Floats]:
    """Yield ``[A, n]``, closer and closer fast informed bounds, the first one as given.

    Policy iteration takes a few linear systems, where value iteration takes ``log(eps) / log(gamma)`` sweeps. The
    residual of the equations is added. With very many outcomes, sweeps go down from the start, each a bound.

    Args:
        model: The problem, whose `slack` is finite.
        outcomes: Its outcomes.
        upper: ``[A, n]``, an upper bound that a backup does not raise.
        stop: Whether to end.
    """
    legal = model.legal
    many = outcomes.matrix.nnz > _LARGEST_SYSTEM
    q, chosen = upper, None
    yield upper
    with suppress(StoppedEarlyError):
        for _ in range(_SWEEPS_OF_FIB if many else POLICY_STEPS):
            scale = float(np.abs(q[legal]).max(initial=0.0))
            best, choice = _best_after(outcomes, q, chosen, even(q.size) * scale, stop)
            backed = _backed(model, outcomes, best)
            short = max(0.0, float((backed[legal] - q[legal]).max(initial=0.0)))
            upper = np.minimum(upper, q + (short + 1e-15 * scale) * model.slack)
            if many:
                fall = q[legal] - backed[legal]
                q = upper = lowered(upper, backed, fall, model) + 1e-15 * scale * model.slack
            yield upper
            if many:
                if float(np.ptp(fall)) * float(model.slack.max()) <= _CLOSE * scale:
                    break
                continue
            close = short * float(model.slack.max()) <= _SOLVED * scale
            if chosen is not None and (close or (choice == chosen).all()):
                break
            chosen = choice
            q = np.where(legal, _solution(model, outcomes, chosen, np.where(legal, q, 0.0), stop), -np.inf)


def _backed(model: SolverModel, outcomes: Outcomes, best: Floats) -> Floats:
    """Return ``[A, n]``, the backup of values ``[G]`` after the outcomes; -inf where an action is not legal."""
    ahead = np.bincount(outcomes.row, weights=best, minlength=model.reward.size).reshape(model.reward.shape)
    return np.where(model.legal, model.reward + model.discount * ahead, -np.inf)


def _solution(model: SolverModel, outcomes: Outcomes, chosen: Ints, near: Floats, stop: Stop) -> Floats:
    """Return ``[A, n]``, the values with the chosen action after each outcome."""
    size, matrix = model.reward.size, outcomes.matrix
    first = (chosen * model.size).astype(matrix.indices.dtype if size < 2**31 else np.int64)
    look(stop)
    column = np.repeat(first, np.diff(matrix.indptr))
    look(stop)
    column += matrix.indices
    look(stop)
    indptr = matrix.indptr[np.searchsorted(outcomes.row, np.arange(size + 1))]
    step = sparse.csr_array((matrix.data, column, indptr), shape=(size, size))
    values, _ = solved(step, model.reward.ravel(), model.discount, near.ravel(), stop)
    return values.reshape(model.reward.shape)


# --- the tighter informed bound --------------------------------------------------------------------------------------


def tighter_informed_bound(
    model: SolverModel, outcomes: Outcomes, informed: Floats, stop: Stop = never, most_bytes: float = np.inf
) -> tuple[Floats, OutcomeBeliefs | None]:
    """Return ``[A, n]``, the bound at known states, and the bounds at the beliefs after outcomes.

    Args:
        model: The problem, whose `slack` is finite.
        outcomes: Its outcomes.
        informed: ``[A, n]``, FIB. It is returned, with ``None``, if a sweep would take long or much memory, or was
            left. The same holds if probabilities are almost 0.
        stop: Whether to stop.
        most_bytes: The memory that may be taken.
    """
    steps = tighter_steps(model, outcomes, informed, stop, most_bytes)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        table, rests_on = end.value
        return table, rests_on


def tighter_steps(
    model: SolverModel, outcomes: Outcomes, informed: Floats, stop: Stop = never, most_bytes: float = np.inf
) -> Generator[int, None, tuple[Floats, OutcomeBeliefs | None]]:
    """Yield the number of products before each step towards `tighter_informed_bound`, and return the bound.

    Each sweep over the beliefs lowers the bound, so that the iteration can stop at any time.
    """
    try:
        belief, mass, row = _beliefs(outcomes, stop)
        degree = np.bincount(outcomes.row % model.size, minlength=model.size)
        n_terms = int(degree[belief.indices].sum())
        if not len(row) or n_terms > min(_MOST_TERMS, most_bytes / _TERM_BYTES) or belief.data.min() < _LEAST_WEIGHT:
            return informed, None
        legal = np.asarray(belief @ (~model.legal).T.astype(np.float64)) == 0
        immediate = np.asarray(belief @ np.where(model.legal, model.reward, 0.0).T)
        value = np.where(legal, np.asarray(belief @ np.where(model.legal, informed, 0.0).T), 0.0)
        scale = float(np.abs(value).max(initial=0.0))
        parts = []
        for a in range(model.n_actions):
            yield _PRODUCTS_PER_TERM * n_terms // model.n_actions
            parts.append(_step(model, outcomes, belief, mass, row, a, stop))
        step = sparse.csr_array(sparse.vstack([part[0] for part in parts]))
        owner, usable = np.concatenate([part[1] for part in parts]), None
        if not model.legal.all():
            usable = np.concatenate([part[2] for part in parts])
        del parts
    except StoppedEarlyError:
        return informed, None

    def backup(value: Floats) -> Floats:
        ahead = np.empty(step.shape[0])
        for rows, piece in _pieces(step, value, stop):
            ahead[rows] = best_usable(piece, None if usable is None else usable[rows])
        total = np.bincount(owner, weights=ahead, minlength=immediate.size).reshape(immediate.shape)
        return np.where(legal, immediate + model.discount * total, 0.0)

    short = 0.0
    try:
        for _ in range(min(_SWEEPS, _MOST_WORK // max(1, step.nnz * model.n_actions))):
            yield step.nnz * model.n_actions
            backed = backup(value)
            short = max(0.0, float((backed - value).max()))
            before, value = value, np.minimum(value, backed)
            if float((before - value).max()) <= _SETTLED * scale:
                break
        short = max(0.0, float((backup(value) - value).max()))
    except StoppedEarlyError:  # a sweep raises no value but by rounding, as the one before
        pass
    value += (short + 1e-15 * scale) * np.asarray(belief @ model.slack)[:, None]
    best = mass * best_usable(value, None if model.legal.all() else legal)[row]
    return _backed(model, outcomes, best), OutcomeBeliefs(belief, np.where(legal, value, -np.inf), row, outcomes)


def _beliefs(outcomes: Outcomes, stop: Stop) -> tuple[sparse.csr_array, Floats, Ints]:
    """Return the beliefs after the outcomes, the probability of each outcome, and its belief."""
    matrix = outcomes.matrix
    if not matrix.shape[0]:
        return matrix, np.zeros(0), np.zeros(0, dtype=np.int64)
    lengths = np.diff(matrix.indptr)
    mass = np.add.reduceat(matrix.data, matrix.indptr[:-1])
    look(stop)
    weight = matrix.data / np.repeat(mass, lengths)
    bits = rounded_bits(weight)
    look(stop)
    keys = np.add.reduceat(mixed(bits, matrix.indices), matrix.indptr[:-1])
    look(stop)
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    row = row.ravel()
    look(stop)
    same = lengths[first[row]] == lengths
    at = np.repeat(matrix.indptr[first[row]] - matrix.indptr[:-1], np.where(same, lengths, 0))
    at += np.flatnonzero(np.repeat(same, lengths))
    entries = np.repeat(same, lengths)
    differ = (bits[entries] != bits[at]) | (matrix.indices[entries] != matrix.indices[at])
    same[np.repeat(np.arange(len(same)), np.where(same, lengths, 0))[differ]] = False
    alone = np.flatnonzero(~same)  # two beliefs of one key: the probability is 2^-64
    row[alone] = len(first) + np.arange(len(alone))
    first = np.append(first, alone)
    look(stop)
    scaled = sparse.csr_array((weight, matrix.indices, matrix.indptr), shape=matrix.shape)
    return sparse.csr_array(scaled[first]), mass, row


def _step(
    model: SolverModel, outcomes: Outcomes, belief: sparse.csr_array, mass: Floats, row: Ints, a: int, stop: Stop
) -> tuple[sparse.csr_array, Ints, Bools | None]:
    """Return ``[M, B]``, ``beta(s) Pr(o | s, a)`` at ``beta(s, a, o)`` for each belief and observation after an action.

    Returns:
        The matrix; ``[M]``, the belief and action of each row; ``[M, A]``, the actions that are legal after it, or
        ``None`` for all.
    """
    here = slice(*np.searchsorted(outcomes.row, [a * model.size, (a + 1) * model.size]))
    state, observation, then = outcomes.row[here] % model.size, outcomes.observation[here], row[here]
    spread = sparse.csr_array((mass[here], (state, np.arange(len(then)))), shape=(model.size, len(then)))
    n_terms = np.append(0, np.cumsum(np.diff(spread.indptr)[belief.indices]))[belief.indptr]
    parts, owners, usable = [], [], []
    first = 0
    while first < belief.shape[0]:
        look(stop)
        last = max(first + 1, int(np.searchsorted(n_terms, n_terms[first] + _TERMS_AT_ONCE)))
        terms = sparse.coo_array(belief[first:last] @ spread)
        key = terms.coords[0].astype(np.int64) * model.n_observations + observation[terms.coords[1]]
        present, place = np.unique(key, return_inverse=True)
        place = place.ravel()
        shape = (len(present), belief.shape[0])
        parts.append(sparse.csr_array((terms.data, (place, then[terms.coords[1]])), shape=shape))
        owners.append((present // model.n_observations + first) * model.n_actions + a)
        if not model.legal.all():
            barred = (~outcomes.usable[here])[terms.coords[1]].astype(np.float64)
            shape = (len(present), len(place))
            members = sparse.csr_array((np.ones(len(place)), (place, np.arange(len(place)))), shape=shape)
            usable.append(np.asarray(members @ barred) == 0)
        first = last
    return sparse.csr_array(sparse.vstack(parts)), np.concatenate(owners), np.concatenate(usable) if usable else None
