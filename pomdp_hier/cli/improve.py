"""``pomdp-hier improve``: a tree with a higher score, and its edits."""

import argparse
from collections.abc import Hashable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.cli import console, files, inputs, signals, tables, trees
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy

NAME = "improve"
SUMMARY = "find edits of a tree that raise its score, and write the better tree"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n0,8\\n8,0\\n' > points.csv",
    "echo '[[0,1,2],[3,4,5],[6,7]]' | pomdp-hier improve points.csv - --edits-out edits.csv --force",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_input_options(parser)
    inputs.add_setting_options(parser, calibrated=True)
    add = parser.add_argument
    better = "write the better tree here: with the ending of TREE in its format, ids and columns, or as .json; .gz too"
    add("-o", "--out", type=files.output_file, metavar="PATH", help=better)
    edits = "write the edits, one per row, to .csv, .parquet or .json; - is CSV on stdout"
    add("--edits-out", type=files.output_file, metavar="PATH", help=edits)
    add("--force", action="store_true", help="replace the files if they exist")
    add(
        "--kinds",
        default="move",
        metavar="NAMES",
        help="edits to try: move (items and clusters), merge, split, remove, remove-level, collapse, "
        "collapse-below, separated by commas; all but move change the clusters (default: move)",
    )
    add("--fixed", metavar="ID", action="append", default=[], help="a node that keeps its place; may be repeated")
    level = "a level whose nodes keep their places (the root's is 0); may be repeated"
    add("--fixed-level", metavar="N", type=inputs.count, action="append", default=[], help=level)
    inputs.add_count(parser, "--max-edits", "at most N edits (default: all with a gain)")
    loss = "reject edits that lower the value of any item by more than X"
    add("--max-loss", type=inputs.amount, metavar="X", help=loss)
    folds = "number of cross-validation folds for the held-out gain; 0 to skip"
    inputs.add_count(parser, "--folds", folds, 5)
    then = f"stop then, with the best tree so far; {signals.HELP}"
    add("--time-limit", type=inputs.amount, metavar="SECONDS", help=then)
    inputs.add_count(parser, "--seed", "random seed of the folds", 0)
    inputs.add_count(parser, "--top", "print N edits", 10)
    inputs.add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Improve the tree."""
    if options.out is not None:
        tables.check_target(options.out, options.force, endings=trees.written_endings(options))
    if options.edits_out is not None:
        tables.check_target(options.edits_out, options.force, option="--edits-out")
    if options.out is None and options.edits_out is None:
        inputs.refuse_unused(options, ("force",), "without --out or --edits-out")
    if options.folds == 0:
        inputs.refuse_unused(options, ("seed",), "without folds")
    from pomdp_hier.improvement import improve
    from pomdp_hier.improvement.result import COLUMNS

    by_id = trees.read_names(options.names, options.name_columns)
    read = inputs.read_inputs(options)
    with signals.may_end_search():
        found = improve(
            read.features,
            read.tree,
            kinds=[name.strip() for name in options.kinds.split(",")],
            fixed=[_label(read.tree, text) for text in options.fixed],
            fixed_levels=options.fixed_level,
            max_edits=options.max_edits,
            max_loss=options.max_loss,
            folds=options.folds,
            time_limit=options.time_limit,
            random_state=options.seed,
            progress=True,
            **inputs.settings(options),
        )
    better = found.tree
    found = found.renamed(by_id) if by_id else found
    if options.edits_out is not None:
        rows = found.to_rows()
        tables.write_table(options.edits_out, {name: [row[name] for row in rows] for name in COLUMNS}, options.force)
    if options.edits_out != "-":
        for line in found.summary(options.top).splitlines():
            print(console.printable(line))
    if options.out is not None:  # last, as the format may not be able to represent the tree
        write_file(options.out, trees.written_like_source(better, options, options.out), replace=options.force)
    return signals.exit_code(found.status)


def _label(tree: "Hierarchy", text: str) -> Hashable:
    """Return the label of the node that a text names.

    Raises:
        ParameterError: The text names no node or several nodes.
    """
    from pomdp_hier._text import listed
    from pomdp_hier.hierarchy.node_names import label_text

    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    found = [label for label in labels if label is not None and text in (label_text(label), str(label))]
    if not found and any(isinstance(label, tuple) for label in labels):
        found = [label for label in labels if isinstance(label, tuple) and label and str(label[-1]) == text]
    if len(found) > 1:
        shown = listed([label_text(label) for label in found])
        raise ParameterError(f"--fixed: got {brief(text)}, which names {shown}; expected one. Give its whole path.")
    if not found:
        known = [label_text(label) for label in labels if label is not None]
        near = listed(get_close_matches(text, known) or known[:3])
        raise ParameterError(f"--fixed: got {brief(text)}; expected the id of a node. Nearest are {near}.")
    return found[0]
