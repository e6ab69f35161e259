"""Policies for the search of one item: the engine's stopping rules as policies that decide on beliefs, and others.

The engine (`pomdp_hier._engines`) knows its policies as rules on what is seen at a node; here the same policies
decide from a belief over states, by planning in the POMDP of the item. They are two programs for one thing, and each
tests the other. `search_policy` finds the policy that belongs to a rule or a name.

A policy that needs to know the environment (a hindsight one, or one that plans with the environment's model) has
``for_environment(environment)``, which the generic route calls for each item.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

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
"""How far Q values in [-1, 1], each 1 less than what is compared, are rounded: a few units in the last place of 1."""


def node_of(belief: Belief) -> Any:
    """Return the node where the searcher stands, which it always knows."""
    state = belief.support[0]
    if not isinstance(state, SearchState):
        raise ModelError(f"state: got {brief(state)}; expected a SearchState. Pass a problem made by search_problem().")
    return state.node


def standing(belief: Belief) -> tuple[Any, Number]:
    """Return the node where the searcher stands, and ``b(<c,1>)``, how probably the item is below it."""
    node = node_of(belief)
    return node, belief[SearchState(node, 1)]


def guidance_at(problem: POMDP, node: Any) -> dict[Any, Number]:
    """``{c': eta(c, c')}`` of a node in the search problem of an item; empty where the searcher may not descend."""
    if DESCEND not in problem.actions(Belief.certain(SearchState(node, 1))):
        return {}
    eta: dict[Any, Number] = problem.transition.eta[node]
    return eta


def reward_at(problem: POMDP, node: Any) -> Number:
    """``r(c)``, what finding the item in the node earns."""
    return problem.expected_reward(SearchState(node, 1), SEARCH)


def true_path(environment: POMDP) -> list[tuple[Any, Number]]:
    """Return the nodes that hold the item, from the root, each with the probability of reaching it: ``prod of eta``."""
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
    """The paper's Algorithm 1, as it is written: compare two values that follow from the belief.

    ``Q(b, search) = b (r(c) + 1) - 1`` against ``Qhat(b, descend) = sum_c' eta(c, c') (b' (r(c') + 1) - 1)`` with
    ``b' = eta(c, c') b``.

    Attributes:
        tie: "search" as in the algorithm, or "descend" as in its walk-through.

    Example:
        >>> from pomdp_hier.hqs.model import three_node
        >>> print(AlgorithmOne().decide(three_node(0.9, r1=0.5, r2=0.5)).action)
        descend

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
        descend = total(eta * (eta * held * worth - 1) for eta, worth in below.values())
        return _by_margin(held, here, below.values(), self.tie, {SEARCH: held * here - 1, DESCEND: descend})


def _by_margin(
    held: Number, here: Number, below: Collection[tuple[Number, Number]], tie: Tie, values: Mapping[Any, Number]
) -> Decision:
    """Return the better of searching, ``held * here``, and of descending, ``held * sum of eta**2 W``, as engines do.

    Args:
        held: The belief.
        here: ``r(c) + 1``.
        below: ``eta`` and ``W`` of each child.
        tie: The tie rule.
        values: The Q values.
    """
    loss = held * here * total(eta * (1 - eta) for eta, _ in below)
    margin = held * total(eta * eta * (worth - here) for eta, worth in below) - loss
    descends, searches = (_goes(margin, loss, rule) for rule in ("descend", "search"))
    return _decision(
        searches if tie == "search" else descends, values, (SEARCH, DESCEND) if descends != searches else ()
    )


def _goes(margin: Number, loss: Number, tie: Tie) -> bool:
    """Return `task.descends` for one number; exact numbers tie where they are equal."""
    if is_exact(margin):
        return bool(margin > 0 or (margin == 0 and tie == "descend"))
    return bool(task.descends(np.asarray(margin, dtype=np.float64), np.asarray(loss, dtype=np.float64), tie))


@dataclass(frozen=True)
class PlannedSearch:
    """Any planner that gives Q values, with the tie rule of a search on top.

    Attributes:
        planner: A `Policy` whose decisions carry ``q_values``.
        tie: What to do when searching and descending are worth the same.
        tolerance: How close two floats may be to count as the same; exact numbers must be equal.

    Example:
        >>> PlannedSearch(RTBSS(1, leaf_value=ImmediateValue(Search())), "search").tie
        'search'
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
    """Return the better of two Q values; the tie rule decides within the tolerance, or between equal exact numbers."""
    difference = descend - search
    tied = bool(difference == 0 if is_exact(difference) else abs(difference) <= tolerance)
    descends = tie == "descend" if tied else bool(difference > 0)
    return _decision(descends, {SEARCH: search, DESCEND: descend}, (SEARCH, DESCEND) if tied else ())


def rtbss_policy(depth: int, tie: Tie = "descend") -> PlannedSearch:
    """RTBSS that looks so many actions ahead, a belief at the fringe worth the value of searching there.

    Depth 1 is the paper's one-step policy.

    Example:
        >>> rtbss_policy(2).planner.depth
        2
    """
    planner = RTBSS(depth, leaf_value=ImmediateValue(SEARCH), ties="all", tie_tolerance=ROUNDING)
    return PlannedSearch(planner, tie)


def paper_readings(tie: Tie = "descend") -> dict[str, PlannedSearch]:
    """Return the three policies that "RTBSS with two look-aheads" can mean, by what they do.

    ``"expand"`` is the appendix's algorithm to the letter, two actions ahead with the best immediate reward at the
    fringe; ``"max-0"`` looks one action ahead, and values each child by searching it or, if it has children, by 0 if
    that is more; ``"search"`` is the simplification that the results of the paper follow, each child valued by
    searching it.

    Example:
        >>> list(paper_readings())
        ['expand', 'max-0', 'search']

    References:
        Huang, Piao, Moreno and Hurley, section 4.1 and the appendix's Expand.
    """
    literal = RTBSS(2, leaf_value="immediate", ties="all", tie_tolerance=ROUNDING)
    clipped = RTBSS(1, leaf_value="immediate", ties="all", tie_tolerance=ROUNDING)
    return {
        "expand": PlannedSearch(literal, tie),
        "max-0": PlannedSearch(clipped, tie),
        "search": rtbss_policy(1, tie),
    }


class OptimalSearch:
    """The optimal policy of the agent's own model, by one pass over the nodes.

    Every value of the agent has the form ``b W_c - 1`` with ``W_c = max(r(c) + 1, sum_c' eta(c, c')**2 W_c')``, and
    ``W = r + 1`` at a leaf cluster: what to do depends on the node alone.

    Args:
        tie: What to do when searching and descending are worth the same.

    Example:
        >>> OptimalSearch()
        OptimalSearch(tie='descend')
    """

    def __init__(self, tie: Tie = "descend") -> None:
        self.tie: Tie = tie
        self._solved: tuple[POMDP, dict[Any, Number]] | None = None

    def worth(self, problem: POMDP, node: Any) -> Number:
        """``W_c``: the value of the node for a belief of 1, plus 1."""
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
        self.worth(problem, node)
        below = guidance_at(problem, node)
        if not below:
            return _decision(False, {SEARCH: held * here - 1})
        known = self._solved[1] if self._solved else {}
        values = {SEARCH: held * here - 1, DESCEND: held * self._ahead(below, known) - 1}
        return _by_margin(1, here, [(eta, known[child]) for child, eta in below.items()], self.tie, values)

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings; what was solved is solved again where it is needed."""
        return {**self.__dict__, "_solved": None}

    def __repr__(self) -> str:
        return f"OptimalSearch(tie={self.tie!r})"


class HindsightSearch:
    """Stops where the value along the item's own path is largest: the best that any policy can do.

    ``t = argmax_t (r(c_t) + 1) prod eta - 1`` over the path that really holds the item, which a searcher cannot know.

    Args:
        tie: Of equally good nodes, the deepest ("descend") or the first ("search").
        environment: The environment of the item; the generic route gives it by `for_environment`.

    Example:
        >>> from pomdp_hier.hqs.model import search_environment_from_guidance, three_node
        >>> eta, rewards = {"c0": {"c1": 0.9, "c2": 0.1}}, {"c0": 0, "c1": 0.5, "c2": 0.5}
        >>> world = search_environment_from_guidance(eta, rewards, ["c0", "c2"])
        >>> print(HindsightSearch(environment=world).decide(three_node(0.9, r1=0.5, r2=0.5)).action)
        search

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
        """Return the decision at the node where the belief is.

        Raises:
            PlanningError: The environment is not known.
        """
        if self._ahead is None:
            raise PlanningError(
                "environment: got None; expected the environment of the item. Call for_environment(environment)."
            )
        belief = problem.initial_belief if belief is None else problem.as_belief(belief)
        return Decision(DESCEND if node_of(belief) in self._ahead else SEARCH)

    def __repr__(self) -> str:
        return f"HindsightSearch(tie={self.tie!r})"


class PlansInEnvironment(HoldsPolicy):
    """A planner that is told how the world really moves, and plans in it from the agent's belief.

    Args:
        policy: Any `Policy`.
        environment: The environment of the item; the generic route gives it by `for_environment`.

    Example:
        >>> from pomdp_hier.hqs.model import search_environment_from_guidance, three_node
        >>> eta, rewards = {"c0": {"c1": 0.9, "c2": 0.1}}, {"c0": 0, "c1": 0.5, "c2": 0.5}
        >>> told = PlansInEnvironment(rtbss_policy(1), search_environment_from_guidance(eta, rewards, ["c0", "c2"]))
        >>> print(told.decide(three_node(0.9, r1=0.5, r2=0.5)).action)
        search
    """

    holds = "policy"

    def __init__(self, policy: Any, environment: POMDP | None = None) -> None:
        self.policy = as_policy(policy)
        self.environment = environment

    def for_environment(self, environment: POMDP) -> "PlansInEnvironment":
        """Return the policy for one item."""
        return PlansInEnvironment(self.policy, environment)

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return what the planner decides in the environment's model.

        Raises:
            PlanningError: The environment is not known.
        """
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
    """A stopping rule: descend to one level of the hierarchy, or to a leaf cluster before it, and search there.

    Attributes:
        level: The level, the root's is 0.

    Raises:
        ParameterError: The level is negative.

    Example:
        >>> FixedLevel(1).descend(np.ones((2, 1)), np.ones(1), np.zeros(1), level=0)
        array([ True,  True])
    """

    level: int

    def __post_init__(self) -> None:
        if self.level < 0:
            raise ParameterError(
                f"level: got {brief(self.level)}; expected an integer of at least 0, the root's level."
            )

    def descend(self, eta: Any, sizes: Any, rewards: Any, level: int) -> Any:
        """Whether the items at a node of this level go on, bool ``[m]``."""
        return np.full(len(eta), level < self.level)


@dataclass(frozen=True)
class RuleSearch:
    """A stopping rule of the engine as a policy that decides on a belief.

    Attributes:
        rule: Has ``descend(eta, sizes, rewards, level)``.
        hierarchy: The tree, for sizes and levels.
    """

    rule: task.StoppingRule
    hierarchy: Hierarchy

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the node where the belief is.

        Raises:
            ParameterError: The rule answers with anything but yes or no.
        """
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
    """Return the policy on beliefs that a name, a rule of the engine, a `Policy` or a plain function stands for.

    Args:
        policy: What `pomdp_hier.hqs.score.evaluate` takes as its policy.
        tie: What to do on a tie, where the policy is given by its name.
        hierarchy: The tree, which a rule of the user's own needs.

    Raises:
        ParameterError: It is none of these, or the tree is missing.

    Example:
        >>> search_policy("optimal", "search")
        OptimalSearch(tie='search')
    """
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
    """Searches at once, or descends while it can."""

    descends: bool

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        _, legal = where_to_decide(problem, belief, observation)
        return Decision(DESCEND if self.descends and DESCEND in legal else SEARCH)
