"""An AND-OR tree as JSON and back: names, exact numbers and expressions survive.

Nothing of a file is ever evaluated: the reader takes the types that the writer writes, each where it belongs. Numbers
are JSON's own, pairs of integers, or numerals as text that `_numeral` reads; expressions are put together from these,
from symbols and from four operations.
"""

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np

from pomdp_hier._imports import from_extra
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.planning.and_or.nodes import AndNode, Nodes, OrNode
from pomdp_hier.pomdp import Belief
from pomdp_hier.pomdp.numeric import Number, is_nonnegative

_FORMAT = "pomdp_hier.AndOrTree"
_FUNCTIONS = ("Add", "Mul", "Pow", "Max")
_KINDS, _STATUSES = ("inner", "fringe", "over"), ("expanded", "pruned", "illegal")
_NUMERAL = re.compile(r"-?[0-9]{1,25}(\.[0-9]{1,25})?(e[+-]?[0-9]{1,4})?|-?inf|nan")
_LARGEST_EXPONENT = 1_000
_LONGEST_POWER = 100_000  # bits of a number that a power may become
_DOUBLE = 53  # bits of a float
_ASSUMPTIONS = {
    *("algebraic", "antihermitian", "commutative", "complex", "composite", "even", "extended_negative"),
    *("extended_nonnegative", "extended_nonpositive", "extended_nonzero", "extended_positive", "extended_real"),
    *("finite", "hermitian", "imaginary", "infinite", "integer", "irrational", "negative", "noninteger"),
    *("nonnegative", "nonpositive", "nonzero", "odd", "polar", "positive", "prime", "rational", "real"),
    *("transcendental", "zero"),
}


def write_json(tree: Nodes) -> str:
    """Return the tree as a JSON text; see `AndOrTree.to_json`."""
    try:
        document = {
            "format": _FORMAT,
            "version": 1,
            "discount": _plain(tree.discount),
            "or_nodes": [
                {"belief": [[_plain(s), _plain(p)] for s, p in node.belief.items()]}
                | {f.name: _plain(getattr(node, f.name)) for f in fields(OrNode) if f.name != "belief"}
                for node in tree.or_nodes
            ],
            "and_nodes": [{f.name: _plain(getattr(node, f.name)) for f in fields(AndNode)} for node in tree.and_nodes],
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False)
    except (
        ValueError,
        RecursionError,
    ) as error:  # an integer of more digits than Python writes, a tuple in a tuple in …
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"to_json: got a value that JSON cannot hold ({brief(str(error))}); expected shorter integers, and names "
            "with less nesting. Shorten the names, or round the numbers."
        ) from error


def read_json(text: str, names: Iterable[Any]) -> tuple[list[OrNode], list[AndNode], Any]:
    """Return the OR nodes, AND nodes and discount of a JSON text.

    Raises:
        ParameterError: The text is not what `write_json` writes.
    """
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
        if not isinstance(document, dict) or document.get("format") != _FORMAT or document.get("version") != 1:
            raise ParameterError(
                f"text: got {brief(text)}; expected an AND-OR tree of version 1, as written by to_json"
            )
        known = {str(name): name for name in names}
        or_nodes = [_or_node(*entry, known) for entry in enumerate(_list(document.get("or_nodes"), "or_nodes"))]
        and_nodes = [_and_node(*entry, known) for entry in enumerate(_list(document.get("and_nodes"), "and_nodes"))]
        discount = _number(document.get("discount"), "discount")
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, (ParameterError, ModelError)):
            raise
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ParameterError(f"text: got text that is not JSON ({why}); expected the output of to_json") from error
    _check_links(or_nodes, and_nodes)
    return or_nodes, and_nodes, discount


# --- writing -----------------------------------------------------------------------------------------------------


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
    if value.is_Float and value._prec == _DOUBLE:
        return {"float": repr(float(value))}
    raise ParameterError(
        f"to_json: got {brief(value)} with a {kind}; expected sums, products, powers and Max of symbols, rational "
        "numbers and floats of double precision"
    )


# --- reading -----------------------------------------------------------------------------------------------------


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError(f"an object lists an entry twice: {brief([name for name, _ in pairs])}")
    return entries


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} stands for a number")


def _refused(value: Any, where: str, expected: str) -> ParameterError:
    return ParameterError(f"text: got {brief(value)} in {where}; expected {expected}")


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or (where == "or_nodes" and not value):
        raise _refused(value, where, "a list" + (" of at least one node" if where == "or_nodes" else ""))
    return value


def _record(value: Any, where: str, names: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or sorted(value) != sorted(names):
        raise _refused(value if not isinstance(value, dict) else sorted(value), where, f"the entries {sorted(names)}")
    return value


def _or_node(position: int, record: Any, known: dict[str, Any]) -> OrNode:
    where = f"or_nodes[{position}]"
    entries = _record(record, where, [f.name for f in fields(OrNode)])
    pairs = _list(entries["belief"], f"{where}.belief")
    weights: dict[Hashable, Number] = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise _refused(pair, f"{where}.belief", "pairs of state and probability")
        weights[_name(pair[0], f"{where}.belief", known)] = _number(pair[1], f"{where}.belief")
    if len(weights) != len(pairs):
        raise _refused(pairs, f"{where}.belief", "every state once")
    probability = _number(entries["probability"], f"{where}.probability")
    if not is_nonnegative(probability):
        raise _refused(probability, f"{where}.probability", "a number of at least 0")
    return OrNode(
        Belief(weights),
        depth=_position(entries["depth"], f"{where}.depth"),
        observation=_name(entries["observation"], f"{where}.observation", known),
        probability=probability,
        parent=_position(entries["parent"], f"{where}.parent", least=-1),
        kind=_one_of(entries["kind"], f"{where}.kind", _KINDS),
        value=_number(entries["value"], f"{where}.value"),
        actions=_positions(entries["actions"], f"{where}.actions"),
        best=_positions(entries["best"], f"{where}.best"),
    )


def _and_node(position: int, record: Any, known: dict[str, Any]) -> AndNode:
    where = f"and_nodes[{position}]"
    entries = _record(record, where, [f.name for f in fields(AndNode)])
    why = entries["why"]
    if not isinstance(why, str):
        raise _refused(why, f"{where}.why", "a text")
    numbers = {
        name: None if entries[name] is None else _number(entries[name], f"{where}.{name}")
        for name in ("reward", "q", "upper")
    }
    return AndNode(
        _name(entries["action"], f"{where}.action", known),
        parent=_position(entries["parent"], f"{where}.parent"),
        status=_one_of(entries["status"], f"{where}.status", _STATUSES),
        why=why,
        outcomes=_positions(entries["outcomes"], f"{where}.outcomes"),
        **numbers,
    )


def _position(value: Any, where: str, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _refused(value, where, f"an integer, at least {least}")
    return value


def _positions(value: Any, where: str) -> list[int]:
    return [_position(entry, where) for entry in _list(value, where)]


def _one_of(value: Any, where: str, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise _refused(value, where, f"one of {', '.join(allowed)}")
    return value


def _tagged(value: Any, where: str) -> tuple[str, Any]:
    """Return kind and content of an object of one entry."""
    if not isinstance(value, dict) or len(value) != 1:
        raise _refused(value, where, "a value, or an object of one entry that says what it is")
    ((kind, content),) = value.items()
    return kind, content


def _name(value: Any, where: str, known: dict[str, Any]) -> Any:
    """Return a state, an action or an observation."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    kind, content = _tagged(value, where)
    if kind == "tuple":
        return tuple(_name(entry, where, known) for entry in _list(content, where))
    if kind == "name" and isinstance(content, str):
        return known.get(content, content)
    return _number(value, where)


def _number(value: Any, where: str) -> Number:
    if isinstance(value, (int, float)):
        return value
    kind, content = _tagged(value, where)
    if kind == "fraction":
        return Fraction(*_ratio(content, where))
    if kind == "float":
        return _numeral(content, where)
    if kind == "expression":
        return _parsed(content, where)
    raise _refused(value, where, "a number: JSON's own, a fraction, a float or an expression")


def _ratio(value: Any, where: str) -> tuple[int, int]:
    if (
        not isinstance(value, list)
        or len(value) != 2
        or any(isinstance(part, bool) or not isinstance(part, int) for part in value)
        or value[1] == 0
    ):
        raise _refused(value, where, "two integers, the second not 0")
    return value[0], value[1]


def _numeral(value: Any, where: str) -> float:
    """Return the float that a numeral of plain digits stands for: the one way from text to a number."""
    if not isinstance(value, str) or not _NUMERAL.fullmatch(value):
        raise _refused(value, where, "a numeral as text")
    return float(value)


def _parsed(value: Any, where: str) -> Any:
    """Return the expression; what sympy refuses (a maximum of numbers that are not real, say) is a `ValueError`."""
    sympy = from_extra("symbolic", "sympy", "from_json: expressions need sympy")
    if isinstance(value, list) and value:
        name, *rest = value
        if not isinstance(name, str) or name not in _FUNCTIONS:
            raise _refused(name, where, f"one of {', '.join(_FUNCTIONS)}")
        arguments = [_parsed(entry, where) for entry in rest]
        make: Callable[..., Any] = getattr(sympy, name)
        if name == "Pow":
            _check_power(arguments, value, where)
        if not arguments:
            raise _refused(value, where, "an operation with its arguments")
        result = make(*arguments)
        if result.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I):
            raise _refused(value, where, "an expression with a finite real value")
        return result
    entries = set(value) if isinstance(value, dict) else set()
    if entries == {"symbol", "assumptions"}:
        return _symbol(value["symbol"], value["assumptions"], where)
    if entries == {"rational"}:
        return sympy.Rational(*_ratio(value["rational"], where))
    if entries == {"float"}:
        return sympy.Float(_numeral(value["float"], where))
    raise _refused(value, where, "an expression: an operation, a symbol, a rational or a float")


def _check_power(arguments: list[Any], value: Any, where: str) -> None:
    """Refuse a power that would fill the memory when it is worked out."""
    if len(arguments) != 2:
        raise _refused(value, where, "base and exponent")
    base, exponent = arguments
    if not exponent.is_number:
        return
    coefficient = base.as_coeff_Mul()[0]
    bits = max(int(coefficient.p).bit_length(), int(coefficient.q).bit_length()) if coefficient.is_Rational else 0
    if not abs(exponent) <= _LARGEST_EXPONENT or bits * abs(exponent) > _LONGEST_POWER:
        raise _refused(value, where, f"exponents of at most {_LARGEST_EXPONENT}, of shorter numbers")


def _symbol(name: Any, assumptions: Any, where: str) -> Any:
    import sympy

    if (
        not isinstance(name, str)
        or not isinstance(assumptions, dict)
        or not all(isinstance(holds, bool) for holds in assumptions.values())
        or not set(assumptions) <= _ASSUMPTIONS
    ):
        raise _refused({name: assumptions}, where, "a symbol with assumptions of sympy's, each true or false")
    return sympy.Symbol(name, **assumptions)


def _check_links(or_nodes: list[OrNode], and_nodes: list[AndNode]) -> None:
    """Raise unless the nodes form one tree, every node after those above it, and each says what its kind says."""
    owner_of_and = _owners([node.actions for node in or_nodes], len(and_nodes), "or_nodes", "actions")
    owner_of_or = _owners([node.outcomes for node in and_nodes], len(or_nodes), "and_nodes", "outcomes")
    for i, node in enumerate(or_nodes):
        where = f"or_nodes[{i}]"
        if node.parent != owner_of_or.get(i, -1) or (node.parent < 0) != (i == 0):
            raise _refused(node.parent, f"{where}.parent", "the node whose outcomes it is among, -1 at the root alone")
        if i and and_nodes[node.parent].parent >= i:
            raise _refused(node.parent, f"{where}.parent", "a node that stands before it")
        expanded = {k for k in node.actions if and_nodes[k].status == "expanded"}
        if bool(node.actions) != (node.kind == "inner") or bool(expanded) != (node.kind == "inner"):
            raise _refused(node.actions, f"{where}.actions", "an expanded action below inner nodes, and none elsewhere")
        if not set(node.best) <= expanded or len(set(node.best)) != len(node.best):
            raise _refused(node.best, f"{where}.best", "expanded actions of its own, each once")
    for i, child in enumerate(and_nodes):
        if child.parent != owner_of_and.get(i):
            raise _refused(child.parent, f"and_nodes[{i}].parent", "the node whose actions it is among")
        expanded_here = child.status == "expanded"
        has = (child.q is not None, bool(child.outcomes), child.reward is not None)
        if has != (expanded_here, expanded_here, child.status != "illegal"):
            raise _refused(
                child.status, f"and_nodes[{i}].status", "q and outcomes if expanded, a reward unless illegal"
            )


def _owners(lists: list[list[int]], count: int, kind: str, field: str) -> dict[int, int]:
    """Return which node names each of ``count`` others below it."""
    owners: dict[int, int] = {}
    for i, below in enumerate(lists):
        for k in below:
            if k >= count or k in owners:
                raise _refused(k, f"{kind}[{i}].{field}", f"nodes from 0 to {count - 1}, each below one other")
            owners[k] = i
    return owners
