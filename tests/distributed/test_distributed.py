"""Partitions of a tree, scored here and on workers: the same values as in one place, and none lost with a worker."""

import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from pomdp_hier._engines.task import HindsightRule
from pomdp_hier.distributed import work
from pomdp_hier.distributed.evaluate import evaluate_distributed, local_cluster
from pomdp_hier.distributed.work import Cut, cut_bounds
from pomdp_hier.errors import DataWarning, FeatureError, ParameterError
from pomdp_hier.features import validation
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs import LookAhead
from pomdp_hier.hqs.score import evaluate
from tests.extras import INSTALLED_ENGINES
from tests.worker_killer import KillsOnce, NoRoom

SIMILARITIES = ("cosine", "inverse_sqeuclidean", "negative_euclidean")


def same(values, expected):
    """Equal to 1e-12: numpy's products depend on the shapes of the matrices, which depend on the partitions."""
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def random_tree(rng: np.random.Generator, n_items: int, singletons: bool) -> Hierarchy:
    """A tree of every shape: wide and narrow nodes, single items beside clusters, chains of one child."""
    nodes = list(rng.permutation(n_items).tolist())
    lists = []
    while len(nodes) > 1 or not lists:
        width = min(len(nodes), int(rng.choice([1, 2, 3, 8])))
        chosen = [nodes.pop(int(rng.integers(len(nodes)))) for _ in range(width)]
        lists.append(chosen)
        nodes.append(n_items + len(lists) - 1)
        if width == 1 and len(lists) > 2 * n_items:
            break
    if len(nodes) > 1:
        lists.append(nodes)
    return Hierarchy.from_children(lists, n_items, singletons=singletons)


@pytest.fixture(scope="module")
def case():
    """Four levels over 1,200 items in an order that has nothing to do with the tree, float32."""
    rng = np.random.default_rng(1)
    n_items = 1200
    leaf = rng.permutation(np.repeat(np.arange(120), 10))
    middle, top = np.repeat(np.arange(24), 5), np.repeat(np.arange(4), 6)
    parent = np.concatenate([n_items + leaf, n_items + 120 + middle, n_items + 144 + top, [n_items + 148] * 4, [-1]])
    centres = rng.normal(size=(120, 8)) + 2 * rng.normal(size=(24, 8))[middle]
    X = (centres[leaf] + rng.normal(size=(n_items, 8))).astype(np.float32)
    return X, Hierarchy(parent, n_items)


@pytest.fixture
def folder(case, tmp_path):
    """The features as files of unequal length."""
    for number, rows in enumerate(np.split(case[0], [100, 750, 751])):
        np.save(tmp_path / f"part-{number}.npy", rows)
    return tmp_path


@pytest.mark.slow
@given(st.data())
def test_partitions_score_as_the_whole(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))
    n_items = data.draw(st.integers(2, 60), label="items")
    tree = random_tree(rng, n_items, data.draw(st.booleans(), label="singletons"))
    X = np.round(rng.normal(size=(n_items, 3)), 1) + 0.05
    options = {
        "similarity": data.draw(st.sampled_from(SIMILARITIES)),
        "delta": data.draw(st.sampled_from([0.05, 0.5])),
        "policy": data.draw(st.sampled_from(["one-step", "descend", HindsightRule(), LookAhead(2), LookAhead(3)])),
        "enter_own_singleton": data.draw(st.booleans()),
        "engine": data.draw(st.sampled_from(INSTALLED_ENGINES)),
    }
    import dask.array as da

    features = da.from_array(X, chunks=(max(1, n_items // 3), 2))
    whole = evaluate(X, tree, **options)
    parts = evaluate_distributed(features, tree, partition_items=data.draw(st.integers(1, n_items)), **options)
    np.testing.assert_array_equal(parts.stop_nodes, whole.stop_nodes)
    if options["engine"] == "numba":
        np.testing.assert_array_equal(parts.values, whole.values)
    else:
        np.testing.assert_allclose(parts.values, whole.values, atol=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 80), st.integers(1, 80), st.booleans())
def test_partitions_are_whole_subtrees_and_share_only_the_top_and_its_children(seed, n_items, size, singletons):
    tree = random_tree(np.random.default_rng(seed), n_items, singletons)
    cut = Cut.of(tree, size, 1)
    assert cut.bounds[0] == 0
    assert cut.bounds[-1] == n_items
    owner = np.full(tree.n_nodes, -1)
    for number in range(len(cut)):
        owner[cut.nodes(number)] = number
        inside = tree.item_order[cut.bounds[number] : cut.bounds[number + 1]]
        assert set(inside.tolist()) == set(cut.nodes(number)[cut.nodes(number) < n_items].tolist())
    assert (owner[cut.top] == -1).all()
    assert len(cut.top) == (owner == -1).sum()
    held = np.flatnonzero((owner >= 0) & (tree.parent >= 0))
    up = owner[tree.parent[held]]
    assert ((up == owner[held]) | (up == -1)).all()
    children = np.flatnonzero(np.isin(tree.parent, cut.top))
    np.testing.assert_array_equal(cut.shared, np.union1d(cut.top, children))
    assert len(cut.offsets) == len(cut.bounds)
    below = children[tree.is_cluster[children]]
    two = np.union1d(cut.shared, np.flatnonzero(np.isin(tree.parent, below) & tree.is_cluster))
    np.testing.assert_array_equal(Cut.of(tree, size, 2).shared, two)
    every = np.flatnonzero(tree.is_cluster) if len(cut.top) else []
    np.testing.assert_array_equal(Cut.of(tree, size, 10**6).shared, every)


def test_a_leaf_cluster_is_never_cut():
    tree = Hierarchy.from_children([list(range(50)), list(range(50, 53)), [53, 54]], 53)
    assert cut_bounds(tree, 10).tolist() == [0, 50, 53]
    fits = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [7, 8], [6, 9]], 6)
    assert cut_bounds(fits, 4).tolist() == [0, 2, 6]  # the node of four items is cut nowhere


def test_the_top_is_small():
    n_items = 1 << 14
    order = np.arange(2 * n_items - 2).reshape(-1, 2)
    tree = Hierarchy.from_children(order, n_items, singletons=True)
    cut = Cut.of(tree, 1000, 1)
    assert len(cut) == 32
    assert len(cut.shared) == 2 * 32 - 1


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_files_score_as_arrays_do(case, folder, similarity):
    X, tree = case
    expected = evaluate(X, tree, similarity=similarity, delta=0.1)
    result = evaluate_distributed(folder, tree, similarity=similarity, delta=0.1, partition_items=200)
    same(result.values, expected.values)
    further = {"similarity": similarity, "delta": 0.5, "policy": LookAhead(3)}
    far = evaluate_distributed(folder, tree, partition_items=500, **further)
    same(far.values, evaluate(X, tree, **further).values)
    assert result.config["engine"] == expected.config["engine"]
    single = folder / "all.npy"
    np.save(single, X)
    again = evaluate_distributed(single, tree, similarity=similarity, delta=0.1, partition_items=10**6)
    same(again.values, expected.values)


def test_parquet_rows_are_joined_to_items_by_id(case, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, plain = case
    names = [f"item-{number}" for number in range(len(X))]
    tree = Hierarchy(plain.parent, plain.n_items, labels=names)
    order = np.random.default_rng(0).permutation(len(X))
    columns = {f"x{column}": X[order, column] for column in range(X.shape[1])}
    table = pa.table({"id": [names[row] for row in order], **columns})
    pq.write_table(table.slice(0, 500), tmp_path / "a.parquet", row_group_size=120)
    pq.write_table(table.slice(500), tmp_path / "b.parquet", row_group_size=1000)
    result = evaluate_distributed(tmp_path, tree, delta=0.1, partition_items=300)
    same(result.values, evaluate(X, tree, delta=0.1).values)
    with pytest.raises(FeatureError, match="no column 'key'"):
        evaluate_distributed(tmp_path, tree, id_column="key")


def test_rows_are_read_a_few_at_a_time_wherever_they_lie(tmp_path, monkeypatch):
    """Many pieces, single items beside clusters in the top, and inner nodes that are numbered from the root down."""
    import dask.array as da

    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(validation, "PIECE_BYTES", 8 * 3 * 4)  # of evaluate too: 4 rows are summed at a time
    rng = np.random.default_rng(11)
    # the root 60 has two clusters and an item; each of those has five lists and an item
    parent = np.concatenate([rng.permutation(np.repeat(np.arange(63, 73), 6))[:57], [61, 62, 60]])
    tree = Hierarchy([*parent, -1, 60, 60, *[61] * 5, *[62] * 5], 60)
    X = rng.normal(size=(60, 3)) * [1, 10, 100]
    X[7] = X[7].astype(np.float32)
    for number, rows in enumerate(np.split(X, [7, 8, 40])):  # one of which is of another type
        np.save(tmp_path / f"part-{number}.npy", rows.astype(np.float32 if number == 1 else np.float64))
    table = pa.table({f"x{column}": X[:, column] for column in range(3)})
    tables = tmp_path / "tables"
    tables.mkdir()
    pq.write_table(table.slice(0, 31), tables / "a.pq", row_group_size=5)
    pq.write_table(table.slice(31), tables / "b.pq", row_group_size=9)
    (tmp_path / "one").mkdir()
    pq.write_table(table, tmp_path / "one" / "all.parquet", row_group_size=7)
    lengths = []

    def inspected(rows, *given):
        lengths.append(len(rows))
        return inspect(rows, *given)

    inspect = work.inspect
    monkeypatch.setattr(work, "inspect", inspected)
    engine = INSTALLED_ENGINES[-1]
    settings = {"similarity": SIMILARITIES[2], "delta": 9.0, "policy": "descend", "engine": engine}
    whole = evaluate(X, tree, **settings)
    for features in (tmp_path, tables, tmp_path / "one" / "all.parquet", da.from_array(X, chunks=(13, 2))):
        lengths.clear()
        result = evaluate_distributed(features, tree, partition_items=3, **settings)
        np.testing.assert_array_equal(result.stop_nodes, whole.stop_nodes)
        same(result.values, whole.values)
        if engine == "numba":
            np.testing.assert_array_equal(result.values, whole.values)
        assert sum(lengths) == 60
        assert max(lengths) == 4
    X[33, 1] = 1e160
    with pytest.raises(FeatureError, match="whose square overflows"):
        evaluate_distributed(da.from_array(X), tree, partition_items=3, **settings)


def test_one_warning_for_rows_of_zeros(case):
    import dask.array as da

    X, tree = case
    X = X.copy()
    X[[3, 700]] = 0
    with pytest.warns(DataWarning, match=r"zeros.*: 3, 700"):
        result = evaluate_distributed(da.from_array(X, chunks=300), tree, delta=0.1, partition_items=200)
    with pytest.warns(DataWarning):
        same(result.values, evaluate(X, tree, delta=0.1).values)


def test_errors_have_advice(case, folder, tmp_path):
    import dask
    import dask.array as da

    X, tree = case
    some = da.from_array(X)
    bad = X.copy()
    bad[[5, 1100], 2] = np.nan
    huge = X.astype(np.float64) * 1e160
    refused = [
        (FeatureError, r"NaN or infinite values in 2 rows \(5, 1100", da.from_array(bad, chunks=400), {}),
        (FeatureError, "the features: got 1,199 rows; expected 1,200", da.from_array(X[1:], chunks=400), {}),
        (FeatureError, r"X: got a Dask array of shape \(1200,\) and dtype float32", da.from_array(X[:, 0]), {}),
        (FeatureError, "X: got .*; expected an array", X.tolist(), {}),
        (FeatureError, r"X: got .*Delayed.*; expected an array", dask.delayed(X), {}),
        (FeatureError, "expected known lengths", some[some[:, 0] > 0], {}),
        (FeatureError, "expected a .parquet, .npy or .npz file", folder / "nothing.csv", {}),
        (FeatureError, r"none\.npy: got .* cannot be read", folder / "none.npy", {}),
        (FeatureError, "whose square overflows", da.from_array(huge, chunks=400), {"similarity": SIMILARITIES[1]}),
        (ParameterError, "policy: got .optimal.", folder, {"policy": "optimal"}),
        (ParameterError, "needs all members of a cluster in one place", folder, {"similarity": "precomputed"}),
        (ParameterError, "partition_items: got 0", folder, {"partition_items": 0}),
        (ParameterError, "partition_items: got '5'", folder, {"partition_items": "5"}),
        (ParameterError, "client: got 'x'", folder, {"client": "x"}),
        (FeatureError, 'Leave this out: id_column="key"', folder, {"id_column": "key"}),
        (ParameterError, "client: got 7", folder, {"client": 7}),
    ]
    for error, words, features, options in refused:
        with pytest.raises(error, match=words):
            evaluate_distributed(features, tree, **options)
    broken = tmp_path / "broken.parquet"
    broken.write_text("hello")
    with pytest.raises(FeatureError, match=r"broken\.parquet: cannot be decoded"):
        evaluate_distributed(broken, tree)
    broken.unlink()
    other = tmp_path / "other"
    other.mkdir()
    (other / "broken.npy").write_text("hello")
    np.save(other / "cube.npy", np.zeros((2, 3, 4)))
    np.save(other / "words.npy", np.array([["a"]]))
    for name, words in {
        "broken": r"broken\.npy: cannot be decoded \(.+\); expected a whole \.npy array",
        "cube": r"cube\.npy: got an array of shape \(2, 3, 4\)",
        "words": r"words\.npy: got dtype <U1",
    }.items():
        with pytest.raises(FeatureError, match=words):
            evaluate_distributed(other / f"{name}.npy", tree)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, cell in (("0", 1.0), ("words", "a"), ("marks", {"x": 1})):
        pq.write_table(pa.table({name: [cell]}), other / f"{name}.parquet")
    for path, words in {
        other: r"marks\.parquet: got the columns 'marks'; expected '0', as in .*0\.parquet",
        other / "words.parquet": r"words\.parquet, column 'words': got string; .*without it.*id_column",
        other / "marks.parquet": r"marks\.parquet, column 'marks': got struct<x: int64>",
    }.items():
        with pytest.raises(FeatureError, match=words):
            evaluate_distributed(path, tree)
    np.save(folder / "part-9.npy", X[:3, :4])
    with pytest.raises(FeatureError, match=r"part-9\.npy: got 4 columns.*8"):
        evaluate_distributed(folder, tree)


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("distributed")
    with local_cluster(2) as running:
        yield running


def test_two_workers_give_the_values_of_one_process(case, folder, cluster):
    import dask.array as da

    X, tree = case
    expected = evaluate(X, tree, delta=0.1)
    with cluster.get_client() as client:
        assert list(client.nthreads().values()) == [1, 1]
        for features in (folder, da.from_array(X, chunks=(350, 3))):
            result = evaluate_distributed(features, tree, client=client, delta=0.1, partition_items=100)
            same(result.values, expected.values)
            np.testing.assert_array_equal(result.stop_nodes, expected.stop_nodes)
    distances = {"similarity": "inverse_sqeuclidean", "delta": 0.1, "engine": "numpy", "partition_items": 100}
    here = evaluate_distributed(folder, tree, **distances)
    there = evaluate_distributed(folder, tree, client=cluster.scheduler_address, **distances)
    same(here.values, there.values)


def test_a_worker_killed_in_mid_run_costs_no_results(case, folder, cluster, tmp_path):
    _, tree = case
    rule = KillsOnce(level=2, flag=tmp_path / "killed", spared=os.getpid())
    expected = evaluate_distributed(folder, tree, policy=rule, partition_items=60)
    with cluster.get_client() as client:
        result = evaluate_distributed(folder, tree, client=client, policy=rule, partition_items=60)
    assert rule.flag.exists()
    same(result.values, expected.values)


def test_numba_gives_partitions_the_bits_of_the_whole(tmp_path):
    rng = np.random.default_rng(7)
    X = np.cumsum(rng.normal(size=(1_000, 9)), axis=0)
    tree = Hierarchy.from_linkage(linkage(X, "average"))
    np.save(tmp_path / "X.npy", X)
    for policy, similarity in (("one-step", "cosine"), (LookAhead(2), "inverse_sqeuclidean")):
        settings = {"engine": "numba", "policy": policy, "similarity": similarity, "delta": 0.02}
        expected = evaluate(X, tree, **settings)
        for partition_items in (90, 700):
            result = evaluate_distributed(tmp_path, tree, partition_items=partition_items, **settings)
            np.testing.assert_array_equal(result.values, expected.values)
            np.testing.assert_array_equal(result.stop_nodes, expected.stop_nodes)


def test_parts_follow_one_another_by_their_numbers(case, tmp_path):
    """Dask numbers its parts without leading zeros: by name alone, 10 comes before 2."""
    import dask.array as da

    X, tree = case
    da.to_npy_stack(tmp_path, da.from_array(X, chunks=(100, 8)))
    result = evaluate_distributed(tmp_path, tree, delta=0.1)
    same(result.values, evaluate(X, tree, delta=0.1).values)


def test_error_for_a_lost_scheduler(case, cluster, monkeypatch):
    import dask.array as da
    from distributed.client import FutureCancelledError

    def lost(_):
        raise FutureCancelledError("score-1", "scheduler-connection-lost")

    X, tree = case
    with cluster.get_client() as client:
        monkeypatch.setattr(client, "gather", lost)
        with pytest.raises(ParameterError, match=r"client: got a scheduler.*run again"):
            evaluate_distributed(da.from_array(X), tree, client=client, delta=0.1)
        monkeypatch.undo()
        again = evaluate_distributed(da.from_array(X), tree, client=client, delta=0.1)
        same(again.values, evaluate(X, tree, delta=0.1).values)
    with pytest.raises(ParameterError, match="expected an address"):
        evaluate_distributed(da.from_array(X), tree, client="nowhere", delta=0.1)
    assert re.fullmatch(r"tcp://[\d.]+:\d+", cluster.scheduler_address)
    evaluate_distributed(da.from_array(X), tree, client=cluster.scheduler_address, delta=0.1)


@pytest.mark.slow
def test_partitions_of_one_item_and_of_all_and_workers_without_memory(cluster):
    import dask.array as da

    rng = np.random.default_rng(2)
    tree, X = random_tree(rng, 24, singletons=True), rng.normal(size=(24, 4))
    features, expected = da.from_array(X, chunks=(7, 4)), evaluate(X, tree, delta=0.1).values
    with cluster.get_client() as client:
        for size in (1, 24, 240):
            same(evaluate_distributed(features, tree, client=client, delta=0.1, partition_items=size).values, expected)
        for killed, said in ((False, "ran out of memory"), (True, "died, one after another")):
            rule = NoRoom(os.getpid(), killed, room=12)
            with pytest.raises(ParameterError, match=f"^client: got workers that {said}.*partition_items"):
                evaluate_distributed(features, tree, client=client, policy=rule)
            evaluate_distributed(features, tree, client=client, policy=rule, partition_items=5)  # the advice
        same(evaluate_distributed(features, tree, client=client, delta=0.1, partition_items=5).values, expected)
