"""``pomdp-hier levels``: how many levels a tree should have, or where to cut a dendrogram."""

import argparse
import json

from pomdp_hier._io.writing import write_file
from pomdp_hier.cli import console, inputs, paths, trees

NAME = "levels"
SUMMARY = "score a tree as its levels are taken out, or find the best cut of a dendrogram"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier levels points.csv - --cut 1",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_input_options(parser)
    inputs.add_setting_options(parser, calibrated=True)
    add = parser.add_argument
    add("--side", choices=["bottom", "top"], default="bottom", help="where levels are taken out (default: bottom)")
    inputs.add_count(parser, "--most", "score N trees at most", 40)
    inputs.add_count(parser, "--cut", "instead, find the best cut of a dendrogram, of N levels at most")
    inputs.add_count(parser, "--max-clusters", "with --cut: the largest flat cut to look at", 1000)
    best = "write the tree with the best score here: as TREE is, or as .json"
    add("-o", "--out", type=paths.output_file, metavar="PATH", help=best)
    add("--force", action="store_true", help="replace the file of --out if it exists")
    add("--json", action="store_true", help="print the figures as JSON")


def run(options: argparse.Namespace) -> int:
    """Score the trees."""
    if options.cut is None:
        inputs.refuse_unused(options, ("max_clusters",), "without --cut")
    else:
        inputs.refuse_unused(options, ("side", "most", "policy"), "with --cut")
    inputs.check_out(options, endings=trees.written_endings(options))
    from pomdp_hier.analysis.levels import best_cut, score_by_levels

    read = inputs.read_inputs(options)
    settings = inputs.settings(options)
    if options.cut is not None:
        del settings["policy"]
        cut = best_cut(read.features, read.tree, levels=options.cut, max_clusters=options.max_clusters, **settings)
        tree, rows, text = cut.tree, cut.to_rows(), cut.summary()
    else:
        found = score_by_levels(read.features, read.tree, side=options.side, most=options.most, **settings)
        tree, rows, text = found.trees[found.best], found.to_rows(), found.summary()
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for line in text.splitlines():
            print(console.printable(line))
    if options.out is not None:
        write_file(options.out, trees.written_like_source(tree, options, options.out), replace=options.force)
    return 0
