"""Certificates: the bounds of a search in integers, each with its premises.

Lower bounds are rounded down, upper bounds up, and both are widened: the widening of a backup exceeds its rounding
error by ``(1 - gamma') shift``. Only the vectors and points behind the bounds at the start are written. The format, and
why it proves the bounds, is documented in `pomdp_hier.planning.certificates.verify`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.planning.float_range import LEAST
from pomdp_hier.planning.point_based.initial_bounds import OutcomeBeliefs
from pomdp_hier.planning.point_based.model_arrays import SolverModel
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier.planning.point_based.stage import Stage

_ROUNDING = 2.0**-36
"""The rounding error of a backup relative to the values; weights within 2 ** -40 count as equal."""


def write_certificate(search: Search, *, at_start: bool) -> dict[str, Any]:
    """Return the certificate of a search's bounds, of lists, dicts and integers for ``json.dump``.

    Args:
        search: The search.
        at_start: Whether it starts from the problem's initial belief; else the certificate holds the belief.
    """
    return _Writer(search).certificate(at_start)


class _Writer:
    """Collects the premises of the bounds at the start, stage by stage, and writes them in integers."""

    def __init__(self, search: Search) -> None:
        self.search, self.model = search, search.model
        self.index, self.n_indices = _state_indices(search.model)
        self.vectors: list[dict[int, int]] = [{} for _ in search.stages]
        self.points: list[dict[int, int]] = [{} for _ in search.stages]
        self._gather()
        scale = max(LEAST, *(self._scale(i) for i in range(len(search.stages))))
        self.bits = max(44, 44 - math.floor(math.log2(scale)))
        self.unit = scale * _ROUNDING + 8 * 2.0**-self.bits
        self.weight_bits = min(1_024, max(92, 54 - math.floor(math.log2(self._least_weight()))))
        if search.horizon is None:
            self.shifts = [self.unit * self.model.slack]
        else:
            self.shifts = [np.full(self.model.size, self.unit)]
            while len(self.shifts) < len(search.stages):
                self.shifts.append(self.unit + self.model.shrink * self.shifts[-1])

    def _below(self, i: int) -> int:
        """Return the stage after the i-th."""
        return i if self.search.horizon is None else i - 1

    def certificate(self, at_start: bool) -> dict[str, Any]:
        search, compiled = self.search, self.model.compiled
        pool = search.stages[-1].pool
        source, (lower, upper) = int(pool.source[search.root]), search.bounds
        margin = 2 * search.mass * float(self.shifts[-1].max()) + 4 * self.unit
        return {
            "format": "pomdp-hier bounds",
            "version": 2,
            "sizes": [compiled.n_states, compiled.n_actions, compiled.n_observations],
            "horizon": search.horizon,
            "value_bits": self.bits,
            "weight_bits": self.weight_bits,
            "start": None if at_start else self._start(),
            "vector": self.vectors[-1][int(pool.best[search.root])],
            "hint": self.points[-1][source] if source >= 0 else source,
            "lower": self._down(lower - margin),
            "upper": self._up(upper + margin),
            "stages": [self._stage(i) for i in range(len(search.stages))],
        }

    # --- premises ------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        """Assign numbers to the required vectors and points, from the root on."""
        search = self.search
        top = len(search.stages) - 1
        pool = search.stages[-1].pool
        self._need(self.vectors, top, int(pool.best[search.root]))
        self._need(self.points, top, int(pool.source[search.root]))
        for i in range(top, -1, -1):
            stage = search.stages[i]
            vectors = list(self.vectors[i])
            for number in vectors:  # grows while it is walked, where a stage follows itself
                fresh = [] if stage.next is None else self._need_all(self.vectors, i, stage.after[number])
                vectors += fresh if stage.next is stage else []
            for node in stage.corner_node.values():
                self._need(self.points, i, node)
            nodes = list(self.points[i])
            for node in nodes:
                for reason in stage.reasons[node]:
                    if reason is not None and reason[1] is not None:
                        fresh = self._need_all(self.points, i, reason[1])
                        nodes += fresh if stage.next is stage else []

    def _need_all(self, numbers: list[dict[int, int]], i: int, which: Ints) -> list[int]:
        """Assign numbers to vectors or points of the stage below the i-th; return the new ones."""
        return [then for then in which.tolist() if self._need(numbers, self._below(i), then)]

    @staticmethod
    def _need(numbers: list[dict[int, int]], i: int, which: int) -> bool:
        """Assign a number to a vector or a point of the i-th stage; return whether it is new."""
        if which < 0 or which in numbers[i]:
            return False
        numbers[i][which] = len(numbers[i])
        return True

    def _scale(self, i: int) -> float:
        """Return the greatest size of a written value, which is the scale of rounding errors."""
        stage = self.search.stages[i]
        tables = [stage.archive[list(self.vectors[i])], stage.informed]
        tables += [] if stage.rests_on is None else [stage.rests_on.value]
        return max(stage.scale, *(float(np.abs(t[np.isfinite(t)]).max(initial=0.0)) for t in tables))

    def _least_weight(self) -> float:
        """Return the least written weight of a belief."""
        least = 1.0
        for i, stage in enumerate(self.search.stages):
            for node in self.points[i]:
                least = min(least, float(stage.pool.row(node)[1].min()))
            if stage.rests_on is not None:
                least = min(least, float(stage.rests_on.belief.data.min()))
        root = float(self.search.stages[-1].pool.row(self.search.root)[1].min()) * self.search.mass
        return max(min(least, root), 2.0**-1074)

    # --- integers ----------------------------------------------------------------------------------------

    def _down(self, value: float) -> int:
        return _scaled(value, self.bits)

    def _up(self, value: float) -> int:
        return -_scaled(-value, self.bits)

    def _values(self, vector: Floats, shift: Floats, write: Callable[[float], int]) -> list[int | None]:
        """Return a vector over all state indices of the certificate, shifted and rounded."""
        values: list[int | None] = [None] * self.n_indices
        for place, value, more in zip(self.index, vector.tolist(), shift.tolist(), strict=True):
            if value != -math.inf:
                values[place] = write(value + more)
        return values

    def _belief(self, index: Ints, weight: Floats) -> list[list[int]]:
        pairs = zip(index.tolist(), weight.tolist(), strict=True)
        scaled = ((self.index[s], _scaled(w, self.weight_bits)) for s, w in pairs)
        return [[place, w] for place, w in scaled if w]  # a weight below 2 ** -1024 is within the rounding

    def _start(self) -> list[list[int]]:
        index, weight = self.search.stages[-1].pool.row(self.search.root)
        return self._belief(index, weight * self.search.mass)

    def _stage(self, i: int) -> dict[str, Any]:
        stage, shift = self.search.stages[i], self.shifts[i]
        then = self.vectors[self._below(i)]
        vectors = [
            {
                "action": stage.actions[k],
                "after": [then.get(o, -1) for o in stage.after[k].tolist()],
                "values": self._values(stage.archive[k], -shift, self._down),
            }
            for k in self.vectors[i]
        ]
        usable = self.model.legal.any(axis=0)
        return {
            "vectors": vectors,
            "informed": [self._values(row, shift, self._up) for row in stage.informed],
            "outcomes": [] if stage.rests_on is None else self._outcomes(stage.rests_on, shift),
            "corners": self._values(np.where(usable, stage.corner, -np.inf), 2 * shift, self._up),
            "corner_points": [[self.index[s], self.points[i][node]] for s, node in stage.corner_node.items()],
            "points": [self._point(i, stage, node) for node in self.points[i]],
        }

    def _outcomes(self, rests_on: OutcomeBeliefs, shift: Floats) -> list[dict[str, Any]]:
        """Return the successor beliefs of a known state under one action, each with its observations."""
        belief, outcomes, size = rests_on.belief, rests_on.outcomes, self.model.size
        after: list[list[list[int]]] = [[] for _ in rests_on.value]
        for row, which, o in zip(
            rests_on.row.tolist(), outcomes.row.tolist(), outcomes.observation.tolist(), strict=True
        ):
            after[row].append([which // size, self.index[which % size], o])
        written = []
        for i, values in enumerate(rests_on.value.tolist()):
            span = slice(belief.indptr[i], belief.indptr[i + 1])
            index, weight = belief.indices[span], belief.data[span]
            more = float(weight @ shift[index])
            bounds = [None if value == -math.inf else self._up(value + more) for value in values]
            written.append({"after": after[i], "belief": self._belief(index, weight), "values": bounds})
        return written

    def _point(self, i: int, stage: Stage, node: int) -> dict[str, Any]:
        actions: list[list[int] | None] = []
        for reason in stage.reasons[node]:
            if reason is None:
                actions.append(None)
                continue
            children, source = reason
            hints = [-1] * self.model.n_observations
            if source is not None:
                numbers = self.points[self._below(i)]
                for o, which in zip(children.observation.tolist(), source.tolist(), strict=True):
                    hints[o] = numbers[which] if which >= 0 else which
            actions.append(hints)
        index, weight = stage.pool.row(node)
        value = self._up(stage.value[node] + 2 * float(weight @ self.shifts[i][index]))
        return {"belief": self._belief(index, weight), "value": value, "actions": actions}


def _scaled(value: float, bits: int) -> int:
    """Return ``floor(value * 2 ** bits)``, of a product that a float need not hold.

    Example:
        >>> _scaled(-1.5, 0), _scaled(1e300, 44) == int(1e300) << 44
        (-2, True)
    """
    numerator, denominator = value.as_integer_ratio()
    return (numerator << bits) // denominator


def _state_indices(model: SolverModel) -> tuple[list[int], int]:
    """Return the state index of each nonterminal state in a certificate, and the number of indices.

    Sets of legal actions are numbered by the first observation that gives them, the start last.
    """
    order = {kind: i for i, kind in enumerate(dict.fromkeys(model.kind_after.tolist()))}
    size = model.compiled.n_states
    pairs = zip(model.kind.tolist(), model.state.tolist(), strict=True)
    return [order[kind] * size + state for kind, state in pairs], len(order) * size
