"""An AND-OR tree as JSON and back: names, exact numbers and expressions survive, and nothing is ever evaluated."""

import json
import math
from collections.abc import Iterable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np

from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.and_or.nodes import AndNode, Nodes, OrNode
from pomdp_hier.pomdp import Belief
from pomdp_hier.pomdp.numeric import brief

__all__ = ["read_json", "write_json"]

_FORMAT = "pomdp_hier.AndOrTree"
_FUNCTIONS = ("Add", "Mul", "Pow", "Max")


def write_json(tree: Nodes) -> str:
    """Return the tree as a JSON text; see `AndOrTree.to_json`."""
    or_fields = [f.name for f in fields(OrNode) if f.name != "belief"]
    and_fields = [f.name for f in fields(AndNode)]
    document = {
        "format": _FORMAT,
        "version": 1,
        "discount": _plain(tree.discount),
        "or_nodes": [
            {"belief": [[_plain(s), _plain(p)] for s, p in node.belief.items()]}
            | {name: _plain(getattr(node, name)) for name in or_fields}
            for node in tree.or_nodes
        ],
        "and_nodes": [{name: _plain(getattr(node, name)) for name in and_fields} for node in tree.and_nodes],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def read_json(text: str, names: Iterable[Any]) -> tuple[list[OrNode], list[AndNode], Any]:
    """Return the OR nodes, AND nodes and discount of a JSON text.

    Raises:
        ParameterError: The text is not what `write_json` writes.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParameterError(f"from_json: the text is not JSON ({error}); expected what to_json wrote") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT or document.get("version") != 1:
        raise ParameterError(
            f"from_json: {brief(text)} is not an AND-OR tree of version 1; expected what to_json wrote"
        )
    known = {str(name): name for name in names}
    try:
        or_nodes = []
        for record in document["or_nodes"]:
            values = {name: _value(v, known) for name, v in record.items() if name != "belief"}
            belief = Belief({_value(s, known): _value(p, known) for s, p in record["belief"]})
            or_nodes.append(OrNode(belief, **values))
        and_nodes = [
            AndNode(**{name: _value(v, known) for name, v in record.items()}) for record in document["and_nodes"]
        ]
        return or_nodes, and_nodes, _value(document["discount"], known)
    except (KeyError, TypeError, AttributeError) as error:
        raise ParameterError(f"from_json: a record of the tree is incomplete or malformed ({error!r})") from error


def _plain(value: Any) -> Any:
    """Return the value in JSON's own types; what JSON lacks becomes an object of one entry that says what it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [_plain(v) for v in value]}
    if hasattr(value, "free_symbols"):
        return {"expression": _expression(value)}
    return {"name": str(value)}


def _expression(value: Any) -> Any:
    kind = type(value).__name__
    if kind in _FUNCTIONS:
        return [kind, *(_expression(v) for v in value.args)]
    if value.is_Symbol:
        assumptions = {k: v for k, v in value._assumptions_orig.items() if isinstance(v, bool)}
        return {"symbol": value.name, "assumptions": assumptions}
    if value.is_Rational:
        return {"rational": [int(value.p), int(value.q)]}
    if value.is_Float:
        return {"float": str(value)}
    raise ParameterError(f"to_json: the expression {brief(value)} holds a {kind}; expected sums, products, powers, Max")


def _value(value: Any, known: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_value(v, known) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(_value(v, known) for v in content)
    if kind == "fraction":
        return Fraction(*content)
    if kind == "float":
        return float(content)
    if kind == "expression":
        return _parsed(content)
    return known.get(content, content)


def _parsed(content: Any) -> Any:
    import sympy

    if isinstance(content, list):
        if content[0] not in _FUNCTIONS:
            raise ParameterError(f"from_json: {brief(content[0])} is none of {', '.join(_FUNCTIONS)}")
        return getattr(sympy, content[0])(*(_parsed(v) for v in content[1:]))
    if "symbol" in content:
        return sympy.Symbol(content["symbol"], **content["assumptions"])
    if "rational" in content:
        return sympy.Rational(*content["rational"])
    return sympy.Float(content["float"])
