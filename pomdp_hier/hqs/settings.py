"""Settings of a score, checked once on entry: the model, the run, and the sample.

A setting without effect raises an error that names the engine or setting that would use it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pomdp_hier._arguments import check_flag, generator, is_integer, unexpected
from pomdp_hier._engines.task import AlwaysDescend, HindsightRule, LookAhead, Rule, SearchRoot, Tie, as_rule
from pomdp_hier._progress import check_jobs
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError, Setting
from pomdp_hier.features.similarity import Similarity, as_similarity
from pomdp_hier.hqs.guidance import Reward, check_temperature
from pomdp_hier.hqs.sampling import Sampling

if TYPE_CHECKING:
    from pomdp_hier.pomdp.problem import POMDP


CALIBRATED = "calibrated"
_ENGINES = ("auto", "numpy", "numba", "generic")


@dataclass(frozen=True)
class Settings:
    """Settings of the model; `evaluate` documents them."""

    similarity: Similarity = "cosine"
    delta: float | Literal["calibrated"] = 0.01
    nu: float = 1.0
    tie: Tie = "descend"
    policy: Any = "one-step"
    reward: Reward | None = None
    enter_own_singleton: bool = True

    def __post_init__(self) -> None:
        as_similarity(self.similarity)
        if isinstance(self.delta, str) and self.delta != CALIBRATED:
            raise unexpected("delta", self.delta, f"a positive number or '{CALIBRATED}'")
        check_temperature(1.0 if isinstance(self.delta, str) else self.delta, self.nu)
        as_rule(self.policy, self.tie)
        if self.reward is not None and not callable(self.reward):
            raise unexpected("reward", self.reward, "a function, reward(size, n_items), or None for the paper's")
        check_flag("enter_own_singleton", self.enter_own_singleton)

    @property
    def rule(self) -> Rule | None:
        """The stopping rule of the policy; None for a policy of the generic engine."""
        return as_rule(self.policy, self.tie)

    def check_tie(self) -> None:
        """Raise for a tie rule that the policy ignores."""
        if self.tie == "descend" or isinstance(self.policy, str):
            return
        if getattr(self.policy, "tie", None) != self.tie:
            raise ParameterError(
                Argument("tie"),
                f": got {brief(self.tie)}, which policy {named(self.policy)} does not use. "
                "Leave it out, or pass a policy by name: ",
                Setting("policy", "one-step"),
                ".",
            )

    def record(self) -> dict[str, Any]:
        """Return the settings for the ``config`` of a result."""
        return {
            "similarity": named(self.similarity),
            "delta": float(self.delta),
            "nu": float(self.nu),
            "tie": self.tie,
            "policy": named(self.policy),
            "reward": "paper" if self.reward is None else named(self.reward),
            "enter_own_singleton": self.enter_own_singleton,
        }


@dataclass(frozen=True)
class Run:
    """Settings of the run; `evaluate` documents them."""

    engine: str = "auto"
    threads: int | None = None
    progress: bool = False
    updater: "Callable[[POMDP], Any] | None" = None
    random_state: int | np.random.Generator | None = None
    n_jobs: int = 1
    checkpoint: str | os.PathLike[str] | None = None
    policy_version: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.engine, str) or self.engine not in _ENGINES:
            raise ParameterError(f"engine: got {brief(self.engine)}; expected {', '.join(map(repr, _ENGINES))}.")
        if self.threads is not None and not (is_integer(self.threads) and self.threads >= 1):
            raise unexpected("threads", self.threads, "an integer of at least 1, or None for one per usable CPU")
        check_flag("progress", self.progress)
        if self.updater is not None and not callable(self.updater):
            raise unexpected("updater", self.updater, "a function from a problem to an updater, such as BayesUpdater")
        generator("random_state", self.random_state)
        check_jobs(self.n_jobs)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise ParameterError(f"checkpoint: got {brief(self.checkpoint)}; expected the path of a file.")
        if self.policy_version is not None and not isinstance(self.policy_version, str):
            raise ParameterError(f"policy_version: got {brief(self.policy_version)}; expected text, such as 'bold 2'.")
        if self.policy_version is not None and self.checkpoint is None:
            raise ParameterError(
                f"policy_version: got {brief(self.policy_version)}, which only a checkpoint uses. Pass checkpoint= and "
                "engine='generic', or leave it out."
            )

    @property
    def policy_seed(self) -> int:
        """The seed of the policies of the generic engine: the integer that was given, otherwise 0."""
        return int(self.random_state) if is_integer(self.random_state) else 0

    def seeded(self, random_state: Any) -> "Run":
        """Return the same run with this random state, for functions that take one for shuffles as well."""
        return replace(self, random_state=random_state)

    def is_generic(self, settings: Settings) -> bool:
        """Return whether these settings need the generic engine."""
        generic = self.engine == "generic" or settings.rule is None
        if generic and self.engine not in ("auto", "generic"):
            raise unexpected(
                "engine", self.engine, f"'generic', as policy {named(settings.policy)} is not a stopping rule"
            )
        return generic

    def check_used(self, *settings: Settings) -> None:
        """Raise for a setting that none of these searches uses."""
        generic = [self.is_generic(each) for each in settings]
        if all(generic) or self.engine == "numpy":
            rules = [each.rule for each in settings]
            compiled = all(isinstance(rule, LookAhead | AlwaysDescend | SearchRoot | HindsightRule) for rule in rules)
            self._refuse(
                ("threads",),
                "engine='numba'",
                "Pass that for dense features, or leave it out." if compiled else "Leave it out.",
            )
        if not any(generic):
            self._refuse(("updater", "n_jobs", "checkpoint", "policy_version"), "engine='generic'")

    def _refuse(self, names: tuple[str, ...], user: str, remedy: str = "Pass that, or leave it out.") -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in names and value != field.default:
                raise ParameterError(f"{field.name}: got {brief(value)}, which only {user} uses. {remedy}")


@dataclass(frozen=True)
class Request:
    """The keyword arguments of `evaluate`."""

    settings: Settings
    run: Run
    sampling: Sampling
    sample_weight: Any = None

    def check_used(self) -> None:
        """Raise for a setting without effect on the score of one tree under one policy."""
        self.settings.check_tie()
        self.run.check_used(self.settings)
        self.check_random_state(self.settings)

    def check_random_state(self, *settings: Settings) -> None:
        """Raise for a random state that neither a sample nor a policy of these searches uses."""
        given, whole = self.run.random_state, is_integer(self.run.random_state)
        if given is None or self.sampling.asked or (whole and any(self.run.is_generic(each) for each in settings)):
            return
        raise ParameterError(
            f"random_state: got {brief(given)}, which only a sample or an integer with engine='generic' uses. Pass "
            "sample_size or half_width, or leave it out."
        )


def read_settings(given: Mapping[str, Any], **refused: str) -> Request:
    """Return the records of keyword arguments of `evaluate`."""
    if "checkpoint" in refused:
        refused.setdefault("policy_version", refused["checkpoint"])
    for name, reason in refused.items():
        if name in given:
            raise ParameterError(f"{name}: got {brief(given[name])}; expected none, as {reason}")
    kinds = (Settings, Run, Sampling)
    known = [{field.name for field in fields(kind)} for kind in kinds]
    unknown = [name for name in given if name != "sample_weight" and not any(name in names for names in known)]
    if unknown:
        names = [*(field.name for kind in kinds for field in fields(kind)), "sample_weight"]
        expected = ", ".join(name for name in dict.fromkeys(names) if name not in refused)
        raise ParameterError(f"{unknown[0]}: got an unknown setting; expected one of {expected}.")
    parts = [{name: value for name, value in given.items() if name in names} for names in known]
    return Request(Settings(**parts[0]), Run(**parts[1]), Sampling(**parts[2]), given.get("sample_weight"))


def named(setting: Any) -> str:
    """Return the name of a setting, or its repr."""
    if isinstance(setting, str):
        return setting
    return getattr(setting, "__name__", None) or brief(setting, 1000)
