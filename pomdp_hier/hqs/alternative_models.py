"""Two alternative searchers: one that chooses its child, and one that can step back.

Both take the two models of the search for one item, `search_problem` and `search_environment`. They return an agent's
model and an environment for any policy, updater and evaluation. They are templates for searchers with other actions.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hqs.model import Node, SearchState
from pomdp_hier.hqs.policies import DESCEND, SEARCH, guidance_at, node_of, reward_at, standing
from pomdp_hier.planning.decision import Decision
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import Action, State


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
