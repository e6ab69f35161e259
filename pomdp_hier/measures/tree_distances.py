"""Two trees: their items by name, distances, entanglement of leaf orders, and orders that reduce it."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from math import comb, sqrt
from typing import Self

import numpy as np

from pomdp_hier._arguments import Bools, Ints, check_flag, check_integer, generator, is_real
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import HierarchyError, ParameterError, PomdpHierError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy.arrays import min_below
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.measures.lca_pairs import (
    EXACT_LIMIT,
    MOST_SAMPLES,
    LcaPairs,
    Shared,
    cost_of_sharing,
    lca_of,
    lca_pairs,
    neighbour_ancestors,
    shared,
)

BY_NUMBER = "tree = Hierarchy.from_children(tree.to_children(), tree.n_items, singletons=tree.singletons)"


def aligned(hierarchy: Hierarchy, other: Hierarchy, what: str) -> Hierarchy:
    """Return the other tree with its items numbered as in the first tree."""
    numbers = item_numbers(hierarchy, other, what)
    return other if numbers is None else other.permuted(numbers, with_labels=True)


def item_numbers(
    hierarchy: Hierarchy,
    other: Hierarchy,
    what: str,
    *,
    names: tuple[str, str] = ("the first tree", "the other tree"),
    by_number: str = BY_NUMBER,
    error: type[PomdpHierError] = HierarchyError,
) -> Ints | None:
    """Return the number in the first tree of each item of the other ``[N]``; None for equal numbers.

    Two items are the same where their labels are equal, or equal as text where all labels of either tree are text.
    A tree without labels, or with the labels ``0..N-1``, does not name its items and is compared by number.
    """
    require_hierarchy(hierarchy)
    require_hierarchy(other)
    if hierarchy.labels is not None and other.labels is not None:
        mine, its = hierarchy.item_labels, other.item_labels
        if any(all(isinstance(name, str) for name in side) for side in (mine, its)):
            mine, its = tuple(map(str, mine)), tuple(map(str, its))
        if mine == its:
            return None
        number = {name: at for at, name in enumerate(mine)}
        if len(number) == len(mine) == len(its) and number.keys() == set(its):
            return np.array([number[name] for name in its], dtype=np.int64)
        if not (number.keys().isdisjoint(its) and (_are_numbers(mine) or _are_numbers(its))):
            raise error(
                f"items: got {_difference(mine, its, names)}; expected the same items in both trees, as {what} matches "
                f"them by name. Build both trees over the same items, or compare by number: {by_number}"
            )
    if hierarchy.n_items != other.n_items:
        raise error(
            f"items: got {hierarchy.n_items:,} in {names[0]} and {other.n_items:,} in {names[1]}; expected the same "
            f"items in both trees for {what}. Build both trees over the same items"
        )
    return None


def _are_numbers(names: Sequence[Hashable]) -> bool:
    return all(str(name) == str(number) for number, name in enumerate(names))


def _difference(mine: Sequence[Hashable], its: Sequence[Hashable], trees: tuple[str, str]) -> str:
    """Return the names in one of the two trees only, and duplicate names, as text."""
    found = []
    for side, there, tree in ((mine, set(its), trees[0]), (its, set(mine), trees[1])):
        alone = [name for name in dict.fromkeys(side) if name not in there]
        twice = [name for name, count in Counter(side).items() if count > 1]
        found += [f"{listed(alone)} in {tree} alone"] if alone else []
        found += [f"{listed(twice)} twice in {tree}"] if twice else []
    return " and ".join(found)


def entanglement(hierarchy: Hierarchy, other: Hierarchy, *, power: float = 1.5) -> float:
    """Return the entanglement of the leaf orders of two trees: 0 for the same order, 1 for the reverse.

    The sum over the items of ``|position - position in the other| ** power``, divided by that of the reverse order.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        power: The exponent of a shift; larger values emphasise long shifts.

    Raises:
        HierarchyError: The two are not over the same items.
        ParameterError: The power is not a positive number.

    Example:
        >>> straight = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> crossed = Hierarchy.from_children([[1, 0], [3, 2], [5, 4]], 4)
        >>> entanglement(straight, straight), entanglement(straight, crossed)
        (0.0, 1.0)

    References:
        Galili (2015), dendextend: an R package for visualizing, adjusting and comparing trees of hierarchical
        clustering, Bioinformatics.
    """
    other = aligned(hierarchy, other, "entanglement")
    if not (is_real(power) and 0 < power < np.inf):
        raise ParameterError(f"power: got {brief(power)}; expected a positive number, such as 1.5.")
    places = np.arange(hierarchy.n_items)
    worst = float((np.abs(places - places[::-1]) ** float(power)).sum())
    apart = np.argsort(hierarchy.item_order) - np.argsort(other.item_order)
    return float((np.abs(apart) ** float(power)).sum()) / worst if worst else 0.0


def untangle(hierarchy: Hierarchy, other: Hierarchy, *, rounds: int = 20) -> tuple[Hierarchy, Hierarchy]:
    """Return both trees with reordered children, for few crossings of lines between equal items.

    In turn, the children of each node are sorted by the mean position of their items in the other tree, while the
    entanglement falls. The best orders are returned. Each tree keeps the numbers and names of its nodes.

    References:
        Sugiyama, Tagawa, Toda (1981), Methods for visual understanding of hierarchical system structures (the
        barycentre rule).
    """
    numbers = item_numbers(hierarchy, other, "untangling")
    check_integer("rounds", rounds)
    placed = other if numbers is None else other.permuted(numbers, with_labels=True)
    best = hierarchy, placed
    least = entanglement(hierarchy, placed)
    for _ in range(rounds):
        hierarchy = _along(hierarchy, placed)
        placed = _along(placed, hierarchy)
        now = entanglement(hierarchy, placed)
        if now >= least:
            break
        best, least = (hierarchy, placed), now
    hierarchy, placed = best
    return hierarchy, placed if numbers is None else placed.permuted(np.argsort(numbers), with_labels=True)


def _along(tree: Hierarchy, guide: Hierarchy) -> Hierarchy:
    """Return the tree with the children of each node sorted by the mean position of their items in the guide."""
    place = np.argsort(guide.item_order)
    mean = item_sums(tree, place, np.arange(tree.n_nodes)) / tree.sizes
    children = [sorted(kids, key=lambda node: (mean[node], node)) for kids in tree.to_children()]
    return type(tree).from_children(children, tree.n_items, singletons=tree.singletons, labels=tree.labels)


_95 = 1.959964


def robinson_foulds(hierarchy: Hierarchy, other: Hierarchy, *, normalized: bool = True) -> float:
    """Return the Robinson-Foulds distance: the share of clusters in only one of two rooted trees, or their number.

    A cluster is the set of items below a node. Single items and the set of all items do not count, and equal sets in a
    chain count once. With A and B the clusters of the two trees, the distance is ``|A - B| + |B - A|``, divided by
    ``|A| + |B|``; 0 for equal trees. O(N) for every shape. A cluster is a run of positions in the leaf order of the
    first tree. A node of the other is that cluster if its positions are a run of the same length.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        normalized: Whether to divide by ``|A| + |B|``; 0 if neither tree has clusters.

    Raises:
        HierarchyError: The two are not over the same items.

    Example:
        >>> two_halves = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> comb = Hierarchy.from_children([[0, 1], [4, 2], [5, 3]], 4)
        >>> robinson_foulds(two_halves, comb), robinson_foulds(two_halves, comb, normalized=False)
        (0.5, 2.0)

    References:
        Robinson, Foulds (1981), Comparison of phylogenetic trees; Day (1985), Optimal algorithms for comparing trees
        with labeled leaves.
    """
    other = aligned(hierarchy, other, "the Robinson-Foulds distance")
    check_flag("normalized", normalized)
    same = common_clusters(hierarchy, other)
    sizes = hierarchy.sizes[np.unique(same[same >= 0])]
    common = int(((sizes > 1) & (sizes < hierarchy.n_items)).sum())
    count = _n_clusters(hierarchy) + _n_clusters(other)
    distance = float(count - 2 * common)
    return distance if not normalized else (distance / count if count else 0.0)


def common_clusters(hierarchy: Hierarchy, other: Hierarchy) -> Ints:
    """Return, per node of the other tree, the node of the first with the same items, or -1 ``[n_nodes]``.

    In a chain it is the highest node. Items are nodes too.
    """
    n = hierarchy.n_items
    place = np.argsort(hierarchy.item_order)
    first = min_below(other.parent, _at_items(other, place, n))
    last = -min_below(other.parent, _at_items(other, -place, n))
    known, at = _runs_of(hierarchy)
    sought = np.where(last - first + 1 == other.sizes, first * (n + 1) + other.sizes, -1)
    found = np.minimum(np.searchsorted(known, sought), len(known) - 1)
    return np.where(known[found] == sought, at[found], -1)


def _runs_of(tree: Hierarchy) -> tuple[Ints, Ints]:
    """Return the run of positions of each node as one sorted number, and its highest node."""
    downwards = np.argsort(tree.levels, kind="stable")
    runs = tree.starts * (tree.n_items + 1) + tree.sizes
    known, at = np.unique(runs[downwards], return_index=True)
    return known, downwards[at]


def _at_items(tree: Hierarchy, values: Ints, n: int) -> Ints:
    """Return the values at items, and the largest integer at internal nodes ``[n_nodes]``."""
    return np.concatenate([values, np.full(tree.n_nodes - n, np.iinfo(np.int64).max)])


def _n_clusters(tree: Hierarchy) -> int:
    """Return the number of distinct clusters, without single items and the set of all items."""
    n = tree.n_items
    inner = np.arange(n, tree.n_nodes)
    above = tree.parent[inner]
    size = tree.sizes[inner]
    proper = (size > 1) & (size < n)
    repeats = (
        proper & (above >= 0) & (tree.sizes[np.maximum(above, 0)] == size)
    )  # an only child has the set of its parent
    return int(proper.sum() - repeats.sum())


class TripletDistance(float):
    """The share of item triplets that two trees resolve differently, from 0 to 1, with its interval.

    Attributes:
        distance: The share, as a plain float.
        low: Lower end of the 95 % interval; the distance itself if it is exact.
        high: Upper end.
        n_samples: The number of sampled triplets; 0 if all were counted.
    """

    __slots__ = ("high", "low", "n_samples")
    low: float
    high: float
    n_samples: int

    def __new__(cls, distance: float, low: float, high: float, n_samples: int) -> Self:
        new = super().__new__(cls, distance)
        new.low, new.high, new.n_samples = low, high, n_samples
        return new

    def __getnewargs__(self) -> tuple[float, float, float, int]:  # type: ignore[override]
        return self.distance, self.low, self.high, self.n_samples

    @property
    def distance(self) -> float:
        """The share, as a plain float."""
        return float(self)

    def __repr__(self) -> str:
        return f"TripletDistance({self.distance!r}, low={self.low!r}, high={self.high!r}, n_samples={self.n_samples})"


def triplet_distance(
    hierarchy: Hierarchy,
    other: Hierarchy,
    *,
    exact_limit: int = EXACT_LIMIT,
    n_samples: int = 1_000_000,
    random_state: int = 0,
) -> TripletDistance:
    """Return the triplet distance: the share of item triplets that the trees resolve differently.

    A tree resolves a triplet as ab|c if the lowest common ancestor (LCA) of a and b is below that with c. Otherwise it
    leaves the triplet unresolved. With u and v the LCAs of a and b, both trees have ab|c for the
    ``N - |u| - |v| + I[u, v]`` items c outside both. A triplet is unresolved in both if its items are below three
    children of one u and of one v. All triplets are counted in exact integer arithmetic, from the number ``I[a, b]`` of
    items that two nodes share. Beyond ``exact_limit`` such pairs of nodes, triplets are sampled.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items, by name; by number where a tree does not name its items.
        exact_limit: The largest number of node pairs to count exactly: about ``N log(N)**2`` for balanced trees, up to
            ``N**3`` for chains.
        n_samples: The number of sampled triplets beyond that limit.
        random_state: The seed of the sample.

    Raises:
        HierarchyError: The two are not over the same items.

    Example:
        >>> two_halves = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> comb = Hierarchy.from_children([[0, 1], [4, 2], [5, 3]], 4)
        >>> float(triplet_distance(two_halves, comb))
        0.5

    References:
        Critchlow, Pearl, Qian (1996), The triples distance for rooted bifurcating phylogenetic trees; Brodal,
        Fagerberg, Mailund, Pedersen, Sand (2013), Efficient algorithms for computing the triplet and quartet distance
        between trees of arbitrary degree.
    """
    other = aligned(hierarchy, other, "the triplet distance")
    check_integer("n_samples", n_samples, 1, MOST_SAMPLES)
    check_integer("exact_limit", exact_limit)
    n = hierarchy.n_items
    if n < 3:
        return TripletDistance(0.0, 0.0, 0.0, 0)
    if cost_of_sharing(hierarchy, other) > exact_limit or n > 1_000_000:
        rng = generator("random_state", random_state)
        i, j, k = _triplets(n, n_samples, rng)
        share = float((_resolution(hierarchy, i, j, k) != _resolution(other, i, j, k)).mean())
        # Wilson's interval, also valid for shares of 0 and 1
        z = _95**2 / n_samples
        middle, reach = (share + z / 2) / (1 + z), sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
        return TripletDistance(share, max(0.0, middle - reach), min(1.0, middle + reach), n_samples)
    pairs = shared(hierarchy, other)
    same = _both_resolve(hierarchy, other, lca_pairs(hierarchy, other, pairs)) + _both_unresolved(
        hierarchy, other, pairs
    )
    share = (comb(n, 3) - same) / comb(n, 3)
    return TripletDistance(share, share, share, 0)


def _both_resolve(hierarchy: Hierarchy, other: Hierarchy, pairs: LcaPairs) -> int:
    """Return the number of triplets that both trees resolve in the same way."""
    outside = hierarchy.n_items - hierarchy.sizes[pairs.u] - other.sizes[pairs.v] + pairs.shared
    return int((2 * pairs.weight).astype(np.int64) @ outside) // 2


def _both_unresolved(hierarchy: Hierarchy, other: Hierarchy, pairs: Shared) -> int:
    """Return the number of triplets below three children of one node in each tree.

    u and v share S items, ``n_ab`` of them below child a of u and child b of v; ``r_a`` and ``c_b`` are their sums.
    Inclusion and exclusion over items below the same child gives, for each u and v,

        6 T = S**3 - 3 S (sum r**2 + sum c**2 - sum n**2) + 2 (sum r**3 + sum c**3) + 4 sum n**3
              + 6 sum n r c - 6 sum n**2 (r + c) .
    """
    inner_a, inner_b = pairs.a >= hierarchy.n_items, pairs.b >= other.n_items
    below_a, below_b = hierarchy.parent[pairs.a] >= 0, other.parent[pairs.b] >= 0
    n = pairs.n

    def total(here: Bools, value: Callable[[Ints, Ints, Ints, Ints], Ints]) -> np.int64:
        return np.int64(value(n[here], pairs.above_b[here], pairs.above_a[here], pairs.above[here]).sum())

    nodes = total(inner_a & inner_b, lambda n, r, c, s: n**3)
    rows = total(below_a & inner_b, lambda n, r, c, s: 2 * n**3 - 3 * n**2 * c)  # n is r_a here, and c is S
    columns = total(inner_a & below_b, lambda n, r, c, s: 2 * n**3 - 3 * n**2 * r)
    cells = total(below_a & below_b, lambda n, r, c, s: 3 * s * n**2 + 4 * n**3 + 6 * n * r * c - 6 * n**2 * (r + c))
    # The parts may overflow; their sum, at most N**3, is still correct modulo 2**64.
    return int(np.array([nodes, rows, columns, cells]).sum()) // 6


def _triplets(n: int, count: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Return uniformly sampled triplets of different items."""
    i = rng.integers(n, size=count)
    j = (i + rng.integers(1, n, size=count)) % n
    k = rng.integers(n - 2, size=count)
    low, high = np.minimum(i, j), np.maximum(i, j)
    k += k >= low  # the k-th of the items that are neither
    k += k >= high
    return i, j, k


def _resolution(tree: Hierarchy, i: Ints, j: Ints, k: Ints) -> Ints:
    """Return 1 for triplets resolved as jk|i, 2 for ik|j, 3 for ij|k, and 0 for unresolved ones."""
    levels = np.stack([tree.levels[lca_of(tree, a, b)] for a, b in ((j, k), (i, k), (i, j))])
    return np.where(levels.max(axis=0) > levels.min(axis=0), levels.argmax(axis=0) + 1, 0)


def hai(hierarchy: Hierarchy, other: Hierarchy) -> float:
    """Return the Hierarchical Agreement Index of two hierarchies over the same items; 1 for full agreement.

    ``d(i, j)`` is ``|c_ij| / N`` with ``c_ij`` the lowest common ancestor (LCA) of two items. It is 0 if the LCA is a
    leaf cluster or the two items are equal.

        HAI = 1 - sum over i, j of |d(i, j, hierarchy) - d(i, j, other)| / N**2 .

    Items are compared by name, or by number where a tree does not name them. In a tree with ``singletons=True``, each
    item is its own leaf cluster, and the index differs. The paper uses leaf clusters (``singletons=False``).

    O(N**2) time and O(N) memory; exact, as the sum is of integers.

    Args:
        hierarchy: A hierarchy.
        other: Another one over the same items. The index is symmetric in the two.

    Raises:
        HierarchyError: The two are not over the same items.

    Example:
        >>> two_halves = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> one_cluster = Hierarchy.from_children([[0, 1, 2, 3]], 4)
        >>> hai(two_halves, two_halves), hai(two_halves, one_cluster)
        (1.0, 0.5)

    References:
        Johnson, Xiong, Gao, Corso (2013), Comprehensive cross-hierarchy cluster agreement evaluation; in
        the form of Huang, Piao, Moreno, Hurley, POMDP Modelling for Assessing Hierarchies.
    """
    other = aligned(hierarchy, other, "HAI")
    n = hierarchy.n_items
    gaps, other_gaps = _gaps(hierarchy), _gaps(other)
    partners = np.argsort(other.item_order)[hierarchy.item_order]
    running = np.empty(n, dtype=np.int64)
    total = 0
    for left in range(n - 1):
        here = partners[left]
        running[here + 1 :] = np.maximum.accumulate(other_gaps[here:])
        running[:here] = np.maximum.accumulate(other_gaps[:here][::-1])[::-1]
        difference = np.maximum.accumulate(gaps[left:])
        difference -= running[partners[left + 1 :]]
        total += int(np.abs(difference, out=difference).sum())
    return (n**3 - 2 * total) / n**3


def _gaps(hierarchy: Hierarchy) -> Ints:
    """Return N times the distance of each item to its right neighbour in ``item_order``, ``[N - 1]``.

    The LCA of two items further apart is the largest LCA of neighbours between them. The running maximum from an item
    gives its distances to all others.
    """
    ancestors = neighbour_ancestors(hierarchy)
    return np.where(hierarchy.is_leaf[ancestors], 0, hierarchy.sizes[ancestors])
