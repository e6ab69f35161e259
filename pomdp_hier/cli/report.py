"""``pomdp-hier report``: a report on a hierarchy in a single HTML file."""

import argparse
from pathlib import Path

from pomdp_hier.cli import console, files, inputs, tables, trees

NAME = "report"
SUMMARY = "write an HTML report: score, baselines, icicle, worst nodes, lost items, suggested moves"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier report points.csv - -o report.html",
)

_LARGE = 20_000
_STEPS = 4
_SHUFFLES, _CANDIDATES = (8, 3), (12, 6)  # up to so many items, and above: each of them is one scoring


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_input_options(parser)
    inputs.add_setting_options(parser, calibrated=True)
    add = parser.add_argument
    add("-o", "--out", type=files.output_file, required=True, metavar="HTML", help="the file to write, .html")
    add("--force", action="store_true", help="replace the file if it exists")
    add("--title", metavar="TEXT", help="the heading (default: the names of the two files)")
    few = f"{_SHUFFLES[0]}; {_SHUFFLES[1]} above {_LARGE:,} items"
    inputs.add_count(parser, "--shuffles", f"number of shuffled trees for the baseline (default: {few})")
    inputs.add_count(parser, "--n-moves", "maximum number of suggested moves, each scored", 5)
    inputs.add_count(parser, "--n-edits", "instead of moves, at most N edits with a joint gain")
    inputs.add_count(parser, "--max-rows", "maximum number of rows per table", 25)
    inputs.add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Write the report."""
    tables.check_target(options.out, options.force, endings=(".html", ".htm"))
    if options.n_edits is not None:
        inputs.refuse_unused(options, ("n_moves",), "with --n-edits")
    from pomdp_hier.analysis.baselines import appraise
    from pomdp_hier.analysis.diagnosis import diagnose
    from pomdp_hier.analysis.moves import suggest_moves
    from pomdp_hier.improvement import improve
    from pomdp_hier.report import write_report

    by_id = trees.read_names(options.names, options.name_columns)
    found = inputs.read_inputs(options)
    X, tree = found.features, found.tree
    large = tree.n_items > _LARGE
    shuffles = _SHUFFLES[large] if options.shuffles is None else options.shuffles
    settings = inputs.settings(options)
    with console.steps("report", _STEPS) as step:
        step("scoring the tree and shuffled trees")
        appraisal = appraise(X, tree, n_shuffles=shuffles, **settings)
        settings["delta"] = appraisal.result.config["delta"]
        step("diagnosing lost items")
        diagnosis = diagnose(X, tree, appraisal.result, **settings)
        moves, improvement = [], None
        if options.n_edits is not None:
            step("improving the tree")
            improvement = improve(X, tree, max_edits=options.n_edits, **settings)
        elif options.n_moves:
            step("trying moves")
            candidates = max(options.n_moves, _CANDIDATES[large])
            moves = suggest_moves(X, diagnosis, limit=options.n_moves, candidates=candidates, **settings)
        step("writing the page")
        page = write_report(
            diagnosis,
            options.out,
            appraisal=appraisal,
            moves=moves,
            improvement=improvement,
            names=by_id,
            title=options.title or _title(options),
            limit=options.max_rows,
            replace=options.force,
        )
    calibrated = "" if appraisal.calibration is None else " (calibrated)"
    print(f"HQS {appraisal.score:z.6f}, delta {settings['delta']:g}{calibrated}, rows joined by {found.joined}")
    for sentence in appraisal.sentences():
        print(f"  {sentence}")
    console.note(f"written to {options.out}, {len(page.encode()) / 1e6:z.1f} MB", options)
    return 0


def _title(options: argparse.Namespace) -> str:
    tree, features = ("standard input" if path == "-" else Path(path).name for path in (options.tree, options.features))
    return f"How well does {tree} support the search in {features}?"
