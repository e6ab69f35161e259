"""A search in a checkpoint: its alpha vectors and belief points, checked against the problem when they are read.

No number of the file is trusted: bounds are checked by backups that are computed from the problem. A vector must be at
most the backup of its successors, so that it is at most the value of a controller. A belief point is kept if its value
is at least its backup by the upper bound of all points. The others are backed up again.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pomdp_hier._arguments import Floats, Ints, unexpected
from pomdp_hier._io.checkpoint import OTHER_FILE, Checkpoint
from pomdp_hier._progress import never
from pomdp_hier.errors import CheckpointError
from pomdp_hier.planning.certificates.exact_model import fingerprint
from pomdp_hier.planning.point_based.on_numpy import belief_keys
from pomdp_hier.planning.point_based.search import Search
from pomdp_hier.planning.point_based.stage import Stage
from pomdp_hier.pomdp.problem import POMDP

_SLACK = 1e-12  # how far a value may be from its backup, relative to the values; certificates allow 15 times that
_SECONDS, _TIMES = 5.0, 20.0  # the least time between two times of writing, in seconds and in times of writing
_FILE = "bounds of a problem, 1"


class Part(NamedTuple):
    """One array of a stage, as a checkpoint holds it.

    Attributes:
        id: The number of the stage, ``/``, and the name of the array; or ``run`` for the settings.
        data: The array's 64-bit numbers, or JSON text.
        kind: ``"i"``, ``"f"`` or ``"json"``.
    """

    id: str
    data: bytes
    kind: str

    @property
    def possible(self) -> bool:
        """Whether a run can have written this row."""
        return (self.kind == "json") == (self.id == "run") and (self.kind == "json" or len(self.data) % 8 == 0)


@contextmanager
def open_search(path: str | os.PathLike[str] | None) -> Iterator[Checkpoint[Part] | None]:
    """Yield the checkpoint of a search, new or resumed; ``None`` without a path.

    Raises:
        CheckpointError: It is another file, is damaged, or is in use.
    """
    if path is None:
        yield None
        return
    if not isinstance(path, str | os.PathLike):
        raise unexpected("checkpoint", path, "the path of a file, or None")
    with Checkpoint.open(path, _FILE, Part, lambda row: row.possible) as checkpoint:
        yield checkpoint


def settings_of(problem: POMDP, horizon: int | None, start: Any, observation: Any) -> dict[str, Any]:
    """Return the settings that identify a search: the numbers of the problem, the horizon and the start."""
    index = {state: i for i, state in enumerate(problem.states)}
    belief = sorted((index[state], float(p)) for state, p in start.items() if p != 0)
    return {
        "problem": fingerprint(problem),
        "horizon": horizon,
        "start": [list(pair) for pair in belief],
        "observation": None if observation is None else problem.all_observations.index(observation),
    }


# --- writing -------------------------------------------------------------------------------------------------


class SavedSearch:
    """A search that is restored from a checkpoint and written to it at intervals.

    Args:
        checkpoint: The checkpoint.
        search: The search, new; what the checkpoint holds is added to it.
        settings: The `settings_of` the search.

    Raises:
        CheckpointError: The checkpoint is of another problem, horizon or start, or holds no bounds of this problem.
    """

    def __init__(self, checkpoint: Checkpoint[Part], search: Search, settings: dict[str, Any]) -> None:
        self._checkpoint, self._search, self._settings = checkpoint, search, settings
        require_settings(checkpoint, settings)
        self.restored = bool(checkpoint.rows)
        if self.restored:  # to its end, whatever the limits: of the points, some hold by the others alone
            limits = search.stop, search.most_bytes
            search.stop, search.most_bytes = never, np.inf
            try:
                _restore(checkpoint, search)
            finally:
                search.stop, search.most_bytes = limits
        self._took, self._ended = 0.0, time.monotonic()

    def write_if_due(self) -> None:
        """Write the search if the last time was long ago: 5 seconds, and 20 times as long as writing takes."""
        if time.monotonic() - self._ended > max(_SECONDS, _TIMES * self._took):
            self.write()

    def write(self) -> None:
        """Write the search.

        Raises:
            CheckpointError: It cannot be written; what was written before stays.
        """
        began = time.monotonic()
        self.save(self._checkpoint, self._search, self._settings)
        self._ended = time.monotonic()
        self._took = self._ended - began

    @staticmethod
    def save(checkpoint: Checkpoint[Part], search: Search, settings: dict[str, Any]) -> None:
        """Write the vectors and points of a search, in place of earlier ones."""
        needed = _needed(search)
        parts = [Part("run", json.dumps(settings).encode(), "json")]
        for i, stage in enumerate(search.stages):
            arrays = _vectors(stage, needed[i], needed[max(i - 1, 0)]) | _points(stage)
            parts += [Part(f"{i}/{name}", *_packed(array)) for name, array in arrays.items()]
        checkpoint.replace(parts)


def _packed(array: Ints | Floats) -> tuple[bytes, str]:
    kind = "f" if array.dtype.kind == "f" else "i"
    return np.ascontiguousarray(array, dtype=f"<{kind}8").tobytes(), kind


def _vectors(stage: Stage, kept: Ints, kept_below: Ints) -> dict[str, Any]:
    """Return the vectors in use with all vectors that they rest on, and the beliefs of their backups."""
    place = np.full(len(stage.actions), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    below = place
    if stage.next is not None and stage.next is not stage:
        below = np.full(len(stage.next.actions), -1, dtype=np.int64)
        below[kept_below] = np.arange(len(kept_below))
    after = np.array([stage.after[k] for k in kept.tolist()], dtype=np.int64).reshape(len(kept), -1)
    made_at = np.array([stage.made_at.get(k, -1) for k in kept.tolist()], dtype=np.int64)
    index, weight, offsets = _rows(stage, made_at[made_at >= 0])
    return {
        "vectors": stage.archive[kept],
        "actions": np.array([stage.actions[k] for k in kept.tolist()], dtype=np.int64),
        "after": np.full(after.shape, -1) if stage.next is None else below[after],
        "in_use": place[stage.numbers[: stage.in_use]],
        "made": np.flatnonzero(made_at >= 0),
        "made_index": index,
        "made_weight": weight,
        "made_offsets": offsets,
    }


def _needed(search: Search) -> list[Ints]:
    """Return the numbers of the vectors in use, and of those that they rest on, by stage."""
    needed = [set(stage.numbers[: stage.in_use].tolist()) for stage in search.stages]
    for i in range(len(search.stages) - 1, -1, -1):
        stage = search.stages[i]
        if stage.next is None:
            continue
        below = needed[i] if stage.next is stage else needed[i - 1]
        queue = list(needed[i])
        for number in queue:  # grows while it is walked, where a stage follows itself
            for then in stage.after[number].tolist():
                if then not in below:
                    below.add(then)
                    queue += [then] if stage.next is stage else []
    return [np.array(sorted(numbers), dtype=np.int64) for numbers in needed]


def _rows(stage: Stage, nodes: Ints) -> tuple[Ints, Floats, Ints]:
    rows = [stage.pool.row(node) for node in nodes.tolist()]
    offsets = np.cumsum([0, *(len(index) for index, _ in rows)], dtype=np.int64)
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0), offsets
    return np.concatenate([index for index, _ in rows]), np.concatenate([weight for _, weight in rows]), offsets


def _points(stage: Stage) -> dict[str, Any]:
    """Return the points in use, and those at corner beliefs, with their values."""
    points = stage.points.node[: stage.points.count].tolist()
    nodes = np.array(list(dict.fromkeys([*stage.corner_node.values(), *points])), dtype=np.int64)
    index, weight, offsets = _rows(stage, nodes)
    values = np.array([stage.value[node] for node in nodes.tolist()])
    return {"point_index": index, "point_weight": weight, "point_offsets": offsets, "point_values": values}


# --- reading -------------------------------------------------------------------------------------------------


def require_settings(checkpoint: Checkpoint[Part], settings: dict[str, Any]) -> None:
    """Raise an error for a checkpoint of another problem, horizon or start.

    Raises:
        CheckpointError: The checkpoint is of another one, or its settings are damaged.
    """
    if not checkpoint.rows:
        return
    try:
        written = json.loads(checkpoint.rows["run"].data)
        other = next((name for name, value in settings.items() if written[name] != value), None)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(
            f"checkpoint: got damaged settings ({type(error).__name__}); expected those of solve. {OTHER_FILE}"
        ) from error
    if other is not None:
        raise CheckpointError(f"checkpoint: got bounds for another {other}; expected those of this call. {OTHER_FILE}")


def _restore(checkpoint: Checkpoint[Part], search: Search) -> None:
    """Add the vectors and points of a checkpoint to a new search."""
    arrays = {
        name: np.frombuffer(part.data, dtype=f"<{part.kind}8")
        for name, part in checkpoint.rows.items()
        if name != "run"
    }
    first = 0
    try:
        for i, stage in enumerate(search.stages):
            first = _restore_vectors(stage, {name: arrays[f"{i}/{name}"] for name in _VECTORS}, first)
            _restore_points(search, stage, {name: arrays[f"{i}/{name}"] for name in _POINTS})
    except (KeyError, _NotBoundsError) as error:
        raise CheckpointError(
            f"checkpoint: got {error}, which cannot be of bounds of this problem; expected what solve wrote. "
            f"{OTHER_FILE}"
        ) from error
    search.stages[-1].refresh_upper(np.array([search.root]))


_VECTORS = ("vectors", "actions", "after", "in_use", "made", "made_index", "made_weight", "made_offsets")
_POINTS = ("point_index", "point_weight", "point_offsets", "point_values")


class _NotBoundsError(Exception):
    """An array of a file cannot be of bounds of the problem."""


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise _NotBoundsError(what)


def _require_range(array: Ints, least: int, most: int, what: str) -> Ints:
    """Return integers, all of which must be in a range."""
    _require(array.dtype.kind == "i", what)
    _require(not len(array) or (int(array.min()) >= least and int(array.max()) <= most), what)
    return array.astype(np.int64)


def _restore_vectors(stage: Stage, arrays: dict[str, Any], first_below: int) -> int:
    """Add the vectors of a file, which must be at most the backups of their successors.

    Args:
        stage: The stage.
        arrays: The arrays of the file.
        first_below: The number of the first vector of the file in the stage below.

    Returns:
        The number of the first vector added.
    """
    model = stage.model
    n = len(arrays["actions"])
    actions = _require_range(arrays["actions"], 0, model.n_actions - 1, "actions")
    _require(arrays["vectors"].dtype.kind == "f" and arrays["vectors"].size == n * model.size, "vectors")
    vectors = np.array(arrays["vectors"], dtype=np.float64).reshape(n, model.size)
    _require(not (np.isnan(vectors).any() or (vectors == np.inf).any()), "vectors")
    _require(bool((np.isfinite(vectors) <= model.legal[actions]).all()), "legal actions of vectors")
    if stage.next is None:
        then, least = None, -1
    elif stage.next is stage:
        then, least = vectors, 0
    else:
        then, least = stage.next.archive[first_below : len(stage.next.actions)], 0
    _require(arrays["after"].size == n * model.n_observations, "after")
    most = -1 if then is None else len(then) - 1
    after = _require_range(arrays["after"], least, most, "after").reshape(n, model.n_observations)
    in_use = _require_range(arrays["in_use"], 0, n - 1, "in_use")
    made = _require_range(arrays["made"], 0, n - 1, "made")
    nodes = _admitted(stage, arrays["made_index"], arrays["made_weight"], arrays["made_offsets"])
    _require(len(nodes) == len(made), "made")
    own = stage.archive[: len(stage.actions)]  # of blind policies: the scale must not come from the file
    slack = _SLACK * max(stage.scale, float(np.abs(own[np.isfinite(own)]).max(initial=0.0)))
    for k in range(n):
        action, vector = int(actions[k]), vectors[k]
        backup = model.reward[action]
        if then is not None:
            backup = stage.kernels.backup(stage.layout, action, backup, model.discount, then, after[k])
        _require(bool((vector <= backup + slack).all()), f"vector {k}")
    first = len(stage.actions)
    shift = 0 if then is None else first if stage.next is stage else first_below
    for k in range(n):
        stage.add_vector(vectors[k], int(actions[k]), np.maximum(after[k] + shift, 0))
    stage.made_at.update(zip((made + first).tolist(), nodes.tolist(), strict=True))
    blind = stage.numbers[: stage.in_use - n]
    stage.keep_vectors(np.concatenate([blind, in_use + first]))
    return first


def _admitted(stage: Stage, index: Any, weight: Any, offsets: Any) -> Ints:
    """Return the nodes of beliefs that were written, added to the pool."""
    offsets = _require_range(offsets, 0, len(index), "offsets of beliefs")
    index = _require_range(index, 0, stage.model.size - 1, "states of beliefs")
    _require(weight.dtype.kind == "f" and len(weight) == len(index), "weights of beliefs")
    _require(len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(index), "offsets of beliefs")
    sizes = np.diff(offsets)
    _require(bool((sizes > 0).all()), "offsets of beliefs")
    if not len(sizes):
        return np.zeros(0, dtype=np.int64)
    inner = np.ones(len(index), dtype=bool)
    inner[offsets[:-1]] = False
    _require(bool((np.diff(index, prepend=-1)[inner] > 0).all()), "states of beliefs")
    _require(bool(np.isfinite(weight).all() and (weight > 0).all()), "weights of beliefs")
    _require(bool((np.abs(np.add.reduceat(weight, offsets[:-1]) - 1) < 1e-9).all()), "weights of beliefs")
    return stage.admit(offsets, index, weight.astype(np.float64), belief_keys(index, weight, offsets))


def _restore_points(search: Search, stage: Stage, arrays: dict[str, Any]) -> None:
    """Add the points of a file that are upper bounds, and back up the others from these."""
    nodes = _admitted(stage, *(arrays[name] for name in _POINTS[:3]))
    values = arrays["point_values"]
    _require(values.dtype.kind == "f" and len(values) == len(nodes), "values of points")
    _require(bool(np.isfinite(values).all()), "values of points")
    claimed: dict[int, float] = {}
    for node, value in zip(nodes.tolist(), values.tolist(), strict=True):  # the start may have been met again
        claimed[node] = min(value, claimed.get(node, value))
    slack = _SLACK * stage.scale
    while True:
        for node, value in claimed.items():
            stage.open(node)
            if value < stage.pool.upper[node]:
                stage.add_point(node, value, stage.reasons[node])
        wrong = [node for node, value in claimed.items() if search.upper_backup(stage, node) > value + slack]
        if not wrong:
            break
        for node in wrong:
            del claimed[node]
        stage.forget_points()
    for node in set(nodes.tolist()) - claimed.keys():
        search.upper_backup(stage, node)
