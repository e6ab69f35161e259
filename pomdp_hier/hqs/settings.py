"""The settings of a score."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pomdp_hier.errors import DataWarning
from pomdp_hier.features.affinity import affinity
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import check_temperature, temperatures
from pomdp_hier.hqs.reward import node_rewards
from pomdp_hier.scorer.rules import OneStep, as_rule
from pomdp_hier.scorer.task import Task

__all__ = ["already_told", "search_task"]


@contextmanager
def already_told() -> Iterator[None]:
    """Keep quiet about degenerate features, of which the first scoring has told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def search_task(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: Any = "cosine",
    delta: float = 0.01,
    nu: float = 1.0,
    tie: Any = "descend",
    policy: Any = "one-step",
    reward: Any = None,
    enter_own_singleton: bool = True,
    **_: Any,
) -> Task:
    """Return task that scoring with these settings is; a policy that is no stopping rule counts as the one-step policy.

    Settings that only say how to run it, such as the engine, are not needed here.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For a setting that cannot.
    """
    check_temperature(delta, nu)
    return Task(
        affinity=affinity(X, hierarchy, similarity),
        rewards=node_rewards(hierarchy, reward),
        temperatures=temperatures(np.arange(int(hierarchy.height) + 1), delta, nu),
        rule=as_rule(policy, tie) or OneStep(tie),
        enter_own_singleton=enter_own_singleton,
    )
