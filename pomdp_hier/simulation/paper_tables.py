"""Tables of policies in Markdown and LaTeX: digits by the uncertainty, the greatest value bold, the settings below."""

import math
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pomdp_hier._arguments import check_text, unexpected
from pomdp_hier._text import in_latex, visible
from pomdp_hier._version import __version__

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
