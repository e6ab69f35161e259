"""The names of the array types, and numbers as arrays of these types."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


def as_floats(values: Any) -> Floats:
    """Return real numbers as an array in float64; text that looks like a number is not one.

    Example:
        >>> as_floats([1, 2]).tolist()
        [1.0, 2.0]
        >>> as_floats([1, "2"])
        Traceback (most recent call last):
        TypeError: text, which is not a number
    """
    array = np.asarray(values)
    if array.dtype.kind in "USTc" or (array.dtype == object and any(isinstance(v, str | bytes) for v in array.flat)):
        raise TypeError("complex numbers" if array.dtype.kind == "c" else "text, which is not a number")
    if array.dtype.kind not in "biufO":
        raise TypeError(f"{array.dtype}, which are not numbers")
    return array.astype(np.float64, copy=False)


def as_integers(values: Any) -> Ints:
    """Return integers as an array in int64.

    Example:
        >>> as_integers([[0, 1]]).tolist()
        [[0, 1]]
        >>> as_integers([0.5])
        Traceback (most recent call last):
        TypeError: float64, which are not integers
    """
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{array.dtype}, which are not integers")
    return array.astype(np.int64, copy=False)
