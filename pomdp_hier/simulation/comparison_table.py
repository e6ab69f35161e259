"""Tables of policies: values, paired differences, MDP regret, optimality gap; as text, Markdown and LaTeX."""

import html
import math
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pomdp_hier._arguments import Floats, check_text, unexpected
from pomdp_hier._imports import from_extra
from pomdp_hier._text import brief, in_latex, listed, visible
from pomdp_hier._version import __version__
from pomdp_hier.simulation.episodes import Episode
from pomdp_hier.simulation.exact import Visit

if TYPE_CHECKING:
    import pandas as pd


_EXPONENT = re.compile(r"e([+-]\d+)")
_NEGATIVE = re.compile(r"(?<![\w.-])-(?=\d)")  # the sign of a number in text


def versions() -> dict[str, str]:
    """Return the versions that results depend on, by name."""
    return {"pomdp_hier": __version__, "python": platform.python_version(), "numpy": np.__version__}


@dataclass(frozen=True)
class Quantity:
    """A number in a table, rounded to two significant digits of the half-width of its interval.

    Attributes:
        value: The number; ``None`` or NaN for an empty cell.
        interval: Its confidence interval, if it has one.
        signed: Whether to write a plus sign.
        bold: Whether it is the greatest of its column.
        digits: The significant digits of a number without an interval.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    signed: bool = False
    bold: bool = False
    digits: int = 5

    @property
    def parts(self) -> tuple[str, str]:
        """The number and its interval as text: ``("-3.71", "± 0.12")``, or ``"[low, high]"`` if it is asymmetric."""
        if self.value is None or math.isnan(self.value):
            return "", ""
        sign = "+" if self.signed else ""
        if self.interval is None or not all(map(math.isfinite, self.interval)):
            return f"{self.value:{sign}z.{self.digits}g}", ""
        low, high = self.interval
        half = high / 2 - low / 2
        if half <= 0:
            return f"{self.value:{sign}z.{self.digits}g}", "± 0"
        decimals = max(0, 1 - math.floor(math.log10(float(f"{half:.1e}"))))
        if abs(low / 2 + high / 2 - self.value) > 0.01 * half:
            return f"{self.value:{sign}z.{decimals}f}", f"[{low:z.{decimals}f}, {high:z.{decimals}f}]"
        return f"{self.value:{sign}z.{decimals}f}", f"± {half:z.{decimals}f}"

    def in_markdown(self) -> str:
        """Return the cell in Markdown."""
        number, spread = self.parts
        return f"{f'**{number}**' if self.bold and number else number} {spread}".strip()

    def in_latex(self) -> str:
        """Return the cell in LaTeX."""
        number, spread = self.parts
        if not number:
            return ""
        number = _EXPONENT.sub(lambda found: f"\\cdot 10^{{{int(found[1])}}}", number).replace("inf", "\\infty")
        number = f"\\mathbf{{{number}}}" if self.bold else number
        return f"${' '.join([number, spread]).strip()}$".replace("±", "\\pm").replace("%", "\\%")


@dataclass(frozen=True)
class Gap(Quantity):
    """Two bounds on a number in a table: ``[low, high]``, or one number where they agree."""

    @property
    def parts(self) -> tuple[str, str]:
        """The bounds as one number."""
        if self.interval is None:
            return "", ""
        low, high = (f"{end:z.3g}" for end in self.interval)
        return (low if low == high else f"[{low}, {high}]"), ""


def check_unit(unit: object) -> None:
    """Raise `ParameterError` unless the unit is a text that is not empty."""
    if not isinstance(unit, str) or not unit:
        raise unexpected("unit", unit, "text, such as 'EUR'")


Cell = str | Quantity
Rows = Sequence[Sequence[Cell]]


def _used(header: Sequence[str], rows: Rows) -> list[int]:
    """Return the columns that are not empty."""

    def empty(cell: Cell) -> bool:
        return not (cell if isinstance(cell, str) else cell.parts[0])

    return [c for c in range(len(header)) if c == 0 or not all(empty(row[c]) for row in rows)]


def markdown_table(header: Sequence[str], rows: Rows, caption: str) -> str:
    r"""Return a table in Markdown (pipe table), with its caption below.

    Example:
        >>> print(markdown_table(["policy", "value"], [["hasty", Quantity(-3.7123, (-3.83, -3.5946))]], "n = 100"))
        | policy | value |
        |:--|--:|
        | hasty | -3.71 ± 0.12 |
        <BLANKLINE>
        n = 100
    """

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def text(cell: Cell) -> str:
        return _in_markdown(cell) if isinstance(cell, str) else cell.in_markdown()

    used = _used(header, rows)
    marks = ["--:" if any(isinstance(row[c], Quantity) for row in rows) else ":--" for c in used]
    lines = [line([_in_markdown(header[c]) for c in used]), f"|{'|'.join(marks)}|"]
    lines += [line([text(row[c]) for c in used]) for row in rows]
    return "\n".join([*lines, "", _in_markdown(caption)])


def latex_table(header: Sequence[str], rows: Rows, caption: str, label: str | None, *, grouped: bool = False) -> str:
    """Return a table environment in LaTeX, for ``\\usepackage{booktabs}``.

    With ``grouped``, a rule divides rows of different first cells.
    """
    check_text("label", label)
    if not isinstance(caption, str):
        raise unexpected("caption", caption, "text or None")

    def text(cell: Cell) -> str:
        return in_latex(cell) if isinstance(cell, str) else cell.in_latex()

    used = _used(header, rows)
    columns = "".join("r" if any(isinstance(row[c], Quantity) for row in rows) else "l" for c in used)
    body: list[str] = []
    for k, row in enumerate(rows):
        body += ["\\midrule"] if grouped and k and row[0] != rows[k - 1][0] else []
        body.append(" & ".join(text(row[c]) for c in used) + " \\\\")
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_NEGATIVE.sub('$-$', in_latex(caption))}}}",
            *([] if label is None else [f"\\label{{{label}}}"]),
            f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            "\\toprule",
            " & ".join(in_latex(header[c]) for c in used) + " \\\\",
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
        ]
    )


def _in_markdown(text: str) -> str:
    """Return text as one line of a Markdown table, without markup."""
    line = visible(text)
    for mark in "\\`*_|<>[]":
        line = line.replace(mark, "\\" + mark)
    return line


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
            >>> from pomdp_hier.simulation.comparison import compare_values
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
            >>> from pomdp_hier.simulation.comparison import compare_values
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
