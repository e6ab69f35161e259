"""Policies for the search for one item: the stopping rules as policies on beliefs, and others.

The vectorised engines (`pomdp_hier._engines`) implement policies as stopping rules at nodes. Here the same policies
decide from a belief, by planning in the POMDP of the item. The two implementations test each other. `search_policy`
returns the policy of a rule or a name.

A policy that needs the environment has ``for_environment(environment)``, which the generic engine calls for each item.
Examples are the hindsight policy, and one that plans with the environment's model.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pomdp_hier._arguments import unexpected
from pomdp_hier._engines import task
from pomdp_hier._engines.task import Tie
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.model import Descend, Search, SearchState
from pomdp_hier.planning import RTBSS, ImmediateValue
from pomdp_hier.planning.decision import Decision, Policy, where_to_decide
from pomdp_hier.planning.policies import HoldsPolicy, as_policy
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_exact, total
from pomdp_hier.pomdp.problem import POMDP

SEARCH, DESCEND = Search(), Descend()

ROUNDING = 8.9e-16
"""Rounding error of Q values in [-1, 1]: a few units in the last place of 1."""


def node_of(belief: Belief) -> Any:
    """Return the node of the searcher, which it always observes."""
    state = belief.support[0]
    if not isinstance(state, SearchState):
        raise ModelError(f"state: got {brief(state)}; expected a SearchState. Pass a problem made by search_problem().")
    return state.node


def standing(belief: Belief) -> tuple[Any, Number]:
    """Return the node of the searcher, and ``b(<c,1>)``, the probability that it holds the item."""
    node = node_of(belief)
    return node, belief[SearchState(node, 1)]


def guidance_at(problem: POMDP, node: Any) -> dict[Any, Number]:
    """Return ``{c': eta(c, c')}`` of a node; empty if descending is illegal."""
    if DESCEND not in problem.actions(Belief.certain(SearchState(node, 1))):
        return {}
    eta: dict[Any, Number] = problem.transition.eta[node]
    return eta


def reward_at(problem: POMDP, node: Any) -> Number:
    """Return ``r(c)``, the reward of finding the item in the node."""
    return problem.expected_reward(SearchState(node, 1), SEARCH)


def true_path(environment: POMDP) -> list[tuple[Any, Number]]:
    """Return the nodes that hold the item, from the root, with their probability, the product of eta."""
    node, probability = node_of(environment.initial_belief), 1
    path: list[tuple[Any, Number]] = [(node, probability)]
    while True:
        state = SearchState(node, 1)
        if DESCEND not in environment.actions(Belief.certain(state)):
            return path
        node, eta = next((s.node, p) for s, p in environment.successors(state, DESCEND).items() if s.on_path)
        probability = probability * eta
        path.append((node, probability))


def _decision(descends: bool, values: Mapping[Any, Number], ties: tuple[Any, ...] = ()) -> Decision:
    action = DESCEND if descends else SEARCH
    return Decision(action, value=values.get(action), q_values=values, ties=ties)


@dataclass(frozen=True)
class AlgorithmOne:
    """The paper's Algorithm 1, literally: compare two values at the belief.

    ``Q(b, search) = b (r(c) + 1) - 1`` against ``Qhat(b, descend) = sum_c' eta(c, c') (b' (r(c') + 1) - 1)`` with
    ``b' = eta(c, c') b``.

    Attributes:
        tie: "search" as in the algorithm, or "descend" as in its walk-through.

    References:
        Huang, Piao, Moreno and Hurley, Algorithm 1.
    """

    tie: Tie = "descend"

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief."""
        belief, legal = where_to_decide(problem, belief, observation)
        node, held = standing(belief)
        here = reward_at(problem, node) + 1
        if DESCEND not in legal:
            return _decision(False, {SEARCH: held * here - 1})
        below = {child: (eta, reward_at(problem, child) + 1) for child, eta in guidance_at(problem, node).items()}
        descend = total(eta * (eta * held * gross - 1) for eta, gross in below.values())
        return _by_margin(held, here, below.values(), self.tie, {SEARCH: held * here - 1, DESCEND: descend})


def _by_margin(
    held: Number, here: Number, below: Collection[tuple[Number, Number]], tie: Tie, values: Mapping[Any, Number]
) -> Decision:
    """Return the better action, compared by the margin as the vectorised engines do."""
    loss = held * here * total(eta * (1 - eta) for eta, _ in below)
    margin = held * total(eta * eta * (gross - here) for eta, gross in below) - loss
    descends, searches = (_goes(margin, loss, rule) for rule in ("descend", "search"))
    return _decision(
        searches if tie == "search" else descends, values, (SEARCH, DESCEND) if descends != searches else ()
    )


def _goes(margin: Number, loss: Number, tie: Tie) -> bool:
    """Return `task.descends` for one number; exact numbers tie if they are equal."""
    if is_exact(margin):
        return bool(margin > 0 or (margin == 0 and tie == "descend"))
    return bool(task.descends(np.asarray(margin, dtype=np.float64), np.asarray(loss, dtype=np.float64), tie))


@dataclass(frozen=True)
class PlannedSearch:
    """A planner with Q values, and the tie rule of a search.

    Attributes:
        planner: A `Policy` whose decisions carry ``q_values``.
        tie: The action if searching and descending have the same value.
        tolerance: The difference up to which floats tie; exact numbers must be equal.
    """

    planner: Policy
    tie: Tie = "descend"
    tolerance: float = ROUNDING

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief."""
        decision = self.planner.decide(problem, belief, observation=observation)
        values, status = decision.q_values, decision.stats.get("status", {})
        both = SEARCH in values and DESCEND in values
        if not both or any(status.get(action, "exact") != "exact" for action in (SEARCH, DESCEND)):
            return decision
        chosen = _by_tie(values[SEARCH], values[DESCEND], self.tie, self.tolerance)
        return Decision(chosen.action, decision.value, values, chosen.ties, decision.stats)


def _by_tie(search: Number, descend: Number, tie: Tie, tolerance: float) -> Decision:
    """Return the better of two Q values; the tie rule decides within the tolerance."""
    difference = descend - search
    tied = bool(difference == 0 if is_exact(difference) else abs(difference) <= tolerance)
    descends = tie == "descend" if tied else bool(difference > 0)
    return _decision(descends, {SEARCH: search, DESCEND: descend}, (SEARCH, DESCEND) if tied else ())


def rtbss_policy(depth: int, tie: Tie = "descend") -> PlannedSearch:
    """Return RTBSS with this depth and the value of searching as leaf value.

    Depth 1 is the paper's one-step policy.

    Example:
        >>> rtbss_policy(2).planner.depth
        2
    """
    planner = RTBSS(depth, leaf_value=ImmediateValue(SEARCH), ties="all", tie_tolerance=ROUNDING)
    return PlannedSearch(planner, tie)


def paper_readings(tie: Tie = "descend") -> dict[str, PlannedSearch]:
    """Return three readings of the paper's "RTBSS with two look-aheads".

    ``"expand"`` is the appendix's algorithm: depth 2 with the best immediate reward as leaf value. ``"max-0"`` has
    depth 1, and the leaf value of searching a child, or 0 if that is larger and the child is internal. ``"search"`` is
    the simplification behind the paper's results: depth 1 with the leaf value of searching.

    References:
        Huang, Piao, Moreno and Hurley, section 4.1 and the appendix's Expand.
    """
    literal = RTBSS(2, leaf_value="immediate", ties="all", tie_tolerance=ROUNDING)
    clipped = RTBSS(1, leaf_value="immediate", ties="all", tie_tolerance=ROUNDING)
    return {"expand": PlannedSearch(literal, tie), "max-0": PlannedSearch(clipped, tie), "search": rtbss_policy(1, tie)}


class OptimalSearch:
    """The optimal policy of the agent's model, by one pass over the nodes.

    Every value of the agent has the form ``b W_c - 1`` with ``W_c = max(r(c) + 1, sum_c' eta(c, c')**2 W_c')``, and
    ``W = r + 1`` at a leaf cluster. The decision depends on the node alone.
    """

    def __init__(self, tie: Tie = "descend") -> None:
        self.tie: Tie = tie
        self._solved: tuple[POMDP, dict[Any, Number]] | None = None

    def value_plus_one(self, problem: POMDP, node: Any) -> Number:
        """Return ``W_c``, the value of the node at belief 1, plus 1."""
        if self._solved is None or self._solved[0] is not problem:
            self._solved = (problem, {})
        known = self._solved[1]
        waiting = [node]
        while waiting:
            current = waiting[-1]
            below = guidance_at(problem, current)
            unknown = [child for child in below if child not in known]
            if current not in known and unknown:
                waiting.extend(unknown)
                continue
            if current not in known:
                known[current] = max(reward_at(problem, current) + 1, self._ahead(below, known))
            waiting.pop()
        return known[node]

    @staticmethod
    def _ahead(below: Mapping[Any, Number], known: Mapping[Any, Number]) -> Number:
        return total(eta * eta * known[child] for child, eta in below.items())

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief."""
        node, held = standing(problem.initial_belief if belief is None else problem.as_belief(belief))
        here = reward_at(problem, node) + 1
        self.value_plus_one(problem, node)
        below = guidance_at(problem, node)
        if not below:
            return _decision(False, {SEARCH: held * here - 1})
        known = self._solved[1] if self._solved else {}
        values = {SEARCH: held * here - 1, DESCEND: held * self._ahead(below, known) - 1}
        return _by_margin(1, here, [(eta, known[child]) for child, eta in below.items()], self.tie, values)

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings; the solution is computed again when needed."""
        return {**self.__dict__, "_solved": None}

    def __repr__(self) -> str:
        return f"OptimalSearch(tie={self.tie!r})"


class HindsightSearch:
    """The hindsight policy: stops where the value along the true path is largest, an upper bound for every policy.

    It stops at ``argmax_t (r(c_t) + 1) prod eta - 1`` on the true path, which a searcher cannot observe.

    References:
        Moreno (2017) assumes such a searcher.
    """

    def __init__(self, tie: Tie = "descend", environment: POMDP | None = None) -> None:
        self.tie: Tie = tie
        self._ahead: frozenset[Any] | None = None
        if environment is not None:
            path = true_path(environment)
            values = [(reward_at(environment, node) + 1) * p for node, p in path]
            best = 0
            for at, value in enumerate(values[1:], 1):
                if _goes(value - values[best], values[best], tie):
                    best = at
            self._ahead = frozenset(node for node, _ in path[:best])

    def for_environment(self, environment: POMDP) -> "HindsightSearch":
        """Return the policy for one item."""
        return HindsightSearch(self.tie, environment)

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the node of the belief."""
        if self._ahead is None:
            raise PlanningError(
                "environment: got None; expected the environment of the item. Call for_environment(environment)."
            )
        belief = problem.initial_belief if belief is None else problem.as_belief(belief)
        return Decision(DESCEND if node_of(belief) in self._ahead else SEARCH)

    def __repr__(self) -> str:
        return f"HindsightSearch(tie={self.tie!r})"


class PlansInEnvironment(HoldsPolicy):
    """A planner run on the environment's model instead of the agent's, from the agent's belief."""

    holds = "policy"

    def __init__(self, policy: Any, environment: POMDP | None = None) -> None:
        self.policy = as_policy(policy)
        self.environment = environment

    def for_environment(self, environment: POMDP) -> "PlansInEnvironment":
        """Return the policy for one item."""
        return PlansInEnvironment(self.policy, environment)

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision of the planner in the environment's model."""
        if self.environment is None:
            raise PlanningError(
                "environment: got None; expected the environment of the item. Call for_environment(environment)."
            )
        belief = problem.initial_belief if belief is None else problem.as_belief(belief)
        return self.policy.decide(self.environment, belief, observation=observation)

    def __repr__(self) -> str:
        return f"PlansInEnvironment({self.policy!r})"


@dataclass(frozen=True)
class FixedLevel:
    """A stopping rule: descend to a level, or to a leaf cluster above it, and search there.

    Attributes:
        level: The level; 0 is the root's.

    Raises:
        ParameterError: The level is negative.

    Example:
        >>> FixedLevel(1).descend(np.ones((2, 1)), np.ones(1), np.zeros(1), level=0)
        array([ True,  True])
    """

    level: int

    def __post_init__(self) -> None:
        if self.level < 0:
            raise unexpected("level", self.level, "an integer of at least 0, the root's level")

    def descend(self, eta: Any, sizes: Any, rewards: Any, level: int) -> Any:
        """Return whether the items at a node of this level continue, bool ``[m]``."""
        return np.full(len(eta), level < self.level)


@dataclass(frozen=True)
class RuleSearch:
    """A stopping rule as a policy on beliefs.

    Attributes:
        rule: The stopping rule, an object with ``descend(eta, sizes, rewards, level)``.
        hierarchy: The tree, for sizes and levels.
    """

    rule: task.StoppingRule
    hierarchy: Hierarchy

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the node of the belief."""
        belief, legal = where_to_decide(problem, belief, observation)
        if DESCEND not in legal:
            return Decision(SEARCH)
        node = node_of(belief)
        seen = guidance_at(problem, node)
        children = [int(child) for child in self.hierarchy.children(node)]
        answer = task.ask(
            self.rule,
            np.array([[float(seen[child]) for child in children]]),
            self.hierarchy.sizes[children],
            np.array([float(reward_at(problem, child)) for child in children]),
            int(self.hierarchy.levels[node]),
        )
        return Decision(DESCEND if answer[0] else SEARCH)


def search_policy(policy: Any, tie: Tie = "descend", hierarchy: Hierarchy | None = None) -> Policy:
    """Return the policy on beliefs of a name, a stopping rule, a `Policy` or a function."""
    rule = task.as_rule(policy, tie)
    if isinstance(rule, task.LookAhead):
        return OptimalSearch(rule.tie) if rule.depth is None else rtbss_policy(rule.depth, rule.tie)
    if isinstance(rule, task.HindsightRule):
        return HindsightSearch(rule.tie)
    if isinstance(rule, (task.SearchRoot, task.AlwaysDescend)):
        return _Always(isinstance(rule, task.AlwaysDescend))
    if rule is not None:
        if hierarchy is None:
            raise ParameterError(
                f"hierarchy: got None; expected the tree, which the rule {brief(rule)} needs. Pass hierarchy=."
            )
        return RuleSearch(rule, hierarchy)
    return as_policy(policy)


@dataclass(frozen=True)
class _Always:
    """Always search, or descend while it is legal."""

    descends: bool

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        _, legal = where_to_decide(problem, belief, observation)
        return Decision(DESCEND if self.descends and DESCEND in legal else SEARCH)
