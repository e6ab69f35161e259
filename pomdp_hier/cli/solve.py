"""``pomdp-hier solve``: bounds on a problem's optimal value, a policy, and a certificate."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp_hier.cli import console, files, inputs, signals, tables

if TYPE_CHECKING:
    from pomdp_hier.planning.point_based.solution import Solution
    from pomdp_hier.pomdp.problem import POMDP

NAME = "solve"
SUMMARY = "bound the optimal value of a .pomdp file from both sides, with a policy and a proof"
EXAMPLES = (
    "printf 'discount: 0.9\\nstates: 2\\nactions: 2\\nobservations: 2\\n' > walk.pomdp",
    "printf 'values: reward\\nT: * uniform\\nO: * identity\\nR: 1 : 0 : * : * 1\\n' >> walk.pomdp",
    "pomdp-hier solve walk.pomdp --time-limit 10 --certificate walk.json",
    "pomdp-hier verify walk.json walk.pomdp",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add("problem", type=files.input_file, metavar="MODEL", help="a .pomdp file")
    add("--precision", type=float, default=1e-2, metavar="X", help="stop at this gap of the bounds (default: 0.01)")
    seconds = f"stop after this number of CPU seconds (default: no limit); {signals.HELP}"
    add("--time-limit", type=inputs.amount, metavar="SECONDS", help=seconds)
    add("--memory-limit", type=inputs.amount, metavar="MB", help="stop at this number of megabytes (default: no limit)")
    add("--horizon", type=int, metavar="N", help="the number of actions (default: infinite)")
    proof = "write the proof of the bounds as JSON, for pomdp-hier verify"
    add("--certificate", type=files.output_file, metavar="FILE", help=proof)
    policy = "write the policy: .alpha, .pg, .dot, or .policy for SARSOP's XML"
    add("--policy-out", type=files.output_file, metavar="FILE", help=policy)
    add("--force", action="store_true", help="replace files that exist")
    inputs.add_quiet(parser)
    add("--json", action="store_true", help="print bounds and their history as JSON")


def run(options: argparse.Namespace) -> int:
    """Solve, print the bounds, and write the requested files."""
    for option, path, endings in (
        ("--certificate", options.certificate, None),
        ("--policy-out", options.policy_out, (".alpha", ".pg", ".dot", ".policy")),
    ):
        if path is not None:
            tables.check_target(path, options.force, endings=endings, option=option)
    from pomdp_hier._io.writing import write_file
    from pomdp_hier.planning import solve
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(options.problem)
    with signals.may_end_search():
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
    print(json.dumps(_plain(solution)) if options.json else _lines(solution, problem))
    return signals.exit_code(solution.status)


def _plain(solution: "Solution") -> dict[str, Any]:
    names = ("seconds", "backups", "lower", "upper", "n_bytes")
    return {
        "lower": solution.lower,
        "upper": solution.upper,
        "gap": solution.gap,
        "status": solution.status,
        "history": [{name: getattr(entry, name) for name in names} for entry in solution.history],
    }


def _lines(solution: "Solution", problem: "POMDP") -> str:
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
