"""A page on the three-node problem with sliders, in one HTML file that runs without Python."""

import os
import re
from fractions import Fraction
from typing import Any

from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.report.elements import Html, asset, filled, joined

_TITLE = "The three-node POMDP"
_SLIDERS = {
    "eta": ("η", "eta: the probability of descending to c1"),
    "r0": ("r₀", "r0: the reward of finding the item at the root"),
    "r1": ("r₁", "r1: the reward of finding the item in c1"),
    "r2": ("r₂", "r2: the reward of finding the item in c2"),
    "belief": ("b", "b: the belief that the item is in the catalogue"),
}
_MOST_DIGITS = 10**9
_HUGE_EXPONENT = re.compile(r"[eE][+-]?[\d_]{3,}")  # whose digits would fill the memory


def write_teaching_page(
    path: str | os.PathLike[str] | None = None,
    *,
    eta: Any = Fraction(3, 4),
    r0: Any = 0,
    r1: Any = Fraction(3, 5),
    r2: Any = Fraction(3, 5),
    belief: Any = 1,
    replace: bool = False,
) -> str:
    """Write a page on the three-node problem, a single HTML file with sliders, and return its text.

    The page needs neither Python nor a network. When a slider moves, it computes the AND-OR tree and the formulas of
    the paper's appendix in exact fractions. Numbers are shown as decimals or fractions, under both rules for ties.

    Args:
        path: The file to write; none by default.
        eta, r0, r1, r2, belief: The initial positions of the sliders, as for `pomdp_hier.three_node`: numbers from 0 to
            1, or texts such as ``"3/4"``.
        replace: Whether an existing file may be replaced.

    Raises:
        ParameterError: A number is not from 0 to 1, or has more than nine digits.
        PomdpHierError: The file exists, or cannot be written.

    Example:
        >>> write_teaching_page(eta="2/3")[:15]
        '<!doctype html>'

    References:
        Huang, Piao, Moreno and Hurley, appendix A.
    """
    start = {"eta": eta, "r0": r0, "r1": r1, "r2": r2, "belief": belief}
    sliders = joined(_slider(name, _share(name, value)) for name, value in start.items())
    page = filled(
        "teach.html",
        title=_TITLE,
        style=asset("page.css"),
        own_style=asset("teach.css"),
        sliders=sliders,
        script=asset("teach.js"),
    )
    if path is not None:
        write_file(path, page, replace=replace)
    return str(page)


def _share(name: str, value: Any) -> Fraction:
    """Return the number as a fraction; a float as the decimal that it is written as."""
    try:
        text = str(value)
        share = Fraction(-1 if _HUGE_EXPONENT.search(text) else value if isinstance(value, (int, Fraction)) else text)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share <= 1 or share.denominator >= _MOST_DIGITS or isinstance(value, bool):
        expected = "a number from 0 to 1 of at most nine digits, such as 0.75 or '3/4'"
        raise ParameterError(Argument(name), f": got {brief(value)}; expected {expected}.")
    return share


def _slider(name: str, share: Fraction) -> Html:
    symbol, label = _SLIDERS[name]
    return filled("teach_slider.html", name=name, symbol=symbol, label=label, value=float(share), text=_written(share))


def _written(share: Fraction) -> str:
    """Return a short decimal, or the fraction where there is none."""
    decimal = f"{float(share):z.4f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == share else str(share)
