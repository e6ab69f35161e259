"""How loops become machine code where numba is installed. Importing this module needs numba."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["machine_code"]

Function = TypeVar("Function", bound=Callable[..., Any])

_njit: Any = numba.njit


def machine_code(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function, without the GIL, and keeps the code on disk where that works."""

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, _njit(cache=True, nogil=True, error_model="numpy", **options)(function))
        except RuntimeError:  # no directory to keep the code in
            return cast(Function, _njit(nogil=True, error_model="numpy", **options)(function))

    return decorate
