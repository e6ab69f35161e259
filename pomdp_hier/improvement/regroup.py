"""`regroup`: the levels between a node and its headings rebuilt from the features, and judged on held-out items.

A heading is a cluster whose items stay together. Several groupings of the headings are tried, with one or two levels
above the headings (`groupings`). Each is judged by the expected search length with a cost of labels, which charges for
breadth and for depth.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pomdp_hier._arguments import Floats, Ints, check_integer, check_level, is_real, numbered, unexpected
from pomdp_hier._intervals import weighted_mean
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import counted, listed
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.features.similarity import Precomputed, as_similarity
from pomdp_hier.hierarchy.arrays import is_row
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, Run, opened
from pomdp_hier.hqs.search_length import SearchLengthResult, check_label_cost, lengths_of_items
from pomdp_hier.improvement.choice import part_of
from pomdp_hier.improvement.groupings import (
    GIVEN,
    Place,
    Plan,
    given_plan,
    members_of,
    moved_by_score,
    one_level,
    place_of,
    refined,
    remade,
    two_levels,
    vectors_of,
)
from pomdp_hier.improvement.held_out import fold_of, measured
from pomdp_hier.improvement.node_views import Objective
from pomdp_hier.improvement.result import HeldOutGain

_JUDGED = 5_000  # items that judge a grouping
_REFINED = 4  # groupings of one level
_LISTED = 12  # groupings that are compared on held-out items
_REFUSED = dict.fromkeys(
    ("sample_size", "half_width", "sampling", "updater", "n_jobs", "checkpoint", "policy_version"),
    "regroup scores every item. Leave it out.",
) | dict.fromkeys(("policy", "tie", "reward", "engine"), "searchers who may go back do not use it. Leave it out.")


@dataclass(frozen=True)
class Group:
    """A new group of headings.

    Attributes:
        node: Its node in the new tree.
        name: Its name, from its strongest terms or its largest headings.
        headings: The headings and groups below it, as nodes of the new tree.
        n_items: The number of its items.
        named_after: The headings that name it, as nodes of the old tree; none if its terms do.
        sources: The number of its headings from each old parent, the largest first, as nodes of the old tree.
    """

    node: int
    name: str
    headings: tuple[int, ...]
    n_items: int
    named_after: tuple[int, ...]
    sources: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TornNode:
    """An old parent whose headings are now in several groups.

    Attributes:
        node: The node in the old tree.
        n_headings: The number of its headings.
        n_groups: The number of groups that they are in.
        largest_share: The largest share of these headings in one group.
    """

    node: int
    n_headings: int
    n_groups: int
    largest_share: float


@dataclass(frozen=True, eq=False)
class Regrouping:
    """A tree with rebuilt levels, compared with the given tree.

    Attributes:
        hierarchy: The given tree.
        tree: The new tree; the same one if no grouping is better.
        headings: The headings, as nodes of the given tree ``[H]``.
        numbers: The number in the new tree of each node of the given tree ``[n_nodes]``; -1 for those removed.
        method: How the headings were grouped.
        groups: The new groups.
        torn: The old parents whose headings are now in several groups, the most headings first.
        kept: The share of pairs of headings with a common parent that still have one.
        before: The expected search length in the given tree, with the label cost.
        after: The same in the new tree.
        held_out: The gain of held-out items, which influenced neither the groups nor their choice.
        tried: The score of every grouping that was tried, by name.
    """

    hierarchy: Hierarchy
    tree: Hierarchy
    headings: Ints
    numbers: Ints
    method: str
    groups: tuple[Group, ...]
    torn: tuple[TornNode, ...]
    kept: float
    before: SearchLengthResult
    after: SearchLengthResult
    held_out: HeldOutGain
    tried: dict[str, float]

    @property
    def confirmed(self) -> bool:
        """Whether the interval of the held-out gain lies above 0."""
        return self.held_out.interval[0] > 0

    def __repr__(self) -> str:
        return (
            f"Regrouping({self.before.score:z.4f} -> {self.after.score:z.4f}, held out {self.held_out.gain:+z.4f}, "
            f"{counted(len(self.groups), 'group')}, {self.kept:z.0%} of the pairs kept)"
        )

    def renamed(self, names: Any) -> "Regrouping":
        """Return the same result with groups named after these names of their headings; see `NodeNames`."""
        called = NodeNames(self.hierarchy, names, last_part=True)
        found = numbered((_after(called, one.named_after) or one.name, None) for one in self.groups)
        groups = tuple(replace(one, name=name) for one, name in zip(self.groups, found, strict=True))
        return replace(self, groups=groups)

    def summary(self, limit: int = 20, names: Any = None) -> str:
        """Return both trees side by side: scores, groups, and what is torn apart, as text.

        Args:
            limit: The largest number of groups, and of nodes torn apart.
            names: Names of the nodes by id; the labels by default.
        """
        old, new = (NodeNames(tree, names, last_part=True) for tree in (self.hierarchy, self.tree))
        named = {group.node: group.name for group in self.groups}
        low, high = self.held_out.interval
        verdict = "confirmed" if self.confirmed else "not confirmed"
        lines = [
            f"{'':<24}{'as it is':>10}{'regrouped':>11}",
            *self.before.weight_lines(),
            f"{'search length score':<24}{self.before.score:>z10.4f}{self.after.score:>z11.4f}",
            f"{'items looked at':<24}{_items(self.before):>z10.1f}{_items(self.after):>z11.1f}",
            f"{'labels read':<24}{_labels(self.before):>z10.1f}{_labels(self.after):>z11.1f}",
            f"{self.method}; {self.kept:z.0%} of the pairs of siblings kept",
            f"held-out gain {self.held_out.gain:+z.4f}, interval {low:z.4f} to {high:z.4f}: {verdict}",
        ]
        for group in self.groups[:limit]:
            sources = ", ".join(f"{count} from {old[node]}" for node, count in group.sources[:3])
            members = listed([named.get(node, new[node]) for node in group.headings[:3]], count=len(group.headings))
            lines.append(f"  {group.name}: {counted(group.n_items, 'item')}; {members}; {sources}")
        if len(self.groups) > limit:
            lines.append(f"  and {counted(len(self.groups) - limit, 'group')} more")
        lines += [
            f"  torn apart: {old[torn.node]}, {counted(torn.n_headings, 'heading')} in "
            f"{counted(torn.n_groups, 'group')}, {torn.largest_share:z.0%} together"
            for torn in self.torn[:limit]
        ]
        return "\n".join(lines)


def _items(found: SearchLengthResult) -> float:
    return found.mean(found.looks)


def _labels(found: SearchLengthResult) -> float:
    return found.mean(found.labels)


def regroup(
    X: Any,
    hierarchy: Hierarchy,
    *,
    node: Hashable = None,
    level: int | None = None,
    max_children: int | None = None,
    label_cost: float = 1.0,
    tolerance: float = 0.05,
    terms: Sequence[str] | None = None,
    folds: int = 2,
    confidence: float = 0.95,
    random_state: int = 0,
    **settings: Any,
) -> Regrouping:
    """Rebuild the levels between a node and its headings from the features, and measure the gain on held-out items.

    A heading is a cluster whose items stay together; new groups of headings replace the levels above. Groupings are
    scored by `expected_search_length` under ``label_cost``. The best twelve are made again from one half of the items
    and measured on the other, for both halves. Groupings that lose at most the share ``tolerance`` of the
    largest gain are equally acceptable: the one that keeps most pairs of siblings is taken. Then single headings move
    to another group where the score gains by it. For the held-out gain, the grouping is chosen without one fold of the
    items and measured on that fold, for each fold.

    Args:
        X: The features, as for `evaluate`. Precomputed similarities are not accepted, as they have no centroids.
        hierarchy: The tree.
        node: The number or label of the node whose levels below are rebuilt; the root by default.
        level: The level of the headings, where the root has 0; by default the deepest one. Leaf clusters above it are
            headings too.
        max_children: The largest number of children of the node and of a group. The default is the largest number in
            these levels now, and at least the square root of the number of headings.
        label_cost: The cost of reading a label, in items looked at.
        tolerance: The share of the gain that may be lost for a tree that is more similar to the given one.
        terms: The names of the columns, for the names of the groups; by default, names of their largest headings.
        folds: The number of folds for the held-out gain; 0 for none.
        confidence: The level of the interval of the held-out gain.
        random_state: The seed of the folds, and of the sample that scores groupings of more than 5,000 items.
        **settings: As for `expected_search_length`. Scores and held-out gains are means over searches with
            ``sample_weight``; centroids and sizes stay those of the items.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: A setting is invalid; or there are fewer than three headings, or more than 8,000.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5], [6, 7], [8, 10], [9, 11], [12, 13]], 8)
        >>> X = [[9, 1], [9, 2], [1, 9], [2, 9], [9, 3], [8, 1], [1, 8], [1, 7]]
        >>> found = regroup(X, tree, delta=0.1, folds=0)
        >>> found.tree.to_children()
        [[0, 1], [2, 3], [4, 5], [6, 7], [8, 10], [9, 11], [12, 13]]

    References:
        Sokal and Michener (1958), average linkage; Ward (1963), Hierarchical grouping to optimize an objective
        function; Cooper (1968), Expected search length.
    """
    check_label_cost(label_cost)
    check_level("confidence", confidence)
    check_integer("folds", folds)
    check_integer("random_state", random_state)
    if folds == 1:
        raise unexpected("folds", folds, "0 for none, or at least 2")
    if not (is_real(tolerance) and 0 <= tolerance < 1):
        raise unexpected("tolerance", tolerance, "a share of the gain from 0 to below 1")
    prepared, run, _ = opened(X, hierarchy, settings, _REFUSED)
    if isinstance(as_similarity(prepared.settings.similarity), Precomputed):
        raise unexpected("similarity", "precomputed", "a similarity of features, which have centroids")
    place = place_of(hierarchy, node, level, max_children)
    _check_terms(terms, prepared)
    judge = Judge(run, label_cost, tolerance, random_state)
    items = np.arange(hierarchy.n_items)
    before = lengths_of_items(prepared, Run(threads=run.threads), label_cost, items)
    with shown_progress(run.progress, "regroup", "part", folds + 1) as bar:
        plan, tried = judge.best(prepared, place)
        bar.update(1)
        rises = []
        fold = fold_of(hierarchy.starts[: hierarchy.n_items], max(folds, 1), random_state)
        for k in range(folds):
            rises.append(judge.held_out_rise(prepared, place, np.flatnonzero(fold == k), before))
            bar.update(1)
    held_out = HeldOutGain()
    if rises:
        order = np.argsort(fold, kind="stable")
        held_out = measured(np.concatenate(rises), confidence, _weights_of(prepared, order))
    names, after_headings = _group_names(prepared, place, plan, terms)
    tree, numbers = plan.made(hierarchy, place, names)
    after = lengths_of_items(prepared.on(tree), Run(threads=run.threads), label_cost, items)
    return Regrouping(
        hierarchy=hierarchy,
        tree=tree,
        headings=place.headings,
        numbers=numbers[: hierarchy.n_nodes],
        method=plan.name,
        groups=_groups(hierarchy, tree, place, plan, numbers, list(zip(names, after_headings, strict=True))),
        torn=_torn(hierarchy, place, plan),
        kept=plan.kept(hierarchy, place),
        before=before,
        after=after,
        held_out=held_out,
        tried=tried,
    )


class Judge:
    """Choice among groupings by the expected search length."""

    def __init__(self, run: Run, label_cost: float, tolerance: float, random_state: int) -> None:
        self.run, self.label_cost, self.tolerance, self.seed = (
            Run(threads=run.threads),
            label_cost,
            tolerance,
            random_state,
        )

    def score(self, prepared: Prepared, place: Place, plan: Plan, items: Ints | None = None) -> float:
        """Return the score of a grouping over these items, or all; over a sample of many."""
        items = np.arange(prepared.hierarchy.n_items) if items is None else items
        weights = _weights_of(prepared, items)
        if weights is not None and weights.any():
            items = items[weights > 0]
        if len(items) > _JUDGED:
            items = np.sort(np.random.default_rng(self.seed).choice(items, _JUDGED, replace=False))
        values, weights = self._values(prepared, place, plan, items), _weights_of(prepared, items)
        return float(values.mean()) if weights is None or not weights.any() else weighted_mean(values, weights)

    def _values(self, prepared: Prepared, place: Place, plan: Plan, items: Ints) -> Floats:
        """Return the values of some items, which may all have weight 0, under a grouping."""
        equal = replace(prepared.on(plan.made(prepared.hierarchy, place)[0]), weights=None)
        return lengths_of_items(equal, self.run, self.label_cost, items).values

    def best(self, prepared: Prepared, place: Place) -> tuple[Plan, dict[str, float]]:
        """Return the best grouping, and the score of every one by name."""
        tree = prepared.hierarchy
        vectors = vectors_of(prepared, place.headings)
        plans = list(one_level(tree, place, vectors))
        scores = {plan.name: self.score(prepared, place, plan) for plan in plans}
        grouped = [plan for plan in plans if len(plan.above)]
        for base in sorted(grouped, key=lambda plan: -scores[plan.name])[:_REFINED]:
            plan = refined(base, place, vectors)
            grouped.append(plan)
            plans.append(plan)
            scores[plan.name] = self.score(prepared, place, plan)
        if grouped:
            base = max(grouped, key=lambda plan: scores[plan.name])
            fewest = min(grouped, key=lambda plan: int((plan.above == place.node).sum()))
            for each in {id(base): base, id(fewest): fewest}.values():
                for plan in two_levels(place, each, vectors):
                    plans.append(plan)
                    scores[plan.name] = self.score(prepared, place, plan)
        allowed = sorted((plan for plan in plans if plan.fits(tree, place)), key=lambda plan: -scores[plan.name])
        listed = list({plan.name: plan for plan in (*allowed[:_LISTED], plans[0])}.values())
        held = self._held_out(prepared, place, listed)
        given, most = held[GIVEN], max(held.values())
        near = [plan for plan in listed if held[plan.name] >= most - self.tolerance * (most - given)]
        best = max(near, key=lambda plan: (plan.kept(tree, place), held[plan.name]))
        if best.name != GIVEN:
            best = moved_by_score(prepared.under(policy="descend"), place, best, vectors, Objective(self.label_cost))
            scores[best.name] = self.score(prepared, place, best)
        return best, scores

    def _held_out(self, prepared: Prepared, place: Place, plans: Sequence[Plan]) -> dict[str, float]:
        """Return the score of each plan, made from one half of the items and measured on the other, by name."""
        tree = prepared.hierarchy
        half = fold_of(tree.starts[: tree.n_items], 2, self.seed) == 1
        total = dict.fromkeys((plan.name for plan in plans), 0.0)
        searches = np.ones(tree.n_items) if prepared.weights is None else prepared.weights

        def again(part: Prepared, small: Place) -> list[Plan]:
            vectors = vectors_of(part, small.headings)
            known = {plan.steps: plan for plan in one_level(part.hierarchy, small, vectors)}
            return [remade(plan, known, small, vectors) or known[GIVEN,] for plan in plans]

        for others in (half, ~half):
            out = np.flatnonzero(others)
            made = self.without(prepared, place, out, again)
            for plan, found in zip(plans, made or [plans[-1]] * len(plans), strict=True):
                share = searches[out].sum() / searches.sum()
                total[plan.name] += self.score(prepared, place, found, out) * share
        return total

    def held_out_rise(self, prepared: Prepared, place: Place, out: Ints, before: SearchLengthResult) -> Floats:
        """Return the rise of the values of some items by the grouping that the others choose."""
        return self._values(prepared, place, self.chosen_without(prepared, place, out), out) - before.values[out]

    def chosen_without(self, prepared: Prepared, place: Place, out: Ints) -> Plan:
        """Return the grouping that the items other than these choose, without the rows of these."""
        found = self.without(prepared, place, out, lambda part, small: [self.best(part, small)[0]])
        return found[0] if found else given_plan(prepared.hierarchy, place)

    @staticmethod
    def without(
        prepared: Prepared, place: Place, out: Ints, make: Callable[[Prepared, Place], Sequence[Plan]]
    ) -> list[Plan]:
        """Return groupings made without these items, for the whole tree; none if too few headings are left.

        Args:
            prepared: Features, tree and settings.
            place: The headings.
            out: The items.
            make: The function that makes the groupings of the part without them.
        """
        tree = prepared.hierarchy
        others = np.setdiff1d(np.arange(tree.n_items), out)
        part = part_of(prepared, others)
        number = np.full(tree.n_nodes, -1)
        number[part.nodes] = np.arange(len(part.nodes))
        known = np.flatnonzero(number[place.headings] >= 0)
        if len(known) < 3:
            return []
        small = replace(place, node=int(number[place.node]), headings=number[place.headings[known]])
        old, found = tree.parent[place.headings], []
        for plan in make(part.prepared, small):
            parents = np.empty(len(place.headings), dtype=np.int64)
            parents[known] = np.where(plan.parents >= 0, part.nodes[np.maximum(plan.parents, 0)], plan.parents)
            for heading in np.setdiff1d(np.arange(len(old)), known).tolist():  # it stays with its neighbours
                siblings = parents[known[old[known] == old[heading]]].tolist() or [int(old[heading])]
                parents[heading] = Counter(siblings).most_common(1)[0][0]
            above = np.where(plan.above >= 0, part.nodes[np.maximum(plan.above, 0)], plan.above)
            found.append(Plan(plan.name, parents, above, plan.steps))
        return found


def _weights_of(prepared: Prepared, items: Ints) -> Floats | None:
    return None if prepared.weights is None else prepared.weights[items]


def _check_terms(terms: Any, prepared: Prepared) -> None:
    n_columns = cast(ItemFeatures, prepared.features).table.shape[1]
    if terms is not None and not (is_row(terms) and len(terms) == n_columns):
        raise unexpected("terms", terms, f"the names of {n_columns} columns")


def _after(names: NodeNames, headings: Sequence[int]) -> str:
    return " + ".join(names[node] for node in headings)


def _group_names(
    prepared: Prepared, place: Place, plan: Plan, terms: Sequence[str] | None
) -> tuple[list[str], list[tuple[int, ...]]]:
    """Return a name for each new group, and the headings that it names.

    The name is of its strongest terms against its siblings, or of its largest headings.
    """
    tree, members = prepared.hierarchy, members_of(plan)
    after: list[tuple[int, ...]] = [() for _ in members]
    if terms is None:
        ordered = [sorted(place.headings[each].tolist(), key=lambda node: -int(tree.sizes[node])) for each in members]
        after, names = [tuple(each[:2]) for each in ordered], NodeNames(tree, last_part=True)
        found = [_after(names, each) for each in after]
    else:
        vectors = vectors_of(prepared, place.headings)
        found = []
        overall = np.asarray(vectors.sum(axis=0)).ravel() / tree.sizes[place.headings].sum()
        for each in members:
            mean = np.asarray(vectors[each].sum(axis=0)).ravel() / tree.sizes[place.headings[each]].sum()
            strongest = np.argsort(overall - mean, kind="stable")[:3]
            found.append(", ".join(str(terms[k]) for k in strongest if mean[k] > overall[k]) or "other")
    return list(numbered((name, None) for name in found)), after


def _groups(
    tree: Hierarchy,
    new: Hierarchy,
    place: Place,
    plan: Plan,
    numbers: Ints,
    names: Sequence[tuple[str, tuple[int, ...]]],
) -> tuple[Group, ...]:
    found = []
    for k, members in enumerate(members_of(plan)):
        node = int(numbers[tree.n_nodes + k])
        sources = Counter(tree.parent[place.headings[members]].tolist()).most_common()
        name, after = names[k]
        below = tuple(new.children(node).tolist())
        found.append(Group(node, name, below, int(new.sizes[node]), after, tuple(sources)))
    return tuple(sorted(found, key=lambda group: (-group.n_items, group.node)))


def _torn(tree: Hierarchy, place: Place, plan: Plan) -> tuple[TornNode, ...]:
    old, found = tree.parent[place.headings], []
    for node in np.unique(old).tolist():
        now = Counter(plan.parents[old == node].tolist())
        # Headings that are directly below the node are each by themselves, where they were not before.
        alone = now.pop(place.node, 0) if node != place.node else 0
        n_groups, n_headings = len(now) + alone, int((old == node).sum())
        if n_groups > 1:
            found.append(TornNode(node, n_headings, n_groups, max([*now.values(), 1]) / n_headings))
    return tuple(sorted(found, key=lambda torn: (-torn.n_headings, torn.node)))
