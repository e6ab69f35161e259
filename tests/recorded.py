"""Made searches: people who descend by the guidance, look at leaf clusters, and go back from those that fail."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier.hierarchy.tree import Hierarchy
from tests import scorer_oracle as oracle


@dataclass
class Recorder:
    """Draws searches, and keeps what each choice was made of: level, similarities, sizes and the chosen one."""

    X: Any
    tree: Hierarchy
    flat: list[tuple[int, np.ndarray, np.ndarray, int]] = field(default_factory=list)
    _known: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sim = oracle.cosine(self.X)

    def similarities(self, item: int, node: int) -> np.ndarray:
        """The similarities of an item to the children of a node."""
        if (item, node) not in self._known:
            children = self.tree.children(node).tolist()
            self._known[item, node] = np.array([self._sim(item, self.tree.items(c).tolist()) for c in children])
        return self._known[item, node]

    def search(
        self, item: int, delta: Callable[[int], float], rng: np.random.Generator, patience: int = 30
    ) -> list[int]:
        """The nodes of one search: down to a leaf cluster, up where all below was seen, until the item is found."""
        tree, node, clicks = self.tree, self.tree.root, []
        gone: set[int] = set()
        while len(clicks) < patience:
            children = [int(c) for c in tree.children(node)]
            open_ = [k for k, c in enumerate(children) if c not in gone]
            if not open_:
                if node in tree.path(item) and tree.is_leaf[node]:
                    break
                gone.add(node)
                if node == tree.root:
                    break
                node = int(tree.parent[node])
                clicks.append(node)
                continue
            sims = self.similarities(item, node)[open_]
            weights = np.exp((sims - sims.max()) / delta(int(tree.levels[node])))
            at = int(rng.choice(len(open_), p=weights / weights.sum()))
            if len(open_) > 1:
                sizes = tree.sizes[np.array(children)[open_]].astype(float)
                self.flat.append((int(tree.levels[node]), sims, sizes, at))
            node = children[open_[at]]
            clicks.append(node)
        return clicks

    def rows(
        self, delta: Callable[[int], float], per_item: int, seed: int, items: Any = None
    ) -> list[tuple[int, int, int, int]]:
        """A long table: searcher, item, step, node; the flat choices are kept anew."""
        rng, self.flat = np.random.default_rng(seed), []
        table = []
        for item in range(self.tree.n_items) if items is None else items:
            for person in range(per_item):
                clicks = self.search(item, delta, rng)
                table += [(person, item, step, node) for step, node in enumerate(clicks)]
        return table
