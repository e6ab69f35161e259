"""What does it take to read large ``.pomdp`` files: CPU seconds and peak memory, beside the size of the text?

Made files of 72 to 98 MB: sparse transitions by entries, with rewards by state or by step, and dense matrices. Each
is read in its own process; ``--package`` reads with another version of the package, in turns.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

READ = """
import resource, sys, time
sys.path.insert(0, sys.argv[2])
from pomdp_hier import read_pomdp
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
problem = read_pomdp(sys.argv[1])
seconds, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import hashlib
seen = hashlib.sha256()
for matrix in (*problem.compiled.transition, *problem.compiled.observation):
    for part in (matrix.data, matrix.indices, matrix.indptr):
        seen.update(part.tobytes())
seen.update(problem.compiled.reward.tobytes())
print(round(seconds, 2), (after - before) // 1024, before // 1024, seen.hexdigest()[:12])
"""


def numbers(values: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    """Return the shortest decimals of the same floats."""
    return " ".join(map(repr, values.tolist()))


def sparse(n_states: int, n_actions: int, n_observations: int, successors: int, rewards: int) -> Iterator[str]:
    """Yield the lines of a sparse problem: ``rewards`` next states have a reward of their own, or none has."""
    rng = np.random.default_rng(0)
    yield f"discount: 0.95\nvalues: reward\nstates: {n_states}\nactions: {n_actions}\nobservations: {n_observations}\n"
    for a in range(n_actions):
        for s in range(n_states):
            reached = rng.choice(n_states, successors, replace=False).tolist()
            for t, p in zip(reached, rng.dirichlet(np.ones(successors)).tolist(), strict=True):
                yield f"T: {a} : {s} : {t} {p!r}\n"
        for s in range(n_states):
            yield f"O: {a} : {s}\n{numbers(rng.dirichlet(np.ones(n_observations)))}\n"
        for s in range(n_states):
            for t in reached[:rewards] or "*":
                yield f"R: {a} : {s} : {t} : * {float(rng.normal())!r}\n"


def dense(n_states: int, n_actions: int, n_observations: int) -> Iterator[str]:
    """Yield the lines of a problem of matrices."""
    rng = np.random.default_rng(0)
    yield f"discount: 0.95\nvalues: reward\nstates: {n_states}\nactions: {n_actions}\nobservations: {n_observations}\n"
    for a in range(n_actions):
        for word, size in (("T", n_states), ("O", n_observations)):
            yield f"{word}: {a}\n"
            for row in rng.dirichlet(np.ones(size), n_states):
                yield f"{numbers(row)}\n"
    yield "R: * : * : * : * 1\n"


FILES: dict[str, Callable[[int], Iterator[str]]] = {
    "sparse, rewards by state": lambda part: sparse(20_000 // part, 8, 10, 9, 0),
    "sparse, rewards by step": lambda part: sparse(10_000 // part, 6, 4, 14, 14),
    "dense matrices": lambda part: dense(1_400 // part, 2, 20),
}


def main() -> None:
    """Print one line per file and package."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--package", action="append", type=Path, default=[here], help="a folder with another version")
    parser.add_argument("--quick", action="store_true", help="files of a tenth of the states")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    figures = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.pomdp"
        for name, lines in FILES.items():
            with path.open("w") as file:
                file.writelines(lines(10 if options.quick else 1))
            size = path.stat().st_size / 2**20
            for package in options.package:
                command = [sys.executable, "-c", READ, str(path), str(package.resolve())]
                shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.split()
                figures.append([name, round(size, 1), str(package), *shown])
                print(
                    f"{name}, {size:.0f} MB, {package.name}: {shown[0]} CPU s, {shown[1]} MB above the {shown[2]} of "
                    f"the start, arrays {shown[3]}",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
