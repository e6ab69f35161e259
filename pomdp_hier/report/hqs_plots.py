"""Figures of an HQS: how the items' values are spread, where searchers are lost, and the tree as an icicle."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import check_whole, numbered
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.wording import NodeNames
from pomdp_hier.report.canvas import BLUE, CYCLE, GREY, INK, finite_numbers, new_axes, search_colours
from pomdp_hier.report.escaping import figure_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_icicle", "draw_level_success", "draw_value_density"]


def draw_value_density(
    values: Any, *, names: Sequence[str] | None = None, bins: int = 40, ax: "Axes | None" = None
) -> "Axes":
    """Return the axes with the density of the items' values ``V_x`` for one tree or several, the mean (HQS) marked.

    Args:
        values: ``[N]``, or a mapping from a tree's name to such an array.
        names: The trees' names, where ``values`` is a sequence of arrays.
        bins: How many bins between -1 and 1.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: There are no values, some are no finite numbers, or the names are not as many.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> ax = draw_value_density({"good": [0.5, 0.7, 0.9], "bad": [-0.9, -0.8, 0.1]})
        >>> ax.get_xlabel()
        'value of a search for the item'
    """
    check_whole("bins", bins, 1)
    named: Iterable[tuple[Any, Any]] = [("", values)]
    if isinstance(values, Mapping):
        named = values.items()
    elif names is not None:
        if len(names) != len(values):
            raise ParameterError(f"names: {len(names)} for {len(values)} arrays of values; give one each")
        named = zip(names, values, strict=True)
    series = numbered((name, finite_numbers("values", array)) for name, array in named)
    if not series:
        raise ParameterError("values: there are none; expected the values of one item or more")
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
    """Return the axes with the fate of the searches by level: still on the right path, lost, or stopped there.

    Args:
        right: ``[L]``, the expected share of all searches that are on the right path at the level.
        lost: ``[L]``, the share that has left it by then.
        stopped: ``[L]``, the share that has stopped on it above the level.
        levels: ``[L]``, the levels' numbers, from 0 (the root) by default.
        ax: Where to draw; a new figure by default.

    Raises:
        ParameterError: The three are not of one length, or no finite numbers.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> ax = draw_level_success([1, 0.8, 0.5], [0, 0.2, 0.3], [0, 0, 0.2])
        >>> ax.get_ylabel()
        'share of searches'
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
    """Return the axes with the hierarchy as an icicle: a row a level, a node as wide as its share of the items.

    Args:
        hierarchy: The tree.
        node_values: ``[n_nodes]``, what colours a node (NaN: grey).
        names: ``[n_nodes]`` or ``[N]``, what is written into nodes that are wide enough; the labels by default.
        low: The value of full orange.
        high: The value of full blue.
        label: What the colour bar says.
        ax: Where to draw; a new figure by default.

    Raises:
        HierarchyError: No hierarchy.
        ParameterError: The values are not one a node.
        MissingExtraError: Matplotlib is not installed.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], n_items=4)
        >>> ax = draw_icicle(tree, [0.0] * tree.n_nodes)
        >>> ax.get_ylabel()
        'level'
    """
    require_hierarchy(hierarchy)
    if not low < high:
        raise ParameterError(f"low, high: {low} and {high}; give the lower number first")
    values = np.asarray(node_values, dtype=np.float64)
    if values.shape != (hierarchy.n_nodes,):
        raise ParameterError(f"node_values: shape {values.shape}; expected ({hierarchy.n_nodes},), one a node")
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
            if room >= 4:
                shade = (values[node] - low) / (high - low)
                ink = "white" if shade < 0.14 or shade > 0.86 else INK
                text = figure_text(called[int(node)], room)
                ax.text(x + w / 2, y + 0.47, text, ha="center", va="center", fontsize=8, color=ink, clip_on=True)
    ax.set(xlim=(0, 1), ylim=(hierarchy.height + 1, 0), ylabel="level", xticks=[])
    ticks = np.arange(0, hierarchy.height + 1, 1 if hierarchy.height <= 15 else hierarchy.height // 8)
    ax.set_yticks(ticks + 0.47, ticks.astype(str))
    ax.spines["bottom"].set_visible(False)
    ax.figure.colorbar(boxes, ax=ax, label=label, shrink=0.8, aspect=30, pad=0.01)
    return ax
