"""``pomdp-hier misfiled``: misfiled items with probabilities and targets."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from pomdp_hier._text import brief
from pomdp_hier.cli import console, files, inputs, signals, tables, trees

NAME = "misfiled"
SUMMARY = "find items in the wrong place, with probabilities, and the places where they belong"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n0,8\\n8,0\\n' > points.csv",
    "echo '[[0,1,2],[3,4,5],[6,7]]' | pomdp-hier misfiled points.csv - -o misfiled.csv --force",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_input_options(parser)
    parser.set_defaults(similarity="cosine")
    add = parser.add_argument
    table = "write the first items, one per row, to .csv, .parquet or .json; - is CSV on stdout"
    add("-o", "--out", type=files.output_file, metavar="PATH", help=table)
    add("--force", action="store_true", help="replace the file if it exists")
    share = (
        "select the longest list whose expected share of items in the right place is at most X under the model "
        f"(default: 0.1); {signals.HELP}"
    )
    add("--expected-wrong", type=_share, default=0.1, metavar="X", help=share)
    inputs.add_count(parser, "--limit", "write N items, selected or not", 100)
    inputs.add_count(parser, "--top", "print N items", 10)
    inputs.add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Find the misfiled items."""
    inputs.check_out(options)
    if options.out is None:
        inputs.refuse_unused(options, ("limit",), "without --out")
    from pomdp_hier.filing import find_misfiled
    from pomdp_hier.filing.result import COLUMNS

    by_id = trees.read_names(options.names, options.name_columns)
    read = inputs.read_inputs(options)
    with signals.may_end_search():
        found = find_misfiled(read.features, read.tree, progress=True)
    selected = found.select(options.expected_wrong, target=False)
    printed = 0 if options.out == "-" else options.top
    written = 0 if options.out is None else options.limit
    rows = found.to_rows(max(printed, written), names=by_id, selected=selected.tolist())
    if options.out is not None:
        columns = {name: [row[name] for row in rows[:written]] for name in COLUMNS}
        tables.write_table(options.out, columns, options.force)
    if options.out != "-":
        for line in (
            *found.sentences(by_id),
            f"{len(selected):,} selected at an expected share of errors of {options.expected_wrong:g}",
        ):
            print(console.printable(line))
        for row in rows[:printed]:
            for line in _lines(row):
                print(console.printable(line))
    return signals.exit_code(found.status)


def _lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one item: its probability, its place and the proposed one, each with similar items."""
    mark = "*" if row["selected"] else " "
    terms = "1 term" if row["n_terms"] == 1 else f"{row['n_terms']:,} terms"
    yield f"{row['rank']:>3}.{mark}P {row['probability']:z.3f} {row['item_name']} ({terms})"
    yield f"      in {row['source_path']}{_beside(row['similar_at_source'])}"
    if not row["target_path"]:
        yield "      odd: similar to no place"
        return
    second = f" or {row['second_target_path']}" if row["second_target_path"] else ""
    target = f"{row['target_path']}{second} (P {row['target_probability']:z.3f})"
    yield f"      to {target}{_beside(row['similar_at_target'])}"


def _beside(names: str) -> str:
    return f", beside {names}" if names else ""


def _share(text: str) -> float:
    """Return the argument of an option that is a share.

    Example:
        >>> _share("0.2")
        0.2
    """
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"got {brief(text)}; expected a number in [0, 1). Pass 0.1 for 10 %.")
    return share
