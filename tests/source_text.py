"""The texts of the package's source, read in one pass for all tests of its language."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass
class Source:
    """The texts of one file, each with its line."""

    path: str
    docstrings: list[tuple[int, str]] = field(default_factory=list)
    prose: list[tuple[int, str]] = field(default_factory=list)  # strings of three words or more
    errors: list[tuple[int, str, str]] = field(default_factory=list)  # line, class and message, {} for a variable
    rounded: list[tuple[int, str]] = field(default_factory=list)  # formats with a number of decimals
    shown_whole: list[int] = field(default_factory=list)  # !r outside __repr__


@cache
def sources() -> list[Source]:
    """Return the texts of all files of the package."""
    return [read(path.read_text(), str(path.relative_to(ROOT))) for path in sorted((ROOT / "pomdp_hier").rglob("*.py"))]


def read(text: str, path: str = "") -> Source:
    """Return the texts of a file."""
    found, own = Source(path), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            found.docstrings.append((getattr(node, "lineno", 1), ast.get_docstring(node) or ""))
            if getattr(node, "name", None) == "__repr__":
                own |= {id(part) for part in ast.walk(node)}
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and node.value.count(" ") >= 2:
                found.prose.append((node.lineno, node.value))
        elif isinstance(node, ast.FormattedValue):
            format_spec = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
            spec = "".join(str(part.value) for part in format_spec if isinstance(part, ast.Constant))
            if spec.endswith(("f", "%")):
                found.rounded.append((node.lineno, spec))
            if node.conversion == ord("r") and id(node) not in own:
                found.shown_whole.append(node.lineno)
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "id", "")
            if name.endswith(("Error", "Warning")):
                found.errors += [(node.lineno, name, text) for text in wordings(node.args)]
    return found


def wordings(parts: list[ast.expr]) -> Iterator[str]:
    """Yield the literal text of a message in each of its cases, with {} for what is known at run time alone."""
    return map("".join, product(*map(_cases, parts)))


def _cases(part: ast.expr) -> list[str]:
    if isinstance(part, ast.Constant):
        return [str(part.value)]
    if isinstance(part, ast.JoinedStr):
        return list(wordings(part.values))
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.IfExp):
        return _cases(part.value)
    if isinstance(part, ast.IfExp):
        return _cases(part.body) + _cases(part.orelse)
    if isinstance(part, ast.Call) and getattr(part.func, "id", None) == "PythonAdvice":
        return _cases(part.args[0])
    return ["{}"]
