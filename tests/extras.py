"""Optional packages for tests: a test that uses one which is not installed is skipped (see ``conftest.py``)."""

from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["optional"]


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
