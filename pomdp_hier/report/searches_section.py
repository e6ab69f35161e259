"""The section on recorded searches: the fitted temperature, predicted beside observed shares, and the misfits."""

from collections.abc import Sequence

import numpy as np

from pomdp_hier._text import counted
from pomdp_hier.report.elements import Html, element, filled, joined
from pomdp_hier.report.page_data import Column, NodeCells, number, percent, table
from pomdp_hier.searches.comparison import SUGGESTIONS, Group, PredictedObserved
from pomdp_hier.searches.fit import DeltaFit, Gain, PartFit


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
