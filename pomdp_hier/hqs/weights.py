"""Checks of the weights of items in a mean over searches, such as traffic or sales."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pomdp_hier._arguments import unexpected
from pomdp_hier._arrays import Floats, Ints, as_floats
from pomdp_hier._text import brief
from pomdp_hier.errors import Argument, ParameterError
from pomdp_hier.features.items import match_ids
from pomdp_hier.hierarchy.flat import FlatTree

Weights: TypeAlias = Sequence[float] | Floats | Mapping[Any, float]
"""One number per feature row, or numbers by the ids of the items."""

_ADVICE = " Give every item a number of searches, 0 for an item that nobody looks for."


def check_weights(sample_weight: Any, hierarchy: FlatTree, rows: Ints | None = None) -> Floats | None:
    """Return the weight of each item ``[N]``; None without weights, and for equal ones, which change nothing.

    Args:
        sample_weight: One number per feature row, a mapping from the ids of the items to numbers, or None.
        hierarchy: The tree over the items.
        rows: The feature row of each item ``[N]``, where rows were joined to items by id.

    Raises:
        ParameterError: There is not one weight per row, a weight is negative or not finite, all weights are 0, or ids
            are missing or unknown.

    Example:
        >>> from pomdp_hier import Hierarchy
        >>> tree = Hierarchy.from_paths({"boots": "shoes", "parka": "coats"})
        >>> check_weights({"parka": 3, "boots": 1}, tree)
        array([1., 3.])
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Mapping):
        match = match_ids(list(sample_weight), hierarchy.item_labels)
        if faults := [fault.replace("feature row", "weight") for fault in match.faults()]:
            raise ParameterError(
                Argument("sample_weight"), f": got {'; '.join(faults)}; expected one weight per item.{_ADVICE}"
            )
        values, rows = list(sample_weight.values()), match.rows
    else:
        values = sample_weight
    n_rows = hierarchy.n_items if rows is None else int(rows.max()) + 1
    weights = _as_numbers(values, n_rows)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        place = _place(int(wrong[0]), hierarchy, rows, isinstance(sample_weight, Mapping))
        raise ParameterError(
            Argument("sample_weight"),
            f": got {weights[wrong[0]]} in {place}; expected a finite number of at least 0.{_ADVICE}",
        )
    if not weights.any():
        raise unexpected("sample_weight", "zeros", "at least one weight above 0", _ADVICE)
    weights = weights if rows is None else weights[rows]
    return None if (weights == weights[0]).all() else weights


def _place(row: int, hierarchy: FlatTree, rows: Ints | None, by_id: bool) -> str:
    """Return where a weight is: its row, or its item, or both where rows were joined to items."""
    item = row if rows is None else int(np.flatnonzero(rows == row)[0])
    if hierarchy.labels is None:
        return f"row {row}" if not by_id else f"item {item}"
    name = f"item {brief(hierarchy.labels[item])}"
    return name if rows is None or by_id else f"row {row} ({name})"


def _as_numbers(values: Any, n_rows: int) -> Floats:
    """Return the values as a new array of floats ``[n_rows]``.

    Raises:
        ParameterError: They are not numbers, or another number of them.
    """
    if isinstance(values, range) and len(values) != n_rows:  # which may be longer than memory
        values = ()
    try:
        weights = as_floats(values).copy()
    except (TypeError, ValueError, OverflowError):
        raise unexpected("sample_weight", values, f"{n_rows} numbers, one per item", _ADVICE) from None
    if weights.shape != (n_rows,):
        raise ParameterError(
            Argument("sample_weight"),
            f": got an array of shape {weights.shape}; expected ({n_rows},), one number per item.",
            _ADVICE,
        )
    return weights
