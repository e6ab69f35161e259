"""Compiled (numba) passes over dense features, without a float64 copy of the rows.

Additions are in the order of numpy in :mod:`~pomdp_hier.features.membership` and
:mod:`~pomdp_hier.features.dense`, without fastmath, so that both give the same bits. Importing this module needs numba.
"""

from typing import Any

import numpy as np

from pomdp_hier._imports import compiling


@compiling()
def measure_rows(features: Any, largest: Any, lengths: Any) -> None:
    """Write each row's largest absolute value m (1 for a zero row), and the row's Euclidean norm over m."""
    n_columns = features.shape[1]
    squares = np.empty(n_columns)
    for item in range(features.shape[0]):
        most = 0.0
        for d in range(n_columns):
            most = max(most, abs(np.float64(features[item, d])))
        most = most if most > 0.0 else 1.0
        for d in range(n_columns):
            value = features[item, d] / most
            squares[d] = value * value
        width = n_columns
        while width > 1:
            half = (width + 1) // 2
            for d in range(width - half):
                squares[d] += squares[half + d]
            width = half
        largest[item], lengths[item] = most, np.sqrt(squares[0])


@compiling()
def add_clusters(
    features: Any,
    largest: Any,
    lengths: Any,
    centre: Any,
    cosine: bool,
    order: Any,
    child_offsets: Any,
    child_nodes: Any,
    item_order: Any,
    starts: Any,
    sizes: Any,
    run: int,
    sums: Any,
) -> None:
    """Add to ``sums`` ``[K, D]`` the prepared rows of each internal node's items, children before parents."""
    n_items, n_columns = features.shape
    part = np.empty(n_columns)
    for place in range(len(order) - 1, -1, -1):
        node = order[place]
        if node < n_items:
            continue
        k = node - n_items
        low, high = child_offsets[node], child_offsets[node + 1]
        leaf = low == high
        if leaf:
            low, high = starts[node], starts[node] + sizes[node]
        held, clusters = 0, 0
        for at in range(low, high):
            member = item_order[at] if leaf else child_nodes[at]
            if member >= n_items:
                clusters += 1
                continue
            if held == run:
                for d in range(n_columns):
                    sums[k, d] += part[d]
                held = 0
            if held == 0:
                part[:] = 0.0
            held += 1
            if cosine:
                most, length = largest[member], lengths[member]
                for d in range(n_columns):
                    part[d] += features[member, d] / most / length
            else:
                for d in range(n_columns):
                    part[d] += features[member, d] - centre[d]
        if held > 0:
            for d in range(n_columns):
                sums[k, d] += part[d]
        if clusters > 0:
            part[:] = 0.0
            for at in range(low, high):
                member = child_nodes[at]
                if member >= n_items:
                    for d in range(n_columns):
                        part[d] += sums[member - n_items, d]
            for d in range(n_columns):
                sums[k, d] += part[d]
