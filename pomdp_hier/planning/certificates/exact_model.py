"""A problem in whole numbers: what a certificate is checked against.

Every number of the model is taken as the decimal that it is written as: a float as the shortest decimal that reads as
this float, an integer or a fraction as it is. Nothing is rescaled, so that rows need not sum to exactly 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import lcm
from operator import itemgetter
from typing import Any

import numpy as np

from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number, brief

__all__ = ["ExactModel", "as_fraction", "exact_model"]

Outcomes = list[tuple[int, list[tuple[int, int]]]]


def as_fraction(value: Number, where: str) -> Fraction:
    """Return a number as a fraction; a float as the shortest decimal that reads as this float.

    Raises:
        ModelError: It is no finite number.

    Example:
        >>> as_fraction(0.1, "reward"), as_fraction(3, "reward")
        (Fraction(1, 10), Fraction(3, 1))
    """
    try:
        if isinstance(value, float | np.floating):
            return Fraction(repr(float(value)))
        return Fraction(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{where}: {brief(value)} is not a finite number, which a certificate needs") from error


@dataclass(frozen=True, slots=True)
class Flow:
    """The outcomes of an action in a place, for sums over a list by observation and place.

    Attributes:
        at: ``observation * n_places + place`` of each.
        terms: Each probability, with what picks the entries that have it out of the list.
    """

    at: list[int]
    terms: list[tuple[int, "itemgetter[Any]"]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactModel:
    """A problem in whole numbers.

    A place is a state, or, where legal actions depend on the last observation, a state and the set of actions that are
    then legal: place ``kind * n_states + s``, the kinds in the order in which the observations first give them, then
    the start. Terminal states are no places: whatever leads there earns nothing more.

    Attributes:
        sizes: The numbers of states, actions and observations.
        legal: Of each place, the legal actions; ``None`` where the process is over.
        kind_after: The kind after each observation, and at the start.
        outcomes: Of each action and place, ``[(observation, [(place, probability), ...]), ...]``.
        reward: Of each action and place, the expected reward.
        chance: What probabilities are divided by.
        money: What rewards are divided by.
        discount: Numerator and denominator of gamma.
    """

    sizes: tuple[int, int, int]
    legal: list[frozenset[int] | None]
    kind_after: list[int]
    outcomes: list[list[Outcomes]]
    reward: list[list[int]]
    chance: int
    money: int
    discount: tuple[int, int]

    @cached_property
    def flows(self) -> list[list["Flow"]]:
        """The outcomes of each action and place, gathered by their probabilities."""
        return [[self._flow(row) for row in rows] for rows in self.outcomes]

    def _flow(self, row: Outcomes) -> "Flow":
        n = len(self.legal)
        by_chance: dict[int, list[int]] = {}
        for o, entries in row:
            for t, p in entries:
                by_chance.setdefault(p, []).append(o * n + t)
        pick = [itemgetter(*at) if len(at) > 1 else itemgetter(slice(at[0], at[0] + 1)) for at in by_chance.values()]
        return Flow(list(chain.from_iterable(by_chance.values())), list(zip(by_chance, pick, strict=True)))

    def is_over(self, places: set[int], steps: int) -> bool:
        """Return whether the process is over after so many actions from any of the places, whatever is done."""
        for _ in range(steps):
            places = {t for s in places for t in self._after(s)}
            if not places:
                return True
        return not places

    def reached(self, places: set[int]) -> set[int]:
        """Return the places that can be met from these, themselves among them."""
        met = set(places)
        queue = list(places)
        for s in queue:  # grows while it is walked
            fresh = set(self._after(s)) - met
            met |= fresh
            queue += fresh
        return met

    def _after(self, s: int) -> Iterator[int]:
        """Yield the places that can follow a place."""
        for a in self.legal[s] or ():
            for _, entries in self.outcomes[a][s]:
                for t, _ in entries:
                    yield t

    def shrinks(self) -> bool:
        """Return whether a backup brings any two value functions closer: gamma times every row sum is below 1."""
        gain, cost = self.discount
        most = max(
            (sum(p for _, entries in row for _, p in entries) for rows in self.outcomes for row in rows), default=0
        )
        return gain * most < cost * self.chance


def exact_model(problem: POMDP) -> ExactModel:
    """Return the problem in whole numbers.

    Args:
        problem: Any problem whose legal actions depend on the state or on the last observation.

    Raises:
        ModelError: Legal actions depend on the belief, or a number is none.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> model = exact_model(tiger())
        >>> model.discount, model.reward[0][0] / model.money
        ((19, 20), -1.0)
    """
    if problem.legal_by == "belief":
        raise ModelError("legal_actions: they depend on the belief; a certificate needs them to depend on the state")
    return _Builder(problem).model()


class _Builder:
    """Reads the numbers of a problem through its models."""

    def __init__(self, problem: POMDP) -> None:
        self.problem = problem
        self.index = {state: i for i, state in enumerate(problem.states)}
        self.seen = {o: i for i, o in enumerate(problem.all_observations)}
        self.known: dict[Any, Fraction] = {}
        self.uses_observation = problem.reward_model.uses_observation

    def number(self, value: Number, where: str) -> Fraction:
        known = self.known.get(value)
        if known is None or type(value) is bool:
            known = self.known[value] = as_fraction(value, where)
        return known

    def model(self) -> ExactModel:
        problem = self.problem
        states, actions, observations = problem.states, problem.all_actions, problem.all_observations
        kinds, kind_after = self._kinds()
        legal = self._legal(kinds)
        flows = [[self._flow(a, s, legal) for s in range(len(states))] for a in range(len(actions))]
        chance = lcm(*(p.denominator for rows in flows for row in rows for _, _, p, _ in row), 1)
        rewards = [[self._earned(a, s, row) for s, row in enumerate(rows)] for a, rows in enumerate(flows)]
        money = lcm(*(r.denominator for row in rewards for r in row), 1)
        n = len(states)
        outcomes: list[list[Outcomes]] = []
        for rows in flows:
            grouped = [self._grouped(row, chance, kind_after) for row in rows]
            outcomes.append([grouped[place % n] for place in range(n * len(kinds))])
        gamma = self.number(problem.discount, "discount")
        return ExactModel(
            sizes=(n, len(actions), len(observations)),
            legal=legal,
            kind_after=kind_after,
            outcomes=outcomes,
            reward=[[int(row[place % n] * money) for place in range(n * len(kinds))] for row in rewards],
            chance=chance,
            money=money,
            discount=(gamma.numerator, gamma.denominator),
        )

    def _kinds(self) -> tuple[list[frozenset[int] | None], list[int]]:
        """Return the sets of legal actions (``None`` where the state says them), and which holds after what."""
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
        """Return the legal actions of each place."""
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
        """``[(observation, state, probability, reward), ...]`` of an action in a state; none where it is not legal.

        A reward without an observation is earned whatever is observed, in the parts in which the observations come;
        where these do not sum to 1, the rest is earned with observation -1.
        """
        problem = self.problem
        n = len(problem.states)
        here = [legal[place] for place in range(s, len(legal), n)]
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

    def _earned(self, a: int, s: int, row: list[tuple[int, int, Fraction, Fraction]]) -> Fraction:
        """Return the expected reward; one that depends on the state and the action alone is not weighed."""
        if row and not (self.uses_observation or self.problem.reward_model.uses_next_state):
            return row[0][3]
        return sum((p * r for _, _, p, r in row), Fraction(0))

    def _grouped(self, row: list[tuple[int, int, Fraction, Fraction]], chance: int, kind_after: list[int]) -> Outcomes:
        """Return the outcomes by observation, in whole numbers, without those where the process is over."""
        n = len(self.problem.states)
        grouped: dict[int, list[tuple[int, int]]] = {}
        for o, s, p, _ in row:
            if o >= 0 and not self.problem.is_terminal(self.problem.states[s]):
                place = kind_after[o] * n + s
                grouped.setdefault(o, []).append((place, p.numerator * (chance // p.denominator)))
        return sorted(grouped.items())
