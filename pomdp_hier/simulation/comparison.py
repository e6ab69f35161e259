"""Policies side by side: values, paired differences, regret to a clairvoyant one, time per decision."""

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from tqdm import tqdm

from pomdp_hier._arguments import check_integer, check_kind, is_one_of, is_real, numbered
from pomdp_hier._arrays import Floats
from pomdp_hier._intervals import mean_interval, rarest
from pomdp_hier._io.memory import held
from pomdp_hier._jobs import check_jobs
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import brief, listed, visible
from pomdp_hier.errors import MissingExtraError, ParameterError
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.infinite_horizon_bounds import mdp_values
from pomdp_hier.planning.point_based.solution import Solution
from pomdp_hier.planning.policies import as_policy
from pomdp_hier.pomdp import POMDP
from pomdp_hier.pomdp.problem import require_problem
from pomdp_hier.simulation.episodes import Episode
from pomdp_hier.simulation.exact import Visit, policy_value
from pomdp_hier.simulation.intervals import check_confidence
from pomdp_hier.simulation.monte_carlo import simulate

if TYPE_CHECKING:
    import pandas as pd


# Exact values of floats that differ by less than this are the same value, differently rounded.
ROUNDING = 1e-12


class Drawn(Protocol):
    """A sample that knows what its values say about all."""

    def estimate(self, values: Floats) -> float:
        """Return the estimated mean over all."""

    def interval(self, values: Floats, level: float, *, low: float, high: float) -> tuple[float, float]:
        """Return the interval of that mean, of values from low to high."""


@dataclass(frozen=True)
class ComparisonRow:
    """One policy in a comparison.

    Attributes:
        name: What the policy is called.
        value: Its mean return.
        interval: The interval of the mean, with the error of runs that were cut off; ``None`` where the value is exact,
            NaN for one simulated value.
        difference: Its value less the baseline's.
        difference_interval: The interval of the mean paired difference, ``None`` where the difference is exact.
        verdict: ``"baseline"``, ``"better"``, ``"worse"``, ``"same"`` (equal in every pair) or
            ``"not distinguishable"``.
        regret: The clairvoyant value less its value, ``None`` where there is none to compare with.
        seconds_per_decision: The mean time of one decision, ``None`` where it was not measured.
        optimality_gap: How far it is from the optimum at least and at most, where that is known to lie between two
            bounds: proved where the value is exact, at the interval's level where it was simulated, ``None`` where one
            simulated value has no interval.

    Example:
        >>> table = compare_values({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]})
        >>> table["b"].difference, table["b"].verdict
        (-1.0, 'not distinguishable')
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    difference: float
    difference_interval: tuple[float, float] | None
    verdict: str
    regret: float | None
    seconds_per_decision: float | None
    optimality_gap: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class _Run:
    """What one policy earned: its values, the time of a decision, its records, and how far the values can be off."""

    values: Floats
    seconds: float
    traces: Sequence[Visit | Episode] | None = None
    error: float = 0.0
    missed: float = 0.0


@dataclass(frozen=True, eq=False)
class PolicyComparison:
    """A table of policies; ``print`` it, look at it in a notebook, or take its rows.

    Attributes:
        rows: One a policy, in the order in which they were given.
        baseline: The name of the policy that the others are held against.
        clairvoyant: The value of the policy that sees the state, ``None`` if it was not asked for.
        method: ``"exact"``, ``"monte-carlo"``, or what else the values come from.
        n: How many paired values stand behind a mean, ``None`` where values are exact.
        confidence: The level of the intervals.
        traces: What each policy did (`Visit` or `Episode` records), if asked for.
        error: How far a value can be off, because runs without a horizon were cut off; intervals contain it.
        rarest: The largest probability of an event that the values may lack and the intervals do not allow for; 0 where
            values are exact or the intervals do.
        optimum: A lower and an upper bound on the optimal value, if a solution was given.
        failed: What each policy that has no row raised.

    Example:
        >>> table = compare_values({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]})
        >>> table.baseline, table.n, table["a"].value
        ('a', 3, 2.0)
    """

    rows: tuple[ComparisonRow, ...]
    baseline: str
    clairvoyant: float | None
    method: str
    n: int | None
    confidence: float
    traces: Mapping[str, Sequence[Visit | Episode]] = field(default_factory=dict, repr=False)
    error: float = 0.0
    optimum: tuple[float, float] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    rarest: float = 0.0

    def __getitem__(self, name: str) -> ComparisonRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{brief(name)}; there are {listed([row.name for row in self.rows])}")

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best(self) -> ComparisonRow:
        """The row of the highest value, the first of several."""
        return max(self.rows, key=lambda row: row.value)

    def _cells(self) -> list[list[str]]:
        """Return the table as text, the header first."""
        percent = f"{100 * self.confidence:g} %"
        header = ["policy", "value", f"{percent} interval", f"against {self.baseline}", f"{percent} interval"]
        header += ["verdict", "regret", "from the optimum", "ms/decision"]
        lines = [header]
        for row in self.rows:
            base = row.verdict == "baseline"
            lines.append(
                [
                    row.name,
                    f"{row.value:z.4f}",
                    _span(row.interval),
                    "" if base else f"{row.difference:+z.4f}",
                    "" if base else _span(row.difference_interval),
                    row.verdict,
                    "" if row.regret is None else f"{row.regret:z.4f}",
                    _span(row.optimality_gap),
                    _milliseconds(row.seconds_per_decision),
                ]
            )
        used = [c for c in range(len(header)) if c == 0 or any(line[c] for line in lines[1:])]
        return [[visible(line[c]) for c in used] for line in lines]

    def _caption(self) -> str:
        parts = [self.method if self.n is None else f"{self.method}, n = {self.n}"]
        if self.clairvoyant is not None:
            parts.append(f"clairvoyant {self.clairvoyant:z.4f}")
        if self.optimum is not None:
            parts.append(f"optimum in {_span(self.optimum)}")
        if self.error:
            parts.append(f"runs cut off where less than {self.error:.1g} can still come")
        if self.rarest:
            parts.append(f"intervals without events rarer than {self.rarest:.2g}")
        parts += [f"{name} failed ({what})" for name, what in self.failed.items()]
        return visible(", ".join(parts))

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(line[c]) for line in cells) for c in range(len(cells[0]))]
        names = {0, cells[0].index("verdict")}
        text = [
            "  ".join(
                cell.ljust(w) if c in names else cell.rjust(w)
                for c, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ]
        return "\n".join([*text, self._caption()])

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        header, *body = self._cells()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in line)}</tr>" for line in body)
        caption = f"<caption>{html.escape(self._caption())}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, fit for JSON (NaN as ``None``)."""
        return {
            "method": self.method,
            "n": self.n,
            "confidence": self.confidence,
            "baseline": self.baseline,
            "clairvoyant": self.clairvoyant,
            "error": self.error,
            "rarest": self.rarest,
            "optimum": _plain(self.optimum),
            "failed": dict(self.failed),
            "policies": [{key: _plain(value) for key, value in asdict(row).items()} for row in self.rows],
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame.

        Raises:
            MissingExtraError: Pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_frame needs pandas; pip install 'pomdp-hier[frames]'") from error
        return pd.DataFrame([asdict(row) for row in self.rows]).set_index("name")


def _span(interval: tuple[float, float] | None) -> str:
    return "" if interval is None or math.isnan(interval[0]) else f"[{interval[0]:z.4f}, {interval[1]:z.4f}]"


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None or math.isnan(seconds) else f"{1000 * seconds:.3g}"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def mdp_value(environment: POMDP, *, horizon: int | None = None, tolerance: float = 1e-12) -> float:
    """Return the value of the best policy that sees the state, ``sum_s b(s) V_MDP(s)``: no policy's is higher.

    Args:
        environment: The problem whose state is seen.
        horizon: The number of actions; ``None`` for no end.
        tolerance: Without a horizon, the largest change of a value at which to stop, as for `mdp_values`.

    Raises:
        PlanningError: Without a horizon, the values do not settle.

    Example:
        >>> coin = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...              reward=lambda s, a: 1 if a == s else -1, terminal=["end"],
        ...              initial_belief={"heads": 0.5, "tails": 0.5}, legal_actions=["heads", "tails"])
        >>> mdp_value(coin)
        1.0

    References:
        Littman, Cassandra and Kaelbling (1995), section 4.1.
    """
    require_problem(environment, "mdp_value")
    if horizon == 0:
        return 0.0
    compiled = environment.compiled
    q, _ = mdp_values(compiled, horizon=horizon, tolerance=tolerance)
    return float(compiled.initial @ np.where(compiled.terminal, 0.0, q.max(axis=0)))


def compare_values(
    values: Mapping[str, Floats],
    *,
    baseline: str | None = None,
    clairvoyant: float | None = None,
    confidence: float = 0.95,
    method: str = "monte-carlo",
    seconds: Mapping[str, float] | None = None,
    traces: Mapping[str, Sequence[Visit | Episode]] | None = None,
    sample: "Drawn | None" = None,
    missed: float = 0.0,
    error: float = 0.0,
) -> PolicyComparison:
    """Return the comparison of paired values, ``[n]`` per policy; a single one each is exact if the method is.

    Two policies are told apart when the t interval of their mean paired difference leaves 0 out. The interval is for
    one pair; several policies held against one baseline are several chances to err.

    Args:
        values: The values of each policy; position ``i`` of all of them belongs together.
        baseline: The policy that the others are held against; the first by default.
        clairvoyant: The value that regret is measured from.
        confidence: The level of the intervals, in (0, 1).
        method: Where the values come from, for the caption.
        seconds: The mean seconds of a decision, by policy.
        traces: Records of what each policy did.
        sample: What the values' means and intervals say of a finite whole that they were drawn from; by default each is
            a draw without end.
        missed: How far each mean can be off by what the values do not show (`SimulationResult.missed`).
        error: How far each value can be off. Intervals contain both, those of differences twice; exact values within
            twice the error are not distinguishable.

    Raises:
        ParameterError: No values, values of different lengths, or a baseline that is not there.

    Example:
        >>> print(compare_values({"a": np.array([1.0]), "b": np.array([1.5])}, method="exact", clairvoyant=2.0))
        policy   value  against a  verdict   regret
        a       1.0000             baseline  1.0000
        b       1.5000    +0.5000  better    0.5000
        exact, clairvoyant 2.0000
    """
    if not values:
        raise ParameterError("values: no policy was given; expected at least one")
    baseline = next(iter(values)) if baseline is None else baseline
    if not is_one_of(baseline, *values):
        raise ParameterError(f"baseline: {brief(baseline)} is not among {listed(list(values))}")
    check_confidence(confidence)
    clairvoyant = None if clairvoyant is None else _ceiling(clairvoyant)
    lengths = {len(array) for array in values.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ParameterError(f"values: got arrays of {sorted(lengths)} values; expected as many of each, at least one")
    n = lengths.pop()
    exact = n == 1 and method == "exact"
    arrays = {name: np.asarray(array) for name, array in values.items()}
    reference = arrays[baseline]

    def mean_of(array: Floats) -> float:
        return math.fsum(array) / n if sample is None else sample.estimate(array)

    def interval_of(array: Floats, off: float) -> tuple[float, float] | None:
        if exact:
            return None
        if sample is not None:
            return sample.interval(array, confidence, low=-off, high=off)
        return mean_interval(array, confidence, off * (missed + error))

    rows = []
    for name, array in arrays.items():
        mean = mean_of(array)
        difference = array - reference
        rows.append(
            ComparisonRow(
                name=name,
                value=mean,
                interval=interval_of(array, 1.0),
                difference=mean_of(difference),
                difference_interval=interval_of(difference, 2.0),
                verdict="baseline" if name == baseline else _verdict(difference, interval_of(difference, 2.0), error),
                regret=None if clairvoyant is None else clairvoyant - mean,
                seconds_per_decision=(seconds or {}).get(name),
            )
        )
    return PolicyComparison(
        tuple(rows),
        baseline,
        clairvoyant,
        method,
        None if exact else n,
        confidence,
        dict(traces or {}),
        error,
        rarest=0.0 if exact or missed or sample is not None else rarest(n, confidence),
    )


def _verdict(difference: Floats, interval: tuple[float, float] | None, error: float) -> str:
    if np.abs(difference).max() <= ROUNDING:
        return "same"
    low, high = (difference[0] - 2 * error, difference[0] + 2 * error) if interval is None else interval
    if low > 0:
        return "better"
    return "worse" if high < 0 else "not distinguishable"


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
    clairvoyant: bool | float = True,
    against: Solution | None = None,
    half_width: float | None = None,
    confidence: float = 0.95,
    trace: bool | int = False,
    n_jobs: int = 1,
    progress: bool = False,
) -> PolicyComparison:
    """Return the policies side by side in one environment, each with the same agent's model and the same luck.

    A policy that raises an error has no row, and the others keep theirs; ``failed`` and the caption say which it was
    and what it raised. Where all fail, or the baseline that was asked for does, the error is raised.

    A controller is run from node to node. Without a horizon, one that never stops has its value by a linear system.

    Args:
        policies: A mapping from names, or a sequence whose members are named by their ``name`` or ``repr``.
        problem: The agent's own model.
        environment: The model that generates states, observations and rewards; the agent's own by default.
        method: ``"exact"`` enumerates beliefs; ``"monte-carlo"`` simulates, with paired random numbers.
        n_episodes: How many episodes a policy.
        seed: Where the random numbers start.
        horizon: The most actions in a run; ``None`` for no limit but that of the cut-off.
        truncation_error: Without a horizon, episodes end where the remaining discounted reward is below this.
        updater: How the agent updates its belief; Bayes' rule by default.
        baseline: The name of the policy that the others are held against; the first by default.
        clairvoyant: True to take the regret to the policy that sees the environment's state, or its value; False for
            no regret.
        against: A solution of the environment (`pomdp_hier.planning.solve`) with the same horizon: each policy's
            distance from the optimum is then bounded from both sides.
        half_width: Simulate each policy until half its interval is no wider, in rewards. Policies are then paired over
            as many episodes as all of them ran.
        confidence: The level of the intervals.
        trace: Keep what each policy did: all visits (exact), or so many episodes (True: 10).
        n_jobs: How many processes simulate, or decide, as for `simulate` and `policy_value`.
        progress: Whether to show a progress bar on standard error.

    Raises:
        ParameterError: An unknown method, no policies, a baseline that is not there, or a solution of something else.
        MissingExtraError: More than one process without joblib.

    Example:
        >>> coin = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...              reward=lambda s, a: 1 if a == s else -1, terminal=["end"],
        ...              initial_belief={"heads": 0.75, "tails": 0.25}, legal_actions=["tails", "heads"])
        >>> table = compare_policies({"likely": lambda belief: belief.mpe(), "tails": lambda belief: "tails"}, coin)
        >>> [(row.name, row.value, row.verdict, row.regret) for row in table]
        [('likely', 0.5, 'baseline', 0.5), ('tails', -0.5, 'worse', 1.5)]
    """
    named = _named(policies)
    if not named:
        raise ParameterError("policies: got none; expected at least one")
    if against is not None:
        _check_solution(against, problem if environment is None else environment, horizon)
    if not is_one_of(method, "exact", "monte-carlo"):
        raise ParameterError(f"method: {brief(method)} is neither 'exact' nor 'monte-carlo'")
    if not isinstance(clairvoyant, bool | None):
        clairvoyant = _ceiling(clairvoyant)
    if not isinstance(trace, bool):
        check_integer("trace", trace)
    check_jobs(n_jobs)
    runs: dict[str, _Run] = {}
    failed: dict[str, Exception] = {}
    keep = 10 if trace is True else int(trace)

    def run(policy: Any, bar: tqdm) -> _Run:
        if method == "exact" and _is_controller_of(policy, problem, environment, horizon, updater) and not trace:
            return _Run(np.array([policy.value()]), math.nan)
        if method == "exact":
            exact = policy_value(
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
            return _Run(np.array([float(exact.value)]), exact.seconds_per_decision, exact.visits, exact.error)
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
            progress=bar,
        )
        return _Run(sampled.values, sampled.seconds_per_decision, sampled.episodes, sampled.error, sampled.missed)

    unit, total = (" beliefs", None) if method == "exact" else (" episodes", n_episodes * len(named))
    with shown_progress(progress, "compare", unit, total) as bar:
        for name, policy in named.items():
            bar.set_description_str(visible(name), refresh=False)
            try:
                runs[name] = run(policy, bar)
            except Exception as error:  # noqa: BLE001 - a policy is anyone's code, whose errors must not cost the others
                error.add_note(f"raised while the policy {brief(name)} was evaluated")
                failed[name] = error
    if failed and (not runs or baseline in failed):
        raise failed[baseline if baseline in failed else next(iter(failed))]
    values = {name: run.values for name, run in runs.items()}
    shortest = min(len(array) for array in values.values()) if values else 0
    if clairvoyant is True:
        clairvoyant = mdp_value(problem if environment is None else environment, horizon=horizon)
    table = compare_values(
        {name: array[:shortest] for name, array in values.items()},
        baseline=baseline,
        clairvoyant=None if clairvoyant is False else clairvoyant,
        confidence=confidence,
        method=method,
        seconds={name: run.seconds for name, run in runs.items()},
        traces={name: run.traces for name, run in runs.items() if run.traces is not None} if trace else None,
        missed=max((run.missed for run in runs.values()), default=0.0),
        error=max((run.error for run in runs.values()), default=0.0),
    )
    table = replace(table, failed={name: f"{type(error).__name__}: {error}" for name, error in failed.items()})
    return table if against is None else _held_against(table, (against.lower, against.upper))


def _ceiling(clairvoyant: Any) -> float:
    """Return the value that regret is measured from, of whatever kind of number."""
    if not is_real(clairvoyant):
        raise ParameterError(
            f"clairvoyant: {brief(clairvoyant)}; expected True, False, or the value of the policy that sees the state"
        )
    return float(clairvoyant)


def _check_solution(solution: Any, environment: POMDP, horizon: int | None) -> None:
    """Refuse a solution that is not about what happens in the comparison."""
    check_kind("against", solution, Solution, "the result of solve for the environment")
    asked = "solve(environment)" if horizon is None else f"solve(environment, horizon={horizon})"
    if solution.problem is not environment:
        raise ParameterError(
            f"against: got a solution of another problem; expected one of the environment itself. Give {asked}"
        )
    if solution.belief is not None:
        raise ParameterError(
            f"against: got a solution from {brief(solution.belief)}; expected one from the initial belief of the "
            f"environment, where the policies start. Give {asked}"
        )
    if solution.horizon != horizon:
        raise ParameterError(
            f"against: got a solution with horizon={solution.horizon}; expected horizon={horizon}, as in the "
            f"comparison. Give {asked}, or compare with horizon={solution.horizon}"
        )


def _is_controller_of(
    policy: Any, problem: POMDP, environment: POMDP | None, horizon: int | None, updater: Any
) -> bool:
    """Return whether a policy's value is that of a linear system: a controller, run for ever in its own problem."""
    alone = horizon is None and updater is None and environment in (None, problem)
    return alone and isinstance(policy, FiniteStateController) and policy.problem is problem and not policy.stops


def _held_against(table: PolicyComparison, optimum: tuple[float, float]) -> PolicyComparison:
    """Return the table with each policy's distance from an optimum between two bounds."""
    rows = []
    for row in table.rows:
        low, high = (row.value - table.error, row.value + table.error) if row.interval is None else row.interval
        known = not math.isnan(low)
        gap = (max(0.0, optimum[0] - high), max(0.0, optimum[1] - low)) if known else None
        rows.append(replace(row, optimality_gap=gap))
    return replace(table, rows=tuple(rows), optimum=optimum)


def _named(policies: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return policies by name."""
    if isinstance(policies, Mapping):
        return numbered((name, as_policy(policy)) for name, policy in policies.items())
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        hint = "; the policies come before the problem" if isinstance(policies, POMDP) else ""
        raise ParameterError(f"policies: {brief(policies)} is neither a list nor a dict of policies{hint}")
    named = map(as_policy, held("policies", policies))
    return numbered((getattr(policy, "name", None) or policy, policy) for policy in named)
