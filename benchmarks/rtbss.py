"""RTBSS: depth, visited nodes and time, beside its peers in the same run.

Tiger to depth 20, and a random problem of the size of a robot's hallway (60 states, 5 actions, 21 observations) to
depth 4; beside them pomdp-py's ``value()`` as deep as it gets within its time limit, and AI-Toolbox's RTBSS if you have
it: ``--aitoolbox BINARY`` names a program that is called with a model file and a depth and prints ``seconds value`` on
one line. The model file is plain text, numbers separated by blanks: S A O discount; T[a][s][s']; Z[a][s'][o]; R[a][s];
the belief. Times are of the process (no compilation of the model, no reading of files), the best of a few runs.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pomdp_py

from pomdp_hier import POMDP
from pomdp_hier.planning import RTBSS
from pomdp_hier.problems import tiger


def hallway(seed: int = 0) -> POMDP:
    """A random problem of a hallway's size: each move reaches a few cells, each cell has a few likely readings."""
    rng = np.random.default_rng(seed)
    states, actions, observations = 60, 5, 21

    def rows(shape: tuple[int, ...], likely: int) -> np.ndarray:
        weights = rng.random(shape) ** 4 + 1e-4
        weights[rng.random(shape) < 1 - likely / shape[-1]] = 0
        weights[..., 0] += 1e-3
        return weights / weights.sum(axis=-1, keepdims=True)

    return POMDP.from_arrays(
        rows((actions, states, states), likely=6),
        rows((actions, states, observations), likely=12),
        rng.uniform(-1, 1, (actions, states)) ** 3,
        discount=0.95,
    )


def timed(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the smallest CPU time of a few runs, and the result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        began = time.process_time()
        result = function()
        best = min(best, time.process_time() - began)
    return best, result


class _Transition(pomdp_py.TransitionModel):
    def __init__(self, problem: POMDP) -> None:
        self.rows = {(s, a): problem.successors(s, a) for s in problem.states for a in problem.all_actions}

    def probability(self, next_state: Any, state: Any, action: Any) -> float:
        return self.rows[state, action].get(next_state, 0.0)


class _Observation(pomdp_py.ObservationModel):
    def __init__(self, problem: POMDP) -> None:
        pairs = ((s, a) for s in problem.states for a in problem.all_actions)
        self.rows = {(s, a): problem.observation_distribution(s, a, None) for s, a in pairs}

    def probability(self, observation: Any, next_state: Any, action: Any) -> float:
        return self.rows[next_state, action].get(observation, 0.0)


class _Reward(pomdp_py.RewardModel):
    def __init__(self, problem: POMDP) -> None:
        pairs = ((s, a) for s in problem.states for a in problem.all_actions)
        self.values = {(s, a): problem.expected_reward(s, a) for s, a in pairs}

    def sample(self, state: Any, action: Any, next_state: Any) -> float:
        return self.values[state, action]


class PomdpPy:
    """pomdp-py's ``value()``, one depth after another while the next is expected within the limit."""

    def __init__(self, problem: POMDP, limit: float) -> None:
        spaces = [list(problem.states), list(problem.all_actions), list(problem.all_observations)]
        models = [_Transition(problem), _Observation(problem), _Reward(problem)]
        self.arguments = [*spaces, *models, float(problem.discount)]
        self.belief = {s: float(problem.initial_belief[s]) for s in problem.states}
        self.growth = len(problem.all_actions) * len(problem.all_observations)
        self.limit, self.last = limit, 0.0

    def __call__(self, depth: int) -> tuple[float, float] | None:
        """Seconds and value, or ``None`` once it would take too long."""
        if self.last * self.growth > self.limit:
            self.last = float("inf")
            return None
        self.last, value = timed(lambda: pomdp_py.value(self.belief, *self.arguments, horizon=depth), 1)
        return self.last, float(value)


class AIToolbox:
    """The program given, on the problem's arrays."""

    def __init__(self, binary: Path, problem: POMDP, folder: Path, limit: float) -> None:
        compiled = problem.compiled
        self.command, self.file, self.limit, self.over = str(binary.resolve()), folder / "model.txt", limit, False
        blocks = [m.toarray() for m in (*compiled.transition, *(compiled.observation or ()))]
        with self.file.open("w", encoding="ascii") as out:
            out.write(f"{compiled.n_states} {compiled.n_actions} {compiled.n_observations} {compiled.discount!r}\n")
            for block in (*blocks, compiled.reward, compiled.initial):
                out.write(" ".join(repr(float(x)) for x in np.ravel(block)) + "\n")

    def __call__(self, depth: int) -> tuple[float, float] | None:
        """Seconds and value, or ``None`` once a shallower search has run over the limit."""
        if self.over:
            return None
        command = [self.command, str(self.file), str(depth)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10 * self.limit)
        except subprocess.TimeoutExpired:
            self.over = True
            return None
        seconds, value = map(float, run.stdout.split())
        self.over = seconds > self.limit
        return seconds, value


def compare(name: str, problem: POMDP, depths: list[int], peers: dict[str, Any], repeats: int) -> list[dict[str, Any]]:
    """Return one row per depth: time, nodes and value of RTBSS, and the time of each peer."""
    problem.compiled  # noqa: B018  # not part of the search
    print(f"\n{name}: {problem}")
    print(
        f"{'depth':>5} {'seconds':>9} {'first':>9} {'nodes':>9} {'reused':>8} {'value':>12}"
        + "".join(f" {peer + ' [s]':>16} {'ratio':>9}" for peer in peers)
    )
    rows = []
    for depth in depths:
        planner = RTBSS(depth)
        first, decision = timed(lambda planner=planner: planner.decide(problem), 1)  # with what is prepared once
        again, decision = timed(lambda planner=planner: planner.decide(problem), repeats)
        row = {"problem": name, "depth": depth, "seconds": again, "first_seconds": first, "value": decision.value}
        row |= {key: decision.stats[key] for key in ("nodes", "pruned", "reused", "engine")}
        line = f"{depth:5d} {again:9.4f} {first:9.4f} {row['nodes']:9d} {row['reused']:8d} {decision.value:12.6f}"
        for peer, run in peers.items():
            outcome = run(depth)
            if outcome is not None:
                row |= {f"{peer}_seconds": outcome[0], f"{peer}_value": outcome[1], f"{peer}_ratio": outcome[0] / again}
                np.testing.assert_allclose(
                    decision.value, outcome[1], rtol=1e-6, atol=1e-6, err_msg=f"{peer} at depth {depth}"
                )
                line += f" {outcome[0]:16.4f} {outcome[0] / again:9.1f}"
            else:
                line += f" {'-':>16} {'-':>9}"
        print(line, flush=True)
        rows.append(row)
    return rows


def main(argv: list[str] | None = None) -> None:
    """Run the two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rtbss", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shallow searches only, in seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--aitoolbox", type=Path, metavar="BINARY", help="BINARY MODEL DEPTH prints 'seconds value'")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a peer may take for one search")
    arguments = parser.parse_args(argv)
    limit = 2.0 if arguments.quick else arguments.limit
    tables = {
        "tiger": (tiger(), [1, 4, 7] if arguments.quick else [1, 2, 4, 6, 7, 8, 10, 12, 14, 16, 20]),
        "hallway": (hallway(), [1, 2, 3] if arguments.quick else [1, 2, 3, 4]),
    }
    rows = []
    for name, (problem, depths) in tables.items():
        with tempfile.TemporaryDirectory() as folder:
            peers: dict[str, Any] = {"pomdp-py": PomdpPy(problem, limit)}
            if arguments.aitoolbox:
                peers["AI-Toolbox"] = AIToolbox(arguments.aitoolbox, problem, Path(folder), limit)
            rows += compare(name, problem, depths, peers, repeats=1 if arguments.quick else 3)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
