"""The figure of policies side by side: values with intervals, held against the ceiling."""

from typing import TYPE_CHECKING, Any

from pomdp_hier.errors import ParameterError
from pomdp_hier.report.canvas import BLUE, GREY, INK, ORANGE, new_axes
from pomdp_hier.simulation import PolicyComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_policy_comparison"]


def draw_policy_comparison(comparison: PolicyComparison, *, ax: "Axes | None" = None) -> "Axes":
    """The axes with one row a policy: its value, its interval where it was sampled, and the clairvoyant value.

    Filled marks differ from the baseline; hollow ones cannot be told from it.

    Args:
        comparison: what `compare_policies` returned.
        ax: where to draw; a new figure by default.

    Raises:
        ParameterError: it is no comparison.
        MissingExtraError: matplotlib is not installed.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> from pomdp_hier.planning.policies import FirstAction
        >>> from pomdp_hier.simulation import compare_policies
        >>> rows = compare_policies({"first": FirstAction()}, tiger(), horizon=2)
        >>> draw_policy_comparison(rows).get_xlabel()
        'value'
    """
    if not isinstance(comparison, PolicyComparison):
        raise ParameterError(f"comparison: got a {type(comparison).__name__}; give what compare_policies returns")
    rows = comparison.rows
    ax = new_axes(ax, width=6.4, height=1.2 + 0.42 * len(rows))
    for k, row in enumerate(rows):
        told_apart = row.verdict in ("better", "worse")
        colour = BLUE if row.verdict in ("better", "baseline", "same") else ORANGE if told_apart else GREY
        if row.interval is not None:
            ax.plot(row.interval, [k, k], color=colour, lw=2.2, solid_capstyle="butt", zorder=2)
        filled = told_apart or row.verdict == "baseline"
        marker = {"better": "^", "worse": "v", "baseline": "s"}.get(row.verdict, "o")
        ax.plot(
            [row.value],
            [k],
            marker=marker,
            ms=8,
            color=colour,
            mfc=colour if filled else "white",
            mew=1.6,
            ls="none",
            zorder=3,
        )
        note = f"{row.value:.4g}" + ("" if row.verdict in ("better", "worse") else f"  ({row.verdict})")
        ax.annotate(note, (row.value, k), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=8, color=INK)
    if comparison.clairvoyant is not None:
        ax.axvline(comparison.clairvoyant, color=INK, lw=1.2, ls=(0, (4, 3)))
        foot = (comparison.clairvoyant, len(rows) - 0.45)
        look: dict[str, Any] = {"fontsize": 8, "color": INK, "rotation": 90, "va": "bottom", "ha": "right"}
        ax.annotate("clairvoyant", foot, xytext=(-3, 0), textcoords="offset points", **look)
    ax.set_yticks(range(len(rows)), [row.name for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.7)  # the first policy on top
    ax.margins(x=0.12)
    ax.grid(axis="x", color="#e8ebee", lw=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("value")
    return ax
