"""Choice and run of an engine, for the stops of searches and for expected search lengths.

``engine="auto"`` selects numba if it is installed, supports the policy and the features, and pays (`_imports.pays`).
The time of numpy is estimated from the numbers of levels and similarities, at the rates `STEP` and `_pair_seconds`. The
estimate is correct within a factor of four; wide nodes, whose similarities are matrix products, are faster.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from scipy.special import expit

from pomdp_hier import _imports
from pomdp_hier._arguments import Floats, Ints, check_choice
from pomdp_hier._engines import on_numpy
from pomdp_hier._engines.on_numpy import Step, own_steps
from pomdp_hier._engines.task import Advance, AlwaysDescend, HindsightRule, LookAhead, Rule, SearchRoot, Stops, Task
from pomdp_hier.errors import Argument, MissingExtraError, ParameterError, Setting
from pomdp_hier.features.affinity import Affinity, Batch
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.features.membership import Children, at_one_node
from pomdp_hier.hierarchy.arrays import sum_below, sum_to_root
from pomdp_hier.hierarchy.tree import Hierarchy

STEP = 1.5e-4
"""CPU seconds of numpy per level and batch of items, for any batch size."""

COMPILATION = {"descend_all": 1.9, "plan_all": 3.1, "search_all": 1.3}
"""CPU seconds to compile the loops of `on_numba`, with the functions that they call."""

_PLANNING = 3.0  # slowdown of a planner, which keeps bounds per layer
_SAMPLE = 64  # number of searches from which the length of the others is estimated
_NUMBA_FILE = Path(__file__).with_name("on_numba.py")


def _pair_seconds(n_columns: int) -> float:
    """Return the CPU seconds of numpy per similarity of an item to a child."""
    return 4e-8 + 1e-9 * n_columns


def similarities_of(hierarchy: Hierarchy) -> float:
    """Return the number of similarities to children on all true paths."""
    return float(hierarchy.sizes[hierarchy.parent[hierarchy.child_nodes]].sum(dtype=np.float64))


def seconds_at_most(hierarchy: Hierarchy, n_columns: int, n_items: int, n_batches: float) -> float:
    """Return an upper bound of the CPU seconds of numpy for ``n_items`` searches in ``n_batches`` batches."""
    share = n_items / hierarchy.n_items
    levels = int(hierarchy.height) + 1
    return STEP * n_batches * levels + _pair_seconds(n_columns) * share * similarities_of(hierarchy)


def numpy_seconds(task: Task, items: Ints, enough: float) -> float:
    """Return the estimated CPU seconds of numpy for the searches for these items.

    Most searches stop far above the leaf, and planners look beyond the stop. If the upper bound exceeds ``enough``, a
    sample is run until the estimate does as well.
    """
    rule, tree, affinity = task.rule, task.hierarchy, cast(DenseAffinity, task.affinity)
    n_batches, per_pair = -(-len(items) // affinity.batch_items), _pair_seconds(affinity.n_columns)
    per_step = STEP * n_batches
    most = seconds_at_most(tree, affinity.n_columns, len(items), n_batches)
    if isinstance(rule, LookAhead) and rule.depth != 1:
        per_step, per_pair, levels = _PLANNING * per_step, _PLANNING * per_pair, int(tree.height) + 1
        most = levels * (per_step * levels + per_pair * len(items) * tree.n_nodes)
    elif isinstance(rule, AlwaysDescend):  # numpy descends through only children at once
        choices = sum_to_root(tree.parent, (np.diff(tree.child_offsets) > 1).astype(np.int64)).max()
        most -= per_step * (int(tree.height) - int(choices))
    if most <= enough or not isinstance(rule, LookAhead):
        return most
    places = np.linspace(0, len(items) - 1, min(_SAMPLE, len(items))).astype(np.int64)
    sample = items[np.argsort(tree.starts[items], kind="stable")[places]]
    meter = _Meter(affinity, per_step, per_pair * len(items) / len(sample), enough)
    with suppress(_EnoughError):
        on_numpy.run(replace(task, affinity=meter), sample, lambda done: None)
    return min(most, meter.seconds)


class _EnoughError(Exception):
    """The estimate is large enough."""


class _Meter:
    """Similarities that accumulate their estimated cost."""

    def __init__(self, affinity: Affinity, per_step: float, per_pair: float, enough: float) -> None:
        self.hierarchy, self.batch_items, self.seconds = affinity.hierarchy, affinity.batch_items, 0.0
        self._affinity, self._per_step, self._per_pair, self._enough = affinity, per_step, per_pair, enough
        self._batch: Batch

    def batch(self, items: Ints) -> Batch:
        self._batch = self._affinity.batch(items)
        return self

    def expand(self, rows: Ints, parents: Ints, children: Children | None = None) -> Floats:
        found = self._batch.expand(rows, parents, children)
        self.seconds += self._per_step + self._per_pair * len(found)
        if self.seconds > self._enough:
            raise _EnoughError
        return found


def choose_engine(
    task: Task, engine: str, items: Sequence[int] | Ints, seconds: float | None = None, kernel: str | None = None
) -> str:
    """Return the engine for the searches for these items."""
    check_choice("engine", engine, ("auto", "numpy", "numba"))
    if engine == "numpy":
        return engine
    known = isinstance(task.affinity, DenseAffinity) and isinstance(
        task.rule, LookAhead | AlwaysDescend | SearchRoot | HindsightRule
    )
    if engine == "auto":
        if isinstance(task.rule, SearchRoot) or not (known and _imports.is_installed()):
            return "numpy"
        compilation = {kernel: COMPILATION[kernel]} if kernel else _compilation(task.rule)
        task = replace(task, rule=AlwaysDescend()) if kernel else task  # search lengths are those of complete paths
        if seconds is None:
            seconds = numpy_seconds(task, np.asarray(items), _imports.price(_NUMBA_FILE, compilation))
        return "numba" if _imports.pays(seconds, _NUMBA_FILE, compilation) else "numpy"
    if not _imports.is_installed():
        raise MissingExtraError(Setting("engine", "numba"), " needs numba. Install it: pip install 'pomdp-hier[fast]'")
    if not known:
        raise ParameterError(
            Argument("engine"),
            ": got 'numba'; expected a built-in policy, and dense features with a built-in similarity. Pass ",
            Setting("engine", "auto", "numpy"),
            ".",
        )
    return engine


def _compilation(rule: Rule) -> dict[str, float]:
    name = "plan_all" if isinstance(rule, LookAhead) and rule.depth != 1 else "descend_all"
    return {name: COMPILATION[name]}


def run_engine(task: Task, items: Ints, engine: str, advance: Advance) -> Stops:
    """Return the stops of the searches for these items, by the engine of that name."""
    if isinstance(task.rule, SearchRoot):
        advance(len(items))
        return Stops(np.full(len(items), task.hierarchy.root), np.ones(len(items)))
    if engine == "numba":
        from pomdp_hier._engines import on_numba

        return on_numba.run(task, items, advance)
    return on_numpy.run(task, items, advance)


def labels_below(hierarchy: Hierarchy) -> Ints:
    """Return the number of labels below each node: the children of the node and of all nodes below ``[n_nodes]``.

    Example:
        >>> labels_below(Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4))
        array([0, 0, 0, 0, 0, 0, 2])
    """
    return sum_below(hierarchy.parent, np.diff(hierarchy.child_offsets))


def run_lengths(task: Task, items: Ints, engine: str, advance: Advance) -> tuple[Floats, Floats]:
    """Return the expected number of items looked at, the item included, and of labels read, per item ``[m]`` each.

    At a node the searcher enters the children in a random order, drawn without replacement with probabilities
    proportional to eta. A sibling c comes before the correct child r with probability ``eta_c / (eta_c + eta_r)``. It
    is ``sigma((s_c - s_r) / delta_t)`` with the logistic function sigma (Plackett and Luce). Then each item below c is
    looked at, and each label below it read.
    """
    below = labels_below(task.hierarchy)
    if engine == "numba":
        from pomdp_hier._engines import on_numba

        return on_numba.run_lengths(task, items, below, advance)
    return _on_numpy(task, items, below, advance)


def _on_numpy(task: Task, items: Ints, below: Ints, advance: Advance) -> tuple[Floats, Floats]:
    tree, done = task.hierarchy, 0
    looks = (tree.sizes[task.ends].astype(np.float64) + 1.0) / 2.0
    ends, labels = on_numpy.ends_of_runs(tree), np.zeros(tree.n_items)
    if ends is not None:  # one label per only child, and no item before the right one
        passed = sum_to_root(tree.parent, (ends != np.arange(tree.n_nodes)).astype(np.int64))
        labels += np.where(task.ends == tree.root, 0, passed[tree.parent[task.ends]])
    weights = np.stack((tree.sizes, below), axis=1).astype(np.float64)
    for step in own_steps(task, items, ends=ends):
        first = _before(task, step, weights)
        looks[step.items] += first[:, 0]
        labels[step.items] += first[:, 1] + step.counts
        if step.level == 0:
            advance(len(step.items))
            done += len(step.items)
    advance(len(items) - done)
    return looks[items], labels[items]


def _before(task: Task, step: Step, weights: Floats) -> Floats:
    """Return the expected weights of the siblings that are entered before the correct child ``[m, 2]``."""
    gaps, own_at = step.similarities, step.own_at
    with np.errstate(over="ignore"):  # at temperatures near 0, sigma is 0 or 1
        gaps = gaps - np.repeat(gaps[own_at], step.counts)
        gaps /= np.repeat(task.temperatures[task.hierarchy.levels[step.nodes]], step.counts)
    before = expit(gaps, out=gaps)
    before[own_at] = 0.0
    if at_one_node(step.nodes):
        width = int(step.counts[0])
        return np.asarray(before.reshape(-1, width) @ weights[step.children[:width]])
    return np.asarray(np.add.reduceat(before[:, None] * weights[step.children], step.firsts))
