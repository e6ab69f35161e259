"""How many planted misfilings does `find_misfiled` find, how many does it send home, and are its probabilities right?

A share of the items of a tree is moved to other homes: to any ("anywhere"), or to a sibling, or else a cousin, of their
own ("near"). A home keeps one item at least. Per data set, kind and share, means over seeds. Among the first k items of
the order, k the number planted: the share that was planted (recall), and the share with its true home as target. Then
average precision, the log loss and the calibration of the probabilities, and the list at an expected share of wrong
flags of 10 %, with the share that is wrong in it. Share 0 is the tree as it is. Beside it: ten lines (own mean cosine
without the item against the best other home), `lost_items`, and with ``--cleanlab`` cleanlab's normalized margin.

A folder may hold ``moved.json``, the numbers of the items that a later edition of the classification files elsewhere.
Then the area under the ROC curve of these items is printed for the older edition as it is.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from pomdp_hier import Hierarchy, find_misfiled
from pomdp_hier.features.loading import load_features
from tests.planted import catalogue

BINS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def labelled(X: Any, labels: np.ndarray) -> tuple[Any, Hierarchy]:
    """Items under one cluster per label."""
    kinds, number = np.unique(labels, return_inverse=True)
    n_items = len(number)
    return X, Hierarchy(np.r_[n_items + number, np.full(len(kinds), n_items + len(kinds)), -1], n_items)


def texts(seed: int = 0, n_items: int = 3000, n_words: int = 3000) -> tuple[Any, Hierarchy]:
    """An invented text catalogue: shelves of very unequal sizes, three levels of words, terms by Zipf's law, TF-IDF."""
    rng = np.random.default_rng(seed)
    above = (np.repeat(np.arange(8), 40), np.repeat(np.arange(40), 8))  # shelf to department, shelf to aisle
    shelf = rng.choice(320, n_items, p=(sizes := rng.lognormal(sigma=0.8, size=320)) / sizes.sum())
    shelf[:640] = np.repeat(np.arange(320), 2)  # two items each at least
    zipf = 1.0 / np.arange(1, n_words + 1)
    words = [rng.permutation(n_words)[:size] for size, n in ((120, 8), (60, 40), (20, 320)) for _ in range(n)]
    rows, columns = [], []
    for item, place in enumerate(shelf.tolist()):
        sources = (words[above[0][place]], words[8 + above[1][place]], words[48 + place])
        for _ in range(int(rng.integers(4, 14))):
            kind = rng.choice(4, p=(0.15, 0.2, 0.4, 0.25))
            bag = sources[kind] if kind < 3 else None
            columns.append(rng.choice(n_words, p=zipf / zipf.sum()) if bag is None else rng.choice(bag))
            rows.append(item)
    counts = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_items, n_words))
    idf = 1 + np.log((1 + n_items) / (1 + np.bincount(counts.indices, minlength=n_words)))
    aisles = n_items + 320 + above[1]
    departments = n_items + 360 + np.repeat(np.arange(8), 5)
    root = n_items + 368
    return counts @ sp.diags_array(idf), Hierarchy(
        np.r_[n_items + shelf, aisles, departments, np.full(8, root), -1], n_items
    )


def folder(path: Path) -> tuple[Any, Hierarchy]:
    """A folder with ``features.npz`` and ``tree.json``."""
    X = load_features(path / "features.npz").matrix
    return X, Hierarchy.from_json(path / "tree.json", n_items=X.shape[0])


def cases(quick: bool, folders: list[Path]) -> dict[str, Callable[[int], tuple[Any, Hierarchy]]]:
    """Return the data sets by name: invented ones by seed."""
    from sklearn.datasets import load_digits, load_wine

    def wine() -> tuple[Any, Hierarchy]:
        X, labels = load_wine(return_X_y=True)
        return labelled((X - X.mean(axis=0)) / X.std(axis=0), labels)

    n_items = 400 if quick else 3000
    found = {
        "made, dense": lambda seed: catalogue(n_items, 0.0, seed, noise=1.0)[:2],
        "wine": lambda _: wine(),
    }
    if not quick:
        found["made, texts"] = texts
        found["digits"] = lambda _: labelled(*load_digits(return_X_y=True))
    return found | {path.name: lambda _, path=path: folder(path) for path in folders}


def planted(tree: Hierarchy, share: float, near: bool, seed: int) -> tuple[Hierarchy, np.ndarray]:
    """Return the tree with a share of its items moved to other homes, and these items."""
    rng = np.random.default_rng(seed)
    n_items, parent = tree.n_items, tree.parent.copy()
    homes, left = np.unique(parent[:n_items]), np.bincount(parent[:n_items], minlength=tree.n_nodes)
    above = np.where(homes == tree.root, -1, tree.parent[homes])
    higher = np.where(above >= 0, tree.parent[above], -1)
    moved: list[int] = []
    for item in rng.permutation(n_items).tolist():
        if len(moved) == round(share * n_items):
            break
        own = np.searchsorted(homes, parent[item])
        others = homes != homes[own]
        if near:
            siblings = others & (above == above[own])
            others = siblings if siblings.any() else others & (higher == higher[own]) & (higher >= 0)
        if left[parent[item]] < 2 or not others.any():
            continue
        left[parent[item]] -= 1
        parent[item] = rng.choice(homes[others])
        moved.append(item)
    return Hierarchy(parent, n_items), np.array(moved, dtype=int)


def ten_lines(X: Any, tree: Hierarchy) -> tuple[np.ndarray, np.ndarray]:
    """Return how much more similar each item is to the best other home than to its own, and that home."""
    n_items, rows = tree.n_items, np.arange(tree.n_items)
    homes, own = np.unique(tree.parent[:n_items], return_inverse=True)
    length = np.sqrt((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1))
    units = sp.csr_array(X) * (1 / np.where(length > 0, length, 1))[:, None]
    inside = sp.csr_array((np.ones(n_items), (own, rows)), shape=(len(homes), n_items))
    cosines, sizes = (units @ (inside @ units).T).toarray(), np.bincount(own)
    mine = (cosines[rows, own] - (length > 0)) / np.maximum(sizes[own] - 1, 1)
    cosines /= sizes
    cosines[rows, own] = -np.inf
    return cosines.max(axis=1) - mine, homes[cosines.argmax(axis=1)]


def by_cleanlab(X: Any, tree: Hierarchy) -> tuple[np.ndarray, np.ndarray]:
    """Return minus the normalized margin of a logistic regression in five folds, and the likeliest other home."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold

    homes, own = np.unique(tree.parent[: tree.n_items], return_inverse=True)
    chances = np.full((tree.n_items, len(homes)), 1e-9)
    table = sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X) / np.abs(X).max()
    for train, test in KFold(5, shuffle=True, random_state=0).split(table):
        fitted = LogisticRegression(C=10.0, max_iter=200).fit(table[train], own[train])
        chances[np.ix_(test, fitted.classes_)] = fitted.predict_proba(table[test])
    chances /= chances.sum(axis=1, keepdims=True)
    quality = get_label_quality_scores(own, chances, method="normalized_margin", adjust_pred_probs=False)
    chances[np.arange(len(own)), own] = -1.0
    return -quality, homes[chances.argmax(axis=1)]


def by_lost_items(X: Any, tree: Hierarchy) -> tuple[np.ndarray, np.ndarray]:
    """Return minus the value of each item that the searcher of HQS loses, and the place where the search ends."""
    from pomdp_hier.analysis.diagnosis import diagnose

    found = diagnose(X, tree, delta=0.01)
    score = np.where(found.lost, -found.result.values, -2.0)
    ends = np.where(found.ends_at < tree.n_items, tree.parent[found.ends_at], found.ends_at)
    return score, ends


def figures(order: np.ndarray, targets: np.ndarray, whole: Hierarchy, bad: np.ndarray) -> dict[str, float]:
    """Return recall, exactly home and average precision."""
    first, hits = order[: bad.sum()], bad[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return {
        "recall": float(bad[first].mean()),
        "home": float((bad[first] & (targets[first] == whole.parent[first])).mean()),
        "average_precision": float(precision[hits].mean()),
    }


def area(score: np.ndarray, bad: np.ndarray) -> float:
    """Return the area under the ROC curve: the share of pairs in which the bad item has the higher score."""
    ranks, n_bad = rankdata(score), int(bad.sum())
    return float((ranks[bad].sum() - n_bad * (n_bad + 1) / 2) / (n_bad * (len(bad) - n_bad)))


def editions(X: Any, tree: Hierarchy, moved: list[int], draws: int = 1000) -> dict[str, Any]:
    """Return the areas of the items that a later edition moved, with bootstrap intervals, and how many come first."""
    bad = np.zeros(tree.n_items, dtype=bool)
    bad[moved] = True
    order = find_misfiled(X, tree).order
    place = np.empty(tree.n_items)
    place[order] = -np.arange(tree.n_items)
    scores, rng = {"find_misfiled": place, "ten lines": ten_lines(X, tree)[0]}, np.random.default_rng(0)
    rows: dict[str, Any] = {"items": tree.n_items, "moved": len(moved)}
    samples = [
        np.concatenate([rng.choice(np.flatnonzero(some), some.sum()) for some in (bad, ~bad)]) for _ in range(draws)
    ]
    drawn = {name: np.array([area(score[some], bad[some]) for some in samples]) for name, score in scores.items()}
    for name, score in scores.items():
        first = np.argsort(-score, kind="stable")[: len(moved)]
        rows[name] = (area(score, bad), *np.quantile(drawn[name], [0.025, 0.975]).tolist(), int(bad[first].sum()))
    less = drawn["find_misfiled"] - drawn["ten lines"]
    return rows | {"difference": tuple(np.quantile(less, [0.025, 0.975]).tolist())}


def measured(
    X: Any, whole: Hierarchy, share: float, near: bool, seed: int, peers: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the figures of one planting, one row per way of finding it."""
    tree, moved = planted(whole, share, near, seed)
    bad = np.zeros(tree.n_items, dtype=bool)
    bad[moved] = True
    started = time.process_time()
    found = find_misfiled(X, tree)
    row: dict[str, Any] = {"by": "find_misfiled", "cpu": time.process_time() - started, "planted": len(moved)}
    chances = np.clip(found.probabilities, 1e-12, 1 - 1e-12)
    listed = found.select(target=False)
    row |= {
        "flags": int((found.probabilities > 0.5).sum()),
        "rate": found.rate,
        "log_loss": float(-np.where(bad, np.log(chances), np.log1p(-chances)).mean()),
        "listed": len(listed),
        "list_wrong": int((~bad[listed]).sum()),
        "bins": [
            [int(inside.sum()), float(found.probabilities[inside].sum()), int(bad[inside].sum())]
            for low, high in pairwise(BINS)
            for inside in [(found.probabilities >= low) & (found.probabilities < high + (high == 1.0))]
        ],
    }
    yield row | (figures(found.order, found.targets, whole, bad) if len(moved) else {})
    ways = {"ten lines": ten_lines, "cleanlab": by_cleanlab, "lost_items": by_lost_items}
    for name in peers if len(moved) else []:
        started = time.process_time()
        score, targets = ways[name](X, tree)
        row = {"by": name, "cpu": time.process_time() - started, "planted": len(moved)}
        yield row | figures(np.argsort(-score, kind="stable"), targets, whole, bad)


def mean_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over the seeds; counts of bins are added up."""
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0] if name not in ("by", "bins")}
    bins = {"bins": np.sum([row["bins"] for row in rows], axis=0).tolist()} if "bins" in rows[0] else {}
    return {"by": rows[0]["by"], **mean, **bins}


def line(row: dict[str, Any]) -> str:
    """Return one printed line."""
    text = f"{row['case']:<14}{row['kind']:<10}{row['share']:>4.0%} {row['by']:<14}"
    if "recall" in row:
        text += f"{row['recall']:>7.3f}{row['home']:>7.3f}{row['average_precision']:>7.3f}"
    else:
        text += " " * 21
    text += f"{row['cpu']:>8.2f}"
    if "flags" in row:
        wrong = row["list_wrong"] / row["listed"] if row["listed"] else 0.0
        text += f"{row['flags']:>7.1f}{row['rate']:>7.3f}{row['log_loss']:>8.4f}{row['listed']:>8.1f}{wrong:>7.3f}"
    return text


def calibration(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield, per data set, the mean probability and the planted share in bins of the probabilities above 0.5."""
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = [row["bins"] for row in rows if row["case"] == case and row["kind"] == "anywhere" and "bins" in row]
        if mine:
            total = np.sum(mine, axis=0)
            cells = [f"{p / n:.2f}/{hits / n:.2f} ({n:.0f})" if n else "-" for n, p, hits in total.tolist()]
            yield f"{case:<14}{'  '.join(cells)}"


def main(argv: list[str] | None = None) -> int:
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filing", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small data sets, two seeds, 5 %% planted")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", action="append", default=[], help="a folder; may be repeated"
    )
    parser.add_argument("--only-data", action="store_true", help="leave the built-in data sets out")
    parser.add_argument("--seeds", type=int, metavar="N", help="plantings per share (default: 5, quick 2)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N", help="the first seed (default: 0)")
    parser.add_argument("--shares", type=float, nargs="+", metavar="S", help="shares planted (default: 0.02 0.05 0.1)")
    parser.add_argument("--cleanlab", action="store_true", help="cleanlab as well, which takes minutes")
    options = parser.parse_args(argv)
    seeds = range(options.first_seed, options.first_seed + (options.seeds or (2 if options.quick else 5)))
    peers = ["ten lines", "lost_items"]
    if options.cleanlab:
        if find_spec("cleanlab") is None:
            parser.error("--cleanlab: cleanlab is not installed: pip install cleanlab")
        peers.insert(1, "cleanlab")
    chosen = cases(options.quick, options.data)
    if options.only_data:
        chosen = {path.name: chosen[path.name] for path in options.data}
    plans = [(0.0, False), (0.05, False), (0.05, True)]
    if options.shares or not options.quick:
        shares = options.shares or (0.02, 0.05, 0.1)
        plans = [(0.0, False), *((share, near) for near in (False, True) for share in shares)]
    rows: list[dict[str, Any]] = []
    print(
        f"{'data':<14}{'planted':<15}{'by':<14}{'recall':>7}{'home':>7}{'AP':>7}{'CPU s':>8}{'P>.5':>7}{'rate':>7}"
        f"{'logloss':>8}{'listed':>8}{'wrong':>7}"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in chosen.items():
            for share, near in plans:
                found: dict[str, list[dict[str, Any]]] = {}
                for seed in seeds if share else seeds[:1]:
                    for row in measured(*make(seed), share, near, seed, peers):
                        found.setdefault(row["by"], []).append(row)
                kind = "none" if not share else "near" if near else "anywhere"
                for way in found.values():
                    rows.append({"case": name, "kind": kind, "share": share, **mean_row(way)})
                    print(line(rows[-1]), flush=True)
    print("\nmean probability / planted share (items), P in bins of 0.1 from 0.5, planted anywhere")
    print("\n".join(calibration(rows)))
    for path in options.data:
        if (path / "moved.json").exists():
            found_in = editions(*folder(path), json.loads((path / "moved.json").read_text(encoding="utf-8")))
            print(f"\n{path.name}, moved in a later edition:", found_in)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
