"""The compiled inner loops of the search, the same functions as in :mod:`~pomdp_hier.planning.point_based.on_numpy`.

Importing this module needs numba.
"""

from typing import Any

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._imports import compiling
from pomdp_hier.planning.point_based.on_numpy import KEPT_BITS, WIDER

_ROUND = np.uint64(1 << (51 - KEPT_BITS))
_MASK = np.uint64(~((1 << (52 - KEPT_BITS)) - 1) & (2**64 - 1))
_MIX_1, _MIX_2, _MIX_3 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT = np.uint64(31)
_AT_ONCE = 512  # vectors whose values are summed at once


@compiling()
def expand(model: Any, action: int, index: Ints, weight: Floats, corner: Floats, drop: float) -> Any:
    """Return the beliefs after an action."""
    indptr, column, probability, size = model
    most, width = 0, 0
    for i in range(len(index)):
        row = action * size + index[i]
        most += indptr[row + 1] - indptr[row]
        if indptr[row + 1] > indptr[row]:
            width = max(width, column[indptr[row + 1] - 1] + 1)
    if width <= WIDER * most:  # sums in place of a sort
        sums = np.zeros(width)
        for i in range(len(index)):
            row = action * size + index[i]
            for at in range(indptr[row], indptr[row + 1]):
                sums[column[at]] += weight[i] * probability[at]
        columns = np.flatnonzero(sums)
        terms = sums[columns]
        most = len(columns)
        order = np.arange(most)
    else:
        columns = np.empty(most, dtype=np.int64)
        terms = np.empty(most)
        k = 0
        for i in range(len(index)):
            row = action * size + index[i]
            for at in range(indptr[row], indptr[row + 1]):
                columns[k] = column[at]
                terms[k] = weight[i] * probability[at]
                k += terms[k] > 0  # a product of small probabilities may round to 0
        most = k
        order = np.argsort(columns[:most], kind="mergesort")
    state = np.empty(most, dtype=np.int64)
    mass = np.empty(most)
    seen = np.empty(most, dtype=np.int64)
    offsets = np.empty(most + 1, dtype=np.int64)
    n_entries, n_seen, before = 0, 0, -1
    offsets[0] = 0
    for j in range(most):
        at = columns[order[j]]
        if at == before:
            mass[n_entries - 1] += terms[order[j]]
            continue
        before = at
        observation = at // size
        if n_seen == 0 or seen[n_seen - 1] != observation:
            seen[n_seen] = observation
            n_seen += 1
        state[n_entries] = at - observation * size
        mass[n_entries] = terms[order[j]]
        n_entries += 1
        offsets[n_seen] = n_entries
    share = np.zeros(n_seen)
    keys = np.zeros(n_seen, dtype=np.uint64)
    lost, kept = 0.0, 0
    low = 0
    for c in range(n_seen):
        high = offsets[c + 1]
        whole = 0.0
        for j in range(low, high):
            whole += mass[j]
        first = kept
        for j in range(low, high):
            if mass[j] >= drop * whole:
                state[kept], mass[kept] = state[j], mass[j]
                share[c] += mass[kept]
                kept += 1
            else:
                lost += mass[j] * corner[state[j]]
        for j in range(first, kept):
            mass[j] /= share[c]
        low = high
        offsets[c + 1] = kept
    bits = mass.view(np.uint64)
    for c in range(n_seen):
        key = np.uint64(0)
        for j in range(offsets[c], offsets[c + 1]):
            mixed = ((bits[j] + _ROUND) & _MASK) ^ (np.uint64(state[j]) * _MIX_1)
            mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX_2
            mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX_3
            key += mixed
        keys[c] = key
    return seen[:n_seen].copy(), offsets[: n_seen + 1].copy(), state[:kept], mass[:kept], share, keys, lost


@compiling()
def expectations(index: Ints, weight: Floats, vectors: Floats) -> Any:
    """Return the expectation ``[A]`` of each vector under a sparse belief."""
    values = np.zeros(len(vectors))
    for a in range(len(vectors)):
        value = 0.0
        for j in range(len(index)):
            value += weight[j] * vectors[a, index[j]]
        values[a] = value
    return values


@compiling()
def greatest(first: int, last: int, pool: Any, upper: Floats, vectors: Floats) -> None:
    """Write the greatest expectation of the vectors for each of some beliefs."""
    indptr, index, weight = pool
    for node in range(first, last):
        best = -np.inf
        for a in range(len(vectors)):
            value = 0.0
            for j in range(indptr[node], indptr[node + 1]):
                value += weight[j] * vectors[a, index[j]]
            best = max(best, value)
        upper[node] = best


@compiling()
def improve_upper(nodes: Ints, pool: Any, bounds: Any, points: Any, corner: Floats, least: float) -> None:
    """Lower the upper values of beliefs by new points."""
    indptr, index, weight = pool
    upper, source, seen = bounds
    p_indptr, p_index, p_weight, gap, belief, number, count = points
    dense = np.zeros(len(corner))
    for i in range(len(nodes)):
        node = nodes[i]
        low, high = indptr[node], indptr[node + 1]
        base = 0.0
        for j in range(low, high):
            base += corner[index[j]] * weight[j]
        if base < upper[node] - least:
            upper[node], source[node] = base, -1
        start = np.searchsorted(number[:count], seen[node], side="right")
        if start == count:
            continue
        seen[node] = number[count - 1]
        for j in range(low, high):
            dense[index[j]] = weight[j]
        best = upper[node] - least - base  # negative: what c (v_j - corner . b_j) must fall below
        found = -1
        for p in range(start, count):
            if gap[p] >= best or p_indptr[p + 1] - p_indptr[p] > high - low:
                continue
            needed = best / gap[p]  # the ratio must be greater than this
            ratio = np.inf
            for j in range(p_indptr[p], p_indptr[p + 1]):
                share = dense[p_index[j]] / p_weight[j]
                if share < ratio:
                    ratio = share
                    if ratio <= needed:
                        break
            if ratio > needed:
                best, found = ratio * gap[p], p
        if found >= 0:
            upper[node], source[node] = base + best, belief[found]
        for j in range(low, high):
            dense[index[j]] = 0.0


@compiling(fastmath={"reassoc", "contract", "nsz"})
def improve_lower(nodes: Ints, pool: Any, bounds: Any, vectors: Any) -> None:
    """Raise the lower values of beliefs by new alpha vectors, a block of vectors at a time for all beliefs."""
    indptr, index, weight = pool
    lower, source, seen = bounds
    block, number, count = vectors
    starts = np.empty(len(nodes), dtype=np.int64)
    first = count
    for i in range(len(nodes)):
        starts[i] = np.searchsorted(number[:count], seen[nodes[i]], side="right")
        if starts[i] < count:
            seen[nodes[i]] = number[count - 1]
            first = min(first, starts[i])
    values = np.empty(_AT_ONCE)
    for low in range(first, count, _AT_ONCE):
        last = min(low + _AT_ONCE, count)
        for i in range(len(nodes)):
            begin, node = max(low, starts[i]), nodes[i]
            if begin >= last:
                continue
            values[: last - begin] = 0.0
            j, end = indptr[node], indptr[node + 1]
            while j + 4 <= end:  # four states at once: the sums are loaded and stored once
                a, b, c, d = weight[j], weight[j + 1], weight[j + 2], weight[j + 3]
                p, q = block[index[j], begin:last], block[index[j + 1], begin:last]
                r, s = block[index[j + 2], begin:last], block[index[j + 3], begin:last]
                for k in range(last - begin):
                    values[k] += a * p[k] + b * q[k] + c * r[k] + d * s[k]
                j += 4
            while j < end:
                a, p = weight[j], block[index[j], begin:last]
                for k in range(last - begin):
                    values[k] += a * p[k]
                j += 1
            best = 0
            for k in range(1, last - begin):
                if values[k] > values[best]:
                    best = k
            if values[best] > lower[node]:
                lower[node], source[node] = values[best], number[begin + best]


@compiling()
def backup(model: Any, action: int, reward: Floats, discount: float, archive: Floats, after: Ints) -> Any:
    """Return ``[n]``, the vector of an action and its successor after each observation."""
    if discount == 0:  # what follows may be -inf
        return reward.copy()
    indptr, column, probability, size = model
    vector = np.empty(size)
    for s in range(size):
        value = 0.0
        for at in range(indptr[action * size + s], indptr[action * size + s + 1]):
            observation = column[at] // size
            value += probability[at] * archive[after[observation], column[at] - observation * size]
        vector[s] = reward[s] + discount * value
    return vector
