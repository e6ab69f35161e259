"""A problem in exact integer arithmetic, as the verifier of certificates reads it.

A float is read as the shortest decimal that rounds to it; integers and fractions are exact. Nothing is rescaled, and
rows need not sum to exactly 1. `solve_in_fractions` solves linear equations exactly, for the values of controllers.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import chain
from math import lcm
from operator import itemgetter
from typing import Any

import numpy as np

from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP

Outcomes = list[tuple[int, list[tuple[int, int]]]]


def as_fraction(value: Number, where: str) -> Fraction:
    """Return a finite number as a fraction; a float as the shortest decimal that rounds to it."""
    try:
        if isinstance(value, float | np.floating):
            return Fraction(repr(float(value)))
        return Fraction(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{where}: got {brief(value)}; expected a finite number, for an exact model.") from error


@dataclass(frozen=True, slots=True)
class Flow:
    """The outcomes of an action at a state index, for sums over a flat list by observation and state index.

    Attributes:
        at: ``observation * n_indices + state index`` of each.
        terms: Each probability, with the getter of its entries in the list.
    """

    at: list[int]
    terms: list[tuple[int, "itemgetter[Any]"]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactModel:
    """A problem in exact integer arithmetic.

    A state index is a state, or, where legal actions depend on the last observation, a state with a set of legal
    actions: index ``kind * n_states + s``. The kinds are numbered as the observations first give them, the start last.
    Outcomes leave out terminal states, whose value is 0.

    Attributes:
        sizes: The numbers of states, actions and observations.
        legal: The legal actions per state index; ``None`` for terminal states.
        kind_after: The kind after each observation, and at the start.
        outcomes: Per action and state index, ``[(observation, [(state index, probability), ...]), ...]``.
        reward: The expected reward per action and state index.
        p_unit: The denominator of probabilities.
        r_unit: The denominator of rewards.
        discount: Numerator and denominator of gamma.
    """

    sizes: tuple[int, int, int]
    legal: list[frozenset[int] | None]
    kind_after: list[int]
    outcomes: list[list[Outcomes]]
    reward: list[list[int]]
    p_unit: int
    r_unit: int
    discount: tuple[int, int]

    @cached_property
    def flows(self) -> list[list["Flow"]]:
        """The outcomes per action and state index, grouped by probability."""
        return [[self._flow(row) for row in rows] for rows in self.outcomes]

    def _flow(self, row: Outcomes) -> "Flow":
        n = len(self.legal)
        by_probability: dict[int, list[int]] = {}
        for o, entries in row:
            for t, p in entries:
                by_probability.setdefault(p, []).append(o * n + t)
        pick = [
            itemgetter(*at) if len(at) > 1 else itemgetter(slice(at[0], at[0] + 1)) for at in by_probability.values()
        ]
        return Flow(list(chain.from_iterable(by_probability.values())), list(zip(by_probability, pick, strict=True)))

    def terminates(self, start: set[int], steps: int | None = None) -> bool:
        """Return whether the process surely terminates from these state indices, within n steps if given."""
        most, n = len(self.legal), 0  # a path of more steps than there are indices visits one twice
        while start and n < (most if steps is None else min(steps, most)):
            start, n = {t for s in start for t in self._after(s)}, n + 1
        return not start

    def reached(self, start: set[int]) -> set[int]:
        """Return the state indices that can be reached from these, themselves included."""
        met = set(start)
        queue = list(start)
        for s in queue:  # grows during the loop
            fresh = set(self._after(s)) - met
            met |= fresh
            queue += fresh
        return met

    def _after(self, s: int) -> Iterator[int]:
        """Yield the state indices that can follow a state index."""
        for a in self.legal[s] or ():
            for _, entries in self.outcomes[a][s]:
                for t, _ in entries:
                    yield t

    def fingerprint(self, start: dict[int, Fraction]) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of all numbers of the problem and its initial belief.

        Equal problems have equal fingerprints, whether their numbers are floats or fractions. Names do not count, the
        order of states, actions and observations does.
        """
        legal = [None if actions is None else sorted(actions) for actions in self.legal]
        rows = [[[(o, sorted(entries)) for o, entries in row] for row in rows] for rows in self.outcomes]
        numbers = (
            self.sizes,
            legal,
            self.kind_after,
            rows,
            self.reward,
            self.p_unit,
            self.r_unit,
            self.discount,
        )
        weights = [(s, w.numerator, w.denominator) for s, w in sorted(start.items())]
        digest = sha256()
        for part in (*numbers, weights):
            digest.update(repr(part).encode())
        return digest.hexdigest()[:16]

    def shrinks(self) -> bool:
        """Return whether a backup is a contraction: gamma times every row sum is below 1."""
        gain, cost = self.discount
        most = max(
            (sum(p for _, entries in row for _, p in entries) for rows in self.outcomes for row in rows), default=0
        )
        return gain * most < cost * self.p_unit


def start_weights(
    model: ExactModel, problem: POMDP, belief: Belief, observation: Hashable = None
) -> dict[int, Fraction]:
    """Return the probabilities of a belief by state index, without terminal states.

    Args:
        model: The exact model of the problem.
        problem: The problem.
        belief: A belief over its states.
        observation: One of its observations, or ``None`` at the start.
    """
    index = {state: i for i, state in enumerate(problem.states)}
    kind = model.kind_after[-1 if observation is None else problem.all_observations.index(observation)]
    weights = {kind * model.sizes[0] + index[s]: as_fraction(p, "belief") for s, p in belief.items()}
    return {s: w for s, w in weights.items() if model.legal[s] is not None}


def fingerprint(problem: POMDP, *, belief_reward: bool = False) -> str:
    """Return the fingerprint of all numbers of a problem; see `ExactModel.fingerprint`.

    Args:
        problem: The problem.
        belief_reward: Whether it may have a belief-dependent reward, which the fingerprint leaves out.
    """
    model = exact_model(problem, belief_reward=belief_reward)
    return model.fingerprint(start_weights(model, problem, problem.initial_belief))


def exact_model(problem: POMDP, *, belief_reward: bool = False) -> ExactModel:
    """Return the problem in exact integer arithmetic.

    Args:
        problem: Any problem whose legal actions depend on the state or on the last observation.
        belief_reward: Whether it may have a belief-dependent reward, which is left out.
    """
    if not belief_reward:
        problem.require_state_rewards("a certificate")
    if problem.legal_by == "belief":
        raise ModelError(
            "legal_actions: got actions by belief; expected actions by state or observation, for an exact model."
        )
    return _Builder(problem).model()


class _Builder:
    """Reader of a problem's numbers through its models."""

    def __init__(self, problem: POMDP) -> None:
        self.problem = problem
        self.index = {state: i for i, state in enumerate(problem.states)}
        self.seen = {o: i for i, o in enumerate(problem.all_observations)}
        self.known: dict[Any, Fraction] = {}
        self.uses_observation = problem.reward_model.uses_observation

    def number(self, value: Number, where: str) -> Fraction:
        key = type(value), value  # the integer 99999999999999991611392 equals the float 1e23, which is read as 10 ** 23
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = as_fraction(value, where)
        return known

    def model(self) -> ExactModel:
        problem = self.problem
        states, actions, observations = problem.states, problem.all_actions, problem.all_observations
        kinds, kind_after = self._kinds()
        legal = self._legal(kinds)
        flows = [[self._flow(a, s, legal) for s in range(len(states))] for a in range(len(actions))]
        p_unit = lcm(*(p.denominator for rows in flows for row in rows for _, _, p, _ in row), 1)
        rewards = [[self._expected_reward(a, s, row) for s, row in enumerate(rows)] for a, rows in enumerate(flows)]
        r_unit = lcm(*(r.denominator for row in rewards for r in row), 1)
        n = len(states)
        outcomes: list[list[Outcomes]] = []
        for rows in flows:
            grouped = [self._grouped(row, p_unit, kind_after) for row in rows]
            outcomes.append(grouped * len(kinds))
        gamma = self.number(problem.discount, "discount")
        return ExactModel(
            sizes=(n, len(actions), len(observations)),
            legal=legal,
            kind_after=kind_after,
            outcomes=outcomes,
            reward=[[int(r * r_unit) for r in row] * len(kinds) for row in rewards],
            p_unit=p_unit,
            r_unit=r_unit,
            discount=(gamma.numerator, gamma.denominator),
        )

    def _kinds(self) -> tuple[list[frozenset[int] | None], list[int]]:
        """Return the sets of legal actions (``None``: by state), and the kind after each observation."""
        problem = self.problem
        if problem.legal_by != "observation" or all(map(problem.is_terminal, problem.states)):
            return [None], [0] * (len(problem.all_observations) + 1)
        alive = next(s for s in problem.states if not problem.is_terminal(s))
        position = {a: i for i, a in enumerate(problem.all_actions)}
        found: dict[frozenset[int], int] = {}
        after = []
        for o in (*problem.all_observations, None):
            allowed = frozenset(position[a] for a in problem.actions(Belief.certain(alive), o))
            after.append(found.setdefault(allowed, len(found)))
        return list(found), after

    def _legal(self, kinds: list[frozenset[int] | None]) -> list[frozenset[int] | None]:
        """Return the legal actions per state index."""
        problem = self.problem
        position = {a: i for i, a in enumerate(problem.all_actions)}
        legal: list[frozenset[int] | None] = []
        for allowed in kinds:
            for state in problem.states:
                if problem.is_terminal(state):
                    legal.append(None)
                elif allowed is not None:
                    legal.append(allowed)
                else:
                    legal.append(frozenset(position[a] for a in problem.possible_actions(state) if a in position))
        return legal

    def _flow(self, a: int, s: int, legal: list[frozenset[int] | None]) -> list[tuple[int, int, Fraction, Fraction]]:
        """Return ``[(observation, state, probability, reward), ...]``, empty if the action is not legal.

        A reward that does not depend on the observation has the weight of the transition alone. Where the observation
        probabilities do not sum to 1, the rest has observation -1.
        """
        problem = self.problem
        n = len(problem.states)
        here = legal[s::n]
        if not any(allowed is not None and a in allowed for allowed in here):
            return []
        state, action = problem.states[s], problem.all_actions[a]
        row = []
        for next_state, probability in problem.successors(state, action).items():
            p = self.number(probability, "transition")
            if p == 0:
                continue
            reward = None if self.uses_observation else problem.step_reward(state, action, next_state)
            rest = Fraction(1)
            for o, likelihood in problem.observation_distribution(next_state, action, state).items():
                z = self.number(likelihood, "observation")
                if z != 0:
                    rest -= z
                    r = problem.step_reward(state, action, next_state, o) if reward is None else reward
                    row.append((self.seen[o], self.index[next_state], p * z, self.number(r, "reward")))
            if reward is not None and rest != 0:
                row.append((-1, self.index[next_state], p * rest, self.number(reward, "reward")))
        return row

    def _expected_reward(self, a: int, s: int, row: list[tuple[int, int, Fraction, Fraction]]) -> Fraction:
        """Return the expected reward; a reward of state and action alone is not weighted by the row."""
        if row and not (self.uses_observation or self.problem.reward_model.uses_next_state):
            return row[0][3]
        return sum((p * r for _, _, p, r in row), Fraction(0))

    def _grouped(self, row: list[tuple[int, int, Fraction, Fraction]], p_unit: int, kind_after: list[int]) -> Outcomes:
        """Return the outcomes by observation, over ``p_unit``, without terminal states."""
        n = len(self.problem.states)
        grouped: dict[int, list[tuple[int, int]]] = {}
        for o, s, p, _ in row:
            if o >= 0 and not self.problem.is_terminal(self.problem.states[s]):
                grouped.setdefault(o, []).append((kind_after[o] * n + s, p.numerator * (p_unit // p.denominator)))
        return sorted(grouped.items())


def successors(outcomes: list[Outcomes], belief: list[tuple[int, int]]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the weights after an action: ``tau_o(s') = sum_s b(s) p(s', o | s, a)`` for every possible observation."""
    rows: dict[int, dict[int, int]] = {}
    for s, w in belief:
        for o, entries in outcomes[s]:
            row = rows.get(o)
            if row is None:
                row = rows[o] = {}
            for t, p in entries:
                row[t] = row.get(t, 0) + w * p
    return [(o, list(row.items())) for o, row in rows.items()]


Row = dict[int, Fraction]


def solve_in_fractions(
    problem: POMDP, actions: list[int], after: list[list[int]], without: Iterable[int] = ()
) -> list[list[Fraction | None]]:
    """Return ``[N][S]``, the value of each node in each state; ``None`` where an action is not legal.

    Args:
        problem: The problem.
        actions: ``[N]``, the index of each node's action.
        after: ``[N][O]``, the next node, -1 for none.
        without: The pairs ``k S + s`` of node and state without a value.
    """
    model = exact_model(problem)
    size = model.sizes[0]
    gamma = Fraction(*model.discount)
    rows: dict[int, Row] = {}
    rewards: dict[int, Fraction] = {}
    missing = set(without)
    for k, a in enumerate(actions):
        for s in range(size):
            legal, at = model.legal[s], k * size + s
            if legal is None:
                continue
            if a not in legal and len(model.legal) == size:
                missing.add(at)
                continue
            row: Row = {at: Fraction(1)}
            for o, entries in model.outcomes[a][s]:
                if after[k][o] >= 0:
                    for t, p in entries:
                        if actions[after[k][o]] not in (model.legal[t] or ()):
                            missing.add(at)
                        then = after[k][o] * size + t % size
                        row[then] = row.get(then, Fraction(0)) - gamma * Fraction(p, model.p_unit)
            rows[at], rewards[at] = row, Fraction(model.reward[a][s], model.r_unit)
    _spread(rows, missing)
    for at in missing:
        rows.pop(at, None)
    solved = _eliminate(rows, rewards)
    return [
        [None if k * size + s in missing else solved.get(k * size + s, Fraction(0)) for s in range(size)]
        for k in range(len(actions))
    ]


def _spread(rows: dict[int, Row], missing: set[int]) -> None:
    """Add all pairs that can reach one without a value."""
    before = -1
    while len(missing) != before:
        before = len(missing)
        missing.update(at for at, row in rows.items() if at not in missing and not missing.isdisjoint(row))


def _eliminate(rows: dict[int, Row], right: dict[int, Fraction]) -> dict[int, Fraction]:
    """Solve the equations; an unknown without a row is 0. The matrix is diagonally dominant."""
    rows = {at: {c: v for c, v in row.items() if c in rows} for at, row in rows.items()}
    users: dict[int, set[int]] = {at: set() for at in rows}
    for at, row in rows.items():
        for c in row:
            users[c].add(at)
    order = sorted(rows, key=lambda at: len(rows[at]) * len(users[at]))
    done: dict[int, None] = {}
    for pivot in order:
        row, top = rows[pivot], rows[pivot][pivot]
        for at in list(users[pivot]):
            if at == pivot or at in done:
                continue
            factor = rows[at].pop(pivot) / top
            for c, v in row.items():
                if c != pivot:
                    users[c].add(at)
                    rows[at][c] = rows[at].get(c, Fraction(0)) - factor * v
            right[at] -= factor * right[pivot]
        done[pivot] = None
    solved: dict[int, Fraction] = {}
    for pivot in reversed(done):
        rest = sum((v * solved[c] for c, v in rows[pivot].items() if c != pivot and c in solved), Fraction(0))
        solved[pivot] = (right[pivot] - rest) / rows[pivot][pivot]
    return solved
