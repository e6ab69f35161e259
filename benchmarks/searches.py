"""Does `fit_delta` find the temperature of searchers, and what does it say of people?

Without data: searches are drawn on a made tree with a known temperature per level, of people who go back from leaf
clusters that fail. Bias and coverage of the 95 % intervals over repetitions, the difference from ten lines of SciPy,
and how often the guidance is said to describe searchers who click at random.

``--data FOLDER``: recorded games in which people walk from article to article towards a given one (Wikispeedia, SNAP).
The folder holds ``articles.tsv``, ``categories.tsv``, ``links.tsv``, ``paths_unfinished.tsv``, ``plaintext_articles/``
and ``paths_finished.tsv``, or in its place ``observations.txt`` and ``lengths.txt``, the finished games without their
returns. A click is a choice at each level of the tree of subjects, among the children that links of the article lead
to, in proportion to the number of links at infinite temperature. The tree has the first subject of each article; the
header of a text names its subjects, and is left out. The data has no licence and is not part of this package.
"""

import argparse
import json
import re
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from pomdp_hier import Hierarchy, fit_delta, predicted_and_observed, read_searches
from pomdp_hier.features import text_features
from pomdp_hier.hqs import calibrate_delta
from pomdp_hier.searches.choices import Searches
from tests.planted import clean_case
from tests.recorded import Recorder

HEADER = re.compile(r"2007 Schools Wikipedia Selection\..*?\n\s*\n", re.DOTALL)
TRUE = (0.06, 0.048)


def ten_lines(flat: list[tuple[int, np.ndarray, np.ndarray, int]]) -> float:
    """Return the most likely temperature of choices, one by one, by a general minimizer."""

    def loss(log_delta: float) -> float:
        total = 0.0
        for _, similarities, _, chosen in flat:
            z = similarities / np.exp(log_delta)
            total += np.logaddexp.reduce(z) - z[chosen]
        return float(total)

    found = minimize_scalar(loss, bounds=(np.log(1e-3), 0.0), method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x))


def drawn(repetitions: int) -> dict[str, Any]:
    """Print and return what the fit makes of searches with known temperatures, and of random clicks."""
    X, tree = clean_case(items=7)
    X += np.random.default_rng(3).random(X.shape) * 0.8
    recorder = Recorder(X, tree)
    rows, errors, verdicts = [], [], []
    for seed in range(repetitions):
        searches = read_searches(recorder.rows(lambda level: TRUE[level], 5, seed), tree)
        fit = fit_delta(X, tree, searches, n_bootstrap=400, random_state=seed)
        rows.append([(np.log(p.delta / d), *p.interval) for p, d in zip(fit.levels, TRUE, strict=True)])
        if seed < 3:
            errors.append(abs(fit.delta / ten_lines(recorder.flat) - 1))
        lost = read_searches(recorder.rows(lambda level: 1e9, 5, seed), tree)
        verdicts.append(fit_delta(X, tree, lost, n_bootstrap=100, random_state=seed).verdict)
    table = np.array(rows)
    print(f"{tree.n_items} items, 5 searches each, {repetitions} repetitions")
    print(f"{'level':>5} {'delta':>7} {'bias of log':>12} {'spread':>7} {'coverage of 95 %':>17}")
    found = []
    for level, delta in enumerate(TRUE):
        log, low, high = table[:, level].T
        covered = float(np.mean((low <= delta) & (delta <= high)))
        found.append({"delta": delta, "bias": float(log.mean()), "sd": float(log.std(ddof=1)), "coverage": covered})
        print(f"{level:>5} {delta:>7.3f} {log.mean():>12.4f} {log.std(ddof=1):>7.4f} {covered:>17.3f}")
    print(f"largest relative difference from ten lines of SciPy: {max(errors):.1e}")
    counts = {verdict: verdicts.count(verdict) for verdict in ("described", "inconclusive", "not described")}
    print("random clicks:", ", ".join(f"{verdict} {count}" for verdict, count in counts.items()))
    return {"levels": found, "baseline": max(errors), "random": counts}


def table_of(path: Path) -> list[list[str]]:
    """Return the rows of a table with comment lines and without a header."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def games(folder: Path) -> tuple[list[tuple[str, list[str]]], int]:
    """Return the target and the articles of each game, and the number of finished ones, which come first."""
    names = [row[0] for row in table_of(folder / "articles.tsv")]
    if (folder / "paths_finished.tsv").exists():
        ways = [row[3].split(";") for row in table_of(folder / "paths_finished.tsv")]
    else:
        lengths = [int(row[1]) for row in table_of(folder / "lengths.txt")]
        seen = [names[int(row[0])] for row in table_of(folder / "observations.txt")[1:]]
        ends = np.cumsum(lengths).tolist()
        ways = [seen[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    unfinished = [(row[4], row[3].split(";")) for row in table_of(folder / "paths_unfinished.tsv")]
    return [(way[-1], way) for way in ways] + unfinished, len(ways)


def people(folder: Path, quick: bool) -> dict[str, Any]:
    """Print and return what recorded games say of the guidance."""
    start = time.process_time()
    subjects: dict[str, tuple[str, ...]] = {}
    for article, subject in table_of(folder / "categories.tsv"):
        subjects.setdefault(article, tuple(subject.split(".")[1:]))
    divided = {subject[:end] for subject in subjects.values() for end in range(len(subject))}
    texts = {name: folder / "plaintext_articles" / f"{name}.txt" for name in subjects}
    subjects = {name: subject for name, subject in subjects.items() if texts[name].exists()}
    # Articles at a divided subject are in a leaf cluster of their own, "(other)".
    tree = Hierarchy.from_paths({n: [*s, "(other)"] if s in divided else list(s) for n, s in subjects.items()})
    read = [texts[name].read_text(encoding="utf-8", errors="replace") for name in tree.item_labels]
    bare = [HEADER.sub("\n", text, count=1).replace("#copyright", "") for text in read]
    X = text_features(bare, stop_words="english", sublinear_tf=True, min_df=2).matrix
    records, n_finished = games(folder)
    finished = np.arange(len(records)) < n_finished
    known = set(tree.item_labels)
    kept = np.array([target in known for target, _ in records])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searches = read_searches(
            [{"item": target, "path": way} for target, way in records],
            tree, back="<", start="first", unknown_items="drop", links=table_of(folder / "links.tsv"),
        )  # fmt: skip
    finished = finished[kept]
    if quick:
        some = np.arange(len(searches)) % 20 == 0
        searches, finished = searches.select(some), finished[some]
    print(f"{tree.n_items:,} articles under {tree.n_nodes - tree.n_items} subjects; {searches.summary()}")
    for note in searches.notes:
        print(f"  {note}")
    exchanged = np.random.default_rng(0).permutation(searches.items)
    groups: dict[str, Searches] = {
        "all": searches,
        "finished": searches.select(finished),
        "unfinished": searches.select(~finished),
        "targets exchanged": replace(searches, items=exchanged),
    }
    found: dict[str, Any] = {"tfidf": fits("TF-IDF", X, tree, groups, quick)}
    found["lsa"] = fits("LSA, 100 dimensions", lsa(X), tree, {"all": searches}, quick)
    delta = found["tfidf"]["all"]["delta"]
    shown = predicted_and_observed(X, tree, searches, delta=delta, n_bootstrap=100 if quick else 500)
    print("\npredicted beside observed, TF-IDF:")
    for line in shown.sentences():
        print(f"  {line}")
    zeros = float(np.mean(np.abs(shown.hqs) < 1e-12))
    print(f"  {zeros:.0%} of the HQS values are 0 at delta {delta:.3g}; {time.process_time() - start:.0f} CPU s")
    found["correlations"] = [vars(one) for one in shown.correlations]
    return found


def lsa(X: Any) -> np.ndarray:
    """Return 100 dimensions of latent semantic analysis."""
    from sklearn.decomposition import TruncatedSVD

    return np.asarray(TruncatedSVD(100, random_state=0).fit_transform(X))


def fits(name: str, X: Any, tree: Hierarchy, groups: dict[str, Searches], quick: bool) -> dict[str, Any]:
    """Print and return the fit of each group of games, by level."""
    calibrated = calibrate_delta(X, tree).delta
    print(f"\n{name}; calibrated delta, from where the articles are: {calibrated:.3g}")
    print(f"{'games':<18} {'part':<9} {'choices':>9} {'delta':>7} {'95 % interval':>18} {'x root':>7}", end="")
    print(f" {'gain over links':>23} {'at .01':>8}")
    found: dict[str, Any] = {"calibrated": calibrated}
    for group, searches in groups.items():
        fit = fit_delta(X, tree, searches, n_bootstrap=50 if quick else 400)
        at = fit.gain_at(0.01)[1]
        found[group] = {"delta": fit.delta, "interval": fit.interval, "at_0.01": at, "parts": fit.to_rows()}
        for part in fit.parts:
            low, high = part.interval
            ratio = "" if np.isnan(part.times_root) else f"{part.times_root:.2f}"
            last = f"{at:z.3f}" if part.part == "all" else ""
            print(
                f"{group:<18} {part.part:<9} {part.n_choices:>9,} {part.delta:>7.3g} {f'{low:.3g} to {high:.3g}':>18} "
                f"{ratio:>7} {part.over_sizes!s:>23} {last:>8}",
                flush=True,
            )
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few repetitions, and a twentieth of the games")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the folder of the recorded games")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    if options.data is None:
        figures["drawn"] = drawn(5 if options.quick else 200)
    else:
        figures["people"] = people(options.data, options.quick)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1, default=float), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
