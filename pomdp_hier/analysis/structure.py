"""Structural checks of a hierarchy: chains, wide nodes, lopsided splits and catch-alls."""

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
    """A chain of nodes with one child each.

    Attributes:
        top: The highest node.
        length: The number of nodes.
    """

    top: int
    length: int


@dataclass(frozen=True)
class WideNode:
    """A node with many children, where a choice takes long and is uncertain.

    Attributes:
        node: The node.
        n_children: The number of its cluster children.
    """

    node: int
    n_children: int


@dataclass(frozen=True)
class LopsidedSplit:
    """A node with nearly all of its items in one child, where a step down decides little.

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
    """A cluster that is more similar to items of many siblings than their own cluster.

    Attributes:
        node: The cluster.
        n_siblings: The number of siblings with such items.
        n_items: The number of such items.
        expected_errors: The expected number of searchers who enter it by mistake.
    """

    node: int
    n_siblings: int
    n_items: int
    expected_errors: float


@dataclass(frozen=True)
class StructureReport:
    """Size and shape of a hierarchy, and its structural issues, the worst first.

    Attributes:
        n_items: The number of items.
        n_clusters: The number of nodes where a search can stop.
        n_leaves: The number of clusters without clusters below.
        height: The largest level of a cluster.
        mean_level: The mean level of leaf clusters, over the items.
        max_children: The largest number of children of a node.
        mean_children: The mean number of children of nodes with children.
        largest_leaf: The number of items of the largest leaf cluster.
        chains: Nodes with one child.
        wide: Nodes with more children than the limit.
        lopsided: Nodes of at least 20 items, nearly all of them in one of several children.
        catch_alls: Clusters that attract searchers for items of many siblings; empty without a diagnosis.
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
        """Return the structural issues as text; empty without issues."""
        return list(_in_words(self))


def check_structure(
    hierarchy: Hierarchy,
    diagnosis: Diagnosis | None = None,
    *,
    wide: int = 50,
    lopsided: float = 0.9,
) -> StructureReport:
    """Report the size and shape of a hierarchy, and its structural issues.

    Args:
        hierarchy: The tree.
        diagnosis: The diagnosis of the tree, for catch-alls. A catch-all is more similar to some items of its siblings
            than their own cluster is, for at least three siblings and half of all.
        wide: The largest number of children of a node that is not wide.
        lopsided: The share of items in one child from which a node is lopsided.

    Raises:
        ParameterError: The diagnosis is of another tree, or a limit is out of range.

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
        raise ParameterError(
            "diagnosis: got that of another hierarchy; expected this one. Call diagnose(X, hierarchy)."
        )
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
            f"{counted(total, 'node')} with one child only, the longest chain {report.chains[0].length}: there "
            "is not a choice; collapse_unary() removes them."
        )
    if report.wide:
        yield (
            f"{counted(len(report.wide), 'wide node')}, the widest with {report.wide[0].n_children:,} children: a "
            "choice there takes long and is uncertain."
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
            f"{counted(len(report.catch_alls), 'catch-all')}: the worst is more similar to "
            f"{counted(worst.n_items, 'item')} of {counted(worst.n_siblings, 'sibling')} than their own cluster."
        )
