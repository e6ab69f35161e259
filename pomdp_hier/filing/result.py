"""The result of `find_misfiled`: probabilities, targets, the order, and lists with an expected share of errors."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Bools, Floats, Ints, check_flag, is_real
from pomdp_hier._text import brief, counted
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.filing.centroids import UnitRows
from pomdp_hier.filing.model import LEAST_GAIN, NEAR, FilingModel
from pomdp_hier.hierarchy.node_names import NodeNames, id_texts
from pomdp_hier.hierarchy.tree import Hierarchy

LEAST_AUC = 0.6
_SMALL = 100
_LIKELY = 0.5
_NAMED = 3
_AT_ONCE = 1 << 12  # rows that an item is compared with

COLUMNS = (
    *("rank", "item_id", "item_name", "source_id", "source_path", "target_id", "target_path"),
    *("second_target_id", "second_target_path", "probability", "target_probability", "odds", "n_terms"),
    *("similar_at_source", "similar_at_target", "selected", "decision", "note"),
)
"""The columns of a table of misfiled items; ``selected`` is whether a row is in the list of `MisfiledItems.select`.

``decision`` and ``note`` are empty, for the owner of the tree: accept or reject.
"""


def check_share(name: str, value: Any) -> None:
    """Raise an error unless the value is a share of errors, in [0, 1)."""
    if not (is_real(value) and 0 <= value < 1):
        raise ParameterError(Argument(name), f": got {brief(value)}; expected a number in [0, 1). Pass 0.1 for 10 %.")


@dataclass(frozen=True, eq=False, repr=False)
class MisfiledItems:
    """The items that are probably in the wrong place, and their most probable homes.

    Attributes:
        hierarchy: The tree.
        probabilities: P(misfiled) per item ``[N]``; NaN for items that were not judged before an interrupt.
        targets: The most probable other home of each item, as a node ``[N]``; -1 for none.
        second_targets: A second target with at least half of the first one's probability, as a node; -1 for none
        ``[N]``.
        target_probabilities: The probability that an item is misfiled and belongs at its target ``[N]``.
        second_probabilities: The same for the second target, 0 without one ``[N]``.
        log_odds: The natural logarithm of the odds of P(misfiled) ``[N]``.
        order: The items, the most probably misfiled first ``[N]``; those without features or not judged come last.
            Items with P of at least 1/2 are ordered by their odds; for the others see `find_misfiled`.
        n_terms: The number of nonzero features per item ``[N]``.
        rate: The expected share of misfiled items under the model.
        auc: The mean share of the other homes that an item fits less well than its own, whatever their sizes: 0.5 for
            random features.
        gain: The mean log likelihood of the homes minus that of uniformly random homes, in nats per item.
        notes: The limits of these features on this tree, one sentence each.
        status: ``"converged"``, or ``"interrupted"`` where some items were not judged.
        model: The fitted numbers; None for a tree with one home.
        features: The features, one row per item.
        twins: Pairs of homes that the features do not distinguish, as nodes.
        log_gains: The log likelihood of each item's home minus that of a random home, in nats ``[N]``; NaN for items
            without features or not judged.
        ranks: The share of the other homes that each item fits less well than its own ``[N]``; NaN likewise.

    Example:
        >>> from pomdp_hier import find_misfiled
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> found = find_misfiled(X, tree)
        >>> int(found.order[0]), int(found.targets[5])
        (5, 7)
    """

    hierarchy: Hierarchy
    probabilities: Floats
    targets: Ints
    second_targets: Ints
    target_probabilities: Floats
    second_probabilities: Floats
    log_odds: Floats
    order: Ints
    n_terms: Ints
    rate: float
    auc: float
    gain: float
    notes: tuple[str, ...]
    status: str
    model: FilingModel | None
    features: Any = field(repr=False)
    twins: tuple[tuple[int, int], ...] = ()
    log_gains: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    ranks: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    def __repr__(self) -> str:
        n, likely = len(self.probabilities), int((np.nan_to_num(self.probabilities) >= _LIKELY).sum())
        fit = f"AUC {self.auc:z.3f}, gain {self.gain:z.3g} nats"
        return f"MisfiledItems({likely} of {counted(n, 'item')} with P of at least {_LIKELY}, {fit}, {self.status!r})"

    def select(self, expected_wrong: float = 0.1, *, target: bool = True) -> Ints:
        """Return the longest initial part of `order` whose expected share of errors is at most the given one.

        Only items that are more probably misfiled than not are selected: P is at least 1/2. Without that limit, many
        certain items would make room for items that are almost certainly in the right place. The list is empty if the
        features are not `informative`.

        The expectation assumes the noise of the model, so it is not a guarantee. With items planted anywhere, lists at
        2, 5 and 10 % had 1 to 5, 3 to 8 and 3 to 11 % errors. Below 5 %, errors of the model itself prevail. If
        misfiled items are in the most similar other home, more of the list is wrong. In a classification that people
        made, so are items that its features contradict.

        Args:
            expected_wrong: The mean of ``1 - target_probabilities`` over the list, between 0 and 1.
            target: Whether an item whose true home is not its target counts as an error. If not, the mean is that of
                ``1 - probabilities``: only items that are in the right place count as errors.

        Raises:
            ParameterError: The share is not between 0 and 1.
        """
        check_share("expected_wrong", expected_wrong)
        check_flag("target", target)
        right = self.target_probabilities if target else self.probabilities
        likely = self._judged & (np.nan_to_num(self.probabilities) >= _LIKELY)
        return self._head(self.order[likely[self.order]], right, expected_wrong)

    def to_move(self, expected_wrong: float = 0.2) -> Ints:
        """Return the items to move to their targets, the most probable target first.

        It is the longest list, by decreasing ``target_probabilities``, whose mean of ``1 - target_probabilities`` is at
        most ``expected_wrong``. Items with a target probability below 1/2 are left out. The list is empty if the
        features are not `informative`.

        Args:
            expected_wrong: The expected share of moves to a wrong place under the model, between 0 and 1.

        Raises:
            ParameterError: The share is not between 0 and 1.
        """
        check_share("expected_wrong", expected_wrong)
        order = self.order[self._judged[self.order] & (self.target_probabilities[self.order] >= _LIKELY)]
        order = order[np.argsort(-self.target_probabilities[order], kind="stable")]
        return self._head(order, self.target_probabilities, expected_wrong)

    def _head(self, order: Ints, right: Floats, expected_wrong: float) -> Ints:
        """Return the longest initial part of the order whose mean of ``1 - right`` is at most the share."""
        means = np.cumsum(1.0 - right[order]) / np.arange(1, len(order) + 1)
        inside = np.flatnonzero(means <= expected_wrong)
        return order[: inside[-1] + 1] if len(inside) and self.informative else order[:0]

    @property
    def odd(self) -> Bools:
        """Whether an item is probably misfiled but no target is probable ``[N]``: it fits nowhere."""
        ends = self.target_probabilities + self.second_probabilities
        return self._judged & (self.probabilities >= _LIKELY) & ~(ends >= _LIKELY)

    @property
    def _judged(self) -> Bools:
        return (self.targets >= 0) & ~np.isnan(self.probabilities)

    @property
    def informative(self) -> bool:
        """Whether the features fit the tree: `auc` is at least 0.6, and `gain` at least 0.05 nats per item."""
        return self.auc >= LEAST_AUC and self.gain >= LEAST_GAIN

    @cached_property
    def _units(self) -> UnitRows:
        return UnitRows(self.features)

    def similar(self, item: int, node: int, n: int = _NAMED) -> Ints:
        """Return the items below a node that are most similar to an item, itself left out, by their cosine.

        Args:
            item: The item.
            node: The node, such as ``targets[item]``.
            n: The number of items.
        """
        others = self.hierarchy.items(node)
        others = others[others != item]
        row = self._units(np.array([item]))
        row = row.toarray()[0] if sp.issparse(row) else row[0]
        pieces = [others[low : low + _AT_ONCE] for low in range(0, len(others), _AT_ONCE)]
        cosines = np.concatenate([np.zeros(0), *(self._units(piece) @ row for piece in pieces)])
        first: Ints = others[np.argsort(-cosines, kind="stable")[:n]]
        return first

    def keeping(self, items: Iterable[int]) -> Self:
        """Return the result without items that are known to be in the right place.

        Args:
            items: The numbers of these items.
        """
        kept = np.array(sorted({int(item) for item in items}), dtype=np.int64)
        if not len(kept):
            return self
        changed: dict[str, Any] = {}
        for name, value in (("targets", -1), ("second_targets", -1), ("log_odds", -np.inf)):
            changed[name] = getattr(self, name).copy()
            changed[name][kept] = value
        for name in ("probabilities", "target_probabilities", "second_probabilities"):
            changed[name] = getattr(self, name).copy()
            changed[name][kept] = 0.0
        is_kept = np.isin(self.order, kept)
        order = np.concatenate([self.order[~is_kept], self.order[is_kept]])
        note = f"{counted(len(kept), 'item')} known to be in the right place, left out."
        return replace(self, **changed, order=order, notes=(*self.notes, note))

    def with_notes(self, *, scale: int | None, n_judged: int, n_items: int) -> Self:
        """Return the same result with its notes.

        Args:
            scale: The column that is far larger than the others, if one is.
            n_judged: The number of items judged.
            n_items: N.
        """
        notes = []
        if n_judged < n_items:
            notes.append(f"Interrupted: {n_judged:,} of {n_items:,} items were judged.")
        empty = int(((self.n_terms == 0) & ~np.isnan(self.probabilities)).sum())
        if empty:
            notes.append(f"{counted(empty, 'item')} without features (rows of zeros): not judged.")
        if not self.informative:
            notes.append(
                f"The features say next to nothing about this tree: AUC {self.auc:z.2f}, "
                f"gain {self.gain:z.2f} nats per item."
            )
        if self.model is not None and self.model.contradicted:
            notes.append("The features contradict more than a quarter of the tree: only the order is meaningful.")
        if scale is not None:
            notes.append(
                f"Columns of very different scale: column {scale} is far larger than the others. Standardize them."
            )
        odd = int(self.odd.sum())
        if odd:
            notes.append(f"{counted(odd, 'odd item')}: probably misfiled, but similar to no other place.")
        if n_items < _SMALL:
            notes.append(f"Fewer than {_SMALL} items: the order is more reliable than the probabilities.")
        if self.model is not None and self.model.near == NEAR:
            notes.append(
                "Many items fit a sibling of their place better: the noise among siblings has half of the weight."
            )
        return replace(self, notes=tuple(notes))

    def sentences(self, names: Any = None) -> list[str]:
        """Return the number of flagged items, the expected rate, the fit of the features, and their limits.

        Args:
            names: Names of items or nodes, as `NodeNames` takes them.
        """
        flagged = int((self.probabilities[self._judged] > _LIKELY).sum())
        lines = [
            f"{counted(flagged, 'item')} of {self.hierarchy.n_items:,} with P(misfiled) above {_LIKELY}; "
            f"expected share of misfiled items {self.rate:z.2%}",
        ]
        if self.model is not None:
            lines.append(f"fit of the features to the tree: AUC {self.auc:z.3f}, gain {self.gain:z.2f} nats per item")
        called = NodeNames(self.hierarchy, names, in_words=True)
        twins = self.twins if self.informative else ()  # features that say nothing distinguish no clusters
        for one, other in twins[:_NAMED]:
            lines.append(f"These two clusters cannot be distinguished: {called[one]} and {called[other]}.")
        if len(twins) > _NAMED:
            lines.append(f"{counted(len(twins) - _NAMED, 'further pair')} of clusters cannot be distinguished.")
        return [*lines, *self.notes]

    def summary(self, limit: int = 10, names: Any = None) -> str:
        """Return the sentences and the first items of the order, one line each.

        Args:
            limit: The number of items.
            names: Names of items or nodes, as `NodeNames` takes them.
        """
        called = NodeNames(self.hierarchy, names, in_words=True)
        lines = self.sentences(names)
        for rank, item in enumerate(self._first(limit), start=1):
            source, target = int(self.hierarchy.parent[item]), int(self.targets[item])
            where = "fits nowhere" if self.odd[item] else f"to {called[target]}"
            second = int(self.second_targets[item])
            where += f" or {called[second]}" if second >= 0 and not self.odd[item] else ""
            lines.append(f"{rank:>3}. P {self.probabilities[item]:z.3f} {called[item]} from {called[source]} {where}")
        return "\n".join(lines)

    def _first(self, limit: int) -> list[int]:
        order = self.order[self._judged[self.order]]
        return [int(item) for item in order[:limit]]

    def to_rows(
        self, limit: int = 100, *, names: Any = None, selected: Iterable[int] | None = None
    ) -> list[dict[str, Any]]:
        """Return one row per item, `COLUMNS`, in order: with names, paths, and the most similar items here and there.

        Args:
            limit: The number of rows.
            names: Names of items or nodes, as `NodeNames` takes them.
            selected: The items to mark; by default those of `select`.
        """
        chosen = {int(item) for item in (self.select() if selected is None else selected)}
        text = _Texts(self.hierarchy, names)
        return [self._row(rank, item, text, item in chosen) for rank, item in enumerate(self._first(limit), start=1)]

    def _row(self, rank: int, item: int, text: "_Texts", selected: bool) -> dict[str, Any]:
        source, target, second = (
            int(nodes[item]) for nodes in (self.hierarchy.parent, self.targets, self.second_targets)
        )
        if self.odd[item]:
            target = second = -1
        here = self.similar(item, source)
        there = self.similar(item, target) if target >= 0 else here[:0]
        cells = (
            *(rank, text.id(item), text.name(item), text.id(source), text.path(source)),
            *(text.id(target), text.path(target), text.id(second), text.path(second)),
            *(float(self.probabilities[item]), float(self.target_probabilities[item])),
            *(float(np.exp(self.log_odds[item])), int(self.n_terms[item])),
            *("; ".join(map(text.name, nodes.tolist())) for nodes in (here, there)),
            *(selected, "", ""),
        )
        return dict(zip(COLUMNS, cells, strict=True))


class _Texts:
    """Ids, names and paths of nodes as text; empty for -1."""

    def __init__(self, tree: Hierarchy, names: Any) -> None:
        self._tree, self._ids = tree, id_texts(tree)
        self._names = NodeNames(tree, names, in_words=True)
        self._parts = NodeNames(tree, names, last_part=True, in_words=True)

    def id(self, node: int) -> str:
        return "" if node < 0 else self._ids[node]

    def name(self, node: int) -> str:
        return "" if node < 0 else self._names[node]

    def path(self, node: int) -> str:
        """Return the names from below the root down to a node."""
        parts: list[str] = []
        while node >= 0 and (node != self._tree.root or not parts):
            parts.append(self._parts[node])
            node = int(self._tree.parent[node])
        return " > ".join(reversed(parts))
