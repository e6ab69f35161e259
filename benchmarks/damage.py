"""When does HQS fall with damage to a tree, and when does it rise?

A share of the items is permuted among themselves, or pairs of disjoint clusters are exchanged until a share of the
items has moved, and the tree is scored under each policy. One would like every score to fall. It does not have to: a
searcher who no longer trusts a bad branch stops above it, and that is worth more than being misled, and damage to a
cluster that draws others' searchers away sets them right. Each figure is a mean over repeats; a rise or a fall counts
where it is more than two standard errors.
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

POLICIES = ("one-step", "optimal", "descend", "hindsight")
DELTA = 0.005


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
    rows: list[Row] = []
    heads = f"{'share':>6}{'HQS':>9}{'+-':>8}{'at root':>9}{'change':>9}{'better':>8}"
    print(f"{'case':<18}{'damage':<15}{'delta':>8} {'policy':<12}{heads}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name, make in cases.items():
            for row in study(name, *make(), shares, repeats, options.seed):
                rows.append(row)
                print(
                    f"{row.case:<18}{row.damage:<15}{row.delta:>8.3g} {row.policy:<12}{row.share:>6.0%}"
                    f"{row.score:>9.4f}{row.error:>8.4f}{row.at_root:>9.1%}{row.change:>+9.4f}"
                    f"{row.better:>8.0%} {row.verdict}",
                    flush=True,
                )
    words = list(findings(rows))
    print("\n" + "\n".join(words))
    if options.json:
        content = {"rows": [asdict(row) for row in rows], "findings": words}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def _read(features: str, tree: str) -> tuple[Any, Hierarchy]:
    matrix = load_features(features).matrix
    content = Path(tree).read_bytes()
    return matrix, Hierarchy.from_json(content, n_items=matrix.shape[0])


if __name__ == "__main__":
    sys.exit(main())
