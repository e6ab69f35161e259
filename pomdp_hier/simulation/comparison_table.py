"""Tables of policies: values, paired differences, MDP regret, optimality gap, time per decision."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pomdp_hier._arguments import Floats, check_level, is_one_of, is_real
from pomdp_hier._imports import from_extra
from pomdp_hier._intervals import effective_number, mean_interval, rarest, weighted_mean
from pomdp_hier._text import brief, listed, visible
from pomdp_hier.errors import ParameterError
from pomdp_hier.simulation.episodes import Episode
from pomdp_hier.simulation.exact import Visit
from pomdp_hier.simulation.paper_tables import Gap, Quantity, check_unit, latex_table, markdown_table, versions

if TYPE_CHECKING:
    import pandas as pd


# Exact values in floats that differ by less than this differ by rounding alone.
ROUNDING = 1e-12

# Settings of a record that a caption states otherwise.
_IN_CAPTION = ("n_episodes", "episodes", "truncation_error")


class Sample(Protocol):
    """A sample from a finite population, with the estimates of its mean."""

    def estimate(self, values: Floats) -> float:
        """Return the estimated mean of the population."""

    def interval(self, values: Floats, level: float, *, low: float, high: float) -> tuple[float, float]:
        """Return the confidence interval of that mean, for values from low to high."""


@dataclass(frozen=True)
class ComparisonRow:
    """One policy in a comparison.

    Attributes:
        name: The name of the policy.
        value: Its mean return.
        interval: The confidence interval of the mean, truncation error included; ``None`` where the value is exact, NaN
            for one simulated value.
        difference: Its value minus the baseline's.
        difference_interval: The confidence interval of the mean paired difference; ``None`` where it is exact.
        verdict: ``"baseline"``, ``"better"``, ``"worse"``, ``"same"`` (equal in every pair) or ``"inconclusive"``.
        mdp_regret: The MDP value minus its value; ``None`` without an MDP value.
        seconds_per_decision: The mean time of one decision; ``None`` where it was not measured.
        optimality_gap: A lower and an upper bound on the optimal value minus its value; ``None`` without bounds or
            without an interval. They are proved if the value is exact, else they hold at the confidence level.

    Example:
        >>> table = compare_values({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]})
        >>> table["b"].difference, table["b"].verdict
        (-1.0, 'inconclusive')
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    difference: float
    difference_interval: tuple[float, float] | None
    verdict: str
    mdp_regret: float | None
    seconds_per_decision: float | None
    optimality_gap: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return one value per column; the ends of an interval are two columns."""
        return {
            "name": self.name,
            "value": self.value,
            **_ends("value_ci", self.interval),
            "difference": self.difference,
            **_ends("difference_ci", self.difference_interval),
            "verdict": self.verdict,
            "mdp_regret": self.mdp_regret,
            **_ends("optimality_gap", self.optimality_gap),
            "seconds_per_decision": self.seconds_per_decision,
        }


@dataclass(frozen=True, eq=False, repr=False)
class PolicyComparison:
    """A table of policies, as text, HTML, a data frame or plain values.

    Attributes:
        rows: One row per policy, in the order given.
        baseline: The name of the policy that the others are compared with.
        mdp_value: The value of the fully observable problem; ``None`` if it was not requested.
        method: ``"exact"``, ``"monte-carlo"``, or another source of the values.
        n: The number of paired values per mean; ``None`` where values are exact.
        confidence: The confidence level of the intervals.
        traces: The `Visit` or `Episode` records of each policy, if requested.
        error: The truncation error of a value; intervals contain it.
        rarest: The greatest probability of a rare event that the sample may lack and the intervals do not allow for. It
            is 0 for exact values, and for intervals that allow for rare events.
        optimum: A lower and an upper bound on the optimal value, if a solution was given.
        failed: The error of each policy that has no row.
        record: The settings and versions of the comparison.
    """

    rows: tuple[ComparisonRow, ...]
    baseline: str
    mdp_value: float | None
    method: str
    n: int | None
    confidence: float
    traces: Mapping[str, Sequence[Visit | Episode]] = field(default_factory=dict, repr=False)
    error: float = 0.0
    optimum: tuple[float, float] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    rarest: float = 0.0
    record: Mapping[str, Any] = field(default_factory=versions)

    def __getitem__(self, name: str) -> ComparisonRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"policy: got {brief(name)}; expected one of {listed([row.name for row in self.rows])}.")

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best(self) -> ComparisonRow:
        """The first row with the greatest value."""
        return max(self.rows, key=lambda row: row.value)

    def _cells(self) -> list[list[str]]:
        """Return the table as text, the header first."""
        interval = f"{100 * self.confidence:g} % interval"
        header = ["policy", "value", interval, f"difference to {self.baseline}", interval]
        header += ["verdict", "MDP regret", "optimality gap", "ms/decision"]
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
                    "" if row.mdp_regret is None else f"{row.mdp_regret:z.4f}",
                    _span(row.optimality_gap),
                    _milliseconds(row.seconds_per_decision),
                ]
            )
        used = [c for c in range(len(header)) if c == 0 or any(line[c] for line in lines[1:])]
        return [[visible(line[c]) for c in used] for line in lines]

    def _sample(self) -> str:
        """Return the source of the values, and the size of the sample."""
        if self.n is None:
            return self.method
        of = f" seeds of {self.record['episodes']} episodes" if "episodes" in self.record else ""
        return f"{self.method}, n = {self.n}{of}"

    def _caption(self) -> str:
        return visible(", ".join([self._sample(), *self._notes(self.mdp_value is not None)]))

    def _notes(self, with_mdp: bool) -> list[str]:
        """Return the bounds and errors, one part of a caption each."""
        parts = []
        if with_mdp and self.mdp_value is not None:
            parts.append(f"MDP value {self.mdp_value:z.4f}")
        if self.optimum is not None:
            parts.append(f"optimal value in {_span(self.optimum)}")
        if self.error:
            parts.append(f"truncation error {self.error:.1g}")
        if self.rarest:
            each = " per seed" if "episodes" in self.record else ""
            parts.append(f"events rarer than {self.rarest:.2g}{each} may be missing from the intervals")
        return [*parts, *(f"{name} failed ({error})" for name, error in self.failed.items())]

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

    def __repr__(self) -> str:
        best = self.best
        return f"PolicyComparison({len(self)} policies, {self.method}, best {brief(best.name)} with {best.value:z.4f})"

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
            "mdp_value": self.mdp_value,
            "error": self.error,
            "rarest": self.rarest,
            **_ends("optimum", self.optimum),
            "failed": dict(self.failed),
            "record": dict(self.record),
            "policies": [{key: _plain(value) for key, value in row.to_dict().items()} for row in self.rows],
        }

    def paper_rows(self) -> tuple[list[str], list[list[str | Quantity]]]:
        """Return header and rows of a table for a paper; the MDP regret only without an optimality gap."""
        header = ["policy", "value", "difference", "MDP regret", "gap", "ms"]
        rows: list[list[str | Quantity]] = []
        for row in self.rows:
            base = row.name == self.baseline
            seconds = row.seconds_per_decision
            rows.append(
                [
                    row.name,
                    Quantity(row.value, row.interval, bold=row.value == self.best.value),
                    Quantity(None if base else row.difference, row.difference_interval, signed=True),
                    Quantity(row.mdp_regret if self.optimum is None else None, _below(self.mdp_value, row.interval)),
                    Gap(0.0, row.optimality_gap),
                    Quantity(None if seconds is None else 1000 * seconds, digits=3),
                ]
            )
        return header, rows

    def paper_caption(self, unit: str) -> list[str]:
        """Return the parts of the caption of a table for a paper: unit, columns, sample, bounds, settings, versions."""
        check_unit(unit)
        parts = [f"Values in units of {unit}"]
        if self.n is not None:
            parts.append(f"±: {100 * self.confidence:g} % confidence interval of the mean")
        if len(self) > 1:
            parts.append(f"difference: to {self.baseline}")
        if self.optimum is not None:
            parts.append("gap: optimal value minus value")
        if any(row.seconds_per_decision is not None for row in self):
            parts.append("ms: per decision")
        shown = {name: value for name, value in self.record.items() if name not in _IN_CAPTION and value is not None}
        return [*parts, self._sample(), *self._notes(self.optimum is None), *(f"{k} {v}" for k, v in shown.items())]

    def to_markdown(self, *, unit: str = "reward") -> str:
        """Return the table in Markdown: two digits of the uncertainty, the greatest value bold.

        Args:
            unit: The unit of the values, for the caption.

        Example:
            >>> print(compare_values({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]}).to_markdown().splitlines()[2])
            | a | **2.0** ± 2.5 |  |
        """
        return markdown_table(*self.paper_rows(), ", ".join(self.paper_caption(unit)) + ".")

    def to_latex(self, *, unit: str = "reward", caption: str | None = None, label: str | None = None) -> str:
        r"""Return the table in LaTeX, for ``\usepackage{booktabs}``: digits and bold as in `to_markdown`.

        Args:
            unit: The unit of the values, for the caption.
            caption: The caption; by default, unit, method, sample size and settings.
            label: The label of the table, for ``\ref``.

        Example:
            >>> table = compare_values({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]})
            >>> print(table.to_latex(label="tab:policies").splitlines()[8])
            a & $\mathbf{2.0} \pm 2.5$ &  \\
        """
        written = ", ".join(self.paper_caption(unit)) + "."
        return latex_table(*self.paper_rows(), written if caption is None else caption, label)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per policy as a pandas frame, with the columns of `ComparisonRow.to_dict`.

        Raises:
            MissingExtraError: Pandas is not installed.
        """
        module = from_extra("frames", "pandas", "to_frame needs pandas")
        frame: pd.DataFrame = module.DataFrame([row.to_dict() for row in self.rows]).set_index("name")
        return frame


def _below(value: float | None, interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the interval of the value minus a number in the interval."""
    return None if value is None or interval is None else (value - interval[1], value - interval[0])


def _ends(name: str, interval: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = (None, None) if interval is None else interval
    return {f"{name}_low": low, f"{name}_high": high}


def _span(interval: tuple[float, float] | None) -> str:
    return "" if interval is None or math.isnan(interval[0]) else f"[{interval[0]:z.4f}, {interval[1]:z.4f}]"


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None or math.isnan(seconds) else f"{1000 * seconds:.3g}"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


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
