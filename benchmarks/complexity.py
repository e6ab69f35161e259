"""How many similarities does a score take, against the number of items?

Counted exactly: a search compares all children of every node it stands at, down to where it stops. "forced" goes down
to the leaf cluster whatever happens, the worst case: the sum over the nodes of size times children; "one-step" is the
paper's policy at delta 0.01. Beside them the paper's bound for the worst case, N**3, and its average case, N log2 N,
and N**2, beyond which no tree goes: the children met on one path number at most 2 N - 2. At the smallest size the count
is checked against a similarity that counts its calls.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage

from pomdp_hier.errors import PomdpHierError
from pomdp_hier.hierarchy.arrays import sum_to_root
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.score import evaluate

SHAPES = ("balanced", "random", "dendrogram", "caterpillar")
SIZES = (256, 512, 1024, 2048, 4096, 8192)
COLUMNS = 16


def make_case(shape: str, n_items: int, rng: np.random.Generator) -> tuple[np.ndarray, Hierarchy]:
    """Return a binary tree of that shape, with items as leaf clusters, and features along it."""
    if shape == "dendrogram":
        centres = rng.normal(size=(max(2, n_items // 40), COLUMNS))
        X = centres[rng.integers(len(centres), size=n_items)] + 0.4 * rng.normal(size=(n_items, COLUMNS))
        return X, Hierarchy.from_linkage(linkage(X, "average"))
    if shape == "balanced":
        merges = np.arange(2 * n_items - 2).reshape(-1, 2)
    elif shape == "caterpillar":
        merges = np.column_stack([[0, *range(n_items, 2 * n_items - 2)], np.arange(1, n_items)])
    else:
        free, merges = list(range(n_items)), np.empty((n_items - 1, 2), dtype=int)
        for merge in range(n_items - 1):
            for side in range(2):
                at = int(rng.integers(len(free)))
                free[at], free[-1] = free[-1], free[at]
                merges[merge, side] = free.pop()
            free.append(n_items + merge)
    tree = Hierarchy.from_children(merges, n_items, singletons=True)
    steps = rng.normal(size=(tree.n_nodes, COLUMNS)) * np.sqrt(tree.sizes / n_items)[:, None]
    X = np.empty((n_items, COLUMNS))
    for column in range(COLUMNS):
        X[:, column] = sum_to_root(tree.parent, steps[:, column])[:n_items]
    return X, tree


def similarities(tree: Hierarchy, stop_nodes: np.ndarray) -> int:
    """Return the number of children that searches with these stop nodes compare."""
    met = sum_to_root(tree.parent, np.diff(tree.child_offsets))
    return int(met[stop_nodes].sum())


def counted(X: np.ndarray, tree: Hierarchy, policy: str) -> tuple[int, np.ndarray]:
    """Return the same number by a similarity that counts its calls, and the stop nodes."""
    calls = 0

    def mean_dot(rows: Any, cluster: Any) -> np.ndarray:
        nonlocal calls
        calls += len(rows)
        return np.asarray(rows @ cluster.centroid / (np.linalg.norm(cluster.centroid) + 1e-9))

    stops = evaluate(X, tree, similarity=mean_dot, policy=policy, engine="numpy").stop_nodes
    return calls, stops


def main(argv: Sequence[str] | None = None) -> int:
    """Run the shapes and sizes, print one table and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.complexity", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args(argv)
    sizes = [64, 128, 256] if options.quick else sorted(options.sizes)
    rng = np.random.default_rng(1)
    results: list[dict[str, Any]] = []
    print("similarities an item; growth is the power of N between two sizes, of all similarities together")
    print("shape              N  height      forced  growth    one-step  growth   log2 N       N     N**2")
    for shape in SHAPES:
        before: dict[str, Any] | None = None
        for n_items in sizes:
            X, tree = make_case(shape, n_items, rng)
            row: dict[str, Any] = {"shape": shape, "n": n_items, "height": int(tree.height)}
            for name, policy in (("forced", "descend"), ("one_step", "one-step")):
                row[name] = similarities(tree, evaluate(X, tree, policy=policy).stop_nodes)
                if before is None:
                    calls, stops = counted(X, tree, policy)
                    if calls != similarities(tree, stops):
                        raise PomdpHierError(f"{shape}, {n_items}: {calls} calls, {similarities(tree, stops)} counted")
                else:
                    row[f"{name}_growth"] = math.log(row[name] / before[name]) / math.log(n_items / before["n"])
            results.append(row)
            growth = [f"{row[key]:>7.2f}" if key in row else " " * 7 for key in ("forced_growth", "one_step_growth")]
            print(
                f"{shape:<12} {n_items:>7,} {row['height']:>7,} {row['forced'] / n_items:>11,.1f} {growth[0]} "
                f"{row['one_step'] / n_items:>11,.1f} {growth[1]} {math.log2(n_items):>8.1f} {n_items:>7,} "
                f"{float(n_items) ** 2:>8.1g}",
                flush=True,
            )
            before = row
    print("the paper's worst case is N**2 similarities an item; its average case log2 N, times the fan-out")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
