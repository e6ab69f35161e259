"""Common parts of figures and pages: axes, colours, and user text escaped for HTML, script data and figures.

All markup is built here: by `filled` from a template, by `element` and by `joined`. Each escapes its arguments unless
they are markup (`Html`), so that no caller can forget it.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from html import escape
from importlib import resources
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import Floats, as_floats, numbered, unexpected
from pomdp_hier._imports import from_extra
from pomdp_hier._text import brief, shortened, visible
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.float_range import GREATEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def html_text(value: object) -> Html:
    """Return the value escaped for an element or a quoted attribute; markup is unchanged.

    Example:
        >>> html_text('<b>"&"</b>'), html_text(Html("<b>"))
        ('&lt;b&gt;&quot;&amp;&quot;&lt;/b&gt;', '<b>')
    """
    return value if isinstance(value, Html) else Html(escape(visible(str(value))))


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return the concatenated parts, each escaped unless it is markup.

    Example:
        >>> joined(["<", element("b", "x")])
        '&lt;<b>x</b>'
    """
    return Html(html_text(between).join(map(html_text, parts)))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Return an element with its content and attributes escaped.

    Example:
        >>> element("td", "1 < 2", class_="n", data_label='"the" figure', title=None)
        '<td class="n" data-label="&quot;the&quot; figure">1 &lt; 2</td>'
    """
    named = [
        f' {name.rstrip("_").replace("_", "-")}="{html_text(value)}"'
        for name, value in attributes.items()
        if value is not None
    ]
    return Html(f"<{tag}{''.join(named)}>{joined(content)}</{tag}>")


def filled(template: str, **slots: object) -> Html:
    """Return a template of this package with its slots, ``{name}`` or ``{name:,}``, filled and escaped."""
    return Html(_Escaping().vformat(asset(template), (), slots))


class _Escaping(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return html_text(format(value, format_spec) if format_spec else value)


def script_data(value: Any) -> Html:
    r"""Return the value as JSON for a ``script`` element, with ``<`` as an escape sequence."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("<", "\\u003c"))


def figure_text(value: object, most: int = 60) -> str:
    """Return the value as one line of plain text of bounded length for a matplotlib figure.

    A dollar sign would begin a formula, and an underscore in front or nothing at all keep a label out of the legend.
    """
    text = shortened(visible(str(value)), most).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text or '""'


def figure_texts(values: Iterable[object]) -> list[str]:
    """Return each value as a text for a figure; another value with the same text gets a number.

    Example:
        >>> figure_texts([1, "1", 1])
        ['1', '1 (2)', '1']
    """
    keys = [(type(value), figure_text(value)) for value in values]
    distinct = list(dict.fromkeys(keys))
    names = dict(zip(distinct, numbered((text, None) for _, text in distinct), strict=True))
    return [names[key] for key in keys]


@cache
def asset(name: str) -> Html:
    """Return a file of the folder ``templates``: a style sheet, a script or a template."""
    return Html((resources.files("pomdp_hier.report") / "templates" / name).read_text(encoding="utf-8"))


# Blue and orange differ for every common kind of colour blindness, and in lightness, so that they read in grey as well.
BLUE = "#215294"
ORANGE = "#b35806"
GREY = "#9aa3ab"
INK = "#1d2126"
# Ordered by lightness, alternating between the two hues.
CYCLE = (BLUE, "#e08214", "#7ca5cd", "#7f3b08", "#4d4d4d", "#b8cfe6", "#f1b76a", "#9aa3ab")

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
"""Where the three states stand of which beliefs are drawn, ``[3, 2]``."""


def finite_numbers(name: str, values: Any, count: int | None = None) -> Floats:
    """Return the values as an array of ``count``, or at least one, finite numbers."""
    try:
        array = as_floats(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"{name}: got {brief(values)}; expected a list of numbers.") from error
    if array.ndim != 1 or not array.size or not np.isfinite(array).all() or count not in (None, array.size):
        wanted = "one or more" if count is None else f"{count}"
        raise ParameterError(
            f"{name}: got {brief(values)} of shape {array.shape}; expected a list of {wanted} finite numbers."
        )
    require_axis_range(name, array)
    return array


def require_axis_range(name: str, values: Floats) -> None:
    """Raise `ParameterError` for values so large that differences and margins of an axis exceed the floats."""
    size = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    if size > GREATEST:
        raise ParameterError(
            f"{name}: got {size:.3g}; expected at most {GREATEST:.3g} in size. Write all values in a larger unit."
        )


def new_axes(ax: "Axes | None", *, width: float = 6.4, height: float = 4.0) -> "Axes":
    """Return the axes given, or those of a new figure (inches), without the frame's upper and right lines."""
    if ax is None:
        figures = from_extra("plot", "matplotlib.figure", "figures need matplotlib")
        # A Figure of its own, not pyplot's: nothing is registered globally, so nothing has to be closed.
        ax = figures.Figure(figsize=(width, height), layout="constrained").subplots()
    if getattr(ax, "name", None) != "rectilinear":
        raise unexpected(
            "ax", ax, "matplotlib axes in two dimensions, or None", " Pass one of those that pyplot.subplots() returns."
        )
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK)
    return ax


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in points, at a font size in points; dollar signs begin no formula.

    Letters placed on pixels add up to 6 %.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text.strip():
        return 0.0
    # The outline's control points reach hardly further than its curves, whose extrema take ten times as long.
    look = FontProperties(weight="bold" if bold else "normal")
    plain = text.replace(r"\$", "$").replace("$", r"\$")
    return 1.06 * float(np.ptp(TextPath((0, 0), plain, size=size, prop=look).vertices[:, 0]))


def wrapped(value: object, width: float, size: float, most: int = 60) -> str:
    """Return the value as plain text in lines of at most ``width`` points, at a font size in points.

    Lines end at spaces, or after a slash, a hyphen or an underscore; within a word only if it is wider than a line.
    """
    lines = [""]
    for part in re.split(r"(?<=\s)(?!/)|(?<=\w[/_-])(?=\w)", shortened(visible(str(value)), most)):
        if lines[-1] and text_width((lines[-1] + part).rstrip(), size) > width:
            lines.append("")
        while text_width(part.rstrip(), size) > width and len(part) > 1:
            fits = max([k for k in range(1, len(part)) if text_width(part[:k], size) <= width], default=1)
            lines[-1:] = [part[:fits], ""]
            part = part[fits:]
        lines[-1] += part
    return "\n".join(line.strip() for line in lines).replace("$", r"\$") or '""'


def spread(places: Sequence[float], gap: float, limits: tuple[float, float] = (0.0, 1.0)) -> list[float]:
    """Return increasing places moved as little as possible, so that neighbours are ``gap`` apart within the limits."""
    from scipy.optimize import isotonic_regression

    if not len(places):
        return []
    offsets = gap * np.arange(len(places))
    moved = isotonic_regression(np.asarray(places) - offsets).x.clip(limits[0], max(limits[0], limits[1] - offsets[-1]))
    return [round(x, 12) for x in (moved + offsets).tolist()]


def axes_size(ax: "Axes", planned: float | None = None) -> tuple[float, float]:
    """Return the width and height of the axes in points; with a layout engine, its width will be as ``planned``."""
    figure: Any = ax.get_figure()
    box = ax.get_window_extent()
    width = planned if planned is not None and has_layout(ax) else box.width * 72 / figure.dpi
    return width, box.height * 72 / figure.dpi


def has_layout(ax: "Axes") -> bool:
    """Return whether the figure shrinks its axes for what is outside of them, as one of the package's own does."""
    figure: Any = ax.get_figure()
    return figure.get_layout_engine() is not None


def legend_beside(ax: "Axes", **options: Any) -> None:
    """Put the legend to the right of the axes, where it covers nothing.

    In a caller's figure without a layout engine it would be cut off; there it is inside, on white.
    """
    if has_layout(ax):
        ax.legend(**options, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), borderaxespad=0.8)
    else:
        ax.legend(**options, framealpha=0.9, edgecolor="none")


def legend_inches(labels: Iterable[str]) -> float:
    """Return the width that a legend with these labels needs beside the axes."""
    return (max((text_width(label, 10.0) for label in labels), default=0.0) + 48) / 72


def fit_points(ax: "Axes", width: float, height: float, own_figure: bool) -> float:
    """Set the limits to a drawing in points, and return the scale at which it fits.

    The origin is at the upper left. A figure of its own is made as large as the drawing.
    """
    ax.set_axis_off()
    figure: Any = ax.get_figure()  # a Figure, or a SubFigure of the caller's
    if own_figure:
        figure.set_layout_engine("none")
        figure.set_size_inches(width / 72, height / 72)
        ax.set_position((0, 0, 1, 1))
    box = ax.get_window_extent()
    scale = min(1.0, box.width * 72 / figure.dpi / width, box.height * 72 / figure.dpi / height)
    ax.set_xlim(0, box.width * 72 / figure.dpi / scale)
    ax.set_ylim(box.height * 72 / figure.dpi / scale, 0)
    return float(scale)


def draw_triangle(ax: "Axes", states: Sequence[Any], colour: str) -> None:
    """Draw the simplex of three states with the names of its corners, below and above the labels of its sides."""
    outline = TRIANGLE[[0, 1, 2, 0]]
    ax.plot(outline[:, 0], outline[:, 1], color=colour, lw=1.2)
    width, height = axes_size(ax)
    room = 0.48 * min(width / 1.5, height / 1.2)
    for (x, y), state in zip(TRIANGLE, states, strict=True):
        shift, side, lines = (0.03, "bottom", 2) if y > 0 else (-0.09, "top", 1)
        ax.text(x, y + shift, wrapped(state, lines * room, 10.0, 120), ha="center", va=side, color=INK)
    ax.set(xlim=(-0.25, 1.25), ylim=(-0.2, 1.0))
    ax.set_aspect("equal", anchor="W")  # at the left, so that a legend at the right has the rest
    ax.set_axis_off()


def search_colours() -> Any:
    """Return the colour map of search values: orange for lost, light grey between, blue for found."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = [ORANGE, "#e0a35c", "#ececec", "#7ca5cd", BLUE]
    return LinearSegmentedColormap.from_list("search", stops).with_extremes(bad="#cfcfcf")
