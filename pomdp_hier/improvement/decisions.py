"""The owner's decisions on proposed moves and edits: accepted rows are carried out, rejected nodes keep their place."""

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pomdp_hier._arguments import check_choice, check_path, unexpected
from pomdp_hier._imports import from_extra
from pomdp_hier._io.formats import check_kind, decoding, file_ending, kind_of, open_csv, without_sheet
from pomdp_hier._io.workbooks import is_workbook, unpacked_table
from pomdp_hier._text import brief, counted
from pomdp_hier.errors import FileFormatError, ParameterError
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.node_names import id_texts
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.improvement.result import KINDS, changes_of

_WORDS = {"accept": "accept", "accepted": "accept", "reject": "reject", "rejected": "reject", "": ""}
_NEW = "new "  # before the number of a cluster that a split makes


@dataclass(frozen=True)
class Decision:
    """One row of a table of proposals.

    Attributes:
        row: Its number in the file, 1 for the first.
        kind: The kind of edit, as in `Edit`.
        nodes: The ids of the nodes, as text, joined by "; ".
        source: The id of their parent; for a split or a collapse, of the cluster itself.
        target: The id of the new parent; empty for none.
        decision: ``"accept"``, ``"reject"`` or empty.
        note: The owner's note.
    """

    row: int
    kind: str
    nodes: str
    source: str
    target: str
    decision: str
    note: str = ""

    def __str__(self) -> str:
        to = f" to {self.target}" if self.target and self.kind in ("move", "merge") else ""
        return f"row {self.row}, {self.kind} {self.nodes} from {self.source}{to}"


@dataclass(frozen=True, eq=False)
class Applied:
    """A tree after the accepted edits.

    Attributes:
        tree: The tree.
        done: The accepted rows that were carried out.
        misfits: The accepted rows that do not fit the tree, each with the reason.
        n_rejected: The number of rejected rows.
        n_open: The number of rows without a decision.
    """

    tree: Hierarchy
    done: tuple[Decision, ...]
    misfits: tuple[tuple[Decision, str], ...]
    n_rejected: int
    n_open: int

    def sentences(self) -> list[str]:
        """Return the rows that were carried out and the misfits, as text."""
        lines = [
            f"{counted(len(self.done), 'accepted edit')} carried out, {self.n_rejected:,} rejected, "
            f"{self.n_open:,} without a decision"
        ]
        if self.misfits:
            lines.append(f"{counted(len(self.misfits), 'accepted edit')} no longer fit{'s' * (len(self.misfits) == 1)}")
            lines += [f"{decision}: {reason}" for decision, reason in self.misfits]
        return lines


def read_decisions(path: str | Path) -> list[Decision]:
    """Return the rows of a table of `pomdp-hier misfiled` or `improve`: CSV, JSON, Parquet or a workbook (.xlsx).

    The table may have been saved by a spreadsheet, with semicolons or tabs, and may lack columns that are not needed.
    Of a workbook, the first sheet is read, or the one named after a ``#``, as in ``moves.xlsx#May``.

    Raises:
        FileFormatError: The file cannot be read, lacks a column, or has a decision that is not accept, reject or empty.
        MissingExtraError: The file is Parquet or a workbook, and the extra is not installed.
    """
    check_path("path", path)
    name = str(path)
    try:
        rows = _table(Path(without_sheet(name)[0]).read_bytes(), file_ending(name), name)
    except OSError as error:
        raise FileFormatError(
            f"{name}: got a path that cannot be read ({error.strerror}); expected a table of moves."
        ) from error
    ids = "item_id" if any("item_id" in _columns(row, name) for row in rows[:1]) else "node_ids"
    return [_decision(at, row, ids, name) for at, row in enumerate(rows, start=1)]


def _columns(row: Iterable[Any], name: str) -> list[str]:
    """Return the columns of a row as they are compared: without case and outer spaces.

    Raises:
        FileFormatError: Two of them are equal.
    """
    columns = [str(column).strip().lower() for column in row]
    for column, count in Counter(columns).items():
        if count > 1:
            raise FileFormatError(
                f"{name}: got {count} columns named {brief(column)}; expected distinct names. Rename them."
            )
    return columns


def _require_columns(columns: Sequence[str], ids: str, name: str) -> None:
    """Raise unless the columns that a decision needs are there."""
    lacking = [column for column in (ids, "source_id", "target_id", "decision") if column not in columns]
    if lacking:
        raise FileFormatError(
            f"{name}: got no column {brief(lacking[0])}; expected the columns of pomdp-hier misfiled or improve, "
            f"such as {ids}, source_id, target_id and decision."
        )


def _table(content: bytes, ending: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table by column."""
    if ending == ".json":
        try:
            rows = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{name}: got no JSON ({error}); expected a list of rows.") from error
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise FileFormatError(f"{name}: got {brief(rows)}; expected a list of objects, one per row.")
        return rows
    if ending == ".parquet":
        pq = from_extra("frames", "pyarrow.parquet", f"{name} is a Parquet file, which needs pyarrow")
        with decoding(name, FileFormatError, "a whole Parquet file"):
            table = pq.ParquetFile(io.BytesIO(content)).read()
            _columns(table.column_names, name)
            listed: list[dict[str, Any]] = table.to_pylist()
            return listed
    content = unpacked_table(content, name, FileFormatError)
    if is_workbook(name) and not content.strip():
        return []
    check_kind(kind_of(content), name, FileFormatError, ("text", "empty"))
    table_of_text = open_csv(io.BytesIO(content), FileFormatError, name=name)
    columns = _columns(table_of_text.columns, name)
    _require_columns(columns, "item_id" if "item_id" in columns else "node_ids", name)
    return [dict(zip(columns, cells, strict=True)) for _, cells in table_of_text.rows]


def _decision(at: int, row: Mapping[str, Any], ids: str, name: str) -> Decision:
    columns = _columns(row, f"{name}, row {at}")
    _require_columns(columns, ids, f"{name}, row {at}")
    cells = {column: "" if cell is None else str(cell) for column, cell in zip(columns, row.values(), strict=True)}
    word = _WORDS.get(cells["decision"].strip().lower())
    if word is None:
        raise FileFormatError(
            f"{name}, row {at}, decision: got {brief(cells['decision'])}; expected accept, reject or an empty cell."
        )
    kind = cells.get("kind") or "move"
    if kind not in KINDS:
        raise FileFormatError(f"{name}, row {at}, kind: got {brief(kind)}; expected {', '.join(KINDS)}.")
    return Decision(at, kind, cells[ids], cells["source_id"], cells["target_id"], word, cells.get("note", ""))


def _checked(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions as a list.

    Raises:
        ParameterError: They are something else, or a decision is not accept, reject or empty.
    """
    rows = list(decisions) if isinstance(decisions, Iterable) else [decisions]
    for row in rows:
        if not isinstance(row, Decision):
            raise unexpected("decisions", row, "decisions, as from read_decisions")
        check_choice("decision", row.decision, ("accept", "reject", ""))
    return rows


def apply_decisions(hierarchy: Hierarchy, decisions: Iterable[Decision]) -> Applied:
    """Return the tree after the accepted edits, in the order of the rows.

    A row is carried out if its nodes and its target exist, and its nodes are below its source. Both are checked in the
    tree after the rows before it. Other accepted rows are in ``misfits`` of the result, each with the reason.

    Args:
        hierarchy: The tree that the proposals were made for, or a later edition of it.
        decisions: The rows, as from `read_decisions`.

    Example:
        >>> tree = Hierarchy.from_paths({"boots": "coats", "parka": "coats", "shoe": "shoes"})
        >>> rows = [Decision(1, "move", "boots", "coats", "shoes", "accept"),
        ...         Decision(2, "move", "parka", "shoes", "coats", "accept")]
        >>> found = apply_decisions(tree, rows)
        >>> found.tree.item_labels, [reason for _, reason in found.misfits]
        (('boots', 'parka', 'shoe'), ['parka is below coats.'])
    """
    require_hierarchy(hierarchy)
    rows = _checked(decisions)
    names = _Ids(hierarchy)
    draft = Draft(hierarchy, names.text)
    done, misfits = [], []
    for row in (row for row in rows if row.decision == "accept"):
        try:
            names.carry_out(row, draft)
        except ParameterError as error:
            misfits.append((row, str(error)))
        else:
            done.append(row)
    count = [sum(row.decision == word for row in rows) for word in ("reject", "")]
    return Applied(draft.tree(), tuple(done), tuple(misfits), *count)


def kept_nodes(hierarchy: Hierarchy, decisions: Iterable[Decision]) -> tuple[list[int], list[tuple[Decision, str]]]:
    """Return the nodes that rejections keep where they are, and the rejections that no longer fit, with the reason.

    A rejected move keeps its nodes; a rejected split or collapse keeps its cluster, and so on.
    """
    require_hierarchy(hierarchy)
    rows = _checked(decisions)
    names = _Ids(hierarchy)
    draft = Draft(hierarchy, names.text)
    kept: dict[int, None] = {}
    misfits = []
    for row in (row for row in rows if row.decision == "reject"):
        try:
            kept |= dict.fromkeys(names.rejected(row, draft))
        except ParameterError as error:
            misfits.append((row, str(error)))
    return list(kept), misfits


class _Ids:
    """The nodes of a tree by the ids in a table."""

    def __init__(self, tree: Hierarchy) -> None:
        self._texts = id_texts(tree)
        self._nodes: dict[str, list[int]] = {}
        for node, text in enumerate(self._texts):
            self._nodes.setdefault(text, []).append(node)
        self._new: dict[str, int] = {}

    def carry_out(self, row: Decision, draft: Draft[Hierarchy]) -> None:
        """Apply an edit to the draft.

        Raises:
            ParameterError: It does not fit; the message is the reason.
        """
        nodes, source = self._several(row.nodes), self._node(row.source, "source")
        if row.kind in ("move", "merge", "split"):
            self._check_source(nodes, source, draft)
        if row.kind == "split" and (row.target in self._nodes or row.target in self._new):
            raise ParameterError(f"{brief(row.target)} is another node.")
        target = source if row.kind not in ("move", "merge") else self._node(row.target, "target")
        made = len(draft.parent)
        draft.apply(changes_of(draft, row.kind, nodes, source, target))
        if row.kind == "split":
            self._new[row.target] = made

    def rejected(self, row: Decision, draft: Draft[Hierarchy]) -> list[int]:
        """Return the nodes that a rejection keeps.

        Raises:
            ParameterError: It no longer fits; the message is the reason.
        """
        source = self._node(row.source, "source")
        if row.kind in ("split", "collapse"):
            return [source]
        nodes = self._several(row.nodes)
        if row.kind in ("move", "merge"):
            self._check_source(nodes, source, draft)
        return nodes

    def _check_source(self, nodes: Sequence[int], source: int, draft: Draft[Hierarchy]) -> None:
        for node in nodes:
            if draft.parent[node] != source:
                above = draft.parent[node]
                raise ParameterError(f"{self.text(node)} is below {self.text(above)}.")

    def text(self, node: int) -> str:
        """Return the id of a node."""
        if node < 0:
            return "no node"
        return self._texts[node] if node < len(self._texts) else "a new cluster"

    def _several(self, text: str) -> list[int]:
        """Return the nodes of ids joined by "; ", of which each may contain that itself."""
        parts, found = text.split("; "), []
        while parts:
            sizes = range(len(parts), 0, -1)
            size = next((k for k in sizes if self._known("; ".join(parts[:k]))), 1)
            found.append(self._node("; ".join(parts[:size])))
            parts = parts[size:]
        return found

    def _known(self, text: str) -> bool:
        return text in self._nodes or text in self._new or (text.startswith("'") and text[1:] in self._nodes)

    def _node(self, text: str, role: str = "node") -> int:
        if text in self._new:
            return self._new[text]
        if text.startswith("'") and text not in self._nodes:  # kept from being read as a formula
            text = text[1:]
        if not text:
            raise ParameterError(f"no {role} is given.")
        nodes = self._nodes.get(text, [])
        if len(nodes) == 1:
            return nodes[0]
        if nodes:
            raise ParameterError(f"{counted(len(nodes), 'node')} are called {brief(text)}.")
        made = text.startswith(_NEW) and text[len(_NEW) :].isdecimal()
        raise ParameterError(f"{brief(text)} was not made." if made else f"no node is called {brief(text)}.")
