"""The settings of a score, as a result and a checkpoint keep them."""

from typing import Any

import numpy as np

from pomdp_hier.errors import ParameterError
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hqs.reward import Reward
from pomdp_hier.scorer.rules import Tie

__all__ = ["check_flag", "named", "record"]


def record(
    similarity: Similarity, delta: float, nu: float, tie: Tie, policy: Any, reward: Reward | None, own_singleton: bool
) -> dict[str, Any]:
    """Return the settings of the model as a result keeps them."""
    return {
        "similarity": named(similarity),
        "delta": float(delta),
        "nu": float(nu),
        "tie": tie,
        "policy": named(policy),
        "reward": "paper" if reward is None else named(reward),
        "enter_own_singleton": own_singleton,
    }


def named(setting: Any) -> str:
    """Return the name of a setting, or how it writes itself."""
    if isinstance(setting, str):
        return setting
    return getattr(setting, "__name__", None) or repr(setting)


def check_flag(name: str, value: object) -> None:
    """Raise unless the value is True or False.

    Raises:
        ParameterError: It is something else, such as a word.
    """
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} is {value!r}; expected True or False")
