"""HQS on several processes or machines with Dask: one task per partition of whole subtrees, where its rows are.

The features are read once, in row ranges, and dealt out by partition. Each partition returns the sums of the few
clusters that others have to know. The top of the tree is added up here and sent to all. Then each partition scores its
own items. Nothing else moves, and whatever a lost worker held is computed again from the features.
"""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from pomdp_hier._arguments import Floats, Ints, check_integer
from pomdp_hier._engines.dispatch import choose_engine, seconds_at_most
from pomdp_hier._engines.task import LookAhead, NodeRewards, Stops, Task, Tie
from pomdp_hier._imports import from_extra
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import brief
from pomdp_hier.distributed import work
from pomdp_hier.distributed.sources import Chunk, Source, as_source
from pomdp_hier.distributed.work import Cut, TreePart
from pomdp_hier.errors import Argument, ParameterError, PythonAdvice, Setting
from pomdp_hier.features.dense import refuse_large
from pomdp_hier.features.items import join_rows
from pomdp_hier.features.similarity import (
    Cosine,
    InverseSquaredEuclidean,
    NegativeEuclidean,
    Similarity,
    as_similarity,
)
from pomdp_hier.features.validation import check_shape, refuse_non_finite, warn_degenerate_rows
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import Reward, node_rewards, temperatures
from pomdp_hier.hqs.inputs import Settings, Weights, check_weights
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import as_result, with_weights


def evaluate_distributed(
    X: Any,
    hierarchy: Hierarchy,
    *,
    client: Any = None,
    similarity: Similarity = "cosine",
    delta: float = 0.01,
    nu: float = 1.0,
    tie: Tie = "descend",
    policy: Any = "one-step",
    reward: Reward | None = None,
    enter_own_singleton: bool = True,
    engine: str = "auto",
    partition_items: int = 100_000,
    id_column: str | None = None,
    progress: bool = False,
    sample_weight: Weights | None = None,
    weight_column: str | None = None,
) -> HQSResult:
    """Return the Hierarchy Quality for Search, computed by the workers of a Dask cluster.

    The values are those of :func:`~pomdp_hier.hqs.score.evaluate` to 1e-12, for any number of workers, for none, and
    for partitions of any size. With numba they are bit-for-bit identical.

    Args:
        X: Features ``[N, D]``: an array, a scipy sparse matrix, a Dask array, or a path. A path names a ``.parquet``,
            ``.npy`` or ``.npz`` file or a folder of them, or is a list of such files. Every worker has to see it.
            Fastest where the rows are in the tree's leaf order. Sparse rows stay sparse, in CSR.
        hierarchy: The tree over the N items, in the order of the rows, or by the ids of a Parquet column.
        client: A ``distributed.Client``, or the address of a scheduler; None for this process, one partition
            after the other.
        similarity: ``"cosine"``, ``"inverse_sqeuclidean"``, ``"negative_euclidean"``, or one of their records.
        delta, nu, tie, reward, enter_own_singleton: As for `evaluate`.
        policy: A stopping rule, or the name of one, that looks a number of levels ahead: not ``"optimal"``.
        engine: ``"auto"``, ``"numpy"`` or ``"numba"``, on every worker.
        partition_items: The approximate number of items per partition.
        id_column: The Parquet column of item ids, by default ``id``, ``item`` or ``item_id``.
        progress: Whether to show a progress bar on stderr.
        sample_weight: The weights of the items in the mean, one per row, or by item id, as for `evaluate`.
        weight_column: The Parquet column of these weights, in their place.

    Raises:
        FeatureError: The features cannot be used.
        ParameterError: A setting cannot be used or needs all features in one process. Or the workers run out of memory
            or die on one partition, or the scheduler is lost.
        MissingExtraError: Dask, or pyarrow for Parquet, is not installed.

    Example:
        >>> import tempfile
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/part-0.npy", [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        ...     np.save(f"{folder}/part-1.npy", [[0.1, 0.9]])
        ...     evaluate_distributed(folder, tree, delta=0.1, partition_items=2)
        HQSResult(score=0.622188, 4 items)
    """
    settings = Settings(similarity, delta, nu, tie, policy, reward, enter_own_singleton)
    settings.check_tie()
    if isinstance(settings.delta, str):
        raise ParameterError(
            Argument("delta"),
            f": got {brief(settings.delta)}; expected a number, as each worker reads a part of the features. Calibrate "
            "on a sample of the items, in one process",
            PythonAdvice(", with calibrate_delta(X, hierarchy).delta"),
            ".",
        )
    require_hierarchy(hierarchy)
    check_integer("partition_items", partition_items, 1)
    kind = as_similarity(similarity)
    if not isinstance(kind, Cosine | InverseSquaredEuclidean | NegativeEuclidean):
        raise ParameterError(
            Argument("similarity"),
            f": got {brief(similarity)}, which needs all members of a cluster in one place; expected 'cosine', "
            "'inverse_sqeuclidean' or 'negative_euclidean'. Take one of these, or score in one process",
            PythonAdvice(" with evaluate(X, hierarchy)"),
            ".",
        )
    rule = settings.rule
    if rule is None or (isinstance(rule, LookAhead) and rule.depth is None):
        raise ParameterError(
            Argument("policy"),
            f": got {brief(policy)}, which may need the whole tree; expected a policy with a bounded look-ahead, "
            "such as "
            "'one-step'",
            PythonAdvice(" or LookAhead(depth)"),
            ". Take that, or score in one process",
            PythonAdvice(" with evaluate(X, hierarchy)"),
            ".",
        )
    if weight_column is not None and sample_weight is not None:
        raise ParameterError(
            f"weight_column: got {brief(weight_column)} and sample_weight; expected only one of the two. Leave one out."
        )
    source = as_source(X, id_column, weight_column)
    rows_of_items = _rows_of_items(source, hierarchy)
    given, name = (source.weights(), "weight_column") if sample_weight is None else (sample_weight, "sample_weight")
    weights = check_weights(given, hierarchy, rows_of_items, name)
    plan = work.Plan(
        kind=kind,
        rule=rule,
        temperatures=temperatures(np.arange(int(hierarchy.height) + 1), delta, nu),
        enter_own_singleton=enter_own_singleton,
        engine=engine,
        n_items=hierarchy.n_items,
    )
    plan = replace(plan, engine=_engine(plan, hierarchy, source))
    rewards = node_rewards(hierarchy, reward)
    reach = rule.depth if isinstance(rule, LookAhead) and rule.depth is not None else 1
    cut = Cut.of(hierarchy, partition_items, reach)
    with _runner(client) as runner:
        stops = _Run(runner, source, hierarchy, rewards, plan, cut).stops(rows_of_items, progress)
    config = {**settings.record(), "engine": plan.engine, "partition_items": partition_items}
    result = as_result(stops, hierarchy, rewards, config)
    return result if weights is None else with_weights(result, weights, np.arange(hierarchy.n_items))


class _Run:
    """One run: the partitioned tree, and the tasks that were submitted."""

    def __init__(
        self, runner: "_Runner", source: Source, tree: Hierarchy, rewards: NodeRewards, plan: work.Plan, cut: Cut
    ) -> None:
        self.runner, self.source, self.tree, self.rewards = runner, source, tree, rewards
        self.plan, self.cut = plan, cut
        self.parts = [self._part(cut.nodes(number)) for number in range(len(cut))]
        in_top = np.isin(cut.shared, cut.top)
        owner = np.searchsorted(cut.bounds, tree.starts[cut.shared], side="right") - 1
        owner[in_top] = -1
        self.shared_of = [cut.shared[owner == number] for number in range(len(cut))]

    def stops(self, rows_of_items: Ints, progress: bool) -> Stops:
        """Return where each item's search stops."""
        tree, runner, parts = self.tree, self.runner, self.parts
        rows, centre = self._deal(rows_of_items)
        held = [runner.submit(_itself, part) for part in parts]
        summaries = runner.gather(
            [
                runner.submit(work.sum_up, self.plan, part, table, shared, centre)
                for part, table, shared in zip(held, rows, self.shared_of, strict=True)
            ]
        )
        if isinstance(self.plan.kind, Cosine):
            zero_rows = np.sort(np.concatenate([summary.zero_rows for summary in summaries]))
            warn_degenerate_rows(zero_rows, self.source.shape[1])
        near = self._part(np.union1d(self.cut.top, self.cut.boundary))
        part = self._part(self.cut.shared)
        shared = runner.submit(_itself, work.share(self.plan, self.cut, part, near, summaries, centre))
        scored = [
            runner.submit(work.score, self.plan, part, table, shared) for part, table in zip(held, rows, strict=True)
        ]
        nodes, probabilities = np.empty(tree.n_items, dtype=np.int64), np.empty(tree.n_items)
        with shown_progress(progress, "HQS", "item", tree.n_items) as bar:
            for number, (where, chance) in runner.each(scored):
                items = self._items(number)
                nodes[items], probabilities[items] = where, chance
                bar.update(len(items))
        return Stops(nodes, probabilities)

    def _part(self, nodes: Ints) -> TreePart:
        return TreePart.of(self.tree, self.rewards, nodes)

    def _items(self, number: int) -> Ints:
        part = self.parts[number]
        return part.nodes[: part.n_items(self.tree.n_items)]

    def _deal(self, rows_of_items: Ints) -> tuple[list[Any], Floats]:
        """Return the rows of each partition, read and checked by the workers, and the centre."""
        n_rows, n_columns = self.source.shape
        piece = work.piece_rows(n_rows, n_columns)
        unit = piece * max(1, round(n_rows / len(self.cut) / piece))
        cuts = [*range(0, n_rows, unit), n_rows]
        chunks = [self.runner.read(chunk) for chunk in self.source.ranges(cuts)]
        checks = [
            self.runner.submit(work.inspect, chunk, piece, low) for chunk, low in zip(chunks, cuts[:-1], strict=True)
        ]
        rows = [self._rows(chunks, unit, rows_of_items[self._items(number)]) for number in range(len(self.cut))]
        return rows, self._centre(self.runner.gather(checks))

    def _rows(self, chunks: Sequence[Any], unit: int, wanted: Ints) -> Any:
        """Return the rows with these indices, taken from their chunks."""
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        numbers, firsts = np.unique(ascending // unit, return_index=True)
        pieces = [
            self.runner.submit(work.pick, chunks[number], mine - number * unit)
            for number, mine in zip(numbers.tolist(), np.split(ascending, firsts[1:]), strict=True)
        ]
        return self.runner.submit(work.assemble, pieces, np.argsort(order))

    def _centre(self, checks: Sequence[work.Inspection]) -> Floats:
        refuse_non_finite(np.concatenate([check.bad for check in checks]))
        n_rows, n_columns = self.source.shape
        centre = np.zeros(n_columns)
        if isinstance(self.plan.kind, Cosine):
            return centre
        refuse_large(max(check.largest for check in checks))
        for check in checks:
            for total in check.sums:
                centre += total / n_rows
        return centre


def _itself(part: Any) -> Any:
    """Return the argument: as a task, it can be recomputed when a worker is lost."""
    return part


def _rows_of_items(source: Source, hierarchy: Hierarchy) -> Ints:
    """Return the feature row of each item."""
    ids = source.ids()
    if ids is not None:
        return join_rows(ids, hierarchy.item_labels)
    check_shape(source.shape, hierarchy.n_items)
    return np.arange(hierarchy.n_items)


def _engine(plan: work.Plan, hierarchy: Hierarchy, source: Source) -> str:
    """Return the engine for the plan on the tree, chosen on a task with one item."""
    one, n_columns = Hierarchy(np.array([-1]), 1), source.shape[1]
    affinity = work.part_affinity(plan, csr_matrix([[1.0]]) if source.sparse else np.ones((1, 1)), one, np.zeros(1))
    task = Task(affinity, node_rewards(one), plan.temperatures, plan.rule, plan.enter_own_singleton)
    n_items = hierarchy.n_items
    return choose_engine(
        task, plan.engine, [0], seconds_at_most(hierarchy, n_columns, n_items, -(-n_items // affinity.batch_items))
    )


class _Runner(Protocol):
    """Runner of tasks; a result of `submit` or `read` can be an argument of later tasks."""

    def submit(self, function: Any, *arguments: Any) -> Any: ...
    def read(self, chunk: Any) -> Any: ...
    def gather(self, handles: Sequence[Any]) -> list[Any]: ...
    def each(self, handles: Sequence[Any]) -> Iterator[tuple[int, Any]]: ...


class _Here:
    """Runs every task at once, in this process."""

    def submit(self, function: Any, *arguments: Any) -> Any:
        return function(*arguments)

    def read(self, chunk: Any) -> Any:
        return chunk.rows() if isinstance(chunk, Chunk) else chunk.compute(scheduler="synchronous")

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        return list(handles)

    def each(self, handles: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        return enumerate(handles)


class _OnDask:
    """Runs tasks on the workers of a client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.submit = partial(client.submit, pure=False)

    def read(self, chunk: Any) -> Any:
        return self.submit(Chunk.rows, chunk) if isinstance(chunk, Chunk) else self.client.compute(chunk)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        results: list[Any] = self.client.gather(list(handles))
        return results

    def each(self, handles: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        as_completed = _distributed().as_completed
        number = {handle.key: at for at, handle in enumerate(handles)}
        for handle, result in as_completed(handles, loop=self.client.loop, with_results=True):
            yield number[handle.key], result


def local_cluster(n_workers: int) -> Any:
    """Return a Dask cluster of processes on this machine, with one thread each: on loopback, without a dashboard.

    Its ``scheduler_address`` is a client for `evaluate_distributed`. Use it in a ``with`` statement, which ends it.

    Raises:
        MissingExtraError: If Dask is not installed.
    """
    return _distributed().LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # with None it would listen on one fixed port, and warn where that is taken
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.ERROR,
    )


def _distributed() -> Any:
    return from_extra("dask", "distributed", "this needs Dask")


@contextmanager
def _cluster_lost(distributed: Any) -> Iterator[None]:
    """Raise the error of this package when workers run out of memory or die, or the scheduler is lost."""
    try:
        yield
    except (MemoryError, distributed.KilledWorker) as error:
        what = "died, one after another," if isinstance(error, distributed.KilledWorker) else "ran out of memory"
        raise ParameterError(
            f"client: got workers that {what} on one partition ({error or type(error).__name__}); expected enough "
            "memory. Set smaller partitions: ",
            Setting("partition_items"),
            ", or give the workers more memory.",
        ) from error
    except (CancelledError, distributed.comm.CommClosedError) as error:
        raise ParameterError(
            f"client: got a scheduler that was lost ({brief(str(error))}); expected one that answers. "
            "Start it and run again."
        ) from error


@contextmanager
def _runner(client: Any) -> Iterator[_Runner]:
    if client is None:
        yield _Here()
        return
    distributed = _distributed()
    import dask

    # A partition's tree goes out once, to where it is needed: Dask's advice to scatter it is the slower way.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        if isinstance(client, str):
            try:
                distributed.comm.get_address_host_port(client)  # a client that cannot parse it waits a minute to close
                connected = distributed.Client(client, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ParameterError(
                    f"client: got {brief(client)}, where no scheduler answers ({error}); expected an address, such as tcp://host:8786."
                ) from error
            with connected, _cluster_lost(distributed):
                yield _OnDask(connected)
        elif isinstance(client, distributed.Client):
            with _cluster_lost(distributed):
                yield _OnDask(client)
        else:
            raise ParameterError(f"client: got {brief(client)}; expected a distributed.Client, an address or None.")
