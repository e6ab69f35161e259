"""Page of a regrouping: the tree as it is beside the new groups, as one proposal."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer, check_kind
from pomdp_hier._text import counted
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.search_length import shown_length
from pomdp_hier.improvement.regroup import Group, Regrouping, TornNode
from pomdp_hier.measures.tree_distances import untangle
from pomdp_hier.report.elements import Html, element, filled, joined
from pomdp_hier.report.page import settings_lines, write_page
from pomdp_hier.report.page_data import Column, NodeCells, card, number, percent, table
from pomdp_hier.report.tanglegram import tanglegram

_NAMED = 3  # headings or sources in a cell
_AS_IT_IS = "as it is"


def write_regrouping(
    regrouping: Regrouping,
    path: str | os.PathLike[str] | None = None,
    *,
    names: Mapping[Any, Any] | None = None,
    title: str = "Would other groups help?",
    limit: int = 25,
    replace: bool = False,
) -> str:
    """Write a regrouping beside the given tree, a single HTML file that needs no network, and return its text.

    Args:
        regrouping: The result of `pomdp_hier.improvement.regroup`.
        path: The file to write; none by default.
        names: Names of the nodes by id; the labels by default.
        title: The heading of the page.
        limit: The maximum number of rows per table.
        replace: Whether an existing file may be replaced.

    Raises:
        ParameterError: An argument has a wrong type.
        PomdpHierError: The file exists, or cannot be written.

    Example:
        >>> from pomdp_hier import Hierarchy
        >>> from pomdp_hier.improvement import regroup
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13]], 8)
        >>> X = [[9, 1], [9, 2], [1, 9], [2, 9], [9, 3], [8, 1], [1, 8], [1, 7]]
        >>> write_regrouping(regroup(X, tree, delta=0.1, folds=0))[:15]
        '<!doctype html>'
    """
    check_kind("regrouping", regrouping, Regrouping, "the result of regroup(X, hierarchy)")
    check_kind("names", names, Mapping | None, "names by the ids of the nodes, or None")
    check_integer("limit", limit)
    regrouping = regrouping if names is None else regrouping.renamed(names)
    given = regrouping.hierarchy
    sides = _Sides(regrouping, names)
    sizes = counted(given.n_items, "item"), counted(len(sides.old), "heading")
    content = filled(
        "regroup.html",
        cards=_cards(regrouping),
        sentences=element("ul", *(element("li", line) for line in _sentences(regrouping)), class_="reading"),
        before=sides.before(limit),
        after=sides.after(limit),
        tanglegram=sides.drawn(),
        tried=_tried(regrouping, limit),
    )
    size = f"{sizes[0]} under {sizes[1]}; {regrouping.method}"
    return write_page(path, replace, title, size, content, settings_lines(regrouping.before.config))


def _cards(found: Regrouping) -> Html:
    """Return the scores of both trees, the held-out gain, and what is kept."""
    before, after, held = found.before, found.after, found.held_out
    low, high = (number(end, 4, signed=True) for end in held.interval)
    interval = f"{low} to {high} on {counted(held.n_items, 'item')}" if held.n_items else "not measured"
    cost = f"search length score, label cost {before.label_cost:g}"
    return joined(
        [
            card(_AS_IT_IS, number(before.score, 4), cost),
            card("regrouped", number(after.score, 4), cost, main=found.confirmed),
            card("held-out gain", number(held.gain, 4, signed=True), interval),
            card("siblings kept together", f"{found.kept:z.0%}", "of the pairs of headings with a common parent"),
            card("items looked at", _from_to(before.mean(before.looks), after.mean(after.looks)), "per search"),
            card("labels read", _from_to(before.mean(before.labels), after.mean(after.labels)), "per search"),
        ]
    )


def _from_to(before: float, after: float) -> str:
    return f"{shown_length(before)} → {shown_length(after)}"


def _sentences(found: Regrouping) -> list[str]:
    """Return what the page proposes, and whether held-out items confirm it."""
    if found.tree == found.hierarchy:
        return ["No grouping that was tried is better than the tree as it is."]
    if not found.held_out.n_items:
        verdict = "The gain was not measured on held-out items: it is too high, as the groups were chosen by it."
    elif found.confirmed:
        verdict = "Items that influenced neither the groups nor their choice confirm the gain."
    else:
        verdict = "Held-out items do not confirm the gain: keep the tree as it is."
    return [
        "The new groups are one proposal, to be taken as a whole. Headings stay whole, and no item moves by itself.",
        verdict,
    ]


class _Sides:
    """The headings with their old parents and their new groups."""

    def __init__(self, found: Regrouping, names: Mapping[Any, Any] | None) -> None:
        tree, new = found.hierarchy, found.tree
        self._found, self._tree, self._new = found, tree, new
        self._cells = NodeCells(tree, names, np.full(tree.n_nodes, -1))
        self._fresh = {group.node: group for group in found.groups}
        self._old_of = {int(now): node for node, now in enumerate(found.numbers.tolist()) if now >= 0}
        self.old = {int(found.numbers[node]): node for node in found.headings.tolist()}

    def name(self, node: int) -> Html:
        return element("bdi", self._fresh[node].name) if node in self._fresh else self._cells(self._old_of[node])

    def _counts(self, pairs: Sequence[tuple[Html, int]]) -> Html:
        more = [f"{len(pairs) - _NAMED:,} more"] if len(pairs) > _NAMED else []
        return joined([*(joined([name, f" ({count:,})"]) for name, count in pairs[:_NAMED]), *more], ", ")

    def before(self, limit: int) -> Html:
        """Return the old parents, with the groups where their headings are now."""
        torn = {one.node: one for one in self._found.torn}
        of: dict[int, list[int]] = {}
        for node, old in self.old.items():
            of.setdefault(int(self._tree.parent[old]), []).append(node)
        rows = sorted(of, key=lambda node: (-(torn[node].n_headings if node in torn else 0), -len(of[node]), node))

        def to(node: int) -> Html:
            targets = Counter(int(self._new.parent[child]) for child in of[node]).most_common()
            return self._counts([(self.name(target), count) for target, count in targets])

        def state(one: TornNode | None) -> str:
            return "–" if one is None else f"{one.n_groups:,}"

        left = len(rows) - limit
        return table(
            rows[:limit],
            [
                Column("group", self._cells),
                *self._cells.id_column(lambda node: node),
                Column("headings", lambda node: f"{len(of[node]):,}", kind="n"),
                Column("torn into", lambda node: state(torn.get(node)), kind="n"),
                Column("largest part", lambda node: percent(torn[node].largest_share if node in torn else 1), kind="n"),
                Column("headings are now in", to),
            ],
            "The groups as they are, those that are torn apart first, with the new groups of their headings."
            + (f" {left:,} more are not shown." if left > 0 else ""),
            "No group.",
        )

    def after(self, limit: int) -> Html:
        """Return the new groups, with their headings and where these come from."""
        groups = self._found.groups

        def inside(group: Group) -> Html:
            more = [f"{len(group.headings) - _NAMED:,} more"] if len(group.headings) > _NAMED else []
            return joined([*(self.name(node) for node in group.headings[:_NAMED]), *more], ", ")

        def sources(group: Group) -> Html:
            return self._counts([(self._cells(node), count) for node, count in group.sources])

        left = len(groups) - limit
        return table(
            groups[:limit],
            [
                Column("new group", lambda group: element("bdi", group.name)),
                Column("items", lambda group: f"{group.n_items:,}", kind="n"),
                Column("children", lambda group: f"{len(group.headings):,}", kind="n"),
                Column("contains", inside),
                Column("headings come from", sources),
            ],
            "The new groups, the largest first. Each is named after its strongest terms, or its largest headings."
            + (f" {left:,} more are not shown." if left > 0 else ""),
            "No new group: headings move between the groups that there are." if self._found.torn else "No new group.",
        )

    def drawn(self) -> Html:
        """Return the headings under their old and their new groups, face to face."""
        at = {old: k for k, old in enumerate(sorted(set(self.old.values()), key=lambda old: self._tree.starts[old]))}
        if self._found.tree == self._tree:
            return Html("")
        sides = []
        for tree, leaves in (
            (self._tree, {old: at[old] for old in at}),
            (self._new, {node: at[old] for node, old in self.old.items()}),
        ):
            sides.append(_of_headings(tree, leaves))
        left, right = untangle(*sides)
        names = [self._cells.short[old] for old in at]
        heading = element("h2", "Face to face", class_="drawing")
        drawing = tanglegram(left, right, names, names, (_AS_IT_IS, "regrouped"), what="headings")
        return joined([heading, drawing])


def _of_headings(tree: Hierarchy, leaves: Mapping[int, int]) -> Hierarchy:
    """Return the tree above the headings, with the headings as its items."""
    above: dict[int, int] = {}
    for leaf in leaves:
        node = int(tree.parent[leaf])
        while node >= 0 and node not in above:
            above[node] = len(leaves) + len(above)
            node = int(tree.parent[node])
    parent = np.full(len(leaves) + len(above), -1)
    for node, number_of in (*leaves.items(), *above.items()):
        parent[number_of] = above.get(int(tree.parent[node]), -1)
    return Hierarchy(parent, len(leaves))


def _tried(found: Regrouping, limit: int) -> Html:
    """Return the groupings that were tried, the best first."""
    rows = sorted(found.tried.items(), key=lambda row: -row[1])
    left = len(rows) - limit
    shown = table(
        rows[:limit],
        [
            Column("grouping", lambda row: f"{row[0]} (chosen)" if row[0] == found.method else row[0]),
            Column("score", lambda row: number(row[1], 4), kind="n"),
        ],
        "The groupings that were tried and their scores on the items that choose, the best first."
        + (f" {left:,} more are not shown." if left > 0 else ""),
        "None.",
    )
    return element("details", element("summary", counted(len(rows), "grouping") + " tried"), shown)
