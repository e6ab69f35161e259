"""Recorded searches, and the choices in them: the node, the alternatives, the chosen child and the item of each.

A searcher at node p who enters its child c has chosen c among the children of p. A click on a deeper node is a choice
at each node on the way. A click elsewhere in the tree is a return to the lowest common ancestor, followed by the
choices from there. Returns are not choices.

A leaf cluster that was opened and left is exhausted: the searcher knows that the item is not there. So is a node whose
children are all exhausted. Exhausted children are not among the alternatives, and a search that enters one again makes
no choice there.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints, check_choice, check_kind, unexpected
from pomdp_hier._text import brief, counted
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.affinity import Affinity
from pomdp_hier.features.membership import child_counts, children_of, contains, own_ranks, ranges
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import ChoiceLikelihood, temperatures

OUTSIDE = -1
"""The node of a click that leaves the tree."""


@dataclass(frozen=True, eq=False)
class Searches:
    """Recorded searches, the result of `read_searches`.

    The clicks of search s are ``nodes[offsets[s] : offsets[s + 1]]``, in their order, with every return.

    Attributes:
        hierarchy: The tree.
        searchers: Who searched ``[S]``.
        items: The item that each search is for ``[S]``.
        offsets: The first click of each search, and the number of all ``[S + 1]``.
        nodes: The node of each click, -1 outside the tree ``[clicks]``.
        returns: Whether a click is a mark for one step back; its node is the one that it leads to ``[clicks]``.
        start: ``"root"``, or ``"first"`` where the first node of each search was given and not chosen.
        link_offsets: With ``links``, the first link of each node, and the number of all ``[n_nodes + 1]``.
        links: The nodes that a click can lead to, node by node; None where every node offers its children.
        notes: Counts of what was left out, with the first examples.
    """

    hierarchy: Hierarchy
    searchers: tuple[Hashable, ...]
    items: Ints
    offsets: Ints
    nodes: Ints
    returns: Bools
    start: str = "root"
    link_offsets: Ints | None = None
    links: Ints | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Searches({self.summary()})"

    @property
    def found(self) -> Bools:
        """Whether each search ends at its item, or at the leaf cluster that lists it ``[S]``."""
        ends = np.where(self.offsets[1:] > self.offsets[:-1], self.offsets[1:] - 1, 0)
        last = np.where(np.diff(self.offsets) > 0, self.nodes[ends] if len(self.nodes) else OUTSIDE, OUTSIDE)
        found: Bools = (last == self.items) | (last == self.hierarchy.leaf_of_item[self.items])
        return found

    @property
    def n_outside(self) -> int:
        """The number of clicks that leave the tree."""
        return int((self.nodes == OUTSIDE).sum())

    def summary(self) -> str:
        """Return the numbers of searches, searchers, items and clicks, and the share of searches that find."""
        share = f", {self.found.mean():z.0%} found" if len(self) else ""
        people, items = len(set(self.searchers)), len(np.unique(self.items))
        return (
            f"{counted(len(self), 'search', 'searches')} of {counted(people, 'searcher')} for "
            f"{counted(items, 'item')}, {counted(len(self.nodes), 'click')}{share}"
        )

    def select(self, chosen: Bools) -> "Searches":
        """Return the chosen searches.

        Args:
            chosen: Which searches to keep, as bools ``[S]``.

        Raises:
            ParameterError: ``chosen`` is not one bool per search.
        """
        wanted = np.asarray(chosen)
        if wanted.dtype != np.bool_ or wanted.shape != (len(self),):
            raise unexpected("chosen", chosen, f"an array of {len(self)} bools, one per search")
        counts = np.diff(self.offsets)
        kept = np.repeat(wanted, counts)
        return replace(
            self,
            searchers=tuple(name for name, keep in zip(self.searchers, wanted.tolist(), strict=True) if keep),
            items=self.items[wanted],
            offsets=np.concatenate(([0], np.cumsum(counts[wanted]))),
            nodes=self.nodes[kept],
            returns=self.returns[kept],
        )


_KINDS = {
    "returns": "return",
    "outside": "click from or to a place outside the tree",
    "no_links": "click that no link offers",
    "forced": "step with one alternative",
    "exhausted": "step into an exhausted child",
    "singleton": "step where one alternative is the item alone",
}
"""Steps that do not count as choices, in singular."""


@dataclass(frozen=True, eq=False)
class Choices:
    """Choices and their alternatives, concatenated in flat arrays.

    Attributes:
        searches: The searches.
        search: The search of each choice ``[choices]``.
        item: The item searched for ``[choices]``.
        node: The node at which the choice is made ``[choices]``.
        level: The level of that node ``[choices]``.
        repeated: Whether the search has made a choice at this node before ``[choices]``.
        counts: The number of alternatives ``[choices]``.
        children: The alternatives ``[pairs]``.
        sizes: The items below each alternative, or the links that lead there ``[pairs]``.
        similarities: The similarity of the item to each alternative ``[pairs]``.
        chosen_at: The pair of the chosen child ``[choices]``.
        correct_at: The pair of the child that contains the item, -1 if it is not among the alternatives ``[choices]``.
        left_out: The number of steps that are not choices, by kind.
    """

    searches: Searches
    search: Ints
    item: Ints
    node: Ints
    level: Ints
    repeated: Bools
    counts: Ints
    children: Ints
    sizes: Floats
    similarities: Floats
    chosen_at: Ints
    correct_at: Ints
    left_out: Counter[str]

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def firsts(self) -> Ints:
        """The first pair of each choice ``[choices]``."""
        return np.cumsum(self.counts) - self.counts

    @property
    def chosen(self) -> Ints:
        """The chosen child ``[choices]``."""
        return self.children[self.chosen_at]

    @property
    def on_path(self) -> Bools:
        """Whether the item is below the node of each choice ``[choices]``."""
        tree = self.searches.hierarchy
        inside: Bools = contains(tree, self.node, tree.starts[self.item])
        return inside

    def prior(self, given: str | None) -> str:
        """Return the distribution of choices at infinite temperature: the given one, or the searches' default."""
        check_choice("prior", given, (None, "uniform", "sizes"))
        return given or ("uniform" if self.searches.links is None else "sizes")

    def likelihood(self, nu: float, prior: str, chosen: Bools | None = None) -> ChoiceLikelihood:
        """Return the likelihood function of the choices; similarities are divided by ``nu**level``.

        Args:
            chosen: Which choices to use, as bools ``[choices]``.
        """
        kept = np.arange(len(self)) if chosen is None else np.flatnonzero(chosen)
        counts = self.counts[kept]
        at = ranges(self.firsts[kept], counts)
        gaps = self.similarities[at] - np.repeat(self.similarities[self.chosen_at[kept]], counts)
        gaps /= np.repeat(temperatures(self.level[kept], 1.0, nu), counts)
        if prior == "uniform":
            return ChoiceLikelihood(gaps, counts)
        odds = np.log(self.sizes)
        return ChoiceLikelihood(gaps, counts, odds[at] - np.repeat(odds[self.chosen_at[kept]], counts))

    def left_out_lines(self) -> list[str]:
        """Return the numbers of steps that do not count as choices, as text."""
        found = [(self.left_out[kind], words) for kind, words in _KINDS.items() if self.left_out[kind]]
        return [f"{count:,} {_plural(words, count)}" for count, words in found]


def _plural(words: str, count: int) -> str:
    first, *rest = words.split(" ", 1)
    several = first if count == 1 else f"{first}s"
    return " ".join([several, *rest])


def require_searches(searches: object, hierarchy: Hierarchy) -> Searches:
    """Return the searches if they are of this tree."""
    check_kind("searches", searches, Searches, "the result of read_searches(source, hierarchy)")
    assert isinstance(searches, Searches)
    if searches.hierarchy is not hierarchy and not (
        np.array_equal(searches.hierarchy.parent, hierarchy.parent)
        and searches.hierarchy.labels == hierarchy.labels
        and searches.hierarchy.singletons == hierarchy.singletons
    ):
        raise ParameterError(
            f"searches: got those of {brief(searches.hierarchy)}; expected those of the hierarchy. Read them with it."
        )
    return searches


def choices_of(affinity: Affinity, searches: Searches) -> Choices:
    """Return the choices in recorded searches, with the similarities of their alternatives."""
    tree = searches.hierarchy
    replay = _Replay(searches)
    for number in range(len(searches)):
        replay.follow(number)
    search, node = (np.array(column, dtype=np.int64) for column in (replay.search, replay.node))
    item = searches.items[search] if len(search) else np.empty(0, dtype=np.int64)
    empty: list[Any] = [np.empty(0)]
    counts = np.array([len(ranks) for ranks in replay.ranks], dtype=np.int64)
    alternatives = np.concatenate(empty + replay.ranks).astype(np.int64)
    firsts = np.cumsum(counts) - counts
    picked = np.array(replay.picked, dtype=np.int64)
    own = own_ranks(tree, node, tree.starts[item]) if len(node) else np.empty(0, dtype=np.int64)
    owners = np.repeat(np.arange(len(node)), counts)
    hits = np.flatnonzero(alternatives == own[owners]) if len(owners) else np.empty(0, dtype=np.int64)
    correct_at = np.full(len(node), -1)
    correct_at[owners[hits]] = hits
    return Choices(
        searches=searches,
        search=search,
        item=item,
        node=node,
        level=tree.levels[node],
        repeated=np.array(replay.repeated, dtype=bool),
        counts=counts,
        children=tree.child_nodes[np.repeat(tree.child_offsets[node], counts) + alternatives],
        sizes=np.concatenate(empty + replay.sizes).astype(np.float64),
        similarities=_similarities(affinity, item, node, counts, alternatives),
        chosen_at=firsts + picked,
        correct_at=correct_at,
        left_out=replay.left_out,
    )


def _similarities(affinity: Affinity, item: Ints, node: Ints, counts: Ints, ranks: Ints) -> Floats:
    """Return the similarities of the alternatives; those of one item at one node are computed once."""
    tree = affinity.hierarchy
    if not len(item):
        return np.empty(0)
    # In leaf order, so that the items of a batch are near each other.
    key = tree.starts[item] * tree.n_nodes + node
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    items, nodes = item[first], node[first]
    widths = child_counts(tree, nodes)
    values = np.empty(int(widths.sum()))
    starts = np.cumsum(widths) - widths
    different = np.flatnonzero(np.diff(items, prepend=-1))
    for low in range(0, len(different), affinity.batch_items):
        high = min(low + affinity.batch_items, len(different))
        begin = different[low]
        end = different[high] if high < len(different) else len(items)
        rows = np.repeat(np.arange(high - low), np.diff(np.append(different[low:high], end)))
        batch = affinity.batch(items[different[low:high]])
        order = np.argsort(nodes[begin:end], kind="stable")
        asked = nodes[begin:end][order]
        found = batch.expand(rows[order], asked, children_of(tree, asked))
        values[ranges(starts[begin:end][order], widths[begin:end][order])] = found
    return values[np.repeat(starts[back], counts) + ranks]


class _Replay:
    """Walks along the searches and notes their choices."""

    def __init__(self, searches: Searches) -> None:
        self.searches, tree = searches, searches.hierarchy
        self._tree = tree
        self._parent: list[int] = tree.parent.tolist()
        self._level: list[int] = tree.levels.tolist()
        self._is_leaf: list[bool] = tree.is_leaf.tolist()
        self._is_cluster: list[bool] = tree.is_cluster.tolist()
        self._rank = np.full(tree.n_nodes, -1)
        self._rank[tree.child_nodes] = ranges(np.zeros(tree.n_nodes, dtype=np.int64), np.diff(tree.child_offsets))
        self._rank_of: list[int] = self._rank.tolist()
        self._whole: dict[int, tuple[Ints, Ints]] = {}
        self._offers: dict[tuple[int, int], tuple[Ints, Ints]] = {}
        self.search: list[int] = []
        self.node: list[int] = []
        self.repeated: list[bool] = []
        self.ranks: list[Ints] = []
        self.sizes: list[Ints] = []
        self.picked: list[int] = []
        self.left_out: Counter[str] = Counter()

    def follow(self, search: int) -> None:
        searches, tree = self.searches, self._tree
        low, high = searches.offsets[search : search + 2].tolist()
        nodes, returns = searches.nodes[low:high].tolist(), searches.returns[low:high].tolist()
        current = tree.root
        if searches.start == "first":
            current = nodes[0] if nodes else OUTSIDE
            nodes, returns = nodes[1:], returns[1:]
        item = int(searches.items[search])
        exhausted: set[int] = set()
        seen: set[int] = set()
        for node, is_return in zip(nodes, returns, strict=True):
            if node == current and not is_return:
                continue
            if OUTSIDE in (node, current):
                self.left_out["returns" if is_return else "outside"] += 1
            elif is_return:
                self.left_out["returns"] += 1
                self._leave(current, node, exhausted)
            elif self._has_links(current):
                self._click(search, item, current, node, seen)
            else:
                self._leave(current, node, exhausted)
                top = self._meeting(current, node)
                self.left_out["returns"] += top == node
                self._choose(search, item, self._between(top, node), exhausted, seen)
            current = node

    def _has_links(self, node: int) -> bool:
        offsets = self.searches.link_offsets
        return offsets is not None and bool(offsets[node + 1] > offsets[node])

    def _meeting(self, one: int, other: int) -> int:
        """Return the lowest common ancestor."""
        while one != other:
            if self._level[one] >= self._level[other]:
                one = self._parent[one]
            else:
                other = self._parent[other]
        return one

    def _between(self, top: int, node: int) -> list[int]:
        """Return the clusters below ``top`` on the way down to a node."""
        way = []
        while node != top:
            if self._is_cluster[node]:
                way.append(node)
            node = self._parent[node]
        return way[::-1]

    def _leave(self, current: int, node: int, exhausted: set[int]) -> None:
        """Note that a leaf cluster is exhausted, and the nodes above it whose children all are."""
        leaf = current if self._is_cluster[current] else self._parent[current]
        if not self._is_leaf[leaf] or self._meeting(leaf, node) == leaf:
            return
        exhausted.add(leaf)
        above = self._parent[leaf]
        while above >= 0 and all(child in exhausted for child in self._tree.children(above).tolist()):
            exhausted.add(above)
            above = self._parent[above]

    def _choose(self, search: int, item: int, way: Sequence[int], exhausted: set[int], seen: set[int]) -> None:
        for child in way:
            at = self._parent[child]
            ranks, sizes = self._children(at)
            if exhausted:
                if child in exhausted:
                    self.left_out["exhausted"] += 1
                    continue
                open_ = [k for k, other in enumerate(self._tree.children(at).tolist()) if other not in exhausted]
                if len(open_) < len(ranks):
                    ranks, sizes = ranks[open_], sizes[open_]
            self._note(search, item, at, ranks, sizes, self._rank_of[child], seen)

    def _click(self, search: int, item: int, page: int, node: int, seen: set[int]) -> None:
        """Note the choices of a click on a link: at each level, among the children that links lead to."""
        offsets, links = self.searches.link_offsets, self.searches.links
        assert offsets is not None
        assert links is not None
        if node not in links[offsets[page] : offsets[page + 1]]:
            self.left_out["no_links"] += 1
            return
        for child in self._between(self._tree.root, node):
            at = self._parent[child]
            if (page, at) not in self._offers:
                self._offers[page, at] = self._offered(links[offsets[page] : offsets[page + 1]], at)
            self._note(search, item, at, *self._offers[page, at], self._rank_of[child], seen)

    def _children(self, node: int) -> tuple[Ints, Ints]:
        """Return the ranks and sizes of all children."""
        if node not in self._whole:
            children = self._tree.children(node)
            self._whole[node] = np.arange(len(children)), self._tree.sizes[children]
        return self._whole[node]

    def _offered(self, links: Ints, node: int) -> tuple[Ints, Ints]:
        """Return the ranks of the children that links lead to, and the numbers of these links."""
        ranks = own_ranks(self._tree, np.full(len(links), node), self._tree.starts[links])
        deeper = self._tree.levels[links] > self._level[node]
        found, counts = np.unique(ranks[(ranks >= 0) & deeper], return_counts=True)
        return found.astype(np.int64), counts.astype(np.int64)

    def _note(self, search: int, item: int, at: int, ranks: Ints, sizes: Ints, rank: int, seen: set[int]) -> None:
        alone = self._rank_of[item] if self._is_cluster[item] and self._parent[item] == at else -1
        if len(ranks) < 2:
            self.left_out["forced"] += 1
            return
        if alone >= 0 and alone in ranks:
            self.left_out["singleton"] += 1
            return
        self.search.append(search)
        self.node.append(at)
        self.repeated.append(at in seen)
        self.ranks.append(ranks)
        self.sizes.append(sizes)
        self.picked.append(int(np.searchsorted(ranks, rank)))
        seen.add(at)
