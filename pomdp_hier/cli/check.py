"""``pomdp-hier check``: issues of a model, and belief updates compared with Bayes' rule."""

import argparse
from typing import TYPE_CHECKING, Any

from pomdp_hier._text import counted
from pomdp_hier.cli import console, files, inputs, trees
from pomdp_hier.cli.exit_codes import ExitCode
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.beliefs.comparison import UpdaterComparison
    from pomdp_hier.pomdp.problem import POMDP

NAME = "check"
SUMMARY = "list the issues of a model, and compare its belief updates with Bayes' rule"
EXAMPLES = (
    "printf 'discount: 0.9\\nstates: 2\\nactions: 1\\nobservations: 2\\n' > walk.pomdp",
    "printf 'values: reward\\nT: 0 uniform\\nO: 0 uniform\\nR: 0 : * : * : * 1\\n' >> walk.pomdp",
    "pomdp-hier check walk.pomdp",
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv; echo '[[0,1],[2,3],[4,5]]' > tree.json",
    "pomdp-hier check --hierarchy points.csv tree.json --delta 0.5",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    model = "a .pomdp file; its array updates are compared with Bayes' rule"
    add("problem", type=files.input_file, metavar="FILE", nargs="?", help=model)
    add(
        "--hierarchy",
        nargs=2,
        type=files.input_file,
        metavar=("FEATURES", "TREE"),
        help="the search in a hierarchy: the closed-form belief of each item is compared with Bayes' rule",
    )
    inputs.add_reading_options(parser)
    inputs.add_setting_options(parser, ties=False)
    add("--check-items", type=int, default=20, metavar="N", help="check N items at equal distances (default: 20)")
    depth = "maximum length of a history (default: 4, or 1 more than the height of the hierarchy)"
    add("--depth", type=int, metavar="N", help=depth)
    add(
        "--tolerance",
        type=float,
        default=1e-12,
        metavar="X",
        help="maximum difference (default: 1e-12)",
    )
    add("--max-histories", type=int, default=10_000, metavar="N", help="maximum number of histories (default: 10000)")
    inputs.add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Check the model, and return 3 if it has an issue."""
    if (options.problem is None) == (options.hierarchy is None):
        raise ParameterError(
            "FILE: got "
            + ("nothing" if options.problem is None else "both FILE and --hierarchy")
            + "; expected one model. Give a .pomdp FILE or --hierarchy FEATURES TREE."
        )
    if options.hierarchy is None:
        names = (*inputs.OF_FEATURES, *inputs.OF_SETTINGS, "tree_format", "names", *trees.OF_TREES, "check_items")
        inputs.refuse_unused(options, names, "on a .pomdp file")
    if options.check_items < 1:
        raise ParameterError(f"--check-items: got {options.check_items}; expected an integer of at least 1")
    return _file(options) if options.hierarchy is None else _hierarchy(options)


def _file(options: argparse.Namespace) -> int:
    from pomdp_hier.beliefs.updaters import BayesUpdater, TabularUpdater
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(options.problem)
    print(
        f"{console.printable(options.problem)}: {counted(len(problem.states), 'state')}, "
        f"{counted(len(problem.all_actions), 'action')}, {counted(len(problem.all_observations), 'observation')}, "
        f"discount {problem.discount}"
    )
    sound = _print_issues(problem)
    agreement = _compare(BayesUpdater(problem), TabularUpdater(problem), problem, options.depth or 4, options)
    print("Array updates compared with Bayes' rule:")
    print(agreement)
    return ExitCode.DONE if sound and agreement.agrees else ExitCode.CHECK_FAILED


def _hierarchy(options: argparse.Namespace) -> int:
    import numpy as np

    from pomdp_hier._progress import shown_progress
    from pomdp_hier.beliefs.updaters import BayesUpdater
    from pomdp_hier.features.affinity import affinity
    from pomdp_hier.hqs.item_search import search_environment, search_problem
    from pomdp_hier.hqs.model import ClosedFormUpdater

    options.features, options.tree = options.hierarchy
    read = inputs.read_inputs(options)
    tree = read.tree
    known = affinity(read.features, tree, options.similarity)
    chosen = np.unique(np.linspace(0, tree.n_items - 1, min(options.check_items, tree.n_items)).round().astype(int))
    sound, n_histories, n_skipped, largest = True, 0, 0, 0.0
    depth = options.depth or int(tree.height) + 1
    with shown_progress(True, "check", "item", len(chosen), leave=False) as bar:
        for item in chosen.tolist():
            problem = search_problem(known, tree, item, delta=options.delta, nu=options.nu)
            environment = search_environment(known, tree, item, delta=options.delta, nu=options.nu)
            agreement = _compare(BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth, options)
            n_histories, n_skipped = n_histories + agreement.n_compared, n_skipped + agreement.n_skipped
            largest = max(largest, agreement.max_difference, agreement.max_evidence_difference or 0.0)
            sound_models = _print_issues(problem, quiet=True) and _print_issues(environment, quiet=True)
            if not (sound_models and agreement.agrees):
                sound = False
                print(f"item {console.printable(str(read.ids[item]))}:\n{agreement}")
            bar.update()
    left_out = f", at least {n_skipped:,} skipped" if n_skipped else ""
    print(
        f"{len(chosen):,} of {tree.n_items:,} items: closed form compared with Bayes' rule on {n_histories:,} histories"
        f"{left_out}; largest difference {largest:.3g} (tolerance {options.tolerance:g}): "
        + ("they agree" if sound else "CHECK FAILED")
    )
    return ExitCode.DONE if sound else ExitCode.CHECK_FAILED


def _compare(
    reference: Any, candidate: Any, problem: "POMDP", depth: int, options: argparse.Namespace
) -> "UpdaterComparison":
    from pomdp_hier.beliefs.comparison import compare_updaters

    return compare_updaters(
        reference,
        candidate,
        problem,
        depth=depth,
        tolerance=options.tolerance,
        max_histories=options.max_histories,
    )


def _print_issues(problem: "POMDP", quiet: bool = False) -> bool:
    """Print the issues of a model, and return whether there are none."""
    from pomdp_hier.pomdp.checks import check_problem

    issues = check_problem(problem)
    for issue in issues[:50]:
        print(console.printable(str(issue)))
    if len(issues) > 50:
        print(f"... and {len(issues) - 50:,} more issues")
    if not issues and not quiet:
        print("no issues")
    return not issues
