"""Figures that hold things side by side: policies in one environment, and trees over temperatures."""

from typing import TYPE_CHECKING, Any

from pomdp_hier._arguments import check_kind
from pomdp_hier.appraisal.levels import BestCut, LevelsAdvice
from pomdp_hier.appraisal.sweep import DeltaSweep
from pomdp_hier.report.canvas import BLUE, CYCLE, GREY, INK, ORANGE, new_axes
from pomdp_hier.report.escaping import figure_text
from pomdp_hier.simulation import PolicyComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_delta_sweep", "draw_levels", "draw_policy_comparison"]


def draw_policy_comparison(comparison: PolicyComparison, *, ax: "Axes | None" = None) -> "Axes":
    """Return the axes with one row a policy: its value, its interval where it was sampled, and the clairvoyant value.

    Filled marks differ from the baseline; hollow ones cannot be told from it.

    Args:
        comparison: What `compare_policies` returned.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: It is no comparison.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> from pomdp_hier.planning.policies import FirstAction
        >>> from pomdp_hier.simulation import compare_policies
        >>> rows = compare_policies({"first": FirstAction()}, tiger(), horizon=2)
        >>> draw_policy_comparison(rows).get_xlabel()
        'value'
    """
    check_kind("comparison", comparison, PolicyComparison, "what compare_policies returns")
    rows = comparison.rows
    ax = new_axes(ax, width=6.4, height=1.2 + 0.42 * len(rows))
    for k, row in enumerate(rows):
        told_apart = row.verdict in ("better", "worse")
        colour = BLUE if row.verdict in ("better", "baseline", "same") else ORANGE if told_apart else GREY
        if row.interval is not None:
            ax.plot(row.interval, [k, k], color=colour, lw=2.2, solid_capstyle="butt", zorder=2)
        filled = told_apart or row.verdict == "baseline"
        marker = {"better": "^", "worse": "v", "baseline": "s"}.get(row.verdict, "o")
        face = colour if filled else "white"
        ax.plot(row.value, k, marker, ms=8, color=colour, mfc=face, mew=1.6, zorder=3)
        note = f"{row.value:.4g}" + ("" if row.verdict in ("better", "worse") else f"  ({row.verdict})")
        text = ax.annotate(note, (row.value, k), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=8)
        text.set(color=INK, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})
    if comparison.clairvoyant is not None:
        ax.axvline(comparison.clairvoyant, color=INK, lw=1.2, ls=(0, (4, 3)))
        look: dict[str, Any] = {"fontsize": 8, "color": INK, "va": "bottom", "ha": "center"}
        ax.annotate("clairvoyant", (comparison.clairvoyant, -0.7), xytext=(0, 3), textcoords="offset points", **look)
    ax.set_yticks(range(len(rows)), [figure_text(row.name) for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.7)  # the first policy on top
    ax.margins(x=0.12)
    ax.grid(axis="x", color="#e8ebee", lw=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("value")
    return ax


def draw_delta_sweep(sweep: DeltaSweep, *, ax: "Axes | None" = None) -> "Axes":
    """Return the axes with each tree's score over the temperatures, its ceiling dotted, its shuffled baseline dashed.

    A vertical line marks where two trees change places; 0 is what searching without a tree is worth.

    Args:
        sweep: What `delta_sweep` returned.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: It is no sweep.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.appraisal import delta_sweep
        >>> from pomdp_hier.hqs import load_amazon12
        >>> shop = load_amazon12()
        >>> two = {name: shop.hierarchies[name] for name in "BC"}
        >>> sweep = delta_sweep(shop.similarity, two, [0.001, 0.01, 0.1], n_shuffles=2, similarity="precomputed")
        >>> draw_delta_sweep(sweep).get_xscale()
        'log'
    """
    check_kind("sweep", sweep, DeltaSweep, "what delta_sweep returns")
    ax = new_axes(ax, width=6.4, height=4.0)
    deltas = sweep.deltas
    for k, tree in enumerate(sweep.trees):
        colour = CYCLE[k % len(CYCLE)]
        score, name = sweep.column(tree, "score"), figure_text(tree)
        ax.plot(deltas, score, color=colour, lw=2.2, marker="o", ms=4, label=name, zorder=3)
        ax.plot(deltas, sweep.column(tree, "ceiling"), color=colour, lw=1.0, ls=":", zorder=2)
        shuffled = sweep.column(tree, "shuffled")
        if not all(value != value for value in shuffled):
            ax.plot(deltas, shuffled, color=colour, lw=1.0, ls="--", zorder=2)
    for flip in sweep.flips:
        middle = (flip.low * flip.high) ** 0.5
        ax.axvline(middle, color=GREY, lw=0.9, zorder=1)
        words = f"{figure_text(flip.after)} overtakes {figure_text(flip.before)}"
        ax.annotate(words, (middle, -0.98), rotation=90, ha="right", va="bottom", fontsize=7, color=INK)
    ax.axhline(0, color=GREY, lw=0.8, zorder=0)
    ax.set(xscale="log", xlabel="delta", ylabel="HQS (dotted: ceiling, dashed: shuffled)", ylim=(-1, 1))
    ax.legend(frameon=False, loc="upper right", ncols=min(4, len(sweep.trees)))
    return ax


def draw_levels(found: LevelsAdvice | BestCut, *, ax: "Axes | None" = None) -> "Axes":
    """Return the axes with the score over the levels that are kept, or over the clusters of a flat cut.

    The bars are the intervals of the difference from the whole tree, drawn around each score; the best is filled.

    Args:
        found: What `levels_advice` or `best_cut` returned.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: It is neither.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier import Hierarchy
        >>> from pomdp_hier.appraisal import levels_advice
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> draw_levels(levels_advice([[1, 0], [9, 1], [0, 1], [1, 9]], tree)).get_xlabel()
        'levels kept, taken out from the bottom'
    """
    check_kind("found", found, LevelsAdvice | BestCut, "what levels_advice or best_cut returns")
    ax = new_axes(ax, width=6.4, height=3.6)
    rows = found.to_rows()
    scores = [row["hqs"] for row in rows]
    ax.axhline(0, color=GREY, lw=0.8, ls=":")
    if isinstance(found, BestCut):
        clusters = [row["clusters"] for row in rows]
        best = max(range(len(rows)), key=lambda k: (scores[k], -k))
        ax.plot(clusters, scores, color=BLUE, lw=1.6)
        ax.plot(clusters[best], scores[best], "o", color=ORANGE, ms=7)
        ax.annotate(f"{clusters[best]}", (clusters[best], scores[best]), xytext=(6, 4), textcoords="offset points")
        ax.set(xscale="log", xlabel="clusters of the flat cut", ylabel="HQS")
        return ax
    kept = [row["levels"] for row in rows]
    down = [row["gain"] - row["low"] for row in rows]
    up = [row["high"] - row["gain"] for row in rows]
    ax.errorbar(kept, scores, yerr=[down, up], color=BLUE, lw=1.6, marker="o", mfc="white", capsize=3)
    ax.plot(kept[found.best], scores[found.best], "o", color=ORANGE, ms=7, zorder=3)
    for level, score, row in zip(kept, scores, rows, strict=True):
        if len(rows) <= 12:
            ax.annotate(str(row["clusters"]), (level, score), xytext=(6, 5), textcoords="offset points", fontsize=8)
    ax.set(xlabel=f"levels kept, taken out from the {found.side}", ylabel="HQS")
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax
