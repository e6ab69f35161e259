"""Two trees side by side: the tanglegram, the nodes that moved, and the page of a regrouping."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints, check_integer, check_kind
from pomdp_hier._text import counted, shortened
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.search_length import shown_length
from pomdp_hier.improvement.regroup import Group, Regrouping, TornNode
from pomdp_hier.measures import entanglement
from pomdp_hier.measures.tree_distances import common_clusters, untangle
from pomdp_hier.report.elements import Html, element, filled, joined
from pomdp_hier.report.page import settings_lines, write_page
from pomdp_hier.report.page_data import Column, NodeCells, card, number, percent, table

MOST_LEAVES = 300  # on either side
_ROW, _TREE, _NAMES, _GAP = 15.0, 200.0, 190.0, 120.0
_LONGEST = 26


@dataclass(frozen=True)
class Moved:
    """Clusters, or single items, that moved together from one parent to another.

    Attributes:
        nodes: What moved, by the other tree's numbers; each has the same items in both.
        source: The parent in the one tree.
        target: The parent in the other tree.
        items: How many items these are.
        apart: How far apart they are in the two orders of leaves, as a share of all items.
    """

    nodes: tuple[int, ...]
    source: int
    target: int
    items: int
    apart: float


def moved(one: Hierarchy, other: Hierarchy, n: int) -> list[Moved]:
    """Return the nodes with another place in the other tree, the most distant first.

    A cluster of both trees has moved if its two parents do not share half the items of each. For large parents, 31
    items are compared.
    """
    same = common_clusters(one, other)
    below = np.flatnonzero((same >= 0) & (other.parent >= 0))
    below = below[same[below] != same[other.parent[below]]]  # of an only child and its parent, the parent
    groups: dict[tuple[int, int], list[int]] = {}
    for node, source, target in zip(
        below.tolist(), one.parent[same[below]].tolist(), other.parent[below].tolist(), strict=True
    ):
        groups.setdefault((source, target), []).append(node)
    pairs = np.array([*groups], dtype=np.int64).reshape(-1, 2)
    new = ~(_half_in(one, pairs[:, 0], other, pairs[:, 1]) & _half_in(other, pairs[:, 1], one, pairs[:, 0]))
    steps = (np.argsort(one.item_order) - np.argsort(other.item_order)).astype(float)
    found = []
    for source, target in pairs[new].tolist():
        nodes = np.array(groups[source, target])
        items = int(other.sizes[nodes].sum())
        apart = abs(float(item_sums(other, steps, nodes).sum())) / items / one.n_items
        found.append(Moved(tuple(nodes.tolist()), source, target, items, apart))
    return sorted(found, key=lambda change: -change.apart)[:n]


def _half_in(tree: Hierarchy, nodes: Ints, other: Hierarchy, others: Ints, most: int = 31) -> Bools:
    """Return whether at least half of the items of each node are below the node of the other tree."""
    sizes = tree.sizes[nodes, None]
    looked = np.minimum(sizes, most)
    at = np.minimum(np.arange(most) * sizes // looked, sizes - 1)
    places = np.argsort(other.item_order)[tree.item_order[tree.starts[nodes, None] + at]] - other.starts[others, None]
    inside = (places >= 0) & (places < other.sizes[others, None]) & (np.arange(most) < looked)
    half: Bools = 2 * inside.sum(axis=1) >= looked[:, 0]
    return half


def tanglegram(
    one: Hierarchy,
    other: Hierarchy,
    names: Sequence[str],
    other_names: Sequence[str],
    titles: tuple[str, str] = ("", ""),
    *,
    what: str = "items",
) -> Html:
    """Return two untangled trees over the same items as a drawing.

    The leaves are the items, or the leaf clusters if there are too many items. A line between leaf clusters is as heavy
    as the share of the smaller one's items that both have. Where these are too many as well, nothing is drawn but said
    so.
    """
    by_items = one.n_items <= MOST_LEAVES
    leaves = [_leaves(tree, by_items) for tree in (one, other)]
    if max(map(len, leaves)) > MOST_LEAVES:
        return element("p", f"Not drawn: more than {MOST_LEAVES} leaf clusters.", class_="soft drawing")
    height = _ROW * max(map(len, leaves)) + _ROW
    head = 2 * _ROW  # for the titles
    width = 2 * (_TREE + _NAMES) + _GAP
    places = [np.full(tree.n_nodes, np.nan) for tree in (one, other)]
    for place, nodes in zip(places, leaves, strict=True):
        place[nodes] = head + (np.arange(len(nodes)) + 1) * (height / (len(nodes) + 1))
    drawn = [
        element("text", shortened(titles[0], 60), x="8.0", y="13.0", text_anchor="start", class_="tree"),
        element("text", shortened(titles[1], 60), x=f"{width - 8:g}", y="13.0", text_anchor="end", class_="tree"),
        *_branches(one, places[0], leaves[0], at=_TREE, towards=-1),
        *_branches(other, places[1], leaves[1], at=width - _TREE, towards=1),
        *_names_beside(leaves[0], names, places[0], _TREE + 4, "start"),
        *_names_beside(leaves[1], other_names, places[1], width - _TREE - 4, "end"),
        *_lines(one, other, leaves, places, by_items, _TREE + _NAMES, width - _TREE - _NAMES),
    ]
    what = what if by_items else "leaf clusters"
    told = f"Lines join the same {what}; entanglement {entanglement(one, other):z.3f}, from 0 in order to 1 reversed."
    picture = element(
        "svg", *drawn, viewBox=f"0 0 {width:g} {head + height:g}", width=f"{width:g}", height=f"{head + height:g}",
        role="img", aria_label=f"tanglegram of {len(leaves[0])} and {len(leaves[1])} {what}", class_="tanglegram",
    )  # fmt: skip
    return element("div", picture, element("p", told, class_="soft"), class_="drawing")


def _leaves(tree: Hierarchy, by_items: bool) -> Ints:
    """Return the items, or the leaf clusters, in the tree's order."""
    if by_items:
        return tree.item_order
    inner = np.arange(tree.n_items, tree.n_nodes)
    clusters = np.unique(tree.leaf_of_item)
    clusters = clusters[np.isin(clusters, inner)]
    return clusters[np.argsort(tree.starts[clusters], kind="stable")]


def _branches(tree: Hierarchy, place: Floats, leaves: Ints, *, at: float, towards: int) -> list[Html]:
    """Return the branches as elbows, and place each node above the leaves amid its children."""
    frontier = dict.fromkeys(leaves.tolist())
    inner = sorted(_above(tree, leaves) - frontier.keys(), key=lambda node: -int(tree.levels[node]))
    above: dict[int, list[int]] = {node: [] for node in inner}
    for kid in [*frontier, *inner]:  # items are not among `Hierarchy.children`, which are clusters
        if (parent := int(tree.parent[kid])) in above:
            above[parent].append(kid)
    for node, kids in above.items():
        place[node] = (place[kids].min() + place[kids].max()) / 2
    deepest = max(1, int(tree.levels[leaves].max()))

    def x(node: int) -> float:
        depth = deepest if node in frontier else int(tree.levels[node])
        return at + towards * (_TREE - 8) * (1 - depth / deepest)

    paths = [
        f"M{x(node):z.1f} {place[node]:z.1f}V{place[kid]:z.1f}H{x(kid):z.1f}"
        for node, kids in above.items()
        for kid in kids
    ]
    return [element("path", d="".join(paths), class_="branch")]


def _above(tree: Hierarchy, leaves: Ints) -> set[int]:
    found: set[int] = set()
    for leaf in leaves.tolist():
        node = int(tree.parent[leaf])
        while node >= 0 and node not in found:
            found.add(node)
            node = int(tree.parent[node])
    return found


def _names_beside(leaves: Ints, names: Sequence[str], place: Floats, x: float, anchor: str) -> list[Html]:
    full = [names[leaf] for leaf in leaves.tolist()]
    return [
        element(
            "text", element("title", name), short, x=f"{x:z.1f}", y=f"{place[leaf] + 4:z.1f}", text_anchor=anchor,
        )
        for leaf, name, short in zip(leaves.tolist(), full, _shortened_apart(full), strict=True)
    ]  # fmt: skip


def _shortened_apart(names: Sequence[str]) -> list[str]:
    """Return the names in at most ``_LONGEST`` characters, and what differs in those that would become equal.

    Example:
        >>> _shortened_apart([f"the first item, number {k} of the whole shop" for k in (1, 2)])
        ['the firs…1 of the…ole shop', 'the firs…2 of the…ole shop']
    """
    short = [shortened(name, _LONGEST) for name in names]
    equal: dict[str, set[str]] = {}
    for name, text in zip(names, short, strict=True):
        equal.setdefault(text, set()).add(name)
    for text, group in equal.items():
        if len(group) > 1:
            head = sum(takewhile(bool, (len(set(letters)) == 1 for letters in zip(*group, strict=False))))
            rest = _LONGEST - 9
            parts = {name: f"{name[:8]}…{shortened(name[head:], rest)}" for name in group}
            short = [parts.get(name, one) if one == text else one for name, one in zip(names, short, strict=True)]
    return short


def _lines(
    one: Hierarchy,
    other: Hierarchy,
    leaves: Sequence[Ints],
    places: Sequence[Floats],
    by_items: bool,
    x: float,
    to: float,
) -> list[Html]:
    """Return one line per item, or per pair of clusters with common items."""
    if by_items:
        ends = np.column_stack([places[0][leaves[0]], places[1][leaves[0]]])
        weights = np.ones(len(ends))
    else:
        pairs, counts = np.unique(np.column_stack([one.leaf_of_item, other.leaf_of_item]), axis=0, return_counts=True)
        known = ~np.isnan(places[0][pairs[:, 0]]) & ~np.isnan(places[1][pairs[:, 1]])
        pairs, counts = pairs[known], counts[known]
        ends = np.column_stack([places[0][pairs[:, 0]], places[1][pairs[:, 1]]])
        weights = 0.4 + 4 * counts / np.minimum(one.sizes[pairs[:, 0]], other.sizes[pairs[:, 1]])
    middle = (x + to) / 2
    return [
        element(
            "path", d=f"M{x:z.1f} {low:z.1f}C{middle:z.1f} {low:z.1f} {middle:z.1f} {high:z.1f} {to:z.1f} {high:z.1f}",
            class_="same", stroke_width=f"{weight:z.1f}",
        )
        for (low, high), weight in zip(ends.tolist(), weights.tolist(), strict=True)
    ]  # fmt: skip


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
        *(
            ["Scores and gains are means over searches, not over items."]
            if found.before.sample_weight is not None
            else []
        ),
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
