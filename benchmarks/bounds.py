"""How far apart are the two bounds on the optimal value after 1, 10 and 60 CPU seconds, and how much memory is that?

Any ``.pomdp`` files may be given, ``FILE`` or ``FILE=DISCOUNT``; without files, the bundled problems run. Where a file
has the name of a problem of the literature, NativeSARSOP's published figures at 60 s stand beside ours (AAMAS 2025;
gamma .95; their machine is unknown, and so is whether their file is the same).
"""

import argparse
import json
from pathlib import Path
from typing import Any

from pomdp_hier.planning import solve, verify
from pomdp_hier.pomdp import POMDP
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.problems import cheese_maze, crying_baby, rock_sample, tiger

PUBLISHED = {
    "tiger": (19.371, 19.559),
    "hallway": (0.972, 1.213),
    "hallway2": (0.300, 0.914),
    "tiger-grid": (2.185, 2.549),
    "aloha.30": (388.08, 391.91),
    "pentagon": (0.293, 0.382),
}


def read(argument: str) -> tuple[str, POMDP]:
    """The name and the problem of ``FILE`` or ``FILE=DISCOUNT``."""
    path, _, discount = argument.partition("=")
    text = Path(path).read_text(encoding="latin-1")
    if discount:
        lines = [line for line in text.split("\n") if not line.strip().startswith("discount")]
        text = "\n".join([f"discount: {discount}", *lines])
    return Path(path).stem, read_pomdp(text + "\n")


def run(name: str, problem: POMDP, seconds: list[float], certify: bool) -> dict[str, Any]:
    """One row: the bounds after each number of seconds, and what a certificate proves."""
    solution = solve(problem, precision=1e-3, time_limit=max(seconds))
    row: dict[str, Any] = {"problem": name, "status": solution.status, "bounds": {}}
    cells = []
    for limit in seconds:
        entry = [entry for entry in solution.history if entry.seconds <= limit][-1:] or solution.history[:1]
        row["bounds"][limit] = (entry[0].lower, entry[0].upper, entry[0].n_bytes)
        cells.append(f"{entry[0].lower:9.5g} {entry[0].upper:9.5g} {entry[0].n_bytes / 1e6:5.0f} MB")
    if name in PUBLISHED:
        row["published"] = PUBLISHED[name]
        cells.append("published {} / {}".format(*PUBLISHED[name]))
    if certify:
        bounds = verify(solution.certificate(), problem)
        row["proved"] = (float(bounds.lower), float(bounds.upper), bounds.n_vectors, bounds.n_points)
        cells.append(f"proved {float(bounds.lower):.6g} {float(bounds.upper):.6g}")
    print(f"{name:14}", " | ".join(cells), flush=True)
    return row


def main(argv: list[str] | None = None) -> None:
    """Runs the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE[=DISCOUNT]", help=".pomdp files (default: bundled problems)")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1, 10, 60], metavar="S", help="when to look")
    parser.add_argument("--certify", action="store_true", help="write a certificate of each and verify it")
    parser.add_argument("--quick", action="store_true", help="one second a problem")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    arguments = parser.parse_args(argv)
    bundled = {"tiger": tiger(), "crying-baby": crying_baby(), "cheese": cheese_maze(), "rock-sample": rock_sample()}
    problems = [read(argument) for argument in arguments.files] or list(bundled.items())
    seconds = [0.2, 1.0] if arguments.quick else arguments.seconds
    solve(tiger(), engine="auto", max_trials=2)
    print("problem       ", " | ".join(f"{limit:g} s: lower, upper, memory" for limit in seconds))
    rows = [run(name, problem, seconds, arguments.certify or arguments.quick) for name, problem in problems]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
