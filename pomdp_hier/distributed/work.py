"""Tasks of the workers of `evaluate_distributed`: functions of arrays.

Arrays arrive from Dask read-only and unaligned, and numpy copies an unaligned array whole on every take; so they are
aligned once where they arrive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse, vstack

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._engines.dispatch import run_engine
from pomdp_hier._engines.task import NodeRewards, Rule, Task
from pomdp_hier.distributed.parts import TreePart
from pomdp_hier.features.dense import DenseAffinity, DenseKind
from pomdp_hier.features.validation import row_pieces


@dataclass(frozen=True, eq=False)
class Plan:
    """Settings of the score of every partition.

    Attributes:
        kind: The similarity.
        rule: When to stop.
        temperatures: ``delta_t`` of each level of the whole tree.
        enter_own_singleton: As in `evaluate`.
        engine: ``"numpy"`` or ``"numba"``.
        n_items: N of the whole tree.
    """

    kind: DenseKind
    rule: Rule
    temperatures: Floats
    enter_own_singleton: bool
    engine: str
    n_items: int


@dataclass(frozen=True, eq=False)
class Inspection:
    """Result of a check of rows: the non-finite rows, the largest value, and partial sums for the centre."""

    bad: Ints
    largest: float
    sums: list[Floats]


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums ``[k, D]`` and rows ``[m, D]`` of the nodes that a partition shares with others.

    ``zero_rows`` are the items whose rows are zeros.
    """

    sums: Floats
    rows: npt.NDArray[Any]
    zero_rows: Ints


@dataclass(frozen=True, eq=False)
class Shared:
    """The shared nodes, with the sums of internal nodes, the rows of items, and the centre."""

    part: TreePart
    sums: Floats
    rows: npt.NDArray[Any]
    centre: Floats


def inspect(rows: Any, piece_rows: int, first: int) -> Inspection:
    """Return the check of the rows from index ``first``, summed in pieces of ``piece_rows`` as in `evaluate`."""
    if isinstance(rows, np.ma.MaskedArray):  # what a mask hides is missing
        rows = rows.filled(np.nan)
    if issparse(rows):
        found = [rows[low : low + piece_rows] for low in range(0, rows.shape[0], piece_rows)]
        # The rows were checked where they were read; a sum of CSR is a matrix.
        totals = [np.asarray(piece.sum(axis=0), dtype=np.float64).reshape(-1) for piece in found]
        return Inspection(np.empty(0, dtype=np.int64), float(np.abs(rows.data).max(initial=0.0)), totals)
    rows = _aligned(rows)
    bad = first + np.flatnonzero(~np.isfinite(rows).all(axis=1))
    pieces = [rows[low : low + piece_rows] for low in range(0, len(rows), piece_rows)]
    sums = [piece.sum(axis=0, dtype=np.float64) for piece in pieces]
    return Inspection(bad, float(np.abs(rows).max(initial=0.0)), sums)


def pick(rows: Any, chosen: Ints) -> Any:
    """Return the chosen rows."""
    return rows[chosen] if issparse(rows) else _aligned(rows)[chosen]


def assemble(pieces: Sequence[Any], order: Ints) -> Any:
    """Return the rows of the pieces in another order."""
    if issparse(pieces[0]):
        return vstack(pieces, format="csr")[order]
    return np.concatenate([_aligned(piece) for piece in pieces])[order]


def sum_up(plan: Plan, part: TreePart, rows: Any, shared: Ints, centre: Floats) -> Summary:
    """Return the sums and rows of the ``shared`` nodes of a partition."""
    rows, n_items = _aligned(rows), part.n_items(plan.n_items)
    affinity = part_affinity(plan, rows, part.forest(plan.n_items), centre)
    at = part.places(shared)
    return Summary(
        affinity.sums[at[at >= n_items] - n_items],
        rows[at[at < n_items]],
        part.nodes[:n_items][getattr(affinity, "zero_rows", np.empty(0, dtype=np.int64))],
    )


def score(plan: Plan, part: TreePart, rows: Any, shared: Shared) -> tuple[Ints, Floats]:
    """Return the stop node of each item of a partition, and the probability of its path.

    Args:
        plan: How.
        part: The partition's nodes.
        rows: Its items' rows, ascending.
        shared: What it knows of the rest.
    """
    rows, inner = _aligned(rows), plan.n_items
    own = part_affinity(plan, rows, part.forest(inner), shared.centre).sums[:-1]
    both = part.joined(shared.part)
    tree, n_items = both.excerpt(inner), both.n_items(inner)
    table, sums = rows, np.empty((len(both.nodes) - n_items, rows.shape[1]))
    items = both.places(part.nodes[: part.n_items(inner)])
    if n_items > len(items):
        table = np.empty((n_items, rows.shape[1]), dtype=rows.dtype)
        table[both.places(shared.part.nodes[: shared.part.n_items(inner)])] = shared.rows
        table[items] = rows
    sums[both.places(shared.part.nodes[shared.part.n_items(inner) :]) - n_items] = shared.sums
    sums[both.places(part.nodes[part.n_items(inner) :]) - n_items] = own
    task = Task(
        affinity=part_affinity(plan, table, tree, shared.centre, sums),
        rewards=NodeRewards(both.reward, both.rise),
        temperatures=plan.temperatures,
        rule=plan.rule,
        enter_own_singleton=plan.enter_own_singleton,
        threads=1,
    )
    stops = run_engine(task, items, plan.engine, lambda done: None)
    return both.nodes[stops.nodes], stops.probabilities


def part_affinity(plan: Plan, rows: Any, tree: Any, centre: Floats, sums: Floats | None = None) -> DenseAffinity:
    """Return the affinity of a part."""
    return DenseAffinity(rows, tree, plan.kind, centre, sums)


def piece_rows(n_items: int, n_columns: int) -> int:
    """Return the number of rows that `evaluate` sums at a time for the centre."""
    low, high = row_pieces(max(n_items, 1), 8 * n_columns)[0]
    return high - low


def _aligned(array: Any) -> Any:
    if issparse(array):  # a partition is scored on dense rows
        array = array.toarray()
    return np.require(array, requirements=["C", "A"])
