"""The one-file report: score, baselines, icicle, worst nodes, lost items, confusions and suggestions, in plain HTML.

The page loads nothing: style, script and figures stand in it, and every name that comes from outside is escaped, in the
markup by `html.escape`, in the data by writing ``<`` as an escape sequence of JSON.
"""

import json
import math
import os
import platform
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pomdp_hier.appraisal.baselines import Appraisal
from pomdp_hier.appraisal.diagnosis import Diagnosis, confusions, lost_items, require_diagnosis, worst_nodes
from pomdp_hier.errors import ParameterError
from pomdp_hier.report.payload import MOST_ITEMS, Names, icicle_payload

__all__ = ["report_html", "write_report"]

Positions = NDArray[np.int64]


class Move(Protocol):
    """What a suggestion says; `pomdp_hier.hqs.suggest_moves` returns such records."""

    @property
    def node(self) -> int:
        """The item or cluster to move."""

    @property
    def target(self) -> int:
        """The cluster to move it to."""

    @property
    def gain(self) -> float:
        """By how much the score rises, as verified on the changed tree."""


def write_report(
    diagnosis: Diagnosis,
    path: str | os.PathLike[str],
    *,
    appraisal: Appraisal | None = None,
    moves: Sequence[Move] = (),
    names: Sequence[Any] | None = None,
    title: str = "How well does this hierarchy support search?",
    most: int = 25,
    overwrite: bool = False,
) -> Path:
    """Return the path of the report, a single HTML file that needs no network.

    Args:
        diagnosis: What `pomdp_hier.hqs.diagnose` returned.
        path: Where to write it.
        appraisal: What `appraise` returned, for the baselines.
        moves: What `suggest_moves` returned.
        names: ``[N]`` names of the items, or ``[n_nodes]`` of all nodes; the hierarchy's labels by default.
        title: The page's heading.
        most: How many rows each table has at most.
        overwrite: Whether an existing file may be replaced.

    Raises:
        ParameterError: The file exists, or the names are not as many as the items or nodes.
        OSError: The file cannot be written.

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
    require_diagnosis(diagnosis)
    target = Path(path)
    if target.exists() and not overwrite:
        raise ParameterError(f"{target}: it exists already; choose another name, or pass overwrite=True")
    text = report_html(diagnosis, appraisal=appraisal, moves=moves, names=names, title=title, most=most)
    target.write_text(text, encoding="utf-8")
    return target


def report_html(
    diagnosis: Diagnosis,
    *,
    appraisal: Appraisal | None = None,
    moves: Sequence[Move] = (),
    names: Sequence[Any] | None = None,
    title: str = "How well does this hierarchy support search?",
    most: int = 25,
) -> str:
    """Return the report as a string; see `write_report` for the arguments.

    Raises:
        ParameterError: The names are not as many as the items or nodes.

    Example:
        >>> from pomdp_hier import Hierarchy, diagnose
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> report_html(diagnose([[2, 0], [1, 0], [0, 1], [0, 2]], tree))[:15]
        '<!doctype html>'
    """
    require_diagnosis(diagnosis)
    named = Names(diagnosis.hierarchy, names)
    payload, position = icicle_payload(diagnosis, named)
    tables = _Tables(diagnosis, named, position, most)
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{_size(diagnosis)}</p>',
        _cards(diagnosis, appraisal),
        _scale(appraisal) if appraisal else "",
        _reading(appraisal) if appraisal else "",
        _histogram(diagnosis),
        _icicle(payload["left_out"], diagnosis),
        tables.worst(),
        tables.confused(),
        tables.lost(),
        tables.suggested(moves),
        _settings(diagnosis, appraisal),
    ]
    data = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_asset('report.css')}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + f'\n<div id="tip" role="status" hidden></div>\n<script id="payload" type="application/json">{data}</script>\n'
        f"<script>\n{_asset('icicle.js')}</script>\n</body></html>\n"
    )


def _asset(name: str) -> str:
    return (resources.files("pomdp_hier.report") / "assets" / name).read_text(encoding="utf-8")


def _number(value: float, digits: int = 3) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def _size(diagnosis: Diagnosis) -> str:
    tree = diagnosis.hierarchy
    clusters = int(tree.is_cluster.sum())
    return f"{tree.n_items:,} items in {clusters:,} clusters on {tree.height + 1} levels"


def _card(name: str, value: str, note: str, main: bool = False) -> str:
    return f'<div class="card{" main" if main else ""}">{name}<b>{value}</b><span>{note}</span></div>'


def _cards(diagnosis: Diagnosis, appraisal: Appraisal | None) -> str:
    result = diagnosis.result
    lost = int(diagnosis.lost.sum())
    cards = [_card("HQS", _number(result.score, 4), "mean worth of a search, −1 to 1", main=True)]
    if appraisal is not None:
        spread = "" if math.isnan(appraisal.shuffled_sd) else f", SD {_number(appraisal.shuffled_sd)}"
        cards += [
            _card("without the tree", _number(appraisal.search_root), "searching everything at once"),
            _card("shuffled items", _number(appraisal.shuffled), f"{appraisal.n_shuffles} shuffles{spread}"),
            _card("ceiling", _number(appraisal.ceiling), "the best stop in hindsight"),
            _card("adjusted", _number(appraisal.adjusted), "0 chance, 1 perfect; rank trees by HQS, not by this"),
        ]
    cards += [
        _card("first branch right", _percent(diagnosis.first_branch), "of the items"),
        _card(
            "items lost", f"{lost:,}", f"{_percent(lost / len(result.values))}: the most alike children lead elsewhere"
        ),
        _card("stay at the root", _percent(float((result.stop_levels == 0).mean())), "of the searches"),
    ]
    return f'<div class="cards">{"".join(cards)}</div>'


def _scale(appraisal: Appraisal) -> str:
    """Return the score on the line from -1 to 1 beside what it is held against; labels alternate above and below."""
    marks = [
        ("shuffled", appraisal.shuffled, "#b35806"),
        ("no tree", appraisal.search_root, "#5b6570"),
        ("HQS", appraisal.score, "#215294"),
        ("ceiling", appraisal.ceiling, "#1d2126"),
        ("perfect", appraisal.perfect, "#1d2126"),
    ]
    known = sorted((m for m in marks if not math.isnan(m[1])), key=lambda mark: mark[1])

    def at(value: float) -> float:
        return 20 + 960 * (min(1.0, max(-1.0, value)) + 1) / 2

    parts = ['<line x1="20" y1="42" x2="980" y2="42" stroke="#a9b2bb" stroke-width="2"/>']
    parts += [
        f'<line x1="{at(t):.1f}" y1="38" x2="{at(t):.1f}" y2="46" stroke="#a9b2bb"/>' for t in np.linspace(-1, 1, 9)
    ]
    for k, (name, value, colour) in enumerate(known):
        y, tick = (26, 34) if k % 2 == 0 else (66, 50)
        x = at(value)
        radius = 7 if name == "HQS" else 4.5
        weight = ' font-weight="700"' if name == "HQS" else ""
        parts.append(f'<line x1="{x:.1f}" y1="42" x2="{x:.1f}" y2="{tick}" stroke="{colour}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="42" r="{radius}" fill="{colour}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{y}" text-anchor="middle" font-size="13" fill="{colour}"{weight}>'
            f"{name} {_number(value)}</text>"
        )
    label = "The score on the scale from -1 to 1 beside its baselines"
    return f'<svg class="scale" viewBox="0 0 1000 84" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _reading(appraisal: Appraisal) -> str:
    sentences = appraisal.sentences()
    return f'<ul class="reading">{"".join(f"<li>{escape(s)}</li>" for s in sentences)}</ul>' if sentences else ""


def _histogram(diagnosis: Diagnosis) -> str:
    counts, edges = np.histogram(np.clip(diagnosis.result.values, -1, 1), bins=40, range=(-1, 1))
    top = max(int(counts.max()), 1)
    bars = []
    for count, left in zip(counts.tolist(), edges[:-1].tolist(), strict=True):
        height = 90 * count / top
        colour = "#b35806" if left < -0.025 else "#9aa3ab" if left < 0.025 else "#215294"
        x = 20 + 960 * (left + 1) / 2
        bars.append(
            f'<rect x="{x:.1f}" y="{100 - height:.1f}" width="22" height="{height:.1f}" fill="{colour}">'
            f"<title>{_number(left, 2)} to {_number(left + 0.05, 2)}: {count:,} items</title></rect>"
        )
    axis = '<line x1="20" y1="100" x2="980" y2="100" stroke="#a9b2bb"/>' + "".join(
        f'<text x="{20 + 960 * (t + 1) / 2:.0f}" y="118" text-anchor="middle" font-size="13" fill="#5b6570">'
        f"{_number(t, 1)}</text>"
        for t in (-1, -0.5, 0, 0.5, 1)
    )
    label = f"Histogram of the worth of the search for each item; the fullest bar holds {top:,} items"
    return (
        "<h2>What the searches are worth</h2>"
        f'<svg class="scale" style="height:126px" viewBox="0 0 1000 126" role="img" aria-label="{label}">'
        f"{''.join(bars)}{axis}</svg>"
        '<p class="soft">Items by the worth of the search for them: below 0 (orange) searching everything would '
        "have been better.</p>"
    )


def _icicle(left_out: int, diagnosis: Diagnosis) -> str:
    notes = []
    if left_out:
        notes.append(f"{left_out:,} of the smallest clusters are not drawn.")
    if diagnosis.hierarchy.n_items > MOST_ITEMS:
        notes.append("Single items are not drawn.")
    return (
        "<h2>Where in the tree</h2>"
        '<div class="controls"><div class="finder"><input id="search" type="search" placeholder="find a cluster or an '
        'item" aria-label="find a cluster or an item" autocomplete="off"><ul id="hits" hidden></ul></div>'
        '<label>colour by <select id="measure"></select></label>'
        '<span class="soft">click to zoom, arrows to walk, Enter in, Esc out</span></div>'
        '<div id="crumbs"></div><canvas id="icicle" tabindex="0" role="img" '
        'aria-label="The hierarchy as an icicle; the tables below hold the same figures"></canvas>'
        f'<div id="deeper" class="soft"></div><div id="legend"></div><p class="soft">{" ".join(notes)}</p>'
    )


class _Tables:
    """The tables of the page; a node that the icicle shows is a button that zooms to it."""

    def __init__(self, diagnosis: Diagnosis, names: Names, position: Positions, most: int) -> None:
        self.diagnosis, self.names, self.position, self.most = diagnosis, names, position, most

    def node(self, node: int) -> str:
        name = escape(self.names.of(node))
        drawn = int(self.position[node])
        return f'<button type="button" data-node="{drawn}">{name}</button>' if drawn >= 0 else name

    def worst(self) -> str:
        # Less than half of the last digit shown is not worth a row.
        found = [r for r in worst_nodes(self.diagnosis, self.most) if r.misled_cost >= 0.00005]
        rows = (
            [
                self.node(r.node),
                f"{r.items:,}",
                _percent(r.arrive),
                _percent(r.right),
                _percent(r.stop),
                _number(r.misled_cost, 4),
                _number(r.stopped_cost, 4),
            ]
            for r in found
        )
        heads = ["node", "#items", "#arrive", "#right child is most alike", "#stop here", "#misled", "#stopped early"]
        caption = (
            "Nodes by what wrong turns there take off the score. “Arrive” is the share of the searchers for the items "
            "below who get there; “misled” and “stopped early” are parts of what the score lacks to perfect."
        )
        return _table("Worst nodes", heads, rows, caption, "No searcher is misled anywhere.")

    def confused(self) -> str:
        rows = (
            [
                self.node(r.parent),
                self.node(r.child),
                self.node(r.rival),
                f"{r.items:,} ({_percent(r.share)})",
                _number(r.searchers, 1),
                _number(r.cost, 4),
            ]
            for r in confusions(self.diagnosis, self.most)
        )
        heads = ["at", "belongs to", "taken for", "#items more alike the other", "#searchers lost", "#cost"]
        return _table("Confusions", heads, rows, "Pairs of siblings of which one is taken for the other.", "None.")

    def lost(self) -> str:
        rows = (
            [
                escape(self.names.of(r.item)),
                _number(r.value),
                self.node(r.lost_at),
                f"{r.level}",
                self.node(r.lost_to),
                self.node(r.ends_at),
            ]
            for r in lost_items(self.diagnosis, self.most)
        )
        total = int(self.diagnosis.lost.sum())
        heads = ["item", "#worth", "path lost at", "#level", "searcher goes to", "and ends at"]
        caption = f"The {min(total, self.most):,} worst of {total:,} items that a searcher misses who follows likeness."
        return _table("Lost items", heads, rows, caption, "No item is lost.")

    def suggested(self, moves: Sequence[Move]) -> str:
        if not moves:
            return ""
        rows = ([self.node(m.node), self.node(m.target), _number(m.gain, 5)] for m in moves[: self.most])
        caption = "Each was verified by scoring the tree with this one move made."
        return _table("Suggested moves", ["move", "to", "#gain in HQS"], rows, caption, "None.")


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str, empty: str) -> str:
    """Return a table with a caption; a head that starts with ``#`` is that of a column of figures."""
    classes = [' class="n"' if head.startswith("#") else "" for head in heads]
    body = "".join(
        f"<tr>{''.join(f'<td{c}>{cell}</td>' for c, cell in zip(classes, row, strict=True))}</tr>" for row in rows
    )
    if not body:
        return f'<h2>{title}</h2><p class="soft">{empty}</p>'
    head = "".join(f'<th scope="col"{c}>{name.lstrip("#")}</th>' for c, name in zip(classes, heads, strict=True))
    return (
        f'<h2>{title}</h2><div class="wide"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _settings(diagnosis: Diagnosis, appraisal: Appraisal | None) -> str:
    settings: dict[str, Any] = dict(diagnosis.result.config)
    if appraisal is not None:
        settings |= {"shuffles": appraisal.n_shuffles, "random_state": appraisal.random_state}
    versions = {name: version(name) for name in ("pomdp-hier", "numpy", "scipy")} | {
        "python": platform.python_version()
    }
    lines = [f"{key}: {value}" for key, value in (settings | versions).items()]
    return f"<details><summary>Settings and versions</summary><pre>{escape(chr(10).join(lines))}</pre></details>"
