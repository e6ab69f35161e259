"""Duplicates: items with equal rows of features, or equal keys of the user."""

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arrays import Bools, Ints
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.affinity import Affinity
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.hierarchy.arrays import as_ids
from pomdp_hier.hierarchy.tree import Hierarchy


class Duplicates:
    """The clusters that contain a duplicate of an item."""

    def __init__(self, hierarchy: Hierarchy, keys: Sequence[Hashable] | None) -> None:
        self._tree, n_items = hierarchy, hierarchy.n_items
        self._group = np.arange(n_items)
        if keys is not None:
            keys = as_ids("duplicates", list(keys) if isinstance(keys, str) else keys)
            if len(keys) != n_items:
                raise ParameterError(f"duplicates: got {len(keys)} keys; expected {n_items}, one per item.")
            number: dict[Hashable, int] = {}
            self._group = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
        self._places = np.sort(self._group * n_items + hierarchy.starts[:n_items])

    def inside(self, items: Ints, nodes: Ints) -> Bools:
        """Return whether each node contains the item or a duplicate ``[m]``."""
        first = self._group[items] * self._tree.n_items + self._tree.starts[nodes]
        last = np.searchsorted(self._places, first + self._tree.sizes[nodes])
        found: Bools = np.searchsorted(self._places, first) < last
        return found


def row_keys(features: ItemFeatures | Affinity) -> list[bytes] | None:
    """Return one key per row, equal exactly for equal rows; None without rows of features."""
    if not isinstance(features, ItemFeatures) or features.precomputed:
        return None
    if sp.issparse(features.table):
        table = features.table.tocsr(copy=True)
        table.eliminate_zeros()
        rows = (
            table.indices[low:high].tobytes() + table.data[low:high].tobytes()
            for low, high in pairwise(table.indptr.tolist())
        )
    else:
        rows = ((row + 0.0).tobytes() for row in features.table)  # adding 0.0 makes -0.0 and 0.0 the same bytes
    return [blake2b(row, digest_size=16).digest() for row in rows]
