"""Belief updaters on arrays and particles, and the comparison of a custom updater with Bayes' rule."""

from pomdp_hier.beliefs.comparison import assert_updaters_agree
from pomdp_hier.beliefs.updaters import BeliefUpdater, ParticleUpdater, TabularUpdater

__all__ = ["BeliefUpdater", "ParticleUpdater", "TabularUpdater", "assert_updaters_agree"]
