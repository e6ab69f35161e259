"""Lazy imports of public names, and of optional extras."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pomdp_hier.errors import MissingExtraError


def attach(
    package: str, homes: Mapping[str, str], namespace: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module-level ``__getattr__`` and ``__dir__`` of a package with lazy names.

    Args:
        package: The package's ``__name__``.
        homes: The names that each module has, with spaces between.
        namespace: The package's ``globals()``, where a name is kept once it was asked for.

    Example:
        >>> get, names = attach("demo", {"math": "floor sqrt"}, {})
        >>> get("sqrt")(9.0), names()
        (3.0, ['floor', 'sqrt'])
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:  # noqa: N807  # the name that PEP 562 asks for
        if name not in home:
            raise AttributeError(
                f"module '{package}' has no attribute '{name}'", name=name, obj=sys.modules.get(package)
            )
        namespace[name] = value = getattr(import_module(home[name]), name)
        return value

    def __dir__() -> list[str]:  # noqa: N807  # the name that PEP 562 asks for
        return sorted({*namespace, *home})

    return __getattr__, __dir__


def from_extra(extra: str, module: str, why: str) -> Any:
    """Return a module of an optional extra.

    Args:
        extra: The extra's name.
        module: The module's name, with dots.
        why: What needs which package, as the first half of a sentence.

    Raises:
        MissingExtraError: It is not installed; the message says why it is needed and how to install it.

    Example:
        >>> from_extra("none", "math", "roots need math").sqrt(9.0)
        3.0
        >>> from_extra("none", "no_such_module", "roots need no_such_module")
        Traceback (most recent call last):
            ...
        pomdp_hier.errors.MissingExtraError: roots need no_such_module. Install it: pip install 'pomdp-hier[none]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{why}. Install it: pip install 'pomdp-hier[{extra}]'") from error
