"""How much better does `improve` make a tree, is that real, and what does it cost?

A made catalogue with 5 % of its items on wrong shelves, the digits under a dendrogram, and folders of one's own
(``--case`` with ``features.npz`` and ``tree.json``): the score before and after, the gain on items that had no say in
choosing the edits, and the share of misfiled items brought home; beside `suggest_moves`, whose moves are applied until
none gains.
Clean trees, whose features were drawn along them: how many edits are found, and how many of them hold on other items.
And 75,000 items: how long the first ten edits take, and how many edits a second are tried beside a full score.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage

from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.analysis.moves import apply_moves, suggest_moves
from pomdp_hier.features.loading import load_features
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import prepare
from pomdp_hier.hqs.score import evaluate, hqs_score
from pomdp_hier.hqs.settings import Settings
from pomdp_hier.improvement import improve
from pomdp_hier.improvement.incremental import ScoredDraft
from tests.planted import catalogue


def cases(quick: bool, folders: list[Path]) -> Iterator[tuple[str, Any, Hierarchy, float, Any]]:
    """Yield name, features, tree, delta and the misfiled items."""
    X, whole, broken, moved = catalogue(600 if quick else 5_612)
    yield "catalogue", X, broken, 0.05, (whole, moved)
    if not quick:
        from sklearn.datasets import load_digits

        digits = load_digits().data
        yield (
            "digits, average linkage",
            digits,
            Hierarchy.from_linkage(linkage(digits, "average"), singletons=False),
            0.01,
            None,
        )
    for folder in folders:
        features = load_features(folder / "features.npz").matrix
        yield folder.name, features, Hierarchy.from_json(folder / "tree.json", n_items=features.shape[0]), 0.01, None


def home(tree: Hierarchy, whole: Hierarchy, moved: np.ndarray) -> float:
    """Return the share of misfiled items that are back in their clusters."""
    where = [tree.parent[item] if tree.labels is None else tree.labels[tree.parent[item]] for item in moved.tolist()]
    return float(np.mean([here == there for here, there in zip(where, whole.parent[moved].tolist(), strict=True)]))


def in_a_loop(X: Any, tree: Hierarchy, delta: float, rounds: int) -> tuple[Hierarchy, float]:
    """Return the tree after `suggest_moves` until none gains, and the CPU seconds."""
    started = time.process_time()
    for _ in range(rounds):
        moves = suggest_moves(X, diagnose(X, tree, delta=delta), limit=12, candidates=12, delta=delta)
        if not moves:
            break
        changed = apply_moves(tree, moves)
        if hqs_score(X, changed, delta=delta) <= hqs_score(X, tree, delta=delta):
            break
        tree = changed
    return tree, time.process_time() - started


def compared(quick: bool, folders: list[Path], limit: float) -> Iterator[dict[str, Any]]:
    for name, X, tree, delta, known in cases(quick, folders):
        for kinds in (["move"], ["move", "merge", "split"]):
            started = time.process_time()
            found = improve(X, tree, kinds=kinds, delta=delta, folds=3, time_limit=limit)
            cpu = time.process_time() - started
            row = {
                "case": name,
                "by": "improve: " + ", ".join(kinds),
                "before": found.before.score,
                "after": found.after.score,
                "held_out": found.held_out.gain,
                "interval": found.held_out.interval,
                "edits": len(found.edits),
                "hold": sum(edit.confirmed for edit in found.edits),
                "cpu": cpu,
                "ended": found.status,
            }
            yield row | ({"home": home(found.tree, *known)} if known else {})
        looped, cpu = in_a_loop(X, tree, delta, 3 if quick else 60)
        row = {"case": name, "by": "suggest_moves in a loop", "before": found.before.score, "cpu": cpu}
        row["after"] = hqs_score(X, looped, delta=delta)
        yield row | ({"home": home(looped, *known)} if known else {})
        if known:
            yield {"case": name, "by": "no item misfiled", "after": hqs_score(X, known[0], delta=delta)}


def clean(n_trees: int, kinds: list[str]) -> dict[str, Any]:
    """Return the edits of clean trees."""
    found = [
        improve(X, whole, kinds=kinds, delta=0.05, folds=3)
        for X, whole, _, _ in (catalogue(300, 0.0, seed) for seed in range(n_trees))
    ]
    edits = [edit for one in found for edit in one.edits]
    return {
        "trees": n_trees,
        "kinds": ", ".join(kinds),
        "edits": len(edits),
        "edits that hold": sum(edit.confirmed for edit in edits),
        "trees with such an edit": sum(any(edit.confirmed for edit in one.edits) for one in found),
        "trees whose gain in all holds": sum(one.held_out.confirmed for one in found),
        "mean gain on all": float(np.mean([one.gain for one in found])),
        "mean gain on the rest": float(np.mean([one.held_out.gain if one.held_out.n_items else 0.0 for one in found])),
    }


def speed(n_items: int, tries: int = 60) -> dict[str, Any]:
    """Return the edits tried per second beside a full score, and the first ten edits."""
    X, whole, broken, moved = catalogue(n_items)
    scored = ScoredDraft(prepare(X, broken, Settings(delta=0.05)))
    items = np.random.default_rng(0).choice(moved, tries).tolist()
    started = time.process_time()
    for item in items:
        scored.trial(scored.draft.moved(item, int(whole.parent[item])))
    a_try = (time.process_time() - started) / tries
    started = time.process_time()
    for item in items[:5]:
        evaluate(X, apply_moves(broken, [(item, int(whole.parent[item]))]), delta=0.05)
    full = (time.process_time() - started) / 5
    started = time.perf_counter()
    improve(X, broken, delta=0.05, folds=0, max_edits=10)
    ten = time.perf_counter() - started
    return {"items": n_items, "edits_a_second": 1 / a_try, "full_scores_a_second": 1 / full, "first_ten_seconds": ten}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.improvement", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small settings, in seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument(
        "--case", type=Path, action="append", default=[], metavar="DIR", help="features.npz and tree.json"
    )
    parser.add_argument("--limit", type=float, default=240, metavar="SECONDS", help="of each search (default: 240)")
    parser.add_argument("--only", choices=("cases", "clean", "speed"), help="one part of it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    figures: dict[str, Any] = {"cases": [], "clean": [], "speed": []}
    if options.only in (None, "cases"):
        for row in compared(options.quick, options.case, options.limit):
            figures["cases"].append(row)
            print(
                "  ".join(
                    f"{key} {value:.4f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
                ),
                flush=True,
            )
    if options.only in (None, "clean"):
        for kinds in (["move"], ["merge", "split"]):
            figures["clean"].append(clean(4 if options.quick else 100, kinds))
            print(figures["clean"][-1], flush=True)
    if options.only in (None, "speed"):
        for n_items in (600,) if options.quick else (5_612, 75_000):
            figures["speed"].append(speed(n_items, 10 if options.quick else 60))
            print(figures["speed"][-1], flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
