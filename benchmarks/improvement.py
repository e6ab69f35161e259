"""Are the edits of `improve` right, is its held-out gain true, and what does it cost?

- ``planted``: a share of the items is moved to other homes. Among the first k edits, k the number planted: the planted
  items, beside `find_misfiled`, ten lines of numpy (see `filing`), and with ``--before`` another version.
- ``halves``: one half of the items chooses; the other half joins its tree, a quarter of its size at a time. The gain of
  the score on the half that chooses, its held-out gain, and the gain of the other half. Folders are taken as they are;
  of the other data sets, 5 % of the items are planted elsewhere.
- ``objectives``: one half of the items chooses edits by each objective, by default kinds and by all kinds; the gain of
  the other half by every score, for all edits and for those of clusters alone.
- ``coverage``: the same for invented catalogues of 50 to 400 items, some misfiled, some clusters exchanged, and sixteen
  times as many items that join; how many of the intervals of the held-out gain hold the gain of these, and their width.
- ``clean``: catalogues whose features were drawn along the tree: the edits found.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.filing import folder, labelled, planted, ten_lines, texts
from pomdp_hier import Hierarchy, find_misfiled, improve
from pomdp_hier.hqs.inputs import Prepared, Settings, calibrate_delta, prepare
from pomdp_hier.improvement.choice import part_of, rises_by
from pomdp_hier.improvement.entry_point import OBJECTIVES
from pomdp_hier.improvement.incremental import ScoredDraft
from pomdp_hier.improvement.node_views import Objective
from pomdp_hier.improvement.result import KINDS
from pomdp_hier.improvement.search import Proposal
from tests.planted import catalogue

Case = Callable[[int], tuple[Any, Hierarchy]]


def cases(quick: bool, folders: list[Path]) -> dict[str, Case]:
    """Return the data sets by name: invented ones by seed."""
    found: dict[str, Case] = {
        "made, dense": lambda seed: catalogue(300 if quick else 1000, 0.0, seed, noise=1.0)[:2],
    }
    if not quick:
        from sklearn.datasets import load_digits

        found["made, texts"] = lambda seed: texts(seed, 1500)
        found["digits"] = lambda _: labelled(*load_digits(return_X_y=True))
    return found | {path.name: lambda _, path=path: folder(path) for path in folders}


_BEFORE = """
import sys, time, json, numpy as np
from pomdp_hier import Hierarchy, improve
from pomdp_hier.features.loading import load_features
X = load_features(sys.argv[1]).matrix
tree = Hierarchy(np.load(sys.argv[2]), X.shape[0])
started = time.process_time()
edits = improve(X, tree).edits
print(json.dumps([time.process_time() - started, [edit.nodes[0] for edit in edits]]))
"""


def by_version(path: Path, X: Any, tree: Hierarchy, scratch: Path) -> tuple[float, list[int]]:
    """Return the CPU seconds and the edited nodes of `improve` of the version of the package in a folder."""
    import scipy.sparse as sp

    scratch.mkdir(parents=True, exist_ok=True)
    features = scratch / ("features.npz" if sp.issparse(X) else "features.npy")
    sp.save_npz(features, sp.csr_matrix(X)) if sp.issparse(X) else np.save(features, X)
    np.save(scratch / "parent.npy", tree.parent)
    command = [sys.executable, "-W", "ignore", "-c", _BEFORE, str(features), str(scratch / "parent.npy")]
    answer = subprocess.run(command, cwd=path, capture_output=True, check=True, env={"PYTHONPATH": str(path)})
    seconds, nodes = json.loads(answer.stdout.splitlines()[-1])
    return seconds, nodes


def found_first(name: str, X: Any, whole: Hierarchy, share: float, seed: int, before: Path | None) -> dict[str, Any]:
    """Return how many planted items the first edits hold."""
    tree, moved = planted(whole, share, False, seed)
    started = time.process_time()
    found = improve(X, tree, objective="hqs")
    row: dict[str, Any] = {"part": "planted", "case": name, "seed": seed, "planted": len(moved)}
    row["cpu"] = time.process_time() - started
    edits = [*found.edits, *found.apart]
    by = {
        "edits": [edit.nodes[0] for edit in found.edits][: len(moved)],
        "with those apart": [edit.nodes[0] for edit in edits][: len(moved)],
        "find_misfiled": find_misfiled(X, tree).order[: len(moved)],
        "ten lines": np.argsort(-ten_lines(X, tree)[0], kind="stable")[: len(moved)],
    }
    if before is not None:
        row["cpu before"], nodes = by_version(before, X, tree, Path("/tmp") / f"improvement-{seed}")
        by["before"] = nodes[: len(moved)]
    row |= {way: int(np.isin(nodes, moved).sum()) for way, nodes in by.items()}
    items = [edit for edit in found.edits if edit.nodes[0] < whole.n_items]
    home = sum(whole.parent[edit.nodes[0]] == edit.target for edit in items if edit.nodes[0] in set(moved.tolist()))
    return row | {"moves": len(items), "home": int(home), "gain": found.gain, "held out": found.held_out.gain}


def joined(prepared: Prepared, chooses: np.ndarray, seed: int, objective: str) -> dict[str, Any]:
    """Return what the items that choose promise, their held-out gain, and the gain of the others as they join."""
    alone = part_of(prepared, np.flatnonzero(chooses))
    started = time.process_time()
    small = alone.prepared
    delta, hqs = prepared.settings.delta, objective == "hqs"
    found = improve(small.features, small.hierarchy, delta=delta, random_state=seed, objective=objective)
    row = {"gain": found.gain, "held out": found.held_out.gain, "edits": len(found.edits)}
    row |= {"interval": found.held_out.interval, "cpu": time.process_time() - started}
    proposals = [Proposal(edit.kind, edit.nodes, edit.source, edit.target) for edit in found.edits]
    rises = []
    others = np.random.default_rng(seed).permutation(np.flatnonzero(~chooses))
    # the gain under the search length depends on the number of items: few may join at once
    for batch in np.array_split(others, max(1, round((4 if hqs else 25) * len(others) / chooses.sum()))):
        items = np.sort(np.concatenate([alone.items, batch]))
        both = part_of(prepared, items)
        number = np.full(prepared.hierarchy.n_nodes, -1)
        number[both.nodes] = np.arange(len(both.nodes))
        inside = type(alone)(small, number[alone.items], number[alone.nodes])
        base = both.prepared if hqs else both.prepared.under(policy="descend")
        rise = rises_by(ScoredDraft(base, Objective(None if hqs else 1.0)), inside, proposals)
        rises.append(rise[np.isin(items, batch)])
    others_rise = np.concatenate(rises)
    return row | {"others": float(others_rise.mean()), "error": float(others_rise.std() / np.sqrt(len(others_rise)))}


def halves(name: str, X: Any, tree: Hierarchy, seed: int, share: float, objective: str) -> dict[str, Any]:
    """Return the row of one division into halves, with a share of the items planted elsewhere."""
    tree = planted(tree, share, False, seed)[0] if share else tree
    prepared = prepare(X, tree, Settings(), warn=False)
    chooses = np.random.default_rng(seed).permutation(tree.n_items) < tree.n_items / 2
    return {"part": "halves", "case": name, "seed": seed, **joined(prepared, chooses, seed, objective)}


def objectives(
    name: str, X: Any, tree: Hierarchy, seed: int, share: float, calibrated: bool
) -> Iterator[dict[str, Any]]:
    """Yield one row per objective, of the gains of the half of the items that did not choose."""
    tree = planted(tree, share, False, seed)[0] if share else tree
    delta = calibrate_delta(X, tree).delta if calibrated else 0.01
    prepared = prepare(X, tree, Settings(delta=delta), warn=False)
    chooses = np.random.default_rng(seed).permutation(tree.n_items) < tree.n_items / 2
    part = part_of(prepared, np.flatnonzero(chooses))
    small = part.prepared
    scores = {"HQS": None, "length": 0.0, "with labels": 1.0}
    bases = {
        key: ScoredDraft(prepared if cost is None else prepared.under(policy="descend"), Objective(cost))
        for key, cost in scores.items()
    }
    for way, given in {"default kinds": {}, "all kinds": {"kinds": KINDS, "keep_levels": False}}.items():
        for key, cost in scores.items():
            given |= {"objective": "hqs" if cost is None else "search_length", "label_cost": cost}
            found = improve(small.features, small.hierarchy, delta=delta, folds=0, random_state=seed, **given)
            edits = [Proposal(edit.kind, edit.nodes, edit.source, edit.target) for edit in found.edits]
            clusters = [one for one in edits if one.kind != "move" or one.nodes[0] >= len(part.items)]
            row = {"part": "objectives", "case": f"{name}, {'calibrated' if calibrated else '0.01'}, {way}, by {key}"}
            row |= {"seed": seed, "edits": len(edits), "of clusters": len(clusters), "promise": found.gain}
            for which, some in (("all", edits), ("clusters", clusters)):
                rises = {score: rises_by(base, part, some)[~chooses] for score, base in bases.items()}
                row |= {f"{which}: {score}": float(rise.mean()) for score, rise in rises.items()}
            yield row


_SIZES = (50, 100, 200, 400)


def one_of_many(seed: int, objective: str) -> dict[str, Any]:
    """Return the row of one invented catalogue of 50 to 400 items, sixteen times as many of which join."""
    n_items = _SIZES[seed % 4]
    rng = np.random.default_rng(seed)
    X, _, broken, _ = catalogue(
        17 * n_items,
        float(rng.choice([0.02, 0.06, 0.12])),
        seed,
        noise=float(rng.choice([0.6, 1.2])),
        n_shelves=4 * n_items // 10,
    )
    parent = broken.parent.copy()
    if seed // 4 % 2:  # two clusters are exchanged
        shelves = np.unique(parent[: broken.n_items])
        one, other = rng.choice(shelves, 2, replace=False)
        parent[[one, other]] = parent[[other, one]]
    prepared = prepare(X, Hierarchy(parent, broken.n_items), Settings(delta=0.05), warn=False)
    chooses = rng.permutation(broken.n_items) < n_items
    return {"part": "coverage", "items": n_items, "seed": seed, **joined(prepared, chooses, seed, objective)}


def covered(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the coverage of the intervals over the catalogues with an edit, and their width."""
    rows = [row for row in rows if row["edits"]]
    if not rows:
        return {"catalogues with an edit": 0}
    low, high = np.array([row["interval"] for row in rows]).T
    truth, error = np.array([row["others"] for row in rows]), np.array([row["error"] for row in rows])
    bias = np.array([row["held out"] for row in rows]) - truth
    return {
        "catalogues with an edit": len(rows),
        "covered": int(((low <= truth) & (truth <= high)).sum()),
        "covered, with the error of the truth": int(((low - 2 * error <= truth) & (truth <= high + 2 * error)).sum()),
        "median width": float(np.median(high - low)),
        "held out less truth": float(bias.mean()),
        "two standard errors": float(2 * bias.std() / np.sqrt(len(rows))),
        "promise": float(np.mean([row["gain"] for row in rows])),
        "held out": float(np.mean([row["held out"] for row in rows])),
        "truth": float(truth.mean()),
    }


def clean(seed: int) -> dict[str, Any]:
    """Return the edits of a tree that nothing is wrong with."""
    X, whole, *_ = catalogue(300, 0.0, seed)
    found = improve(X, whole, objective="hqs", delta=0.05, folds=3)
    moves = sum(edit.nodes[0] < 300 and edit.kind == "move" for edit in found.edits)
    row = {"part": "clean", "seed": seed, "moves": moves, "edits of clusters": len(found.edits) - moves}
    return row | {"gain": found.gain, "held out": found.held_out.gain if found.held_out.n_items else 0.0}


def rows_of(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of the parts that are asked for."""
    chosen = cases(options.quick, options.data)
    if options.only_data:
        chosen = {path.name: chosen[path.name] for path in options.data}
    seeds = range(options.seeds or (2 if options.quick else 10))
    if "planted" in options.parts:
        for name, make in chosen.items():
            yield from (found_first(name, *make(seed), 0.05, seed, options.before) for seed in seeds)
    if "halves" in options.parts:
        for name, make in chosen.items():
            share = 0.0 if name in {path.name for path in options.data} else 0.05
            yield from (halves(name, *make(seed), seed, share, options.objective) for seed in seeds)
    if "objectives" in options.parts:
        for name, make in chosen.items():
            share = 0.0 if name in {path.name for path in options.data} else 0.05
            for calibrated in (False, True):
                for seed in seeds:
                    yield from objectives(name, *make(seed), seed, share, calibrated)
    if "coverage" in options.parts:
        found = []
        for seed in range(1000, 1000 + (options.catalogues or (8 if options.quick else 250))):
            found.append(one_of_many(seed, options.objective))
            yield found[-1]
        for size in _SIZES:
            yield {"part": "coverage", "items": size, **covered([row for row in found if row["items"] == size])}
        yield {"part": "coverage", "items": "all", **covered(found)}
    if "clean" in options.parts:
        yield from (clean(seed) for seed in range(4 if options.quick else 100))


def line(row: dict[str, Any]) -> str:
    """Return one printed line."""

    def text(value: Any) -> str:
        if isinstance(value, tuple):
            return "(" + " ".join(map(text, value)) + ")"
        return f"{value:.4f}" if isinstance(value, float) else str(value)

    return "  ".join(f"{key} {text(value)}" for key, value in row.items())


def main(argv: list[str] | None = None) -> int:
    """Run the study and print its rows, and the means per case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.improvement", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small settings, in seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    parser.add_argument(
        "--data", type=Path, action="append", default=[], metavar="DIR", help="features.npz and tree.json"
    )
    parser.add_argument("--only-data", action="store_true", help="leave the built-in data sets out")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds per data set (default: 10, quick 2)")
    parser.add_argument("--catalogues", type=int, metavar="N", help="catalogues of coverage (default: 250, quick 8)")
    parser.add_argument("--before", type=Path, metavar="DIR", help="another version of the package, for planted")
    parser.add_argument("--objective", choices=OBJECTIVES, default="hqs", help="of halves and coverage (default: hqs)")
    parts = ("planted", "halves", "objectives", "coverage", "clean")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="the parts (default: all)")
    options = parser.parse_args(argv)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows_of(options):
            rows.append(row)
            print(line(row), flush=True)
    print("\nmeans")
    for part, case in dict.fromkeys((row["part"], row.get("case")) for row in rows if row["part"] != "coverage"):
        some = [row for row in rows if (row["part"], row.get("case")) == (part, case)]
        keys = [key for key, value in some[0].items() if isinstance(value, int | float) and key != "seed"]
        print(line({"part": part, "case": case} | {key: float(np.mean([row[key] for row in some])) for key in keys}))
        if part == "objectives":
            errors = {key: float(2 * np.std([row[key] for row in some]) / np.sqrt(len(some))) for key in keys}
            print(line({"two standard errors": ""} | {key: error for key, error in errors.items() if ":" in key}))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
