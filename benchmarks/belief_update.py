"""One exact belief update: on arrays, on named beliefs, and with pomdp-py's ``update_histogram_belief``.

Three tables. The first updates one belief over all states of one sparse problem in four ways and compares the
posteriors; pomdp-py asks its models for every pair of states, and gets models that answer from a dict. The second
updates named beliefs of a few states, as often a second as `BayesUpdater` and pomdp-py can. The third
predicts with a CSR and with a dense transition matrix at growing density, and says which of the two the package picks.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pomdp_py
from scipy import sparse

from pomdp_hier import POMDP, BayesUpdater
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.pomdp.tabular import prefers_dense


def rows(rng: np.random.Generator, n_rows: int, width: int, per_row: int) -> sparse.csr_array:
    """Random distributions with ``per_row`` entries each."""
    columns = np.concatenate([rng.choice(width, per_row, replace=False) for _ in range(n_rows)])
    values = rng.dirichlet(np.ones(per_row), n_rows).ravel()
    return sparse.csr_array((values, columns, np.arange(0, n_rows * per_row + 1, per_row)), shape=(n_rows, width))


def seconds(call: Callable[[], Any], budget: float) -> float:
    """Return the median time of a call, over at least one and all within the budget."""
    times: list[float] = []
    while not times or sum(times) < budget:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


class DictTransition(pomdp_py.TransitionModel):  # type: ignore[misc]
    """The fastest Python model for pomdp-py: one look-up per call."""

    def __init__(self, table: list[dict[int, float]]) -> None:
        self.table = table

    def probability(self, next_state: int, state: int, action: int) -> float:
        return self.table[state].get(next_state, 0.0)


class DictObservation(pomdp_py.ObservationModel):  # type: ignore[misc]
    """The same for observations."""

    def __init__(self, table: list[dict[int, float]]) -> None:
        self.table = table

    def probability(self, observation: int, next_state: int, action: int) -> float:
        return self.table[next_state].get(observation, 0.0)


def compare_ways(n_states: int, budget: float) -> dict[str, Any]:
    """One update of a belief over all states, in four ways."""
    rng = np.random.default_rng(0)
    problem = POMDP.from_arrays(
        [rows(rng, n_states, n_states, 5)], [rows(rng, n_states, 20, 3)], np.zeros((1, n_states))
    )
    tabular, bayes = TabularUpdater(problem), BayesUpdater(problem)
    belief = problem.initial_belief
    vector = problem.compiled.vector(belief)
    observation = int(np.argmax(problem.compiled.outcomes(vector, 0).sum(axis=1)))
    moves = DictTransition([dict(problem.successors(s, 0)) for s in problem.states])
    sees = DictObservation([dict(problem.observation_distribution(s, 0, None)) for s in problem.states])
    histogram = pomdp_py.Histogram(dict(belief))
    ours = tabular.update(vector, 0, observation)

    began = time.perf_counter()
    theirs = pomdp_py.update_histogram_belief(histogram, 0, observation, sees, moves)
    pomdp_py_seconds = time.perf_counter() - began
    times = {
        "TabularUpdater, arrays": seconds(lambda: tabular.update(vector, 0, observation), budget),
        "TabularUpdater, named beliefs": seconds(lambda: tabular.update(belief, 0, observation), budget),
        "BayesUpdater": seconds(lambda: bayes.update(belief, 0, observation), budget),
        "pomdp-py, update_histogram_belief": pomdp_py_seconds,
    }
    return {
        "n_states": n_states,
        "seconds": times,
        "times_faster_than_pomdp_py": {name: pomdp_py_seconds / t for name, t in times.items()},
        "largest_difference": float(max(abs(ours[s] - theirs[s]) for s in problem.states)),
    }


def compare_named(sizes: tuple[int, ...], budget: float) -> list[dict[str, Any]]:
    """Updates a second of named beliefs over all states of dense problems, by `BayesUpdater` and by pomdp-py."""
    rng = np.random.default_rng(0)
    table = []
    for n in sizes:
        T, Z = rng.dirichlet(np.ones(n), (1, n)), rng.dirichlet(np.ones(3), (1, n))
        problem = POMDP.from_arrays(T, Z, np.zeros((1, n)))
        bayes, belief = BayesUpdater(problem), problem.initial_belief
        moves = DictTransition([dict(problem.successors(s, 0)) for s in problem.states])
        sees = DictObservation([dict(problem.observation_distribution(s, 0, None)) for s in problem.states])
        histogram = pomdp_py.Histogram(dict(belief))
        ours, theirs = [], []
        for _ in range(3):  # in turns
            ours.append(per_second(partial(bayes.update, belief, 0, 0), budget))
            theirs.append(per_second(partial(pomdp_py.update_histogram_belief, histogram, 0, 0, sees, moves), budget))
        table.append({"n_states": n, "here": max(ours), "pomdp-py": max(theirs)})
    return table


def per_second(call: Callable[[], Any], budget: float) -> float:
    """Return how many calls take one CPU second."""
    call()
    count, began = 0, time.process_time()
    while time.process_time() - began < budget:
        for _ in range(20):
            call()
        count += 20
    return count / (time.process_time() - began)


def compare_densities(n_states: int, densities: list[float], budget: float) -> list[dict[str, Any]]:
    """One prediction with each form of the matrix."""
    rng = np.random.default_rng(1)
    belief = rng.dirichlet(np.ones(n_states))
    table = []
    for density in densities:
        matrix = rows(rng, n_states, n_states, max(1, round(density * n_states)))
        csr, dense = matrix.T.tocsr(), np.ascontiguousarray(matrix.T.toarray())
        table.append(
            {
                "n_states": n_states,
                "density": matrix.nnz / n_states**2,
                "sparse_seconds": seconds(lambda csr=csr: csr @ belief, budget),
                "dense_seconds": seconds(lambda dense=dense: dense @ belief, budget),
                "package_picks": "dense" if prefers_dense(matrix) else "sparse",
            }
        )
    return table


def main() -> None:
    """Run both comparisons and print them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.belief_update", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="200 states, in seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    arguments = parser.parse_args()
    budget = 0.05 if arguments.quick else 0.5
    ways = compare_ways(200 if arguments.quick else 1_000, budget)
    print(f"One update of a belief over {ways['n_states']:,} states, 5 successors a state, 20 observations")
    for name, t in ways["seconds"].items():
        print(f"  {name:36}{1e6 * t:14,.1f} µs{ways['times_faster_than_pomdp_py'][name]:12,.0f} x")
    print(f"  largest difference from pomdp-py's posterior: {ways['largest_difference']:.2g}")
    named = compare_named((2, 4, 6, 8) if arguments.quick else (2, 4, 6, 8, 60, 200), budget / 2)
    print("\nUpdates of a named belief per CPU second\n  states        here    pomdp-py   ratio")
    for row in named:
        ratio = row["here"] / row["pomdp-py"]
        print(f"  {row['n_states']:6,}{row['here']:12,.0f}{row['pomdp-py']:12,.0f}{ratio:8.2f}")
    densities = [0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0]
    sizes = (50, 200) if arguments.quick else (50, 200, 1_000, 3_000)
    table = [row for size in sizes for row in compare_densities(size, densities, budget / 5)]
    print("\nOne prediction, sparse and dense\n  states   density      sparse       dense   the package picks")
    for row in table:
        print(
            f"  {row['n_states']:6,}{row['density']:10.3f}{1e6 * row['sparse_seconds']:9,.1f} µs"
            f"{1e6 * row['dense_seconds']:9,.1f} µs   {row['package_picks']}"
        )
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"ways": ways, "named": named, "densities": table}, indent=2), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
