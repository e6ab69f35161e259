"""Which engine does ``engine="auto"`` choose, and what does a first call cost?

Each row is one call of `evaluate` in a new process: with numpy, with numba and an empty cache, with numba and a full
one, and with "auto" and an empty cache. CPU seconds of the call, imports and compilation included.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.score import evaluate

CASES = {
    "12 items": (4, 12, 10),
    "catalogue, 5,612 items": (30, 5_612, 100),
    "binary, 5,612 items": (2, 5_612, 100),
    "catalogue, 75,000 items": (30, 75_000, 100),
    "binary, 75,000 items": (2, 75_000, 100),
    "chain, 10,000 levels": (1, 10_000, 10),
    "chain, 100,000 levels": (1, 100_000, 10),
}
POLICIES = ("one-step", "optimal", "descend", "hindsight")
DELTA = 0.1


def make_case(width: int, n_items: int, n_columns: int) -> tuple[np.ndarray, Hierarchy]:
    """Return features along a tree whose nodes have that many children, or noise on a chain for a width of 1."""
    rng = np.random.default_rng(0)
    if width == 1:
        lists = [[0, 1]] + [[k + 1, n_items + k - 1] for k in range(1, n_items - 1)]
        return rng.normal(size=(n_items, n_columns)), Hierarchy.from_children(lists, n_items)
    lists, rows = [], list(range(n_items))
    while len(rows) > 1:
        first = n_items + len(lists)
        lists += [rows[k : k + width] for k in range(0, len(rows), width)]
        rows = list(range(first, n_items + len(lists)))
    tree = Hierarchy.from_children(lists, n_items)
    place = np.zeros((tree.n_nodes, n_columns))
    for level in range(1, int(tree.height) + 2):
        at = np.flatnonzero((tree.levels == level) | ((level == 1 + tree.levels[tree.parent]) & ~tree.is_cluster))
        place[at] = place[tree.parent[at]] + rng.normal(size=(len(at), n_columns)) * 0.7**level
    return place[:n_items], tree


def timed(case: str, policy: str, engine: str) -> dict[str, Any]:
    """Return the figures of one call in this process."""
    X, tree = make_case(*CASES[case])
    start = time.process_time()
    result = evaluate(X, tree, policy=policy, engine=engine, delta=DELTA)
    return {
        "seconds": time.process_time() - start,
        "engine": result.config["engine"],
        "levels": float(result.stop_levels.mean()),
    }


def fresh(case: str, policy: str, engine: str, cache: str) -> dict[str, Any]:
    """Return the figures of one call in a new process with that cache of compiled code."""
    command = [sys.executable, "-m", "benchmarks.engine_choice", "--one", case, policy, engine]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_choice", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smallest tree alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    parser.add_argument(
        "--one", nargs=3, metavar=("CASE", "POLICY", "ENGINE"), help="one call in this process, as JSON"
    )
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(timed(*options.one)))
        return 0
    rows = []
    print(f"{'case':<26}{'policy':<13}{'levels':>9}{'numpy':>8}{'cold':>8}{'cached':>8}{'auto':>8}  chosen")
    for case in list(CASES)[:1] if options.quick else CASES:
        for policy in POLICIES:
            if CASES[case][1] > 10_000 and CASES[case][0] == 1 and policy in ("descend", "hindsight"):
                continue  # 5 billion steps
            with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as empty:
                runs = [fresh(case, policy, engine, cache) for engine in ("numpy", "numba", "numba")]
                auto = fresh(case, policy, "auto", empty)
            numpy, cold, cached = (run["seconds"] for run in runs)
            row = {"case": case, "policy": policy, "levels": auto["levels"], "numpy": numpy, "cold": cold}
            rows.append({**row, "cached": cached, "auto": auto["seconds"], "chosen": auto["engine"]})
            figures = "".join(f"{seconds:>z8.2f}" for seconds in (numpy, cold, cached, auto["seconds"]))
            print(f"{case:<26}{policy:<13}{auto['levels']:>z9.1f}{figures}  {auto['engine']}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
