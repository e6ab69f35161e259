"""Search policies item by item: cost per decision, values, and the effect of the planning model on POMCP.

Two tables. The first runs policies on the generic route over a balanced tree of growing size, beside the engine where
it knows the policy: seconds per item and per decision. The second lets POUCT and POMCP plan with the agent's model and
with the environment's, while the guidance gets worse: whoever plans with the environment earns the ceiling however poor
the belief is, since that model says where the item is; whoever plans with the agent's model earns what any planner of
that model earns.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.hqs.policies import PlansInEnvironment, paper_readings, rtbss_policy
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.planning.pomdp_py_planners import POMCP, POUCT


def balanced(n_items: int, width: int, seed: int) -> tuple[np.ndarray, Hierarchy]:
    """Features that follow a balanced tree, with noise."""
    rng = np.random.default_rng(seed)
    children: list[list[int]] = []
    level, centres = list(range(n_items)), np.zeros((n_items, 32))
    while len(level) > 1:
        groups = [level[i : i + width] for i in range(0, len(level), width)]
        level = []
        for group in groups:
            children.append(group)
            level.append(n_items + len(children) - 1)
    tree = Hierarchy.from_children(children, n_items)
    for node in np.argsort(tree.levels, kind="stable"):
        if node >= n_items:
            step = rng.normal(size=32) / (1 + tree.levels[node])
            centres[tree.items(int(node))] += step
    return centres + 0.3 * rng.normal(size=centres.shape), tree


def cost(sizes: list[int], simulations: int) -> list[dict[str, Any]]:
    """Seconds per item and per decision of each policy, on trees of each size."""
    policies = {
        "one-step": "one-step",
        "RTBSS 2": rtbss_policy(2),
        "optimal": "optimal",
        "expand": paper_readings()["expand"],
        f"POUCT {simulations}": POUCT(depth=4, simulations=simulations, seed=0),
    }
    rows = []
    for size in sizes:
        X, tree = balanced(size, 5, seed=1)
        items = np.random.default_rng(2).choice(size, size=min(size, 25), replace=False)
        for name, policy in policies.items():
            began = time.process_time()
            result = evaluate(X, tree, engine="generic", policy=policy, delta=0.05, items=items)
            spent = time.process_time() - began
            row = {"items": size, "nodes": tree.n_nodes, "policy": name, "score": result.score}
            row["ms/item"] = 1000 * spent / len(items)
            row["ms/decision"] = 1000 * spent / int((result.stop_levels + 1).sum())
            if isinstance(policy, str):
                began = time.process_time()
                engine = evaluate(X, tree, policy=policy, delta=0.05, engine="numpy")
                row["engine ms/item"] = 1000 * (time.process_time() - began) / size
                row["largest difference"] = float(np.abs(engine.values[items] - result.values).max())
            rows.append(row)
    return rows


def pomcp(deltas: list[float], simulations: int) -> list[dict[str, Any]]:
    """The HQS of the twelve items' hierarchies for planners with either model, over the temperature."""
    shop = load_amazon12()
    rows = []
    for delta in deltas:
        settings: dict[str, Any] = {"similarity": "precomputed", "delta": delta}
        for name, tree in shop.hierarchies.items():
            row: dict[str, Any] = {"delta": delta, "tree": name}
            for rule in ("one-step", "optimal", "hindsight"):
                row[rule] = evaluate(shop.similarity, tree, policy=rule, **settings).score
            for kind in (POUCT, POMCP):
                planner = kind(depth=8, simulations=simulations, seed=0)
                for model, policy in (("agent", planner), ("environment", PlansInEnvironment(planner))):
                    result = evaluate(shop.similarity, tree, engine="generic", policy=policy, **settings)
                    row[f"{kind.__name__} {model}"] = result.score
            rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names] + [[_cell(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(line[c]) for line in cells) for c in range(len(names))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1e}" if 0 < abs(value) < 1e-6 else f"{value:.4g}"
    return str(value)


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, in seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    sizes, deltas, simulations = (
        ([60], [0.005], 60) if options.quick else ([100, 1_000, 5_000], [0.005, 0.02, 0.1], 500)
    )
    costs = cost(sizes, simulations)
    show(costs)
    print()
    values = pomcp(deltas, simulations)
    show(values)
    if options.json:
        options.json.write_text(json.dumps({"cost": costs, "pomcp": values}, indent=1))


if __name__ == "__main__":
    main()
