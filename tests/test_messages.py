import ast
from pathlib import Path

import pytest

import pomdp_hier
from pomdp_hier._text import brief, listed


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class Mute:
    def __repr__(self):
        raise RuntimeError("no words")


LONG = {
    "list": list(range(10**6)),
    "text": "x" * 10**6,
    "deep": nested(10**5),
    "integer": 10**10_000,
    "dict": dict.fromkeys(range(99), "y" * 99),
    "mute": Mute(),
}


@pytest.mark.parametrize("kind", LONG)
def test_no_value_takes_more_than_a_few_characters(kind):
    value = LONG[kind]
    assert 0 < len(brief(value)) <= 60
    assert brief(value, 30) == brief(value, 30)[:30]


def test_a_short_value_is_shown_whole():
    for value in ("tiger-left", (0, 1, (2, 3)), {"a": [1.5, None]}, frozenset({1}), True):
        assert brief(value) == repr(value)


def test_a_list_says_how_many_there_are():
    assert listed("abcdef", limit=2) == "'a', 'b', ... (6 in all)"
    assert listed(iter(range(10**9)), count=10**9, limit=1) == "0, ... (1,000,000,000 in all)"
    assert listed([1, 2]) == "1, 2"


def rounded_fields(source):
    """Where a number is rounded to so many decimals in an f-string, and its format."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = "".join(part.value if isinstance(part, ast.Constant) else "" for part in node.format_spec.values)
            if spec.endswith(("f", "%")):
                yield node.lineno, spec


def test_what_rounds_to_zero_has_no_minus_sign():
    assert f"{-0.00004:z.4f} {-0.00004:+z.4f} {-0.00004:>+z9.4f}" == "0.0000 +0.0000   +0.0000"
    for path in Path(pomdp_hier.__file__).parent.rglob("*.py"):
        signed = [(line, spec) for line, spec in rounded_fields(path.read_text()) if "z" not in spec]
        assert not signed, f"{path}: write z after the sign, as in :+z.4f, for a rounded number has no negative zero"


def whole_values(source):
    """Where an error or a warning shows a value by its repr, which may be long, too deep, or raise itself."""
    if "!r" not in source:
        return
    tree = ast.parse(source)
    own = {id(part) for node in ast.walk(tree) if getattr(node, "name", None) == "__repr__" for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.conversion == ord("r") and id(node) not in own:
            yield node.lineno


def test_values_in_messages_are_in_brief():
    assert list(whole_values("f'{a!r}'")) == [1]
    package = Path(pomdp_hier.__file__).parent
    for path in package.rglob("*.py"):
        lines = list(whole_values(path.read_text()))
        assert not lines, f"{path.relative_to(package)}, lines {lines}: write brief(value) for value!r"
