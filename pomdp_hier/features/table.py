"""`FeatureTable`: a matrix of features with the names of its rows and columns."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["FeatureTable"]


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """What a feature file holds.

    Attributes:
        matrix: One row an item, dense or CSR, [N, D].
        ids: The id of each row if the file has an id column.
        columns: The names of the columns if the file has them.
        source: What error texts call it.
    """

    matrix: "NDArray[np.generic] | csr_array"
    ids: tuple[Hashable, ...] | None = None
    columns: tuple[str, ...] | None = None
    source: str = "the features"
