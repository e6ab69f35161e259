"""Alpha vectors: maxima of linear functions of the belief, which of them are best at some belief, and where."""

from collections.abc import Generator, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.tabular import TabularPOMDP

_POINTS = 1_000  # the most beliefs kept at which some vector was best
_ENTRIES = 10_000_000  # of the table of vectors' values at such beliefs (80 MB)
_COMPARED = 500_000  # entries, when all vectors are compared with all
_NEAR = 5  # times the states: the vectors with which a candidate is compared first
_LP_ENTRIES = 50_000  # coefficients of linear programs that are solved together
_MOST_PIVOTS = 50  # per state, of a simplex; degenerate games may cycle
_PIVOT = 1e-10
_DUALITY_GAP = 1e-10  # relative to the scale of the vectors

_Search = Generator[Floats, Floats, tuple[Ints, Floats]]
"""A search for useful vectors: it asks games ``[n, S, K]``, and is sent the beliefs ``[n, S]`` that solve them."""


@dataclass(frozen=True, eq=False)
class LeafVectors:
    """``L(b) <= max_k sum_s b(s) F[k, s]`` over the ``k`` that are legal under the belief.

    Attributes:
        vectors: ``[K, S]``, 0 at terminal states.
        legal: ``[K, S]``, bool: the vector may be used where the state is possible.
        legal_after: ``[O + 1, K]``, bool, where legality is by the last observation; else ``None``.
        exact: Whether ``L(b)`` equals the maximum (a callable declared convex is only at most it).
        name: The name in messages.
        below_optimum: Whether it is known to be at most the infinite-horizon optimal value.
    """

    vectors: Floats = field(repr=False)
    legal: Bools = field(repr=False)
    legal_after: Bools | None = field(default=None, repr=False)
    exact: bool = True
    name: str = "the leaf values"
    below_optimum: bool = False

    @classmethod
    def of(
        cls,
        table: Floats,
        legal_after: Bools | None = None,
        name: str = "the leaf values",
        *,
        below_optimum: bool = False,
    ) -> "LeafVectors":
        """Return the leaf values of vectors ``[K, S]`` that are -inf where they may not be used.

        Example:
            >>> LeafVectors.of(np.array([[1.0, -np.inf]])).legal
            array([[ True, False]])
        """
        legal = np.isfinite(table)
        return cls(np.where(legal, table, 0.0), legal, legal_after, name=name, below_optimum=below_optimum)

    def value(self, compiled: TabularPOMDP, belief: Belief, observation: Hashable = None) -> float:
        """Return ``L(b)`` after an observation.

        Raises:
            ParameterError: The vectors are for another number of states.
            PlanningError: None of them may be used.
        """
        self.check(compiled)
        weights = compiled.vector(belief)
        support = np.flatnonzero(weights)
        usable = self.legal[:, support].all(axis=1)
        if self.legal_after is not None:
            usable &= self.legal_after[-1 if observation is None else compiled.observation_index[observation]]
        if not usable.any():
            raise illegal_at_leaf(self.name, compiled.states[int(support[0])])
        return float((self.vectors[np.ix_(usable, support)] @ weights[support]).max())

    def check(self, compiled: TabularPOMDP) -> None:
        """Raise for the vectors of another problem."""
        if self.vectors.shape[1] != compiled.n_states:
            raise ParameterError(
                f"leaf_value: got {self.name} of {self.vectors.shape[1]} states; expected {compiled.n_states}. Take "
                "the solution of this problem."
            )


def illegal_at_leaf(name: str, state: Any) -> PlanningError:
    """Return the error of a leaf belief under which no vector of the leaf values is legal."""
    return PlanningError(
        f"leaf_value: got {name}, which is not legal at a leaf belief (its first state: {brief(state)}); expected "
        "legal actions at every leaf. Pass 'zero', 'immediate', or a callable."
    )


def envelope(ends: Floats) -> list[tuple[float, float, int]]:
    """Return the pieces ``(start, end, k)`` of the upper envelope of lines over [0, 1].

    A border is where the two values tie, computed from the vectors. Of equal lines the first has the piece.

    Args:
        ends: ``[K, 2]``, the values of each line at 0 and at 1; -inf for a line to leave out.

    Example:
        >>> envelope(np.array([[1.0, 0.0], [0.0, 3.0]]))
        [(0.0, 0.25, 0), (0.25, 1.0, 1)]
    """
    usable = np.flatnonzero(np.isfinite(ends).all(axis=1))
    if not len(usable):
        return []
    left, slope = ends[usable, 0], ends[usable, 1] - ends[usable, 0]
    now, start = int(np.lexsort((-slope, -left))[0]), 0.0
    pieces: list[tuple[float, float, int]] = []
    while True:
        steeper = np.flatnonzero(slope > slope[now])
        ties = np.maximum((left[now] - left[steeper]) / (slope[steeper] - slope[now]), start)
        end = float(ties.min(initial=1.0))
        if end > start or (end == 1.0 and not pieces):
            pieces.append((start, end, int(usable[now])))
        if end >= 1.0:
            return pieces
        first = steeper[ties == end]
        now, start = int(first[np.argmax(slope[first])]), end


def best_regions(corners: Floats) -> list[tuple[int, Floats]]:
    """Return the polygon in which each vector is best over a triangle of beliefs, for vectors that are best somewhere.

    A polygon is the triangle cut by the lines on which the vector ties with another. Of equal vectors the first counts.

    Args:
        corners: ``[K, 3]``, the value of each vector at the three corners; -inf for one to leave out.

    Returns:
        Pairs of a vector's position and ``[m, 3]``, the weights of the corners at the polygon's vertices.

    Example:
        >>> (_, whole), (_, upper) = best_regions(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 2.0]]))
        >>> upper.tolist()
        [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    """
    usable = np.flatnonzero(np.isfinite(corners).all(axis=1))
    if not len(usable):
        return []
    _, first = np.unique(corners[usable], axis=0, return_index=True)
    usable = usable[np.sort(first)]
    values = corners[usable]
    least = 1e-12 * (float(np.abs(values).max()) or 1.0)
    found = []
    for k, row in enumerate(values):
        polygon = np.eye(3)
        while len(polygon) >= 3:
            behind = polygon @ (row - values).T
            worst = int(behind.min(axis=0).argmin())
            if behind[:, worst].min() >= -least:
                break
            polygon = _cut(polygon, polygon @ (row - values[worst]))
        if len(polygon) >= 3:
            found.append((int(usable[k]), polygon))
    return found


def _cut(polygon: Floats, height: Floats) -> Floats:
    """Return the part of a convex polygon where a linear function, given at its vertices, is not negative."""
    kept: list[Floats] = []
    for i, point in enumerate(polygon):
        before, h, g = polygon[i - 1], float(height[i]), float(height[i - 1])
        if (h > 0 > g) or (h < 0 < g):
            kept.append(before + (point - before) * (g / (g - h)))
        if h >= 0:
            kept.append(point)
    return np.array(kept).reshape(-1, 3)


class Points:
    """Beliefs at which vectors were best: the uniform belief, the corner beliefs, and the latest ones found."""

    def __init__(self, size: int) -> None:
        self._rows: Floats = np.concatenate([np.full((1, size), 1 / size), np.eye(size)])
        self._known = {row.tobytes() for row in self._rows}

    def over(self, columns: Ints, n_vectors: int) -> Floats:
        """Return ``[m, len(columns)]``, beliefs over these states, fewer for more vectors."""
        if len(columns) == self._rows.shape[1]:  # these are normalised
            return self._rows[: max(1, _ENTRIES // n_vectors)]
        rows = self._rows[:, columns]
        rows = rows[rows.sum(axis=1) > 0][: max(1, _ENTRIES // n_vectors)]
        normalized: Floats = rows / rows.sum(axis=1, keepdims=True)
        return normalized

    def add(self, columns: Ints, beliefs: Floats) -> None:
        """Add beliefs ``[m, len(columns)]`` over these states."""
        whole = np.zeros((len(beliefs), self._rows.shape[1]))
        whole[:, columns] = beliefs
        fresh = {name: row for row in whole if (name := row.tobytes()) not in self._known}
        self._known.update(fresh)
        rows = np.concatenate([self._rows, *(row[None] for row in fresh.values())])
        first = self._rows.shape[1] + 1  # those before stay
        self._known.difference_update(row.tobytes() for row in rows[first:-_POINTS])
        self._rows = np.concatenate([rows[:first], rows[first:][-_POINTS:]])


def prune(vectors: Floats, tolerance: float, points: Points, labels: Bools | None = None) -> Ints:
    """Return the positions of the vectors that are best at some belief; across legalities compared pointwise."""
    return prune_together([vectors], tolerance, points, labels)[0]


def prune_together(sets: list[Floats], tolerance: float, points: Points, labels: Bools | None = None) -> list[Ints]:
    """Return what `prune` returns for each of some sets; their linear programs are solved together."""
    searches: list[_Search] = []
    whose: list[tuple[int, Ints, Ints]] = []
    useful: list[list[int]] = [[] for _ in sets]
    for n, vectors in enumerate(sets):
        finite = np.isfinite(vectors)
        kept = _not_dominated(vectors, labels)
        if labels is None and finite.all():
            groups = [kept]
        else:
            patterns = finite[kept] if labels is None else np.concatenate([finite[kept], labels[kept]], axis=1)
            group = np.unique(patterns, axis=0, return_inverse=True)[1].ravel()
            groups = [kept[group == g] for g in range(int(group.max()) + 1)]
        for members in groups:
            columns = np.flatnonzero(finite[members[0]])
            if len(members) == 1 and len(columns):
                useful[n].append(int(members[0]))
            elif len(columns):  # a plan that is legal nowhere is dropped
                own = vectors[members] if len(columns) == vectors.shape[1] else vectors[np.ix_(members, columns)]
                searches.append(_useful(own, tolerance, points.over(columns, len(members))))
                whose.append((n, members, columns))
    for (n, members, columns), (best, beliefs) in zip(whose, _answered(searches), strict=True):
        useful[n].extend(members[best].tolist())
        points.add(columns, beliefs)
    return [np.array(sorted(kept), dtype=np.int64) for kept in useful]


def _answered(searches: list[Any]) -> list[Any]:
    """Return the results of searches for useful vectors, whose games are solved together."""
    results: list[Any] = [None] * len(searches)
    answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
    while answers:
        asked: dict[int, Floats] = {}
        for n, answer in answers.items():
            try:
                asked[n] = searches[n].send(answer)
            except StopIteration as end:
                results[n] = end.value
        answers = {}
        for batch, shape in _batches(asked):
            gaps, first = np.empty(shape), 0
            for n in batch:
                rows, _, count = asked[n].shape
                gaps[first : first + rows, :, :count] = asked[n]
                gaps[first : first + rows, :, count:] = asked[n][:, :, -1:]  # the last rival again changes nothing
                first += rows
            beliefs, first = _solved_games(gaps), 0
            for n in batch:
                answers[n] = beliefs[first : first + len(asked[n])]
                first += len(asked[n])
    return results


def _batches(asked: dict[int, Floats]) -> list[tuple[list[int], tuple[int, int, int]]]:
    """Return groups of games ``[n, S, K]`` over equally many states, each with the shape of all its games together."""
    batches: list[tuple[list[int], tuple[int, int, int]]] = []
    for n, gaps in asked.items():
        for b, (batch, (rows, size, count)) in enumerate(batches):
            joined = (rows + len(gaps), size, max(count, gaps.shape[2]))
            if size == gaps.shape[1] and joined[0] * size * joined[2] <= _LP_ENTRIES:
                batches[b] = ([*batch, n], joined)
                break
        else:
            batches.append(([n], gaps.shape))
    return batches


def _not_dominated(vectors: Floats, labels: Bools | None) -> Ints:
    """Return the vectors that no other one (of at least their legality) equals or exceeds in every state.

    Of equal vectors, the first is returned.
    """
    rows = vectors if labels is None else np.concatenate([vectors, labels], axis=1)
    by_column = np.ascontiguousarray(rows.T)  # few columns and many vectors: compared column by column
    if len(rows) * rows.size <= _COMPARED:
        below: Bools = np.all(by_column[:, None, :] <= by_column[:, :, None], axis=0)
        below.reshape(-1)[:: len(rows) + 1] = False  # itself
        mutual = below & below.T
        if mutual.any():
            below[np.tril(mutual)] = False  # an equal one before it
        return np.flatnonzero(~below.any(axis=0))
    alive = np.ones(len(rows), dtype=bool)
    for i in np.argsort(-rows.sum(axis=1), kind="stable"):  # those that exceed many come first
        if alive[i]:
            alive &= ~(by_column <= by_column[:, i, None]).all(axis=0)
            alive[i] = True
    return np.flatnonzero(alive)


def _useful(vectors: Floats, tolerance: float, points: Floats) -> _Search:
    """Return the positions of the vectors that are best at some belief, and these beliefs ``[m, S]``.

    Lark's filter: a vector is useless if it beats the vectors known to be best at no belief. Otherwise the best vector
    at such a belief is known as well. Beliefs at which vectors of other sets were best come first. Few linear programs
    are left, and many of these are solved at once.
    """
    scale = float(np.abs(vectors).max()) or 1.0
    kept, witnesses = _best_at(vectors, points, tolerance * scale)
    left = np.ones(len(vectors), dtype=bool)
    left[kept] = False
    waiting = np.flatnonzero(left)
    while len(waiting):
        asked, beliefs, margins = yield from _asked(
            vectors, waiting, np.array(kept), np.array(witnesses), scale, tolerance
        )
        left[asked[margins <= tolerance]] = False
        waiting = np.flatnonzero(left)
        hopeful = beliefs[margins > tolerance]
        scores, ahead = hopeful @ vectors[waiting].T, (vectors[kept] @ hopeful.T).max(axis=0)
        for n, belief in enumerate(hopeful):
            best = int(scores[n].argmax())
            top = scores[n, best]
            if n and top - ahead[n] <= tolerance * scale:
                continue  # a vector added in the meantime is best here
            tied = scores[n] >= top - 1e-14 * scale
            if np.count_nonzero(tied) > 1:  # the lexicographically greatest is best nearby
                best = max(np.flatnonzero(tied).tolist(), key=lambda i: tuple(vectors[waiting[i]]))
            kept.append(int(waiting[best]))
            witnesses.append(belief)
            scores[:, best] = -np.inf
            ahead = np.maximum(ahead, hopeful @ vectors[waiting[best]])
        left[kept] = False
        waiting = np.flatnonzero(left)
    return np.array(sorted(kept), dtype=np.int64), np.array(witnesses)


def _asked(
    vectors: Floats, waiting: Ints, kept: Ints, witnesses: Floats, scale: float, tolerance: float
) -> Generator[Floats, Floats, tuple[Ints, Floats, Floats]]:
    """Return some of the waiting vectors, with beliefs and margins over the kept vectors.

    Each is compared with a few close rivals first. No margin over them is proof. A margin is proof if it is one over
    all kept vectors at the belief found. Otherwise the best vector there becomes a rival.
    """
    size, near = vectors.shape[1], min(len(kept), _NEAR * vectors.shape[1])
    asked = waiting[: max(1, _LP_ENTRIES // (near * size))]
    if near == len(kept):
        beliefs = yield (gaps := (vectors[asked, :, None] - vectors[kept].T) / scale)  # [n, S, K]
        return asked, beliefs, np.einsum("nsk,ns->nk", gaps, beliefs).min(axis=1)
    behind = np.einsum("ks,ks->k", vectors[kept], witnesses) - vectors[asked] @ witnesses.T
    rivals = np.argpartition(behind, near - 1, axis=1)[:, :near]
    beliefs, margins = np.empty((len(asked), size)), np.empty(len(asked))
    open_ = np.arange(len(asked))
    while True:
        own = vectors[asked[open_]]
        found = yield (gaps := (own[:, :, None] - vectors[kept[rivals]].transpose(0, 2, 1)) / scale)
        apparent = np.einsum("nsk,ns->nk", gaps, found).min(axis=1)
        scores = found @ vectors[kept].T
        best = scores.argmax(axis=1)
        true = (np.einsum("ns,ns->n", own, found) - scores.max(axis=1)) / scale
        beliefs[open_], margins[open_] = found, np.minimum(apparent, true)
        beyond = (apparent > tolerance) & (true <= tolerance) & (rivals != best[:, None]).all(axis=1)
        if not beyond.any():
            break
        open_, rivals = open_[beyond], np.column_stack([rivals, best])[beyond]
    return asked, beliefs, margins


def _best_at(vectors: Floats, points: Floats, least: float) -> tuple[list[int], list[Floats]]:
    """Return the vectors that beat all others by more than ``least`` at a point, and their first such points.

    If none does, it is the lexicographically greatest of the best vectors at the first point.
    """
    scores = points @ vectors.T
    best = scores.argmax(axis=1)
    if len(vectors) > 1:
        others, at = scores.copy(), np.arange(len(points))
        others[at, best] = -np.inf
        clear = np.flatnonzero(scores[at, best] - others.max(axis=1) > least)[::-1]
        found = dict(zip(best[clear].tolist(), clear.tolist(), strict=True))
        if found:
            return list(found), list(points[list(found.values())])
    tied = np.flatnonzero(scores[0] >= scores[0].max() - least)
    return [max(tied.tolist(), key=lambda i: tuple(vectors[i]))], [points[0]]


def _solved_games(gaps: Floats) -> Floats:
    """Return the beliefs ``[n, S]`` that solve the games ``max_b min_k sum_s b(s) gaps[s, k]`` of ``[n, S, K]``.

    Games whose solution the dense simplex does not prove are solved again by HiGHS.
    """
    beliefs, beyond = _game_beliefs(gaps)
    rest = np.flatnonzero(beyond > _DUALITY_GAP)
    if len(rest):
        beliefs[rest] = _linear_programs(gaps[rest])
    return beliefs


def _game_beliefs(gaps: Floats) -> tuple[Floats, Floats]:
    """Return the beliefs ``[n, S]`` that solve the games ``max_b min_k sum_s b(s) gaps[s, k]``, and the duality gaps.

    With all entries moved above 0, such a game is the dual of ``max sum y``, ``gaps y <= 1``, ``y >= 0``. The simplex
    tableaus of all games start from the slacks, and are pivoted together. The mixture ``y / sum y`` of the rivals
    proves that no belief has a greater margin than its greatest value over the states.

    Args:
        gaps: ``[n, S, K]``.

    Example:
        >>> beliefs, beyond = _game_beliefs(np.array([[[1.0, -1.0], [-1.0, 3.0]]]))
        >>> beliefs.round(9).tolist(), float(beyond[0]) < 1e-12
        ([[0.666666667, 0.333333333]], True)
    """
    n, size, count = gaps.shape
    states = np.arange(size)
    tableau = np.zeros((n, size + 1, count + size + 1))
    np.add(gaps, (1.0 - gaps.reshape(n, -1).min(axis=1))[:, None, None], out=tableau[:, :size, :count])
    tableau[:, states, count + states] = 1.0
    tableau[:, :size, -1] = 1.0
    tableau[:, size, :count] = -1.0
    basis = np.empty((n, size), dtype=np.int64)
    basis[:] = states + count
    mixtures, beliefs, open_ = np.zeros((n, count + size)), np.ones((n, size)), np.arange(n)
    mixtures[:, 0] = 1.0
    entering = tableau[:, :size, :count].max(axis=1).argmin(axis=1)
    at = np.arange(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_MOST_PIVOTS * size):
            column = tableau[at, :, entering]
            above = column[:, :size]
            ratio = tableau[:, :size, -1] / above
            ratio[above <= _PIVOT] = np.inf
            leaving = ratio.argmin(axis=1)
            row = tableau[at, leaving]
            row /= column[at, leaving][:, None]
            column[at, leaving] = 0.0
            tableau -= column[:, :, None] * row[:, None, :]
            tableau[at, leaving] = row
            basis[at, leaving] = entering
            costs = tableau[:, size, :-1]
            entering = costs.argmin(axis=1)
            done = costs[at, entering] >= -_PIVOT
            solved = np.count_nonzero(done)
            if 2 * solved >= len(at):
                which = open_[done]
                mixtures[which, 0] = 0.0
                mixtures[which[:, None], basis[done]] = tableau[done, :size, -1]
                beliefs[which] = tableau[done, size, count:-1]
                if solved == len(at):
                    break
                on = ~done
                open_, tableau, basis, entering = open_[on], tableau[on], basis[on], entering[on]
                at = at[: len(open_)]
            elif solved:
                entering = np.where(done, basis[:, 0], entering)
    np.maximum(beliefs, 0.0, out=beliefs)
    beliefs /= beliefs.sum(axis=1)[:, None]
    mixtures = np.maximum(mixtures[:, :count], 0.0)
    mixtures /= mixtures.sum(axis=1)[:, None]
    above = np.einsum("nsk,nk->ns", gaps, mixtures).max(axis=1)
    return beliefs, above - np.einsum("nsk,ns->nk", gaps, beliefs).min(axis=1)


def _linear_programs(gaps: Floats) -> Floats:
    """Return the beliefs ``[n, S]`` that solve games ``[n, S, K]``, as blocks of one linear program.

    By duality the greatest margin is the least ``u`` for which a mixture of the rivals is above the candidate less
    ``u`` in every state: ``sum_k l_k gaps[s, k] <= u``, ``sum_k l_k = 1``, ``l >= 0``. The belief is the dual variables
    of the states. States are fewer than vectors, so that this form has fewer rows.

    Raises:
        PlanningError: HiGHS found no solution.
    """
    from scipy.optimize import linprog

    n, size, count = gaps.shape
    rows = np.concatenate([gaps, np.full((n, size, 1), -1.0)], axis=2)
    mixture = np.append(np.ones(count), 0.0)
    result = linprog(
        np.tile(1.0 - mixture, n),
        A_ub=sparse.csr_array(sparse.bsr_array((rows, np.arange(n), np.arange(n + 1)))),
        b_ub=np.zeros(n * size),
        A_eq=sparse.csr_array(sparse.kron(sparse.eye_array(n), mixture[None, :])),
        b_eq=np.ones(n),
        bounds=np.tile([[0.0, np.inf]] * count + [[-np.inf, np.inf]], (n, 1)),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise PlanningError(
            f"value_iteration: got a linear program of {count} vectors, which failed ({result.message}). Bound the "
            "value with solve(problem, horizon=n)."
        )
    beliefs = np.clip(-result.ineqlin.marginals.reshape(n, size), 0.0, None)
    normalized: Floats = beliefs / beliefs.sum(axis=1, keepdims=True)
    return normalized
