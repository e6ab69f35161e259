"""The commands on POMDPs and on the paper: check, solve, verify; reproduce (the case study) and teach (three nodes)."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp_hier._io.formats import decoding
from pomdp_hier._text import brief, counted
from pomdp_hier.cli import console, inputs, trees
from pomdp_hier.cli.console import ExitCode, command
from pomdp_hier.errors import Argument, CertificateError, ParameterError

if TYPE_CHECKING:
    from pomdp_hier.beliefs.comparison import UpdaterComparison
    from pomdp_hier.hqs.paper import Figure, Reproduction
    from pomdp_hier.planning.certificates.claims import VerifiedBounds
    from pomdp_hier.planning.point_based.solution import Solution
    from pomdp_hier.pomdp.problem import POMDP


_ITEMS = 20  # items of one check
_FULL = 4  # items that are compared on all histories, at least
_HISTORIES = 20_000  # of all items together, where more than four have so many


def _configure_check(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    model = "a .pomdp file; its array updates are compared with Bayes' rule"
    add("problem", type=console.input_file, metavar="FILE", nargs="?", help=model)
    what = "the search in a hierarchy: the closed-form belief of each item is compared with Bayes' rule"
    add("--hierarchy", nargs=2, type=console.input_file, metavar=("FEATURES", "TREE"), help=what)
    inputs.add_reading_options(parser)
    inputs.add_setting_options(parser, ties=False)
    items = "compare N items on all histories (default: 20, in a large hierarchy 4 of them; the others on arrays)"
    add("--check-items", type=int, metavar="N", help=items)
    depth = "maximum length of a history (default: 4, or 1 more than the height of the hierarchy)"
    add("--depth", type=int, metavar="N", help=depth)
    add("--tolerance", type=float, default=1e-12, metavar="X", help="maximum difference (default: 1e-12)")
    add("--max-histories", type=int, default=10_000, metavar="N", help="maximum number of histories (default: 10000)")
    inputs.add_quiet(parser)


@command(
    "check",
    "list the issues of a model, and compare its belief updates with Bayes' rule",
    _configure_check,
    "printf 'discount: 0.9\\nstates: 2\\nactions: 1\\nobservations: 2\\n' > walk.pomdp",
    "printf 'values: reward\\nT: 0 uniform\\nO: 0 uniform\\nR: 0 : * : * : * 1\\n' >> walk.pomdp",
    "pomdp-hier check walk.pomdp",
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv; echo '[[0,1],[2,3],[4,5]]' > tree.json",
    "pomdp-hier check --hierarchy points.csv tree.json --delta 0.5",
)
def check(options: argparse.Namespace) -> int:
    if (options.problem is None) == (options.hierarchy is None):
        raise ParameterError(
            "FILE: got "
            + ("nothing" if options.problem is None else "both FILE and --hierarchy")
            + "; expected one model. Give a .pomdp FILE or --hierarchy FEATURES TREE."
        )
    if options.hierarchy is None:
        names = (*inputs.OF_FEATURES, *inputs.OF_SETTINGS, "tree_format", "names", *trees.OF_TREES, "check_items")
        inputs.refuse_unused(options, names, "on a .pomdp file")
    if options.check_items is not None and options.check_items < 1:
        raise ParameterError(f"--check-items: got {options.check_items}; expected an integer of at least 1.")
    return _check_file(options) if options.hierarchy is None else _check_hierarchy(options)


def _check_file(options: argparse.Namespace) -> int:
    from pomdp_hier.beliefs.updaters import BayesUpdater, TabularUpdater
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(options.problem)
    print(
        f"{console.printable(options.problem)}: {counted(len(problem.states), 'state')}, "
        f"{counted(len(problem.all_actions), 'action')}, {counted(len(problem.all_observations), 'observation')}, "
        f"discount {problem.discount}"
    )
    sound = _print_issues(problem)
    agreement = _compare_updates(BayesUpdater(problem), TabularUpdater(problem), problem, options.depth or 4, options)
    print("Array updates compared with Bayes' rule:")
    print(agreement)
    return ExitCode.DONE if sound and agreement.agrees else ExitCode.CHECK_FAILED


def _check_hierarchy(options: argparse.Namespace) -> int:
    import numpy as np

    from pomdp_hier._progress import shown_progress
    from pomdp_hier.beliefs.updaters import BayesUpdater
    from pomdp_hier.features.affinity import affinity
    from pomdp_hier.hqs.generic import closed_form_gap, prepared_search, search_models
    from pomdp_hier.hqs.inputs import Settings
    from pomdp_hier.hqs.model import ClosedFormUpdater

    options.features, options.tree = options.hierarchy
    read = inputs.read_inputs(options)
    tree = read.tree
    known = affinity(read.features, tree, options.similarity)
    prepared = prepared_search(known, tree, Settings(options.similarity, options.delta, options.nu))
    n_items = min(options.check_items or _ITEMS, tree.n_items)
    chosen = np.unique(np.linspace(0, tree.n_items - 1, n_items).round().astype(int)).tolist()
    n_full = len(chosen) if options.check_items else min(len(chosen), max(_FULL, _HISTORIES // (3 * tree.n_nodes)))
    depth = options.depth or int(tree.height) + 1
    sound, n_histories, n_skipped, largest = True, 0, 0, 0.0
    on_arrays: list[int] = []

    def name(item: int) -> str:
        return f"item {console.printable(str(read.ids[item]))}"

    with shown_progress(True, "check", "item", len(chosen), leave=False) as bar:
        if n_full < len(chosen):
            certainty = {}
            for item in chosen:
                eta = search_models(prepared, item)[0].transition.eta
                certainty[item] = np.mean([max(children.values()) for children in eta.values()])
                gap = closed_form_gap(eta)
                largest = max(largest, gap)
                if not gap <= options.tolerance:
                    sound = False
                    print(f"{name(item)}: the closed form on arrays differs by {gap:.3g}")
            ranked = sorted(chosen, key=certainty.__getitem__)  # the least and the most certain guidance, and between
            full = {ranked[i] for i in np.linspace(0, len(chosen) - 1, n_full).round().astype(int).tolist()}
            on_arrays = [item for item in chosen if item not in full]
            bar.update(len(on_arrays))
        for item in sorted(set(chosen) - set(on_arrays)):
            problem, environment = search_models(prepared, item)
            bar.update()
            if not (_print_issues(problem, quiet=True) and _print_issues(environment, quiet=True)):
                sound = False
                print(f"{name(item)}: the updates are not compared, as the models have issues")
                continue
            agreement = _compare_updates(BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth, options)
            n_histories, n_skipped = n_histories + agreement.n_compared, n_skipped + agreement.n_skipped
            largest = max(largest, agreement.max_difference, agreement.max_evidence_difference or 0.0)
            if not agreement.agrees:
                sound = False
                print(f"{name(item)}:\n{agreement}")
    left_out = f", at least {n_skipped:,} skipped" if n_skipped else ""
    others = f", {len(on_arrays):,} others on arrays at each node" if on_arrays else ""
    print(
        f"{len(chosen) - len(on_arrays):,} of {tree.n_items:,} items: closed form compared with Bayes' rule on "
        f"{n_histories:,} histories{left_out}{others}; largest difference {largest:.3g} (tolerance "
        f"{options.tolerance:g}): " + ("they agree" if sound else "CHECK FAILED")
    )
    return ExitCode.DONE if sound else ExitCode.CHECK_FAILED


def _compare_updates(
    reference: Any, candidate: Any, problem: "POMDP", depth: int, options: argparse.Namespace
) -> "UpdaterComparison":
    from pomdp_hier.beliefs.comparison import compare_updaters

    return compare_updaters(
        reference, candidate, problem, depth=depth, tolerance=options.tolerance, max_histories=options.max_histories
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


def _configure_solve(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("problem", type=console.input_file, metavar="MODEL", help="a .pomdp file")
    add("--precision", type=float, default=1e-2, metavar="X", help="stop at this gap of the bounds (default: 0.01)")
    seconds = f"stop after this number of CPU seconds (default: no limit); {console.SIGNALS_HELP}"
    add("--time-limit", type=inputs.amount, metavar="SECONDS", help=seconds)
    add("--memory-limit", type=inputs.amount, metavar="MB", help="stop at this number of megabytes (default: no limit)")
    add("--horizon", type=int, metavar="N", help="the number of actions (default: infinite)")
    proof = "write the proof of the bounds as JSON, for pomdp-hier verify"
    add("--certificate", type=console.output_file, metavar="FILE", help=proof)
    policy = "write the policy: .alpha, .pg, .dot, or .policy for SARSOP's XML"
    add("--policy-out", type=console.output_file, metavar="FILE", help=policy)
    inputs.add_force(parser)
    inputs.add_quiet(parser)
    inputs.add_json(parser, "bounds and their history")


@command(
    "solve",
    "bound the optimal value of a .pomdp file from both sides, with a policy and a proof",
    _configure_solve,
    "printf 'discount: 0.9\\nstates: 2\\nactions: 2\\nobservations: 2\\n' > walk.pomdp",
    "printf 'values: reward\\nT: * uniform\\nO: * identity\\nR: 1 : 0 : * : * 1\\n' >> walk.pomdp",
    "pomdp-hier solve walk.pomdp --time-limit 10 --certificate walk.json",
    "pomdp-hier verify walk.json walk.pomdp",
)
def solve(options: argparse.Namespace) -> int:
    for option, path, endings in (
        ("--certificate", options.certificate, None),
        ("--policy-out", options.policy_out, (".alpha", ".pg", ".dot", ".policy")),
    ):
        if path is not None:
            console.check_target(path, options.force, endings=endings, option=option)
    from pomdp_hier._io.writing import write_file
    from pomdp_hier.planning import solve
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(options.problem)
    with console.may_end_search():
        solution = solve(
            problem,
            precision=options.precision,
            time_limit=options.time_limit,
            memory_limit=None if options.memory_limit is None else options.memory_limit * 1e6,
            horizon=options.horizon,
            progress=True,
        )
    if options.certificate is not None:
        write_file(options.certificate, json.dumps(solution.certificate()) + "\n")
    if options.policy_out is not None:
        _write_policy(solution, options)
    print(json.dumps(_solution_values(solution)) if options.json else _solution_lines(solution, problem))
    return console.exit_code(solution.status)


def _solution_values(solution: "Solution") -> dict[str, Any]:
    names = ("seconds", "backups", "lower", "upper", "n_bytes")
    return {
        "lower": solution.lower,
        "upper": solution.upper,
        "gap": solution.gap,
        "status": solution.status,
        "history": [{name: getattr(entry, name) for name in names} for entry in solution.history],
    }


def _solution_lines(solution: "Solution", problem: "POMDP") -> str:
    last = solution.history[-1]
    first = solution.policy.decide(problem).action
    return "\n".join(
        [
            f"lower {solution.lower:.9g}",
            f"upper {solution.upper:.9g}",
            f"gap   {solution.gap:.3g} ({solution.status})",
            f"first action {console.printable(str(first))}",
            f"{last.backups:,} backups, {last.seconds:.3g} s, {last.n_bytes / 1e6:.3g} MB",
        ]
    )


def _write_policy(solution: "Solution", options: argparse.Namespace) -> None:
    """Write the policy in the format of the file's ending."""
    from pomdp_hier._io.writing import write_file
    from pomdp_hier.planning import AlphaVectorPolicy, write_policy

    ending = Path(options.policy_out).suffix.lower()
    if ending == ".pg":
        write_policy(solution.controller(), options.policy_out)
    elif ending == ".dot":
        write_file(options.policy_out, solution.controller().to_dot() + "\n")
    else:
        import numpy as np

        index = solution.problem.compiled.action_index
        actions = np.array([index[a] for a in solution.alpha_actions], dtype=np.int64)
        write_policy(AlphaVectorPolicy(solution.alpha_vectors, actions), options.policy_out)


def _configure_verify(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    proof = "the JSON file that pomdp-hier solve --certificate wrote"
    start = 'the belief to start from, as {"STATE": 0.5, ...} (default: the initial belief)'
    add("certificate", type=console.input_file, metavar="CERTIFICATE", help=proof)
    add("problem", type=console.input_file, metavar="MODEL", help="the .pomdp file of the problem")
    add("--belief", metavar="JSON", help=start)
    inputs.add_json(parser, "the bounds", ", with fractions")


@command(
    "verify",
    "check that a certificate proves its bounds on a problem's optimal value",
    _configure_verify,
    "printf 'discount: 0.9\\nstates: 2\\nactions: 2\\nobservations: 2\\n' > walk.pomdp",
    "printf 'values: reward\\nT: * uniform\\nO: * identity\\nR: 1 : 0 : * : * 1\\n' >> walk.pomdp",
    "pomdp-hier solve walk.pomdp --certificate proof.json",
    "pomdp-hier verify proof.json walk.pomdp",
)
def verify(options: argparse.Namespace) -> int:
    from pomdp_hier.planning import verify
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(options.problem)
    belief = None if options.belief is None else _belief(options.belief, {str(s): s for s in problem.states})
    try:
        bounds = verify(_read_certificate(options.certificate), problem, belief=belief)
    except CertificateError as error:
        return console.fail(error, ExitCode.CHECK_FAILED)
    if options.json:
        print(json.dumps(_bounds_values(bounds)))
    else:
        print(f"{console.printable(options.problem)}: {bounds}")
    return ExitCode.DONE


def _bounds_values(bounds: "VerifiedBounds") -> dict[str, Any]:
    from pomdp_hier.planning.certificates.exact_model import as_fraction

    return {
        "problem": bounds.problem,
        "belief": {str(state): str(as_fraction(p, "belief")) for state, p in bounds.belief.items()},
        "horizon": bounds.horizon,
        "discount": str(bounds.discount),
        "lower": str(bounds.lower),
        "upper": str(bounds.upper),
    }


def _belief(text: str, states: dict[str, Any]) -> dict[Any, Any]:
    """Return the belief of an option, with the problem's own states for their names."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise ParameterError(
            Argument("belief"), f': got {brief(text)}; expected a JSON object, such as {{"STATE": 1}}.'
        )
    return {states.get(name, name): probability for name, probability in given.items()}


def _read_certificate(path: str) -> Any:
    """Return the content of a JSON file."""
    content = Path(path).read_bytes()
    with decoding(path, CertificateError, "the JSON of a certificate", "Write it again with pomdp-hier solve"):
        return json.loads(content)


_DELTA_NOTE = (
    "The paper's text says delta 0.01, but every figure that it prints needs 0.005. This is the preset",
    '"table": delta 0.005, nu 1, a tie descends. For the text\'s own settings: --preset text',
)
_TEXT_NOTE = (
    "These are the settings that the paper's text states: delta 0.01, nu 1, a tie searches (Algorithm 1).",
    "The values that it prints come out with delta 0.005 only: --preset table",
)


def _configure_reproduce(parser: argparse.ArgumentParser) -> None:
    what = "the settings that Table 1 was computed with, or those that the text states (default: table)"
    parser.add_argument("--preset", choices=("table", "text"), default="table", help=what)
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")


@command(
    "reproduce",
    "print the paper's case study beside the computed values, and check every figure",
    _configure_reproduce,
    "pomdp-hier reproduce",
    "pomdp-hier reproduce --preset text",
    "pomdp-hier reproduce --json",
)
def reproduce(options: argparse.Namespace) -> int:
    from pomdp_hier.hqs.paper import reproduce

    study = reproduce(options.preset)
    if options.json:
        print(json.dumps(study.to_dict(), indent=1))
    else:
        for line in _lines(study):
            print(line)
    return ExitCode.CHECK_FAILED if study.failures else ExitCode.DONE


def _lines(study: "Reproduction") -> Iterable[str]:
    yield from ("The paper's case study: twelve products, five hierarchies", "")
    yield from _DELTA_NOTE if study.preset == "table" else _TEXT_NOTE
    yield ""
    yield from _scores(study)
    yield ""
    yield from _items(study)
    for heading, figures in study.walkthrough.items():
        yield from ("", f"{heading:<34}{'paper':>8}{'here':>9}")
        yield from (_line(figure) for figure in figures)
    yield from ("", f"{'HQS under other settings':<34}" + "".join(f"{name:>8}" for name in study.scores))
    for setting, figures in study.elsewhere.items():
        here = "".join(f"{figure.shown():>7}{_mark(figure)}" for figure in figures)
        yield f"  {setting:<32}{here}".rstrip()
    yield ""
    yield from _verdict(study)


def _scores(study: "Reproduction") -> Iterable[str]:
    yield f"{'':<10}{'HQS':>16}{'HAI against A':>22}"
    yield f"{'':<10}{'paper':>8}{'here':>8}{'paper':>14}{'here':>8}"
    ranked = sorted(study.scores, key=lambda name: -float(study.scores[name].computed))
    remarks = {ranked[0]: "best", ranked[-1]: "worst"}
    for name, score in study.scores.items():
        line = f"  Hier-{name}  {score.printed or '':>8}{score.shown():>8}{_mark(score)}"
        if name in study.hai:
            index = study.hai[name]
            line += f"{index.printed:>13}{index.shown():>8}{_mark(index)}"
        else:
            line += " " * 22
        yield f"{line} {remarks.get(name, score.note)}".rstrip()


def _items(study: "Reproduction") -> Iterable[str]:
    count = len(next(iter(study.items.values())))
    yield f"{'V of item':<10}" + "".join(f"{item:>6} " for item in range(count)).rstrip()
    for name, figures in study.items.items():
        if study.preset == "table":
            yield f"  {name} paper " + "".join(f"{figure.printed:>6} " for figure in figures).rstrip()
        here = "".join(f"{figure.shown(3):>6}{_mark(figure)}" for figure in figures)
        yield f"  {name} here  {here}".rstrip()
    if study.preset == "table":
        yield from ("", "  * misprint in the paper: its row's HQS only comes out with the value here")
        yield "  ~ rounded twice in the paper: " + ", ".join(_rounded_twice(study))


def _rounded_twice(study: "Reproduction") -> Iterable[str]:
    from pomdp_hier.hqs.paper import ROUNDED_TWICE

    for figures in study.items.values():
        for figure in figures:
            if figure.note == ROUNDED_TWICE:
                yield f"{figure.place} is {figure.shown()}"


def _line(figure: "Figure") -> str:
    line = f"  {figure.place:<32}{figure.printed or '':>8}{figure.shown():>9}{_mark(figure)}"
    return f"{line} {figure.note}".rstrip()


def _mark(figure: "Figure") -> str:
    """Return ``!`` for a figure that is not reproduced, a mark for each kind of misprint, else a blank."""
    from pomdp_hier.hqs.paper import MISPRINT, ROUNDED_TWICE

    if not figure.ok:
        return "!"
    return {MISPRINT: "*", ROUNDED_TWICE: "~"}.get(figure.note, " ")


def _verdict(study: "Reproduction") -> Iterable[str]:
    checked = sum(figure.expected is not None for figure in study.figures())
    if not study.failures:
        items = [figure for figures in study.items.values() for figure in figures]
        if study.preset == "table":
            printed = sum(figure.as_printed for figure in items)
            yield f"{printed} of the {len(items)} item values are as printed."
        yield f"All {checked} figures checked come out as they should."
        return
    yield f"{len(study.failures)} of {checked} figures do not come out as they should:"
    for figure in study.failures:
        yield f"  {figure.place}: expected {figure.expected}, got {figure.shown()}"


_START = {
    "eta": ("probability of descending to c1", "3/4"),
    "r0": ("reward of finding the item at the root", "0"),
    "r1": ("reward of finding it in c1", "3/5"),
    "r2": ("reward of finding it in c2", "3/5"),
    "belief": ("belief that the item is in the catalogue", "1"),
}


def _configure_teach(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    inputs.add_out(parser, "the file to write, .html", required=True, metavar="HTML")
    for name, (words, value) in _START.items():
        what = f"{words} at the start, such as 0.75 or 3/4 (default: {value})"
        add(f"--{name}", metavar="X", default=value, help=what)
    inputs.add_quiet(parser)


@command(
    "teach",
    "write a page with sliders on the three-node POMDP, which runs without Python",
    _configure_teach,
    "pomdp-hier teach -o page.html",
    "pomdp-hier teach -o other.html --eta 2/3 --r1 0.8",
)
def teach(options: argparse.Namespace) -> int:
    console.check_target(options.out, options.force, endings=(".html", ".htm"))
    from pomdp_hier.report import write_teaching_page

    page = write_teaching_page(options.out, replace=options.force, **{name: getattr(options, name) for name in _START})
    console.note(f"written to {options.out}, {len(page.encode()) / 1e3:z.0f} kB", options)
    return ExitCode.DONE
