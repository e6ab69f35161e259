"""JSON nested deeper than the standard library's parser, which recurses, can go."""

import json
import re
from typing import Any, NoReturn

from pomdp_hier.errors import ReaderError

__all__ = ["not_json", "parse_deep_json", "refuse_constant"]

_SPACE = re.compile(r"[ \t\n\r]*")


def refuse_constant(constant: str) -> NoReturn:
    """Raise for NaN and the infinities, which Python reads though JSON has none."""
    raise ReaderError(f"the JSON holds {constant}, which is no id")


def not_json(text: str, what: str, position: int) -> ReaderError:
    """Return the error for text that breaks the grammar, with its place."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return ReaderError(
        f"not JSON: {what} at line {line}, column {column} (character {position} of {len(text)}); is the file cut off?"
    )


_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


def parse_deep_json(text: str) -> Any:
    """Return the value of JSON text, with the open lists and objects on a stack of its own.

    Example:
        >>> parse_deep_json('{"a": [1, {"b": null}], "c": "d"}')
        {'a': [1, {'b': None}], 'c': 'd'}
    """
    result: list[Any] = []
    stack: list[list[Any] | dict[str, Any]] = [result]
    keys: list[str] = []  # of the open objects
    position, wants = _after_space(text, 0), "value"
    while position < len(text) or wants == "value":
        mark = text[position : position + 1]
        top = stack[-1]
        if wants == "end" and len(stack) == 1:
            raise not_json(text, "Extra data", position)
        if wants in ("end", "first") and mark == ("}" if isinstance(top, dict) else "]"):
            stack.pop()
            position, wants = position + 1, "end"
        elif wants == "end":
            if mark != ",":
                raise not_json(text, "Expecting ',' delimiter", position)
            position, wants = position + 1, "value"
        else:
            if isinstance(top, dict):
                key, position = _key(text, position)
                keys.append(key)
                mark = text[position : position + 1]
            value, position, wants = _value(text, position, mark)
            if isinstance(top, dict):
                top[keys.pop()] = value
            else:
                top.append(value)
            if wants == "first":
                stack.append(value)
        position = _after_space(text, position)
    if len(stack) > 1:
        raise not_json(text, f"{len(stack) - 1} brackets still open", len(text))
    return result[0]


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _key(text: str, position: int) -> tuple[str, int]:
    """Return the key of an object's entry, and where its value starts."""
    if text[position : position + 1] != '"':
        raise not_json(text, "Expecting property name enclosed in double quotes", position)
    key, position = _scalar(text, position)
    position = _after_space(text, position)
    if text[position : position + 1] != ":":
        raise not_json(text, "Expecting ':' delimiter", position)
    return key, _after_space(text, position + 1)


def _scalar(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise not_json(text, error.msg, error.pos) from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise ReaderError(f"the JSON cannot be parsed: {error}") from None


def _value(text: str, position: int, mark: str) -> tuple[Any, int, str]:
    """Return a scalar, or an opened list or object; where it ends; and what comes next."""
    if mark == "[":
        return [], position + 1, "first"
    if mark == "{":
        return {}, position + 1, "first"
    return *_scalar(text, position), "end"
