"""Common parts of the matplotlib figures: optional import, colours, axes."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier._imports import from_extra
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.report.escaping import figure_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """Return the values as an array of ``count``, or at least one, finite numbers.

    Raises:
        ParameterError: They are not.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name}: got {brief(values)}; expected a list of numbers") from error
    if array.ndim != 1 or not array.size or not np.isfinite(array).all() or count not in (None, array.size):
        wanted = "one or more" if count is None else f"{count}"
        raise ParameterError(
            f"{name}: got {brief(values)} of shape {array.shape}; expected a list of {wanted} finite numbers"
        )
    return array


def new_axes(ax: "Axes | None", *, width: float = 6.4, height: float = 4.0) -> "Axes":
    """Return the axes given, or those of a new figure (inches), without the frame's upper and right lines.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    if ax is None:
        figures = from_extra("plot", "matplotlib.figure", "figures need matplotlib")
        # A Figure of its own, not pyplot's: nothing is registered globally, so nothing has to be closed.
        ax = figures.Figure(figsize=(width, height), layout="constrained").subplots()
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK)
    return ax


def draw_triangle(ax: "Axes", states: Sequence[Any], colour: str) -> None:
    """Draw the simplex of three states with the names of its corners."""
    outline = TRIANGLE[[0, 1, 2, 0]]
    ax.plot(outline[:, 0], outline[:, 1], color=colour, lw=1.2)
    for (x, y), state in zip(TRIANGLE, states, strict=True):
        shift, side = (0.03, "bottom") if y > 0 else (-0.05, "top")
        ax.text(x, y + shift, figure_text(state), ha="center", va=side, color=INK)
    ax.set(xlim=(-0.15, 1.15), ylim=(-0.13, 1.0))
    ax.set_aspect("equal")
    ax.set_axis_off()


def search_colours() -> Any:
    """Return the colour map of search values: orange for lost, light grey between, blue for found."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = [ORANGE, "#e0a35c", "#ececec", "#7ca5cd", BLUE]
    return LinearSegmentedColormap.from_list("search", stops).with_extremes(bad="#cfcfcf")
