"""Whether the BLAS at hand multiplies to bits that do not depend on the shape of the matrices."""

import numpy as np
import pytest


def _depends_on_shape() -> bool:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((64, 37)), rng.standard_normal((48, 37))
    left = np.asfortranarray(left)
    whole = left @ right.T
    return any(
        not np.array_equal(np.asfortranarray(left[:high]) @ right[low:wide].T, whole[:high, low:wide])
        for high in range(2, 64, 2)
        for low in (0, 2)
        for wide in range(low + 2, 48, 2)
    )


needs_even_products = pytest.mark.skipif(
    _depends_on_shape(), reason="this BLAS adds up in another order where a matrix has another shape"
)
"""For bits that numpy's engine promises where BLAS keeps to one order, as OpenBLAS does with AVX, AVX2 and AVX-512."""
