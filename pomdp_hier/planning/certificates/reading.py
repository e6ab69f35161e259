"""Reads a certificate into lists of whole numbers, refusing whatever has another form."""

from dataclasses import dataclass
from typing import Any

from pomdp_hier.errors import CertificateError
from pomdp_hier.pomdp.numeric import brief

__all__ = ["BY_CORNERS", "BY_INFORMED", "Claims", "Outcome", "Point", "StageClaims", "Vector", "Weights", "read_claims"]

FORMAT, VERSION = "pomdp-hier bounds", 2
BY_CORNERS, BY_INFORMED = -1, -2
_MOST = 2**4_096  # any number: far beyond what bounds need, and quick to work with

Weights = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Vector:
    """An alpha vector: its action, its value at each place (``None``: it is not for this place), what follows."""

    action: int
    values: list[int | None]
    after: list[int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A belief that an action leads to from a known place, and a bound of each action's value there."""

    belief: Weights
    values: list[int | None]


@dataclass(frozen=True, slots=True)
class Point:
    """A belief, a bound of its value, and for each action what bounds the action's value.

    That is ``None`` for the informed bound, or for each observation the point whose interpolation is used, or
    `BY_CORNERS` or `BY_INFORMED`.
    """

    belief: Weights
    value: int
    actions: list[list[int] | None]


@dataclass(frozen=True, slots=True)
class StageClaims:
    """What is claimed with one number of actions to go.

    The outcomes are numbered; which one is used after an action, a place and an observation is said by ``outcome_of``.
    """

    vectors: list[Vector]
    informed: list[list[int | None]]
    outcomes: list[Outcome]
    outcome_of: dict[tuple[int, int, int], int]
    corners: list[int | None]
    corner_points: dict[int, int]
    points: list[Point]


@dataclass(frozen=True, slots=True)
class Claims:
    """A certificate. Values are over ``2 ** value_bits``, weights of beliefs over ``2 ** weight_bits``."""

    horizon: int | None
    value_bits: int
    weight_bits: int
    start: Weights | None
    stages: list[StageClaims]
    vector: int
    hint: int
    lower: int
    upper: int


def shown(value: Any) -> str:
    """Return a value for a message; of what holds others, or has very many digits, only what it is.

    Example:
        >>> shown(3), shown([[]])
        ('3', 'a list')
    """
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of many digits"
    return brief(value)


def read_claims(certificate: Any, sizes: tuple[int, int, int], n_places: int) -> Claims:
    """Return what a certificate claims about a problem.

    Args:
        certificate: What ``json.load`` made of the file.
        sizes: The problem's numbers of states, actions and observations.
        n_places: The number of its places.

    Raises:
        CertificateError: It is no certificate, or not for a problem of these sizes.
    """
    return _Reader(sizes, n_places).claims(certificate)


class _Reader:
    def __init__(self, sizes: tuple[int, int, int], n_places: int) -> None:
        self.sizes, self.n_places = sizes, n_places

    def claims(self, certificate: Any) -> Claims:
        top = self._object(certificate, "certificate")
        if top.get("format") != FORMAT or top.get("version") != VERSION:
            raise CertificateError(
                f"format: {shown(top.get('format'))}, version {shown(top.get('version'))}; expected '{FORMAT}', "
                f"version {VERSION}"
            )
        sizes = self._list(top, "sizes", 3, "")
        if not all(type(n) is int for n in sizes) or tuple(sizes) != self.sizes:
            raise CertificateError(
                f"sizes: {', '.join(map(shown, sizes))}; the problem has {self.sizes[0]} states, {self.sizes[1]} "
                f"actions and {self.sizes[2]} observations: the certificate is about another one"
            )
        horizon = top.get("horizon")
        if horizon is not None:
            horizon = self._integer(horizon, 1, 1_000_000, "horizon")
        stages = self._list(top, "stages", 1 if horizon is None else horizon, "")
        start = top.get("start")
        return Claims(
            horizon=horizon,
            value_bits=self._integer(top.get("value_bits"), 0, 1_024, "value_bits"),
            weight_bits=self._integer(top.get("weight_bits"), 0, 1_024, "weight_bits"),
            start=None if start is None else self._belief(start, "start"),
            stages=[self._stage(stage, f"stages[{i}]") for i, stage in enumerate(stages)],
            vector=self._integer(top.get("vector"), 0, 10**12, "vector"),
            hint=self._integer(top.get("hint"), BY_INFORMED, 10**12, "hint"),
            lower=self._number(top.get("lower"), "lower"),
            upper=self._number(top.get("upper"), "upper"),
        )

    def _stage(self, given: Any, where: str) -> StageClaims:
        stage = self._object(given, where)
        informed = self._list(stage, "informed", self.sizes[1], where)
        pairs = self._list(stage, "corner_points", None, where)
        corner_points = {}
        for i, pair in enumerate(pairs):
            place = f"{where}.corner_points[{i}]"
            s, point = self._sized(pair, 2, place)
            corner_points[self._integer(s, 0, self.n_places - 1, place)] = self._integer(point, 0, 10**12, place)
        vectors = self._list(stage, "vectors", None, where)
        points = self._list(stage, "points", None, where)
        outcome_of: dict[tuple[int, int, int], int] = {}
        outcomes = [
            self._outcome(outcome, i, outcome_of, f"{where}.outcomes[{i}]")
            for i, outcome in enumerate(self._list(stage, "outcomes", None, where))
        ]
        return StageClaims(
            vectors=[self._vector(vector, f"{where}.vectors[{i}]") for i, vector in enumerate(vectors)],
            informed=[self._values(row, f"{where}.informed[{a}]") for a, row in enumerate(informed)],
            outcomes=outcomes,
            outcome_of=outcome_of,
            corners=self._values(stage.get("corners"), f"{where}.corners"),
            corner_points=corner_points,
            points=[self._point(point, f"{where}.points[{i}]") for i, point in enumerate(points)],
        )

    def _vector(self, given: Any, where: str) -> Vector:
        vector = self._object(given, where)
        after = self._list(vector, "after", self.sizes[2], where)
        return Vector(
            self._integer(vector.get("action"), 0, self.sizes[1] - 1, f"{where}.action"),
            self._values(vector.get("values"), f"{where}.values"),
            [self._integer(k, -1, 10**12, f"{where}.after") for k in after],
        )

    def _outcome(self, given: Any, i: int, outcome_of: dict[tuple[int, int, int], int], where: str) -> Outcome:
        outcome = self._object(given, where)
        most = (self.sizes[1] - 1, self.n_places - 1, self.sizes[2] - 1)
        for j, triple in enumerate(self._list(outcome, "after", None, where)):
            place = f"{where}.after[{j}]"
            a, s, o = (
                self._integer(n, 0, last, place) for n, last in zip(self._sized(triple, 3, place), most, strict=True)
            )
            outcome_of[a, s, o] = i
        values = self._list(outcome, "values", self.sizes[1], where)
        return Outcome(
            self._belief(outcome.get("belief"), f"{where}.belief"),
            [None if value is None else self._number(value, f"{where}.values") for value in values],
        )

    def _point(self, given: Any, where: str) -> Point:
        point = self._object(given, where)
        actions = self._list(point, "actions", self.sizes[1], where)
        return Point(
            self._belief(point.get("belief"), f"{where}.belief"),
            self._number(point.get("value"), f"{where}.value"),
            [None if hints is None else self._hints(hints, f"{where}.actions[{a}]") for a, hints in enumerate(actions)],
        )

    def _hints(self, given: Any, where: str) -> list[int]:
        return [self._integer(h, BY_INFORMED, 10**12, where) for h in self._sized(given, self.sizes[2], where)]

    def _belief(self, given: Any, where: str) -> Weights:
        if type(given) is not list or not given:
            raise CertificateError(f"{where}: {shown(given)} is no list of [place, weight]")
        weights = {}
        for i, pair in enumerate(given):
            s, weight = self._sized(pair, 2, f"{where}[{i}]")
            s = self._integer(s, 0, self.n_places - 1, f"{where}[{i}]")
            if s in weights:
                raise CertificateError(f"{where}: place {s} stands there twice")
            weights[s] = self._integer(weight, 1, _MOST, f"{where}[{i}]")
        return list(weights.items())

    def _values(self, given: Any, where: str) -> list[int | None]:
        values = self._sized(given, self.n_places, where)
        return [None if value is None else self._number(value, where) for value in values]

    # --- the forms of JSON ---------------------------------------------------------------------------------------

    def _object(self, given: Any, where: str) -> dict[str, Any]:
        if type(given) is not dict:
            raise CertificateError(f"{where}: {shown(given)} is no object with names")
        return given

    def _list(self, given: dict[str, Any], name: str, length: int | None, where: str) -> list[Any]:
        return self._sized(given.get(name), length, f"{where}.{name}" if where else name)

    def _sized(self, given: Any, length: int | None, where: str) -> list[Any]:
        if type(given) is not list:
            raise CertificateError(f"{where}: {shown(given)} is no list")
        if length is not None and len(given) != length:
            raise CertificateError(f"{where}: {len(given)} entries; expected {length}")
        return given

    def _integer(self, given: Any, least: int, most: int, where: str) -> int:
        if type(given) is not int or not least <= given <= most:
            raise CertificateError(f"{where}: {shown(given)} is no whole number in the range that is meant")
        return given

    def _number(self, given: Any, where: str) -> int:
        return self._integer(given, -_MOST, _MOST, where)
