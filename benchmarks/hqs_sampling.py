"""How close is the HQS of a sample of the items, and how much time does it save?

The paper's three figures on real data: the density of the values for several fractions, the error over |HQS| against
the fraction, and the run time against the fraction; and how often a 95 % interval holds the score of all items. Errors
and coverage are over draws from one full run, for a sampled item has the value that it has among all. Times are CPU
seconds of one thread, medians of the repeats, and include what is paid at any fraction: the sums over the clusters.
Where each item is planned on its own, as in the paper's prototype, that share is small; a few items show it.
"""

import argparse
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pomdp_hier.errors import DataWarning
from pomdp_hier.features.loading import load_features
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.sampling import draw
from pomdp_hier.hqs.score import evaluate

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PLANNED = (4, 8, 16, 32)
METHODS = ("simple", "stratified")
DELTA = 0.005


def load(folder: Path) -> tuple[Any, Hierarchy]:
    """The case in a folder: ``features.npz`` and ``tree.json``, whose first ids are the items."""
    X = load_features(folder / "features.npz").matrix
    return X, Hierarchy.from_json(folder / "tree.json", n_items=X.shape[0])


def digits() -> tuple[Any, Hierarchy]:
    """Scikit-learn's handwritten digits under their average-linkage dendrogram."""
    from scipy.cluster.hierarchy import linkage
    from sklearn.datasets import load_digits

    X = load_digits().data
    return X, Hierarchy.from_linkage(linkage(X, "average"), singletons=False)


def errors(tree: Hierarchy, values: np.ndarray, fraction: float, method: str, draws: int) -> tuple[float, float]:
    """The mean error over ``|HQS|``, and the share of 95 % intervals that contain the HQS of all items."""
    rng = np.random.default_rng(1)
    truth, size = values.mean(), max(2, round(fraction * tree.n_items))
    misses, held = np.empty(draws), 0
    for at in range(draws):
        sample = draw(tree, size, method, rng.permutation(tree.n_items))
        drawn = values[sample.items]
        misses[at] = abs(sample.estimate(drawn) - truth)
        held += misses[at] <= sample.margin_of_error(drawn)
    return float(misses.mean() / abs(truth)), held / draws


def seconds(X: Any, tree: Hierarchy, size: float, repeats: int, engine: str = "auto") -> float:
    """The median CPU time of scoring that fraction or number of the items."""
    taken = []
    for repeat in range(repeats):
        start = time.process_time()
        threads = None if engine == "generic" else 1
        evaluate(X, tree, delta=DELTA, threads=threads, engine=engine, sample_size=size, random_state=repeat)
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def fit(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Slope, intercept and R**2 of the straight line through the points."""
    slope, intercept = np.polyfit(x, y, 1)
    rest = ((y - (slope * x + intercept)) ** 2).sum()
    return float(slope), float(intercept), float(1 - rest / ((y - y.mean()) ** 2).sum())


def measure(name: str, X: Any, tree: Hierarchy, draws: int, repeats: int, planned: Sequence[int]) -> dict[str, Any]:
    """The figures of one data set."""
    full = evaluate(X, tree, delta=DELTA)
    rows = []
    for fraction in FRACTIONS:
        row: dict[str, Any] = {"fraction": fraction, "n": max(2, round(fraction * tree.n_items))}
        for method in METHODS:
            row[f"{method} error"], row[f"{method} coverage"] = errors(tree, full.values, fraction, method, draws)
        rows.append(row | {"cpu_s": seconds(X, tree, fraction, repeats)})
    whole = seconds(X, tree, 1.0, repeats)
    generic = [{"n": size, "cpu_s": seconds(X, tree, size, 1, "generic")} for size in planned]
    case = {"case": name, "n_items": tree.n_items, "hqs": full.score, "rows": rows, "cpu_s": whole, "planned": generic}
    return case | {"claims": judge(case)}


def judge(case: dict[str, Any]) -> dict[str, Any]:
    """Return whether the figures support the paper's three claims."""
    rows = case["rows"]
    f = np.array([row["fraction"] for row in rows])
    error = np.array([row["simple error"] for row in rows])
    from_30 = float(error[f >= 0.3].max())
    exponential, root = fit(f, np.log(error)), fit(np.log((1 - f) / f), np.log(error))
    slope, intercept, linear = fit(np.append(f, 1.0), np.array([*(row["cpu_s"] for row in rows), case["cpu_s"]]))
    items, taken = np.array([[row["n"], row["cpu_s"]] for row in case["planned"]]).T
    an_item, _, planned = fit(items, taken)
    return {
        "error under 5 % from 30 % on": {"holds": from_30 < 0.05, "largest": from_30},
        "error falls exponentially": {
            "holds": exponential[2] > root[2],
            "r2_exponential": exponential[2],
            "r2_power_of_(1-f)/f": root[2],
            "power": root[0],
        },
        "run time about linear, all items at once": {
            "holds": linear > 0.9,
            "r2": linear,
            "share_paid_at_any_fraction": intercept / (slope + intercept),
        },
        "run time about linear, each item planned": {"holds": planned > 0.9, "r2": planned, "s_an_item": an_item},
    }


def show(case: dict[str, Any]) -> None:
    """Print the table of one data set beside the paper's claims."""
    print(f"\n{case['case']}: {case['n_items']:,} items, HQS {case['hqs']:.6f} at delta {DELTA}")
    print("fraction      n   error/|HQS|            95 % interval holds    CPU ms")
    print("                  simple  stratified     simple  stratified")
    for row in case["rows"]:
        print(
            f"{row['fraction']:>7.0%} {row['n']:>7,} {row['simple error']:>8.2%} {row['stratified error']:>10.2%} "
            f"{row['simple coverage']:>11.2%} {row['stratified coverage']:>10.2%} {1e3 * row['cpu_s']:>11.1f}"
        )
    print(f"{1:>7.0%} {case['n_items']:>7,} {0:>8.2%} {0:>10.2%} {'':>22} {1e3 * case['cpu_s']:>11.1f}")
    claims = case["claims"]
    for claim, found in claims.items():
        figures = ", ".join(f"{key} {value:.3f}" for key, value in found.items() if key != "holds")
        print(f"paper: {claim}: {'holds' if found['holds'] else 'does not hold'} ({figures})")


def plot(case: dict[str, Any], tree: Hierarchy, values: np.ndarray, target: Path) -> None:
    """Draw the three figures into one PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from scipy.stats import gaussian_kde

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    grid = np.linspace(-1, 1, 400)
    ranks = np.random.default_rng(1).permutation(tree.n_items)
    for fraction, shade in zip((0.05, 0.1, 0.3, 0.5), ("0.75", "0.6", "#d98032", "#2f6fb0"), strict=True):
        drawn = values[draw(tree, round(fraction * tree.n_items), "simple", ranks).items]
        left.plot(grid, gaussian_kde(drawn, 0.2)(grid), color=shade, label=f"{fraction:.0%}")
    left.plot(grid, gaussian_kde(values, 0.2)(grid), "k--", label="all items")
    left.set(xlabel="value of the search for an item", ylabel="density", title="Values of a sample")
    left.legend()
    percent = 100 * np.array([row["fraction"] for row in case["rows"]])
    for method, colour, mark in (("simple", "#d98032", "o-"), ("stratified", "#2f6fb0", "s-")):
        middle.plot(percent, [100 * row[f"{method} error"] for row in case["rows"]], mark, color=colour, label=method)
    middle.axhline(5, color="0.5", linestyle=":")
    middle.axvline(30, color="0.5", linestyle=":")
    middle.set(xlabel="items sampled, %", ylabel="mean error, % of |HQS|", title="Error", yscale="log")
    middle.legend()
    right.plot([*percent, 100], [1e3 * row["cpu_s"] for row in case["rows"]] + [1e3 * case["cpu_s"]], "o-", color="k")
    right.set(xlabel="items sampled, %", ylabel="CPU ms, one thread", title="Run time", ylim=(0, None))
    figure.suptitle(f"{case['case']}: {case['n_items']:,} items, HQS {case['hqs']:.4f}")
    figure.savefig(target, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the data sets, print one table each, draw the figures and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hqs_sampling", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", default=[], metavar="DIR", help="features.npz and tree.json")
    parser.add_argument("--draws", type=int, default=2000, help="samples per fraction (default: 2000)")
    parser.add_argument("--repeats", type=int, default=7, help="timings per fraction (default: 7)")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="where the PNGs go (default: beside the JSON)")
    parser.add_argument("--quick", action="store_true", help="few draws and timings")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args(argv)
    draws, repeats = (100, 1) if options.quick else (options.draws, options.repeats)
    folder = options.plots or (options.json.parent if options.json else None)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs; {draws} samples per fraction")
    cases = [("digits", *digits())] + [(path.name, *load(path)) for path in options.data]
    results = []
    for name, X, tree in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            evaluate(X, tree, delta=DELTA, threads=1)  # compiles
            case = measure(name, X, tree, draws, repeats, PLANNED[: 3 if options.quick else None])
            show(case)
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
                values = evaluate(X, tree, delta=DELTA).values
                plot(case, tree, values, folder / f"hqs_sampling-{name}.png")
        results.append(case)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
