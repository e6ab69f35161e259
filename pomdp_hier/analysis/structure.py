"""The health of a hierarchy's structure: chains that offer no choice, nodes too wide, lopsided splits, catch-alls."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pomdp_hier._arguments import check_integer, is_real, unexpected
from pomdp_hier._text import counted
from pomdp_hier.analysis.diagnosis import Diagnosis, require_diagnosis
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy


@dataclass(frozen=True)
class Chain:
    """Nodes below one another that have one child each, and no choice to offer.

    Attributes:
        top: The highest of them.
        length: How many there are.
    """

    top: int
    length: int


@dataclass(frozen=True)
class WideNode:
    """A node with so many children that each look at them is long and each guess unsure.

    Attributes:
        node: The node.
        children: How many cluster children it has.
    """

    node: int
    children: int


@dataclass(frozen=True)
class LopsidedSplit:
    """A node that keeps nearly all of its items in one child, so that a step down decides little.

    Attributes:
        node: The node.
        child: Its largest child.
        share: That child's share of the items.
    """

    node: int
    child: int
    share: float


@dataclass(frozen=True)
class CatchAll:
    """A cluster that items of many siblings find more alike than their own.

    Attributes:
        node: The cluster.
        siblings: How many siblings have such items.
        items: How many items there are.
        searchers: The expected number of searchers that it draws away.
    """

    node: int
    siblings: int
    items: int
    searchers: float


@dataclass(frozen=True)
class StructureReport:
    """What a hierarchy is made of, and what in it looks unhealthy; the worst stand first.

    Attributes:
        n_items: Items.
        n_clusters: Nodes at which a searcher can stand.
        n_leaves: Clusters without clusters below.
        height: The largest level of a cluster.
        mean_level: The mean level of the items' leaf clusters.
        max_children: The most children a node has.
        mean_children: The mean number of children of the nodes that have any.
        largest_leaf: The number of items of the largest leaf cluster.
        chains: Nodes with one child.
        wide: Nodes with more children than stated.
        lopsided: Nodes of at least 20 items with nearly all of them in one of several children.
        catch_alls: Clusters that draw from many siblings; empty without a diagnosis.
    """

    n_items: int
    n_clusters: int
    n_leaves: int
    height: int
    mean_level: float
    max_children: int
    mean_children: float
    largest_leaf: int
    chains: tuple[Chain, ...]
    wide: tuple[WideNode, ...]
    lopsided: tuple[LopsidedSplit, ...]
    catch_alls: tuple[CatchAll, ...]

    def sentences(self) -> list[str]:
        """Return what looks unhealthy, in words; nothing if nothing does."""
        return list(_in_words(self))


def check_structure(
    hierarchy: Hierarchy,
    diagnosis: Diagnosis | None = None,
    *,
    wide: int = 50,
    lopsided: float = 0.9,
) -> StructureReport:
    """Return what a hierarchy is made of, and what in its structure looks unhealthy.

    Args:
        hierarchy: The tree.
        diagnosis: What `diagnose` returned for it; catch-alls are looked for in it: clusters that items of at least
            three siblings, and of half of all siblings, find more alike than their own.
        wide: A node with more children than this is wide.
        lopsided: A node with this share of its items in one child is lopsided.

    Raises:
        ParameterError: For a diagnosis of another tree, or limits that make no sense.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4], [6, 5], [7]], 4)
        >>> report = check_structure(tree)
        >>> report.height, report.chains, report.mean_level
        (3, (Chain(top=8, length=1), Chain(top=6, length=1)), 2.5)
    """
    require_hierarchy(hierarchy)
    check_integer("wide", wide, 1)
    if not (is_real(lopsided) and 0 < lopsided <= 1):
        raise unexpected("lopsided", lopsided, "a share above 0 and at most 1, such as 0.9")
    if diagnosis is not None:
        require_diagnosis(diagnosis)
    if diagnosis is not None and diagnosis.hierarchy is not hierarchy and diagnosis.hierarchy != hierarchy:
        raise ParameterError("the diagnosis is of another hierarchy; diagnose this one")
    children = np.diff(hierarchy.child_offsets)
    inner = children[children > 0]
    broad = np.flatnonzero(children > wide)
    return StructureReport(
        n_items=hierarchy.n_items,
        n_clusters=int(hierarchy.is_cluster.sum()),
        n_leaves=int(hierarchy.is_leaf.sum()),
        height=int(hierarchy.height),
        mean_level=float(hierarchy.levels[hierarchy.leaf_of_item].mean()),
        max_children=int(children.max(initial=0)),
        mean_children=float(inner.mean()) if len(inner) else 0.0,
        largest_leaf=int(hierarchy.sizes[hierarchy.is_leaf].max()),
        chains=_chains(hierarchy),
        wide=tuple(WideNode(node, int(children[node])) for node in _falling(broad, children[broad])),
        lopsided=_lopsided(hierarchy, lopsided),
        catch_alls=() if diagnosis is None else _catch_alls(diagnosis),
    )


def _falling(nodes: np.ndarray, key: np.ndarray) -> list[int]:
    return [int(node) for node in nodes[np.argsort(-key, kind="stable")].tolist()]


def _chains(hierarchy: Hierarchy) -> tuple[Chain, ...]:
    lonely = np.diff(hierarchy.child_offsets) == 1
    below = np.append(lonely, False)[hierarchy.parent]
    chains = []
    for top in hierarchy.topological_order[(lonely & ~below)[hierarchy.topological_order]].tolist():
        node, length = top, 0
        while lonely[node]:
            node, length = int(hierarchy.child_nodes[hierarchy.child_offsets[node]]), length + 1
        chains.append(Chain(top, length))
    return tuple(sorted(chains, key=lambda chain: -chain.length))


def _lopsided(hierarchy: Hierarchy, share: float, least: int = 20) -> tuple[LopsidedSplit, ...]:
    node = hierarchy.child_nodes
    parent = hierarchy.parent[node]
    several = np.diff(hierarchy.child_offsets)[parent] > 1
    part = hierarchy.sizes[node] / hierarchy.sizes[parent]
    found = np.flatnonzero(several & (part >= share) & (hierarchy.sizes[parent] >= least))
    order = found[np.argsort(-hierarchy.sizes[parent[found]], kind="stable")]
    return tuple(LopsidedSplit(int(parent[at]), int(node[at]), float(part[at])) for at in order.tolist())


def _catch_alls(diagnosis: Diagnosis) -> tuple[CatchAll, ...]:
    tree = diagnosis.hierarchy
    draws = diagnosis.pair_items > 0
    rival = diagnosis.pair_rival[draws]
    siblings = np.bincount(rival, minlength=tree.n_nodes)
    items = np.bincount(rival, weights=diagnosis.pair_items[draws], minlength=tree.n_nodes)
    searchers = np.bincount(rival, weights=diagnosis.pair_expected_errors[draws], minlength=tree.n_nodes)
    others = np.diff(tree.child_offsets)[tree.parent] - 1
    found = np.flatnonzero((siblings >= 3) & (2 * siblings >= others))
    return tuple(
        CatchAll(node, int(siblings[node]), int(items[node]), float(searchers[node]))
        for node in _falling(found, items[found])
    )


def _in_words(report: StructureReport) -> Iterator[str]:
    if report.chains:
        total = sum(chain.length for chain in report.chains)
        yield (
            f"{counted(total, 'node')} with one child only, the longest chain {report.chains[0].length}: no choice is "
            "made there; collapse_unary() takes them out."
        )
    if report.wide:
        yield (
            f"{counted(len(report.wide), 'wide node')}, the widest with {report.wide[0].children:,} children: long to "
            "look through, and guidance spreads over them."
        )
    if report.lopsided:
        first = report.lopsided[0]
        yield (
            f"{counted(len(report.lopsided), 'lopsided split')}, the largest with {first.share:z.0%} of "
            "its items in one child: a step down decides little there."
        )
    if report.catch_alls:
        worst = report.catch_alls[0]
        yield (
            f"{counted(len(report.catch_alls), 'catch-all')}: the worst is more alike to "
            f"{counted(worst.items, 'item')} of {counted(worst.siblings, 'sibling')} than their own cluster is."
        )
