"""`improve`: from a tree to a better one, by edits whose gains are exact, and checked on items that had no say."""

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer, check_level, is_integer, is_real, unexpected
from pomdp_hier._arrays import Ints
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import brief, listed
from pomdp_hier.analysis.duplicates import row_keys
from pomdp_hier.errors import Argument, HierarchyError, ParameterError
from pomdp_hier.hierarchy.arguments import as_ids
from pomdp_hier.hierarchy.node_names import NodeNames
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import opened
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score
from pomdp_hier.improvement.collapse import best_collapse
from pomdp_hier.improvement.edits import KINDS, apply_edits
from pomdp_hier.improvement.held_out import Rest, fold_of
from pomdp_hier.improvement.incremental import ScoredDraft, check_policy
from pomdp_hier.improvement.result import Edit, HeldOutGain, Improvement, names_of
from pomdp_hier.improvement.search import Limits, Made, Search

_MOST_LISTED = 5
_REFUSED = dict.fromkeys(
    ("sample_size", "half_width", "sampling"), "an edit changes few items, which a sample may miss; leave it out"
) | dict.fromkeys(("updater", "n_jobs", "checkpoint", "policy_version"), "improve plans no item's POMDP; leave it out")


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
    """Return a tree with a higher score, the edits that make it, and their gains on items that did not choose them.

    A patient search: where searchers get lost in the tree as it is, edits are proposed, each is scored exactly, those
    that gain are made, the best first, and so on until nothing gains. Then the search is done again without a part of
    the items, in turn, and what those gain is the held-out gain. The search ends at any moment, by the time limit or
    KeyboardInterrupt, with the best tree so far.

    Args:
        X: The features, as for `evaluate`.
        hierarchy: The tree.
        kinds: Which kinds of edits to try: ``"move"`` an item or a cluster; and those that change what clusters there
            are, which have to be named: ``"merge"`` siblings, ``"split"`` a list of items, ``"remove"`` a node,
            ``"remove-level"``, ``"collapse"`` a cluster to a list of its items, ``"collapse-below"`` a size. The
            score may prefer two like shelves as one, or a long list, also where people have reasons for two, or for
            levels.
        fixed: Nodes, by number or label, that keep their parent and are not emptied or split.
        fixed_levels: Levels all of whose nodes are fixed; the root's is 0.
        max_edits: How many edits at most.
        max_loss: How much less any one item's search may be worth at the end than in the tree that was given.
        folds: Into how many parts to deal the items for the held-out gains; 0 for no such gains.
        confidence: The level of their intervals.
        time_limit: Seconds after which to return what was found; half of them go to the held-out gains.
        random_state: The seed by which items are dealt out.
        **settings: As for `evaluate`; policies that look further than one step are refused.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For a setting that cannot, a node that is not there, or limits that leave nothing to change.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1, 5], [2, 3, 4], [6, 7]], 6)  # item 5 is with the wrong ones
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
    ceilings = {} if best is None else {"collapse": best.score}
    ceilings["any"] = scored.worth(1)
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
    return Improvement(hierarchy, tree, edits, before, after, rest.all(), ceilings, status)


def _measure(rest: Rest, base: Search, fold: Ints) -> str:
    """Search without each fold in turn, count what its items gain, and return why the last search ended."""
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
    """Return an edit with what it does."""
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
        raise ParameterError(
            "folds is 1, which leaves no items to choose by; give 2 or more, or 0 for no held-out gains"
        )
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
    """Return what may change, by the tree's numbers.

    Raises:
        ParameterError: For an unknown kind, node or level.
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
                f": got {brief(level)}; the tree has the levels 0 (the root's) to {tree.levels.max()}",
            )
        nodes.update(np.flatnonzero(tree.levels == level).tolist())
    return Limits(tuple(str(kind) for kind in wanted), frozenset(nodes), max_edits, max_loss)


def _node(tree: Hierarchy, label: Hashable) -> int:
    """Return the node of a label, or else of a number.

    Raises:
        ParameterError: There is none.
    """
    try:
        return tree.node(label)
    except HierarchyError as error:
        if is_integer(label) and "not unique" not in str(error) and 0 <= label < tree.n_nodes:
            return int(label)
        raise ParameterError(f"fixed: {error}") from None
