"""Beliefs as the rows of one matrix, dense or sparse: expand them all by an action, and merge the equal ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomdp_hier._arrays import Bools, Floats, Ints

__all__ = ["Children", "Rows", "expand", "merge", "products", "stack", "touches"]

Rows = Any  # [n, S]: an ndarray, or a CSR array where states are many and supports small


@dataclass(frozen=True, eq=False)
class Children:
    """What can follow from beliefs under one action.

    Attributes:
        rows: ``[m, S]``, the posteriors.
        evidence: ``[m]``, ``Pr(o | b, a)``, all positive.
        parent: ``[m]``, which belief each comes from.
        observation: ``[m]``.
    """

    rows: Rows
    evidence: Floats
    parent: Ints
    observation: Ints


def expand(beliefs: Rows, outcomes: Any, n_observations: int) -> Children:
    """Return the posteriors of all beliefs after every observation that can be made, in one product.

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
    """``[n, K]``, ``sum_s b(s) table[k, s]``, where a probability of 0 silences an infinite entry."""
    infinite = ~np.isfinite(table)
    if not infinite.any():
        return np.asarray(beliefs @ table.T)
    result = np.asarray(beliefs @ np.where(infinite, 0.0, table).T)
    for sign in (np.inf, -np.inf):
        result[touches(beliefs, table == sign)] = sign
    return result


def touches(beliefs: Rows, marked: Bools) -> Bools:
    """``[n, K]``: whether the belief gives a marked state (``[K, S]``) positive probability."""
    support = beliefs.astype(bool).astype(np.float64) if sparse.issparse(beliefs) else (beliefs > 0).astype(np.float64)
    return np.asarray(support @ marked.T.astype(np.float64)) > 0


def merge(rows: Rows, labels: Ints | None, tolerance: float) -> tuple[Ints, Ints]:
    """Which rows to keep, and which kept one stands for each row.

    Rows are the same when they are equal bit for bit or, with a tolerance, when the same entries are positive and each
    falls in the same cell of that width; labels (the last observation, where it matters) must be equal too. Equal
    supports and labels have the same legal actions.

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
        kept = inverse = np.arange(rows.shape[0])  # two different rows share a fingerprint: merge none of them
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
    """``[n]``, sums modulo 2^64 of mixed bits, so that equal rows have equal fingerprints wherever they stand."""
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
    """Whether every row equals the one that stands for it, within the tolerance and with the same support."""
    others = np.flatnonzero(stand_in != np.arange(len(stand_in)))
    if not len(others):
        return True
    these, those = rows[others], rows[stand_in[others]]
    if tolerance > 0 and _any((these > 0) != (those > 0)):
        return False
    return not _any(abs(these - those) > tolerance)


def _any(marked: Any) -> bool:
    return bool(marked.nnz if sparse.issparse(marked) else marked.any())
