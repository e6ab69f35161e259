"""``pomdp-hier regroup``: the levels above given headings rebuilt from the features."""

import argparse

from pomdp_hier._io.writing import write_file
from pomdp_hier.cli import console, files, inputs, trees
from pomdp_hier.cli.console import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser)
    inputs.add_setting_options(parser, ties=False)
    add = parser.add_argument
    better = "write the new tree here: with the ending of TREE in its format, ids and columns, or as .json; .gz too"
    add("-o", "--out", type=files.output_file, metavar="PATH", help=better)
    add("--force", action="store_true", help="replace the file if it exists")
    add("--node", metavar="ID", help="the node whose levels below are rebuilt (default: the root)")
    headings = "the level of the headings, which stay whole; the root has 0 (default: the deepest level)"
    inputs.add_count(parser, "--level", headings)
    inputs.add_count(parser, "--max-children", "at most N children per rebuilt node (default: as many as now)")
    cost = "the cost of reading a label, in items looked at (default: 1)"
    add("--label-cost", type=inputs.amount, default=1.0, metavar="X", help=cost)
    near = "give up this share of the gain for a tree that is nearer to the given one (default: 0.1)"
    add("--tolerance", type=inputs.amount, default=0.1, metavar="X", help=near)
    inputs.add_count(parser, "--folds", "number of parts for the held-out gain; 0 to skip", 2)
    inputs.add_count(parser, "--seed", "random seed of the parts", 0)
    inputs.add_count(parser, "--top", "print N groups", 20)
    inputs.add_quiet(parser)


def _run(options: argparse.Namespace) -> int:
    """Regroup the headings."""
    if options.out is not None:
        files.check_target(options.out, options.force, endings=trees.written_endings(options))
    else:
        inputs.refuse_unused(options, ("force",), "without --out")
    from pomdp_hier.improvement import regroup

    read = inputs.read_inputs(options)
    found = regroup(
        read.features,
        read.tree,
        node=None if options.node is None else trees.label_of(read.tree, options.node, "--node"),
        level=options.level,
        max_children=options.max_children,
        label_cost=options.label_cost,
        tolerance=options.tolerance,
        terms=read.columns,
        folds=options.folds,
        random_state=options.seed,
        progress=True,
        **inputs.settings(options),
    )
    for line in found.summary(options.top).splitlines():
        print(console.printable(line))
    if options.out is not None:  # last, as the format may not be able to represent the tree
        write_file(options.out, trees.written_like_source(found.tree, options, options.out), replace=options.force)
    return 0


REGROUP = Command(
    "regroup",
    "rebuild the levels above given headings from the features, judged on held-out items",
    (
        "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n0,8\\n8,0\\n' > points.csv",
        "echo '[[0,1],[2,3],[4,5],[6,7,8]]' | pomdp-hier regroup points.csv - --folds 0",
    ),
    _configure,
    _run,
)
