"""When does HQS fall with damage to a tree, and when does it rise?

A share of the items is permuted among themselves, or pairs of disjoint clusters are exchanged until a share of the
items has moved, and the tree is scored under each policy. One would like every score to fall. It does not have to: a
searcher who no longer trusts a bad branch stops above it, and that is worth more than being misled, and damage to a
cluster that draws others' searchers away sets them right. Each figure is a mean over repeats; a rise or a fall counts
where it is more than two standard errors.

A second table compares HQS with the expected search length, whose searcher may go back: the items are permuted in
growing shares, at three temperatures, and each series is checked for rises. ``--figure FILE`` draws it.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.datasets import load_digits

from pomdp_hier.errors import DataWarning
from pomdp_hier.features.loading import load_features
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import calibrate_delta
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.hqs.search_length import expected_search_length
from pomdp_hier.report.elements import BLUE, ORANGE

POLICIES = ("one-step", "optimal", "descend", "hindsight")
DELTA = 0.005
TENTHS = tuple(k / 10 for k in range(11))


@dataclass(frozen=True)
class Row:
    """One case, damage, policy and share of damaged items; ``better``: how many trees score above the whole."""

    case: str
    damage: str
    delta: float
    policy: str
    share: float
    score: float
    error: float
    at_root: float
    change: float
    better: float
    verdict: str


def digits() -> tuple[np.ndarray, Hierarchy]:
    """Handwritten digits under their average-linkage dendrogram, which has no other information than the features."""
    X = load_digits().data
    return X, Hierarchy.from_linkage(linkage(X, "average"), singletons=False)


def taxonomy(noise: float, seed: int = 0) -> tuple[np.ndarray, Hierarchy]:
    """Items of 5 x 5 x 5 groups in a tree that fits them, blurred by noise."""
    rng = np.random.default_rng(seed)
    width, items = 5, 12
    n_items = width**3 * items
    number = np.arange(n_items) // items
    X = np.zeros((n_items, width + width**2 + width**3))
    for level, offset in ((2, 0), (1, width), (0, width + width**2)):
        X[np.arange(n_items), offset + number // width**level] = 1.0
    X += noise * rng.random(X.shape)
    children = [list(range(k * items, (k + 1) * items)) for k in range(width**3)]
    first = n_items
    for count in (width**3, width**2, width):
        children += [list(range(first + k, first + k + width)) for k in range(0, count, width)]
        first += count
    return X, Hierarchy.from_children(children, n_items)


def lure(seed: int = 0) -> tuple[np.ndarray, Hierarchy]:
    """A clean tree with one large cluster, whose items are more similar to three items beside it than to each other.

    That is how a shelf of country flags sees a few flags of regions: what they share is all that those have.
    """
    rng = np.random.default_rng(seed)
    n_groups, items, large = 20, 20, 250
    n_items = n_groups * items + large + 3
    group = np.minimum(np.arange(n_items) // items, n_groups)
    X = np.zeros((n_items, n_groups + 1 + 4 + 50))
    X[np.arange(n_items), group] = 1.0
    X[np.arange(n_items), n_groups + 1 + np.minimum(group // 5, 3)] = group < n_groups
    own = n_groups + 5 + rng.integers(50, size=large)
    X[n_groups * items + np.arange(large), own] = 1.0
    X += 0.05 * rng.random(X.shape)
    children = [list(range(k * items, (k + 1) * items)) for k in range(n_groups)]
    children += [list(range(n_groups * items, n_items - 3)), list(range(n_items - 3, n_items))]
    first = n_items
    children += [list(range(first + k, first + k + 5)) for k in range(0, n_groups, 5)] + [[first + 20, first + 21]]
    children.append(list(range(first + 22, first + 27)))
    return X, Hierarchy.from_children(children, n_items)


def permute_items(tree: Hierarchy, share: float, rng: np.random.Generator) -> Hierarchy:
    """The tree with that share of its items permuted among themselves."""
    chosen = rng.choice(tree.n_items, round(share * tree.n_items), replace=False)
    items = np.arange(tree.n_items)
    items[np.sort(chosen)] = chosen
    return tree.permuted(items)


def swap_clusters(tree: Hierarchy, share: float, rng: np.random.Generator) -> Hierarchy:
    """The tree with pairs of disjoint clusters exchanged until about that share of the items has moved."""
    parent = tree.parent.copy()
    free = np.ones(tree.n_items, dtype=bool)  # in leaf order
    wanted, moved = share * tree.n_items, 0
    small = np.flatnonzero((np.arange(tree.n_nodes) >= tree.n_items) & (tree.sizes <= max(2, tree.n_items // 20)))
    order = rng.permutation(small)
    waiting = -1
    for node in order.tolist():
        span = slice(tree.starts[node], tree.starts[node] + tree.sizes[node])
        if moved >= wanted or not free[span].all():
            continue
        free[span] = False
        if waiting < 0:
            waiting = node
        else:
            parent[node], parent[waiting] = parent[waiting], parent[node]
            moved += int(tree.sizes[node] + tree.sizes[waiting])
            waiting = -1
    return Hierarchy(parent, tree.n_items, singletons=tree.singletons)


DAMAGES: dict[str, Callable[[Hierarchy, float, np.random.Generator], Hierarchy]] = {
    "permute items": permute_items,
    "swap clusters": swap_clusters,
}


def study(case: str, X: Any, tree: Hierarchy, shares: tuple[float, ...], repeats: int, seed: int) -> Iterator[Row]:
    """Score a tree under growing damage, for every kind of damage, temperature and policy."""
    fitting = calibrate_delta(X, tree).delta
    for damage, spoil in DAMAGES.items():
        trees = {
            share: [spoil(tree, share, np.random.default_rng((seed, k))) for k in range(repeats)] for share in shares
        }
        for delta in (DELTA, fitting):
            for policy in POLICIES:
                whole = evaluate(X, tree, delta=delta, policy=policy)
                base = Row(case, damage, delta, policy, 0.0, whole.score, 0.0, at_root(whole), 0.0, 0.0, "")
                yield base
                for share in shares:
                    results = [evaluate(X, each, delta=delta, policy=policy) for each in trees[share]]
                    scores = np.array([result.score for result in results])
                    error = float(scores.std(ddof=1) / np.sqrt(repeats))
                    change = float(scores.mean()) - whole.score
                    verdict = "" if abs(change) <= 2 * error else ("falls" if change < 0 else "RISES")
                    root = float(np.mean([at_root(result) for result in results]))
                    better = float((scores > whole.score).mean())
                    mean = float(scores.mean())
                    yield Row(case, damage, delta, policy, share, mean, error, root, change, better, verdict)


@dataclass(frozen=True)
class Point:
    """Both scores at one case, temperature and share of permuted items: means, and standard errors over repeats."""

    case: str
    delta: float
    share: float
    hqs: float
    hqs_error: float
    search_length: float
    search_length_error: float


@dataclass(frozen=True)
class Series:
    """One case and temperature: how many of the repeats fall at every share of damage, by each score."""

    case: str
    delta: float
    points: list[Point]
    repeats: int
    hqs_falls: int
    search_length_falls: int


def permuted_in_order(tree: Hierarchy, order: np.ndarray, share: float, rng: np.random.Generator) -> Hierarchy:
    """The tree with the first items of an order permuted among themselves: a larger share includes a smaller one."""
    chosen = order[: round(share * tree.n_items)]
    items = np.arange(tree.n_items)
    items[chosen] = rng.permutation(chosen)
    return tree.permuted(items)


def both_scores(
    case: str, X: Any, tree: Hierarchy, shares: tuple[float, ...], repeats: int, seed: int
) -> Iterator[Series]:
    """Score a tree under a growing share of permuted items, by HQS and by the expected search length."""
    damaged = {}
    for k in range(repeats):
        order = np.random.default_rng((seed, k)).permutation(tree.n_items)
        damaged[k] = [permuted_in_order(tree, order, share, np.random.default_rng((seed, k, 1))) for share in shares]
    for delta in (0.01, 0.03, calibrate_delta(X, tree).delta):
        hqs, lengths = np.empty((repeats, len(shares))), np.empty((repeats, len(shares)))
        for k, trees in damaged.items():
            for j, each in enumerate(trees):
                hqs[k, j] = evaluate(X, each, delta=delta).score
                lengths[k, j] = expected_search_length(X, each, delta=delta).score
        errors = [scores.std(axis=0, ddof=1) / np.sqrt(repeats) for scores in (hqs, lengths)]
        columns = zip(shares, hqs.mean(axis=0), errors[0], lengths.mean(axis=0), errors[1], strict=True)
        points = [Point(case, delta, share, *map(float, figures)) for share, *figures in columns]
        falls = [int((np.diff(scores, axis=1) < 0).all(axis=1).sum()) for scores in (hqs, lengths)]
        yield Series(case, delta, points, repeats, *falls)


def draw(series: list[Series], path: Path) -> None:
    """Draw both scores against the share of permuted items, one panel per case, at the calibrated temperature."""
    from matplotlib.figure import Figure

    last = {one.case: one for one in series}  # the calibrated temperature comes last
    figure = Figure(figsize=(3.1 * len(last), 2.9), layout="constrained")
    axes = figure.subplots(1, len(last), sharey=True, squeeze=False)[0]
    for ax, (case, one) in zip(axes, last.items(), strict=True):
        shares = [100 * point.share for point in one.points]
        for name, colour, marker in (("search_length", BLUE, "o"), ("hqs", ORANGE, "s")):
            means = [getattr(point, name) for point in one.points]
            errors = [2 * getattr(point, f"{name}_error") for point in one.points]
            ax.errorbar(shares, means, yerr=errors, color=colour, marker=marker, markersize=4, linewidth=1.6)
        ax.axhline(0, color="#888888", linewidth=0.8)
        title = "made catalogue" if case == "lure" else case
        ax.set_title(f"{title}, delta {one.delta:.2g}", fontsize=10)
        ax.set_xlabel("items shuffled, %")
        ax.spines[["top", "right"]].set_visible(False)
    first = next(iter(last.values())).points
    axes[0].set_ylabel("score")
    at = len(first) // 2
    for name, text, colour in (("search_length", "search length score", BLUE), ("hqs", "HQS", ORANGE)):
        height = getattr(first[at], name)
        axes[0].annotate(text, (100 * first[at].share, height), (4, 8), textcoords="offset points", color=colour)
    figure.savefig(path, dpi=150)


def at_root(result: Any) -> float:
    """The share of the searches that stop at the root."""
    return float((result.stop_levels == 0).mean())


def findings(rows: list[Row]) -> Iterator[str]:
    """Return as text for which policies the score fell at every share of damage, and its largest rise."""
    for policy in POLICIES:
        mine = [row for row in rows if row.policy == policy and row.share > 0]
        risen = [row for row in mine if row.verdict == "RISES"]
        fallen = sum(row.verdict == "falls" for row in mine)
        better = np.mean([row.better for row in mine])
        line = f"{policy}: falls in {fallen} of {len(mine)} settings, rises in {len(risen)}"
        line += f"; {better:.0%} of the damaged trees score above the whole one"
        if risen:
            most = max(risen, key=lambda row: row.change)
            line += (
                f"; most by {most.change:+.3f} ({most.case}, {most.damage} {most.share:.0%}, delta {most.delta:.3g}, "
                f"{most.at_root:.0%} at the root)"
            )
        yield line


def main(argv: list[str] | None = None) -> int:
    """Run the study, and print one table and its summary."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damage", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small trees, few repeats")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    parser.add_argument("--repeats", type=int, metavar="N", help="damaged trees a share (default: 8, quick 3)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw both scores under growing damage")
    parser.add_argument("--only", action="append", metavar="CASE", help="this case alone; repeat it for several")
    parser.add_argument("--both-only", action="store_true", help="the second table alone")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the damage (default: 0)")
    parser.add_argument(
        "--case",
        nargs=3,
        action="append",
        default=[],
        metavar=("NAME", "FEATURES", "TREE"),
        help="a data set of your own beside the built-in ones: features and a tree in JSON",
    )
    options = parser.parse_args(argv)
    repeats = options.repeats or (3 if options.quick else 8)
    if repeats < 2:
        parser.error(f"--repeats {repeats}: two at least, for a standard error")
    shares = (0.1, 0.5) if options.quick else (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    cases = {
        "clean taxonomy": lambda: taxonomy(0.05),
        "blurred taxonomy": lambda: taxonomy(1.5),
        "lure": lure,
        "digits": digits,
    }
    if options.quick:
        del cases["digits"]
    for name, features, tree in options.case:
        cases[name] = lambda features=features, tree=tree: _read(features, tree)
    if options.only:
        cases = {name: cases[name] for name in options.only}
    rows: list[Row] = []
    heads = f"{'share':>6}{'HQS':>9}{'+-':>8}{'at root':>9}{'change':>9}{'better':>8}"
    print(f"{'case':<18}{'damage':<15}{'delta':>8} {'policy':<12}{heads}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name, make in {} if options.both_only else cases.items():
            for row in study(name, *make(), shares, repeats, options.seed):
                rows.append(row)
                print(
                    f"{row.case:<18}{row.damage:<15}{row.delta:>8.3g} {row.policy:<12}{row.share:>6.0%}"
                    f"{row.score:>9.4f}{row.error:>8.4f}{row.at_root:>9.1%}{row.change:>+9.4f}"
                    f"{row.better:>8.0%} {row.verdict}",
                    flush=True,
                )
    words = list(findings(rows)) if rows else []
    print("\n" + "\n".join(words))
    steps = (0.0, 0.5, 1.0) if options.quick else TENTHS
    series = list(compared(cases, steps, repeats, options.seed))
    if options.figure:
        draw(series, options.figure)
    if options.json:
        content = {"rows": [asdict(row) for row in rows], "findings": words, "series": [asdict(one) for one in series]}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def compared(
    cases: dict[str, Callable[[], tuple[Any, Hierarchy]]], shares: tuple[float, ...], repeats: int, seed: int
) -> Iterator[Series]:
    """Print and yield both scores of every case, with the number of series that fall at every step."""
    heads = "".join(f"{share:>8.0%}" for share in shares)
    print(f"\nboth scores, {repeats} series each\n{'case':<18}{'delta':>8} {'score':<14}{heads}  falls at every step")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name, make in cases.items():
            for one in both_scores(name, *make(), shares, repeats, seed):
                for score, falls in (("hqs", one.hqs_falls), ("search_length", one.search_length_falls)):
                    figures = "".join(f"{getattr(point, score):>8.3f}" for point in one.points)
                    print(f"{name:<18}{one.delta:>8.3g} {score:<14}{figures}  {falls} of {repeats}", flush=True)
                yield one


def _read(features: str, tree: str) -> tuple[Any, Hierarchy]:
    matrix = load_features(features).matrix
    content = Path(tree).read_bytes()
    return matrix, Hierarchy.from_json(content, n_items=matrix.shape[0])


if __name__ == "__main__":
    sys.exit(main())
