"""Belief updates: Bayes' rule on models, on arrays and on particles, and one updater held against another."""

from pomdp_hier.beliefs.comparison import UpdaterComparison, assert_updaters_agree, compare_updaters
from pomdp_hier.beliefs.particle import ParticleUpdater
from pomdp_hier.beliefs.updaters import (
    BayesUpdater,
    BeliefUpdater,
    FunctionUpdater,
    TabularUpdater,
    as_updater,
)

__all__ = [
    "BayesUpdater",
    "BeliefUpdater",
    "FunctionUpdater",
    "ParticleUpdater",
    "TabularUpdater",
    "UpdaterComparison",
    "as_updater",
    "assert_updaters_agree",
    "compare_updaters",
]
