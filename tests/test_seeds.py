"""Every function that draws takes a seed, and refuses what numpy has no random numbers for."""

import numpy as np
import pytest

from pomdp_hier import BayesUpdater, Hierarchy, compare_updaters, evaluate
from pomdp_hier.analysis import appraise, delta_sweep
from pomdp_hier.beliefs import ParticleUpdater, assert_updaters_agree
from pomdp_hier.errors import ParameterError
from pomdp_hier.hqs.inputs import calibrate_delta
from pomdp_hier.improvement import improve
from pomdp_hier.measures import bakers_gamma, cophenetic_correlation, triplet_distance
from pomdp_hier.planning import POMCP, POUCT, RandomPolicy
from pomdp_hier.pomdp import to_environment
from pomdp_hier.problems import rock_sample, tiger
from pomdp_hier.simulation.comparison import compare_policies
from pomdp_hier.simulation.monte_carlo import simulate, simulate_in_pomdp_py

X = np.random.default_rng(0).normal(size=(4, 2))
TREE = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
OTHER = Hierarchy.from_children([[0, 2], [1, 3], [4, 5]], 4)
BAYES = BayesUpdater(tiger())
DRAWN = {"mode": "random", "tolerance": 1e-9}

DRAWS = {
    "appraise": lambda seed: appraise(X, TREE, n_shuffles=1, random_state=seed),
    "assert_updaters_agree": lambda seed: assert_updaters_agree(BAYES, BAYES, tiger(), depth=1, **DRAWN, seed=seed),
    "bakers_gamma": lambda seed: bakers_gamma(TREE, OTHER, exact_limit=0, n_samples=9, random_state=seed),
    "calibrate_delta": lambda seed: calibrate_delta(X, TREE, max_entries=1, random_state=seed),
    "compare_policies": lambda seed: compare_policies(
        {"r": RandomPolicy()}, tiger(), method="monte-carlo", n_episodes=2, seed=seed
    ),
    "compare_updaters": lambda seed: compare_updaters(BAYES, BAYES, tiger(), depth=1, **DRAWN, seed=seed),
    "delta_sweep": lambda seed: delta_sweep(X, TREE, [0.1], n_shuffles=1, random_state=seed),
    "evaluate": lambda seed: evaluate(X, TREE, sample_size=2, random_state=seed),
    "generic": lambda seed: evaluate(X, TREE, engine="generic", random_state=seed),
    "improve": lambda seed: improve(X, TREE, folds=2, random_state=seed),
    "ParticleUpdater": lambda seed: ParticleUpdater(tiger(), seed=seed),
    "POMCP": lambda seed: POMCP(seed=seed),
    "POUCT": lambda seed: POUCT(seed=seed),
    "RandomPolicy": lambda seed: RandomPolicy(seed),
    "rock_sample": lambda seed: rock_sample(2, 1, seed=seed),
    "simulate": lambda seed: simulate(RandomPolicy(), tiger(), n_episodes=2, seed=seed),
    "simulate_in_pomdp_py": lambda seed: simulate_in_pomdp_py(RandomPolicy(), tiger(), n_episodes=2, seed=seed),
    "to_environment": lambda seed: to_environment(tiger(), seed=seed),
    "tree_cophenetic_correlation": lambda seed: cophenetic_correlation(
        TREE, OTHER, exact_limit=0, n_samples=9, random_state=seed
    ),
    "triplet_distance": lambda seed: triplet_distance(TREE, OTHER, exact_limit=0, n_samples=9, random_state=seed),
}


@pytest.mark.parametrize("seed", [-1, 2.5, float("nan"), "x", -(10**30)])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_what_is_no_seed_is_refused(draw, seed):
    with pytest.raises(ParameterError, match=r"seed|random_state|rng"):
        draw(seed)


COUNTS = {
    "bakers_gamma": lambda count: bakers_gamma(TREE, OTHER, n_samples=count),
    "ParticleUpdater": lambda count: ParticleUpdater(tiger(), count),
    "tree_cophenetic_correlation": lambda count: cophenetic_correlation(TREE, OTHER, n_samples=count),
    "triplet_distance": lambda count: triplet_distance(TREE, OTHER, n_samples=count),
}


@pytest.mark.parametrize("count", [0, -1, 2.5, None, "x", True, 10**20])
@pytest.mark.parametrize("draw", COUNTS.values(), ids=COUNTS)
def test_what_is_no_number_of_draws_is_refused(draw, count):
    with pytest.raises(ParameterError, match=r"got .*100,000,000"):
        draw(count)
