"""The record of a score."""

import json
import math

import numpy as np
import pytest

from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.score import evaluate

TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
RESULT = evaluate([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.7, 0.9]], TREE, delta=0.1)


def test_the_score_is_the_exact_mean():
    values = np.array([0.1] * 10 + [1e-17, -1.0])
    result = HQSResult(values, *(np.zeros(12, dtype=int) for _ in range(2)), np.ones(12), np.zeros(12), {})
    assert result.score == math.fsum(values) / 12


def test_it_is_frozen():
    with pytest.raises(AttributeError):
        RESULT.config = {}
    with pytest.raises(ValueError, match="read-only"):
        RESULT.values[0] = 1.0


def test_json_reads_back_to_the_same_bits():
    read = json.loads(RESULT.to_json())
    assert read["score"] == RESULT.score
    assert read["n_items"] == 4
    assert read["config"]["delta"] == 0.1
    for name in ("values", "stop_nodes", "stop_levels", "path_probabilities", "rewards"):
        assert read[name] == getattr(RESULT, name).tolist()


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(backend):
    frame = RESULT.to_frame(backend)
    assert frame.shape == (4, 6)
    assert np.asarray(frame["values"]).tolist() == RESULT.values.tolist()


def test_the_summary_says_score_and_settings():
    text = RESULT.summary()
    assert f"HQS {RESULT.score:.6f} over 4 item(s)" in text
    assert "delta=0.1" in text
    assert repr(RESULT) == f"HQSResult(score={RESULT.score:.6f}, 4 items)"
