"""Does the package read the authors' tree of 37,826 items as they did?

Their scores of every item were published: the level at which its search stopped, the probability of having come there,
the reward and the value. The item vectors were not, so that the searches cannot be run again; but every reward has to
be ``r(c)`` of the node at that level of the item's path, and every value ``(r + 1) p - 1``.
"""

import argparse
import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np

from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import node_rewards
from pomdp_hier.hqs.score import oracle_value

TREE, SCORES = "agglomerative_children.json", "authors_scores.csv.gz"
TOLERANCE = 1e-12


def ancestors(tree: Hierarchy, levels: np.ndarray) -> np.ndarray:
    """Return the node at the given level of each true path ``[N]``."""
    nodes = tree.leaf_of_item.copy()
    while (deep := tree.levels[nodes] > levels).any():
        nodes[deep] = tree.parent[nodes[deep]]
    return nodes


def compare(folder: Path) -> dict[str, float]:
    """Return figures of the tree, and the differences to the scores in that folder."""
    with gzip.open(folder / SCORES, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    stop_at, probability, reward, value = (
        np.array([float(row[name]) for row in rows]) for name in ("stop_at", "prob", "reward", "V")
    )
    tree = Hierarchy.from_children(json.loads((folder / TREE).read_text()), len(rows), singletons=True)
    stops = ancestors(tree, stop_at - 1)
    return {
        "n": tree.n_items,
        "n_nodes": tree.n_nodes,
        "height": int(tree.height),
        "max_level_difference": float(np.abs(tree.levels[stops] - (stop_at - 1)).max()),
        "max_reward_difference": float(np.abs(node_rewards(tree).reward[stops] - reward).max()),
        "max_value_difference": float(np.abs(oracle_value(probability, reward) - value).max()),
        "mean_value": float(value.mean()),
        "mean_stop_level": float(tree.levels[stops].mean()),
    }


def main(argv: list[str] | None = None) -> int:
    """Compare and print; return 1 if a reward or a value differs by more than 1e-12."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.authors_tree", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help=f"a folder with {TREE} and {SCORES}")
    parser.add_argument("--quick", action="store_true", help="changes nothing: it takes seconds")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    if options.data is None:
        print(
            f"needs the authors' published tree and scores: --data DIR, with {TREE} and {SCORES}; nothing was compared"
        )
        if options.json:
            options.json.write_text(json.dumps(None))
        return 0
    figures = compare(options.data)
    print(f"{figures['n']:,} items, {figures['n_nodes']:,} nodes, height {figures['height']}")
    print(f"stop levels   differ by at most {figures['max_level_difference']:.0f}")
    print(f"rewards r(c)  differ by at most {figures['max_reward_difference']:.1e}")
    print(f"(r + 1) p - 1 differs from V by at most {figures['max_value_difference']:.1e}")
    print(f"mean of V {figures['mean_value']:.6f}, mean stop level {figures['mean_stop_level']:.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    names = ("max_level_difference", "max_reward_difference", "max_value_difference")
    return int(any(not figures[name] <= TOLERANCE for name in names))


if __name__ == "__main__":
    sys.exit(main())
