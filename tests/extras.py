"""Optional packages, whose tests are skipped where they are not installed (see ``conftest.py``), and slow cases."""

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

__all__ = ["ENGINES", "INSTALLED_ENGINES", "few", "optional"]

INSTALLED_ENGINES = ["numpy", *(["numba"] if find_spec("numba") else [])]

# Skipped before they begin: hypothesis would look for a simpler example of the error that an extra is missing.
_needs_numba = pytest.mark.skipif("numba" not in INSTALLED_ENGINES, reason="needs numba")
ENGINES = ["numpy", pytest.param("numba", marks=_needs_numba)]


def few(n: int, cases: Iterable[Any]) -> list[Any]:
    """Return cases of a table of which those after the first ``n`` wait for the slow tests."""
    return [pytest.param(case, marks=pytest.mark.slow) if k >= n else case for k, case in enumerate(cases)]


class _Missing(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked of every name in a module, by whoever looks for tests
            raise AttributeError(name)
        raise ModuleNotFoundError(f"needs {self.__name__}", name=self.__name__.partition(".")[0])


def optional(name: str) -> Any:
    """Return a module, or what raises ModuleNotFoundError when it is used."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return _Missing(name)
