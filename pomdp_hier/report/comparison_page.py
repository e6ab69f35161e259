"""Comparison page of two trees, with icicles and a tanglegram, or of several versions of a tree, step by step."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pomdp_hier._arguments import Floats, check_integer, unexpected
from pomdp_hier._text import brief, counted
from pomdp_hier.analysis.comparison import APART, MEASURES, Comparison
from pomdp_hier.analysis.diagnosis import Counts, Diagnosis, require_diagnosis
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.membership import item_sums
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.measures.tree_distances import untangle
from pomdp_hier.report.elements import Html, element, filled, joined
from pomdp_hier.report.page import icicle_part, settings_lines, write_page
from pomdp_hier.report.page_data import Column, NodeCells, card, icicle_payload, node_names, number, percent, table
from pomdp_hier.report.regroup_page import Moved, moved, tanglegram


def write_comparison(
    comparison: Comparison,
    diagnoses: Mapping[str, Diagnosis],
    path: str | os.PathLike[str] | None = None,
    *,
    names: Sequence[Any] | Mapping[Any, Any] | None = None,
    title: str = "Which tree supports search better?",
    limit: int = 25,
    replace: bool = False,
) -> str:
    """Write the comparison of trees, a single HTML file that needs no network, and return its text.

    Two trees are ranked. Three or more are versions in the given order: a table over time, and each step in turn.

    Args:
        comparison: The result of `pomdp_hier.compare` for two or more trees.
        diagnoses: The result of `pomdp_hier.diagnose` for each, by the same names.
        path: The file to write; none by default.
        names: ``[N]`` names of the items, or names by id; the labels by default.
        title: The heading of the page.
        limit: The maximum number of rows per table.
        replace: Whether an existing file may be replaced.

    Raises:
        ParameterError: There is one tree, or the diagnoses are of others.
        PomdpHierError: The file exists, or cannot be written.

    Example:
        >>> from pomdp_hier import Hierarchy, compare, diagnose
        >>> trees = {"good": Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4),
        ...          "bad": Hierarchy.from_children([[0, 2], [1, 3], [4, 5]], 4)}
        >>> X = [[2.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 2.0]]
        >>> found = {name: diagnose(X, tree) for name, tree in trees.items()}
        >>> write_comparison(compare(X, trees), found)[:15]
        '<!doctype html>'
    """
    _check_given(comparison, diagnoses)
    check_integer("limit", limit)
    ranked = len(comparison.results) == 2
    shown = comparison.ranking if ranked else tuple(comparison.results)
    pages = _two_trees if ranked else _versions
    first = next(iter(comparison.results.values()))
    size = f"{_in_a_row(shown)}, over {counted(len(first.values), 'item')}"
    content = pages(comparison, diagnoses, names, limit)
    return write_page(path, replace, title, size, content, settings_lines(first.config))


def _in_a_row(names: Sequence[str]) -> str:
    """Return names as a reader lists them.

    Example:
        >>> _in_a_row(["one", "two", "three"])
        'one, two and three'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _two_trees(
    comparison: Comparison,
    diagnoses: Mapping[str, Diagnosis],
    names: Sequence[Any] | Mapping[Any, Any] | None,
    limit: int,
) -> Html:
    """Return the comparison of two trees: gains, losses, both icicles, and the trees face to face."""
    best, other = comparison.ranking
    gain = comparison.results[best].values - comparison.results[other].values
    trees = {name: diagnoses[name].hierarchy for name in (best, other)}
    counts = diagnoses[best].node_weights
    total = gain * counts[: len(gain)]
    note = f"the mean over the items below: blue for higher values in {best}, orange for higher values in {other}"
    payloads, cells = {}, {}
    for name, suffix in ((best, ""), (other, "-2")):
        payload, position = icicle_payload(diagnoses[name], *node_names(trees[name], names), gain, note)
        payloads[name] = icicle_part(payload, suffix, f" of {name}")
        cells[name] = NodeCells(trees[name], names, position, suffix)
    left, right = untangle(trees[other], trees[best])
    labels = [node_names(trees[name], names)[0] for name in (other, best)]
    return filled(
        "comparison.html",
        cards=_cards(comparison, best, other),
        sentences=element("ul", *(element("li", line) for line in comparison.sentences()), class_="reading"),
        one=best,
        other=other,
        gained=_items(gain, total, cells[best], limit, f"of higher value in {best}"),
        lost=_items(-gain, -total, cells[best], limit, f"of higher value in {other}"),
        clusters_gained=_clusters(trees[best], total, counts, cells[best], limit, "gain"),
        clusters_lost=_clusters(trees[best], -total, counts, cells[best], limit, "lose"),
        measures=_measures(comparison, (best, other)),
        apart=_apart(comparison, best, other),
        first=payloads[best],
        second=payloads[other],
        tanglegram=tanglegram(left, right, labels[0], labels[1], (other, best)),
        moved=_moved(moved(left, right, limit), trees[best], total, counts, cells[other], cells[best], (other, best)),
    )


def _versions(
    comparison: Comparison,
    diagnoses: Mapping[str, Diagnosis],
    names: Sequence[Any] | Mapping[Any, Any] | None,
    limit: int,
) -> Html:
    """Return the versions of a tree: a table over time, then what each step changed."""
    versions = comparison.versions()

    def changed(key: str) -> Callable[[Any], str]:
        return lambda row: "" if row[key] is None else number(row[key], 4, signed=True)

    rows = table(
        versions,
        [
            Column("version", lambda r: f"{r['version']}. {r['tree']}"),
            Column("HQS", lambda r: number(r["hqs"], 4), kind="n"),
            Column("change", changed("change"), kind="n"),
            Column("from", changed("low"), kind="n"),
            Column("to", changed("high"), kind="n"),
            Column("gain", lambda r: "" if r["n_better"] is None else f"{r['n_better']:,}", kind="n"),
            Column("lose", lambda r: "" if r["n_worse"] is None else f"{r['n_worse']:,}", kind="n"),
            Column("search length score", lambda r: number(r["search_length_score"], 4), kind="n"),
            Column("with labels", lambda r: number(r["search_length_score_with_labels"], 4), kind="n"),
        ],
        "The trees in the given order. “Change” is the score minus that of the version before, with the ends of its "
        f"{comparison.confidence:z.0%} interval; “gain” and “lose” count the items of higher and lower value.",
        "None.",
    )
    steps: list[Html] = []
    cells: dict[str, NodeCells] = {}
    for at, row in enumerate(versions):
        name, suffix = row["tree"], f"-{at + 1}" if at else ""
        before = versions[at - 1]["tree"] if at else None
        tree = diagnoses[name].hierarchy
        gain = None if before is None else comparison.results[name].values - comparison.results[before].values
        note = f"the mean over the items below: blue for higher values than in {before}, orange for lower ones"
        payload, position = icicle_payload(diagnoses[name], *node_names(tree, names), gain, note)
        cells[name] = NodeCells(tree, names, position, suffix)
        steps.append(element("h2", f"{at + 1}. {name}"))
        if before is not None and gain is not None:
            counts = diagnoses[name].node_weights
            total = gain * counts[: len(gain)]
            left, right = untangle(diagnoses[before].hierarchy, tree)
            pair = cells[before], cells[name]
            steps += [
                _moved(moved(left, right, limit), tree, total, counts, *pair, (before, name)),
                _items(gain, total, cells[name], limit, f"of higher value than in {before}"),
                _items(-gain, -total, cells[name], limit, f"of lower value than in {before}"),
            ]
        steps.append(icicle_part(payload, suffix, f" of {name}"))
    best = comparison.ranking[0]
    return filled(
        "versions.html",
        cards=joined(card(r["tree"], number(r["hqs"], 4), "HQS", main=r["tree"] == best) for r in versions),
        versions=rows,
        sentences=element("ul", *(element("li", line) for line in comparison.sentences()), class_="reading"),
        steps=joined(steps),
        measures=_measures(comparison, list(comparison.results)),
    )


def _check_given(comparison: object, diagnoses: Mapping[str, Diagnosis]) -> None:
    if not isinstance(comparison, Comparison) or len(comparison.results) < 2:
        got = "1 tree" if isinstance(comparison, Comparison) else brief(comparison)
        raise ParameterError(f"comparison: got {got}; expected a comparison of trees. Pass compare(X, trees).")
    if any(result.sample is not None for result in comparison.results.values()):
        raise ParameterError("comparison: got one of a sample; expected one of all items. Compare without sample_size.")
    if set(diagnoses) != set(comparison.results):
        raise unexpected("diagnoses", list(diagnoses), f"one of each of {brief(list(comparison.results))}")
    for name, diagnosis in diagnoses.items():
        require_diagnosis(diagnosis)
        if not np.array_equal(diagnosis.result.values, comparison.results[name].values):
            raise ParameterError(
                f"diagnoses: got values of {brief(name)} that differ from the comparison's; expected equal ones. "
                "Pass the settings of compare to diagnose."
            )


def _cards(comparison: Comparison, best: str, other: str) -> Html:
    pair = comparison.differences[0]
    sign = 1 if pair.one == best else -1
    low, high = sorted((sign * pair.low, sign * pair.high))
    gained, lost = (pair.n_better, pair.n_worse) if pair.one == best else (pair.n_worse, pair.n_better)
    return joined(
        [
            card(best, number(comparison.results[best].score, 4), "HQS", main=pair.distinguishable),
            card(other, number(comparison.results[other].score, 4), "HQS"),
            card(
                "difference",
                number(sign * pair.difference, 4, signed=True),
                f"{comparison.confidence:z.0%} interval {number(low, 4)} to {number(high, 4)}",
            ),
            card("gain", f"{gained:,}", f"items of higher value in {best}"),
            card("lose", f"{lost:,}", f"items of higher value in {other}"),
        ]
    )


def _items(gain: Floats, total: Floats, one: NodeCells, limit: int, what: str) -> Html:
    """Return the items with the largest gains, in the order of their weighted ones."""
    order = np.argsort(-total, kind="stable")[:limit]
    rows = [int(item) for item in order if total[item] >= 0.0005]
    return table(
        rows,
        [
            Column("item", lambda item: one(item)),
            *one.id_column(lambda item: item),
            Column("by", lambda item: number(float(gain[item])), kind="n"),
        ],
        f"Items {what}, and the difference.",
        f"No item is {what}.",
    )


def _clusters(tree: Hierarchy, gain: Floats, counts: Counts, cells: NodeCells, limit: int, what: str) -> Html:
    """Return the clusters of the better tree with the largest gain or loss of their items."""
    # Here as in the other tables, less than half of the last digit shown is not worth a row.
    inner = np.arange(tree.n_items, tree.n_nodes)
    inner = inner[inner != tree.root]
    total = item_sums(tree, gain, inner)
    order = np.argsort(-total, kind="stable")[:limit]
    rows = [(int(inner[k]), float(total[k])) for k in order if total[k] / tree.n_items >= 0.00005]
    return table(
        rows,
        [
            Column("cluster", lambda r: cells(r[0])),
            *cells.id_column(lambda r: r[0]),
            Column("items", lambda r: f"{int(tree.sizes[r[0]]):,}", kind="n"),
            Column("on the score", lambda r: number(r[1] / tree.n_items, 4), kind="n"),
            Column("per item", lambda r: number(r[1] / float(counts[r[0]])), kind="n"),
        ],
        f"Clusters whose items together {what}, and the amount. A cluster also counts in its ancestors.",
        "None.",
    )


def _moved(
    rows: Sequence[Moved],
    tree: Hierarchy,
    gain: Floats,
    counts: Counts,
    source: NodeCells,
    target: NodeCells,
    names: Sequence[str],
) -> Html:
    other, best = names

    def per_item(r: Moved) -> float:
        nodes = np.array(r.nodes)
        weight = float(counts[nodes].sum())
        return float(item_sums(tree, gain, nodes).sum()) / weight if weight else math.nan

    return table(
        rows,
        [
            Column("what", lambda r: target.some(r.nodes)),
            *target.id_column(lambda r: r.nodes[0]),
            Column(f"in {other}", lambda r: source(r.source)),
            Column(f"in {best}", lambda r: target(r.target)),
            Column("items", lambda r: f"{r.items:,}", kind="n"),
            Column("apart", lambda r: percent(r.apart), kind="n"),
            Column("gain per item", lambda r: number(per_item(r), signed=True), kind="n"),
        ],
        f"Nodes placed elsewhere in {best} than in {other}, by distance. “Apart” is the distance in leaf order, "
        "as a share "
        "of all items.",
        "Every common cluster has the same place in both trees.",
    )


def _measures(comparison: Comparison, names: Sequence[str]) -> Html:
    """Return the other measures of each tree, one column per tree."""
    rows = {row["tree"]: row for row in comparison.to_rows()}
    known = [key for key in MEASURES if key in rows[names[0]] and key not in (*APART, "hqs")]

    def figure(name: str) -> Column:
        return Column(name, lambda key: number(rows[name][key], 4), kind="n")

    return table(
        known,
        [
            Column("measure", lambda key: MEASURES[key].name),
            *map(figure, names),
            Column("what it means", lambda key: MEASURES[key].meaning),
        ],
        "Other measures of how well each tree fits the items.",
        "Not computed.",
    )


def _apart(comparison: Comparison, best: str, other: str) -> Html:
    """Return the distances between the trees."""
    figures = comparison.measures.get(other if comparison.reference == best else best, {})
    return table(
        [(MEASURES[key], figures[key]) for key in APART if key in figures],
        [
            Column("measure", lambda r: r[0].name),
            Column("value", lambda r: number(r[1], 4), kind="n"),
            Column("what it means", lambda r: r[0].meaning),
        ],
        "Distances between the trees.",
        "Not computed.",
    )
