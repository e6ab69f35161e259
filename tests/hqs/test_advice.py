"""What errors advise, followed: each row is what is refused, and the same with the advice taken, which works."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier import Hierarchy, evaluate, hqs_score, three_node
from pomdp_hier.errors import DataWarning, PomdpHierError
from pomdp_hier.hqs import (
    ClosedFormUpdater,
    FixedLevel,
    LookAhead,
    calibrate_delta,
    rtbss_policy,
    search_environment,
    search_problem,
)
from pomdp_hier.hqs.inputs import as_trees
from pomdp_hier.hqs.model import Search, search_problem_from_guidance
from pomdp_hier.hqs.paper import reproduce
from pomdp_hier.hqs.policies import HindsightSearch, OptimalSearch, PlansInEnvironment, search_policy
from pomdp_hier.planning import Decision
from pomdp_hier.problems import tiger

X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=list("abcd"))
OTHER = TREE.permuted(np.array([1, 0, 2, 3]), with_labels=True)


class Bold:
    def descend(self, eta, sizes, rewards, level):
        return eta.max(axis=1) > 0.6


class Unsure(Bold):
    def descend(self, eta, sizes, rewards, level):
        return eta.max(axis=1)


class Hasty:
    def decide(self, problem, belief=None, *, observation=None):
        return Decision(Search())


def score(**settings):
    return lambda: evaluate(settings.pop("X", X), TREE, **settings)


def generic(**settings):
    return lambda: evaluate(X, TREE, engine="generic", **settings)


SPARSE = sp.csr_array(X)
ADVICE = {  # what is refused: what its message says to do
    "engine unknown": (score(engine="fortran"), "'auto', 'numpy'", score(engine="auto"), score(engine="generic")),
    "numba, sparse": (score(X=SPARSE, engine="numba"), '"auto" or "numpy"', score(X=SPARSE, engine="numpy")),
    "numba, custom rule": (score(policy=Bold(), engine="numba"), '"auto"', score(policy=Bold(), engine="auto")),
    "numpy, policy": (score(policy=Hasty(), engine="numpy"), "'generic'", score(policy=Hasty(), engine="generic")),
    "threads, numpy": (score(threads=2, engine="numpy"), "dense features", score(engine="numpy")),
    "threads, policy": (score(threads=2, policy=Hasty()), "Leave it out", score(policy=Hasty())),
    "threads, rule": (score(threads=2, policy=Bold(), engine="numpy"), "Leave it out", score(policy=Bold())),
    "threads of 0": (score(threads=0), "or None", score(threads=None), score(threads=1)),
    "seed": (score(random_state=2), "engine='generic'", score(random_state=2, engine="generic"), score()),
    "n_jobs": (score(n_jobs=1, updater=ClosedFormUpdater), "engine='generic'", generic(updater=ClosedFormUpdater)),
    "policy unknown": (score(policy="bold"), "'one-step'", score(policy="one-step"), score(policy="hindsight")),
    "tie unknown": (score(tie="flip"), "'descend', 'search'", score(tie="search")),
    "tie unused": (score(tie="search", policy=Bold()), 'policy="one-step"', score(tie="search", policy="one-step")),
    "rule's answer": (score(policy=Unsure()), "eta.max(axis=1) > 0.6", score(policy=Bold())),
    "depth of 0": (lambda: LookAhead(0), "at least 1, or None", lambda: LookAhead(1), lambda: LookAhead(None)),
    "depth of text": (lambda: LookAhead("2"), "an integer", lambda: LookAhead(2)),
    "depth of 1.5": (lambda: LookAhead(1.5), "an integer", lambda: LookAhead(1)),
    "delta": (score(delta="hot"), "'calibrated'", score(delta=0.01)),
    "delta of 0": (score(delta=0), "0.01", score(delta=0.01)),
    "nu": (score(nu=0), "such as 1", score(nu=1), score(nu=0.5)),
    "reward, number": (score(reward=3), "or None", score(reward=None)),
    "reward, text": (score(reward=lambda size, n: "x"), "Return one", score(reward=lambda size, n: 1 - size / n)),
    "reward, None": (score(reward=lambda size, n: None), "Return one", score(reward=lambda size, n: 1 - size / n)),
    "reward, low": (score(reward=lambda size, n: -1.0), "above -1", score(reward=lambda size, n: -0.5)),
    "reward, growing": (score(reward=lambda size, n: size), "does not increase", score(reward=lambda size, n: 0.5)),
    "sampling unknown": (score(sampling="cluster", sample_size=2), "'simple'", score(sampling="simple", sample_size=2)),
    "sampling unused": (score(sampling="simple"), "sample_size", score(sampling="simple", sample_size=2), score()),
    "seed unused": (score(random_state=1), "half_width", score(random_state=1, half_width=0.5)),
    "size and error": (score(sample_size=2, half_width=0.1), "Leave the other", score(half_width=0.1)),
    "size of 9": (score(sample_size=9), "1 to 4", score(sample_size=4), score(sample_size=1.0)),
    "size of 0": (score(sample_size=0), "number of items", score(sample_size=1)),
    "error": (score(half_width=0), "0.01", score(half_width=0.01)),
    "items and sample": (generic(items=[0], sample_size=2), "Leave out", generic(items=[0]), generic(sample_size=2)),
    "items": (generic(items=[9]), "0 to 3", generic(items=[3])),
    "bounds": (lambda: calibrate_delta(X, TREE, bounds=(3, 2)), "0.0001", lambda: calibrate_delta(X, TREE)),
    "no tree": (lambda: as_trees({}), "by name", lambda: as_trees({"a": TREE}), lambda: as_trees(TREE)),
    "tree's name": (lambda: as_trees({1: TREE}), "Use '1'", lambda: as_trees({"1": TREE})),
    "items' order": (
        lambda: as_trees({"a": TREE, "b": OTHER}),
        "other.permuted(other.rows(first.item_labels), with_labels=True)",
        lambda: as_trees({"a": TREE, "b": OTHER.permuted(OTHER.rows(TREE.item_labels), with_labels=True)}),
    ),
    "item": (lambda: search_problem(X, TREE, "b"), "node(label)", lambda: search_problem(X, TREE, TREE.node("b"))),
    "eta": (lambda: three_node(2), "0.75", lambda: three_node(0.75)),
    "eta of a leaf": (
        lambda: search_problem_from_guidance({"a": {"b": 1}, "b": {}}, {"a": 0, "b": 0.1}),
        "Leave out leaf clusters",
        lambda: search_problem_from_guidance({"a": {"b": 1}}, {"a": 0, "b": 0.1}),
    ),
    "another problem": (
        lambda: OptimalSearch().decide(tiger()),
        "search_problem()",
        lambda: OptimalSearch().decide(search_problem(X, TREE, 0)),
    ),
    "closed form": (
        lambda: ClosedFormUpdater(tiger()),
        "search_problem()",
        lambda: ClosedFormUpdater(search_problem(X, TREE, 0)),
    ),
    "hindsight": (
        lambda: HindsightSearch().decide(search_problem(X, TREE, 0)),
        "for_environment(environment)",
        lambda: HindsightSearch().for_environment(search_environment(X, TREE, 0)).decide(search_problem(X, TREE, 0)),
    ),
    "environment": (
        lambda: PlansInEnvironment(rtbss_policy(1)).decide(search_problem(X, TREE, 0)),
        "for_environment(environment)",
        lambda: (
            PlansInEnvironment(rtbss_policy(1))
            .for_environment(search_environment(X, TREE, 0))
            .decide(search_problem(X, TREE, 0))
        ),
    ),
    "level": (lambda: FixedLevel(-1), "at least 0", lambda: FixedLevel(0)),
    "rule alone": (lambda: search_policy(Bold()), "hierarchy=", lambda: search_policy(Bold(), hierarchy=TREE)),
    "preset": (lambda: reproduce(preset="x"), "'table' or 'text'", lambda: reproduce(preset="table")),
}


@pytest.mark.parametrize("case", ADVICE)
def test_advice_that_is_taken_works(case):
    refused, advice, *taken = ADVICE[case]
    if case.startswith("numba"):
        pytest.importorskip("numba")
    with pytest.raises(PomdpHierError) as error:
        refused()
    assert advice in str(error.value)
    assert taken
    for follow in taken:
        follow()


def test_a_checkpoint_advises_what_works(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(PomdpHierError, match="checkpoint= and engine='generic'"):
        evaluate(X, TREE, policy_version="a")
    settings = {"policy_version": "a", "checkpoint": path, "engine": "generic"}
    evaluate(X, TREE, **settings)
    with pytest.raises(PomdpHierError, match="Pass another path, or delete the file"):
        evaluate(X, TREE, delta=0.5, **settings)
    evaluate(X, TREE, delta=0.5, **{**settings, "checkpoint": tmp_path / "other"})
    path.unlink()
    evaluate(X, TREE, delta=0.5, **settings)


def test_a_policy_without_a_fingerprint_is_told_apart_by_its_version(tmp_path):
    class Local(Hasty):
        def __init__(self):
            self.kept = lambda: None  # copied, but not pickled

    settings = {"policy": Local(), "checkpoint": tmp_path / "run"}
    with pytest.raises(PomdpHierError, match="policy_version"):
        evaluate(X, TREE, **settings)
    evaluate(X, TREE, policy_version="1", **settings)


def test_weights_are_numbers_of_searches():
    for wrong in (["1", "2", "3", "4"], [0, 0, 0, 0], [1, 2, 3], [1, 2, 3, None]):
        with pytest.raises(PomdpHierError, match="Give every item a number of searches, 0 for an item that nobody"):
            hqs_score(X, TREE, delta=0.1, sample_weight=wrong)
    values = evaluate(X, TREE, delta=0.1).values
    found = hqs_score(X, TREE, delta=0.1, sample_weight=[1, 2, 3, 0])
    assert found == pytest.approx(values[:3] @ [1, 2, 3] / 6)


def test_a_temperature_at_a_bound_advises_a_number():
    rows = np.repeat(np.eye(2), 2, axis=0)
    with pytest.warns(DataWarning, match="Pass delta as a number"):
        evaluate(rows, TREE, delta="calibrated")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(rows, TREE, delta=0.0001)
