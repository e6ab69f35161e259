"""Belief updates: Bayes' rule on models, on arrays and on particles, and one updater held against another."""

from pomdp_hier.beliefs.agreement import Agreement, assert_updaters_agree, compare_updaters
from pomdp_hier.beliefs.bayes import BayesUpdater
from pomdp_hier.beliefs.particle import ParticleUpdater
from pomdp_hier.beliefs.tabular import TabularUpdater
from pomdp_hier.beliefs.updater import BeliefUpdater, FullUpdater, FunctionUpdater, as_updater

__all__ = [
    "Agreement",
    "BayesUpdater",
    "BeliefUpdater",
    "FullUpdater",
    "FunctionUpdater",
    "ParticleUpdater",
    "TabularUpdater",
    "as_updater",
    "assert_updaters_agree",
    "compare_updaters",
]
