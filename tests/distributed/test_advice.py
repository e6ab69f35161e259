"""Advice of the errors over features in parts is followed here: the same call with the advice taken works."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from pomdp_hier import Hierarchy, evaluate
from pomdp_hier.distributed import evaluate_distributed
from pomdp_hier.errors import FeatureError, ParameterError
from pomdp_hier.hqs import LookAhead, calibrate_delta

X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
TREE = Hierarchy.from_children([[0, 1], [3, 2]], 3)


class Bold:
    """A stopping rule that numba does not have."""

    def descend(self, eta, sizes, rewards, level):
        return eta.max(axis=1) > 0.6


def score(features, **settings):
    return evaluate_distributed(features, TREE, **{"delta": 0.1, **settings})


def test_advice_works(tmp_path):
    da = pytest.importorskip("dask.array")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    whole, some = da.from_array(X), da.from_array(X)
    some = some[some[:, 0] >= 0]
    table = pa.table({"code": ["0", "1", "2"], "x": X[:, 0], "y": X[:, 1]})
    pq.write_table(table, tmp_path / "named.parquet")
    pq.write_table(table.drop_columns(["code"]), tmp_path / "numbers.parquet")
    np.save(tmp_path / "words.npy", X.astype(str))
    np.save(tmp_path / "x.npy", X.astype(str).astype(float))
    for folder in ("mixed", "alike", "tables"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "mixed" / "0.npy", X[:2])
    np.save(tmp_path / "mixed" / "1.npy", X[2:, :1])
    np.save(tmp_path / "alike" / "0.npy", X[:2])
    np.save(tmp_path / "alike" / "1.npy", X[2:])
    pq.write_table(table[:2].drop_columns(["code"]), tmp_path / "tables" / "0.parquet")
    pq.write_table(table[2:].drop_columns(["y"]), tmp_path / "tables" / "1.parquet")
    np.savez(tmp_path / "dense.npz", X=X[:2])
    sparse.save_npz(tmp_path / "also sparse.npz", sparse.csr_array(X[:2]))
    sparse.save_npz(tmp_path / "sparse.npz", sparse.csr_array(X[2:]))
    row = (
        whole,
        {"engine": "numba", "policy": Bold()},
        'engine="auto" or "numpy"',
        lambda: score(whole, policy=Bold()),
    )
    for features, settings, said, better in (
        (X.tolist(), {}, "numpy.asarray(X)", lambda: score(np.asarray(X.tolist()))),
        (X, {"id_column": "id"}, "Leave this out", lambda: score(X)),
        (some, {}, "compute_chunk_sizes()", lambda: score(some.compute_chunk_sizes())),
        (
            whole,
            {"delta": "calibrated"},
            "calibrate_delta(X, hierarchy).delta",
            lambda: score(whole, delta=calibrate_delta(X, TREE).delta),
        ),
        (whole, {"policy": "optimal"}, "'one-step'", lambda: score(whole, policy="one-step")),
        (whole, {"policy": "optimal"}, "LookAhead(depth)", lambda: score(whole, policy=LookAhead(2))),
        (whole, {"similarity": "precomputed"}, "evaluate(X, hierarchy)", lambda: evaluate(X, TREE, delta=0.1)),
        (tmp_path / "named.parquet", {}, "without it", lambda: score(tmp_path / "numbers.parquet")),
        (tmp_path / "words.npy", {}, "astype(float)", lambda: score(tmp_path / "x.npy")),
        (whole, {"engine": "generic"}, "'numpy', 'numba'", lambda: score(whole, engine="numpy")),
        *([row] if find_spec("numba") else []),
        (tmp_path / "words.npy", {}, "Convert them", lambda: score(tmp_path / "x.npy")),
        (tmp_path / "mixed", {}, "Write all files with the same columns", lambda: score(tmp_path / "alike")),
        (tmp_path / "tables", {}, "Write all files with the same columns", lambda: score(tmp_path / "alike")),
        (tmp_path / "x.npy", {"id_column": "id"}, 'id_column="id"', lambda: score(tmp_path / "x.npy")),
        (whole, {"weight_column": "x"}, 'Leave this out: weight_column="x"', lambda: score(whole)),
        (
            tmp_path / "named.parquet",
            {"weight_column": "code"},
            "weight_column: got",
            lambda: score(tmp_path / "numbers.parquet"),
        ),
        (
            tmp_path / "numbers.parquet",
            {"weight_column": "x", "sample_weight": [1, 2, 3]},
            "Leave one out",
            lambda: score(tmp_path / "numbers.parquet", weight_column="x", similarity="negative_euclidean"),
        ),
        (
            [tmp_path / "numbers.parquet", tmp_path / "x.npy"],
            {},
            "Write all of them in one format",
            lambda: score([tmp_path / "alike" / "0.npy", tmp_path / "alike" / "1.npy"]),
        ),
        (
            [tmp_path / "dense.npz", tmp_path / "sparse.npz"],
            {},
            "Write all files in one format",
            lambda: score([tmp_path / "also sparse.npz", tmp_path / "sparse.npz"]),
        ),
    ):
        with pytest.raises((FeatureError, ParameterError)) as caught:
            score(features, **settings)
        assert said in str(caught.value)
        assert np.isfinite(better().score)
