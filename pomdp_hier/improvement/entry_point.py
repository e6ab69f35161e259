"""`improve`: edits of a tree with exact gains, and their cross-validated gains on held-out items.

The items are divided into F folds. For each fold, edits are searched with the other items alone: an edit is chosen by
their gain, and an item of the fold is not moved by itself. The gain of the items of the fold is then the held-out gain.
Over all folds, each item is measured once. The held-out gain of an edit of the final list is measured in the folds
whose search found it too.
"""

import math
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from pomdp_hier._arguments import check_integer, check_level, is_integer, is_real, unexpected
from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import brief, listed
from pomdp_hier.analysis.duplicates import row_keys
from pomdp_hier.errors import Argument, HierarchyError, ParameterError
from pomdp_hier.hierarchy.arrays import as_ids
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import opened
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score
from pomdp_hier.improvement.collapse import best_collapse
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.node_views import check_policy
from pomdp_hier.improvement.result import KINDS, Edit, HeldOutGain, Improvement, apply_edits, names_of
from pomdp_hier.improvement.search import Limits, Made, Proposal, Search


def fold_of(starts: Ints, folds: int, random_state: int) -> Ints:
    """Return the fold of each item ``[N]``; neighbours in the leaf order are in different folds.

    Example:
        >>> sorted(np.bincount(fold_of(np.arange(10), 3, 0)).tolist())
        [3, 3, 4]
    """
    rng = np.random.default_rng(random_state)
    order = np.argsort(starts)
    fold = np.empty(len(order), dtype=np.int64)
    blocks = -(-len(order) // folds)
    fold[order] = np.concatenate([rng.permutation(folds) for _ in range(blocks)])[: len(order)]
    return fold


@dataclass(eq=False)
class Rest:
    """Gains of the items of the folds, by all edits and by each edit.

    Attributes:
        confidence: The level of the intervals.
    """

    confidence: float
    _rises: list[Floats] = field(default_factory=list)
    _edits: dict[tuple[object, ...], list[tuple[float, float, int]]] = field(default_factory=dict)

    def add(self, held: Ints, rise: Floats, made: list[Made]) -> None:
        """Add a fold.

        Args:
            held: Its items ``[h]``.
            rise: The gain of each item by all edits chosen without the fold ``[h]``.
            made: These edits.
        """
        self._rises.append(rise)
        for one in made:
            mine = one.rise[np.isin(one.items, held)]
            entry = (float(mine.sum()), float((mine**2).sum()), len(held))
            self._edits.setdefault(_key(one.proposal), []).append(entry)

    def all(self) -> HeldOutGain:
        """Return the gain of all edits."""
        if not self._rises:
            return HeldOutGain()
        rise = np.concatenate(self._rises)
        return measured(float(rise.sum()), float((rise**2).sum()), len(rise), self.confidence)

    def of(self, proposal: Proposal) -> HeldOutGain:
        """Return the gain of one edit, over the folds whose search found it."""
        entries = self._edits.get(_key(proposal))
        if not entries:
            return HeldOutGain()
        total, squares, n = (sum(column) for column in zip(*entries, strict=True))
        return measured(float(total), float(squares), int(n), self.confidence)


def measured(total: float, squares: float, n: int, confidence: float) -> HeldOutGain:
    """Return the mean of n numbers with its t interval, given their sum and their sum of squares.

    Example:
        >>> measured(3.0, 5.0, 3, 0.95)
        HeldOutGain(gain=1.0, interval=(-1.4841..., 3.4841...), n_items=3)

    References:
        Student (1908).
    """
    mean = total / n
    if n < 2:
        return HeldOutGain(mean, (-math.inf, math.inf), n)
    variance = max(0.0, (squares - total * mean) / (n - 1))
    half = float(stdtrit(n - 1, (1 + float(confidence)) / 2)) * math.sqrt(variance / n)
    return HeldOutGain(mean, (mean - half, mean + half), n)


def _key(proposal: Proposal) -> tuple[object, ...]:
    """Return the key of an edit, without the numbers of new clusters."""
    target = None if proposal.kind == "split" else proposal.target
    return proposal.kind, proposal.nodes, proposal.source, target


_MOST_LISTED = 5
_REFUSED = (
    dict.fromkeys(
        ("sample_size", "half_width", "sampling"), "an edit changes few items, which a sample may miss. Leave it out."
    )
    | dict.fromkeys(
        ("updater", "n_jobs", "checkpoint", "policy_version"),
        "improve does not plan per item. Leave it out.",
    )
    | {"sample_weight": "improve counts every item once. Leave it out, and score the edited tree with evaluate."}
)


def improve(
    X: Any,
    hierarchy: Hierarchy,
    *,
    kinds: Sequence[str] = ("move",),
    fixed: Iterable[Hashable] = (),
    fixed_levels: Iterable[int] = (),
    max_edits: int | None = None,
    max_loss: float | None = None,
    folds: int = 5,
    confidence: float = 0.95,
    time_limit: float | None = None,
    random_state: int = 0,
    **settings: Any,
) -> Improvement:
    """Search for edits that raise the score, with their exact gains and their gains on held-out items.

    In each round, edits are proposed where searchers get lost, each is scored exactly, and those with a gain are
    applied, the best first, until no edit has a gain. The search is then repeated without each fold of the items, whose
    gain is the held-out gain. At the time limit or KeyboardInterrupt, the search returns the best tree so far.

    Args:
        X: The features, as for `evaluate`.
        hierarchy: The tree.
        kinds: The kinds of edits to try: ``"move"`` an item or a cluster; and kinds that change the clusters:
            ``"merge"`` siblings, ``"split"`` a list of items, ``"remove"`` a node, ``"remove-level"``, ``"collapse"`` a
            cluster to a list of its items, ``"collapse-below"`` a size. The score may prefer one cluster to two similar
            ones, or a long list, even where users have reasons for more clusters or levels.
        fixed: Nodes, by number or label, that keep their parent and are neither emptied nor split.
        fixed_levels: Levels whose nodes are fixed; the level of the root is 0.
        max_edits: The largest number of edits.
        max_loss: The largest loss of value of any item, compared with the given tree.
        folds: The number of folds for the held-out gains; 0 for none.
        confidence: The level of the intervals.
        time_limit: The time limit in seconds; half of it is for the held-out gains.
        random_state: The seed of the folds.
        **settings: As for `evaluate`; a policy must look at most one step ahead.

    Raises:
        FeatureError: The features do not fit the items.
        ParameterError: A setting is invalid, or a node or level does not exist.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is in the wrong cluster
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 1.0], [0.0, 0.9]]
        >>> better = improve(X, tree, kinds=["move"], folds=2, delta=0.1)
        >>> [str(edit) for edit in better.edits], better.tree.to_children()
        (['move item 5 from node 6 to node 7'], [[0, 1], [5, 2, 3, 4], [6, 7]])
    """
    started = time.monotonic()
    _check_numbers(max_edits, max_loss, folds, confidence, time_limit, random_state)
    prepared, run, _ = opened(X, hierarchy, settings, _REFUSED)
    check_policy(prepared, run)
    limits = _limits(hierarchy, kinds, fixed, fixed_levels, max_edits, max_loss)
    before = score(prepared, run, Sampling())
    if hierarchy.root < hierarchy.n_items:
        return Improvement(hierarchy, hierarchy, (), before, before, HeldOutGain(), {}, "converged")
    scored = ScoredDraft(prepared)
    best = best_collapse(scored)
    upper_bounds = {} if best is None else {"collapse": best.score}
    upper_bounds["any"] = scored.reward(1)
    keys = row_keys(prepared.features)
    with shown_progress(run.progress, "improve", "trial") as bar:
        whole = started + time_limit if time_limit is not None else float("inf")
        half = started + time_limit / (2 if folds else 1) if time_limit is not None else whole
        search = Search(scored.copy(), prepared, replace(limits, deadline=half), keys, advance=bar.update)
        status = search.run()
        rest = Rest(confidence)
        if folds and status != "interrupted" and search.made:
            again = replace(limits, deadline=whole)
            bar.set_description("improve, held out")
            fold = fold_of(hierarchy.starts[: hierarchy.n_items], folds, random_state)
            ended = _measure(rest, Search(scored, prepared, again, keys, advance=bar.update), fold)
            status = ended if ended in ("time", "interrupted") else status
    edits = tuple(_told(hierarchy, one, rest) for one in search.made)
    tree = apply_edits(hierarchy, edits)
    after = score(prepared.on(tree), run, Sampling())
    return Improvement(hierarchy, tree, edits, before, after, rest.all(), upper_bounds, status)


def _measure(rest: Rest, base: Search, fold: Ints) -> str:
    """Search without each fold in turn, add the gains of its items, and return the status of the last search."""
    ended = ""
    try:
        for held_out in np.unique(fold).tolist():
            search = replace(base, scored=base.scored.copy(), voters=fold != held_out, made=[])
            ended = search.run()
            if ended == "interrupted":
                break
            held = np.flatnonzero(fold == held_out)
            rest.add(held, (search.scored.values - base.scored.values)[held], search.made)
            if ended == "time":
                break
    except KeyboardInterrupt:  # between two searches
        return "interrupted"
    return ended


def _told(hierarchy: Hierarchy, one: Made, rest: Rest) -> Edit:
    """Return the record of an edit."""
    kind, nodes, source, target = one.proposal
    order = np.argsort(one.rise, kind="stable")
    first, last = order[:_MOST_LISTED].tolist(), order[::-1][:_MOST_LISTED].tolist()
    edit = Edit(
        kind=kind,
        nodes=nodes,
        source=source,
        target=target,
        n_items=one.moved,
        gain=float(one.rise.sum()) / hierarchy.n_items,
        n_improved=int((one.rise > 0).sum()),
        n_worsened=int((one.rise < 0).sum()),
        most_improved=tuple((int(one.items[at]), float(one.rise[at])) for at in last if one.rise[at] > 0),
        most_worsened=tuple((int(one.items[at]), float(one.rise[at])) for at in first if one.rise[at] < 0),
        held_out=rest.of(one.proposal),
    )
    return replace(edit, names=names_of(edit, NodeNames(hierarchy, in_words=True)))


def _check_numbers(
    max_edits: object, max_loss: Any, folds: Any, confidence: Any, time_limit: Any, random_state: object
) -> None:
    if max_edits is not None:
        check_integer("max_edits", max_edits)
    check_integer("folds", folds, most=1_000_000)
    if folds == 1:
        raise ParameterError("folds: got 1; expected at least 2, or 0 for no held-out gains")
    check_integer("random_state", random_state)
    check_level("confidence", confidence)
    for name, value in (("max_loss", max_loss), ("time_limit", time_limit)):
        if value is not None and not (is_real(value) and value >= 0):
            raise unexpected(name, value, "a number of at least 0, or None for no limit")


def _limits(
    tree: Hierarchy,
    kinds: Sequence[str],
    fixed: Iterable[Hashable],
    fixed_levels: Iterable[int],
    max_edits: int | None,
    max_loss: float | None,
) -> Limits:
    """Return the limits of the search, in node numbers.

    Raises:
        ParameterError: A kind, node or level is unknown.
    """
    wanted = as_ids("kinds", [kinds] if isinstance(kinds, str) else kinds)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown or not wanted:
        raise ParameterError(
            Argument("kinds"),
            f": got {listed(unknown or wanted)}; expected some of {listed(KINDS, limit=len(KINDS))}",
        )
    nodes = {_node(tree, label) for label in as_ids("fixed", fixed)}
    for level in as_ids("fixed_levels", fixed_levels):
        if not (is_integer(level) and 0 <= level <= tree.levels.max()):
            raise ParameterError(
                Argument("fixed_levels"),
                f": got {brief(level)}; expected a level from 0 (the root) to {tree.levels.max()}",
            )
        nodes.update(np.flatnonzero(tree.levels == level).tolist())
    return Limits(tuple(str(kind) for kind in wanted), frozenset(nodes), max_edits, max_loss)


def _node(tree: Hierarchy, label: Hashable) -> int:
    """Return the node of a label or number.

    Raises:
        ParameterError: The node does not exist.
    """
    try:
        return tree.node(label)
    except HierarchyError as error:
        if is_integer(label) and "not unique" not in str(error) and 0 <= label < tree.n_nodes:
            return int(label)
        raise ParameterError(f"fixed: {error}") from None
