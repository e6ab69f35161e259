"""Checks that bounds on a problem's optimal value are right, inequality by inequality, in whole numbers.

With gamma, R and p from the problem, and everything else from the certificate, it is checked that

- for every alpha vector k of action a and every state s that it is for,
  ``alpha_k(s) <= R(s, a) + gamma sum_o sum_s' p(s', o | s, a) alpha_k'(o)(s')``;
- for every action and state, ``Q(a, s) >= R(s, a) + gamma sum_o max_a' A(a, s, o, a')``, where A, what the outcome
  is worth if one goes on with a', is ``sum_s' p(s', o | s, a) Q(a', s')``, or less by
  ``c (Q(a') . b_j - q_j(a'))`` with an outcome belief j and c the least ``p(s', o | s, a) / b_j(s')``;
- for every outcome belief j and action, ``q_j(a) >= R(b_j, a) + gamma sum_o max_a' sum_s b_j(s) A(a, s, o, a')``;
- for every point (b, v) and every action a that is legal there, ``v >= Q_a . b`` or
  ``v >= R(b, a) + gamma sum_o V(tau_o)``, where ``tau_o(s') = sum_s b(s) p(s', o | s, a)`` and V is the interpolation
  between corners and one point, or the informed bound ``max_a' Q_a' . tau``.

Why that suffices. Call V* the optimal value; it is convex, and homogeneous in unnormalised weights.

*Below*: let d be the least of ``V_k(s) - alpha_k(s)``, where V_k is the value of the controller that takes action a_k
and goes on in k'(o). Then ``d >= gamma' min(d, 0)`` with ``gamma' = gamma max row sum < 1``, hence ``d >= 0``: no
vector is above the value of a policy that can be run.

*Above*: call Q* the optimal value of a first action, convex and homogeneous too, so that what A says is at least Q*
of the outcome if all Q and q are. Let d be the greatest of ``(Q*(s, a) - Q(a, s))`` and ``(Q*(b_j, a) - q_j(a)) /
|b_j|``. As the sum of maxima is at least the maximum of the sum, ``d <= gamma' max(d, 0)``, hence ``d <= 0``, and
``F(w) = max_a Q_a . w`` is at least V*. Now let d be the greatest of
``(V*(b) - v) / |b|`` over points and corners. For any tau, ``V*(tau) <= F(tau)``, and V* is at most the interpolation
plus ``max(d, 0) |tau|``, as V* is convex. So ``d <= gamma' max(d, 0)``, hence ``d <= 0``: no point is below V*, nor is
any interpolation. With a finite horizon the claims of each stage rest on those of the stage before, and gamma may be 1.
Where the process is over at some time whatever is done, states are never met again, and the same follows by induction
over the greatest number of actions that can come: each inequality rests on states that have less to come.

Places that cannot be met from the start take no part. Nothing is searched for: the certificate names the vector and the
point of each inequality, and none of it is trusted.
This module shares no code with any solver.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import ceil, floor, lcm
from operator import mul
from typing import Any

from pomdp_hier._messages import counted
from pomdp_hier.errors import CertificateError
from pomdp_hier.planning.certificates.exact_model import ExactModel, Outcomes, as_fraction, exact_model
from pomdp_hier.planning.certificates.reading import (
    BY_CORNERS,
    BY_INFORMED,
    Claims,
    Outcome,
    Point,
    StageClaims,
    Vector,
    Weights,
    read_claims,
)
from pomdp_hier.pomdp import POMDP
from pomdp_hier.pomdp.problem import require_problem

__all__ = ["CertifiedBounds", "verify"]


@dataclass(frozen=True)
class CertifiedBounds:
    """Two bounds on the optimal value, proved.

    Attributes:
        lower: What a policy earns at least.
        upper: What no policy exceeds.
        horizon: The number of actions that is meant; ``None`` where the process goes on, or ends by itself before.
        n_vectors: How many alpha vectors were checked.
        n_points: How many belief points were checked.

    Example:
        >>> print(CertifiedBounds(Fraction(-2, 3), Fraction(1, 3), None, 2, 0))
        proved: the optimal value is at least -0.666666667 and at most 0.333333334
        2 alpha vectors and 0 belief points hold
    """

    lower: Fraction
    upper: Fraction
    horizon: int | None
    n_vectors: int
    n_points: int

    def __str__(self) -> str:
        end = "" if self.horizon is None else f" over {self.horizon} actions"
        lower, upper = floor(self.lower * 10**9), ceil(self.upper * 10**9)  # never beyond what is proved
        return (
            f"proved: the optimal value{end} is at least {_billionths(lower)} and at most {_billionths(upper)}\n"
            f"{counted(self.n_vectors, 'alpha vector')} and {counted(self.n_points, 'belief point')} hold"
        )


def _billionths(count: int) -> str:
    """Return so many billionths as a decimal."""
    whole, rest = divmod(abs(count), 10**9)
    return f"{'-' * (count < 0)}{whole}.{rest:09d}"


def verify(certificate: Any, problem: POMDP) -> CertifiedBounds:
    """Return the bounds that a certificate proves for a problem.

    Args:
        certificate: What `Solution.certificate` made, or what ``json.load`` made of its file.
        problem: The problem, of numbers: floats are taken as the decimals that they are written as.

    Raises:
        CertificateError: The certificate has another form, or one of its inequalities does not hold; the first that
            fails is named.
        ModelError: The problem has no exact numbers, or its legal actions depend on the belief.

    Example:
        >>> from pomdp_hier.planning import solve
        >>> from pomdp_hier.problems import tiger
        >>> certificate = solve(tiger(), precision=1e-3).certificate()
        >>> bounds = verify(certificate, tiger())
        >>> 19.370 < bounds.lower <= bounds.upper < 19.373
        True
        >>> certificate["stages"][0]["points"][0]["value"] -= 2 ** 44
        >>> verify(certificate, tiger())
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.CertificateError: stages[0].points[0]: its value is below that of action ...

    References:
        Smallwood and Sondik (1973); Hauskrecht (2000); Krale et al. (2025).
    """
    require_problem(problem, "verify, after the certificate")
    model = exact_model(problem)
    claims = read_claims(certificate, model.sizes, len(model.legal))
    start = _start(model, claims, problem)
    if claims.horizon is None and not (model.shrinks() or model.is_over(set(start), len(model.legal))):
        raise CertificateError(
            "horizon: none, but without a discount the process may go on for ever; a proof needs a finite horizon"
        )
    met = model.reached(set(start))
    below: _Stage | None = None
    for i, stage in enumerate(claims.stages):
        checked = _Stage(model, claims, stage, f"stages[{i}]", met, below)
        checked.check()
        below = checked
    assert below is not None
    return _Result(model, claims, below, start).bounds()


def _start(model: ExactModel, claims: Claims, problem: POMDP) -> dict[int, Fraction]:
    """Return the weights of the places at the start: the problem's own, or those that the certificate names."""
    if claims.start is not None:
        return {s: Fraction(w, 2**claims.weight_bits) for s, w in claims.start if model.legal[s] is not None}
    kind = model.kind_after[-1]
    weights = {}
    index = {state: i for i, state in enumerate(problem.states)}
    for state, p in problem.initial_belief.items():
        place = kind * model.sizes[0] + index[state]
        if model.legal[place] is not None:
            weights[place] = as_fraction(p, "initial belief")
    return weights


class _Stage:
    """The claims about one number of actions to go, and what they say ahead of an action."""

    def __init__(
        self,
        model: ExactModel,
        claims: Claims,
        stage: StageClaims,
        where: str,
        met: set[int],
        below: "_Stage | None",
    ) -> None:
        self.model, self.claims, self.stage, self.where, self.met = model, claims, stage, where, met
        self.ends = below is None and claims.horizon is not None
        self.below = self if below is None else below
        kinds = {legal for legal in model.legal if legal is not None}
        self._everywhere = kinds.pop() if len(kinds) == 1 else None
        self._corners = [value or 0 for value in stage.corners]
        self._gaps: dict[int, int] = {}
        self._worths: dict[tuple[int, int, int], list[int | None]] = {}

    def check(self) -> None:
        """Check every inequality; those below, the informed bound, the corners, the points."""
        for k, vector in enumerate(self.stage.vectors):
            self._check_vector(vector, f"{self.where}.vectors[{k}]")
        for a in range(self.model.sizes[1]):
            self._check_informed(a)
        for i, outcome in enumerate(self.stage.outcomes):
            self._check_outcome(outcome, f"{self.where}.outcomes[{i}]")
        self._check_corners()
        for i, point in enumerate(self.stage.points):
            self._check_point(point, f"{self.where}.points[{i}]")

    # --- below ---------------------------------------------------------------------------------------------------

    def _check_vector(self, vector: Vector, where: str) -> None:
        """``alpha(s) money cost chance <= R 2^bits cost chance + gain money sum p alpha'`` at every place."""
        model, ahead = self.model, self.below.stage.vectors
        gain, cost = model.discount
        flows, reward = model.flows[vector.action], model.reward[vector.action]
        scale = cost * model.chance << self.claims.value_bits
        unit, weight = model.money * cost * model.chance, gain * model.money
        nothing: list[int | None] = [None] * len(model.legal)
        following = [ahead[k].values if 0 <= k < len(ahead) else nothing for k in vector.after]
        flat = list(chain.from_iterable(following))  # by observation and place, as the flows are
        has_gaps = None in flat
        for s, value in enumerate(vector.values):
            if value is None or s not in self.met:
                continue
            legal = model.legal[s]
            if legal is None or vector.action not in legal:
                raise CertificateError(f"{where}: its action {vector.action} is not legal in place {s}")
            total = 0
            if not self.ends:
                missing = [i for i in flows[s].at if flat[i] is None] if has_gaps else []
                if missing:
                    o, t = divmod(missing[0], len(model.legal))
                    raise CertificateError(f"{where}: no vector for place {t} follows observation {o} in place {s}")
                total = sum([p * sum(pick(flat)) for p, pick in flows[s].terms])
            if value * unit > reward[s] * scale + weight * total:
                raise CertificateError(f"{where}: its value in place {s} is above that of its action and what follows")

    # --- above ---------------------------------------------------------------------------------------------------

    def _check_informed(self, a: int) -> None:
        """``Q(a, s) >= R(s, a) + gamma sum_o max_a' A(a, s, o, a')``."""
        model = self.model
        gain, cost = model.discount
        scale = cost * model.chance << self.claims.value_bits
        unit, weight = model.money * cost * model.chance, gain * model.money
        row = self.stage.informed[a]
        for s, legal in enumerate(model.legal):
            if legal is None or a not in legal or s not in self.met:
                continue
            where = f"{self.where}.informed[{a}]"
            value = row[s]
            if value is None:
                raise CertificateError(f"{where}: no value in place {s}, where the action is legal")
            total = self._worth_after([(s, 1)], a)
            if total is not None and value * unit < model.reward[a][s] * scale + weight * total:
                raise CertificateError(f"{where}: its value in place {s} is below that of its backup")

    def _check_outcome(self, outcome: Outcome, where: str) -> None:
        """``q_j(a) >= R(b_j, a) + gamma sum_o max_a' sum_s b_j(s) A(a, s, o, a')`` for every legal action."""
        model, belief = self.model, outcome.belief
        gain, cost = model.discount
        unit = model.chance * cost
        if any(s not in self.met for s, _ in belief):  # nothing that can be met has such an outcome
            return
        for a in self._legal(belief):
            value = outcome.values[a]
            if value is None:
                raise CertificateError(f"{where}: no value of action {a}, which is legal there")
            total = self._worth_after(belief, a)
            earned = sum(w * model.reward[a][s] for s, w in belief) << self.claims.value_bits
            scaled = (value << self.claims.weight_bits) * model.money * unit
            if total is not None and scaled < earned * unit + gain * model.money * total:
                raise CertificateError(f"{where}: its value of action {a} is below that of its backup")

    def _worth_after(self, belief: Weights, a: int) -> int | None:
        """``sum_o max_a' sum_s b(s) A(a, s, o, a')``; ``None`` where nothing is legal: no policy comes there."""
        sums: dict[int, list[int | None]] = {}
        for s, w in belief:
            for o, entries in () if self.ends else self.model.outcomes[a][s]:
                worth = self.below.worth(a, s, o, entries)
                pairs = zip(sums.setdefault(o, [0] * len(worth)), worth, strict=True)
                sums[o] = [None if v is None or x is None else x + w * v for x, v in pairs]
        total = 0
        for values in sums.values():
            legal = [v for v in values if v is not None]
            if not legal:
                return None
            total += max(legal)
        return total

    def worth(self, a: int, s: int, o: int, entries: Weights) -> list[int | None]:
        """``A(a, s, o, a')`` for every a'; ``None`` where it is not legal after the outcome."""
        known = self._worths.get((a, s, o))
        if known is None:
            known = self._worths[a, s, o] = [None] * self.model.sizes[1]
            i = self.stage.outcome_of.get((a, s, o))
            outcome = None if i is None else self.stage.outcomes[i]
            ratio = None if outcome is None else _least_ratio(dict(entries), outcome.belief)
            for then in self._legal(entries):
                value = self._informed_value(then, entries)
                if outcome is not None and ratio is not None:
                    bound = outcome.values[then]
                    if bound is None:
                        raise CertificateError(f"{self.where}.outcomes[{i}]: no value of action {then}, which is legal")
                    gap = self._informed_value(then, outcome.belief) - (bound << self.claims.weight_bits)
                    value -= max(0, gap) * ratio[0] // ratio[1]
                known[then] = value
        return known

    def informed(self, weights: Weights) -> int | None:
        """``max_a Q_a . w`` over the actions that are legal at the weights; ``None`` where there is none."""
        legal = self._legal(weights)
        best: int | None = None
        for a in legal:
            value = self._informed_value(a, weights)
            if best is None or value > best:
                best = value
        return best

    def _informed_value(self, a: int, weights: Weights) -> int:
        """``Q_a . w`` of an action that is legal at the weights."""
        row = self.stage.informed[a]
        value = 0
        for s, w in weights:
            q = row[s]
            if q is None:
                raise CertificateError(f"{self.where}.informed[{a}]: no value in place {s}, where it is legal")
            value += w * q
        return value

    def _legal(self, weights: Weights) -> frozenset[int]:
        if self._everywhere is not None:
            return self._everywhere
        legal: frozenset[int] | None = None
        for s, _ in weights:
            here = self.model.legal[s]
            if here is not None and here is not legal:
                legal = here if legal is None else legal & here
        return frozenset() if legal is None else legal

    def _check_corners(self) -> None:
        """Check that a corner is at least every action's informed value there, or is one of the points."""
        stage = self.stage
        for s, legal in enumerate(self.model.legal):
            if not legal or s not in self.met:
                continue
            where = f"{self.where}.corners"
            corner = stage.corners[s]
            if corner is None:
                raise CertificateError(f"{where}: no value in place {s}")
            if s in stage.corner_points:
                point = self._point(stage.corner_points[s], f"{self.where}.corner_points")
                if len(point.belief) != 1 or point.belief[0][0] != s:
                    raise CertificateError(f"{where}: the point of place {s} is a belief about others")
                if corner * point.belief[0][1] < point.value << self.claims.weight_bits:
                    raise CertificateError(f"{where}: the value in place {s} is below that of its point")
                continue
            for a in legal:
                q = stage.informed[a][s]
                if q is None or corner < q:
                    raise CertificateError(f"{where}: the value in place {s} is below that of action {a}")

    def _point(self, i: int, where: str) -> Point:
        if not 0 <= i < len(self.stage.points):
            raise CertificateError(f"{where}: there is no point {i} among {len(self.stage.points)}")
        return self.stage.points[i]

    def _check_point(self, point: Point, where: str) -> None:
        """``v >= Q_a . b``, or ``v >= R(b, a) + gamma sum_o V(tau_o)``, for every legal action."""
        model = self.model
        gain, cost = model.discount
        if any(s not in self.met for s, _ in point.belief):
            raise CertificateError(f"{where}: its belief has a place that cannot be met from the start")
        value = point.value << self.claims.weight_bits
        for a in self._legal(point.belief):
            hints = point.actions[a]
            if hints is None:
                row = self.stage.informed[a]
                holds = value >= sum(w * (row[s] or 0) for s, w in point.belief)
            else:
                ahead = self._ahead(point, a, hints, where)
                if ahead is None:
                    continue
                earned = sum(w * model.reward[a][s] for s, w in point.belief) << self.claims.value_bits
                unit = model.chance * cost
                holds = value * model.money * unit >= earned * unit + gain * model.money * ahead
            if not holds:
                raise CertificateError(f"{where}: its value is below that of action {a} and what follows")

    def _ahead(self, point: Point, a: int, hints: list[int], where: str) -> int | None:
        """``sum_o V(tau_o)``; ``None`` where nothing is legal after some observation, so that no policy does this."""
        total = 0
        for o, weights in () if self.ends else _successors(self.model.outcomes[a], point.belief):
            worth = self.below.interpolation(weights, hints[o], where)
            if worth is None:
                return None
            total += worth
        return total

    def interpolation(self, weights: Weights, hint: int, where: str) -> int | None:
        """Return ``V(w)``: the informed bound, or ``corner . w + c (v - corner . b)``, c the least ``w(s) / b(s)``."""
        if hint == BY_INFORMED:
            return self.informed(weights)
        if not self._legal(weights):
            return None
        dense = dict(weights)
        base: int = sum(map(mul, dense.values(), map(self._corners.__getitem__, dense)))
        if hint == BY_CORNERS:
            return base
        point = self._point(hint, where)
        gap = self._gap(hint, point)
        if gap >= 0:
            return base
        ratio = _least_ratio(dense, point.belief)
        return base if ratio is None else base - (-gap * ratio[0]) // ratio[1]

    def _gap(self, i: int, point: Point) -> int:
        """``v - corner . b``."""
        if i not in self._gaps:
            below = sum(w * self._corners[s] for s, w in point.belief)
            self._gaps[i] = (point.value << self.claims.weight_bits) - below
        return self._gaps[i]


def _least_ratio(dense: dict[int, int], belief: Weights) -> tuple[int, int] | None:
    """Return the least ``w(s) / b(s)`` as numerator and denominator; ``None`` where it is 0."""
    top, bottom = 1, 0  # the least ratio so far; 1 / 0 before the first
    for s, b in belief:
        w = dense.get(s, 0)
        if w * bottom < top * b:
            top, bottom = w, b
            if w == 0:
                return None
    return top, bottom


def _successors(outcomes: list[Outcomes], belief: Weights) -> list[tuple[int, Weights]]:
    """``tau_o(s') = sum_s b(s) p(s', o | s, a)`` for every observation that can be made."""
    rows: dict[int, dict[int, int]] = {}
    for s, w in belief:
        for o, entries in outcomes[s]:
            row = rows.get(o)
            if row is None:
                row = rows[o] = {}
            for t, p in entries:
                row[t] = row.get(t, 0) + w * p
    return [(o, list(row.items())) for o, row in rows.items()]


@dataclass(frozen=True, eq=False)
class _Result:
    """The bounds at the start, from the stage with all actions to go."""

    model: ExactModel
    claims: Claims
    stage: _Stage
    start: dict[int, Fraction]

    def bounds(self) -> CertifiedBounds:
        claims = self.claims
        unit = 2**claims.value_bits
        lower, upper = self._lower() / unit, self._upper() / unit
        if Fraction(claims.lower, unit) > lower:
            raise CertificateError(f"lower: {float(Fraction(claims.lower, unit))} is above what the vector proves")
        if Fraction(claims.upper, unit) < upper:
            raise CertificateError(f"upper: {float(Fraction(claims.upper, unit))} is below what the points prove")
        horizon = claims.horizon
        if horizon is not None and self.model.is_over(set(self.start), horizon):
            horizon = None
        n_vectors = sum(len(stage.vectors) for stage in claims.stages)
        n_points = sum(len(stage.points) for stage in claims.stages)
        return CertifiedBounds(Fraction(claims.lower, unit), Fraction(claims.upper, unit), horizon, n_vectors, n_points)

    def _lower(self) -> Fraction:
        if not self.start:
            return Fraction(0)
        vectors = self.stage.stage.vectors
        if self.claims.vector >= len(vectors):
            raise CertificateError(f"vector: there is no vector {self.claims.vector} among {len(vectors)}")
        values = vectors[self.claims.vector].values
        total = Fraction(0)
        for s, w in self.start.items():
            value = values[s]
            if value is None:
                raise CertificateError(f"vector: vector {self.claims.vector} is not for place {s} of the start")
            total += w * value
        return total

    def _upper(self) -> Fraction:
        if not self.start:
            return Fraction(0)
        common = lcm(*(w.denominator for w in self.start.values()))
        weights = [(s, w.numerator * (common // w.denominator)) for s, w in self.start.items()]
        worth = self.stage.interpolation(weights, self.claims.hint, "hint")
        if worth is None:
            raise CertificateError("start: no action is legal there")
        return Fraction(worth, common)
