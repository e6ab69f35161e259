"""``pomdp-hier levels``: the score of a tree with fewer levels, or the best cut of a dendrogram."""

import argparse
import json

from pomdp_hier._io.writing import write_file
from pomdp_hier.cli import console, files, inputs, trees

NAME = "levels"
SUMMARY = "score a tree with fewer levels, or find the best cut of a dendrogram"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier levels points.csv - --best-cut 1",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_input_options(parser)
    inputs.add_setting_options(parser, calibrated=True)
    add = parser.add_argument
    add(
        "--remove-from",
        choices=["bottom", "top"],
        default="bottom",
        help="the end to remove levels from (default: bottom)",
    )
    inputs.add_count(parser, "--max-trees", "score at most N trees", 40)
    inputs.add_count(parser, "--best-cut", "instead, find the best cut of a dendrogram into at most N levels")
    inputs.add_count(
        parser, "--max-clusters", "with --best-cut: the maximum number of clusters of a cut into one level", 1000
    )
    best = "write the tree with the best score here, in the format of TREE or as .json"
    add("-o", "--out", type=files.output_file, metavar="PATH", help=best)
    add("--force", action="store_true", help="replace the file of --out if it exists")
    add("--json", action="store_true", help="print the figures as JSON")
    inputs.add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Score the trees."""
    if options.best_cut is None:
        inputs.refuse_unused(options, ("max_clusters",), "without --best-cut")
    else:
        inputs.refuse_unused(options, ("remove_from", "max_trees", "policy"), "with --best-cut")
    inputs.check_out(options, endings=trees.written_endings(options))
    from pomdp_hier.analysis.levels import best_cut, score_by_levels

    read = inputs.read_inputs(options)
    settings = inputs.settings(options)
    if options.best_cut is not None:
        del settings["policy"]
        cut = best_cut(read.features, read.tree, levels=options.best_cut, max_clusters=options.max_clusters, **settings)
        tree, rows, text = cut.tree, cut.to_rows(), cut.summary()
    else:
        settings["progress"] = True
        found = score_by_levels(
            read.features, read.tree, remove_from=options.remove_from, limit=options.max_trees, **settings
        )
        tree, rows, text = found.trees[found.best], found.to_rows(), found.summary()
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for line in text.splitlines():
            print(console.printable(line))
    if options.out is not None:
        write_file(options.out, trees.written_like_source(tree, options, options.out), replace=options.force)
    return 0
