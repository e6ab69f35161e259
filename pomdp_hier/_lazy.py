"""Names that are imported when they are first used, so that ``import pomdp_hier`` costs next to nothing.

pomdp-py alone takes a second to import; somebody who only scores a hierarchy, or asks the command line for help, should
not wait for it. (PEP 562)
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["attach"]


def attach(
    package: str, homes: Mapping[str, str], namespace: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module-level ``__getattr__`` and ``__dir__`` of a package whose names live in other modules.

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
