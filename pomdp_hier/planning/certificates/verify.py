"""The verifier of certificates: it checks bounds on the optimal value, one inequality at a time, in integers.

With gamma, R, p and the belief to start from given, and everything else from the certificate, it checks that

- for every alpha vector k of action a and every state s in which it has a value,
  ``alpha_k(s) <= R(s, a) + gamma sum_o sum_s' p(s', o | s, a) alpha_k'(o)(s')``;
- for every action and state, ``Q(a, s) >= R(s, a) + gamma sum_o max_a' A(a, s, o, a')``, where A bounds the value of
  the outcome if the next action is a'. A is ``sum_s' p(s', o | s, a) Q(a', s')``, or less by ``c (Q(a') . b_j -
  q_j(a'))`` with an outcome belief j and c the least ``p(s', o | s, a) / b_j(s')``;
- for every outcome belief j and action, ``q_j(a) >= R(b_j, a) + gamma sum_o max_a' sum_s b_j(s) A(a, s, o, a')``;
- for every point (b, v) and every action a that is legal there, ``v >= Q_a . b`` or ``v >= R(b, a) + gamma sum_o
  V(tau_o)``, where ``tau_o(s') = sum_s b(s) p(s', o | s, a)``. V is the interpolation between corners and one point, or
  the informed bound ``max_a' Q_a' . tau``.

Why that suffices. Call V* the optimal value; it is convex, and homogeneous in unnormalised weights.

*Lower bound*: let d be the least of ``V_k(s) - alpha_k(s)``, where V_k is the value of the controller that takes
action a_k and continues in k'(o). Then ``d >= gamma' min(d, 0)`` with ``gamma' = gamma max row sum < 1``, and hence
``d >= 0``: no vector is above the value of its controller.

*Upper bound*: call Q* the optimal value of a first action. It is convex and homogeneous too, so that A is at least Q*
of the outcome if all Q and q are. Let d be the greatest of ``(Q*(s, a) - Q(a, s))`` and ``(Q*(b_j, a) - q_j(a)) /
|b_j|``. As the sum of maxima is at least the maximum of the sum, ``d <= gamma' max(d, 0)``, hence ``d <= 0``, and
``F(w) = max_a Q_a . w`` is at least V*. Now let d be the greatest of ``(V*(b) - v) / |b|`` over points and corners. For
any tau, ``V*(tau) <= F(tau)``, and V* is at most the interpolation plus ``max(d, 0) |tau|``, as V* is convex. So ``d <=
gamma' max(d, 0)``, hence ``d <= 0``: no point is below V*, nor is any interpolation. With a finite horizon the claims
of each stage rest on those of the stage before, and gamma may be 1. Where the process surely terminates, no state is
visited twice, and the same follows by induction over the greatest
number of actions to go: each inequality rests on states with fewer actions to go.

State indices that cannot be reached from the start are not checked. The verifier searches for nothing: the certificate
names the vector and the point of each inequality. `pomdp_hier.planning.certificates.claims` lists how each field is
checked. This module shares no code with any solver.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import ceil, floor, lcm
from operator import mul
from typing import Any

from pomdp_hier._text import brief, counted, listed
from pomdp_hier.errors import ModelError, Setting
from pomdp_hier.planning.certificates.claims import (
    BY_CORNERS,
    BY_INFORMED,
    Claims,
    Outcome,
    Point,
    StageClaims,
    Vector,
    VerifiedBounds,
    Weights,
    decimal,
    read_claims,
    refusal,
)
from pomdp_hier.planning.certificates.exact_model import ExactModel, exact_model, start_weights, successors
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.spaces import require_observation


def verify(certificate: Any, problem: POMDP, *, belief: Any = None, observation: Hashable = None) -> VerifiedBounds:
    """Return the bounds that a certificate proves for a problem, from a given belief.

    Args:
        certificate: The value of `Solution.certificate`, or of ``json.load`` of its file.
        problem: A problem with numeric models; a float counts as the shortest decimal that rounds to it.
        belief: The belief to start from, a `Belief` or a dict; the problem's initial belief by default.
        observation: The last observation before the start, where legal actions depend on it.

    Raises:
        CertificateError: The certificate has another form, is for another belief, or has an inequality that does not
            hold; the message names the first.
        ModelError: The problem has no exact numbers, its legal actions depend on the belief, or the belief or
            observation is not one of the problem's.

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
        pomdp_hier.errors.CertificateError: stages[0].points[0].value: got ...; expected at least the backup ...

    References:
        Smallwood and Sondik (1973); Hauskrecht (2000); Krale et al. (2025).
    """
    require_problem(problem, "verify, after the certificate")
    model = exact_model(problem)
    claims = read_claims(certificate, model.sizes, len(model.legal))
    start = _Start.of(model, problem, belief, observation)
    _check_start(claims, model, problem, start)
    if claims.horizon is None and not (model.shrinks() or model.terminates(set(start.weights))):
        raise refusal(
            "horizon",
            "none",
            "a finite one, as values may grow: discount times the greatest row sum is not below 1",
            "Solve again with ",
            Setting("horizon"),
        )
    met = model.reached(set(start.weights))
    below: _Stage | None = None
    for i, stage in enumerate(claims.stages):
        checked = _Stage(model, claims, stage, f"stages[{i}]", met, below)
        checked.check()
        below = checked
    assert below is not None
    return _Result(model, claims, below, start).bounds()


@dataclass(frozen=True, eq=False)
class _Start:
    """The belief to start from, as given and by state index, without terminal states."""

    belief: Belief
    observation: Hashable
    weights: dict[int, Fraction]
    initial: dict[int, Fraction]

    @classmethod
    def of(cls, model: ExactModel, problem: POMDP, belief: Any, observation: Hashable) -> "_Start":
        named = problem.initial_belief
        if belief is not None:  # of a dict again, as a Belief may have another tolerance than the problem
            named = problem.as_belief(dict(problem.as_belief(belief).items()))
        states = dict.fromkeys(problem.states)
        stray = next((s for s in named if s not in states), None)
        if stray is not None:
            raise ModelError(f"belief: got state {brief(stray)}; expected states of the problem: {listed(states)}.")
        require_observation(observation)
        if observation is not None and observation not in problem.all_observations:
            known = listed(problem.all_observations)
            raise ModelError(f"observation: got {brief(observation)}; expected an observation of the problem: {known}.")
        return cls(
            named,
            observation,
            start_weights(model, problem, named, observation),
            start_weights(model, problem, problem.initial_belief),
        )


_NEAR = Fraction(1, 10**9)  # between a certificate's start and the named belief; bounds are computed from the latter


def _check_start(claims: Claims, model: ExactModel, problem: POMDP, start: _Start) -> None:
    """Raise unless the certificate starts from the named belief."""
    stated = start.initial
    if claims.start is not None:
        total = Fraction(sum(w for _, w in claims.start), 2**claims.weight_bits)
        if total > 1 + _NEAR or (total < 1 - _NEAR and None not in model.legal):
            raise refusal("start", f"weights with the sum {decimal(total, floor)}", "the sum 1")
        stated = {s: Fraction(w, 2**claims.weight_bits) for s, w in claims.start if model.legal[s] is not None}
    none = Fraction(0)
    if all(abs(stated.get(s, none) - start.weights.get(s, none)) <= _NEAR for s in {*stated, *start.weights}):
        return
    n, rest = model.sizes[0], 1.0 - sum(map(float, stated.values()))
    got = brief({problem.states[s % n]: float(w) for s, w in stated.items()})
    got += f" and {rest:.9g} on terminal states" if rest > float(_NEAR) else ""
    advice: list[str | Setting] = ["To verify the certificate's own start, name it as ", Setting("belief")]
    if {s // n for s in stated} != {s // n for s in start.weights}:  # other actions are legal after the observation
        advice += [", with the last observation as ", Setting("observation")]
    raise refusal("start", got, f"{brief(dict(start.belief.items()))}, the belief to start from", *advice, ".")


class _Stage:
    """The claims with one number of actions to go, and the bounds that they give after an action."""

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
        self._outcome_values: dict[tuple[int, int, int], list[int | None]] = {}

    def check(self) -> None:
        """Check every inequality: vectors, informed bound, outcomes, corners, points."""
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
        """Check ``alpha(s) <= R + gamma sum p alpha'`` in every state, over a common denominator."""
        model, ahead = self.model, self.below.stage.vectors
        gain, cost = model.discount
        flows, reward = model.flows[vector.action], model.reward[vector.action]
        scale = cost * model.p_unit << self.claims.value_bits
        unit, weight = model.r_unit * cost * model.p_unit, gain * model.r_unit
        nothing: list[int | None] = [None] * len(model.legal)
        following = [ahead[k].values if 0 <= k < len(ahead) else nothing for k in vector.after]
        flat = list(chain.from_iterable(following))  # by observation and state index, like the flows
        has_gaps = None in flat
        for s, value in enumerate(vector.values):
            if value is None or s not in self.met:
                continue
            legal = model.legal[s]
            if legal is None or vector.action not in legal:
                raise refusal(f"{where}.action", str(vector.action), f"an action that is legal at state index {s}")
            total = 0
            if not self.ends:
                missing = [i for i in flows[s].at if flat[i] is None] if has_gaps else []
                if missing:
                    o, t = divmod(missing[0], len(model.legal))
                    got = f"{vector.after[o]} after observation {o} at state index {s}"
                    raise refusal(f"{where}.after", got, f"a vector with a value at state index {t}")
                total = sum([p * sum(pick(flat)) for p, pick in flows[s].terms])
            if value * unit > reward[s] * scale + weight * total:
                raise refusal(f"{where}.values[{s}]", brief(value), f"at most the backup of action {vector.action}")

    # --- above ---------------------------------------------------------------------------------------------------

    def _check_informed(self, a: int) -> None:
        """``Q(a, s) >= R(s, a) + gamma sum_o max_a' A(a, s, o, a')``."""
        model = self.model
        gain, cost = model.discount
        scale = cost * model.p_unit << self.claims.value_bits
        unit, weight = model.r_unit * cost * model.p_unit, gain * model.r_unit
        row = self.stage.informed[a]
        for s, legal in enumerate(model.legal):
            if legal is None or a not in legal or s not in self.met:
                continue
            where = f"{self.where}.informed[{a}]"
            value = row[s]
            if value is None:
                raise refusal(f"{where}[{s}]", "null", "a value, as the action is legal there")
            total = self._value_after([(s, 1)], a)
            if total is not None and value * unit < model.reward[a][s] * scale + weight * total:
                raise refusal(f"{where}[{s}]", brief(value), f"at least the backup of action {a}")

    def _check_outcome(self, outcome: Outcome, where: str) -> None:
        """``q_j(a) >= R(b_j, a) + gamma sum_o max_a' sum_s b_j(s) A(a, s, o, a')`` for every legal action."""
        model, belief = self.model, outcome.belief
        gain, cost = model.discount
        unit = model.p_unit * cost
        if any(s not in self.met for s, _ in belief):  # nothing that can be met has such an outcome
            return
        for a in self._legal(belief):
            value = outcome.values[a]
            if value is None:
                raise refusal(f"{where}.values[{a}]", "null", "a value, as the action is legal there")
            total = self._value_after(belief, a)
            reward = sum(w * model.reward[a][s] for s, w in belief) << self.claims.value_bits
            scaled = (value << self.claims.weight_bits) * model.r_unit * unit
            if total is not None and scaled < reward * unit + gain * model.r_unit * total:
                raise refusal(f"{where}.values[{a}]", brief(value), f"at least the backup of action {a}")

    def _value_after(self, belief: Weights, a: int) -> int | None:
        """Return the upper bound ``sum_o max_a' sum_s b(s) A(a, s, o, a')`` after action a, or ``None``."""
        sums: dict[int, list[int | None]] = {}
        for s, w in belief:
            for o, entries in () if self.ends else self.model.outcomes[a][s]:
                bounds = self.below.outcome_values(a, s, o, entries)
                pairs = zip(sums.setdefault(o, [0] * len(bounds)), bounds, strict=True)
                sums[o] = [None if v is None or x is None else x + w * v for x, v in pairs]
        total = 0
        for values in sums.values():
            legal = [v for v in values if v is not None]
            if not legal:
                return None
            total += max(legal)
        return total

    def outcome_values(self, a: int, s: int, o: int, entries: Weights) -> list[int | None]:
        """``A(a, s, o, a')`` for every a'; ``None`` if it is not legal after the outcome."""
        known = self._outcome_values.get((a, s, o))
        if known is None:
            known = self._outcome_values[a, s, o] = [None] * self.model.sizes[1]
            i = self.stage.outcome_of.get((a, s, o))
            outcome = None if i is None else self.stage.outcomes[i]
            ratio = None if outcome is None else _least_ratio(dict(entries), outcome.belief)
            for then in self._legal(entries):
                value = self._informed_value(then, entries)
                if outcome is not None and ratio is not None:
                    bound = outcome.values[then]
                    if bound is None:
                        where = f"{self.where}.outcomes[{i}].values[{then}]"
                        raise refusal(where, "null", "a value, as the action is legal there")
                    gap = self._informed_value(then, outcome.belief) - (bound << self.claims.weight_bits)
                    value -= max(0, gap) * ratio[0] // ratio[1]
                known[then] = value
        return known

    def informed(self, weights: Weights) -> int | None:
        """``max_a Q_a . w`` over the actions that are legal at the weights; ``None`` if there is none."""
        return max((self._informed_value(a, weights) for a in self._legal(weights)), default=None)

    def _informed_value(self, a: int, weights: Weights) -> int:
        """``Q_a . w`` of an action that is legal at the weights."""
        row = self.stage.informed[a]
        value = 0
        for s, w in weights:
            q = row[s]
            if q is None:
                raise refusal(f"{self.where}.informed[{a}][{s}]", "null", "a value, as the action is legal there")
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
        """Check that each corner is at least every action's informed value, or at least the value of its point."""
        stage = self.stage
        for s, legal in enumerate(self.model.legal):
            if not legal or s not in self.met:
                continue
            where = f"{self.where}.corners[{s}]"
            corner = stage.corners[s]
            if corner is None:
                raise refusal(where, "null", "a value")
            if s in stage.corner_points:
                point = self._point(stage.corner_points[s], f"{self.where}.corner_points")
                if len(point.belief) != 1 or point.belief[0][0] != s:
                    got = f"point {stage.corner_points[s]}"
                    raise refusal(f"{self.where}.corner_points", got, f"a point of state index {s} alone")
                if corner * point.belief[0][1] < point.value << self.claims.weight_bits:
                    raise refusal(where, brief(corner), f"at least the value of point {stage.corner_points[s]}")
                continue
            for a in legal:
                q = stage.informed[a][s]
                if q is None or corner < q:
                    raise refusal(where, brief(corner), f"at least informed[{a}][{s}]")

    def _point(self, i: int, where: str) -> Point:
        if not 0 <= i < len(self.stage.points):
            raise refusal(where, f"point {i}", f"one of {counted(len(self.stage.points), 'point')}")
        return self.stage.points[i]

    def _check_point(self, point: Point, where: str) -> None:
        """``v >= Q_a . b``, or ``v >= R(b, a) + gamma sum_o V(tau_o)``, for every legal action."""
        model = self.model
        gain, cost = model.discount
        if any(s not in self.met for s, _ in point.belief):
            raise refusal(
                f"{where}.belief", "a state index that cannot be reached", "state indices reached from the start"
            )
        value = point.value << self.claims.weight_bits
        for a in self._legal(point.belief):
            hints = point.actions[a]
            if hints is None:
                holds = value >= self._informed_value(a, point.belief)
            else:
                ahead = self._ahead(point, a, hints, where)
                if ahead is None:
                    continue
                reward = sum(w * model.reward[a][s] for s, w in point.belief) << self.claims.value_bits
                unit = model.p_unit * cost
                holds = value * model.r_unit * unit >= reward * unit + gain * model.r_unit * ahead
            if not holds:
                raise refusal(f"{where}.value", brief(point.value), f"at least the backup of action {a}")

    def _ahead(self, point: Point, a: int, hints: list[int], where: str) -> int | None:
        """``sum_o V(tau_o)``; ``None`` if an outcome has no legal action, so that no policy takes the action."""
        total = 0
        for o, weights in () if self.ends else successors(self.model.outcomes[a], point.belief):
            value = self.below.interpolation(weights, hints[o], where)
            if value is None:
                return None
            total += value
        return total

    def interpolation(self, weights: Weights, hint: int, where: str) -> int | None:
        """Return ``V(w)``: the informed bound, or ``corner . w + c (v - corner . b)``.

        Here c is the least ``w(s) / b(s)``.
        """
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
    """Return the least ``w(s) / b(s)`` as numerator and denominator; ``None`` if it is 0."""
    top, bottom = 1, 0  # the least ratio so far; 1 / 0 before the first
    for s, b in belief:
        w = dense.get(s, 0)
        if w * bottom < top * b:
            top, bottom = w, b
            if w == 0:
                return None
    return top, bottom


@dataclass(frozen=True, eq=False)
class _Result:
    """The bounds at the start, from the stage with all actions to go."""

    model: ExactModel
    claims: Claims
    stage: _Stage
    start: _Start

    def bounds(self) -> VerifiedBounds:
        claims, start = self.claims, self.start
        unit = 2**claims.value_bits
        lower, upper = Fraction(claims.lower, unit), Fraction(claims.upper, unit)
        least, most = self._lower() / unit, self._upper() / unit
        if lower > least:
            raise refusal("lower", decimal(lower, floor), f"at most {decimal(least, floor)}, the vector's value")
        if upper < most:
            raise refusal("upper", decimal(upper, ceil), f"at least {decimal(most, ceil)}, the value of the points")
        horizon = claims.horizon
        if horizon is not None and self.model.terminates(set(start.weights), horizon):
            horizon = None
        return VerifiedBounds(
            lower,
            upper,
            problem=self.model.fingerprint(start.initial),
            belief=start.belief,
            observation=start.observation,
            is_initial=start.weights == start.initial,
            horizon=horizon,
            discount=Fraction(*self.model.discount),
            n_vectors=sum(len(stage.vectors) for stage in claims.stages),
            n_points=sum(len(stage.points) for stage in claims.stages),
        )

    def _lower(self) -> Fraction:
        """Return ``alpha . b``."""
        if not self.start.weights:
            return Fraction(0)
        k, vectors = self.claims.vector, self.stage.stage.vectors
        if k >= len(vectors):
            raise refusal("vector", str(k), f"one of {counted(len(vectors), 'vector')}")
        total = Fraction(0)
        for s, w in self.start.weights.items():
            value = vectors[k].values[s]
            if value is None:
                raise refusal("vector", str(k), f"a vector with a value at state index {s} of the start")
            total += w * value
        return total

    def _upper(self) -> Fraction:
        """Return ``V(b)``."""
        start = self.start.weights
        if not start:
            return Fraction(0)
        common = lcm(*(w.denominator for w in start.values()))
        weights = [(s, int(w * common)) for s, w in start.items()]
        bound = self.stage.interpolation(weights, self.claims.hint, "hint")
        if bound is None:
            raise refusal("start", "a belief without a legal action", "a belief with one")
        return Fraction(bound, common)
