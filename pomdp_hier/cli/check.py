"""``pomdp-hier validate``: what is wrong with a problem, and whether beliefs are updated as Bayes' rule says."""

import argparse
from typing import TYPE_CHECKING, Any

from pomdp_hier._text import counted
from pomdp_hier.cli import console, inputs, paths, trees
from pomdp_hier.cli.console import ExitCode
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.beliefs import UpdaterComparison
    from pomdp_hier.pomdp import POMDP

NAME = "validate"
SUMMARY = "check a problem for faults, and its belief updates against Bayes' rule"
EXAMPLES = (
    "printf 'discount: 0.9\\nstates: 2\\nactions: 1\\nobservations: 2\\n' > walk.pomdp",
    "printf 'values: reward\\nT: 0 uniform\\nO: 0 uniform\\nR: 0 : * : * : * 1\\n' >> walk.pomdp",
    "pomdp-hier validate walk.pomdp",
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv; echo '[[0,1],[2,3],[4,5]]' > tree.json",
    "pomdp-hier validate --hierarchy points.csv tree.json --delta 0.5",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    model = "a .pomdp file: the updates on its arrays are compared with Bayes' rule"
    add("problem", type=paths.input_file, metavar="FILE", nargs="?", help=model)
    add(
        "--hierarchy",
        nargs=2,
        type=paths.input_file,
        metavar=("FEATURES", "TREE"),
        help="the search in a hierarchy: the closed form of its belief is held against Bayes, item by item",
    )
    inputs.add_reading_options(parser)
    inputs.add_setting_options(parser)
    add("--items", type=int, default=20, metavar="N", help="check N items, evenly spread (default: 20)")
    add("--depth", type=int, metavar="N", help="the longest history (default: 4, or all of the hierarchy)")
    add("--tolerance", type=float, default=1e-12, metavar="X", help="the difference allowed (default: 1e-12)")
    add("--max-histories", type=int, default=10_000, metavar="N", help="at most N histories (default: 10000)")


def run(options: argparse.Namespace) -> int:
    """Check, and return 3 where something is wrong."""
    if (options.problem is None) == (options.hierarchy is None):
        raise ParameterError("give either a .pomdp FILE or --hierarchy FEATURES TREE")
    if options.hierarchy is None:
        names = (*inputs.OF_FEATURES, *inputs.OF_SETTINGS, "tree_format", "names", *trees.OF_TREES, "items")
        inputs.refuse_unused(options, names, "on a .pomdp file")
    if options.items < 1:
        raise ParameterError(f"--items is {options.items}; expected at least 1")
    return _file(options) if options.hierarchy is None else _hierarchy(options)


def _file(options: argparse.Namespace) -> int:
    from pomdp_hier.beliefs import BayesUpdater, TabularUpdater
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(options.problem)
    print(
        f"{console.printable(options.problem)}: {counted(len(problem.states), 'state')}, "
        f"{counted(len(problem.all_actions), 'action')}, {counted(len(problem.all_observations), 'observation')}, "
        f"discount {problem.discount}"
    )
    sound = _print_faults(problem)
    agreement = _compare(BayesUpdater(problem), TabularUpdater(problem), problem, options.depth or 4, options)
    print("Updates on arrays against Bayes' rule:")
    print(agreement)
    return ExitCode.DONE if sound and agreement.agrees else ExitCode.CHECK_FAILED


def _hierarchy(options: argparse.Namespace) -> int:
    import numpy as np

    from pomdp_hier.beliefs import BayesUpdater
    from pomdp_hier.features.affinity import affinity
    from pomdp_hier.hqs.belief import ClosedFormUpdater
    from pomdp_hier.hqs.model import search_environment, search_problem

    options.features, options.tree = options.hierarchy
    read = inputs.read_inputs(options)
    tree = read.tree
    known = affinity(read.features, tree, options.similarity)
    chosen = np.unique(np.linspace(0, tree.n_items - 1, min(options.items, tree.n_items)).round().astype(int))
    sound, n_histories, n_skipped, largest = True, 0, 0, 0.0
    for item in chosen.tolist():
        problem = search_problem(known, tree, item, delta=options.delta, nu=options.nu)
        world = search_environment(known, tree, item, delta=options.delta, nu=options.nu)
        depth = options.depth or int(tree.height) + 1
        agreement = _compare(BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth, options)
        n_histories, n_skipped = n_histories + agreement.n_compared, n_skipped + agreement.n_skipped
        largest = max(largest, agreement.max_difference, agreement.max_evidence_difference or 0.0)
        faults = not (_print_faults(problem, quiet=True) and _print_faults(world, quiet=True))
        if faults or not agreement.agrees:
            sound = False
            print(f"item {console.printable(str(read.ids[item]))}:\n{agreement}")
    left_out = f", at least {n_skipped:,} left out" if n_skipped else ""
    print(
        f"{len(chosen):,} of {tree.n_items:,} items: closed form against Bayes' rule on {n_histories:,} histories"
        f"{left_out}; largest difference {largest:.3g} (tolerance {options.tolerance:g}): "
        + ("they agree" if sound else "SOMETHING IS WRONG")
    )
    return ExitCode.DONE if sound else ExitCode.CHECK_FAILED


def _compare(
    reference: Any, candidate: Any, problem: "POMDP", depth: int, options: argparse.Namespace
) -> "UpdaterComparison":
    from pomdp_hier.beliefs import compare_updaters

    return compare_updaters(
        reference,
        candidate,
        problem,
        depth=depth,
        tolerance=options.tolerance,
        max_histories=options.max_histories,
    )


def _print_faults(problem: "POMDP", quiet: bool = False) -> bool:
    """Print the faults; true if there is none."""
    from pomdp_hier.pomdp.checks import check_problem

    faults = check_problem(problem)
    for fault in faults[:50]:
        print(console.printable(str(fault)))
    if len(faults) > 50:
        print(f"... and {len(faults) - 50:,} more faults")
    if not faults and not quiet:
        print("no faults")
    return not faults
