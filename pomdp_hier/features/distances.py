"""Distances given where similarities are due: the mistake that turns every search around without an error."""

import numpy as np
import scipy.sparse as sp

from pomdp_hier.errors import DataWarning
from pomdp_hier.features.validation import Features
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hierarchy.wording import warn_user

__all__ = ["warn_of_distances"]

_MOST_ITEMS = 64  # how many items are looked at
_ROUNDINGS = 4  # how many of them still count as 0
_MOST_APART = 0.9  # the least share of pairs above 0: distances are 0 between equals only, similarities often


def warn_of_distances(matrix: Features, hierarchy: Hierarchy) -> None:
    """Warns if a precomputed matrix looks like distances: 0 to itself, and more to other branches than within one.

    What differs from 0 by rounding, for the matrix's type and the size of its entries, counts as 0.

    Args:
        matrix: ``[N, N]``; up to 64 items of it are looked at.
        hierarchy: The tree, whose branches below the root are compared.

    Example:
        >>> warn_of_distances(np.eye(3), Hierarchy.from_children([[0, 1], [3, 2]], 3))
    """
    items = np.unique(np.linspace(0, hierarchy.n_items - 1, _MOST_ITEMS).astype(np.int64))
    square = matrix[items][:, items]
    square = square.toarray() if sp.issparse(square) else np.asarray(square)
    others = ~np.eye(len(items), dtype=bool)
    # A root of a difference of squares errs by the root of a rounding, of the type that it was computed in.
    kind = square.dtype if square.dtype.kind == "f" else np.dtype(np.float64)
    nothing = _ROUNDINGS * float(np.sqrt(np.finfo(kind).eps)) * float(np.abs(square).max(initial=0.0))
    if len(hierarchy.children(hierarchy.root)) < 2 or not (np.abs(square.diagonal()) <= nothing).all():
        return
    if not (square >= -nothing).all() or (square[others] > nothing).mean() < _MOST_APART:
        return
    branches = hierarchy.starts[hierarchy.children(hierarchy.root)]
    branch = np.searchsorted(branches, hierarchy.starts[items], side="right")
    apart = branch[:, None] != branch
    together = ~apart & others
    if apart.any() and together.any() and square[together].mean() < square[apart].mean():
        note = (
            "the precomputed matrix looks like distances, not similarities: its diagonal is 0, and items of one branch "
            "have smaller entries than others; give 1 - D or -D for distances D, or the features"
        )
        warn_user([note], DataWarning)
