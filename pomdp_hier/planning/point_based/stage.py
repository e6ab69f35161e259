"""A stage of the search: beliefs with bounds, belief points and alpha vectors for one number of actions to go.

An infinite horizon has one stage, its own successor. A finite one has a stage for each number of actions to go.
"""

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.planning.point_based import on_numpy
from pomdp_hier.planning.point_based.initial_bounds import OutcomeBeliefs
from pomdp_hier.planning.point_based.model_arrays import SolverModel

DROP = 1e-10
"""The least probability of a state that is kept in a belief; the value of dropped states is bounded and added."""


class Rows:
    """Sparse rows, as CSR arrays with spare capacity.

    Attributes:
        indptr: ``[count + 1]`` and more, the start of each row.
        index, weight: Positions and weights of the entries.
        count: The number of rows.
        n_entries: The number of entries.
    """

    _beside: ClassVar[dict[str, type]] = {}

    def __init__(self) -> None:
        self.indptr: Ints = np.zeros(17, dtype=np.int64)
        self.index: Ints = np.zeros(64, dtype=np.int64)
        self.weight: Floats = np.zeros(64)
        self.count = self.n_entries = 0
        for name, kind in self._beside.items():
            setattr(self, name, np.zeros(16, dtype=kind))

    def append(self, offsets: Ints, index: Ints, weight: Floats) -> slice:
        """Append rows, and return their range.

        Args:
            offsets: ``[n + 1]``, the start of each new row among the given entries.
            index: The positions of the entries.
            weight: Their weights.
        """
        n = len(offsets) - 1
        if self.count + n >= len(self.indptr):
            self.indptr = _longer(self.indptr, self.count + n + 1)
            for name in self._beside:  # one entry less is used of each
                setattr(self, name, _longer(getattr(self, name), len(self.indptr)))
        if self.n_entries + len(index) > len(self.index):
            self.index = _longer(self.index, self.n_entries + len(index))
            self.weight = _longer(self.weight, self.n_entries + len(index))
        rows = slice(self.count, self.count + n)
        held = slice(self.n_entries, self.n_entries + len(index))
        self.index[held], self.weight[held] = index, weight
        self.indptr[self.count : self.count + n + 1] = self.n_entries + offsets
        self.count += n
        self.n_entries += len(index)
        return rows

    def row(self, at: int) -> tuple[Ints, Floats]:
        """Return positions and weights of one row."""
        span = slice(self.indptr[at], self.indptr[at + 1])
        return self.index[span], self.weight[span]

    def keep(self, kept: Ints) -> None:
        """Keep some of the rows, in order."""
        sizes = np.diff(self.indptr[: self.count + 1])[kept]
        offsets = np.append(0, np.cumsum(sizes))
        entries = np.repeat(self.indptr[kept] - offsets[:-1], sizes) + np.arange(offsets[-1])
        index, weight = self.index[entries], self.weight[entries]
        beside = {name: getattr(self, name)[kept] for name in self._beside}
        self.count = self.n_entries = 0
        rows = self.append(offsets, index, weight)
        for name, values in beside.items():
            getattr(self, name)[rows] = values

    @property
    def csr(self) -> tuple[Ints, Ints, Floats]:
        """The arrays as arguments of the inner loops."""
        return self.indptr, self.index, self.weight

    @property
    def n_bytes(self) -> int:
        """The memory of the arrays."""
        names = ("indptr", "index", "weight", *self._beside)
        return sum(int(getattr(self, name).nbytes) for name in names)


def _longer(array: NDArray[Any], least: int) -> NDArray[Any]:
    longer = np.zeros(max(least, len(array) + len(array) // 2), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


class Beliefs(Rows):
    """Beliefs with their bounds.

    Attributes:
        upper, lower: The bounds of the value.
        source: The source of the upper bound: the belief of a point, -1 for the corner beliefs, -2 for TIB or FIB.
        best: The alpha vector of the lower bound, -1 for none.
        met, seen: The last point and the last vector that were compared.
    """

    _beside: ClassVar[dict[str, type]] = {
        "upper": np.float64,
        "lower": np.float64,
        "source": np.int64,
        "best": np.int64,
        "met": np.int64,
        "seen": np.int64,
    }
    upper: Floats
    lower: Floats
    source: Ints
    best: Ints
    met: Ints
    seen: Ints


class Points(Rows):
    """The points of the upper bound.

    Attributes:
        gap: The value less the interpolation between the corner beliefs, negative.
        node: The belief.
        number: The number in order of insertion.
    """

    _beside: ClassVar[dict[str, type]] = {"gap": np.float64, "node": np.int64, "number": np.int64}
    gap: Floats
    node: Ints
    number: Ints


class Kernels(Protocol):
    """The inner loops: the functions of `on_numpy`, or of `on_numba`."""

    expand: Any
    expectations: Any
    greatest: Any
    improve_upper: Any
    improve_lower: Any
    backup: Any


@dataclass(frozen=True, eq=False, slots=True)
class Children:
    """The beliefs after a belief and an action.

    Attributes:
        observation: ``[C]``.
        node: ``[C]``, the belief, as a row of the next stage's pool.
        probability: ``[C]``, of the observation.
        lost: An upper bound of the value of dropped states.
    """

    observation: Ints
    node: Ints
    probability: Floats
    lost: float


class HasKernels:
    """A base of classes with a module ``kernels``, which is pickled by its name."""

    kernels: Kernels

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, with the name of the module of the inner loops."""
        return {**self.__dict__, "kernels": self.kernels.__name__}  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes, with the loops of numpy where numba is not installed."""
        try:
            kernels = importlib.import_module(state["kernels"])
        except ImportError:
            kernels = on_numpy
        self.__dict__.update(state, kernels=kernels)


class Stage(HasKernels):
    """Beliefs, points and vectors at one number of actions to go.

    Args:
        model: The problem.
        kernels: The inner loops.
        informed: ``[A, n]``, TIB or FIB, -inf where an action is not legal.
        next_stage: The stage after the next action, ``None`` after the last one.
        rests_on: The beliefs of TIB; ``None`` for FIB.
    """

    def __init__(
        self,
        model: SolverModel,
        kernels: Kernels,
        informed: Floats,
        next_stage: "Stage | None",
        rests_on: OutcomeBeliefs | None = None,
    ) -> None:
        self.model, self.kernels, self.rests_on = model, kernels, rests_on
        self.informed = np.ascontiguousarray(informed)
        self.next = next_stage
        self.corner: Floats = np.where(model.legal.any(axis=0), informed.max(axis=0, initial=-np.inf), 0.0)
        self.first_corner = self.corner.copy()
        self.scale = max(1e-300, float(np.abs(self.corner).max(initial=0.0)))
        # beliefs
        self.pool = Beliefs()
        self.by_key: dict[int, int] = {}
        self.children: dict[int, dict[int, Children]] = {}
        self.q_upper: dict[int, Floats] = {}
        self.immediate: dict[int, Floats] = {}
        # points: the value of each belief
        self.points = Points()
        self.n_points_ever = 0
        self.corner_node: dict[int, int] = {}
        self.value: dict[int, float] = {}
        self.reasons: dict[int, tuple[Any, ...]] = {}
        # vectors: all of them by number, and the block of those in use, state by state
        self.archive = np.zeros((16, model.size))
        self.actions: list[int] = []
        self.after: list[Ints] = []
        self.made_at: dict[int, int] = {}
        self.block = np.zeros((model.size, 16))
        self.numbers = np.zeros(16, dtype=np.int64)
        self.in_use = 0
        self.default: dict[int, Children] = {}
        self._points_then = self._vectors_then = 0

    @property
    def layout(self) -> tuple[Ints, Ints, Floats, int]:
        """The outcomes as arguments of the inner loops."""
        return self.model.layout

    # --- beliefs -------------------------------------------------------------------------------------------------

    def admit(self, offsets: Ints, index: Ints, weight: Floats, keys: NDArray[np.uint64]) -> Ints:
        """Return the rows of the beliefs in the pool; new beliefs are added."""
        nodes = np.empty(len(keys), dtype=np.int64)
        fresh: list[int] = []
        names = keys.tolist()
        ends = offsets.tolist()
        pool_ends, count = self.pool.indptr, self.pool.count
        for c, key in enumerate(names):
            node = self.by_key.get(key, -1)
            if 0 <= node < count and pool_ends[node + 1] - pool_ends[node] != ends[c + 1] - ends[c]:
                node = -1  # two beliefs of one key: the probability is 2^-64
            if node < 0:
                node = count + len(fresh)
                self.by_key[key] = node
                fresh.append(c)
            nodes[c] = node
        if fresh:
            if len(fresh) < len(names):
                sizes = np.diff(offsets)[fresh]
                kept = np.concatenate([np.arange(ends[c], ends[c + 1]) for c in fresh])
                index, weight = index[kept], weight[kept]
                offsets = np.append(0, np.cumsum(sizes))
            self._start(self.pool.append(offsets, index, weight))
        return nodes

    def _start(self, rows: slice) -> None:
        """Initialise the bounds of new beliefs: TIB or FIB above, none below."""
        pool = self.pool
        pool.source[rows] = -2
        pool.met[rows] = pool.seen[rows] = pool.best[rows] = -1
        pool.lower[rows] = -np.inf
        self.kernels.greatest(rows.start, rows.stop, pool.csr, pool.upper, self.informed)

    def open(self, node: int) -> Floats:
        """Return ``[A]``, the upper values of the belief's actions, -inf where one is not legal."""
        if node not in self.q_upper:
            index, weight = self.pool.row(node)
            legal = self.model.legal[:, index].all(axis=1)
            if not legal.any():
                raise self.model.dead_end(index)
            self.q_upper[node] = np.where(legal, self.kernels.expectations(index, weight, self.informed), -np.inf)
            self.immediate[node] = self.kernels.expectations(index, weight, self.model.reward)
            self.children.setdefault(node, {})
            self.reasons[node] = (None,) * self.model.n_actions
        return self.q_upper[node]

    def expand(self, node: int, action: int) -> Children:
        """Return the beliefs after the action; none after the last action."""
        known = self.children[node].get(action)
        if known is not None:
            return known
        if self.next is None:
            nothing = np.zeros(0, dtype=np.int64)
            children = Children(nothing, nothing, np.zeros(0), 0.0)
        else:
            index, weight = self.pool.row(node)
            observation, offsets, states, weights, probability, keys, lost = self.kernels.expand(
                self.layout, action, index, weight, self.next.first_corner, DROP
            )
            nodes = self.next.admit(offsets, states, weights, keys)
            children = Children(observation, nodes, probability, lost)
        self.children[node][action] = children
        return children

    # --- the upper bound -----------------------------------------------------------------------------------------

    def refresh_upper(self, nodes: Ints) -> None:
        """Lower the upper values of some beliefs by new points."""
        pool = self.pool
        bounds = (pool.upper, pool.source, pool.met)
        self.kernels.improve_upper(nodes, pool.csr, bounds, self._given_points, self.corner, 1e-13 * self.scale)

    @property
    def _given_points(self) -> tuple[Any, ...]:
        """The points as arguments of the inner loops."""
        points = self.points
        return (*points.csr, points.gap, points.node, points.number, points.count)

    def add_point(self, node: int, value: float, reasons: tuple[Any, ...]) -> None:
        """Make the belief a point of the upper bound; its value must be that of a backup."""
        pool, points = self.pool, self.points
        index, weight = pool.row(node)
        pool.upper[node], pool.source[node] = value, node
        self.value[node], self.reasons[node] = value, reasons
        if len(index) == 1:
            self.corner[index[0]] = min(self.corner[index[0]], value / weight[0])
            self.corner_node[int(index[0])] = node
            self._new_gaps()
            self.n_points_ever += 1
            return
        row = points.append(np.array([0, len(index)]), index, weight).start
        points.gap[row] = value - float(self.corner[index] @ weight)
        points.node[row], points.number[row] = node, self.n_points_ever
        self.n_points_ever += 1

    def tighten(self, informed: Floats, rests_on: OutcomeBeliefs | None) -> None:
        """Replace the initial upper bound ``[A, n]`` by a tighter one; what was found by the one before is kept."""
        pool = self.pool
        self.informed, self.rests_on = np.ascontiguousarray(informed), rests_on
        most = np.where(self.model.legal.any(axis=0), informed.max(axis=0, initial=-np.inf), 0.0)
        self.first_corner = np.minimum(self.first_corner, most)
        closer = most < self.corner
        self.corner = np.minimum(self.corner, most)
        for s in np.flatnonzero(closer).tolist():
            self.corner_node.pop(s, None)
        upper, source = pool.upper[: pool.count].copy(), pool.source[: pool.count]
        self.kernels.greatest(0, pool.count, pool.csr, pool.upper, self.informed)
        pool.upper[: pool.count] = np.minimum(upper, pool.upper[: pool.count])
        source[pool.upper[: pool.count] < upper] = -2
        for node, q in self.q_upper.items():
            index, weight = pool.row(node)
            values = np.where(np.isfinite(q), self.kernels.expectations(index, weight, self.informed), -np.inf)
            reasons = zip(self.reasons[node], (values < q).tolist(), strict=True)
            self.reasons[node] = tuple(None if lower else reason for reason, lower in reasons)
            q[:] = np.minimum(q, values)
        self._new_gaps()

    def forget_points(self) -> None:
        """Remove all points, and all upper bounds that rest on them."""
        pool = self.pool
        self.points.keep(np.zeros(0, dtype=np.int64))
        self.corner = self.first_corner.copy()
        self.corner_node.clear()
        self.value.clear()
        self.q_upper.clear()
        self.reasons.clear()
        rows = slice(0, pool.count)
        pool.source[rows], pool.met[rows] = -2, -1
        self.kernels.greatest(0, pool.count, pool.csr, pool.upper, self.informed)

    def _new_gaps(self) -> None:
        """Recompute the gaps of all points after a corner value fell."""
        points = self.points
        if points.count:
            indptr, index, weight = points.csr
            below = np.add.reduceat(
                self.corner[index[: indptr[points.count]]] * weight[: indptr[points.count]], indptr[: points.count]
            )
            values = np.array([self.value[node] for node in points.node[: points.count].tolist()])
            points.gap[: points.count] = np.minimum(0.0, values - below)

    def prune_points(self) -> None:
        """Remove the points that others dominate, and those with a newer value."""
        points = self.points
        pool = self.pool
        nodes = points.node[: points.count].copy()
        self.refresh_upper(np.unique(nodes))
        newest = np.zeros(len(nodes), dtype=bool)
        _, last = np.unique(nodes[::-1], return_index=True)
        newest[len(nodes) - 1 - last] = True
        points.keep(np.flatnonzero(newest & (pool.source[nodes] == nodes) & (points.gap[: points.count] < 0)))

    # --- the lower bound -----------------------------------------------------------------------------------------

    def refresh_lower(self, nodes: Ints) -> None:
        """Raise the lower values of some beliefs by new vectors."""
        pool = self.pool
        self.kernels.improve_lower(nodes, pool.csr, (pool.lower, pool.best, pool.seen), self._given_vectors)

    @property
    def _given_vectors(self) -> tuple[Any, ...]:
        """The vectors in use as arguments of the inner loops."""
        return self.block, self.numbers, self.in_use

    def add_vector(self, vector: Floats, action: int, after: Ints) -> int:
        """Add an alpha vector with its action and its successors, and return its number."""
        number = len(self.actions)
        if number == len(self.archive):
            self.archive = np.concatenate([self.archive, np.zeros_like(self.archive[: number // 2 + 1])])
        if self.in_use == len(self.numbers):
            more = self.in_use // 2 + 1
            self.block = np.ascontiguousarray(np.pad(self.block, ((0, 0), (0, more))))
            self.numbers = np.append(self.numbers, np.zeros(more, dtype=np.int64))
        self.archive[number] = vector
        self.block[:, self.in_use] = vector
        self.numbers[self.in_use] = number
        self.in_use += 1
        self.actions.append(action)
        self.after.append(after)
        return number

    def add_controller(self, vectors: Floats, actions: Ints, after: Ints) -> range:
        """Add the vectors of a controller within this stage, and return their numbers.

        Args:
            vectors: ``[N, n]``.
            actions: ``[N]``.
            after: ``[N, O]``, the position of the successor among these vectors.
        """
        first = len(self.actions)
        for vector, action, then in zip(vectors, actions.tolist(), after, strict=True):
            self.add_vector(vector, action, first + then)
        return range(first, len(self.actions))

    def prune(self) -> None:
        """Remove useless points and vectors, if there are many new ones."""
        if self.points.count > 1.1 * self._points_then + 16:
            self.prune_points()
            self._points_then = self.points.count
        if self.in_use > 1.5 * self._vectors_then + 64:
            self.prune_vectors()
            self._vectors_then = self.in_use

    def prune_vectors(self) -> None:
        """Keep the vectors that are best at an expanded belief, or at a successor of its best action."""
        pool = self.pool
        served = [np.fromiter(self.q_upper, dtype=np.int64, count=len(self.q_upper))]
        if self.next is self:
            for node, q in self.q_upper.items():
                children = self.children[node].get(int(np.argmax(q)))
                if children is not None:
                    served.append(children.node)
        nodes = np.unique(np.concatenate(served))
        self.refresh_lower(nodes)
        self.keep_vectors(np.unique(pool.best[nodes]))

    def bounds(self, index: Ints, weight: Floats) -> tuple[float, float]:
        """Return the lower and the upper bound at any nonnegative weights."""
        mass = float(weight.sum())
        alone = Beliefs()
        alone.append(np.array([0, len(index)]), index, weight / mass)
        alone.met[0] = alone.seen[0] = -1
        alone.lower[0] = -np.inf
        self.kernels.greatest(0, 1, alone.csr, alone.upper, self.informed)
        node = np.zeros(1, dtype=np.int64)
        given = (alone.upper, alone.source, alone.met)
        self.kernels.improve_upper(node, alone.csr, given, self._given_points, self.corner, 0.0)
        self.kernels.improve_lower(node, alone.csr, (alone.lower, alone.best, alone.seen), self._given_vectors)
        return mass * float(alone.lower[0]), mass * float(alone.upper[0])

    def keep_vectors(self, kept: Ints) -> None:
        """Keep some of the vectors in use, given by their numbers; the others stay in the archive."""
        columns = np.flatnonzero(np.isin(self.numbers[: self.in_use], kept))
        self.block[:, : len(columns)] = self.block[:, columns]
        self.numbers[: len(columns)] = self.numbers[columns]
        self.in_use = len(columns)

    @property
    def n_changes(self) -> int:
        """The number of beliefs, points and vectors added so far."""
        return self.pool.count + self.n_points_ever + len(self.actions)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the stage."""
        arrays = self.archive.nbytes + self.block.nbytes
        opened = len(self.q_upper) * (2 * 8 * self.model.n_actions + 600)
        return arrays + self.pool.n_bytes + self.points.n_bytes + opened + 100 * len(self.by_key)
