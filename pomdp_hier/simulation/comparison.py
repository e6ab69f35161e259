"""Comparison of policies in one environment, by exact values or on common random numbers."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import Floats, check_integer, check_kind, check_level, is_one_of, is_real, numbered
from pomdp_hier._intervals import effective_number, mean_interval, rarest, weighted_mean
from pomdp_hier._io.checkpoint import Checkpoint
from pomdp_hier._io.formats import held
from pomdp_hier._progress import check_jobs, shown_progress
from pomdp_hier._text import brief, listed, visible
from pomdp_hier.errors import CheckpointError, ParameterError
from pomdp_hier.planning.certificates.exact_model import fingerprint
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.point_based.solution import Solution
from pomdp_hier.planning.policies import as_policy
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.simulation.comparison_table import ROUNDING, ComparisonRow, PolicyComparison, Sample
from pomdp_hier.simulation.episodes import Episode
from pomdp_hier.simulation.exact import Visit, policy_value
from pomdp_hier.simulation.exact import mdp_value as value_of_mdp
from pomdp_hier.simulation.monte_carlo import simulate
from pomdp_hier.simulation.returns import Returns, SavedReturns, check_checkpoint, key_of, open_returns


@dataclass(frozen=True, eq=False)
class _Run:
    """The values of one policy, its seconds per decision, its records, and the errors of its values."""

    values: Floats
    seconds: float
    traces: Sequence[Visit | Episode] | None = None
    error: float = 0.0
    missed: float = 0.0


def compare_policies(
    policies: Mapping[str, Any] | Sequence[Any],
    problem: POMDP,
    environment: POMDP | None = None,
    *,
    method: Literal["exact", "monte-carlo"] = "exact",
    n_episodes: int = 1000,
    seed: int | None = 0,
    horizon: int | None = None,
    truncation_error: float = 1e-9,
    updater: Any = None,
    baseline: str | None = None,
    mdp_value: bool | float = True,
    solution: Solution | None = None,
    half_width: float | None = None,
    confidence: float = 0.95,
    trace: bool | int = False,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | Checkpoint[Returns] | None = None,
    policy_version: str | None = None,
    progress: bool = False,
) -> PolicyComparison:
    """Return a table of policies in one environment, each with the same agent's model and common random numbers.

    A policy that raises an error has no row; `PolicyComparison.failed` and the caption state the error. If all policies
    fail, or the given baseline does, the error is raised.

    A controller is run from node to node. The value of a controller of infinite horizon is that of a linear system.

    Args:
        policies: A mapping from names, or a sequence whose members are named by their ``name`` or ``repr``.
        problem: The agent's own model.
        environment: The model of states, observations and rewards; the agent's own by default.
        method: ``"exact"`` enumerates beliefs; ``"monte-carlo"`` simulates, on common random numbers.
        n_episodes: The number of episodes per policy.
        seed: The seed of the random numbers.
        horizon: The greatest number of actions of a run; ``None`` for an infinite horizon.
        truncation_error: Without a horizon, episodes end where the remaining discounted reward is below this.
        updater: The agent's belief updater; Bayes' rule by default.
        baseline: The name of the policy that the others are compared with; the first by default.
        mdp_value: True for the regret to the value of the fully observable environment, or that value. False for no
            regret, as for a problem with a belief-dependent reward.
        solution: A solution of the environment (`pomdp_hier.planning.solve`) with the same horizon, for bounds on the
            optimality gap of each policy. The environment may be a copy: all numbers are compared.
        half_width: For ``method="monte-carlo"``: simulate each policy until half its interval is no wider, in rewards.
            Policies are then paired over the least number of episodes.
        confidence: The confidence level of the intervals.
        trace: Keep records of each policy: all visits (exact), or this number of episodes (True: 10).
        n_jobs: The number of processes, as for `simulate` and `policy_value`.
        checkpoint, policy_version: As for `simulate`: the comparison keeps what is finished, and the same call
            continues after a killed process. It needs ``trace=False``.
        progress: Whether to show a progress bar on standard error.

    Raises:
        ParameterError: An unknown method, no policies, an unknown baseline, a solution of another problem, or a
            half-width of an exact comparison.
        CheckpointError: The file is not a checkpoint of this function, is damaged, or is in use.
        MissingExtraError: More than one process without joblib.

    Example:
        >>> coin = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...              reward=lambda s, a: 1 if a == s else -1, terminal=["end"],
        ...              initial_belief={"heads": 0.75, "tails": 0.25}, legal_actions=["tails", "heads"])
        >>> table = compare_policies({"likely": lambda belief: belief.mpe(), "tails": lambda belief: "tails"}, coin)
        >>> [(row.name, row.value, row.verdict, row.mdp_regret) for row in table]
        [('likely', 0.5, 'baseline', 0.5), ('tails', -0.5, 'worse', 1.5)]
    """
    named = _named(policies)
    if not named:
        raise ParameterError("policies: got none; expected at least one.")
    if solution is not None:
        _check_solution(solution, problem if environment is None else environment, horizon)
    if not is_one_of(method, "exact", "monte-carlo"):
        raise ParameterError(f"method: got {brief(method)}; expected 'exact' or 'monte-carlo'.")
    if half_width is not None and method == "exact":
        raise ParameterError(
            f"half_width: got {brief(half_width)} with method='exact'; expected None. Set method='monte-carlo'."
        )
    if not isinstance(mdp_value, bool | None):
        mdp_value = check_mdp_value(mdp_value)
    if not isinstance(trace, bool):
        check_integer("trace", trace)
    check_jobs(n_jobs)
    check_checkpoint(checkpoint, policy_version, seed, updater, trace)
    runs: dict[str, _Run] = {}
    failed: dict[str, Exception] = {}
    keep = 10 if trace is True else int(trace)

    def exact(policy: Any, saved: SavedReturns | None, bar: tqdm) -> _Run:
        if saved is not None and (row := saved.at(0)) is not None:
            return _Run(np.array(row.returns), row.seconds, error=row.error)
        found = policy_value(
            policy,
            problem,
            environment,
            updater=updater,
            horizon=horizon,
            truncation_error=truncation_error,
            trace=bool(trace),
            n_jobs=n_jobs,
            progress=bar,
        )
        if saved is not None:
            saved.add(0, [float(found.value)], [True], found.seconds_per_decision, 1, found.error)
            saved.write()
        return _Run(np.array([float(found.value)]), found.seconds_per_decision, found.visits, found.error)

    def run(name: str, policy: Any, file: Checkpoint[Returns] | None, bar: tqdm) -> _Run:
        version = None if policy_version is None else f"{name}: {policy_version}"
        if method == "exact" and _is_controller_of(policy, problem, environment, horizon, updater) and not trace:
            return _Run(np.array([policy.value()]), math.nan)
        if method == "exact":
            settings = {"method": method, "horizon": horizon, "truncation_error": truncation_error}
            models = (problem, problem if environment is None else environment)
            key = None if file is None else key_of(version, *models, policy=policy, updater=updater, settings=settings)
            return exact(policy, None if file is None or key is None else SavedReturns(file, key), bar)
        sampled = simulate(
            policy,
            problem,
            environment,
            n_episodes=n_episodes,
            seed=seed,
            horizon=horizon,
            truncation_error=truncation_error,
            updater=updater,
            half_width=half_width,
            confidence=confidence,
            keep_episodes=keep,
            n_jobs=n_jobs,
            checkpoint=file,
            policy_version=version,
            progress=bar,
        )
        return _Run(sampled.values, sampled.seconds_per_decision, sampled.episodes, sampled.error, sampled.missed)

    unit, total = (" beliefs", None) if method == "exact" else (" episodes", n_episodes * len(named))
    with shown_progress(progress, "compare", unit, total) as bar, open_returns(checkpoint) as file:
        for name, policy in named.items():
            bar.set_description_str(visible(name), refresh=False)
            try:
                runs[name] = run(name, policy, file, bar)
            except CheckpointError:
                raise
            except Exception as error:  # noqa: BLE001 - an error of one policy must not end the comparison
                error.add_note(f"raised while the policy {brief(name)} was evaluated")
                failed[name] = error
    if failed and (not runs or baseline in failed):
        raise failed[baseline if baseline in failed else next(iter(failed))]
    values = {name: run.values for name, run in runs.items()}
    shortest = min(len(array) for array in values.values()) if values else 0
    if mdp_value is True and (problem if environment is None else environment).has_belief_reward:
        mdp_value = False  # no such bound
    if mdp_value is True:
        mdp_value = value_of_mdp(problem if environment is None else environment, horizon=horizon)
    table = compare_values(
        {name: array[:shortest] for name, array in values.items()},
        baseline=baseline,
        mdp_value=None if mdp_value is False else mdp_value,
        confidence=confidence,
        method=method,
        seconds={name: run.seconds for name, run in runs.items()},
        traces={name: run.traces for name, run in runs.items() if run.traces is not None} if trace else None,
        missed=max((run.missed for run in runs.values()), default=0.0),
        error=max((run.error for run in runs.values()), default=0.0),
    )
    record: dict[str, Any] = {"seed": seed, "n_episodes": n_episodes} if method == "monte-carlo" else {}
    record |= {"horizon": horizon, "truncation_error": truncation_error, "half_width": half_width}
    record |= {"discount": float(problem.discount), "updater": updater and brief(updater)}
    table = replace(
        table,
        failed={name: f"{type(error).__name__}: {error}" for name, error in failed.items()},
        record={**record, **table.record},
    )
    return table if solution is None else with_gaps(table, (solution.lower, solution.upper))


def _check_solution(solution: Any, environment: POMDP, horizon: int | None) -> None:
    """Raise unless the solution bounds the optimal value of the comparison."""
    check_kind("solution", solution, Solution, "the result of solve for the environment")
    call = "solve(environment)" if horizon is None else f"solve(environment, horizon={horizon})"
    if solution.problem is not environment and fingerprint(solution.problem) != fingerprint(environment):
        raise ParameterError(
            f"solution: got one of a problem with other numbers; expected one of the environment. Call {call}."
        )
    if solution.observation is not None or solution.belief not in (None, environment.initial_belief):
        after = "" if solution.observation is None else f" after {brief(solution.observation)}"
        raise ParameterError(
            f"solution: got one from {brief(solution.belief)}{after}; expected one from the initial belief, where the "
            f"policies start. Call {call}."
        )
    if solution.horizon != horizon:
        raise ParameterError(
            f"solution: got one with horizon={solution.horizon}; expected horizon={horizon}, as in the comparison. "
            f"Call {call}, or compare with horizon={solution.horizon}."
        )


def _is_controller_of(
    policy: Any, problem: POMDP, environment: POMDP | None, horizon: int | None, updater: Any
) -> bool:
    """Return whether a linear system gives the value: a controller of infinite horizon in its own problem."""
    alone = horizon is None and updater is None and environment in (None, problem)
    return alone and isinstance(policy, FiniteStateController) and policy.problem is problem and not policy.stops


def with_gaps(table: PolicyComparison, optimum: tuple[float, float]) -> PolicyComparison:
    """Return the table with the optimality gap of each policy, from two bounds on the optimal value."""
    rows = []
    for row in table.rows:
        low, high = (row.value - table.error, row.value + table.error) if row.interval is None else row.interval
        known = not math.isnan(low)
        gap = (max(0.0, optimum[0] - high), max(0.0, optimum[1] - low)) if known else None
        rows.append(replace(row, optimality_gap=gap))
    return replace(table, rows=tuple(rows), optimum=optimum)


def _named(policies: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(policies, Mapping):
        return numbered((name, as_policy(policy)) for name, policy in policies.items())
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        hint = " Pass the policies before the problem." if isinstance(policies, POMDP) else ""
        raise ParameterError(f"policies: got {brief(policies)}; expected a list or dict of policies.{hint}")
    named = map(as_policy, held("policies", policies))
    return numbered((getattr(policy, "name", None) or policy, policy) for policy in named)


def check_mdp_value(value: Any) -> float:
    """Return the value that MDP regret is measured from, of any number type."""
    if not is_real(value):
        raise ParameterError(f"mdp_value: got {brief(value)}; expected True, False, or a number.")
    return float(value)


def compare_values(
    values: Mapping[str, Floats],
    *,
    baseline: str | None = None,
    mdp_value: float | None = None,
    confidence: float = 0.95,
    method: str = "monte-carlo",
    seconds: Mapping[str, float] | None = None,
    traces: Mapping[str, Sequence[Visit | Episode]] | None = None,
    sample: "Sample | None" = None,
    weights: Floats | None = None,
    missed: float = 0.0,
    error: float = 0.0,
) -> PolicyComparison:
    """Return the comparison of paired values, ``[n]`` per policy; with ``method="exact"``, one exact value each.

    Two policies differ if the t interval of their mean paired difference excludes 0. The confidence level is that of
    one pair; it is not corrected for several policies.

    Args:
        values: The values of each policy; values at one position are a pair.
        baseline: The name of the policy that the others are compared with; the first by default.
        mdp_value: The value of the fully observable problem.
        confidence: The confidence level of the intervals, in (0, 1).
        method: The source of the values, for the caption.
        seconds: The mean seconds per decision, by policy.
        traces: The records of each policy.
        sample: The estimates for a sample from a finite population; by default values are independent draws.
        weights: The weight of each pair in the means ``[n]``, without a sample; equal by default.
        missed: The error of each mean from rare events that the values lack (`SimulationResult.missed`).
        error: The truncation error of each value. Intervals contain both errors, those of differences twice; exact
            values within twice the error are inconclusive.

    Raises:
        ParameterError: No values, values of different lengths, or an unknown baseline.

    Example:
        >>> print(compare_values({"a": np.array([1.0]), "b": np.array([1.5])}, method="exact", mdp_value=2.0))
        policy   value  difference to a  verdict   MDP regret
        a       1.0000                   baseline      1.0000
        b       1.5000          +0.5000  better        0.5000
        exact, MDP value 2.0000
    """
    if not values:
        raise ParameterError("values: got none; expected those of at least one policy.")
    baseline = next(iter(values)) if baseline is None else baseline
    if not is_one_of(baseline, *values):
        raise ParameterError(f"baseline: got {brief(baseline)}; expected one of {listed(list(values))}.")
    check_level("confidence", confidence)
    mdp_value = None if mdp_value is None else check_mdp_value(mdp_value)
    lengths = {len(array) for array in values.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ParameterError(f"values: got arrays of {sorted(lengths)} values; expected one length of at least 1.")
    n = lengths.pop()
    exact = n == 1 and method == "exact"
    arrays = {name: np.asarray(array) for name, array in values.items()}
    reference = arrays[baseline]

    def mean_of(array: Floats) -> float:
        if sample is not None:
            return sample.estimate(array)
        return math.fsum(array) / n if weights is None else weighted_mean(array, weights)

    def interval_of(array: Floats, factor: float) -> tuple[float, float] | None:
        if exact:
            return None
        if sample is not None:
            return sample.interval(array, confidence, low=-factor, high=factor)
        return mean_interval(array, confidence, factor * (missed + error), weights)

    rows = []
    for name, array in arrays.items():
        mean = mean_of(array)
        difference = array - reference
        spread = interval_of(difference, 2.0)
        rows.append(
            ComparisonRow(
                name=name,
                value=mean,
                interval=interval_of(array, 1.0),
                difference=mean_of(difference),
                difference_interval=spread,
                verdict="baseline" if name == baseline else _verdict(difference, spread, error),
                mdp_regret=None if mdp_value is None else mdp_value - mean,
                seconds_per_decision=(seconds or {}).get(name),
            )
        )
    return PolicyComparison(
        tuple(rows),
        baseline,
        mdp_value,
        method,
        None if exact else n,
        confidence,
        dict(traces or {}),
        error,
        rarest=0.0
        if exact or missed or sample is not None
        else rarest(n if weights is None else effective_number(weights), confidence),
    )


def _verdict(difference: Floats, interval: tuple[float, float] | None, error: float) -> str:
    if np.abs(difference).max() <= ROUNDING:
        return "same"
    low, high = (difference[0] - 2 * error, difference[0] + 2 * error) if interval is None else interval
    if low > 0:
        return "better"
    return "worse" if high < 0 else "inconclusive"
