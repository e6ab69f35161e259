"""What a message advises is done, and works: a call, words of its message, and the same call with the advice taken."""

import numpy as np
import pytest

from pomdp_hier import (
    Hierarchy,
    appraise,
    compare,
    compare_policies,
    diagnose,
    evaluate,
    hqs_score,
    improve,
    simulate,
)
from pomdp_hier.analysis import (
    apply_moves,
    check_structure,
    compare_search_policies,
    delta_sweep,
    hqs_scorer,
    score_by_levels,
    suggest_moves,
)
from pomdp_hier.beliefs import ParticleUpdater
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.measures import (
    bakers_gamma,
    class_f_score,
    cophenetic_correlation,
    dasgupta_cost,
    dendrogram_purity,
    entanglement,
    hierarchical_precision_recall,
    tree_sampling_divergence,
)
from pomdp_hier.planning import RandomPolicy, solve
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import tiger
from pomdp_hier.simulation import policy_value
from pomdp_hier.simulation.comparison import compare_values
from tests.planted import clean_case

X, TREE = clean_case()
D = {"delta": 0.05}
N = TREE.n_items
TIGER = tiger(discount=0.5)
FIRST = {"first": FirstAction()}
SQUARE = np.exp(-np.linalg.norm(X[:, None] - X[None], axis=-1))
SIGNED = np.array([[1.0, 0.0], [1.0, 0.2], [-1.0, 0.1], [-1.0, 0.3]])
FOUR = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
COSINES = SIGNED @ SIGNED.T / np.outer(*[np.linalg.norm(SIGNED, axis=1)] * 2)


def signed_divergence(**advice):
    return tree_sampling_divergence(advice.pop("X", COSINES), FOUR, similarity="precomputed")


def sampled(**given):
    return evaluate(X, TREE, **D, **given)


def improved(**given):
    return improve(X, TREE, **{"max_edits": 1, "folds": 0, **D, **given})


ADVICE = {
    "labels": (
        lambda: dendrogram_purity(TREE, ["a"]),
        "got 1; expected 45",
        lambda: dendrogram_purity(TREE, ["a"] * N),
    ),
    "a label": (lambda: dendrogram_purity(TREE, [[1]] * N), "a name, a number", lambda: class_f_score(TREE, [1] * N)),
    "no label": (
        lambda: class_f_score(TREE, [None] * N),
        "label or path",
        lambda: class_f_score(TREE, [("a", "b")] * N),
    ),
    "paths": (
        lambda: hierarchical_precision_recall(["a"], []),
        "got 0 .* expected 1",
        lambda: hierarchical_precision_recall(["a"], ["a"]),
    ),
    "power": (lambda: entanglement(TREE, TREE, power=0), "such as 1.5", lambda: entanglement(TREE, TREE, power=1.5)),
    "heights": (
        lambda: bakers_gamma(TREE, TREE, heights=[1.0]),
        "of the 13 internal nodes, or of all 58",
        lambda: (bakers_gamma(TREE, TREE, heights=TREE.sizes[N:]), bakers_gamma(TREE, TREE, heights=TREE.sizes)),
    ),
    "word of heights": (
        lambda: cophenetic_correlation(X, TREE, heights="tall"),
        "'sizes', 'levels'",
        lambda: (cophenetic_correlation(X, TREE, heights="sizes"), cophenetic_correlation(X, TREE, heights="levels")),
    ),
    "distances": (
        lambda: dasgupta_cost(X, TREE, similarity="negative_euclidean"),
        "a matrix of similarities",
        lambda: dasgupta_cost(SQUARE, TREE, similarity="precomputed"),
    ),
    "negative similarities": (
        signed_divergence,
        r"\(1 \+ cosine\) / 2",
        lambda: signed_divergence(X=(1 + COSINES) / 2),
    ),
    "min_denominator": (
        lambda: appraise(X, TREE, min_denominator=-1, n_shuffles=0, **D),
        "min_denominator.*-1.*0.05",
        lambda: appraise(X, TREE, min_denominator=0.05, n_shuffles=0, **D),
    ),
    "a result of a sample": (
        lambda: diagnose(X, TREE, sampled(sample_size=9), **D),
        "Leave it out",
        lambda: (diagnose(X, TREE, **D), diagnose(X, TREE, sampled(), **D)),
    ),
    "a result of other settings": (
        lambda: diagnose(X, TREE, sampled(), delta=0.1),
        "delta: got 0.1; expected 0.05.*same settings",
        lambda: diagnose(X, TREE, sampled(), **D),
    ),
    "a diagnosis of a sample": (
        lambda: diagnose(X, TREE, sample_size=9, **D),
        "Leave it out",
        lambda: diagnose(X, TREE, **D),
    ),
    "duplicates": (
        lambda: diagnose(X, TREE, duplicates=[1], **D),
        "one per item",
        lambda: diagnose(X, TREE, duplicates=range(N), **D),
    ),
    "side": (
        lambda: score_by_levels(X, TREE, remove_from="x", **D),
        "'top'",
        lambda: score_by_levels(X, TREE, remove_from="top", **D),
    ),
    "moves": (
        lambda: apply_moves(TREE, [(0, 46), (0, 47)]),
        "two moves of node 0",
        lambda: apply_moves(TREE, [(0, 46)]),
    ),
    "moves under other settings": (
        lambda: suggest_moves(X, diagnose(X, TREE, **D), delta=0.1),
        "delta: got 0.1; expected 0.05",
        lambda: suggest_moves(X, diagnose(X, TREE, **D), **D),
    ),
    "lopsided": (lambda: check_structure(TREE, lopsided=2), "0.9", lambda: check_structure(TREE, lopsided=0.9)),
    "deltas": (
        lambda: delta_sweep(X, TREE, [0.1, 0.1], n_shuffles=0),
        "each once",
        lambda: delta_sweep(X, TREE, [0.1], n_shuffles=0),
    ),
    "a delta of a sweep": (
        lambda: delta_sweep(X, TREE, delta=0.1, n_shuffles=0),
        "Pass deltas",
        lambda: delta_sweep(X, TREE, [0.1], n_shuffles=0),
    ),
    "target of a sweep": (
        lambda: delta_sweep(X, TREE, [0.1], half_width=0.1),
        "Pass sample_size",
        lambda: delta_sweep(X, TREE, [0.1], sample_size=9, n_shuffles=0),
    ),
    "reference": (
        lambda: compare(X, {"a": TREE}, reference="b", measures=False, **D),
        "expected one of 'a'",
        lambda: compare(X, {"a": TREE}, reference="a", measures=False, **D),
    ),
    "order of items": (
        lambda: compare(np.eye(4), {"a": named("abcd"), "b": named("dcba")}, measures=False),
        r"other.permuted\(other.rows\(first.item_labels\), with_labels=True\)",
        lambda: compare(
            np.eye(4),
            {"a": named("abcd"), "b": named("dcba").permuted(named("dcba").rows([*"abcd"]), with_labels=True)},
            measures=False,
        ),
    ),
    "checkpoint of a comparison": (
        lambda: compare(X, {"a": TREE}, policy_version="1", measures=False, **D),
        "Evaluate each tree",
        lambda: compare(X, {"a": TREE}, measures=False, **D),
    ),
    "search policies": (
        lambda: compare_search_policies(X, TREE, "descend", **D),
        "'one-step', 'optimal'",
        lambda: compare_search_policies(X, TREE, ["one-step", "descend"], **D),
    ),
    "no search policy": (
        lambda: compare_search_policies(X, TREE, [], **D),
        "^policies.*'one-step'",
        lambda: compare_search_policies(X, TREE, ["one-step"], **D),
    ),
    "sample of a scorer": (
        lambda: hqs_scorer(sample_size=9, random_state=1),
        "sampling='simple'.*integer as random_state",
        lambda: (
            hqs_scorer(sample_size=9, sampling="simple", random_state=1),
            hqs_scorer(sample_size=9, sampling="simple", random_state=np.int64(1)),
        ),
    ),
    "random_state": (
        lambda: sampled(random_state=1),
        "Pass sample_size or half_width, or leave it out",
        lambda: (sampled(random_state=1, sample_size=9), sampled(random_state=1, half_width=0.5), sampled()),
    ),
    "size and target": (
        lambda: sampled(sample_size=9, half_width=0.1),
        "expected one of them",
        lambda: (sampled(sample_size=9), sampled(half_width=0.5)),
    ),
    "sample_size": (
        lambda: hqs_score(X, TREE, sample_size=N + 1),
        f"1 to {N}, or a fraction",
        lambda: (hqs_score(X, TREE, sample_size=N), hqs_score(X, TREE, sample_size=0.5)),
    ),
    "folds": (lambda: improved(folds=1), "at least 2, or 0", lambda: (improved(folds=2), improved(folds=0))),
    "max_loss": (lambda: improved(max_loss=-1), "None", lambda: (improved(max_loss=0), improved(max_loss=None))),
    "engine of improve": (
        lambda: improved(engine="generic"),
        r"engine='auto'.*evaluate\(..., engine='generic'\)",
        lambda: (improved(engine="auto"), evaluate(X, TREE, engine="generic", **D)),
    ),
    "generic settings of improve": (lambda: improved(n_jobs=2), "n_jobs.*Leave it out", improved),
    "checkpoint of improve": (lambda: improved(checkpoint="x"), "checkpoint.*Leave it out", improved),
    "policy of improve": (
        lambda: improved(objective="hqs", policy="optimal"),
        "one-step",
        lambda: (improved(objective="hqs", policy="one-step"), evaluate(X, TREE, policy="optimal", **D)),
    ),
    "policy of the search length": (
        lambda: improved(policy="descend"),
        'Leave it out, or pass objective="hqs"',
        lambda: (improved(), improved(objective="hqs", policy="descend")),
    ),
    "label cost of HQS": (
        lambda: improved(objective="hqs", label_cost=1),
        'Leave it out, or pass objective="search_length"',
        lambda: (improved(objective="hqs"), improved(objective="search_length", label_cost=1)),
    ),
    "sample of improve": (lambda: improved(sample_size=9), "Leave it out", improved),
    "level": (lambda: improved(fixed_levels=[9]), "from 0.*to 3", lambda: improved(fixed_levels=[1])),
    "horizon of a solution": (
        lambda: compare_policies(FIRST, TIGER, horizon=2, solution=solve(TIGER, horizon=3)),
        "horizon=3; expected horizon=2",
        lambda: (
            compare_policies(FIRST, TIGER, horizon=2, solution=solve(TIGER, horizon=2)),
            compare_policies(FIRST, TIGER, horizon=3, solution=solve(TIGER, horizon=3)),
        ),
    ),
    "another problem": (
        lambda: compare_policies(FIRST, TIGER, horizon=2, solution=solve(tiger(discount=0.9), horizon=2)),
        r"other numbers.*solve\(environment, horizon=2\)",
        lambda: compare_policies(FIRST, TIGER, horizon=2, solution=solve(TIGER, horizon=2)),
    ),
    "another belief": (
        lambda: compare_policies(FIRST, TIGER, solution=solve(TIGER, belief={"tiger-left": 1})),
        r"solve\(environment\)",
        lambda: compare_policies(FIRST, TIGER, solution=solve(TIGER)),
    ),
    "no policy": (lambda: compare_policies({}, TIGER), "^policies", lambda: compare_policies(FIRST, TIGER)),
    "baseline": (
        lambda: compare_policies(FIRST, TIGER, baseline="x", horizon=1),
        "'first'",
        lambda: compare_policies(FIRST, TIGER, baseline="first", horizon=1),
    ),
    "lengths": (
        lambda: compare_values({"a": [1.0], "b": [1.0, 2.0]}),
        r"\[1, 2\] values; expected one length",
        lambda: compare_values({"a": [1.0, 2.0], "b": [1.0, 2.0]}),
    ),
    "beliefs": (
        lambda: policy_value(RandomPolicy(0), TIGER, max_beliefs=40, horizon=9),
        "horizon=4 or less, raise max_beliefs, simulate",
        lambda: (
            policy_value(RandomPolicy(0), TIGER, max_beliefs=40, horizon=4),
            policy_value(RandomPolicy(0), TIGER, max_beliefs=4000, horizon=9),
            compare_policies([RandomPolicy(0)], TIGER, method="monte-carlo", n_episodes=3, horizon=9),
            compare_policies([solve(TIGER, precision=0.1).controller()], TIGER),
        ),
    ),
    "an updater that draws": (
        lambda: simulate(FirstAction(), TIGER, updater=ParticleUpdater(TIGER), n_episodes=2, horizon=1, n_jobs=2),
        "n_jobs.*Leave it out",
        lambda: simulate(FirstAction(), TIGER, updater=ParticleUpdater(TIGER), n_episodes=2, horizon=1),
    ),
    "no end": (
        lambda: simulate(FirstAction(), tiger(discount=1), n_episodes=2),
        "Set a horizon",
        lambda: simulate(FirstAction(), tiger(discount=1), n_episodes=2, horizon=3),
    ),
    "truncation_error": (
        lambda: simulate(FirstAction(), TIGER, n_episodes=2, truncation_error=0),
        "1e-9",
        lambda: simulate(FirstAction(), TIGER, n_episodes=2, truncation_error=1e-9),
    ),
    "confidence": (
        lambda: compare_policies(FIRST, TIGER, confidence=95, horizon=1),
        "0.95",
        lambda: compare_policies(FIRST, TIGER, confidence=0.95, horizon=1),
    ),
}


def named(names):
    return Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, labels=[*names])


@pytest.mark.parametrize("name", ADVICE)
def test_advice_that_is_taken_works(name):
    wrong, words, right = ADVICE[name]
    with pytest.raises(PomdpHierError, match=words):
        wrong()
    right()
