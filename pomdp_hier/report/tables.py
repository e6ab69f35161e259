"""Tables and cards of a page: figures as people read them, nodes by name and id, long tables with their end folded."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from pomdp_hier._messages import counted
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.wording import NodeNames
from pomdp_hier.report.escaping import Html, element, joined
from pomdp_hier.visible import shortened

__all__ = ["Column", "NodeCells", "card", "number", "percent", "table"]

_LONGEST = 48  # characters of a name in a table
_OPEN = 8  # rows that are seen at once; the others are folded


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return a figure with so many digits and a minus sign that is one; a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:{'+' if signed else ''}z.{digits}f}".replace("-", "−")


def percent(value: float) -> str:
    """Return a share in percent; a dash for NaN."""
    return "–" if math.isnan(value) else f"{100 * value:z.1f} %"


def card(name: str, value: str, note: str, main: bool = False) -> Html:
    """Return a figure with its name above and what it means below."""
    return element("div", name, element("b", value), element("span", note), class_="card main" if main else "card")


@dataclass(frozen=True)
class Column:
    """A column of a table: its head, the cell of a record, and its kind: "n" for figures, "id", or none."""

    head: str
    cell: Callable[[Any], str]
    kind: str | None = None


class NodeCells:
    """Names of nodes in cells: a node that an icicle shows is a button that zooms to it, its whole name on hover.

    The whole name of a cluster then stands above the icicle; that of an item, which unfolds, behind the short one.

    Args:
        tree: The tree.
        names: What the user calls the nodes, as `NodeNames` takes them; where there are any, ids have their column.
        position: ``[n_nodes]``, where the icicle has each node, -1 where it has not.
        suffix: Of the icicle on the page.
    """

    def __init__(
        self,
        tree: Hierarchy,
        names: Sequence[Any] | Mapping[Any, Any] | None,
        position: NDArray[Any],
        suffix: str = "",
    ) -> None:
        self.short = NodeNames(tree, names, last_part=True, in_words=True)
        self.whole = NodeNames(tree, names, in_words=True)
        self.ids = NodeNames(tree) if names is not None else None
        self._position, self._suffix = position, suffix

    def __call__(self, node: int) -> Html:
        """Return the node's name; a cluster that only an edit makes is called new."""
        if node >= len(self.short):
            return Html("a new cluster")
        drawn, name, whole = int(self._position[node]), self.short[node], self.whole[node]
        if drawn < 0:
            return _name(name, whole)
        short = shortened(name, _LONGEST)
        title = None if short == whole else whole
        return element("button", short, title=title, type="button", **{f"data-node{self._suffix}": drawn})

    def some(self, nodes: Sequence[int], most: int = 3) -> Html:
        """Return the names of a few nodes, and how many more there are."""
        more = [f"{len(nodes) - most:,} more"] if len(nodes) > most else []
        return joined([*(self(node) for node in nodes[:most]), *more], ", ")

    def id_column(self, node: Callable[[Any], int]) -> list[Column]:
        """Return the column with the ids of the records' nodes, or none where ids are what nodes are called by."""
        ids = self.ids
        if ids is None:
            return []
        return [Column("id", lambda r: _name(ids[node(r)], ids[node(r)]) if node(r) < len(ids) else "", "id")]


def _name(name: str, whole: str) -> Html:
    """Return a name, apart from the writing direction around it; unless it is the whole name, it unfolds to that."""
    short = shortened(name, _LONGEST)
    if short == whole:
        return element("bdi", name)
    return element("details", element("summary", short), " ", element("bdi", whole), class_="name")


def table(records: Sequence[Any], columns: Sequence[Column], caption: str, empty: str) -> Html:
    """Return the records as a table with a caption, its end folded away, or what is said if there are none.

    The first cell of a row is its head.
    """
    if not records:
        return element("p", empty, class_="soft")
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
