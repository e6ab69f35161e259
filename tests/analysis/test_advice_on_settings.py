"""Advice on settings that do not fit together is taken: the call, the advice, the call with it taken, and its value."""

import numpy as np
import pytest

from pomdp_hier import Hierarchy, diagnose, evaluate, hqs_score
from pomdp_hier.analysis import (
    best_cut,
    check_structure,
    compare_search_policies,
    delta_sweep,
    hqs_scorer,
    suggest_moves,
)
from pomdp_hier.analysis.baselines import shuffled_scores
from pomdp_hier.analysis.settings_sweep import cut_tree
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.filing import find_misfiled
from pomdp_hier.measures import cophenetic_correlation, robinson_foulds
from tests.planted import clean_case

X, TREE = clean_case()
D = {"delta": 0.05}
N = TREE.n_items
SCORE = hqs_score(X, TREE, **D)
HALF = Hierarchy.from_labels([0, 0, 1, 1])
PAIRS = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
RANDOM = np.random.default_rng(0).normal(size=(40, 3))
NAMED = {names: Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=[*names]) for names in ("abcd", "abce")}


def cut(**given):
    return best_cut(X, TREE, max_clusters=9, **D, **given).score


class Fitted:
    """A model of scikit-learn with a tree of two merges."""

    def __init__(self, children):
        self.children_, self.n_leaves_, self.labels_ = np.array(children), 3, np.zeros(3, dtype=int)
        self.n_clusters_ = 1


ROWS = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
WHOLE = Fitted([[0, 1], [2, 3]])
BY_ITEM = {"delta": 0.1}
ADVICE = {
    **{
        f"{name} of a cut": (lambda name=name, value=value: cut(**{name: value}), f"^{name}: .*Leave it out", cut, CUT)
        for CUT in [best_cut(X, TREE, max_clusters=9, **D).score]
        for name, value in (
            *(("enter_own_singleton", False), ("engine", "numpy"), ("threads", 2), ("updater", None), ("n_jobs", 2)),
            *(("progress", True), ("checkpoint", "c"), ("policy_version", "1"), ("sample_size", 9)),
        )
    },
    "policy of a cut": (
        lambda: cut(policy="descend"),
        "Leave it out, and evaluate the resulting tree",
        lambda: evaluate(X, best_cut(X, TREE, max_clusters=9, **D).tree, policy="descend", **D).values.size,
        N,
    ),
    "sample of moves": (
        lambda: suggest_moves(X, diagnose(X, TREE, **D), sample_size=9, **D),
        "a sample may miss. Leave it out",
        lambda: len(suggest_moves(X, diagnose(X, TREE, **D), **D)) >= 0,
        True,
    ),
    "checkpoint of moves": (
        lambda: suggest_moves(X, diagnose(X, TREE, **D), checkpoint="c", **D),
        "each move makes another. Leave it out",
        lambda: len(suggest_moves(X, diagnose(X, TREE, **D), **D)) >= 0,
        True,
    ),
    "checkpoint of shuffles": (
        lambda: shuffled_scores(X, TREE, n_shuffles=2, checkpoint="c", **D),
        "Leave it out",
        lambda: len(shuffled_scores(X, TREE, n_shuffles=2, **D)),
        2,
    ),
    "checkpoint of a sweep": (
        lambda: delta_sweep(X, TREE, [0.05], n_shuffles=0, checkpoint="c"),
        "Leave it out",
        lambda: delta_sweep(X, TREE, [0.05], n_shuffles=0).rows[0].score,
        SCORE,
    ),
    "candidates": (
        lambda: compare_search_policies(X, TREE, {"best": ["one-step", "descend"]}, **D),
        "Pass held_out=0.5",
        lambda: len(compare_search_policies(X, TREE, {"best": ["one-step", "descend"]}, held_out=0.5, **D).rows),
        1,
    ),
    "held out of a sample": (
        lambda: compare_search_policies(X, TREE, ["one-step"], held_out=0.5, sample_size=9, **D),
        "Leave out sample_size and half_width",
        lambda: len(compare_search_policies(X, TREE, ["one-step"], held_out=0.5, **D).rows),
        1,
    ),
    "result of another tree": (
        lambda: diagnose(X, TREE, evaluate(np.eye(4), PAIRS, **D), **D),
        "Leave it out, or pass the result of this hierarchy",
        lambda: diagnose(X, TREE, evaluate(X, TREE, **D), **D).result.score,
        SCORE,
    ),
    "weights of a result": (
        lambda: diagnose(X, TREE, evaluate(X, TREE, **D), sample_weight=range(1, N + 1), **D),
        "Pass the same ones",
        lambda: (
            diagnose(
                X, TREE, evaluate(X, TREE, sample_weight=range(1, N + 1), **D), sample_weight=range(1, N + 1), **D
            ).result.score
        ),
        hqs_score(X, TREE, sample_weight=range(1, N + 1), **D),
    ),
    "diagnosis of another tree": (
        lambda: check_structure(TREE, diagnosis=diagnose(np.eye(4), PAIRS, **D)),
        r"Call diagnose\(X, hierarchy\)",
        lambda: check_structure(TREE, diagnosis=diagnose(X, TREE, **D)).n_items,
        N,
    ),
    "weights of a scorer": (
        lambda: hqs_scorer(sample_weight=[1, 2, 3], **BY_ITEM)(WHOLE, np.array(ROWS), sample_weight=[1, 2, 3]),
        "Leave one out",
        lambda: hqs_scorer(sample_weight=[1, 2, 3], cut=False, **BY_ITEM)(WHOLE, np.array(ROWS)),
        hqs_score(ROWS, Hierarchy.from_children([[0, 1], [3, 2]], 3), sample_weight=[1, 2, 3], **BY_ITEM),
    ),
    "rows of a scorer": (
        lambda: hqs_scorer(cut=False, **BY_ITEM)(WHOLE, np.array(ROWS)[:2]),
        "Fit and score on the same rows",
        lambda: hqs_scorer(cut=False, **BY_ITEM)(WHOLE, np.array(ROWS)),
        hqs_score(ROWS, Hierarchy.from_children([[0, 1], [3, 2]], 3), **BY_ITEM),
    ),
    "an incomplete tree": (
        lambda: cut_tree([[0, 1]], 3, 2),
        "Fit with compute_full_tree=True",
        lambda: cut_tree([[0, 1], [2, 3]], 3, 2).n_items,
        3,
    ),
    "heights with features": (
        lambda: cophenetic_correlation(X, TREE, other_heights="sizes"),
        "^other_heights: .*Leave it out",
        lambda: -1 <= cophenetic_correlation(X, TREE) <= 1,
        True,
    ),
    "similarity with a tree": (
        lambda: cophenetic_correlation(TREE, TREE, similarity="negative_euclidean"),
        "^similarity: .*Leave it out",
        lambda: cophenetic_correlation(TREE, TREE),
        1.0,
    ),
    "items of two trees": (
        lambda: robinson_foulds(PAIRS, TREE),
        "Build both trees over the same items",
        lambda: robinson_foulds(TREE, TREE),
        0,
    ),
    "names of two trees": (
        lambda: robinson_foulds(NAMED["abcd"], NAMED["abce"]),
        "Build both trees over the same items",
        lambda: robinson_foulds(NAMED["abcd"], NAMED["abcd"]),
        0,
    ),
    "names of two trees, other advice": (
        lambda: robinson_foulds(NAMED["abcd"], NAMED["abce"]),
        "or compare by number",
        lambda: robinson_foulds(*(Hierarchy(tree.parent, 4) for tree in NAMED.values())),
        0,
    ),
    "a share in percent": (
        lambda: find_misfiled(X, TREE).select(10),
        "Pass 0.1 for 10 %",
        lambda: len(find_misfiled(X, TREE).select(0.1)) <= N,
        True,
    ),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice_that_is_taken_works(name):
    wrong, words, right, value = ADVICE[name]
    with pytest.raises(PomdpHierError, match=words):
        wrong()
    assert right() == pytest.approx(value, abs=1e-12)


def test_columns_of_different_scale_are_standardized():
    tree = Hierarchy.from_labels(np.arange(40) % 4)
    rows = RANDOM + 5 * np.eye(4)[np.arange(40) % 4][:, :3]
    large = rows * [1e6, 1, 1]
    assert "Standardize them" in find_misfiled(large, tree).summary()
    standard = (large - large.mean(axis=0)) / large.std(axis=0)
    assert "Standardize" not in find_misfiled(standard, tree).summary()
