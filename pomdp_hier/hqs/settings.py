"""The settings of a score, made and checked once, at the door: what to compute, how to run it, and how to sample.

Everything inside hands these records on. What a route does not use is refused, with the route that would use it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pomdp_hier._arguments import check_flag, generator, is_integer
from pomdp_hier._engines.task import AlwaysDescend, HindsightRule, LookAhead, Rule, SearchRoot, Tie, as_rule
from pomdp_hier._jobs import check_jobs
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError, Setting
from pomdp_hier.features.similarity import Similarity, as_similarity
from pomdp_hier.hqs.guidance import check_temperature
from pomdp_hier.hqs.reward import Reward
from pomdp_hier.hqs.sampling import Sampling

if TYPE_CHECKING:
    from pomdp_hier.pomdp.problem import POMDP


CALIBRATED = "calibrated"
_ENGINES = ("auto", "numpy", "numba", "generic")


@dataclass(frozen=True)
class Settings:
    """What to compute; `evaluate` says what each means.

    Raises:
        ParameterError: For a setting that cannot be.

    Example:
        >>> Settings(delta=0.1).record()["delta"]
        0.1
    """

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
            raise ParameterError(
                Argument("delta"), f": got {brief(self.delta)}; expected a positive number or '{CALIBRATED}'."
            )
        check_temperature(1.0 if isinstance(self.delta, str) else self.delta, self.nu)
        as_rule(self.policy, self.tie)
        if self.reward is not None and not callable(self.reward):
            raise ParameterError(
                f"reward: got {brief(self.reward)}; expected "
                "a function, reward(size, n_items), or None for the paper's."
            )
        check_flag("enter_own_singleton", self.enter_own_singleton)

    @property
    def rule(self) -> Rule | None:
        """The stopping rule that the policy is; None for one that takes the generic route."""
        return as_rule(self.policy, self.tie)

    def check_tie(self) -> None:
        """Raise for a tie rule beside a policy that settles ties itself.

        Raises:
            ParameterError: The tie rule would be ignored.
        """
        if self.tie == "descend" or isinstance(self.policy, str):
            return
        if getattr(self.policy, "tie", None) != self.tie:
            raise ParameterError(
                Argument("tie"),
                f": got {brief(self.tie)}, which policy {named(self.policy)} does not use: it settles ties itself. "
                "Leave it out, or choose a policy by its name: ",
                Setting("policy", "one-step"),
            )

    def record(self) -> dict[str, Any]:
        """Return the settings as a result keeps them."""
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
    """How to run it; `evaluate` says what each means.

    Raises:
        ParameterError: For a setting that cannot be.

    Example:
        >>> Run(threads=2).is_generic(Settings())
        False
    """

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
            raise ParameterError(
                f"threads: got {brief(self.threads)}; expected "
                "an integer of at least 1, or None for one per usable CPU."
            )
        check_flag("progress", self.progress)
        if self.updater is not None and not callable(self.updater):
            raise ParameterError(
                f"updater: got {brief(self.updater)}; expected "
                "a function from a problem to an updater, such as BayesUpdater."
            )
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
        """Whether these settings take the generic route, instead of an engine that scores all items at once.

        Raises:
            ParameterError: The engine cannot run the policy.
        """
        generic = self.engine == "generic" or settings.rule is None
        if generic and self.engine not in ("auto", "generic"):
            raise ParameterError(
                f"engine: got {brief(self.engine)}; expected "
                f"'generic', as policy {named(settings.policy)} is not a stopping rule."
            )
        return generic

    def check_used(self, *settings: Settings) -> None:
        """Raise for what none of these searches uses.

        Raises:
            ParameterError: A setting would be ignored; the message says what would use it.
        """
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

    def _refuse(self, names: tuple[str, ...], route: str, remedy: str = "Pass that, or leave it out.") -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in names and value != field.default:
                raise ParameterError(f"{field.name}: got {brief(value)}, which only {route} uses. {remedy}")


@dataclass(frozen=True)
class Request:
    """All that the keyword arguments of `evaluate` say."""

    settings: Settings
    run: Run
    sampling: Sampling

    def check_used(self) -> None:
        """Raise for what scoring one tree under one policy would ignore.

        Raises:
            ParameterError: A setting would be ignored; the message says what would use it.
        """
        self.settings.check_tie()
        self.run.check_used(self.settings)
        self.check_random_state(self.settings)

    def check_random_state(self, *settings: Settings) -> None:
        """Raise for a random state that neither a sample nor a policy of these searches uses.

        Raises:
            ParameterError: The random state has no effect.
        """
        given, whole = self.run.random_state, is_integer(self.run.random_state)
        if given is None or self.sampling.asked or (whole and any(self.run.is_generic(each) for each in settings)):
            return
        raise ParameterError(
            f"random_state: got {brief(given)}, which only a sample or an integer with engine='generic' uses. Pass "
            "sample_size or half_width, or leave it out."
        )


def read_settings(given: Mapping[str, Any], **refused: str) -> Request:
    """Return the records of keyword arguments such as `evaluate` takes.

    Args:
        given: The keyword arguments.
        **refused: Those that this function cannot take, each with the reason and what to do instead.

    Raises:
        ParameterError: For an unknown or refused one, or a value that cannot be.

    Example:
        >>> read_settings({"delta": 0.1, "threads": 2}).run.threads
        2
    """
    if "checkpoint" in refused:
        refused.setdefault("policy_version", refused["checkpoint"])
    for name, reason in refused.items():
        if name in given:
            raise ParameterError(f"{name}: got {brief(given[name])}; {reason}")
    kinds = (Settings, Run, Sampling)
    known = [{field.name for field in fields(kind)} for kind in kinds]
    unknown = [name for name in given if not any(name in names for names in known)]
    if unknown:
        expected = ", ".join(field.name for kind in kinds for field in fields(kind) if field.name not in refused)
        raise ParameterError(f"{unknown[0]}: got an unknown setting; expected one of {expected}.")
    parts = [{name: value for name, value in given.items() if name in names} for names in known]
    return Request(Settings(**parts[0]), Run(**parts[1]), Sampling(**parts[2]))


def named(setting: Any) -> str:
    """Return the name of a setting, or how it writes itself."""
    if isinstance(setting, str):
        return setting
    return getattr(setting, "__name__", None) or brief(setting, 1000)
