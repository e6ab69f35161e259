"""scikit-learn's AgglomerativeClustering and what has its ``children_`` and ``n_leaves_``."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pomdp_hier.errors import ReaderError
from pomdp_hier.hierarchy.readers.children import read_children
from pomdp_hier.hierarchy.readers.plain import PlainTree

__all__ = ["read_sklearn"]


def read_sklearn(model: Any, *, labels: Sequence[Hashable] | None = None, add_root: bool = False) -> PlainTree:
    """Return the plain tree of a fitted model; a partial one (``compute_full_tree=False``) has several roots."""
    children, n_leaves = getattr(model, "children_", None), getattr(model, "n_leaves_", None)
    if children is None or n_leaves is None:
        raise ReaderError(
            f"{type(model).__name__} has no children_ and n_leaves_: give a fitted AgglomerativeClustering "
            "or FeatureAgglomeration"
        )
    return read_children(np.asarray(children), int(n_leaves), labels=labels, add_root=add_root)
