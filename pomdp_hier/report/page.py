"""Report page of one tree: misfiled items, changes, score, worst nodes, confusions, icicle and lost items.

The page is self-contained, with style, script and figures. The layout is in the folder ``templates``, the content is
built here, and `elements` turns text into markup.
"""

import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_integer, check_kind
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief, counted
from pomdp_hier.analysis.baselines import Appraisal
from pomdp_hier.analysis.diagnosis import Diagnosis, require_diagnosis
from pomdp_hier.analysis.moves import Move
from pomdp_hier.errors import ParameterError
from pomdp_hier.filing.result import MisfiledItems
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.search_length import PEOPLE
from pomdp_hier.improvement.result import Improvement
from pomdp_hier.report.elements import Html, asset, element, filled, joined, script_data
from pomdp_hier.report.page_data import (
    Column,
    Destination,
    NodeCells,
    card,
    destinations,
    edits_section,
    icicle_payload,
    misfiled_section,
    moves_section,
    node_names,
    number,
    percent,
    table,
)
from pomdp_hier.searches.choices import require_searches
from pomdp_hier.searches.comparison import SUGGESTIONS, Group, PredictedObserved
from pomdp_hier.searches.fit import DeltaFit, Gain, PartFit

_NOTHING = Html("")


def write_report(
    diagnosis: Diagnosis,
    path: str | os.PathLike[str] | None = None,
    *,
    appraisal: Appraisal | None = None,
    misfiled: MisfiledItems | None = None,
    moves: Sequence[Move] = (),
    improvement: Improvement | None = None,
    searches: PredictedObserved | None = None,
    delta_fit: DeltaFit | None = None,
    names: Sequence[Any] | Mapping[Any, Any] | None = None,
    title: str = "How well does this hierarchy support search?",
    limit: int = 25,
    replace: bool = False,
) -> str:
    """Write the report, a single HTML file that needs no network, and return its text.

    Args:
        diagnosis: The result of `pomdp_hier.diagnose`.
        path: The file to write; none by default.
        appraisal: The result of `pomdp_hier.appraise`, for the baselines.
        misfiled: The result of `pomdp_hier.find_misfiled` for this tree: its items come first on the page.
        moves: The result of `pomdp_hier.analysis.suggest_moves`.
        improvement: The result of `pomdp_hier.improve` for this tree: its edits are shown in place of moves.
        searches: The result of `pomdp_hier.predicted_and_observed` for this tree.
        delta_fit: The result of `pomdp_hier.fit_delta` for this tree.
        names: ``[N]`` names of the items, or ``[n_nodes]`` of all nodes, or names by id; the hierarchy's labels by
            default.
        title: The heading of the page.
        limit: The maximum number of rows per table.
        replace: Whether an existing file may be replaced.

    Raises:
        ParameterError: The number of names is not that of the items or nodes, or another argument has a wrong type.
        PomdpHierError: The file exists, or cannot be written.

    Example:
        >>> from pomdp_hier import Hierarchy, diagnose
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> write_report(diagnose([[2, 0], [1, 0], [0, 1], [0, 2]], tree))[:15]
        '<!doctype html>'
    """
    require_diagnosis(diagnosis)
    check_integer("limit", limit)
    _check_given(diagnosis, appraisal, misfiled, moves, improvement)
    _check_searches(diagnosis, searches, delta_fit)
    tree = diagnosis.hierarchy
    payload, position = icicle_payload(diagnosis, *node_names(tree, names))
    cells = NodeCells(tree, names, position)
    sizes = (counted(tree.n_items, "item"), counted(int(tree.is_cluster.sum()), "cluster"))
    content = filled(
        "hierarchy.html",
        misfiled=_NOTHING if misfiled is None else misfiled_section(misfiled, cells, limit),
        cards=_cards(diagnosis, appraisal),
        baselines=_NOTHING if appraisal is None else _baselines(appraisal),
        edits=_NOTHING if improvement is None else edits_section(improvement, cells, limit),
        moves=moves_section(moves, cells, limit) if moves else _NOTHING,
        searches=searches_section(searches, delta_fit, cells, limit),
        worst_nodes=_worst(diagnosis, cells, limit),
        confusions=_confused(diagnosis, cells, limit),
        icicle=icicle_part(payload),
        histogram=_histogram(diagnosis),
        lost_items=_lost(diagnosis, cells, limit),
    )
    size = f"{sizes[0]} in {sizes[1]} on {counted(tree.height + 1, 'level')}"
    return write_page(path, replace, title, size, content, settings_lines(diagnosis.result.config, appraisal))


def write_page(
    path: str | os.PathLike[str] | None, replace: bool, title: str, size: str, content: Html, settings: Iterable[str]
) -> str:
    """Return a whole page, after writing it to the path if one is given."""
    look = {"style": asset("page.css"), "script": asset("icicle.js")}
    text = filled("page.html", title=title, size=size, content=content, settings=joined(settings, Html("\n")), **look)
    if path is not None:
        write_file(path, text, replace=replace)
    return text


def _check_given(
    diagnosis: Diagnosis, appraisal: object, misfiled: object, moves: Sequence[Move], improvement: Improvement | None
) -> None:
    """Raise if a result has a wrong type or belongs to another tree."""
    check_kind("appraisal", appraisal, Appraisal | None, "the result of appraise(X, hierarchy)")
    check_kind("misfiled", misfiled, MisfiledItems | None, "the result of find_misfiled(X, hierarchy)")
    if isinstance(misfiled, MisfiledItems):
        _check_same("misfiled", misfiled.hierarchy, diagnosis.hierarchy, "find_misfiled")
    if not isinstance(moves, Sequence) or not all(isinstance(move, Move) for move in moves):
        raise ParameterError(f"moves: got {brief(moves)}; expected the result of suggest_moves(X, diagnosis).")
    if improvement is None:
        return
    check_kind("improvement", improvement, Improvement, "the result of improve(X, hierarchy)")
    if len(moves):
        raise ParameterError("moves, improvement: got both; expected at most one.")
    _check_same("improvement", improvement.hierarchy, diagnosis.hierarchy, "improve")


def _check_same(name: str, tree: Hierarchy, diagnosed: Hierarchy, function: str) -> None:
    """Raise if a result is of another tree than that of the diagnosis."""
    if not np.array_equal(tree.parent, diagnosed.parent):
        raise ParameterError(
            f"{name}: got a tree of {counted(tree.n_nodes, 'node')}; expected that of the diagnosis, of "
            f"{counted(diagnosed.n_nodes, 'node')}. Call {function} with the same tree."
        )


def _check_searches(diagnosis: Diagnosis, searches: object, delta_fit: object) -> None:
    """Raise if a result on recorded searches has a wrong type or belongs to another tree."""
    check_kind(
        "searches", searches, PredictedObserved | None, "the result of predicted_and_observed(X, hierarchy, ...)"
    )
    check_kind("delta_fit", delta_fit, DeltaFit | None, "the result of fit_delta(X, hierarchy, searches)")
    if isinstance(searches, PredictedObserved):
        require_searches(searches.searches, diagnosis.hierarchy)
    if isinstance(delta_fit, DeltaFit):
        require_searches(delta_fit.choices.searches, diagnosis.hierarchy)


def icicle_part(payload: Mapping[str, Any], suffix: str = "", of: str = "") -> Html:
    """Return an icicle with its controls; ``suffix`` and ``of`` name a second one on the page."""
    left_out = " ".join(payload["left_out"])
    return filled("icicle.html", n=suffix, of=of, left_out=left_out, payload=script_data(payload))


def _cards(diagnosis: Diagnosis, appraisal: Appraisal | None) -> Html:
    result = diagnosis.result
    lost = int(diagnosis.lost.sum())
    cards = [card("HQS", number(result.score, 4), "mean value of a search, −1 to 1", main=True)]
    if appraisal is not None:
        spread = "" if math.isnan(appraisal.shuffled_sd) else f", SD {number(appraisal.shuffled_sd)}"
        cards += [
            card("without the tree", number(appraisal.no_tree), "searching everything at once"),
            card(
                "shuffled items", number(appraisal.shuffled_mean), f"{counted(appraisal.n_shuffles, 'shuffle')}{spread}"
            ),
            card("hindsight", number(appraisal.hindsight), "stopping at the best node"),
            card("adjusted", number(appraisal.adjusted), "0 random baseline, 1 perfect guidance; rank trees by HQS"),
        ]
        lengths = appraisal.search_length
        looks = (
            f"{lengths.mean_length:z,.0f} items looked at by searchers who may go back, in a list "
            f"{lengths.list_length:z,.0f}"
        )
        cards += [
            card("search length score", number(appraisal.search_length_score, 4), looks),
            card(
                "… with labels", number(appraisal.search_length_score_with_labels, 4), "the same, with reading charged"
            ),
        ]
    share = percent(lost / len(result.values))
    cards += [
        card("first branch correct", percent(diagnosis.first_branch_accuracy), "of the searches"),
        card("items lost", f"{lost:,}", f"{share}: the most similar children lead elsewhere"),
        card(
            "stopped at the root", percent(result.mean((result.stop_levels == 0).astype(np.float64))), "of the searches"
        ),
    ]
    return joined(cards)


def _at(value: float) -> str:
    """Return the position of a value between -1 and 1 on a scale of the page's width."""
    return f"{2 + 48 * (min(1.0, max(-1.0, value)) + 1):z.2f}%"


_MEANING = (
    "Hindsight: searchers follow the similarities and stop at the best node. "
    "Perfect guidance: they enter the correct child each time, down to the leaf clusters. " + PEOPLE
)


def _baselines(appraisal: Appraisal) -> Html:
    """Return the score and its baselines on a line from -1 to 1, with an interpretation."""
    marks = [
        ("shuffled", appraisal.shuffled_mean, "bad"),
        ("no tree", appraisal.no_tree, "soft"),
        ("HQS", appraisal.score, "good"),
        ("hindsight", appraisal.hindsight, None),
        ("perfect guidance", appraisal.perfect_guidance, None),
    ]
    known = sorted((mark for mark in marks if not math.isnan(mark[1])), key=lambda mark: mark[1])
    texts = [f"{name} {number(value)}" for name, value, _ in known]
    spans = [_span(value, text) for (_, value, _), text in zip(known, texts, strict=True)]
    drawn, key = [], []
    # Above, below, and further off where the line is full there; narrow screens show the key instead.
    for (name, value, kind), text, (anchor, *_), lane in zip(known, texts, spans, _lanes(spans), strict=True):
        x, (y, tick) = _at(value), ((36, 44), (76, 60), (16, 24), (96, 80), (116, 100))[lane]
        main = name == "HQS"
        drawn += [
            element("line", x1=x, y1=52, x2=x, y2=tick, stroke="currentColor", class_=kind),
            element("circle", cx=x, cy=52, r=7 if main else 4.5, fill="currentColor", class_=kind),
            element(
                "text", text, x=x, y=y, fill="currentColor", text_anchor=anchor, font_size=13,
                font_weight=700 if main else None, class_=kind,
            ),
        ]  # fmt: skip
        key.append(element("li", element("span", "●", class_=kind), " ", text))
    ticks = [element("line", x1=_at(t), y1=48, x2=_at(t), y2=56, class_="axis") for t in np.linspace(-1, 1, 9).tolist()]
    sentences = [element("li", sentence) for sentence in appraisal.sentences()]
    return filled(
        "baselines.html",
        ticks=joined(ticks),
        marks=joined(drawn),
        key=joined(key),
        meaning=_MEANING,
        sentences=joined(sentences),
    )


def _span(value: float, text: str) -> tuple[str, float, float]:
    """Return the anchor of a label, and its start and end as shares of a narrow screen."""
    place, width = (value + 1) / 2, 0.0105 * len(text)
    if place > 0.93:
        return "end", place - width, place
    return ("start", place, place + width) if place < 0.07 else ("middle", place - width / 2, place + width / 2)


def _lanes(spans: Sequence[tuple[str, float, float]]) -> list[int]:
    """Return a lane for each label, without overlaps, from spans in ascending order."""
    ends = [-math.inf] * len(spans)
    lanes = []
    for _, left, right in spans:
        lane = next(k for k, end in enumerate(ends) if end <= left)
        ends[lane] = right
        lanes.append(lane)
    return lanes


def _histogram(diagnosis: Diagnosis) -> Html:
    counts, edges = np.histogram(np.clip(diagnosis.result.values, -1, 1), bins=40, range=(-1, 1))
    top = max(int(counts.max()), 1)
    bars = []
    for count, left in zip(counts.tolist(), edges[:-1].tolist(), strict=True):
        height = round(90 * count / top, 1)
        kind = "bad" if left < -0.025 else "none" if left < 0.025 else "good"
        told = element("title", f"{number(left, 2)} to {number(left + 0.05, 2)}: {counted(count, 'item')}")
        bars.append(
            element(
                "rect", told, x=_at(left), y=round(100 - height, 1), width="2.2%", height=height,
                fill="currentColor", class_=kind,
            )
        )  # fmt: skip
    look = {"text_anchor": "middle", "font_size": 13, "fill": "currentColor", "class_": "soft"}
    ticks = [element("text", number(t, 1), x=_at(t), y=118, **look) for t in (-1, -0.5, 0, 0.5, 1)]
    return filled("histogram.html", bars=joined(bars), ticks=joined(ticks), most=counted(top, "item"))


def _worst(diagnosis: Diagnosis, cells: NodeCells, limit: int) -> Html:
    return table(
        # Costs below half of the last digit are left out.
        [r for r in diagnosis.worst_nodes(limit) if r.wrong_branch_cost >= 0.00005],
        [
            Column("node", lambda r: cells(r.node)),
            *cells.id_column(lambda r: r.node),
            Column("items", lambda r: f"{r.n_items:,}", kind="n"),
            Column("searchers arriving", lambda r: percent(r.arrival_rate), kind="n"),
            Column("correct child most similar", lambda r: percent(r.branch_accuracy), kind="n"),
            Column("stop here", lambda r: percent(r.stop_rate), kind="n"),
            Column("wrong-branch cost", lambda r: number(r.wrong_branch_cost, 4), kind="n"),
            Column("early-stop cost", lambda r: number(r.early_stop_cost, 4), kind="n"),
        ],
        "Nodes, ordered by how much the score loses there by wrong branches. “Searchers arriving” is the share of the "
        "searchers for the items below. The two costs of all nodes sum to perfect guidance minus the score.",
        "No searcher enters a wrong branch.",
    )


def _confused(diagnosis: Diagnosis, cells: NodeCells, limit: int) -> Html:
    return table(
        destinations(diagnosis, limit),
        [
            Column("taken for", lambda r: cells(r.node)),
            *cells.id_column(lambda r: r.node),
            Column("at", lambda r: cells(r.parent)),
            Column("what is taken for it", lambda r: _sources(diagnosis, cells, r)),
            Column("such as", lambda r: cells.some(r.examples, len(r.examples))),
            Column("items", lambda r: f"{r.n_items:,}", kind="n"),
            Column("searchers lost", lambda r: number(r.expected_errors, 1), kind="n"),
            Column("cost", lambda r: number(r.cost, 4), kind="n"),
        ],
        "Where searchers go by mistake: the items that are more similar to a sibling than to their own cluster, by "
        "sibling, and the cost.",
        "None.",
    )


def _sources(diagnosis: Diagnosis, cells: NodeCells, found: Destination) -> str:
    """Return the siblings whose items are taken for a cluster, with numbers and shares."""
    sizes, limit = diagnosis.hierarchy.sizes, 3
    parts = [
        joined([f"{items:,} of ", cells(child), f" ({percent(items / int(sizes[child]))})"])
        for child, items in found.sources[:limit]
    ]
    more = found.sources[limit:]
    rest = [f"{sum(items for _, items in more):,} of {counted(len(more), 'other')}"] if more else []
    return joined([*parts, *rest], ", ") if parts else "no item, but searchers stray here"


def _lost(diagnosis: Diagnosis, cells: NodeCells, limit: int) -> Html:
    total = int(diagnosis.lost.sum())
    shown = min(total, limit)
    rows = table(
        diagnosis.lost_items(limit),
        [
            Column("item", lambda r: cells(r.item)),
            *cells.id_column(lambda r: r.item),
            Column("value", lambda r: number(r.value), kind="n"),
            Column("left path at", lambda r: cells(r.left_path_at)),
            Column("level", lambda r: f"{r.level}", kind="n"),
            Column("wrong branch", lambda r: cells(r.wrong_child)),
            Column("ends at", lambda r: cells(r.ends_at)),
            *(
                []
                if diagnosis.result.sample_weight is None
                else [Column("cost", lambda r: number(r.cost, 4), kind="n")]
            ),
        ],
        f"The {f'{shown:,} worst of {total:,}' if shown < total else f'{total:,}'} lost items: a searcher who "
        "always enters the most similar child ends elsewhere.",
        "No item is lost.",
    )
    return rows if not shown else element("details", element("summary", f"{counted(shown, 'item')}, one by one"), rows)


def settings_lines(config: Mapping[str, Any], appraisal: Appraisal | None = None) -> Iterable[str]:
    """Return the settings and versions behind the figures of a page, one per line."""
    settings: dict[str, Any] = dict(config)
    if appraisal is not None:
        settings |= {"shuffles": appraisal.n_shuffles, "random_state": appraisal.random_state}
    settings |= {name: version(name) for name in ("pomdp-hier", "numpy", "scipy")}
    settings["python"] = platform.python_version()
    return (f"{key}: {value}" for key, value in settings.items())


def searches_section(shown: PredictedObserved | None, fit: DeltaFit | None, cells: NodeCells, limit: int) -> Html:
    """Return the section; nothing without a fit and a comparison."""
    if shown is None and fit is None:
        return Html("")
    sentences = [*(fit.sentences() if fit is not None else []), *(shown.sentences() if shown is not None else [])]
    parts = [element("ul", *(element("li", line) for line in dict.fromkeys(sentences)))]
    if fit is not None:
        parts.append(_fits(fit.parts))
    if shown is not None:
        parts += [
            _scatter(shown.children),
            element(
                "p",
                "Share of searchers who enter a node where it is the correct child, predicted (across) and observed "
                "(up), with intervals. They are equal on the line.",
                class_="soft",
            ),
            _misfits(shown.children, "Nodes", cells, limit),
            _misfits(shown.items, "Items", cells, limit),
        ]
    return filled("edits.html", heading="Recorded searches", sentences=parts[0], table=joined(parts[1:]))


def _fits(parts: Sequence[PartFit]) -> Html:
    def gain(found: Gain) -> str:
        return f"{number(found.value)} ({number(found.low)} to {number(found.high)})"

    return table(
        list(parts),
        [
            Column("choices", lambda r: r.part),
            Column("number", lambda r: f"{r.n_choices:,}", kind="n"),
            Column("items", lambda r: f"{r.n_items:,}", kind="n"),
            Column("delta", lambda r: number(r.delta, 4), kind="n"),
            Column("interval", lambda r: f"{number(r.interval[0], 4)} to {number(r.interval[1], 4)}", kind="n"),
            Column("gain over uniform", lambda r: gain(r.over_uniform), kind="n"),
            Column("gain over sizes", lambda r: gain(r.over_sizes), kind="n"),
        ],
        "The temperature that fits all choices, and each part of them alone. Gains are in nats per choice, on held-out "
        "items. “First” and “repeated” are the first and later choices of a search at a node.",
        "No choices.",
    )


def _misfits(group: Group, what: str, cells: NodeCells, limit: int) -> Html:
    order = [at for at in np.lexsort((-group.n_choices, -group.misfits)).tolist() if group.suggestions[at]]

    def child(nodes: object, at: int) -> Html:
        node = int(nodes[at])  # type: ignore[index]
        return cells(node) if node >= 0 else Html("–")

    return table(
        order[:limit],
        [
            Column(what.lower()[:-1], lambda at: cells(int(group.keys[at]))),
            *cells.id_column(lambda at: int(group.keys[at])),
            Column("searches", lambda at: f"{int(group.n_choices[at]):,}", kind="n"),
            Column("predicted", lambda at: percent(float(group.predicted[at])), kind="n"),
            Column("observed", lambda at: percent(float(group.observed[at])), kind="n"),
            Column(
                "interval", lambda at: f"{percent(float(group.low[at]))} to {percent(float(group.high[at]))}", kind="n"
            ),
            Column("reliability", lambda at: number(float(group.reliability[at]), 2), kind="n"),
            Column("correct child", lambda at: child(group.correct_child, at)),
            Column("most often instead", lambda at: child(group.wrong_child, at)),
            Column("suggestion", lambda at: group.suggestions[at]),
        ],
        f"{what} where people and guidance part, the largest misfit first: {counted(len(order), 'row')}. "
        + " ".join(f"“{code.capitalize()}”: {words}." for code, words in SUGGESTIONS.items()),
        f"{what}: no misfit beyond the intervals.",
    )


def _scatter(group: Group) -> Html:
    """Return the observed over the predicted shares, one point with its interval per row."""
    most = max(1, int(group.n_choices.max(initial=1)))

    def x(share: float) -> float:
        return round(50 + 380 * share, 1)

    def y(share: float) -> float:
        return round(400 - 380 * share, 1)

    look = {"fill": "currentColor", "class_": "soft", "font_size": 13}
    drawn = [element("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), stroke="currentColor", class_="soft")]
    for share in (0.0, 0.5, 1.0):
        drawn += [
            element("text", f"{share:z.0%}", x=x(share), y=418, text_anchor="middle", **look),
            element("text", f"{share:z.0%}", x=42, y=y(share) + 4, text_anchor="end", **look),
        ]
    for at in range(len(group.keys)):
        kind = "bad" if group.suggestions[at] else "good"
        where = x(float(group.predicted[at]))
        told = element(
            "title",
            f"predicted {percent(float(group.predicted[at]))}, observed {percent(float(group.observed[at]))} of "
            f"{int(group.n_choices[at]):,}",
        )
        drawn += [
            element(
                "line", x1=where, y1=y(float(group.low[at])), x2=where, y2=y(float(group.high[at])),
                stroke="currentColor", class_=kind, stroke_opacity=0.5,
            ),
            element(
                "circle", told, cx=where, cy=y(float(group.observed[at])),
                r=round(2 + 5 * (int(group.n_choices[at]) / most) ** 0.5, 1), fill="currentColor", class_=kind,
            ),
        ]  # fmt: skip
    return element(
        "svg",
        *drawn,
        viewBox="0 0 450 425",
        width=450,
        role="img",
        style="max-width:100%",
        aria_label="Observed over predicted share of the correct child, by correct child",
    )
