"""A score and its baselines over a range of temperatures: what depends on the temperature, and what does not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier.appraisal.baselines import appraised
from pomdp_hier.errors import ParameterError
from pomdp_hier.files.memory import held
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import counted, shown
from pomdp_hier.hqs.inputs import as_trees, opened
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import score

__all__ = ["DeltaSweep", "Flip", "SweepRow", "delta_sweep"]

_SAME = 1e-12
_REFUSED = {
    "delta": "a sweep goes over a range of temperatures; give it as deltas",
    "checkpoint": "a checkpoint is of one run, and a sweep is many; leave it out",
    "target_error": "trees and temperatures are scored on one sample, whose size cannot go by each; give sample_size",
}


@dataclass(frozen=True)
class SweepRow:
    """One tree at one temperature; the figures are those of `Appraisal`."""

    tree: str
    delta: float
    score: float
    search_root: float
    ceiling: float
    perfect: float
    shuffled: float
    shuffled_sd: float
    adjusted: float
    efficiency: float
    first_branch: float
    at_root: float


@dataclass(frozen=True)
class Flip:
    """Two trees that change places between two temperatures.

    Attributes:
        low: The temperature at which the first is better.
        high: The next one looked at, at which the second is.
        before: The better one at ``low``.
        after: The better one at ``high``.
    """

    low: float
    high: float
    before: str
    after: str


@dataclass(frozen=True)
class DeltaSweep:
    """Trees over a range of temperatures.

    Attributes:
        rows: One a tree and temperature, tree by tree, temperatures rising.
        flips: Where the ranking by score changes; places where two scores are equal are no change.
    """

    rows: tuple[SweepRow, ...]
    flips: tuple[Flip, ...]

    def __repr__(self) -> str:
        deltas, flips = self.deltas, counted(len(self.flips), "flip")
        trees = counted(len(self.trees), "tree")
        return f"DeltaSweep({trees}, {len(deltas)} deltas from {deltas[0]:g} to {deltas[-1]:g}, {flips})"

    @property
    def deltas(self) -> tuple[float, ...]:
        """The temperatures, rising."""
        return tuple(sorted({row.delta for row in self.rows}))

    @property
    def trees(self) -> tuple[str, ...]:
        """The trees' names."""
        return tuple(dict.fromkeys(row.tree for row in self.rows))

    def column(self, tree: str, name: str) -> Floats:
        """Return one figure of one tree over the temperatures, such as ``column("tree", "score")``."""
        return np.array([getattr(row, name) for row in self.rows if row.tree == tree], dtype=np.float64)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, for a data frame or a file."""
        return [asdict(row) for row in self.rows]

    def summary(self) -> str:
        """Return the table, and where the ranking flips, in words."""
        width = max(4, *(len(name) for name in self.trees))
        heads = f"{'delta':>10}{'score':>9}{'shuffled':>10}{'SD':>8}{'ceiling':>9}{'adjusted':>10}{'at root':>9}"
        lines = [f"{'tree':<{width}}{heads}"]
        lines += [
            f"{row.tree:<{width}}{row.delta:>10.4g}{row.score:>z9.4f}{row.shuffled:>z10.4f}{row.shuffled_sd:>z8.4f}"
            f"{row.ceiling:>z9.4f}{row.adjusted:>z10.4f}{row.at_root:>z9.1%}"
            for row in self.rows
        ]
        return "\n".join([*lines, *self.sentences()])

    def sentences(self) -> list[str]:
        """Return where the ranking of the trees flips, in words."""
        if len(self.trees) == 1:
            return []
        if not self.flips:
            return ["The ranking is the same at all these temperatures."]
        return [
            f"Between delta {flip.low:.4g} and {flip.high:.4g}, {flip.after} overtakes {flip.before}."
            for flip in self.flips
        ]


def delta_sweep(
    X: Any,
    hierarchy: Hierarchy | Mapping[str, Hierarchy],
    deltas: Sequence[float] | None = None,
    *,
    n_shuffles: int = 8,
    random_state: int = 0,
    **settings: Any,
) -> DeltaSweep:
    """Return score, baselines and ceiling of one or more trees over a range of temperatures, and where rankings flip.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: A tree, or trees by name over the same items.
        deltas: The temperatures (default: 13 from 0.001 to 1, evenly spaced in the logarithm).
        n_shuffles: Shuffles a tree and temperature, the same ones at each; every one costs a scoring.
        random_state: Their seed, and that of the draw of a sample.
        **settings: As for `evaluate`, without ``delta``. A sample is the same items at each tree and temperature.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For no or double temperatures, or a setting that cannot be.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> sweep = delta_sweep(X, tree, [0.1, 10.0], n_shuffles=2)
        >>> sweep.column("tree", "score").round(3)
        array([0.622, 0.   ])
    """
    trees = as_trees(hierarchy)
    chosen = _temperatures(deltas)
    prepared, run, sampling = opened(X, next(iter(trees.values())), settings, _REFUSED)
    result: HQSResult | None = None
    rows: list[SweepRow] = []
    for name, tree in trees.items():
        here = prepared.on(tree)
        for delta in chosen:
            at = here.under(delta=delta)
            result = score(at, run, sampling.seeded(random_state), result)
            found = appraised(at, run, result, n_shuffles, random_state)
            figures = {field: getattr(found, field) for field in SweepRow.__annotations__ if hasattr(found, field)}
            rows.append(SweepRow(tree=name, delta=delta, **figures))
    scores = {name: [row.score for row in rows if row.tree == name] for name in trees}
    return DeltaSweep(tuple(rows), tuple(_flips(chosen, scores)))


def _temperatures(deltas: Sequence[float] | None) -> list[float]:
    if deltas is None:
        return [float(delta) for delta in np.geomspace(1e-3, 1.0, 13)]
    try:
        chosen = sorted(map(float, held("deltas", deltas)))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"deltas are {shown(deltas)}; give a list of positive numbers") from error
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError(f"deltas are {chosen}; give one temperature or more, each once")
    return chosen


def _flips(deltas: Sequence[float], scores: Mapping[str, Sequence[float]]) -> Iterator[Flip]:
    """Where the sign of the difference of two scores changes; equal scores do not count on either side."""
    for one, other in combinations(scores, 2):
        gaps = np.subtract(scores[one], scores[other])
        apart = np.flatnonzero(np.abs(gaps) > _SAME)
        for here, there in pairwise(apart.tolist()):
            if gaps[here] * gaps[there] < 0:
                before, after = (one, other) if gaps[here] > 0 else (other, one)
                yield Flip(deltas[here], deltas[there], before, after)
