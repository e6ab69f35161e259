"""What does the expected search length cost beside `evaluate`, and how does a label cost judge breadth and depth?

The first table has CPU seconds of both scores, cluster sums included, on a catalogue of sparse terms, on the same tree
with dense features, and on a dendrogram. The second one cuts Ward's tree of the digits at several numbers of clusters:
without label cost more clusters are better without end, with a label cost of 1 they are not.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.datasets import load_digits

from benchmarks.hqs_scale import make_features, make_tree, median_seconds
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.search_length import expected_search_length


def seconds(n_items: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Time both scores on trees of that many items."""
    both = ("numpy", "numba") if find_spec("numba") else ("numpy",)
    for shape, sparse, engines in (
        ("taxonomy", True, ("numpy",)),
        ("taxonomy", False, both),
        ("dendrogram", False, both),
    ):
        rng = np.random.default_rng(0)
        tree = make_tree(n_items, shape, rng, None)
        X = make_features(tree, 100, "float64", sparse, rng)
        for engine in engines:
            times = _timed(X, tree, engine, repeats)
            yield {
                "items": n_items,
                "tree": shape,
                "features": "sparse" if sparse else "dense",
                "engine": engine,
            } | times


def _timed(X: Any, tree: Hierarchy, engine: str, repeats: int) -> dict[str, float]:
    options: dict[str, Any] = {"engine": engine} | ({"threads": 1} if engine == "numba" else {})
    expected_search_length(X, tree, **options)  # compiled, if it was not
    return {
        "evaluate": median_seconds(lambda: evaluate(X, tree, **options), repeats),
        "down_to_the_leaf": median_seconds(lambda: evaluate(X, tree, policy="descend", **options), repeats),
        "search_length": median_seconds(lambda: expected_search_length(X, tree, **options), repeats),
    }


def breadths(counts: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Score Ward's tree of the digits, cut at these numbers of clusters, and whole."""
    X = load_digits().data
    Z = linkage(X, "ward")
    trees = {f"{count} clusters": Hierarchy.from_labels(fcluster(Z, count, "maxclust")) for count in counts}
    trees["dendrogram"] = Hierarchy.from_linkage(Z, singletons=False)
    for name, tree in trees.items():
        free = expected_search_length(X, tree)
        yield {
            "tree": name,
            "hqs": evaluate(X, tree).score,
            "score": free.score,
            "score_with_labels": free.with_label_cost(1).score,
            "items": free.mean_length,
            "labels": free.mean(free.labels),
        }


def main(argv: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_length", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small trees")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs per time, whose median is shown")
    options = parser.parse_args(argv)
    sizes = (500,) if options.quick else (5_600, 75_000)
    print(
        f"{'items':>7} {'tree':<11}{'features':<9}{'engine':<7}{'evaluate':>9}{'to the leaf':>12}{'search length':>14}"
    )
    timed = []
    for size in sizes:
        for row in seconds(size, options.repeats):
            timed.append(row)
            figures = f"{row['evaluate']:>9.3f}{row['down_to_the_leaf']:>12.3f}{row['search_length']:>14.3f}"
            print(f"{row['items']:>7,} {row['tree']:<11}{row['features']:<9}{row['engine']:<7}{figures}", flush=True)
    print(f"\n{'Ward, digits':<14}{'HQS':>7}{'search length':>15}{'with labels':>13}{'items':>8}{'labels':>8}")
    cut = []
    for row in breadths((10, 30) if options.quick else (10, 30, 100, 300)):
        cut.append(row)
        scores = f"{row['hqs']:>7.3f}{row['score']:>15.3f}{row['score_with_labels']:>13.3f}"
        print(f"{row['tree']:<14}{scores}{row['items']:>8.1f}{row['labels']:>8.1f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"seconds": timed, "breadths": cut}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
