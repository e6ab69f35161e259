"""Other searchers as POMDPs: one who may go back up and looks in leaf clusters, and two templates.

The templates are a searcher that chooses its child, and one that can step back at a cost. Both take the two models of
the search for one item, `search_problem` and `search_environment`, and return an agent's model and an environment.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pomdp_hier._arguments import check_flag, is_real, unexpected
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.generic import check_item, prepared_search, similarities_to_children
from pomdp_hier.hqs.guidance import guidance
from pomdp_hier.hqs.inputs import Prepared, Settings
from pomdp_hier.hqs.model import Node, SearchState
from pomdp_hier.hqs.policies import DESCEND, SEARCH, guidance_at, node_of, reward_at, standing
from pomdp_hier.hqs.search_length import check_label_cost
from pomdp_hier.planning.decision import Decision
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import Action, Observation, State


@dataclass(frozen=True)
class ReturnState(State):
    """A searcher at a node; the target leaf cluster and the exhausted nodes.

    Attributes:
        target: The leaf cluster with the item.
        node: The searcher's node; None once the item is found.
        exhausted: The topmost nodes without an item that was not looked at.
    """

    target: int
    node: int | None
    exhausted: frozenset[int] = frozenset()

    def __str__(self) -> str:
        if self.node is None:
            return "<found>"
        gone = f", exhausted {', '.join(map(str, sorted(self.exhausted)))}" if self.exhausted else ""
        return f"<{self.node}, target {self.target}{gone}>"


@dataclass(frozen=True)
class Position(Observation):
    """Observation of the searcher's node and of the exhausted nodes; node None says that the item was found.

    Example:
        >>> Position(6) == Position(6, frozenset()), Position(6) == Position(None)
        (True, False)
    """

    node: int | None
    exhausted: frozenset[int] = frozenset()

    def __str__(self) -> str:
        return "found" if self.node is None else f"at {self.node}, exhausted {sorted(self.exhausted)}"


@dataclass(frozen=True)
class Step(Action):
    """Action ``"go"`` to a random child, ``"look"`` at a leaf cluster's items, ``"up"``, or ``"enter"`` a child."""

    verb: str
    child: int | None = None

    def __str__(self) -> str:
        return self.verb if self.child is None else f"{self.verb} {self.child}"


GO, LOOK, UP = Step("go"), Step("look"), Step("up")


def return_search_problem(
    X: Any,
    hierarchy: Hierarchy,
    item: int,
    *,
    similarity: Similarity = "cosine",
    delta: float = 0.01,
    nu: float = 1.0,
    enter_own_singleton: bool = True,
    label_cost: float = 0.0,
    travel_cost: float = 0.0,
    found_reward: float = 0.0,
    chooses: bool = False,
    known: bool = False,
) -> POMDP:
    """Return the POMDP of a search with return for one item; rewards are negative costs, in items looked at.

    The searcher is at a node and observes which nodes are exhausted. The action *go* leads to a child that is not
    exhausted, with probability eta renormalised over these children. In a leaf cluster, *look* costs its number of
    items, or ``(items + 1) / 2`` on average if the item is there. The action *up* leads to the parent. The initial
    belief in a leaf cluster is the product of eta on its path.

    Under `exhaustive_policy` the value for the true leaf cluster (``known=True``) is ``found_reward - E_x``, with the
    expected search length ``E_x`` of `expected_search_length` if travel costs nothing.

    Warning: costs alone do not make a searcher look. With a short horizon, or without ``found_reward``, the optimal
    policy may be never to look, with value 0. Use a reward above the cost of a complete search, and a sufficient
    horizon.

    Args:
        X, hierarchy, item, similarity, delta, nu, enter_own_singleton: As for `search_problem`.
        label_cost: The cost of each label of a node that is entered, in items looked at. The root's labels are read
            with the first step, and again with a later step from the root if nothing was looked at.
        travel_cost: The cost of each step to a child or to the parent.
        found_reward: The reward of finding the item.
        chooses: Whether the searcher may also *enter* a child of their choice.
        known: Whether the initial belief is the true leaf cluster, as for the environment.

    Raises:
        FeatureError: The features are unusable.
        ParameterError: A setting is out of range, or the item does not exist.

    Example:
        >>> from pomdp_hier import expected_search_length, policy_value
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> problem = return_search_problem(X, tree, 0, delta=0.5, known=True)
        >>> length = expected_search_length(X, tree, delta=0.5).lengths[0]
        >>> bool(abs(policy_value(exhaustive_policy, problem, horizon=9).value + length) < 1e-12)
        True

    References:
        Cooper (1968), Expected search length, American Documentation 19.
    """
    check_label_cost(label_cost)
    for name, value in (("travel_cost", travel_cost), ("found_reward", found_reward)):
        if not (is_real(value) and 0 <= value < np.inf):
            raise unexpected(name, value, "a number of at least 0")
    for name, flag in (("chooses", chooses), ("known", known)):
        check_flag(name, flag)
    settings = Settings(similarity, delta, nu, enter_own_singleton=enter_own_singleton)
    search = _Search(prepared_search(X, hierarchy, settings), item, chooses)
    costs = (float(label_cost), float(travel_cost), float(found_reward))
    return POMDP(
        transition=search.transition,
        observation=lambda next_state, action: Position(next_state.node, next_state.exhausted),
        reward=lambda state, action, next_state: search.reward(state, action, next_state, *costs),
        initial_belief=search.initial(known),
        terminal=lambda state: state.node is None,
        legal_actions=search.legal,
    )


def exhaustive_policy(problem: POMDP, belief: Belief) -> Step:
    """Return *go* while a child is left, *look* at a leaf cluster that was not looked at, else *up*.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> problem = return_search_problem([[1, 0], [1, 0], [0, 1], [0, 1]], tree, 0)
        >>> print(exhaustive_policy(problem, problem.initial_belief))
        go
    """
    legal = problem.actions(belief)
    return next(step for step in (GO, LOOK, UP) if step in legal)


class _Search:
    """The search with return for one item."""

    def __init__(self, prepared: Prepared, item: int, chooses: bool) -> None:
        tree, settings = prepared.hierarchy, prepared.settings
        check_item(item, tree)
        path = tree.path(item).tolist()
        self.tree, self.chooses = tree, chooses
        self.similarities = similarities_to_children(prepared, item)
        if path[-1] == item and len(path) > 1 and not settings.enter_own_singleton:
            path.pop()  # the search for the item looks at all items of the parent
            del self.similarities[path[-1]]
        self.target, self.root = path[-1], int(tree.root)
        self.delta, self.nu = float(settings.delta), settings.nu

    def eta(self, node: int, children: list[int]) -> dict[int, float]:
        """Return the guidance at a node, renormalised over some of its children."""
        all_children = self.tree.children(node).tolist()
        values = self.similarities[node][[all_children.index(child) for child in children]]
        shares = guidance(values, self.delta, self.nu, int(self.tree.levels[node]))
        return dict(zip(children, shares.tolist(), strict=True))

    def left(self, state: ReturnState) -> list[int]:
        """Return the children of the searcher's node that are not exhausted."""
        node = state.node
        if node not in self.similarities:
            return []
        return [child for child in self.tree.children(node).tolist() if child not in state.exhausted]

    def initial(self, known: bool) -> Mapping[ReturnState, float]:
        if known:
            return {ReturnState(self.target, self.root): 1.0}
        belief, open_ = {}, [(self.root, 1.0)]
        while open_:
            node, probability = open_.pop()
            if node in self.similarities:
                eta = self.eta(node, self.tree.children(node).tolist())
                open_ += [(child, probability * share) for child, share in eta.items()]
            elif probability > 0:
                belief[ReturnState(node, self.root)] = probability
        return belief

    def legal(self, state: ReturnState) -> tuple[Step, ...]:
        left = self.left(state)
        steps = [GO, *(Step("enter", child) for child in left if self.chooses)] if left else []
        if state.node not in self.similarities and state.node not in state.exhausted:
            steps.append(LOOK)
        if state.node != self.root:
            steps.append(UP)
        return tuple(steps)

    def transition(self, state: ReturnState, action: Step) -> Mapping[ReturnState, float]:
        target, node, exhausted = state.target, state.node, state.exhausted
        assert node is not None
        if action == LOOK:
            return {ReturnState(target, None) if node == target else ReturnState(target, node, exhausted | {node}): 1.0}
        if action == UP:
            if node in self.similarities and not self.left(state):
                exhausted = exhausted - set(self.tree.children(node).tolist()) | {node}
            return {ReturnState(target, int(self.tree.parent[node]), exhausted): 1.0}
        shares = self.eta(node, self.left(state)) if action == GO else {action.child: 1.0}
        return {ReturnState(target, child, exhausted): share for child, share in shares.items() if share > 0}

    def reward(
        self, state: ReturnState, action: Step, after: ReturnState, label_cost: float, travel: float, found: float
    ) -> float:
        if action == LOOK:
            size = float(self.tree.sizes[state.node])
            return -size if after.node is not None else found - (size + 1) / 2
        labels = 0 if action == UP else self._labels(after.node)
        if state.node == self.root and not state.exhausted:
            labels += self._labels(self.root)
        return -travel - label_cost * labels

    def _labels(self, node: Hashable) -> int:
        return len(self.tree.children(node)) if node in self.similarities else 0


@dataclass(frozen=True)
class Enter(Action):
    """Step into one child, which the searcher chooses."""

    child: Any
    __ne__ = object.__ne__


@dataclass(frozen=True)
class Back(Action):
    """Step back to the parent, at a cost."""

    __ne__ = object.__ne__


BACK = Back()


def _own_child(environment: POMDP, node: Any) -> Any:
    """Return the child on the true path, ``None`` at a leaf cluster."""
    state = SearchState(node, 1)
    if DESCEND not in environment.actions(Belief.certain(state)):
        return None
    return next(after.node for after in environment.successors(state, DESCEND) if after.on_path)


def choosing_search(problem: POMDP, environment: POMDP) -> tuple[POMDP, POMDP]:
    """Return the agent's model and the environment of a searcher that chooses its child.

    In place of `Descend`, which samples a child from the guidance, there is one action `Enter` per child.
    The agent believes that the item is in the child with probability ``eta(c, c')``: ``b' = eta b``.
    """

    def legal(state: Any) -> list[Any]:
        return [SEARCH, *map(Enter, guidance_at(problem, state.node))]

    def believed(state: Any, action: Any) -> Mapping[Any, Number]:
        if action == SEARCH:
            return problem.successors(state, SEARCH)
        if not state.on_path:
            return {SearchState(action.child, 0): 1}
        eta = guidance_at(problem, state.node)[action.child]
        return {SearchState(action.child, 1): eta, SearchState(action.child, 0): 1 - eta}

    def real(state: Any, action: Any) -> Mapping[Any, Number]:
        if action == SEARCH:
            return environment.successors(state, SEARCH)
        holds = state.on_path and action.child == _own_child(environment, state.node)
        return {SearchState(action.child, int(holds)): 1}

    def observe(next_state: Any, action: Any) -> Any:
        return problem.observation_distribution(next_state, SEARCH, None) if action == SEARCH else Node(next_state.node)

    def reward(state: Any, action: Any, next_state: Any) -> Number:
        return problem.step_reward(state, SEARCH, next_state) if action == SEARCH else 0

    def model(move: Any, start: Belief) -> POMDP:
        return POMDP(
            transition=move,
            observation=observe,
            reward=reward,
            initial_belief=start,
            terminal=problem.is_terminal,
            legal_actions=legal,
            discount=problem.discount,
        )

    return model(believed, problem.initial_belief), model(real, environment.initial_belief)


@dataclass(frozen=True)
class GreedyChild:
    """Policy that enters the child of largest guidance if searching it has at least the value of searching here.

    It compares ``eta(c, c') (r(c') + 1) >= r(c) + 1``. The belief cancels, as in the paper's rule.
    """

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief, in a problem of `choosing_search`."""
        belief = problem.initial_belief if belief is None else problem.as_belief(belief)
        node, held = standing(belief)
        here = Belief.certain(SearchState(node, 1))
        values: dict[Any, Number] = {SEARCH: problem.reward(here, SEARCH) + 1}
        for action in problem.actions(belief, observation):
            if action != SEARCH:
                eta = problem.transition.probability(SearchState(action.child, 1), SearchState(node, 1), action)
                values[action] = eta * (reward_at(problem, action.child) + 1)
        entering = {action: value for action, value in values.items() if action != SEARCH}
        best = max(entering, key=entering.__getitem__, default=SEARCH)
        q_values = {action: held * value - 1 for action, value in values.items()}
        action = best if values[best] >= values[SEARCH] else SEARCH
        return Decision(action, value=q_values[action], q_values=q_values)


@dataclass(frozen=True)
class TrailState(State):
    """Position of a searcher that can step back, with the deepest node of its way that holds the item.

    Attributes:
        node: The node of the searcher; ``None`` after its search.
        holder: The deepest node on the way from the root that holds the item.
        backs: The remaining number of steps back.
    """

    node: Any
    holder: Any
    backs: int
    __ne__ = object.__ne__


def backtracking_search(
    problem: POMDP, environment: POMDP, *, backs: int = 1, price: Number = 0.01
) -> tuple[POMDP, POMDP]:
    """Return the agent's model and the environment of a searcher that can step back to the parent.

    A step down samples a child from the guidance. The searcher may leave an unlikely child again, at a cost. It does
    not observe how far down its way still holds the item.
    """
    if backs < 0 or price < 0:
        name, value = ("backs", backs) if backs < 0 else ("price", price)
        raise ParameterError(f"{name}: got {brief(value)}; expected a number of at least 0.")
    parent = _parents(problem)
    terminal = {True: TrailState(None, True, 0), False: TrailState(None, False, 0)}

    def legal(state: TrailState) -> list[Any]:
        descend = [DESCEND] if guidance_at(problem, state.node) else []
        return [SEARCH, *descend, *([BACK] if state.backs and state.node in parent else [])]

    def back(state: TrailState) -> Mapping[Any, Number]:
        above = parent[state.node]
        return {TrailState(above, above if state.holder == state.node else state.holder, state.backs - 1): 1}

    def believed(state: TrailState, action: Any) -> Mapping[Any, Number]:
        if action == SEARCH:
            return {terminal[state.holder == state.node]: 1}
        if action == BACK:
            return back(state)
        moved: dict[Any, Number] = {}
        for child, eta in guidance_at(problem, state.node).items():
            inside = eta if state.holder == state.node else 0
            moved[TrailState(child, child, state.backs)] = eta * inside
            moved[TrailState(child, state.holder, state.backs)] = eta * (1 - inside)
        return moved

    def real(state: TrailState, action: Any) -> Mapping[Any, Number]:
        if action != DESCEND:
            return believed(state, action)
        own = _own_child(environment, state.node) if state.holder == state.node else None
        return {
            TrailState(child, child if child == own else state.holder, state.backs): eta
            for child, eta in guidance_at(environment, state.node).items()
        }

    def reward(state: TrailState, action: Any, next_state: TrailState) -> Number:
        if action == BACK:
            return -price
        if action == DESCEND:
            return 0
        return problem.expected_reward(SearchState(state.node, int(state.holder == state.node)), SEARCH)

    def observe(next_state: TrailState, action: Any) -> Any:
        return ("found" if next_state.holder else "missed") if action == SEARCH else (next_state.node, next_state.backs)

    root = node_of(problem.initial_belief)

    def model(move: Any) -> POMDP:
        return POMDP(
            transition=move,
            observation=observe,
            reward=reward,
            initial_belief={TrailState(root, root, backs): 1},
            terminal=lambda state: state.node is None,
            legal_actions=legal,
            discount=problem.discount,
        )

    return model(believed), model(real)


def _parents(problem: POMDP) -> dict[Any, Any]:
    parent: dict[Any, Any] = {}
    waiting = [node_of(problem.initial_belief)]
    while waiting:
        node = waiting.pop()
        for child in guidance_at(problem, node):
            parent[child] = node
            waiting.append(child)
    return parent
