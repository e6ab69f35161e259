"""Figures of scores: policies, curves over temperature or levels, value densities and icicles."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import as_floats, check_integer, check_kind, numbered, unexpected
from pomdp_hier._imports import from_extra
from pomdp_hier._text import counted
from pomdp_hier.analysis.levels import BestCut, LevelScores
from pomdp_hier.analysis.settings_sweep import DeltaSweep
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.report.elements import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ORANGE,
    axes_size,
    figure_text,
    finite_numbers,
    legend_beside,
    legend_inches,
    new_axes,
    search_colours,
    spread,
    text_width,
    wrapped,
)
from pomdp_hier.simulation.comparison_table import PolicyComparison
from pomdp_hier.simulation.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_policy_comparison(comparison: PolicyComparison, *, ax: "Axes | None" = None) -> "Axes":
    """Draw one row per policy: its value, its confidence interval, and bounds on the optimum, or the MDP value.

    Filled marks are the baseline, and policies that differ from it; a hollow mark is inconclusive. A band shows the
    certified bounds on the optimal value, if the comparison has them.

    Args:
        comparison: The result of `compare_policies`.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: It is not a comparison.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> from pomdp_hier.planning.policies import FirstAction
        >>> from pomdp_hier.simulation import compare_policies
        >>> rows = compare_policies({"first": FirstAction()}, tiger(), horizon=2)
        >>> draw_policy_comparison(rows).get_xlabel()
        'value'
    """
    check_kind("comparison", comparison, PolicyComparison, "the result of compare_policies")
    rows = comparison.rows
    ax = new_axes(ax, width=_names_inches(comparison) + 4.6, height=1.2 + 0.42 * len(rows))
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
    known = None
    if comparison.optimum is not None:
        low, high = comparison.optimum
        ax.axvspan(low, high, color=ORANGE, alpha=0.4, lw=1.2, zorder=0)
        known = (f"optimal value {low:.4g} to {high:.4g}", (low + high) / 2)
    elif comparison.mdp_value is not None:
        ax.axvline(comparison.mdp_value, color=INK, lw=1.2, ls=(0, (4, 3)))
        known = (f"MDP value {comparison.mdp_value:.4g}", comparison.mdp_value)
    if known is not None:
        look: dict[str, Any] = {"fontsize": 8, "color": INK, "va": "bottom", "ha": "center"}
        ax.annotate(known[0], (known[1], -0.7), xytext=(0, 3), textcoords="offset points", **look)
    ax.set_yticks(range(len(rows)), [figure_text(row.name) for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.7)  # the first policy on top
    ax.margins(x=0.12)
    ax.grid(axis="x", color="#e8ebee", lw=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("value")
    low, high = ax.get_xlim()
    notes: Any = ax.texts
    for note in notes:  # none reaches over the names at the left, or over the right end
        share = (note.xy[0] - low) / (high - low)
        note.set_ha("left" if share < 0.25 else "right" if share > 0.75 else "center")
    return ax


def _names_inches(comparison: PolicyComparison) -> float:
    """Return the width of the longest name of a policy."""
    return max(text_width(figure_text(row.name), 10.0) for row in comparison.rows) / 72


def draw_experiment(experiment: Experiment) -> "list[Axes]":
    """Draw the policies on each problem, one panel per problem, as `draw_policy_comparison` does.

    Args:
        experiment: The result of `run_experiment`.

    Returns:
        The axes, one per problem, all of one figure: ``draw_experiment(result)[0].figure.savefig("policies.pdf")``.

    Raises:
        ParameterError: It is not an experiment.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier.planning import QMDPPolicy
        >>> from pomdp_hier.problems import tiger
        >>> from pomdp_hier.simulation import run_experiment
        >>> found = run_experiment({"tiger": tiger()}, {"QMDP": QMDPPolicy()}, method="exact", horizon=2)
        >>> [ax.get_title(loc="left") for ax in draw_experiment(found)]
        ['tiger']
    """
    check_kind("experiment", experiment, Experiment, "the result of run_experiment")
    heights = [1.2 + 0.42 * len(table) for table in experiment.tables.values()]
    figures = from_extra("plot", "matplotlib.figure", "figures need matplotlib")
    beside = max(map(_names_inches, experiment.tables.values()))
    figure = figures.Figure(figsize=(beside + 4.6, sum(heights)), layout="constrained")
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, (name, table) in zip(panels, experiment.tables.items(), strict=True):
        draw_policy_comparison(table, ax=ax)
        ax.set_title(wrapped(name, 280.0, 10.0), fontsize=10, color=INK, loc="left", pad=18)  # above the known value
    return list(panels)


def draw_score_curve(found: DeltaSweep | LevelScores | BestCut, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the score over the temperature, the number of levels, or the number of clusters.

    - Of `delta_sweep`: each tree's score, its hindsight value dotted, its shuffled baseline dashed. A vertical line
      marks a change in the order of two trees.
    - Of `score_by_levels`: the bars are the intervals of the difference to the whole tree, around each score.
    - Of `best_cut`: the scores of the cuts into one level.

    The best number of levels or clusters is filled. A score of 0 equals a search without a tree.

    Args:
        found: The result of `delta_sweep`, `score_by_levels` or `best_cut`.
        ax: The axes; those of a new figure by default.

    Raises:
        ParameterError: ``found`` is another object.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> from pomdp_hier import Hierarchy
        >>> from pomdp_hier.analysis import delta_sweep, score_by_levels
        >>> X, tree = [[1, 0], [9, 1], [0, 1], [1, 9]], Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> draw_score_curve(score_by_levels(X, tree)).get_xlabel()
        'levels kept, removed from the bottom'
        >>> draw_score_curve(delta_sweep(X, tree, [0.01, 0.1])).get_xscale()
        'log'
    """
    check_kind("found", found, DeltaSweep | LevelScores | BestCut, "the result of delta_sweep or score_by_levels")
    if isinstance(found, DeltaSweep):
        beside = legend_inches(map(figure_text, found.trees))
        return _draw_sweep(found, new_axes(ax, width=6.0 + beside, height=4.0))
    ax = new_axes(ax, width=6.4, height=3.6)
    ax.axhline(0, color=GREY, lw=0.8, ls=":")
    return _draw_cut(found, ax) if isinstance(found, BestCut) else _draw_levels(found, ax)


def _draw_sweep(sweep: DeltaSweep, ax: "Axes") -> "Axes":
    deltas = sweep.deltas
    for k, tree in enumerate(sweep.trees):
        colour = CYCLE[k % len(CYCLE)]
        score, name = sweep.column(tree, "score"), figure_text(tree)
        ax.plot(deltas, score, color=colour, lw=2.2, marker="o", ms=4, label=name, zorder=3)
        ax.plot(deltas, sweep.column(tree, "hindsight"), color=colour, lw=1.0, ls=":", zorder=2)
        shuffled = sweep.column(tree, "shuffled_mean")
        if not all(value != value for value in shuffled):
            ax.plot(deltas, shuffled, color=colour, lw=1.0, ls="--", zorder=2)
    ax.axhline(0, color=GREY, lw=0.8, zorder=0)
    ax.set(xscale="log", xlabel="delta", ylabel="HQS (dotted: hindsight, dashed: shuffled)", ylim=(-1, 1))
    legend_beside(ax)
    _mark_flips(ax, sweep)
    return ax


def _mark_flips(ax: "Axes", sweep: DeltaSweep) -> None:
    """Mark by a line, with words beside each other, where two trees change their order."""
    flips = sorted(sweep.flips, key=lambda flip: flip.low * flip.high)
    middles = [(flip.low * flip.high) ** 0.5 for flip in flips]
    for middle in dict.fromkeys(middles):
        ax.axvline(middle, color=GREY, lw=0.9, zorder=1)
    left, right = np.log(ax.get_xlim())
    width, _ = axes_size(ax, 340.0)
    places = spread([(np.log(middle) - left) / (right - left) for middle in middles], 13 / width)
    look: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 8, "color": INK, "zorder": 4}
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85}
    for flip, place in zip(flips, places, strict=True):
        words = f"{figure_text(flip.after, 30)} overtakes {figure_text(flip.before, 30)}"
        ax.text(place, 0.01, words, transform=ax.transAxes, **look)


def _draw_cut(found: BestCut, ax: "Axes") -> "Axes":
    rows = found.to_rows()
    scores = [row["hqs"] for row in rows]
    clusters = [row["n_clusters"] for row in rows]
    best = max(range(len(rows)), key=lambda k: (scores[k], -k))
    ax.plot(clusters, scores, color=BLUE, lw=1.6)
    ax.plot(clusters[best], scores[best], "o", color=ORANGE, ms=7)
    ax.annotate(
        counted(clusters[best], "cluster"), (clusters[best], scores[best]), xytext=(6, 4), textcoords="offset points"
    )
    ax.set(xscale="log", xlabel="clusters of the flat cut", ylabel="HQS")
    return ax


def _draw_levels(found: LevelScores, ax: "Axes") -> "Axes":
    rows = found.to_rows()
    scores = [row["hqs"] for row in rows]
    kept = [row["n_levels"] for row in rows]
    down = [row["gain"] - row["gain_ci_low"] for row in rows]
    up = [row["gain_ci_high"] - row["gain"] for row in rows]
    ax.errorbar(kept, scores, yerr=[down, up], color=BLUE, lw=1.6, marker="o", mfc="white", capsize=3)
    ax.plot(kept[found.best], scores[found.best], "o", color=ORANGE, ms=7, zorder=3)
    for level, score, row in zip(kept, scores, rows, strict=True):
        if len(rows) <= 12:
            words = str(row["n_clusters"]) if level != kept[0] else counted(row["n_clusters"], "cluster")
            ax.annotate(words, (level, score), xytext=(6, 5), textcoords="offset points", fontsize=8)
    ax.set(xlabel=f"levels kept, removed from the {found.remove_from}")
    ax.set_ylabel("HQS\n(bars: interval of the difference to the whole tree)", fontsize=8.5)
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def draw_value_density(
    values: Any, *, names: Sequence[str] | None = None, bins: int = 40, ax: "Axes | None" = None
) -> "Axes":
    """Draw the density of the items' values ``V_x`` for one or several trees, with the mean (HQS) marked.

    Args:
        values: ``[N]``, or a mapping from a tree's name to such an array.
        names: The trees' names, where ``values`` is a sequence of arrays.
        bins: How many bins between -1 and 1.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: The list is empty, some values are not finite, or the number of names differs.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> ax = draw_value_density({"good": [0.5, 0.7, 0.9], "bad": [-0.9, -0.8, 0.1]})
        >>> ax.get_xlabel()
        'value of a search for the item'
    """
    check_integer("bins", bins, 1)
    named: Iterable[tuple[Any, Any]] = [("", values)]
    if isinstance(values, Mapping):
        named = values.items()
    elif names is not None:
        if len(names) != len(values):
            raise ParameterError(f"names: got {len(names)}; expected {len(values)}, one per array of values.")
        named = zip(names, values, strict=True)
    series = numbered((name, finite_numbers("values", array)) for name, array in named)
    if not series:
        raise ParameterError("values: got none; expected the values of one item or more.")
    ax = new_axes(ax, width=6.0, height=3.4)
    edges = np.linspace(-1, 1, bins + 1)
    for k, (name, array) in enumerate(series.items()):
        colour = CYCLE[k % len(CYCLE)]
        density, _ = np.histogram(np.clip(array, -1, 1), edges, density=True)
        label = f"{figure_text(name)} ({array.mean():z.3f})" if name else f"HQS {array.mean():z.3f}"
        ax.stairs(density, edges, color=colour, lw=1.8, label=label, fill=False, zorder=3)
        ax.stairs(density, edges, color=colour, alpha=0.16, fill=True)
        ax.axvline(array.mean(), color=colour, lw=1.4, ls=(0, (5, 2)) if k == 0 else (0, (1 + k, 1.5)))
    ax.axvline(0, color=GREY, lw=0.8, zorder=0)
    ax.set(xlim=(-1, 1), xlabel="value of a search for the item", ylabel="density")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def draw_level_success(
    right: Any, lost: Any, stopped: Any, *, levels: Sequence[int] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the state of the searches by level: on the correct path, lost, or stopped.

    Args:
        right: ``[L]``, the expected share of all searches that are on the right path at the level.
        lost: ``[L]``, the share that has left it by then.
        stopped: ``[L]``, the share that has stopped on it above the level.
        levels: ``[L]``, the levels' numbers, from 0 (the root) by default.
    """
    count = len(finite_numbers("right", right))
    parts = [finite_numbers("stopped", stopped, count), np.asarray(right), finite_numbers("lost", lost, count)]
    x = np.arange(count) if levels is None else finite_numbers("levels", levels, count)
    ax = new_axes(ax, width=6.0, height=3.4)
    bottom = np.zeros(len(x))
    looks = (("stopped, item in reach", "#7ca5cd", ""), ("on the right path", BLUE, ""), ("lost", "#e0a35c", "//"))
    for part, (label, colour, hatch) in zip(parts, looks, strict=True):
        ax.bar(x, part, bottom=bottom, width=0.86, color=colour, edgecolor="white", hatch=hatch, label=label)
        bottom += part
    ax.set(xlabel="level", ylabel="share of searches", ylim=(0, 1.0))
    ax.set_xticks(x[:: 1 + len(x) // 20])
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return ax


def _ink_on(colour: Any) -> str:
    """Return the colour of a text, dark or white, that has the higher contrast on a colour (WCAG 2)."""
    from matplotlib.colors import to_rgb

    def luminance(value: Any) -> float:
        parts = np.array(to_rgb(value))
        return float(
            np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)
        )

    back = luminance(colour) + 0.05
    return "white" if 1.05 / back > back / (luminance(INK) + 0.05) else INK


def draw_icicle(
    hierarchy: Hierarchy,
    node_values: Any,
    *,
    names: Sequence[str] | None = None,
    low: float = -1.0,
    high: float = 1.0,
    label: str = "mean value of the searches below",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the hierarchy as an icicle: one row per level, each node as wide as its share of the items.

    Args:
        hierarchy: The tree.
        node_values: ``[n_nodes]``, what colours a node (NaN: grey).
        names: ``[n_nodes]`` or ``[N]``, what is written into nodes that are wide enough; the labels by default.
        low: The value of full orange.
        high: The value of full blue.
        label: What the colour bar says.
        ax: Where to draw; a new figure by default.

    Raises:
        HierarchyError: It is not a hierarchy.
        ParameterError: There is not one value per node.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], n_items=4)
        >>> ax = draw_icicle(tree, [0.0] * tree.n_nodes)
        >>> ax.get_ylabel()
        'level'
    """
    require_hierarchy(hierarchy)
    if not low < high:
        raise ParameterError(f"low, high: got {low} and {high}; expected the lower number first.")
    try:
        values = as_floats(node_values)
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(0)
    if values.shape != (hierarchy.n_nodes,):
        raise unexpected("node_values", node_values, f"{hierarchy.n_nodes} numbers, one per node")
    ax = new_axes(ax, width=8.0, height=min(9.0, 1.6 + 0.42 * (hierarchy.height + 1)))
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    nodes = np.flatnonzero(hierarchy.is_cluster)
    left = hierarchy.starts[nodes] / hierarchy.n_items
    width = hierarchy.sizes[nodes] / hierarchy.n_items
    level = hierarchy.levels[nodes].astype(np.float64)
    # Narrower than a third of a printed pixel, a node only costs time.
    wide = width > 1 / 6000
    nodes, left, width, level = nodes[wide], left[wide], width[wide], level[wide]
    right = left + width
    corners = np.stack([left, level, right, level, right, level + 0.94, left, level + 0.94], axis=1).reshape(-1, 4, 2)
    norm, colours = Normalize(low, high), search_colours()
    boxes = PolyCollection(list(corners), array=np.ma.masked_invalid(values[nodes]), cmap=colours, norm=norm)
    boxes.set(edgecolor="white", linewidth=0.4)
    ax.add_collection(boxes)
    if names is not None or hierarchy.labels is not None:
        called = NodeNames(hierarchy, names, last_part=True)
        for node, x, w, y in zip(nodes, left, width, level, strict=True):
            room = int(w * 95)
            full = called[int(node)]
            if room >= min(8, len(full)):  # "dig…" would name nothing
                text, ink = figure_text(full, room), _ink_on(colours(norm(values[node])))
                ax.text(x + w / 2, y + 0.47, text, ha="center", va="center", fontsize=8, color=ink, clip_on=True)
    ax.set(xlim=(0, 1), ylim=(hierarchy.height + 1, 0), ylabel="level", xticks=[])
    ticks = np.arange(0, hierarchy.height + 1, 1 if hierarchy.height <= 15 else hierarchy.height // 8)
    ax.set_yticks(ticks + 0.47, ticks.astype(str))
    ax.spines["bottom"].set_visible(False)
    ax.figure.colorbar(boxes, ax=ax, label=label, shrink=0.8, aspect=30, pad=0.01)
    return ax
