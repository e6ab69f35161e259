"""Data and tables of the pages: icicle arrays, cells of nodes, and edits."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._text import counted, shortened, visible
from pomdp_hier.analysis.diagnosis import Diagnosis
from pomdp_hier.analysis.moves import Move
from pomdp_hier.features.membership import item_sums, node_sums
from pomdp_hier.filing.result import MisfiledItems
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.improvement.result import REASONS, Edit, Improvement
from pomdp_hier.report.elements import Html, element, filled, joined

# Beyond these a page is slow to open and larger than it is useful; the page says what it leaves out.
MOST_NODES = 100_000
MOST_ITEMS = 200_000

# What a colour measures, and what it means.
_WORTH = "value of a search", "the mean over the items below: −1 lost, 0 no better than no tree, 1 found at once"
_ARRIVE = "searchers arriving", "of the searchers for the items below, the share that arrives here"
_RIGHT = (
    "correct child most similar",
    "of the items below, the share whose own child is the most similar; grey: no choice is made",
)
_COST = "wrong-branch cost", "the loss of score by wrong branches at this node"


def node_names(
    tree: Hierarchy, names: Sequence[Any] | Mapping[Any, Any] | None
) -> tuple[Sequence[str], Sequence[str] | None]:
    """Return the names of the nodes in an icicle, and their ids if names are given."""
    return NodeNames(tree, names, last_part=True, in_words=True), None if names is None else NodeNames(tree)


def icicle_payload(
    diagnosis: Diagnosis,
    names: Sequence[str],
    ids: Sequence[str] | None = None,
    gain: Floats | None = None,
    gain_note: str = "",
) -> tuple[dict[str, Any], Ints]:
    """Return the arrays of the icicle for JSON, and the position of each node ``[n_nodes]`` (-1: left out).

    Of a tree with more than 100,000 clusters only the largest are kept; the items' row is left out above 200,000 items.
    What is left out is said under ``left_out``.

    Args:
        names: ``[n_nodes]``, what the nodes are called.
        ids: ``[n_nodes]``, their ids, if they are to be found by these too.
        gain: ``[N]``, what each item's search gains over another tree; it colours first.
    """
    tree, result = diagnosis.hierarchy, diagnosis.result
    payload, nodes, position = tree_arrays(tree, names, ids)
    show_items = bool(payload["items"]["label"])
    with np.errstate(invalid="ignore", divide="ignore"):
        value = _mean_below(diagnosis, result.values, nodes)
        arrive = diagnosis.expected_arrivals[nodes] / diagnosis.node_weights[nodes]
        right = diagnosis.n_correct[nodes] / diagnosis.n_choices[nodes]
    cost = diagnosis.wrong_branch_loss[nodes] / tree.n_items
    payload["tree"] |= {
        "value": _short(value),
        "arrive": _short(arrive),
        "right": _short(right),
        "cost": _short(cost, digits=6),
    }
    payload["items"]["value"] = _short(result.values[tree.item_order]) if show_items else []
    payload["measures"] = [
        _measure("value", *_WORTH, low=-1, high=1, items="value" if show_items else None),
        _measure("arrive", *_ARRIVE, percent=True),
        _measure("right", *_RIGHT, percent=True),
        _measure("cost", *_COST, low=max(float(cost.max()), 1e-12), high=0),
    ]
    if gain is not None:
        payload["tree"]["gain"] = _short(_mean_below(diagnosis, gain, nodes))
        payload["items"]["gain"] = _short(gain[tree.item_order]) if show_items else []
        of_items = "gain" if show_items else None
        payload["measures"].insert(0, _measure("gain", "gain", gain_note, low=-1, high=1, items=of_items))
    return payload, position


def _mean_below(diagnosis: Diagnosis, values: Floats, nodes: Ints) -> Floats:
    """Return the mean of the items' values below each node, by their weights; NaN where all of these are 0."""
    tree, below = diagnosis.hierarchy, diagnosis.node_weights[nodes]
    if diagnosis.result.sample_weight is None:
        means: Floats = item_sums(tree, values, nodes) / below
        return means
    sums = node_sums(tree, values * diagnosis.node_weights[: tree.n_items])[nodes]
    return np.where(below > 0, sums / np.where(below > 0, below, 1.0), np.nan)


def _measure(
    key: str, name: str, note: str, *, low: float = 0, high: float = 1, percent: bool = False, items: str | None = None
) -> dict[str, Any]:
    """Return the measure of a colour scale of the icicle, and the values at its ends."""
    return {"key": key, "name": name, "low": low, "high": high, "percent": percent, "items": items, "note": note}


def tree_arrays(tree: Hierarchy, names: Sequence[str], ids: Sequence[str] | None) -> tuple[dict[str, Any], Ints, Ints]:
    """Return a tree's shape and names for JSON, the kept nodes, and the position of each node."""
    nodes = _kept(tree)
    nodes = nodes[np.lexsort((tree.starts[nodes], tree.levels[nodes]))]
    position = np.full(tree.n_nodes, -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))
    show_items = tree.n_items <= MOST_ITEMS
    order = tree.item_order if show_items else tree.item_order[:0]
    payload: dict[str, Any] = {
        "tree": {
            "parent": [-1, *position[tree.parent[nodes[1:]]].tolist()],
            "start": tree.starts[nodes].tolist(),
            "size": tree.sizes[nodes].tolist(),
            "level": tree.levels[nodes].tolist(),
            **_called(nodes.tolist(), names, ids),
        },
        "items": _called(order.tolist(), names, ids),
        "left_out": _left_out(int(tree.is_cluster.sum()) - len(nodes), show_items),
    }
    return payload, nodes, position


def _called(nodes: Sequence[int], names: Sequence[str], ids: Sequence[str] | None) -> dict[str, list[str]]:
    """Return names and ids; an id equal to the name is empty."""
    labels = [visible(names[node]) for node in nodes]
    if ids is None:
        return {"label": labels, "id": []}
    known = (visible(ids[node]) for node in nodes)
    return {"label": labels, "id": ["" if name == label else name for name, label in zip(known, labels, strict=True)]}


def _left_out(n_clusters: int, show_items: bool) -> list[str]:
    """Return sentences about omitted nodes."""
    sentences = [f"Not drawn: {counted(n_clusters, 'cluster')}, the smallest."] if n_clusters else []
    return sentences if show_items else [*sentences, "Single items are not drawn."]


def _kept(tree: Hierarchy) -> Ints:
    """Return the clusters, or the largest ones, which include their ancestors."""
    clusters = np.flatnonzero(tree.is_cluster)
    if len(clusters) <= MOST_NODES:
        return clusters
    # Of equally large clusters the higher ones first, so that a chain is cut below.
    order = np.lexsort((tree.levels[clusters], -tree.sizes[clusters]))
    return clusters[order[:MOST_NODES]]


def _short(values: Floats, digits: int = 4) -> list[float | None]:
    """Return the rounded values, with NaN as null and without negative zeros."""
    return [None if value != value else value for value in (np.round(values, digits) + 0.0).tolist()]


@dataclass(frozen=True)
class Destination:
    """A cluster, or a single item, that is confused with its siblings.

    Attributes:
        node: The cluster.
        parent: Its parent.
        n_items: The number of items of its siblings that are more similar to it than to their own cluster.
        expected_errors: The expected number of searchers that enter it by mistake.
        cost: What that takes off the score.
        sources: The siblings that have such items, each with their number, the most costly first. Searchers who stray
            at random come from others as well.
        examples: Items that are lost there, worth least first.
    """

    node: int
    parent: int
    n_items: int
    expected_errors: float
    cost: float
    sources: tuple[tuple[int, int], ...]
    examples: tuple[int, ...]


def destinations(diagnosis: Diagnosis, limit: int, *, examples: int = 4) -> list[Destination]:
    """Return the clusters that searchers for their siblings end in, by cost and number of items."""
    tree = diagnosis.hierarchy
    nodes, at = np.unique(diagnosis.pair_rival, return_inverse=True)
    cost, searchers, items = (
        np.bincount(at, weights=part, minlength=len(nodes))
        for part in (diagnosis.pair_cost, diagnosis.pair_expected_errors, diagnosis.pair_items)
    )
    found = []
    for place in np.lexsort((-items, -cost))[:limit].tolist():
        pairs = np.flatnonzero(at == place)
        pairs = pairs[np.lexsort((-diagnosis.pair_items[pairs], -diagnosis.pair_cost[pairs]))]
        lost = np.flatnonzero(diagnosis.wrong_child == nodes[place])
        lost = diagnosis.worst_first(lost)[:examples]
        found.append(
            Destination(
                node=int(nodes[place]),
                parent=int(tree.parent[nodes[place]]),
                n_items=int(items[place]),
                expected_errors=float(searchers[place]),
                cost=float(cost[place]) / tree.n_items,
                sources=tuple(
                    (int(diagnosis.pair_child[pair]), int(diagnosis.pair_items[pair]))
                    for pair in pairs
                    if diagnosis.pair_items[pair]
                ),
                examples=tuple(lost.tolist()),
            )
        )
    return found


_LONGEST = 48  # characters of a name in a table
_OPEN = 8  # rows that are seen at once; the others are folded


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return a number with ``digits`` decimals and a typographic minus sign; a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:{'+' if signed else ''}z.{digits}f}".replace("-", "−")


def percent(value: float) -> str:
    """Return a share in percent; a dash for NaN."""
    return "–" if math.isnan(value) else f"{100 * value:z.1f} %"


def card(name: str, value: str, note: str, main: bool = False) -> Html:
    """Return a number with its name above and its meaning below."""
    return element("div", name, element("b", value), element("span", note), class_="card main" if main else "card")


@dataclass(frozen=True)
class Column:
    """A column of a table: its head, its cells, and its kind ("n" for numbers, "id" or None)."""

    head: str
    cell: Callable[[Any], str]
    kind: str | None = None


class NodeCells:
    """Cells with names of nodes; a node in an icicle is a button that zooms to it.

    The whole name of a cluster then stands above the icicle; that of an item, which unfolds, behind the short one.

    Args:
        position: ``[n_nodes]``, where the icicle has each node, -1 where it has not.
    """

    def __init__(
        self, tree: Hierarchy, names: Sequence[Any] | Mapping[Any, Any] | None, position: NDArray[Any], suffix: str = ""
    ) -> None:
        self.short = NodeNames(tree, names, last_part=True, in_words=True)
        self.whole = NodeNames(tree, names, in_words=True)
        self.ids = NodeNames(tree) if names is not None else None
        self.names = names
        self._tree = tree
        self._position, self._suffix = position, suffix

    def __call__(self, node: int) -> Html:
        """Return the node's name; a cluster created by an edit is named new."""
        if node >= len(self.short):
            return Html("a new cluster")
        drawn, name, whole = int(self._position[node]), self.short[node], self.whole[node]
        if drawn < 0:
            return _name(name, whole)
        short = shortened(name, _LONGEST)
        title = None if short == whole else whole
        return element("button", short, title=title, type="button", **{f"data-node{self._suffix}": drawn})

    def path(self, node: int) -> list[int]:
        """Return the nodes from below the root down to a node; of the root itself, the root."""
        path = [node]
        while path[0] != self._tree.root and self._tree.parent[path[0]] != self._tree.root:
            path.insert(0, int(self._tree.parent[path[0]]))
        return path

    def some(self, nodes: Sequence[int], limit: int = 3) -> Html:
        """Return the names of the first nodes, and the number of others."""
        more = [f"{len(nodes) - limit:,} more"] if len(nodes) > limit else []
        return joined([*(self(node) for node in nodes[:limit]), *more], ", ")

    def id_column(self, node: Callable[[Any], int]) -> list[Column]:
        """Return the column of ids, or none if the nodes are named by their ids."""
        ids = self.ids
        if ids is None:
            return []
        return [Column("id", lambda r: _name(ids[node(r)], ids[node(r)]) if node(r) < len(ids) else "", "id")]


def _name(name: str, whole: str) -> Html:
    """Return a name isolated from the writing direction around it, which unfolds to the whole name."""
    short = shortened(name, _LONGEST)
    if short == whole:
        return element("bdi", name)
    return element("details", element("summary", short), " ", element("bdi", whole), class_="name")


def table(records: Sequence[Any], columns: Sequence[Column], caption: str, empty: str) -> Html:
    """Return the records as a table with a folded end, or a sentence if there are none.

    The first cell of a row is its head. Columns of numbers that no record has are left out.
    """
    if not records:
        return element("p", empty, class_="soft")
    columns = [column for column in columns if column.kind != "n" or any(column.cell(r) != "–" for r in records)]
    rest = records[_OPEN:]
    shown = _part(records[:_OPEN] if len(rest) > 1 else records, columns, caption)
    if len(rest) <= 1:
        return shown
    folded = _part(rest, columns, f"{caption.split('.')[0]}, continued.")
    return joined([shown, element("details", element("summary", counted(len(rest), "more row")), folded)])


def _part(records: Iterable[Any], columns: Sequence[Column], caption: str) -> Html:
    heads = [element("th", column.head, scope="col", class_=column.kind) for column in columns]
    rows = [element("tr", *(_cell(column, record, at == 0) for at, column in enumerate(columns))) for record in records]
    head, body = element("thead", element("tr", *heads)), element("tbody", *rows)
    return element("div", element("table", element("caption", caption), head, body), class_="wide")


def _cell(column: Column, record: Any, is_head: bool) -> Html:
    content = column.cell(record)
    return element(
        "th" if is_head else "td", element("span", content) if content else "",
        scope="row" if is_head else None, class_=column.kind, data_label=column.head,
    )  # fmt: skip


_EXPECTED_WRONG = 0.1  # of the selected items, as of `pomdp-hier misfiled`
_LIKELY = 0.5  # P(misfiled) of an item that is listed, selected or not


def misfiled_section(found: MisfiledItems, cells: NodeCells, limit: int) -> Html:
    """Return the items that are probably misfiled: the selected ones, then the others that are as likely as not."""
    likely = found.order[np.nan_to_num(found.probabilities[found.order]) >= _LIKELY]
    is_selected = np.isin(likely, found.select(_EXPECTED_WRONG, target=False))
    selected = likely[is_selected].tolist()
    others = likely[~is_selected].tolist() if found.informative else []
    columns = [
        Column("item", lambda r: cells(r)),
        *cells.id_column(lambda r: r),
        Column("is in", lambda r: _place(cells, int(found.hierarchy.parent[r]))),
        Column("belongs in", lambda r: _target(found, cells, r)),
        Column("P misfiled", lambda r: number(found.probabilities[r]), kind="n"),
        Column("odds", lambda r: _odds(float(found.log_odds[r])), kind="n"),
        Column("P target", lambda r: number(found.target_probabilities[r]), kind="n"),
        Column("similar there", lambda r: _similar(found, cells, r)),
    ]
    caption = (
        "Items whose features fit another place, the most probable first. The odds are those of P misfiled; "
        f"the expected share of errors in this list is at most {_EXPECTED_WRONG:z.0%} under the model."
    )
    left = len(selected) - limit
    caption += f" {left:,} more are not shown." if left > 0 else ""
    shown = table(selected[:limit], columns, caption, "No item is selected.")
    if others and len(selected) <= limit:
        rest = table(others[:limit], columns, "With these, more of the list is expected to be wrong.", "")
        summary = element("summary", f"{counted(len(others), 'item')} less certain")
        shown = joined([shown, element("details", summary, rest, open=None if selected else "open")])
    sentences = element("ul", *(element("li", line) for line in found.sentences(cells.names)), class_="reading")
    return filled("edits.html", heading="Probably misfiled", sentences=sentences, table=shown)


def _target(found: MisfiledItems, cells: NodeCells, item: int) -> Html:
    """Return the place where an item belongs, and a second one that is about as probable."""
    if found.odd[item]:
        return Html("no place fits")
    nodes = [int(found.targets[item]), int(found.second_targets[item])]
    return joined([_place(cells, node) for node in nodes if node >= 0], " or ")


def _place(cells: NodeCells, node: int) -> Html:
    """Return the path of a node from below the root; the node itself is a button of the icicle."""
    *above, last = cells.path(node)
    return joined([*(shortened(cells.short[part], _LONGEST) for part in above), cells(last)], " › ")


def _similar(found: MisfiledItems, cells: NodeCells, item: int) -> Html:
    return Html("") if found.odd[item] else cells.some(found.similar(item, int(found.targets[item])).tolist())


def _odds(log_odds: float) -> str:
    """Return odds as a reader says them.

    Example:
        >>> _odds(math.log(19)), _odds(math.log(0.25)), _odds(20.0)
        ('19 : 1', '1 : 4', '> 999 : 1')
    """
    if abs(log_odds) > math.log(999):
        return "> 999 : 1" if log_odds > 0 else "< 1 : 999"
    ratio = f"{math.exp(abs(log_odds)):z.0f}"
    return f"{ratio} : 1" if log_odds >= 0 else f"1 : {ratio}"


def edits_section(improvement: Improvement, cells: NodeCells, limit: int) -> Html:
    """Return the edits in order, with what supports them, gains and affected items; then those that are not sound."""
    edits, apart = [*enumerate(improvement.edits, 1)], [*enumerate(improvement.apart, 1)]
    left = max(0, len(edits) - limit) + max(0, len(apart) - limit)
    caption = (
        f"In this order, each with what the {improvement.score_name} gains by it given those before. P is the "
        "probability that an item is misfiled, and that it belongs at the target. “On held-out items” is the gain of "
        "items that did not influence an edit of clusters." + (f" {left:,} more are not shown." if left else "")
    )
    columns = [
        Column("edit", lambda r: joined([f"{r[0]}. {r[1].kind} ", cells.some(r[1].nodes)])),
        *cells.id_column(lambda r: r[1].nodes[0]),
        Column("from", lambda r: cells(r[1].source)),
        Column("to", lambda r: cells(r[1].target)),
        Column("items", lambda r: f"{r[1].n_items:,}", kind="n"),
        Column("P misfiled", lambda r: number(r[1].probability), kind="n"),
        Column("P target", lambda r: number(r[1].target_probability), kind="n"),
        Column("gain", lambda r: number(r[1].gain, 5), kind="n"),
        Column("on held-out items", lambda r: number(r[1].held_out.gain, 5), kind="n"),
        Column("helps", lambda r: f"{r[1].n_improved:,}", kind="n"),
        Column("costs", lambda r: f"{r[1].n_worsened:,}", kind="n"),
        Column("costs most", lambda r: _costs(r[1], cells)),
    ]
    sentences = element("ul", *(element("li", line) for line in improvement.sentences()), class_="reading")
    shown = table(edits[:limit], columns, caption, f"No {'sound ' if apart else ''}edit was found.")
    if apart:
        columns.insert(-1, Column("not sound", lambda r: REASONS.get(r[1].reason, "")))
        rest = table(apart[:limit], columns, "Edits that were not made; each gain is after the edits above.", "")
        summary = element("summary", f"{counted(len(apart), 'edit')} not made: not sound")
        shown = joined([shown, element("details", summary, rest, open="open" if not edits else None)])
    return filled("edits.html", heading="What to change", sentences=sentences, table=shown)


def _costs(edit: Edit, cells: NodeCells) -> Html:
    seen = [(item, number(loss)) for item, loss in edit.most_worsened[:3] if loss <= -0.0005]
    return joined((joined([cells(item), f" {loss}"]) for item, loss in seen), ", ")


def moves_section(moves: Sequence[Move], cells: NodeCells, limit: int) -> Html:
    """Return single moves, each with its own gain."""
    caption = (
        "Each was verified by scoring the tree with this one move made."
        if not any(math.isnan(move.gain) for move in moves[:limit])
        else "The gain is that of the tree with this one move made; “–” where that was not scored."
    )
    columns = [
        Column("move", lambda r: cells(r.node)),
        *cells.id_column(lambda r: r.node),
        Column("from", lambda r: cells(r.source)),
        Column("to", lambda r: cells(r.target)),
        Column("items", lambda r: f"{r.n_items:,}", kind="n"),
        Column("gain in HQS", lambda r: number(r.gain, 5), kind="n"),
    ]
    shown = table(moves[:limit], columns, caption, "None.")
    together = element("p", "The gains are each move's alone and do not add up.", class_="soft")
    return filled(
        "edits.html",
        heading="Moves that raise the score",
        sentences=together if len(moves) > 1 else Html(""),
        table=shown,
    )
