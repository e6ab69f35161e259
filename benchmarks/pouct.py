"""POUCT: how much planning the classic problems need, by the share of decisions that are optimal.

For each problem, at the initial belief and at beliefs that the optimal policy meets: the share of seeds with an optimal
action, the mean loss of the action's optimal Q value, and POUCT's own estimate beside the exact value. Optimal Q values
are those of a look-ahead of two actions to the certified solution; an action is optimal if it loses at most a hundredth
of the value. ``--exploration immediate`` has the range of immediate rewards as the constant, in place of the default.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pomdp_hier import POMDP, RTBSS, BayesUpdater, Belief, solve
from pomdp_hier.planning import POUCT
from pomdp_hier.problems import cheese_maze, corridor, crying_baby, maze_4x3, rock_sample, tiger

PROBLEMS: dict[str, Callable[[], POMDP]] = {
    "tiger": tiger,
    "crying_baby": crying_baby,
    "corridor": corridor,
    "cheese_maze": cheese_maze,
    "maze_4x3, discount 0.95": lambda: maze_4x3(discount=0.95),
    "rock_sample(4, 3)": lambda: rock_sample(4, 3),
}


def met_beliefs(problem: POMDP, policy: Any, count: int) -> list[Belief]:
    """Return the initial belief, and different ones that runs of the policy meet."""
    rng, updater = np.random.default_rng(0), BayesUpdater(problem)
    found = [problem.initial_belief]
    while len(found) < count:
        belief = problem.initial_belief
        for _ in range(8):
            action = policy.decide(problem, belief).action
            branches = list(updater.branches(belief, action))
            weights = np.array([float(p) for _, p, _ in branches])
            belief = branches[rng.choice(len(branches), p=weights / weights.sum())][2]
            if problem.is_terminal_belief(belief) or len(found) == count:
                break
            if belief not in found:
                found.append(belief)
    return found


def measured(
    problem: POMDP, depth: int, simulations: list[int], seeds: int, beliefs: int, immediate: bool, rollout: str
) -> list[Any]:
    """Return per number of simulations: the shares, the loss, the estimate and its seconds."""
    solution = solve(problem, precision=5e-3, time_limit=60)
    points = met_beliefs(problem, solution.policy, beliefs)
    exact = [RTBSS(2, leaf_value=solution).decide(problem, belief).q_values for belief in points]
    rows = []
    for count in simulations:
        optimal, loss, began = np.zeros((beliefs, seeds)), np.zeros((beliefs, seeds)), time.process_time()
        estimates = []
        for i, (belief, q) in enumerate(zip(points, exact, strict=True)):
            best = max(q.values())
            rewards = [float(problem.expected_reward(s, a)) for s in belief for a in problem.actions(belief)]
            constant = (max(rewards) - min(rewards) or 1.0) if immediate else None
            for seed in range(seeds):
                decision = POUCT(depth, count, exploration=constant, rollout=rollout, seed=seed).decide(problem, belief)
                loss[i, seed] = best - q[decision.action]
                optimal[i, seed] = loss[i, seed] <= 0.01 * abs(best)
                estimates += [decision.value] * (i == 0)
        seconds = (time.process_time() - began) / (beliefs * seeds)
        rows.append(
            {
                "simulations": count,
                "at_start": float(optimal[0].mean()),
                "met": float(optimal[1:].mean()),
                "loss": float(loss.mean()),
                "estimate": float(np.mean(estimates)),
                "exact": float(max(exact[0].values())),
                "seconds": seconds,
            }
        )
    return rows


def main() -> None:
    """Print a row per problem and number of simulations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pouct", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiger alone, two seeds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--depth", type=int, default=10, metavar="N", help="actions to look ahead (default: 10)")
    parser.add_argument("--seeds", type=int, default=8, metavar="N", help="seeds per belief (default: 8)")
    parser.add_argument("--beliefs", type=int, default=4, metavar="N", help="beliefs per problem (default: 4)")
    parser.add_argument("--simulations", type=int, nargs="+", default=[200, 1_000, 5_000], metavar="N")
    parser.add_argument("--exploration", choices=("default", "immediate"), default="default")
    parser.add_argument("--rollout", choices=("random", "mdp"), default="random")
    parser.add_argument("--problem", choices=tuple(PROBLEMS), nargs="+", default=list(PROBLEMS))
    options = parser.parse_args()
    names, seeds, simulations = options.problem, options.seeds, options.simulations
    if options.quick:
        names, seeds, simulations = ["tiger"], 2, [200]
    results = {}
    print(f"depth {options.depth}, exploration {options.exploration}, rollout {options.rollout}, {seeds} seeds")
    for name in names:
        problem = PROBLEMS[name]()
        immediate = options.exploration == "immediate"
        results[name] = measured(
            problem, options.depth, simulations, seeds, options.beliefs, immediate, options.rollout
        )
        for row in results[name]:
            print(
                f"| {name} | {row['simulations']:,} | {100 * row['at_start']:.0f} % | {100 * row['met']:.0f} % | "
                f"{row['loss']:.3f} | {row['estimate']:.2f} / {row['exact']:.2f} | {row['seconds']:.2f} |",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
