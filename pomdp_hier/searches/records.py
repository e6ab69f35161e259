"""Recorded searches in flat arrays: the searcher, the item and the clicked nodes of each."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from pomdp_hier._arguments import unexpected
from pomdp_hier._arrays import Bools, Ints
from pomdp_hier._text import counted
from pomdp_hier.hierarchy.tree import Hierarchy

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
