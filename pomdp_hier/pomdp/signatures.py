"""Roles of the parameters of a user's function, bound by parameter name.

Every function for a model, a rule, a policy or an updater is bound here, once. A parameter with a known name
(`KNOWN_NAMES`) gets the value of that name, in any position. A parameter with another name gets the value of its
position in the documented signature, if the number of parameters leaves one reading. A function with two readings is
rejected before it is called.
"""

import inspect
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from types import FrameType
from typing import Any

from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, ParameterError, PomdpHierError

# The meaning of a name without underscores; a single capital letter has none ("T" is a table more often).
KNOWN_NAMES: Mapping[str, frozenset[str]] = {
    "state": frozenset({"s", "state", "fromstate", "laststate", "oldstate", "prev", "previous", "previousstate"})
    | {"prevstate", "sold", "sprev", "statebefore", "before"},
    "action": frozenset({"a", "act", "action"}),
    "next_state": frozenset({"after", "newstate", "next", "nexts", "nextstate", "ns", "nxt", "reached", "snew", "s2"})
    | {"snext", "sp", "sprime", "stateafter", "statenext", "stateprime", "successor", "t", "target", "tostate"},
    "observation": frozenset({"o", "obs", "observation"}),
    "belief": frozenset({"b", "bel", "belief"}),
    "problem": frozenset({"model", "pomdp", "problem"}),
}
_EITHER_STATE = ("s", "state")  # of an observation function: the next or the previous state
_LEFT = "state"


@dataclass(frozen=True)
class Signature:
    """The arguments of one kind of function.

    Attributes:
        roles: The possible arguments, in the documented order.
        readings: The arguments per number of parameters, for parameters without known names.
        error: The class of errors.
    """

    roles: tuple[str, ...]
    readings: tuple[tuple[str, ...], ...]
    error: type[PomdpHierError] = ModelError

    def __str__(self) -> str:
        least = min(map(len, self.readings))
        more = self.roles[least:]
        if self.readings[0] != self.roles[: len(self.readings[0])]:  # the first role is optional
            return " or ".join(f"({', '.join(reading)})" for reading in self.readings)
        return f"({', '.join(self.roles[:least])}{''.join(f'[, {role}' for role in more)}{']' * len(more)})"


SIGNATURES: Mapping[str, Signature] = {
    "transition": Signature(("state", "action"), (("state", "action"),)),
    "observation": Signature(
        ("next_state", "action", "state"),
        (("next_state", "action"), ("next_state", "action", "state"), ("state", "action", "next_state")),
    ),
    "reward": Signature(
        ("state", "action", "next_state", "observation"),
        (
            ("state", "action"),
            ("state", "action", "next_state"),
            ("state", "action", "observation"),
            ("state", "action", "next_state", "observation"),
        ),
    ),
    "terminal": Signature(("state",), (("state",),)),
    "belief_reward": Signature(("belief", "action"), (("belief",), ("belief", "action"))),
    "updater": Signature(("belief", "action", "observation"), (("belief", "action", "observation"),)),
    "policy": Signature(
        ("problem", "belief", "observation"),
        (("belief",), ("problem", "belief"), ("problem", "belief", "observation")),
        ParameterError,
    ),
    "event": Signature(("state",), (("state",),), ParameterError),
    "leaf": Signature(("problem", "belief"), (("problem", "belief"),), ParameterError),
    "bound": Signature(
        ("problem", "belief", "action", "depth"), (("problem", "belief", "action", "depth"),), ParameterError
    ),
}


@dataclass(frozen=True)
class Bound:
    """A function that can be called with the first ``count`` roles of its signature, in the documented order.

    Attributes:
        call: The function itself, if its parameters have that order.
        count: The number of arguments.
        roles: The roles of its parameters, in their order.
    """

    call: Callable[..., Any]
    count: int
    roles: tuple[str, ...]


class _Reordered:
    """A function that takes some of the given values, in the order of its parameters."""

    def __init__(self, function: Callable[..., Any], positions: Sequence[int], keywords: Mapping[str, int]) -> None:
        self.function, self.positions, self.keywords = function, tuple(positions), dict(keywords)

    def __call__(self, *values: Any) -> Any:
        given = {name: values[position] for name, position in self.keywords.items()}
        return self.function(*[values[position] for position in self.positions], **given)


def bind(what: str, function: Callable[..., Any], signature: Signature | None = None) -> Bound:
    """Return the function bound to its roles."""
    wanted = SIGNATURES[what] if signature is None else signature
    parameters = _parameters(function)
    if parameters is None:  # some builtins have no signature
        reading = wanted.readings[0]
        return _bound(function, reading, {}, wanted)
    positional, keywords, rest = _read(parameters, wanted)
    names = [*positional, *keywords]
    if rest:
        names += ["_"] * (len(wanted.roles) - len(names))
        documented = wanted.roles if _fits(names, wanted.roles, wanted) else None
        readings = [documented] if documented and not keywords else []
    else:
        readings = list(_readings(names, wanted))
        if (
            len({tuple(role for role, name in zip(one, names, strict=True) if name.strip("_")) for one in readings})
            == 1
        ):
            readings = readings[:1]  # they differ in "_" only, which no function uses
    if len(readings) != 1:
        raise wanted.error(f"{what}: got {_shown(parameters)}; expected {wanted}. {_advice(names, readings, wanted)}")
    split = len(readings[0]) - len(keywords)
    return _bound(function, readings[0][:split], dict(zip(keywords, readings[0][split:], strict=True)), wanted)


def required_order(what: str, method: Callable[..., Any]) -> int:
    """Return the number of arguments of a method, which must have the documented order."""
    bound = bind(what, method)
    if bound.call is not method:
        wanted = SIGNATURES[what]
        raise ModelError(
            f"{what}: got {_shown(_parameters(method) or ())}; expected {wanted}. "
            f"Write the parameters of {method.__name__} in this order."
        )
    return bound.count


def require_pickled(functions: Mapping[str, Any]) -> None:
    """Raise an error if `pickle` cannot write a function, such as one inside another function.

    Copies share functions, and pickling by value (cloudpickle, which processes of joblib use) writes them too.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] in ("copy", "cloudpickle", "dill", "joblib"):
            return
        frame = frame.f_back
    for what, function in functions.items():
        try:
            pickle.dumps(function)
        except Exception as error:
            name = getattr(function, "__qualname__", type(function).__name__)
            raise ModelError(
                f"{what}: got {name}, which cannot be pickled ({error}); expected a function at the top of a module. "
                "Define it there with def, or pickle with cloudpickle."
            ) from error


def _parameters(function: Callable[..., Any]) -> Sequence[inspect.Parameter] | None:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _read(parameters: Sequence[inspect.Parameter], wanted: Signature) -> tuple[list[str], list[str], bool]:
    """Return the names of the parameters to fill, by position and by keyword, and whether ``*rest`` takes more.

    A parameter with a default keeps it, unless its name is known or too few are left: ``lambda s, a, p=0.5``.
    """
    positional: list[str] = []
    waiting: list[str] = []
    keywords: list[str] = []
    rest = False
    least = min(map(len, wanted.readings))
    for parameter in parameters:
        known = bool(_meanings(parameter.name) & set(wanted.roles))
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = True
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords += [parameter.name] if known or parameter.default is parameter.empty else []
        elif parameter.kind is not parameter.VAR_KEYWORD:
            if parameter.default is parameter.empty or known or len(positional) + len(waiting) < least:
                positional += [*waiting, parameter.name]
                waiting = []
            else:
                waiting.append(parameter.name)
    return positional, keywords, rest


def _meanings(name: str) -> set[str]:
    """Return the possible roles of a name; none if it is unknown."""
    plain = name.replace("_", "")
    plain = plain if len(plain) == 1 else plain.lower()
    if name == "s_":
        return {"next_state"}
    return {role for role, names in KNOWN_NAMES.items() if plain in names}


def _possible(name: str, position: int, wanted: Signature) -> set[str]:
    """Return the roles of the signature that are possible for the parameter."""
    meanings = _meanings(name)
    if not meanings:
        return set(wanted.roles)
    states = {"state", "next_state"}
    if meanings <= states and len(states & set(wanted.roles)) == 1:  # only one state is possible
        return states & set(wanted.roles)
    if name in _EITHER_STATE and "next_state" in wanted.roles[:1] and wanted.roles[position : position + 1] != (name,):
        return {"next_state", _LEFT}
    return meanings & set(wanted.roles)


def _fits(names: Sequence[str], reading: Sequence[str], wanted: Signature) -> bool:
    return len(names) == len(reading) and all(
        role in _possible(name, position, wanted)
        for position, (name, role) in enumerate(zip(names, reading, strict=True))
    )


def _readings(names: Sequence[str], wanted: Signature) -> Iterator[tuple[str, ...]]:
    """Yield the possible readings: as documented, else in another order, else by known names alone."""
    documented = [reading for reading in wanted.readings if _fits(names, reading, wanted)]
    if documented:
        yield from documented
        return
    sets = {tuple(sorted(reading)): reading for reading in wanted.readings if len(reading) == len(names)}
    others = [order for roles in sets.values() for order in permutations(roles) if _fits(names, order, wanted)]
    if others:
        yield from others
    elif len(names) >= min(map(len, wanted.readings)) and all(map(_meanings, names)):
        choices = [_possible(name, position, wanted) for position, name in enumerate(names)]
        yield from (roles for roles in product(*choices) if len(set(roles)) == len(roles))


def _bound(
    function: Callable[..., Any], positional: Sequence[str], keywords: Mapping[str, str], wanted: Signature
) -> Bound:
    position = {role: i for i, role in enumerate(wanted.roles)}
    roles = (*positional, *keywords.values())
    count = max(min(map(len, wanted.readings)), *(position[role] + 1 for role in roles))
    if not keywords and tuple(positional) == wanted.roles[:count]:
        return Bound(function, count, roles)
    by_name = {name: position[role] for name, role in keywords.items()}
    return Bound(_Reordered(function, [position[role] for role in positional], by_name), count, roles)


def _shown(parameters: Sequence[inspect.Parameter]) -> str:
    """Return the parameters as a signature, without defaults."""
    names = [
        str(p.replace(annotation=p.empty, default=p.empty)) + "=..." * (p.default is not p.empty) for p in parameters
    ]
    if any(p.kind is p.KEYWORD_ONLY for p in parameters) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        names.insert(next(i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), "*")
    return f"({', '.join(names)})"


def _advice(names: Sequence[str], readings: Sequence[tuple[str, ...]], wanted: Signature) -> str:
    """Return what to do about parameters without a reading, or with several."""
    if readings:
        position = next(i for i, roles in enumerate(zip(*readings, strict=True)) if len(set(roles)) > 1)
        roles = list(dict.fromkeys(reading[position] for reading in readings))
        return f"{brief(names[position])} can be {' or '.join(roles)}: rename it, such as to {brief(roles[0])}."
    strange = [name for name in names if _meanings(name) and not _meanings(name) & set(wanted.roles)]
    if strange:
        return f"Remove {brief(strange[0])}, or rename it: the function is not given the {_role_of(strange[0])}."
    doubled = [name for name in names if _meanings(name) and sum(_meanings(n) == _meanings(name) for n in names) > 1]
    left = [role for role in wanted.roles if role not in set().union(*map(_meanings, names))]
    if doubled and left:
        return f"Rename {brief(doubled[1])}, such as to {brief(left[0])}: {brief(doubled[0])} means the same."
    return "Write the parameters so, or name them so in another order."


def _role_of(name: str) -> str:
    return next(iter(_meanings(name))).replace("_", " ")
