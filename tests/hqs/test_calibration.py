"""The calibrated temperature: the maximum of a likelihood written out in loops, bounds, samples, several trees."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.inputs import calibrate_delta
from tests import scorer_oracle as oracle
from tests.planted import clean_case


def log_likelihood(tree, X, delta, nu):
    """The mean of log eta of the right child over all steps that count, and how many they are."""
    walker = oracle.Oracle(tree, oracle.cosine(X), delta=delta, nu=nu)
    logs = []
    for x in range(tree.n_items):
        for level, (node, own) in enumerate(zip(tree.path(x)[:-1], tree.path(x)[1:], strict=True)):
            children = tree.children(int(node)).tolist()
            if len(children) > 1 and tree.sizes[own] > 1:
                eta = walker.eta(x, int(node), level)[children.index(int(own))]
                logs.append(math.log(eta) if eta > 0 else -math.inf)
    return (math.fsum(logs) / len(logs) if logs else math.nan), len(logs)


@given(oracle.trees(), st.integers(0, 99), st.sampled_from([1.0, 1.5]))
def test_no_other_temperature_is_more_likely(tree, seed, nu):
    X = np.random.default_rng(seed).normal(size=(tree.n_items, 3))
    bounds = (0.02, 5.0)
    found = calibrate_delta(X, tree, nu=nu, bounds=bounds).trees["tree"]
    assert calibrate_delta(sp.csr_matrix(X), tree, nu=nu, bounds=bounds).delta == pytest.approx(found.delta, rel=1e-6)
    best, n_steps = log_likelihood(tree, X, found.delta, nu)
    assert found.n_steps == n_steps
    if not n_steps:
        assert math.isnan(found.log_likelihood)
        assert found.at_bound == "upper"
        return
    assert found.log_likelihood == pytest.approx(best, abs=1e-9)
    for other in np.geomspace(*bounds, 5):
        assert log_likelihood(tree, X, float(other), nu)[0] <= best + 1e-9
    assert (found.at_bound == "") == (bounds[0] < found.delta < bounds[1])


def test_a_bound_is_said_so():
    X, tree = clean_case()
    found = calibrate_delta(X, tree, bounds=(0.5, 1.0))
    assert (found.delta, found.at_bound, found.trees["tree"].at_bound) == (0.5, True, "lower")
    assert "at the lower bound: no maximum" in found.summary()
    shuffled = tree.permuted(np.random.default_rng(0).permutation(tree.n_items))
    assert calibrate_delta(X, shuffled, bounds=(1e-4, 1e-3)).trees["tree"].at_bound == "upper"


def test_several_trees_give_the_mean():
    X, tree = clean_case()
    other = tree.permuted(np.roll(np.arange(45), 2))
    both = calibrate_delta(X, {"one": tree, "other": other})
    alone = [calibrate_delta(X, each).delta for each in (tree, other)]
    assert both.delta == pytest.approx(np.mean(alone))
    assert [each.delta for each in both.trees.values()] == alone


def test_a_sample_of_a_large_tree():
    X, tree = clean_case(items=60)
    whole = calibrate_delta(X, tree).trees["tree"]
    part = calibrate_delta(X, tree, max_entries=1000).trees["tree"]
    assert (whole.n_items, part.n_items) == (540, 166)
    assert part.delta == pytest.approx(whole.delta, rel=0.2)
    assert part == calibrate_delta(X, tree, max_entries=1000).trees["tree"]


def test_what_cannot_be():
    X, tree = clean_case()
    for bounds in [(0.0, 1.0), (2.0, 1.0), (0.1, math.inf), (math.nan, 1.0)]:
        with pytest.raises(ParameterError, match="bounds"):
            calibrate_delta(X, tree, bounds=bounds)
    with pytest.raises(ParameterError, match="empty dict"):
        calibrate_delta(X, {})
    with pytest.raises(ParameterError, match=r"45 .*'a'.* 2 .*'b'"):
        calibrate_delta(X, {"a": tree, "b": Hierarchy.from_children([[0, 1]], 2)})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": (1.0, 0.5)}, "bounds: got"),
        ({"bounds": ("low", 1)}, "bounds: got"),
        ({"bounds": 3}, "bounds: got"),
        ({"max_entries": 0}, "max_entries: got 0"),
        ({"max_entries": 1.5}, "max_entries: got 1.5"),
        ({"similarity": "cosinus"}, "similarity: got 'cosinus'"),
        ({"nu": 0.0}, "nu: got 0.0"),
    ],
)
def test_what_cannot_be_is_named(options, words):
    X, tree = clean_case()
    with pytest.raises(ParameterError, match=words):
        calibrate_delta(X, tree, **options)
    assert calibrate_delta(X, tree, max_entries=1).trees["tree"].n_items == 1
