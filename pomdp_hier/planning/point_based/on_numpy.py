"""The inner loops of the search in numpy, the same functions as in :mod:`~pomdp_hier.planning.point_based.on_numba`.

A belief is a row of a CSR pool: the ascending positions ``index`` of its states and their weights, which sum to 1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._arguments import Floats, Ints

KEPT_BITS = 40  # of the 52 of a float's fraction: weights that differ by less than 1e-12 of their size count as equal
WIDER = 4  # times the terms after an action: sums over all outcomes up to this width take less time than a sort
_ROUND = np.uint64(1 << (51 - KEPT_BITS))
_MASK = np.uint64(~((1 << (52 - KEPT_BITS)) - 1) & (2**64 - 1))
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFT = np.uint64(31)


def expand(
    model: tuple[Ints, Ints, Floats, int], action: int, index: Ints, weight: Floats, corner: Floats, drop: float
) -> tuple[Ints, Ints, Ints, Floats, Floats, NDArray[np.uint64], float]:
    """Return the beliefs after an action: ``tau(s') = sum_s b(s) p(s', o | s, a)``, normalised.

    Entries below ``drop`` times the sum of their belief are dropped, and an upper bound of their value is summed.

    Args:
        model: ``indptr``, ``column``, ``probability`` and the number of states of a `SolverModel`.
        action: The position of the action.
        index: The positions of the belief's states.
        weight: Their weights.
        corner: ``[n]``, an upper bound of the value at each state, for dropped entries.
        drop: The least share of an entry that is kept.

    Returns:
        The observations ``[C]``, the offsets ``[C + 1]`` of their entries, and the positions and weights of the
        entries. Then the probability of each belief, its key (equal for weights that agree to 1e-12), and the dropped
        value.
    """
    indptr, column, probability, size = model
    rows = action * size + index
    counts = indptr[rows + 1] - indptr[rows]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    at = np.repeat(indptr[rows] - ends + counts, counts) + np.arange(total)
    terms = np.repeat(weight, counts) * probability[at]
    last = indptr[rows + 1][counts > 0] - 1
    if column[last].max(initial=-1) < WIDER * total:  # sums in place of a sort
        mass: Floats = np.bincount(column[at], weights=terms).astype(np.float64)
        columns = np.flatnonzero(mass)
        mass = mass[columns]
    else:
        if not terms.all():  # a product of small probabilities may round to 0
            at, terms = at[terms > 0], terms[terms > 0]
        columns, place = np.unique(column[at], return_inverse=True)
        mass = np.bincount(place.ravel(), weights=terms, minlength=len(columns)).astype(np.float64)
    observation, state = np.divmod(columns, size)
    seen, owner = np.unique(observation, return_inverse=True)
    owner = owner.ravel()
    whole = np.bincount(owner, weights=mass, minlength=len(seen))
    kept = mass >= drop * whole[owner]
    lost = float(np.sum(mass[~kept] * corner[state[~kept]]))
    mass, state, owner = mass[kept], state[kept], owner[kept]
    share: Floats = np.bincount(owner, weights=mass, minlength=len(seen)).astype(np.float64)
    offsets = np.zeros(len(seen) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=len(seen)), out=offsets[1:])
    mass = mass / share[owner]
    return seen, offsets, state, mass, share, belief_keys(state, mass, offsets), lost


def belief_keys(index: Ints, weight: Floats, offsets: Ints) -> NDArray[np.uint64]:
    """Return a hash of each belief, equal for weights that agree to 1e-12 of their size.

    Args:
        index: The positions of the entries.
        weight: Their weights.
        offsets: ``[C + 1]``, the start of each belief's entries.
    """
    if len(offsets) == 1:
        return np.zeros(0, dtype=np.uint64)
    keys: NDArray[np.uint64] = np.add.reduceat(mixed(rounded_bits(weight), index), offsets[:-1])
    return keys


def mixed(bits: NDArray[np.uint64], state: Ints) -> NDArray[np.uint64]:
    """Return a hash of each entry of a belief, by its rounded bits and its state.

    Example:
        >>> hashes = mixed(rounded_bits(np.array([0.5, 0.5])), np.array([0, 1]))
        >>> bool(hashes[0] == hashes[1])
        False
    """
    hashes: NDArray[np.uint64] = bits ^ (state.astype(np.uint64) * _MIX[0])  # of arrays, so that overflow is silent
    for factor in _MIX[1:]:
        hashes = (hashes ^ (hashes >> _SHIFT)) * factor
    return hashes


def rounded_bits(weight: Floats) -> NDArray[np.uint64]:
    """Return the bits of weights, equal for weights that agree to 1e-12 of their size.

    Example:
        >>> bits = rounded_bits(np.array([0.1, 0.1 + 1e-15, 0.1 + 1e-9]))
        >>> (bits == bits[0]).tolist()
        [True, True, False]
    """
    with np.errstate(over="ignore"):
        bits: NDArray[np.uint64] = (weight.view(np.uint64) + _ROUND) & _MASK
    return bits


def expectations(index: Ints, weight: Floats, vectors: Floats) -> Floats:
    """Return ``[A]``, ``sum_s b(s) v[a, s]`` for vectors ``[A, n]``."""
    values: Floats = vectors[:, index] @ weight
    return values


def greatest(first: int, last: int, pool: tuple[Any, ...], upper: Floats, vectors: Floats) -> None:
    """Write the greatest expectation of the vectors ``[A, n]`` for each belief from ``first`` to ``last``.

    Args:
        first: The first belief, as a row of the pool.
        last: The row after the last belief.
        pool: Its ``indptr``, ``index`` and ``weight``.
        upper: The output, one entry per belief of the pool.
        vectors: The vectors.
    """
    indptr, index, weight = pool
    span = slice(indptr[first], indptr[last])
    best: Floats = np.full(last - first, -np.inf)
    for vector in vectors:  # one at a time: all of them need much memory
        values = np.add.reduceat(vector[index[span]] * weight[span], indptr[first:last] - indptr[first])
        np.maximum(best, values, out=best)
    upper[first:last] = best


@np.errstate(over="ignore")  # ratios of tiny weights; the least ratio is at most 1
def improve_upper(
    nodes: Ints, pool: tuple[Any, ...], bounds: tuple[Any, ...], points: tuple[Any, ...], corner: Floats, least: float
) -> None:
    """Lower the upper values of beliefs by sawtooth interpolation from new points.

    ``U(b) <= corner . b + c (v_j - corner . b_j)`` for every point ``(b_j, v_j)`` and ``c = min_s b(s) / b_j(s)``.

    Args:
        nodes: The beliefs, as rows of the pool.
        pool: Its ``indptr``, ``index`` and ``weight``.
        bounds: For each belief: the upper value, the belief of its point (-1: the corners), the last point compared.
        points: ``indptr``, ``index`` and ``weight`` of the points, their gaps ``v_j - corner . b_j``, their beliefs,
            their ascending numbers, and their count.
        corner: ``[n]``, the values at the states.
        least: The least decrease that is taken.
    """
    indptr, index, weight = pool
    upper, source, seen = bounds
    p_indptr, p_index, p_weight, gap, belief, number, count = points
    dense = np.zeros(len(corner))
    for node in nodes:
        start = int(np.searchsorted(number[:count], seen[node], side="right"))
        span = slice(indptr[node], indptr[node + 1])
        base = float(corner[index[span]] @ weight[span])
        if base < upper[node] - least:
            upper[node], source[node] = base, -1
        if start == count:
            continue
        seen[node] = number[count - 1]
        dense[index[span]] = weight[span]
        entries = slice(p_indptr[start], p_indptr[count])
        ratios = dense[p_index[entries]] / p_weight[entries]
        values = base + np.minimum.reduceat(ratios, p_indptr[start:count] - p_indptr[start]) * gap[start:count]
        best = int(np.argmin(values))
        if values[best] < upper[node] - least:
            upper[node], source[node] = values[best], belief[start + best]
        dense[index[span]] = 0.0


def improve_lower(nodes: Ints, pool: tuple[Any, ...], bounds: tuple[Any, ...], vectors: tuple[Any, ...]) -> None:
    """Raise the lower values of beliefs by new alpha vectors.

    Args:
        nodes: The beliefs, as rows of the pool.
        pool: Its ``indptr``, ``index`` and ``weight``.
        bounds: For each belief: the lower value, its vector, the last vector compared.
        vectors: ``[n, K]`` the vectors by state, their ascending numbers, and their count.
    """
    indptr, index, weight = pool
    lower, source, seen = bounds
    block, number, count = vectors
    for node in nodes:
        start = int(np.searchsorted(number[:count], seen[node], side="right"))
        if start == count:
            continue
        seen[node] = number[count - 1]
        span = slice(indptr[node], indptr[node + 1])
        values = weight[span] @ block[index[span], start:count]
        best = int(np.argmax(values))
        if values[best] > lower[node]:
            lower[node], source[node] = values[best], number[start + best]


def backup(
    model: tuple[Ints, Ints, Floats, int], action: int, reward: Floats, discount: float, archive: Floats, after: Ints
) -> Floats:
    """Return ``[n]``, ``alpha(s) = R(s, a) + gamma sum_o sum_s' p(s', o | s, a) alpha_o(s')``.

    Args:
        model: ``indptr``, ``column``, ``probability`` and the number of states of a `SolverModel`.
        action: The position of the action.
        reward: ``[n]``, its rewards.
        discount: gamma.
        archive: ``[K, n]``, all vectors.
        after: ``[O]``, the next vector after each observation.
    """
    if not discount:  # what follows may be -inf
        return reward.copy()
    indptr, column, probability, size = model
    offsets = indptr[action * size : (action + 1) * size + 1]
    span = slice(offsets[0], offsets[-1])
    observation, state = np.divmod(column[span], size)
    terms = probability[span] * archive[after[observation], state]
    owner = np.repeat(np.arange(size), np.diff(offsets))
    vector: Floats = reward + discount * np.bincount(owner, weights=terms, minlength=size)
    return vector
