"""Do levels rebuilt from some items help others, and is `regroup` better than ten lines of numpy and SciPy?

The headings stay whole, and the levels above them are rebuilt from the rows of a random half of the items. The other
half measures the tree as it is, a list of all headings, the average linkage of the headings' centroids cut at the
square root of their number, and `regroup`, also without a tolerance for the given tree: by HQS, by the expected search
length, and by that with a label cost of 1.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.datasets import load_digits

from benchmarks.damage import permute_items
from pomdp_hier.errors import DataWarning
from pomdp_hier.features.loading import load_features
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Run, Settings, calibrate_delta, prepare
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.search_length import expected_search_length
from pomdp_hier.improvement.groupings import Place, Plan, place_of
from pomdp_hier.improvement.held_out import fold_of
from pomdp_hier.improvement.regroup import Judge


def made(seed: int = 0) -> tuple[Any, Hierarchy]:
    """Items of 8 x 12 headings in sections, with a third of the headings in another section of the tree."""
    rng = np.random.default_rng(seed)
    sections, each, items = 8, 12, 12
    heading = np.arange(sections * each * items) // items
    X = np.zeros((len(heading), sections + sections * each))
    X[np.arange(len(heading)), heading // each] = 1.0
    X[np.arange(len(heading)), sections + heading] = 1.0
    X += rng.random(X.shape)
    order = permute_items(Hierarchy.from_labels(np.zeros(sections * each)), 1 / 3, rng).item_order
    section = np.empty(sections * each, dtype=int)
    section[order] = np.arange(sections * each) // each
    return X, Hierarchy.from_paths([f"{section[h]} > {h} > {k}" for k, h in enumerate(heading)], sep=">")


def digits() -> tuple[Any, Hierarchy]:
    """The digits in 100 of Ward's clusters, in 10 groups without any order."""
    X = load_digits().data
    cluster = fcluster(linkage(X, "ward"), 100, "maxclust") - 1
    cluster = np.random.default_rng(0).permutation(100)[cluster]
    return X, Hierarchy.from_paths([f"{c // 10} > {c} > {k}" for k, c in enumerate(cluster)], sep=">")


def ten_lines(X: Any, tree: Hierarchy, place: Place, half: np.ndarray) -> Plan:
    """The average linkage of the centroids of the headings, over half of the items."""
    n = len(place.headings)
    of = np.full(tree.n_items, -1)
    for k, node in enumerate(place.headings.tolist()):
        of[tree.items(node)] = k
    rows = sp.csr_matrix((np.ones(len(half)), (of[half], half)), shape=(n, tree.n_items)) @ X
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows) + 1e-12
    groups = fcluster(linkage(rows, "average", "cosine"), round(n**0.5), "maxclust") - 1
    return Plan("ten lines", -1 - groups, np.full(groups.max() + 1, place.node))


def study(case: str, X: Any, tree: Hierarchy, splits: int) -> Iterator[dict[str, Any]]:
    """Yield one row per delta, split and way of grouping."""
    place = place_of(tree, None, None, None)
    flat = Plan("one list", np.full(len(place.headings), place.node), np.empty(0, dtype=np.int64))
    for delta in (0.01, calibrate_delta(X, tree).delta):
        prepared = prepare(X, tree, Settings(delta=delta))
        judge, best = Judge(Run(), 1.0, 0.05, 0), Judge(Run(), 1.0, 0.0, 0)
        for seed in range(splits):
            out = np.flatnonzero(fold_of(tree.starts[: tree.n_items], 2, seed) == 0)
            half = np.setdiff1d(np.arange(tree.n_items), out)
            rebuilt = {"ten lines": ten_lines(X, tree, place, half), "one list": flat}
            rebuilt |= {
                "regroup": judge.chosen_without(prepared, place, out),
                "best": best.chosen_without(prepared, place, out),
            }
            trees = {"as it is": tree} | {name: plan.made(tree, place)[0] for name, plan in rebuilt.items()}
            for name, each in trees.items():
                lengths = expected_search_length(X, each, delta=delta, items=out, label_cost=1)
                yield {
                    "case": case,
                    "delta": delta,
                    "split": seed,
                    "tree": name,
                    "hqs": evaluate(X, each, delta=delta, items=out).score,
                    "search_length": lengths.with_label_cost(0).score,
                    "with_labels": lengths.score,
                }


def main(argv: list[str] | None = None) -> int:
    """Print the mean of the splits, with the smallest and the largest score with labels."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regroup", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the made catalogue alone, one split")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    parser.add_argument("--splits", type=int, default=3, metavar="N", help="random halves (default: 3)")
    what = "a data set of your own: a name, features and a tree in JSON"
    parser.add_argument("--case", nargs=3, action="append", default=[], metavar=("NAME", "FEATURES", "TREE"), help=what)
    options = parser.parse_args(argv)
    cases = {"made catalogue": made(), **({} if options.quick else {"digits": digits()})}
    for name, features, tree in options.case:
        X = load_features(features).matrix
        cases[name] = X, Hierarchy.from_json(Path(tree).read_bytes(), n_items=X.shape[0])
    rows: list[dict[str, Any]] = []
    print(f"{'case':<16}{'delta':>8}  {'levels':<11}{'HQS':>8}{'search length':>15}{'with labels':>13}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for case, (X, tree) in cases.items():
            found = list(study(case, X, tree, 1 if options.quick else options.splits))
            rows += found
            for delta in dict.fromkeys(row["delta"] for row in found):
                for name in dict.fromkeys(row["tree"] for row in found):
                    mine = [row for row in found if row["delta"] == delta and row["tree"] == name]
                    hqs, length, labels = (
                        np.array([row[key] for row in mine]) for key in ("hqs", "search_length", "with_labels")
                    )
                    reach = f"{labels.min():.3f} to {labels.max():.3f}"
                    scores = f"{hqs.mean():>8.3f}{length.mean():>15.3f}{labels.mean():>13.3f}"
                    print(
                        f"{case:<16}{delta:>8.3g}  {name:<11}{scores}  {reach}",
                        flush=True,
                    )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
