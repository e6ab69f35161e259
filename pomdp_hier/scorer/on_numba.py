"""The engine in numba: the items in leaf order, in pieces over threads; each item's result depends on it alone."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np

from pomdp_hier.errors import ParameterError
from pomdp_hier.features.dense import DenseAffinity, DenseKind
from pomdp_hier.features.members import Ints
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean
from pomdp_hier.hierarchy.arrays import sum_to_root
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.scorer import at_node, kernels, on_path
from pomdp_hier.scorer.rules import AlwaysDescend, Clairvoyant, LookAhead, SearchRoot
from pomdp_hier.scorer.task import Advance, Stops, Task

__all__ = ["run"]

PIECE_ITEMS = 4096
PIECE_STEPS = 1 << 20
_WITHOUT_END = 1 << 40

Kernel = Callable[[Ints, Any, Any], None]


def run(task: Task, items: Ints, advance: Advance) -> Stops:
    """Return where the search for each of these items stops; the same bits for any number of threads."""
    tree = task.hierarchy
    nodes = np.full(len(items), tree.root)
    probabilities = np.ones(len(items))
    if isinstance(task.rule, SearchRoot):
        advance(len(items))
        return Stops(nodes, probabilities)
    kernel = _kernel(task)
    order = np.argsort(tree.starts[items])

    size = PIECE_ITEMS
    if not isinstance(task.rule, LookAhead):
        # To the leaves of a tree of thousands of levels a piece takes long, and whoever stops the run waits for it.
        size = min(size, max(64, PIECE_STEPS // (int(tree.height) + 1)))

    def work(low: int) -> int:
        part = order[low : low + size]
        where, chance = np.empty(len(part), dtype=np.int64), np.empty(len(part))
        kernel(items[part], where, chance)
        nodes[part], probabilities[part] = where, chance
        return len(part)

    lows = range(0, len(items), size)
    workers = min(task.threads or _usable_cpus(), len(lows))
    if workers <= 1:
        for low in lows:
            advance(work(low))
        return Stops(nodes, probabilities)
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, low) for low in lows]
        try:
            for future in as_completed(futures):
                advance(future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Stops(nodes, probabilities)


def _usable_cpus() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _kernel(task: Task) -> Kernel:
    """Return what scores some items, writing nodes and probabilities."""
    tree, rule, affinity = task.hierarchy, task.rule, task.affinity
    if not isinstance(affinity, DenseAffinity):
        raise ParameterError("the numba engine takes dense features; use engine='numpy'")
    forest, table, options = _forest(task), _table(affinity), _options(affinity.kind)
    counts, height = np.diff(tree.child_offsets), int(tree.height)
    if isinstance(rule, LookAhead) and rule.depth != 1:
        longest = int(sum_to_root(tree.parent, counts).max())
        depth = _WITHOUT_END if rule.depth is None else rule.depth
        return lambda items, nodes, probabilities: kernels.plan_all(
            forest,
            table,
            options,
            items,
            depth,
            rule.tie == "descend",
            task.enter_own_singleton,
            at_node.scratch(table.centre.size, longest, height),
            on_path.path_scratch(height),
            nodes,
            probabilities,
        )
    if not isinstance(rule, LookAhead | AlwaysDescend | Clairvoyant):
        raise ParameterError(f"policy {rule!r} does not run in numba; use engine='numpy'")
    widest = int(counts.max())
    policy = 0 if isinstance(rule, LookAhead) else 1 if isinstance(rule, AlwaysDescend) else 2
    tie_descends = isinstance(rule, AlwaysDescend) or rule.tie == "descend"
    return lambda items, nodes, probabilities: kernels.descend_all(
        forest,
        table,
        options,
        items,
        policy,
        tie_descends,
        task.enter_own_singleton,
        at_node.scratch(table.centre.size, widest, 0),
        on_path.path_scratch(height),
        nodes,
        probabilities,
    )


def _forest(task: Task) -> at_node.Forest:
    tree, rewards = task.hierarchy, task.rewards
    plans = isinstance(task.rule, LookAhead) and task.rule.depth != 1
    ranks, largest = _ranks(tree)
    counts = np.diff(tree.child_offsets)
    columns = (tree.child_offsets[:-1], counts, tree.starts, tree.sizes, tree.levels, tree.parent, ranks, largest)
    # Half the memory, and half of what an item has to read, for trees that are not too large for it.
    small = tree.n_nodes < np.iinfo(np.int32).max
    places = np.empty((tree.n_nodes, len(columns)), dtype=np.int32 if small else np.int64)
    worths = np.empty((tree.n_nodes, 3))
    for at, column in enumerate(columns):
        places[:, at] = column
    for at, column in enumerate((rewards.reward, rewards.rise, 1.0 / tree.sizes)):
        worths[:, at] = column
    return at_node.Forest(
        root=int(tree.root),
        places=_read_only(places),
        worths=_read_only(worths),
        potential=_read_only(task.potential if plans else np.empty(0)),
        child_nodes=tree.child_nodes,
        temperatures=_read_only(task.temperatures),
    )


def _ranks(tree: Hierarchy) -> tuple[Ints, Ints]:
    """Return each node's rank among its siblings (-1 for what is no cluster), and that of its largest child."""
    counts, sizes = np.diff(tree.child_offsets), tree.sizes[tree.child_nodes]
    inner = np.flatnonzero(counts)
    ranks, largest = np.full(tree.n_nodes, -1), np.zeros(tree.n_nodes, dtype=np.int64)
    ranks[tree.root] = 0
    if len(inner):
        ranks[tree.child_nodes] = np.arange(len(sizes)) - np.repeat(tree.child_offsets[inner], counts[inner])
        most = np.maximum.reduceat(sizes, tree.child_offsets[inner])
        chosen = tree.child_nodes[sizes == np.repeat(most, counts[inner])][::-1]
        largest[tree.parent[chosen]] = ranks[chosen]  # of equals, the first is written last
    return ranks, largest


def _table(affinity: DenseAffinity) -> at_node.Table:
    return at_node.Table(
        features=_read_only(affinity.features),
        scales=_read_only(np.stack([affinity.largest, affinity.lengths], axis=1)),
        centre=_read_only(affinity.centre),
        sums=_read_only(affinity.sums),
    )


def _options(kind: DenseKind) -> at_node.Options:
    code = at_node.NEGATIVE
    if isinstance(kind, Cosine):
        code = at_node.COSINE
    elif isinstance(kind, InverseSquaredEuclidean):
        code = at_node.INVERSE
    own = kind.own_singleton
    return at_node.Options(
        kind=code,
        leave_out=kind.leave_out,
        mean=getattr(kind, "mean", False),
        epsilon=getattr(kind, "epsilon", 0.0),
        fixed=own is not None,
        own_singleton=0.0 if own is None else float(own),
    )


def _read_only(array: Any) -> Any:
    """Return a read-only C-contiguous view, so that one compiled version serves writable and read-only arrays."""
    view = np.ascontiguousarray(array).view(np.ndarray)[...]
    view.setflags(write=False)
    return view
