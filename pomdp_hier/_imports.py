"""Imports of public names, of optional extras, and of compiled (numba) loops, when they are used.

Starting compiled loops costs CPU seconds that numpy does not need. These are `LOADING`, once per process, and the
compilation of each function that is not in numba's cache on disk, as in a fresh install. On large tasks compiled code
is about twice as fast as numpy (1.3 to 3.9 times, more on deep trees). So it pays where numpy takes twice the time to
start.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from hashlib import sha1
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from pomdp_hier._text import brief
from pomdp_hier.errors import MissingExtraError


def attach(
    package: str, homes: Mapping[str, str], namespace: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module-level ``__getattr__`` and ``__dir__`` of a package with lazy names.

    A module of the package with one of these names does not take the name's place when it is imported.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:  # noqa: N807  # the name that PEP 562 asks for
        if name not in home:
            raise AttributeError(
                f"module '{package}' has no attribute '{name}'", name=name, obj=sys.modules.get(package)
            )
        namespace[name] = value = getattr(import_module(home[name]), name)
        return value

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if name not in home or not isinstance(value, ModuleType):
                super().__setattr__(name, value)

    if package in sys.modules:
        sys.modules[package].__class__ = Package

    def __dir__() -> list[str]:  # noqa: N807  # the name that PEP 562 asks for
        return sorted({*namespace, *home})

    return __getattr__, __dir__


def from_extra(extra: str, module: str, why: str) -> Any:
    """Return a module of an optional extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{why}. Install it: pip install 'pomdp-hier[{extra}]'") from error


def as_frame(columns: Mapping[str, Any], backend: str) -> Any:
    """Return columns as a data frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"``."""
    try:
        import narwhals as nw

        return nw.from_dict(dict(columns), backend=backend).to_native()  # type: ignore[arg-type]
    except ImportError as error:
        raise MissingExtraError(
            f"to_frame({brief(backend)}) needs narwhals and {backend}. Install it: pip install 'pomdp-hier[frames]'"
        ) from error


Function = TypeVar("Function", bound=Callable[..., Any])

LOADING = 0.35
"""CPU seconds to import numba and to load compiled code from its cache."""


def is_installed() -> bool:
    """Return whether numba is installed, without importing it."""
    return importlib.util.find_spec("numba") is not None


def price(source: Path, compilation: Mapping[str, float]) -> float:
    """Return the CPU seconds of numpy's work above which compiled functions are faster.

    Example:
        >>> price(Path("loops.py"), {"add": 1.0})
        2.7
    """
    return 2 * (LOADING + sum(seconds for name, seconds in compilation.items() if not is_cached(source, name)))


def pays(numpy_seconds: float, source: Path, compilation: Mapping[str, float]) -> bool:
    """Return whether compiled functions, with start-up time, are estimated to be faster than numpy."""
    return numpy_seconds > 2 * LOADING and is_installed() and numpy_seconds > price(source, compilation)


def is_cached(source: Path, name: str) -> bool:
    """Return whether numba's cache has an up-to-date function of this file.

    The cache is looked up without numba, whose import is what a small task should not pay for. Where numba keeps it in
    another place than usual, the answer is no.
    """
    folder = source.absolute().parent
    hashed = f"{folder.name}_{sha1(str(folder).encode(), usedforsecurity=False).hexdigest()}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba" / hashed
    places = [Path(chosen, hashed)] if chosen else [folder / "__pycache__", users]
    pattern = f"{source.stem}.{name}-*.py{sys.version_info[0]}{sys.version_info[1]}*.nbi"
    try:
        changed = source.stat().st_mtime
        return any(index.stat().st_mtime >= changed for place in places for index in place.glob(pattern))
    except OSError:  # no such file, or none that may be read
        return False


def compiling(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function without the GIL and caches the code on disk where possible.

    Numba is imported here: only modules that need it call this.
    """
    import numba

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
        except RuntimeError:  # no directory to keep the code in
            return cast(Function, numba.njit(nogil=True, error_model="numpy", **options)(function))

    return decorate
