"""The claims of a certificate, and the bounds that they prove.

A certificate has integers in lists and objects; anything else is refused.

The reader checks forms and ranges. No field is trusted. Each is compared with the problem, or only names what an
inequality uses, or is a bound. `verify` checks the inequality of each bound in the problem's own numbers.

| field | how it enters a claim |
|---|---|
| ``format``, ``version`` | equal to `FORMAT` and `VERSION` |
| ``sizes`` | equal to the problem's numbers of states, actions and observations |
| ``horizon`` | the number of stages; the result states it |
| ``value_bits``, ``weight_bits`` | units, in which every inequality is checked; they cancel |
| ``start`` | equal to the named belief to 1e-9; the bounds themselves come from the named belief |
| ``vector``, ``hint`` | name what bounds the start; an index without a vector or point is refused |
| ``lower``, ``upper`` | compared with the bounds that are computed at the start |
| ``vectors[k].action`` | legal in every state that has a value |
| ``vectors[k].values`` | at most the backup of the action and the vectors in ``after`` |
| ``vectors[k].after`` | names vectors; one that lacks a value in a successor state is refused |
| ``informed[a]`` | at least the backup (FIB or TIB) of the action in each state |
| ``outcomes[j].belief`` | scaled below the outcome by the least ratio, which is computed |
| ``outcomes[j].values`` | at least the backup of each action at the outcome's belief |
| ``outcomes[j].after`` | names the outcomes that use it |
| ``corners`` | at least every value of ``informed`` in the state, or the value of the point in ``corner_points`` |
| ``corner_points`` | name points, whose belief must be the state alone |
| ``points[i].belief`` | over states that can be reached from the named belief; the point's backup is computed from it |
| ``points[i].value`` | at least the backup of each legal action |
| ``points[i].actions`` | name the bound of each action, or the point of each observation |

The discount, rewards, probabilities, legal actions and the start come from the problem alone.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from pomdp_hier._text import brief, counted, visible
from pomdp_hier.errors import CertificateError, Setting
from pomdp_hier.pomdp.belief import Belief

FORMAT, VERSION = "pomdp-hier bounds", 2
BY_CORNERS, BY_INFORMED = -1, -2
_MOST = 2**4_096  # the greatest number of any field: far beyond what bounds need, and fast

Weights = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Vector:
    """An alpha vector: action, value per state index (``None``: no value), and next vector per observation."""

    action: int
    values: list[int | None]
    after: list[int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A belief after an action in a known state, and a bound on each action's value at it."""

    belief: Weights
    values: list[int | None]


@dataclass(frozen=True, slots=True)
class Point:
    """A belief, a bound on its value, and the source of each action's bound.

    The source is ``None`` for the informed bound, or, per observation, the point of the interpolation, `BY_CORNERS` or
    `BY_INFORMED`.
    """

    belief: Weights
    value: int
    actions: list[list[int] | None]


@dataclass(frozen=True, slots=True)
class StageClaims:
    """The claims with one number of actions to go; ``outcome_of`` maps action, state index and observation to one."""

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


def refusal(where: str, got: str, expected: str, *advice: str | Setting) -> CertificateError:
    """Return the error of a field: its position in the certificate, its value, and the expected value.

    Example:
        >>> str(refusal("hint", "-7", "an integer from -2 to 9"))
        'hint: got -7; expected an integer from -2 to 9.'
    """
    return CertificateError(f"{where}: got {got}; expected {expected}.", *((" ", *advice) if advice else ()))


def read_claims(certificate: Any, sizes: tuple[int, int, int], n_indices: int) -> Claims:
    """Return the claims of a certificate.

    Args:
        certificate: The value of ``json.load``.
        sizes: The problem's numbers of states, actions and observations.
        n_indices: The number of state indices.

    Raises:
        CertificateError: It is not a certificate, or its sizes are not the problem's.
    """
    return _Reader(sizes, n_indices).claims(certificate)


class _Reader:
    def __init__(self, sizes: tuple[int, int, int], n_indices: int) -> None:
        self.sizes, self.n_indices = sizes, n_indices

    def claims(self, certificate: Any) -> Claims:
        top = self._object(certificate, "certificate")
        if top.get("format") != FORMAT or top.get("version") != VERSION:
            got = f"{brief(top.get('format'))}, version {brief(top.get('version'))}"
            raise refusal("format", got, f"{brief(FORMAT)}, version {VERSION}")
        sizes = self._list(top, "sizes", 3, "")
        if not all(type(n) is int for n in sizes) or tuple(sizes) != self.sizes:
            states, actions, observations = self.sizes
            expected = f"{states} states, {actions} actions and {observations} observations, as the problem has"
            raise refusal("sizes", brief(sizes), expected, "Verify the problem that was solved.")
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
            vector=self._integer(top.get("vector"), 0, _MOST, "vector"),
            hint=self._integer(top.get("hint"), BY_INFORMED, _MOST, "hint"),
            lower=self._number(top.get("lower"), "lower"),
            upper=self._number(top.get("upper"), "upper"),
        )

    def _stage(self, given: Any, where: str) -> StageClaims:
        stage = self._object(given, where)
        informed = self._list(stage, "informed", self.sizes[1], where)
        pairs = self._list(stage, "corner_points", None, where)
        corner_points = {}
        for i, pair in enumerate(pairs):
            at = f"{where}.corner_points[{i}]"
            s, point = self._sized(pair, 2, at)
            corner_points[self._integer(s, 0, self.n_indices - 1, at)] = self._integer(point, 0, _MOST, at)
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
            [self._integer(k, -1, _MOST, f"{where}.after") for k in after],
        )

    def _outcome(self, given: Any, i: int, outcome_of: dict[tuple[int, int, int], int], where: str) -> Outcome:
        outcome = self._object(given, where)
        most = (self.sizes[1] - 1, self.n_indices - 1, self.sizes[2] - 1)
        for j, triple in enumerate(self._list(outcome, "after", None, where)):
            at = f"{where}.after[{j}]"
            a, s, o = (self._integer(n, 0, last, at) for n, last in zip(self._sized(triple, 3, at), most, strict=True))
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
        return [self._integer(h, BY_INFORMED, _MOST, where) for h in self._sized(given, self.sizes[2], where)]

    def _belief(self, given: Any, where: str) -> Weights:
        if type(given) is not list or not given:
            raise refusal(where, brief(given), "a list of [state index, weight]")
        weights = {}
        for i, pair in enumerate(given):
            s, weight = self._sized(pair, 2, f"{where}[{i}]")
            s = self._integer(s, 0, self.n_indices - 1, f"{where}[{i}]")
            if s in weights:
                raise refusal(f"{where}[{i}]", f"state index {s} twice", "each state index once")
            weights[s] = self._integer(weight, 1, _MOST, f"{where}[{i}]")
        return list(weights.items())

    def _values(self, given: Any, where: str) -> list[int | None]:
        values = self._sized(given, self.n_indices, where)
        return [None if value is None else self._number(value, where) for value in values]

    # --- the forms of JSON ---------------------------------------------------------------------------------------

    def _object(self, given: Any, where: str) -> dict[str, Any]:
        if type(given) is not dict:
            raise refusal(where, brief(given), "a JSON object")
        return given

    def _list(self, given: dict[str, Any], name: str, length: int | None, where: str) -> list[Any]:
        return self._sized(given.get(name), length, f"{where}.{name}" if where else name)

    def _sized(self, given: Any, length: int | None, where: str) -> list[Any]:
        if type(given) is not list:
            raise refusal(where, brief(given), "a list")
        if length is not None and len(given) != length:
            raise refusal(where, f"{len(given)} entries", str(length))
        return given

    def _integer(self, given: Any, least: int, most: int, where: str) -> int:
        if type(given) is not int or not least <= given <= most:
            raise refusal(where, brief(given), f"an integer from {brief(least)} to {brief(most)}")
        return given

    def _number(self, given: Any, where: str) -> int:
        return self._integer(given, -_MOST, _MOST, where)


# --- what it proves ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VerifiedBounds:
    """Two proved bounds on the optimal value of one problem, from one belief, over one horizon, at one discount.

    Attributes:
        lower: A lower bound on the optimal value.
        upper: An upper bound on the optimal value.
        problem: The fingerprint of the problem's numbers, its initial belief included.
        belief: The belief to start from.
        observation: The last observation before the start, where legal actions depend on it.
        is_initial: Whether this is the start of the problem itself.
        horizon: The number of actions; ``None`` for an infinite horizon, or if the process terminates before.
        discount: The discount.
        n_vectors: The number of alpha vectors that were checked.
        n_points: The number of belief points that were checked.

    Example:
        >>> from pomdp_hier.planning import solve, verify
        >>> from pomdp_hier.problems import tiger
        >>> print(verify(solve(tiger(), horizon=2).certificate(), tiger()))
        proved: the optimal value of problem 35b43b6b13089ceb from its initial belief, over 2 actions at discount ...
        2 alpha vectors and 1 belief point hold
    """

    lower: Fraction
    upper: Fraction
    problem: str
    belief: Belief
    observation: Hashable
    is_initial: bool
    horizon: int | None
    discount: Fraction
    n_vectors: int
    n_points: int

    def __str__(self) -> str:
        start = "its initial belief" if self.is_initial else f"belief {brief(dict(self.belief.items()))}"
        start += "" if self.observation is None else f" after observation {brief(self.observation)}"
        end = "an infinite horizon" if self.horizon is None else counted(self.horizon, "action")
        return (
            visible(
                f"proved: the optimal value of problem {self.problem} from {start}, over {end} at discount "
                f"{_plain(self.discount)}, is at least {decimal(self.lower, floor)} and at most "
                f"{decimal(self.upper, ceil)}"
            )
            + f"\n{counted(self.n_vectors, 'alpha vector')} and {counted(self.n_points, 'belief point')} hold"
        )

    def __repr__(self) -> str:
        lower, upper = decimal(self.lower, floor), decimal(self.upper, ceil)
        return f"VerifiedBounds(lower={lower}, upper={upper}, problem={self.problem!r}, horizon={self.horizon})"


def decimal(value: Fraction, rounded: Callable[[Fraction], int]) -> str:
    """Return a number with nine decimals, rounded down or up; of a very long one, a power of 2.

    Example:
        >>> decimal(Fraction(-2, 3), floor), decimal(Fraction(2, 3), ceil), decimal(Fraction(-(2**300) - 1), floor)
        ('-0.666666667', '0.666666667', '-2**301')
    """
    count = rounded(value * 10**9)
    sign, whole = "-" * (count < 0), abs(rounded(value))
    if whole.bit_length() > 128:
        outward = (count < 0) == (rounded is floor)
        return f"{sign}2**{whole.bit_length() - (not outward)}"
    return f"{sign}{abs(count) // 10**9}.{abs(count) % 10**9:09d}"


def _plain(value: Fraction) -> str:
    """Return a fraction as the float that reads as it, else as a fraction.

    Example:
        >>> _plain(Fraction(19, 20)), _plain(Fraction(1, 3)), _plain(Fraction(1))
        ('0.95', '1/3', '1')
    """
    text = f"{float(value):.17g}" if value.denominator == 1 else repr(float(value))
    return text if Fraction(text) == value else str(value)
