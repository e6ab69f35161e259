"""The one-file report: score, baselines, icicle, worst nodes, lost items, confusions and suggestions, in plain HTML.

The page loads nothing: style, script and figures stand in it. What it looks like is in the folder ``templates``, what
goes where is said here, and `escaping` is the only way from text to markup.
"""

import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pomdp_hier._messages import brief, counted
from pomdp_hier.appraisal.baselines import Appraisal
from pomdp_hier.appraisal.diagnosis import Diagnosis, confusions, lost_items, require_diagnosis, worst_nodes
from pomdp_hier.appraisal.moves import Move
from pomdp_hier.errors import ParameterError
from pomdp_hier.files.writing import write_file
from pomdp_hier.hierarchy.wording import NodeNames
from pomdp_hier.hqs.settings import check_whole
from pomdp_hier.report.canvas import BLUE, GREY, INK, ORANGE
from pomdp_hier.report.escaping import Html, asset, element, filled, joined, script_data
from pomdp_hier.report.payload import icicle_payload
from pomdp_hier.visible import shortened

__all__ = ["report_html", "write_report"]

_SOFT = "#5b6570"
_LINE = "#a9b2bb"
_NOTHING = Html("")
_LONGEST = 48  # characters of a name in a table


def write_report(
    diagnosis: Diagnosis,
    path: str | os.PathLike[str],
    *,
    appraisal: Appraisal | None = None,
    moves: Sequence[Move] = (),
    names: Sequence[Any] | Mapping[Any, Any] | None = None,
    title: str = "How well does this hierarchy support search?",
    most: int = 25,
    replace: bool = False,
) -> Path:
    """Return the path of the report, a single HTML file that needs no network.

    Args:
        diagnosis: What `pomdp_hier.appraisal.diagnose` returned.
        path: Where to write it.
        appraisal: What `pomdp_hier.appraisal.appraise` returned, for the baselines.
        moves: What `pomdp_hier.appraisal.suggest_moves` returned.
        names: ``[N]`` names of the items, or ``[n_nodes]`` of all nodes, or names by id; the hierarchy's labels by
            default.
        title: The page's heading.
        most: How many rows each table has at most.
        replace: Whether an existing file may be replaced.

    Raises:
        ParameterError: The names are not as many as the items or nodes, or another argument is of another kind.
        PomdpHierError: The file exists, or cannot be written.

    Example:
        >>> from pomdp_hier.hqs import PAPER_TABLE, load_amazon12
        >>> from pomdp_hier.appraisal.diagnosis import diagnose
        >>> shop = load_amazon12()
        >>> found = diagnose(shop.similarity, shop.hierarchies["B"], similarity="precomputed", **PAPER_TABLE)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(found, Path(folder) / "b.html", names=shop.names).stat().st_size > 10_000
        True
    """
    text = report_html(diagnosis, appraisal=appraisal, moves=moves, names=names, title=title, most=most)
    write_file(path, text, replace=replace)
    return Path(path)


def report_html(
    diagnosis: Diagnosis,
    *,
    appraisal: Appraisal | None = None,
    moves: Sequence[Move] = (),
    names: Sequence[Any] | Mapping[Any, Any] | None = None,
    title: str = "How well does this hierarchy support search?",
    most: int = 25,
) -> str:
    """Return the report as a string; see `write_report` for the arguments.

    Raises:
        ParameterError: The names are not as many as the items or nodes, or another argument is of another kind.

    Example:
        >>> from pomdp_hier import Hierarchy, diagnose
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> report_html(diagnose([[2, 0], [1, 0], [0, 1], [0, 2]], tree))[:15]
        '<!doctype html>'
    """
    require_diagnosis(diagnosis)
    check_whole("most", most)
    if appraisal is not None and not isinstance(appraisal, Appraisal):
        raise ParameterError(f"appraisal: got a {type(appraisal).__name__}; give what appraise(X, hierarchy) returns")
    if not all(isinstance(move, Move) for move in moves):
        raise ParameterError(f"moves: {brief(moves)}; give what suggest_moves(X, diagnosis) returns")
    tree = diagnosis.hierarchy
    short = NodeNames(tree, names, last_part=True, in_words=True)
    payload, position = icicle_payload(diagnosis, short)
    tables = _Tables(diagnosis, short, NodeNames(tree, names, in_words=True), position, most)
    sizes = (counted(tree.n_items, "item"), counted(int(tree.is_cluster.sum()), "cluster"))
    return filled(
        "page.html",
        title=title,
        style=asset("page.css"),
        script=asset("icicle.js"),
        size=f"{sizes[0]} in {sizes[1]} on {counted(tree.height + 1, 'level')}",
        cards=_cards(diagnosis, appraisal),
        baselines=_NOTHING if appraisal is None else _baselines(appraisal),
        histogram=_histogram(diagnosis),
        left_out=" ".join(payload["left_out"]),
        worst_nodes=tables.worst(),
        confusions=tables.confused(),
        lost_items=tables.lost(),
        moves=filled("moves.html", table=tables.suggested(moves)) if moves else _NOTHING,
        settings=joined(_settings(diagnosis, appraisal), Html("\n")),
        payload=script_data(payload),
    )


def _number(value: float, digits: int = 3) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def _cards(diagnosis: Diagnosis, appraisal: Appraisal | None) -> Html:
    result = diagnosis.result
    lost = int(diagnosis.lost.sum())
    cards = [_card("HQS", _number(result.score, 4), "mean worth of a search, −1 to 1", main=True)]
    if appraisal is not None:
        spread = "" if math.isnan(appraisal.shuffled_sd) else f", SD {_number(appraisal.shuffled_sd)}"
        cards += [
            _card("without the tree", _number(appraisal.search_root), "searching everything at once"),
            _card("shuffled items", _number(appraisal.shuffled), f"{counted(appraisal.n_shuffles, 'shuffle')}{spread}"),
            _card("ceiling", _number(appraisal.ceiling), "the best stop in hindsight"),
            _card("adjusted", _number(appraisal.adjusted), "0 chance, 1 perfect; rank trees by HQS, not by this"),
        ]
    share = _percent(lost / len(result.values))
    cards += [
        _card("first branch right", _percent(diagnosis.first_branch), "of the items"),
        _card("items lost", f"{lost:,}", f"{share}: the most alike children lead elsewhere"),
        _card("stay at the root", _percent(float((result.stop_levels == 0).mean())), "of the searches"),
    ]
    return joined(cards)


def _card(name: str, value: str, note: str, main: bool = False) -> Html:
    return element("div", name, element("b", value), element("span", note), class_="card main" if main else "card")


def _at(value: float) -> str:
    """Return where a value between -1 and 1 stands on a scale that fills the page's width."""
    return f"{2 + 48 * (min(1.0, max(-1.0, value)) + 1):.2f}%"


def _baselines(appraisal: Appraisal) -> Html:
    """Return the score on the line from -1 to 1 beside what it is held against, and what that says."""
    marks = [
        ("shuffled", appraisal.shuffled, ORANGE),
        ("no tree", appraisal.search_root, _SOFT),
        ("HQS", appraisal.score, BLUE),
        ("ceiling", appraisal.ceiling, INK),
        ("perfect", appraisal.perfect, INK),
    ]
    known = sorted((mark for mark in marks if not math.isnan(mark[1])), key=lambda mark: mark[1])
    texts = [f"{name} {_number(value)}" for name, value, _ in known]
    spans = [_span(value, text) for (_, value, _), text in zip(known, texts, strict=True)]
    drawn, key = [], []
    # Above, below, and further off where the line is full there; narrow screens show the key instead.
    for (name, value, colour), text, (anchor, *_), lane in zip(known, texts, spans, _lanes(spans), strict=True):
        x, (y, tick) = _at(value), ((36, 44), (76, 60), (16, 24), (96, 80), (116, 100))[lane]
        main = name == "HQS"
        drawn += [
            element("line", x1=x, y1=52, x2=x, y2=tick, stroke=colour),
            element("circle", cx=x, cy=52, r=7 if main else 4.5, fill=colour),
            element(
                "text", text, x=x, y=y, fill=colour, text_anchor=anchor, font_size=13,
                font_weight=700 if main else None,
            ),
        ]  # fmt: skip
        key.append(element("li", element("span", "●", style=f"color:{colour}"), " ", text))
    ticks = [element("line", x1=_at(t), y1=48, x2=_at(t), y2=56, stroke=_LINE) for t in np.linspace(-1, 1, 9).tolist()]
    sentences = [element("li", sentence) for sentence in appraisal.sentences()]
    return filled(
        "baselines.html", ticks=joined(ticks), marks=joined(drawn), key=joined(key), sentences=joined(sentences)
    )


def _span(value: float, text: str) -> tuple[str, float, float]:
    """Return how a label is anchored at its value, and from where to where it reaches, in shares of a narrow screen."""
    place, width = (value + 1) / 2, 0.0105 * len(text)
    if place > 0.93:
        return "end", place - width, place
    return ("start", place, place + width) if place < 0.07 else ("middle", place - width / 2, place + width / 2)


def _lanes(spans: Sequence[tuple[str, float, float]]) -> list[int]:
    """Return the lane of each label so that none lies on another, given their spans by ascending place."""
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
        colour = ORANGE if left < -0.025 else GREY if left < 0.025 else BLUE
        told = element("title", f"{_number(left, 2)} to {_number(left + 0.05, 2)}: {counted(count, 'item')}")
        bars.append(
            element("rect", told, x=_at(left), y=round(100 - height, 1), width="2.2%", height=height, fill=colour)
        )
    ticks = [
        element("text", _number(t, 1), x=_at(t), y=118, text_anchor="middle", font_size=13, fill=_SOFT)
        for t in (-1, -0.5, 0, 0.5, 1)
    ]
    return filled("histogram.html", bars=joined(bars), ticks=joined(ticks), most=counted(top, "item"))


@dataclass(frozen=True)
class _Column:
    """A column of a table: its head, the cell of a record, and whether it holds figures."""

    head: str
    cell: Callable[[Any], str]
    figures: bool = False


class _Tables:
    """The tables of the page; a node that the icicle shows is a button that zooms to it, its whole name on hover."""

    def __init__(
        self,
        diagnosis: Diagnosis,
        short: Sequence[str],
        whole: Sequence[str],
        position: NDArray[np.int64],
        most: int,
    ) -> None:
        self.diagnosis, self.short, self.whole, self.position, self.most = diagnosis, short, whole, position, most

    def node(self, node: int) -> Html:
        drawn = int(self.position[node])
        name, whole = shortened(self.short[node], _LONGEST), self.whole[node]
        title = None if name == whole else whole
        if drawn < 0:
            return element("span", name, title=title)
        return element("button", name, title=title, type="button", data_node=drawn)

    def worst(self) -> Html:
        return _table(
            # Less than half of the last digit shown is not worth a row.
            [r for r in worst_nodes(self.diagnosis, self.most) if r.misled_cost >= 0.00005],
            [
                _Column("node", lambda r: self.node(r.node)),
                _Column("items", lambda r: f"{r.items:,}", figures=True),
                _Column("arrive", lambda r: _percent(r.arrive), figures=True),
                _Column("right child is most alike", lambda r: _percent(r.right), figures=True),
                _Column("stop here", lambda r: _percent(r.stop), figures=True),
                _Column("misled", lambda r: _number(r.misled_cost, 4), figures=True),
                _Column("stopped early", lambda r: _number(r.stopped_cost, 4), figures=True),
            ],
            "Nodes by what wrong turns there take off the score. “Arrive” is the share of the searchers for the items "
            "below who get there; “misled” and “stopped early” are parts of what the score lacks to perfect.",
            "No searcher is misled anywhere.",
        )

    def confused(self) -> Html:
        return _table(
            confusions(self.diagnosis, self.most),
            [
                _Column("at", lambda r: self.node(r.parent)),
                _Column("belongs to", lambda r: self.node(r.child)),
                _Column("taken for", lambda r: self.node(r.rival)),
                _Column("items more alike the other", lambda r: f"{r.items:,} ({_percent(r.share)})", figures=True),
                _Column("searchers lost", lambda r: _number(r.searchers, 1), figures=True),
                _Column("cost", lambda r: _number(r.cost, 4), figures=True),
            ],
            "Pairs of siblings of which one is taken for the other.",
            "None.",
        )

    def lost(self) -> Html:
        total = int(self.diagnosis.lost.sum())
        return _table(
            lost_items(self.diagnosis, self.most),
            [
                _Column("item", lambda r: self.node(r.item)),
                _Column("worth", lambda r: _number(r.value), figures=True),
                _Column("path lost at", lambda r: self.node(r.lost_at)),
                _Column("level", lambda r: f"{r.level}", figures=True),
                _Column("searcher goes to", lambda r: self.node(r.lost_to)),
                _Column("and ends at", lambda r: self.node(r.ends_at)),
            ],
            f"The {min(total, self.most):,} worst of {counted(total, 'item')} that a searcher misses who follows "
            "likeness.",
            "No item is lost.",
        )

    def suggested(self, moves: Sequence[Move]) -> Html:
        return _table(
            moves[: self.most],
            [
                _Column("move", lambda r: self.node(r.node)),
                _Column("to", lambda r: self.node(r.target)),
                _Column("gain in HQS", lambda r: _number(r.gain, 5), figures=True),
            ],
            "Each was verified by scoring the tree with this one move made."
            if not any(math.isnan(move.gain) for move in moves[: self.most])
            else "The gain is that of the tree with this one move made; “–” where that was not scored.",
            "None.",
        )


def _table(records: Sequence[Any], columns: Sequence[_Column], caption: str, empty: str) -> Html:
    """Return the records as a table with a caption, or what is said if there are none."""
    if not records:
        return element("p", empty, class_="soft")
    kinds = ["n" if column.figures else None for column in columns]
    heads = [element("th", column.head, scope="col", class_=kind) for column, kind in zip(columns, kinds, strict=True)]
    rows = [
        element(
            "tr",
            *(
                element("td", column.cell(record), class_=kind, data_label=column.head)
                for column, kind in zip(columns, kinds, strict=True)
            ),
        )
        for record in records
    ]
    head = element("thead", element("tr", *heads))
    table = element("table", element("caption", caption), head, element("tbody", *rows))
    return element("div", table, class_="wide")


def _settings(diagnosis: Diagnosis, appraisal: Appraisal | None) -> Iterable[str]:
    settings: dict[str, Any] = dict(diagnosis.result.config)
    if appraisal is not None:
        settings |= {"shuffles": appraisal.n_shuffles, "random_state": appraisal.random_state}
    settings |= {name: version(name) for name in ("pomdp-hier", "numpy", "scipy")}
    settings["python"] = platform.python_version()
    return (f"{key}: {value}" for key, value in settings.items())
