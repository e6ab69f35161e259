"""How soon has `solve` bounds, on random problems and on large models, and does it end in time?

First, random problems of 2 to 150 states at short time limits: the bounds must not cross, the certificate of each must
be valid, and the solver must end in time. Then random sparse and dense models and RockSample at their sizes: the first
bounds, those after some seconds, and the memory of the process. Each model runs in a separate process.
"""

import argparse
import json
import math
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pomdp_hier import POMDP
from pomdp_hier._text import brief
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.planning import solve, verify

LARGE = {
    "sparse 500, 2 actions, 2 observations": lambda: random_model(500, 2, 2, 10),
    "sparse 500, 50 actions, 500 observations": lambda: random_model(500, 50, 500, 10),
    "sparse 1,000, 4 actions": lambda: random_model(1_000, 4, 10, 10),
    "sparse 2,000, 4 actions": lambda: random_model(2_000, 4, 10, 10),
    "sparse 5,000, 10 actions, 100 observations": lambda: random_model(5_000, 10, 100, 10),
    "sparse 10,000, 2 actions, 2 observations": lambda: random_model(10_000, 2, 2, 10),
    "sparse 10,000, 50 actions, 500 observations": lambda: random_model(10_000, 50, 500, 5),
    "dense 500, 2 actions, 2 observations": lambda: random_model(500, 2, 2, None),
    "dense 500, 50 actions, 500 observations": lambda: random_model(500, 50, 500, None),
    "dense 1,000, 4 actions, 10 observations": lambda: random_model(1_000, 4, 10, None),
    "dense 2,000, 4 actions, 2 observations": lambda: random_model(2_000, 4, 2, None),
    "dense 5,000, 2 actions, 2 observations": lambda: random_model(5_000, 2, 2, None),
    "dense 10,000, 2 actions, 2 observations": lambda: random_model(10_000, 2, 2, None),
    "RockSample[7,8]": lambda: rock_sample_arrays(7, ROCKS[7]),
    "RockSample[10,10]": lambda: rock_sample_arrays(10, ROCKS[10]),
}

ROCKS = {
    4: ((0, 1), (1, 3), (2, 0), (2, 3)),
    7: ((2, 0), (0, 1), (3, 1), (6, 3), (2, 4), (3, 4), (5, 5), (1, 6)),
    10: ((0, 3), (0, 7), (1, 8), (2, 4), (3, 3), (3, 8), (4, 3), (5, 8), (6, 1), (9, 3)),
}


def random_problem(seed: int) -> tuple[POMDP, int | None]:
    """Return a problem of 2 to 150 states, sparse or dense, with or without terminal states, and its horizon."""
    rng = np.random.default_rng(seed)
    size = int(np.exp(rng.uniform(math.log(2), math.log(150))))
    n_actions, n_observations = (int(n) for n in rng.integers(2, 7, 2))
    problem = random_model(
        size,
        n_actions,
        n_observations,
        None if rng.random() < 0.3 else int(rng.integers(1, min(size, 12) + 1)),
        discount=float(rng.choice([0.5, 0.9, 0.95, 0.99, 0.999])),
        unit=float(rng.choice([1e-3, 1.0, 1e4])),
        terminal=[0] if rng.random() < 0.3 else None,
        seed=seed,
    )
    return problem, int(rng.integers(1, 30)) if rng.random() < 0.2 else None


def random_model(
    size: int,
    n_actions: int,
    n_observations: int,
    successors: int | None,
    *,
    discount: float = 0.95,
    unit: float = 1.0,
    terminal: list[int] | None = None,
    seed: int = 0,
) -> POMDP:
    """Return a random model with this number of successors per state and action; ``None`` for all states."""
    rng = np.random.default_rng(seed)
    T = []
    for _ in range(n_actions):
        if successors is None:
            dense = rng.random((size, size)) + 0.01
            T.append(sparse.csr_array(dense / dense.sum(axis=1, keepdims=True)))
            continue
        row = np.repeat(np.arange(size), successors)
        column = rng.integers(0, size, len(row))
        matrix = sparse.csr_array((rng.random(len(row)) + 0.01, (row, column)), shape=(size, size))
        matrix.sum_duplicates()
        T.append(sparse.csr_array(sparse.diags_array(1 / matrix.sum(axis=1)) @ matrix))
    few = min(n_observations, 5)
    Z = []
    for _ in range(n_actions):
        column = (rng.integers(0, n_observations, size)[:, None] + np.arange(few)).ravel() % n_observations
        weight = rng.dirichlet(np.full(few, 0.5) + 0.05, size).ravel()
        Z.append(sparse.csr_array((weight, (np.repeat(np.arange(size), few), column)), shape=(size, n_observations)))
    return POMDP.from_arrays(
        T=T, Z=Z, R=rng.normal(size=(n_actions, size)) * unit, discount=discount, terminal=terminal
    )


def rock_sample_arrays(n: int, rocks: tuple[tuple[int, int], ...], half_distance: float = 20.0) -> POMDP:
    """Return RockSample on an n by n field as sparse arrays, from the middle of the west side."""
    kinds, end = 1 << len(rocks), n * n << len(rocks)
    state = np.arange(end)
    position, good = state // kinds, state % kinds
    x, y = position // n, position % n
    here = np.full(end, -1)
    for i, (rock_x, rock_y) in enumerate(rocks):
        here[(x == rock_x) & (y == rock_y)] = i
    bit = np.where(here >= 0, 1 << np.maximum(here, 0), 0)
    moves = []
    for dx, dy in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        inside = np.clip(x + dx, 0, n - 1) * n + np.clip(y + dy, 0, n - 1)
        moves.append((np.where(x + dx >= n, end, inside * kinds + good), np.where(x + dx >= n, 10.0, 0.0), None))
    worth = np.where(here < 0, -100.0, np.where(good & bit, 10.0, -10.0))
    moves.append((position * kinds + (good & ~bit), worth, None))
    for i, (rock_x, rock_y) in enumerate(rocks):
        right = (1 + 2 ** (-np.hypot(x - rock_x, y - rock_y) / half_distance)) / 2
        moves.append((state, np.zeros(end), np.where(good >> i & 1, right, 1 - right)))
    T, Z = [], []
    for then, _, seen in moves:
        ones = np.ones(end + 1)
        T.append(sparse.csr_array((ones, (np.arange(end + 1), np.append(then, end))), shape=(end + 1,) * 2))
        good_seen = np.append(np.zeros(end) if seen is None else seen, 0.0)
        Z.append(sparse.csr_array(np.stack([good_seen, 1 - good_seen], axis=1)))
    start = np.zeros(end + 1)
    start[(n // 2) * kinds : (n // 2 + 1) * kinds] = 1 / kinds
    rewards = np.stack([np.append(reward, 0.0) for _, reward, _ in moves])
    return POMDP.from_arrays(T=T, Z=Z, R=rewards, discount=0.95, initial_belief=start, terminal=[end])


def check(seed: int, limit: float) -> float:
    """Return the seconds beyond the limit; raise an error for bounds that cross or a certificate that is not valid."""
    problem, horizon = random_problem(seed)
    _ = problem.compiled
    began = time.process_time()
    solution = solve(problem, horizon=horizon, precision=1e-3, time_limit=limit)
    late = time.process_time() - began - limit
    lower, upper = zip(*((entry.lower, entry.upper) for entry in solution.history), strict=True)
    scale = 1e-9 * max(1.0, abs(lower[-1]), abs(upper[-1]))
    assert solution.lower <= solution.upper + scale, "the bounds cross"
    assert (np.diff(lower) >= -scale).all(), "a lower bound falls"
    assert (np.diff(upper) <= scale).all(), "an upper bound rises"
    proved = verify(solution.certificate(), problem)
    assert float(proved.lower) <= solution.lower + scale, "the proved lower bound is higher"
    assert solution.upper <= float(proved.upper) + scale, "the proved upper bound is lower"
    return late


def check_all(n_problems: int, limit: float) -> dict[str, Any]:
    """Return the row of a time limit; it is printed after every hundred problems, so that a killed run has it too."""
    late: list[float] = []
    failed: dict[int, str] = {}
    for seed in range(n_problems):
        try:
            late.append(check(seed, limit))
        except (AssertionError, PomdpHierError) as error:
            failed[seed] = brief(str(error))
        if (seed + 1) % 100 == 0 or seed + 1 == n_problems:
            row = {"limit": limit, "problems": seed + 1, "failed": failed, "latest": max(late, default=0.0)}
            row["beyond a tenth or .3 s"] = sum(seconds > max(0.1 * limit, 0.3) for seconds in late)
            print(json.dumps(row), flush=True)
    return row


def measure(name: str, seconds: list[float], answers: Any) -> None:
    """Put the row of a large model into the queue."""
    row: dict[str, Any] = {"model": name}
    began = time.process_time()
    problem = LARGE[name]()
    try:
        compiled = problem.compiled
        row["entries"] = sum(matrix.nnz for matrix in (*compiled.transition, *(compiled.observation or ())))
        row["made in"] = time.process_time() - began
        row["model MB"] = _peak()
        began = time.process_time()
        solution = solve(problem, precision=1e-3, time_limit=max(seconds))
    except PomdpHierError as error:
        answers.put({**row, "rejected": str(error)})
        return
    row["ended"] = time.process_time() - began
    row["peak MB"], row["search MB"] = _peak(), solution.search.n_bytes / 1e6
    row["first"] = [(e.seconds, e.lower, e.upper) for e in solution.history[:2]]
    for limit in seconds:
        entry = ([e for e in solution.history if e.seconds <= limit] or solution.history[:1])[-1]
        row[f"{limit:g} s"] = (entry.lower, entry.upper)
    answers.put(row)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: list[str] | None = None) -> None:
    """Run both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_bounds", description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=1_000, metavar="N", help="how many random problems")
    parser.add_argument("--limits", type=float, nargs="*", default=[0.05, 0.2, 1.0], metavar="S", help="time limits")
    parser.add_argument("--models", nargs="*", default=list(LARGE), metavar="NAME", help="large models (default: all)")
    parser.add_argument("--seconds", type=float, nargs="+", default=[10, 60], metavar="S", help="of large models")
    parser.add_argument("--quick", action="store_true", help="few problems, and the smallest models")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.problems, arguments.models, arguments.seconds = 6, list(LARGE)[:1], [0.5, 1.0]
    rows: list[dict[str, Any]] = []
    if arguments.problems:
        rows += [check_all(arguments.problems, limit) for limit in arguments.limits]
    for name in arguments.models:
        answers: Any = multiprocessing.get_context("spawn").Queue()
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, arguments.seconds, answers))
        process.start()
        rows.append(answers.get())
        process.join()
        print(json.dumps(rows[-1]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1, default=float), encoding="utf-8")


if __name__ == "__main__":
    main()
