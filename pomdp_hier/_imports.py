"""Imports of public names, of optional extras, and of compiled (numba) loops, when they are used.

Starting compiled loops costs CPU seconds that numpy does not need. These are `LOADING`, once per process, and the
compilation of each function that is not in numba's cache on disk, as in a fresh install. On large tasks compiled code
is about twice as fast as numpy (1.3 to 3.9 times, more on deep trees). So it pays where numpy takes twice the time to
start.
"""

import gc
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import sha1
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import Lock, get_ident
from types import ModuleType
from typing import Any, TypeVar, cast

from pomdp_hier._text import brief
from pomdp_hier.errors import MissingExtraError


class _Uncollected:
    """A block in which the garbage collector is off: imports create very many objects, and hardly any garbage.

    Blocks may be nested and run in several threads; the last one to end turns the collector on again, if it was on.
    """

    def __init__(self) -> None:
        self.lock, self.depth, self.was_on = Lock(), 0, False

    def __enter__(self) -> None:
        with self.lock:
            self.depth += 1
            if gc.isenabled():
                self.was_on = True
                gc.disable()

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0 and self.was_on:
                self.was_on = False
                if gc.get_freeze_count() == 0:
                    gc.freeze()  # the new objects, and all others,
                    gc.unfreeze()  # into the oldest generation, unvisited
                gc.enable()


uncollected = _Uncollected()


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
        with uncollected:
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


class _Postponing:
    """A finder and loader of a package: while its ``__init__`` runs, some of its modules are stand-ins.

    The locks of the import system hold: another thread that imports the package waits. One that finds a stand-in gets
    the names of the module, once the package is complete.
    """

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self.package, self.homes = package, homes
        self.loader: Any = None
        self.thread = 0

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in self.homes and self.thread == get_ident():
            return ModuleSpec(name, cast(Any, self))
        spec = PathFinder.find_spec(name) if name == self.package else None
        if spec is not None:
            self.loader, spec.loader = spec.loader, cast(Any, self)
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ != self.package:
            module.__getattr__ = partial(self._of_stand_in, module.__name__)  # type: ignore[method-assign]
            return
        module.__loader__ = cast(ModuleSpec, module.__spec__).loader = self.loader
        self.thread = get_ident()
        try:
            self.loader.exec_module(module)
        finally:
            self.thread = 0
            for name, names in self.homes.items():
                sys.modules.pop(name, None)
                for key in names.split():
                    vars(module).pop(key, None)
        public = [key for key in (*vars(module), *" ".join(self.homes.values()).split()) if not key.startswith("_")]
        vars(module).setdefault("__all__", public)
        get, listed = attach(self.package, self.homes, vars(module))
        vars(module).update({"__getattr__": get, "__dir__": listed})

    def _of_stand_in(self, home: str, name: str) -> Any:
        if self.thread != get_ident():
            import_module(self.package)
            return getattr(import_module(home), name)
        if name in self.homes[home].split():
            return None
        raise AttributeError(name)


def postpone(package: str, homes: Mapping[str, str]) -> None:
    """Import a package, and some of its modules only when a name of them is first used.

    Nothing happens if the package is imported already.

    Args:
        package: The package, whose ``__init__`` imports names from these modules and does not use them.
        homes: The names that it imports from each module, with spaces between.

    Example:
        >>> postpone("pomdp_py", {"pomdp_py.representations.distribution.gaussian": "Gaussian"})
        >>> import pomdp_py
        >>> pomdp_py.Gaussian.__name__
        'Gaussian'
    """
    finder = _Postponing(package, homes)
    sys.meta_path.insert(0, cast(Any, finder))
    try:
        import_module(package)
    finally:
        sys.meta_path.remove(cast(Any, finder))


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


@cache
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
    with uncollected:
        import numba

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
        except RuntimeError:  # no directory to keep the code in
            return cast(Function, numba.njit(nogil=True, error_model="numpy", **options)(function))

    return decorate
