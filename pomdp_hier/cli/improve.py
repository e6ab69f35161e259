"""The commands that change a tree: ``improve``, ``regroup``, ``misfiled``, and ``apply`` for accepted decisions."""

import argparse
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pomdp_hier.cli import console, inputs, trees
from pomdp_hier.cli.console import command

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy


_WRITTEN = "write the {} tree here: with the ending of TREE in its format, ids and columns, or as .json; .gz too"
_DECIDED = "an earlier table of this command or its sister with decisions: what was rejected is not proposed again"


def _kept(tree: "Hierarchy", options: argparse.Namespace) -> list[int]:
    """Return the nodes that rejections in the file of ``--decided`` keep where they are."""
    if options.decided is None:
        return []
    from pomdp_hier.improvement.decisions import kept_nodes, read_decisions

    kept, misfits = kept_nodes(tree, read_decisions(options.decided))
    for decision, reason in misfits:
        console.note(f"{options.decided}: {decision} no longer fits: {reason}", options)
    return kept


def _configure_improve(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser, calibrated=True, weights=True)
    add = parser.add_argument
    inputs.add_out(parser, _WRITTEN.format("better"))
    edits = "write the edits, one per row, to .csv, .xlsx, .parquet or .json; - is CSV on stdout"
    add("--edits-out", type=console.output_file, metavar="PATH", help=edits)
    raised = "the score to raise: search_length, that of searchers who may go back, or hqs"
    what = f"{raised} (default: %(default)s)"
    add("--objective", choices=("search_length", "hqs"), default="search_length", help=what)
    cost = "the cost of reading a label for search_length, in items looked at (default: 1)"
    add("--label-cost", type=inputs.amount, metavar="X", help=cost)
    what = (
        "edits to try: move (items and clusters), merge, split, and those that remove levels, which HQS rewards for "
        "longer lists: remove, remove-level, collapse, collapse-below; separated by commas (default: "
        "move,merge,split)"
    )
    add("--kinds", default="move,merge,split", metavar="NAMES", help=what)
    wrong = "move the items whose expected share of moves to a wrong place is at most X under the model (default: 0.2)"
    add("--expected-wrong", type=inputs.share, default=0.2, metavar="X", help=wrong)
    add("--all", action="store_true", help="make also the edits that are not sound, after the others")
    levels = "reject edits that change a node's level (default: where all items have the same level)"
    add("--keep-levels", action=argparse.BooleanOptionalAction, default=None, help=levels)
    add("--fixed", metavar="ID", action="append", default=[], help="a node that keeps its place; may be repeated")
    level = "a level whose nodes keep their places (the root's is 0); may be repeated"
    add("--fixed-level", metavar="N", type=inputs.count, action="append", default=[], help=level)
    inputs.add_count(parser, "--max-edits", "at most N edits (default: all with a gain)")
    loss = "reject edits that lower the value of any item by more than X"
    add("--max-loss", type=inputs.amount, metavar="X", help=loss)
    folds = "number of folds for the held-out gain; 0 to skip"
    inputs.add_count(parser, "--folds", folds, 5)
    then = f"stop then, with the best tree so far; {console.SIGNALS_HELP}"
    add("--time-limit", type=inputs.amount, metavar="SECONDS", help=then)
    inputs.add_count(parser, "--seed", "random seed of the folds", 0)
    inputs.add_count(parser, "--top", "print N edits", 10)
    add("--decided", type=console.input_file, metavar="PATH", help=_DECIDED)
    inputs.add_quiet(parser)


@command(
    "improve",
    "find sound edits of a tree that raise its score, and write the better tree",
    _configure_improve,
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n0,8\\n8,0\\n' > points.csv",
    "echo '[[0,1,2],[3,4,5],[6,7]]' | pomdp-hier improve points.csv - --edits-out edits.csv --force",
)
def improve(options: argparse.Namespace) -> int:
    if options.out is not None:
        console.check_target(options.out, options.force, endings=trees.written_endings(options))
    if options.edits_out is not None:
        console.check_target(options.edits_out, options.force, option="--edits-out")
    if options.out is None and options.edits_out is None:
        inputs.refuse_unused(options, ("force",), "without --out or --edits-out")
    if options.folds == 0:
        inputs.refuse_unused(options, ("seed",), "without folds")
    from pomdp_hier.improvement import improve
    from pomdp_hier.improvement.result import COLUMNS

    by_id = inputs.read_names(options.names, options.name_columns)
    read = inputs.read_inputs(options)
    kept = _kept(read.tree, options)
    with console.may_end_search():
        found = improve(
            read.features,
            read.tree,
            objective=options.objective,
            label_cost=options.label_cost,
            kinds=[name.strip() for name in options.kinds.split(",")],
            expected_wrong=options.expected_wrong,
            sound_only=not options.all,
            keep_levels=options.keep_levels,
            fixed=[*(inputs.label_of(read.tree, text, "--fixed") for text in options.fixed), *_labels(read.tree, kept)],
            fixed_levels=options.fixed_level,
            max_edits=options.max_edits,
            max_loss=options.max_loss,
            folds=options.folds,
            time_limit=options.time_limit,
            random_state=options.seed,
            progress=True,
            **inputs.settings(options, read),
        )
    better = found.tree
    found = found.renamed(by_id) if by_id else found
    if options.edits_out is not None:
        rows = found.to_rows()
        console.write_table(options.edits_out, {name: [row[name] for row in rows] for name in COLUMNS}, options.force)
    if options.edits_out != "-":
        console.show(found.summary(options.top).splitlines())
    if options.out is not None:  # last, as the format may not be able to represent the tree
        trees.write_like_source(better, options)
    return console.exit_code(found.status)


def _labels(tree: "Hierarchy", nodes: Sequence[int]) -> list[Hashable]:
    """Return the labels of nodes; of those without one the numbers."""
    labels = [None] * tree.n_nodes if tree.labels is None else tree.labels
    return [node if labels[node] is None else labels[node] for node in nodes]


def _configure_misfiled(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser)
    parser.set_defaults(similarity="cosine")
    add = parser.add_argument
    table = "write the first items, one per row, to .csv, .xlsx, .parquet or .json; - is CSV on stdout"
    inputs.add_out(parser, table)
    share = (
        "select the longest list whose expected share of items in the right place is at most X under the model "
        f"(default: 0.1); {console.SIGNALS_HELP}"
    )
    add("--expected-wrong", type=inputs.share, default=0.1, metavar="X", help=share)
    inputs.add_count(parser, "--limit", "write N items, selected or not", 100)
    inputs.add_count(parser, "--top", "print N items", 10)
    add("--decided", type=console.input_file, metavar="PATH", help=_DECIDED)
    inputs.add_quiet(parser)


@command(
    "misfiled",
    "find items in the wrong place, with probabilities, and the places where they belong",
    _configure_misfiled,
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n0,8\\n8,0\\n' > points.csv",
    "echo '[[0,1,2],[3,4,5],[6,7]]' | pomdp-hier misfiled points.csv - -o misfiled.csv --force",
)
def misfiled(options: argparse.Namespace) -> int:
    inputs.check_out(options)
    if options.out is None:
        inputs.refuse_unused(options, ("limit",), "without --out")
    from pomdp_hier.filing import find_misfiled
    from pomdp_hier.filing.result import COLUMNS

    by_id = inputs.read_names(options.names, options.name_columns)
    read = inputs.read_inputs(options)
    with console.may_end_search():
        found = find_misfiled(read.features, read.tree, progress=True)
    found = found.keeping(node for node in _kept(read.tree, options) if node < read.tree.n_items)
    selected = found.select(options.expected_wrong, target=False)
    printed = 0 if options.out == "-" else options.top
    written = 0 if options.out is None else options.limit
    rows = found.to_rows(max(printed, written), names=by_id, selected=selected.tolist())
    if options.out is not None:
        columns = {name: [row[name] for row in rows[:written]] for name in COLUMNS}
        console.write_table(options.out, columns, options.force)
    if options.out != "-":
        console.show(found.sentences(by_id))
        console.show([f"{len(selected):,} selected at an expected share of errors of {options.expected_wrong:g}"])
        for row in rows[:printed]:
            console.show(_item_lines(row))
    return console.exit_code(found.status)


def _item_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one item: its probability, its place and the proposed one, each with similar items."""
    mark = "*" if row["selected"] else " "
    terms = "1 term" if row["n_terms"] == 1 else f"{row['n_terms']:,} terms"
    yield f"{row['rank']:>3}.{mark}P {row['probability']:z.3f} {row['item_name']} ({terms})"
    yield f"      in {row['source_path']}{_similar(row['similar_at_source'])}"
    if not row["target_path"]:
        yield "      odd: similar to no place"
        return
    second = f" or {row['second_target_path']}" if row["second_target_path"] else ""
    target = f"{row['target_path']}{second} (P {row['target_probability']:z.3f})"
    yield f"      to {target}{_similar(row['similar_at_target'])}"


def _similar(names: str) -> str:
    return f", beside {names}" if names else ""


def _configure_apply(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    features = "one row per item, to print the score before and after"
    add("features", type=console.input_file, metavar="FEATURES", nargs="?", help=features)
    inputs.add_tree(parser)
    moves = "the table of misfiled or improve, with accept or reject in its column decision"
    add("moves", type=console.input_file, metavar="MOVES", help=moves)
    inputs.add_reading_options(parser)
    inputs.add_setting_options(parser, weights=True)
    inputs.add_out(parser, _WRITTEN.format("better"))
    inputs.add_quiet(parser)


@command(
    "apply",
    "carry out the accepted moves and edits of a table, and write the better tree",
    _configure_apply,
    "printf 'item,path\\nant,a\\nbee,b\\ncod,a\\n' > tree.csv",
    "printf 'item_id,source_id,target_id,decision\\ncod,a,b,accept\\n' > moves.csv",
    "pomdp-hier apply tree.csv moves.csv -o better.csv",
)
def apply(options: argparse.Namespace) -> int:
    inputs.check_out(options, endings=trees.written_endings(options))
    if options.features is None:
        unused = (*inputs.OF_FEATURES, *inputs.OF_SETTINGS)
        inputs.refuse_unused(options, unused, "on a tree without FEATURES")
    from pomdp_hier.improvement.decisions import apply_decisions, read_decisions

    decisions = read_decisions(options.moves)
    read = None if options.features is None else inputs.read_inputs(options)
    tree = trees.read_tree(options) if read is None else read.tree
    found = apply_decisions(tree, decisions)
    console.show(found.sentences())
    if read is not None:
        from pomdp_hier.hqs.score import hqs_score

        settings = inputs.settings(options, read)
        before, after = (hqs_score(read.features, one, **settings) for one in (tree, found.tree))
        print(f"score {before:z.4f} -> {after:z.4f}")
    if options.out is not None:
        trees.write_like_source(found.tree, options)
    return 0


def _configure_regroup(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser, ties=False, weights=True)
    add = parser.add_argument
    inputs.add_out(parser, _WRITTEN.format("new"))
    add("--node", metavar="ID", help="the node whose levels below are rebuilt (default: the root)")
    headings = "the level of the headings, which stay whole; the root has 0 (default: the deepest level)"
    inputs.add_count(parser, "--level", headings)
    inputs.add_count(parser, "--max-children", "at most N children per rebuilt node (default: as many as now)")
    cost = "the cost of reading a label, in items looked at (default: 1)"
    add("--label-cost", type=inputs.amount, default=1.0, metavar="X", help=cost)
    near = "give up this share of the gain for a tree that is nearer to the given one (default: 0.05)"
    add("--tolerance", type=inputs.amount, default=0.05, metavar="X", help=near)
    inputs.add_count(parser, "--folds", "number of parts for the held-out gain; 0 to skip", 2)
    inputs.add_count(parser, "--seed", "random seed of the parts", 0)
    inputs.add_count(parser, "--top", "print N groups", 20)
    page = "write a page with the tree as it is beside the new groups, a single .html file"
    parser.add_argument("--report", type=console.output_file, metavar="PATH", help=page)
    inputs.add_quiet(parser)


@command(
    "regroup",
    "rebuild the levels above given headings from the features, judged on held-out items",
    _configure_regroup,
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n0,8\\n8,0\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5],[6,7,8]]' | pomdp-hier regroup points.csv - --folds 0",
)
def regroup(options: argparse.Namespace) -> int:
    if options.out is not None:
        console.check_target(options.out, options.force, endings=trees.written_endings(options))
    if options.report is not None:
        console.check_target(options.report, options.force, endings=(".html", ".htm"), option="--report")
    if options.out is None and options.report is None:
        inputs.refuse_unused(options, ("force",), "without --out or --report")
    from pomdp_hier.improvement import regroup

    by_id = inputs.read_names(options.names, options.name_columns)
    read = inputs.read_inputs(options)
    found = regroup(
        read.features,
        read.tree,
        node=None if options.node is None else inputs.label_of(read.tree, options.node, "--node"),
        level=options.level,
        max_children=options.max_children,
        label_cost=options.label_cost,
        tolerance=options.tolerance,
        terms=read.columns,
        folds=options.folds,
        random_state=options.seed,
        progress=True,
        **inputs.settings(options, read),
    )
    found = found.renamed(by_id) if by_id else found
    console.show(found.summary(options.top, by_id or None).splitlines())
    if options.report is not None:
        from pomdp_hier.report.regroup_page import write_regrouping

        write_regrouping(found, options.report, names=by_id or None, replace=options.force)
    if options.out is not None:  # last, as the format may not be able to represent the tree
        trees.write_like_source(found.tree, options)
    return 0
