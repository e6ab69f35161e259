"""What to change in a tree: the edits of an improvement, or single moves, as the first section of a page."""

import math
from collections.abc import Sequence

from pomdp_hier._messages import counted
from pomdp_hier.appraisal.moves import Move
from pomdp_hier.improvement.result import Edit, Improvement
from pomdp_hier.report.escaping import Html, element, filled, joined
from pomdp_hier.report.tables import Column, NodeCells, number, table

__all__ = ["edits_section", "moves_section"]


def edits_section(improvement: Improvement, cells: NodeCells, most: int) -> Html:
    """Return the edits in their order, each with what it gains, whom it helps and whom it costs."""
    sure, doubtful = improvement.numbered(confirmed=True), improvement.numbered(confirmed=False)
    left = max(0, len(sure) - most) + max(0, len(doubtful) - most)
    caption = (
        "In this order, each with what the score gains by it given those before. “On other items” is the gain on items "
        "that had no say in choosing the edit." + (f" {left:,} more are not shown." if left else "")
    )
    columns = [
        Column("edit", lambda r: joined([f"{r[0]}. {r[1].kind} ", cells.some(r[1].nodes)])),
        *cells.id_column(lambda r: r[1].nodes[0]),
        Column("from", lambda r: cells(r[1].source)),
        Column("to", lambda r: cells(r[1].target)),
        Column("items", lambda r: f"{r[1].items:,}", kind="n"),
        Column("gain in HQS", lambda r: number(r[1].gain, 5), kind="n"),
        Column("on other items", lambda r: number(r[1].held_out.gain, 5), kind="n"),
        Column("helps", lambda r: f"{r[1].helped:,}", kind="n"),
        Column("costs", lambda r: f"{r[1].hurt:,}", kind="n"),
        Column("costs most", lambda r: _costs(r[1], cells)),
    ]
    sentences = element("ul", *(element("li", line) for line in improvement.sentences()), class_="reading")
    none = f"No edit was found {'whose gain holds on other items' if doubtful else 'that raises the score'}."
    shown = table(sure[:most], columns, caption, none)
    if doubtful:
        rest = table(doubtful[:most], columns, "Edits made between those above, whose gain may be chance.", "")
        summary = element("summary", f"{counted(len(doubtful), 'edit')} that the other items do not confirm")
        shown = joined([shown, element("details", summary, rest)])
    return filled("edits.html", heading="What to change", sentences=sentences, table=shown)


def _costs(edit: Edit, cells: NodeCells) -> Html:
    seen = [(item, number(loss)) for item, loss in edit.most_hurt[:3] if loss <= -0.0005]
    return joined((joined([cells(item), f" {loss}"]) for item, loss in seen), ", ")


def moves_section(moves: Sequence[Move], cells: NodeCells, most: int) -> Html:
    """Return single moves, each with what the score gains by it alone."""
    caption = (
        "Each was verified by scoring the tree with this one move made."
        if not any(math.isnan(move.gain) for move in moves[:most])
        else "The gain is that of the tree with this one move made; “–” where that was not scored."
    )
    columns = [
        Column("move", lambda r: cells(r.node)),
        *cells.id_column(lambda r: r.node),
        Column("from", lambda r: cells(r.source)),
        Column("to", lambda r: cells(r.target)),
        Column("items", lambda r: f"{r.items:,}", kind="n"),
        Column("gain in HQS", lambda r: number(r.gain, 5), kind="n"),
    ]
    shown = table(moves[:most], columns, caption, "None.")
    together = element("p", "The gains are each move's alone and do not add up.", class_="soft")
    return filled(
        "edits.html", heading="Suggested moves", sentences=together if len(moves) > 1 else Html(""), table=shown
    )
