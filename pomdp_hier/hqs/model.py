"""The POMDP of the search for one item: states, models, and the closed-form belief update."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ModelError
from pomdp_hier.hqs.guidance import paper_reward
from pomdp_hier.pomdp.bayes import impossible_observation
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.models import ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number, is_nonnegative, is_symbolic, nearly_equal, total
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import Action, Observation, State

__all__ = ["Descend", "Node", "Search", "SearchState"]

END = "end"
"""The node of the two terminal states."""

Guidance = Mapping[Any, Mapping[Any, Number]]
"""``{c: {c': eta(c, c')}}`` per internal node; the other nodes are leaf clusters."""


@dataclass(frozen=True)
class SearchState(State):
    """State ``<c, g>``: the searcher is at node c; g is 1 if c holds the target.

    Example:
        >>> print(SearchState("c1", 1), SearchState(END, 0))
        <c1,1> <end,0>
    """

    node: Hashable
    on_path: int

    def __str__(self) -> str:
        return f"<{self.node},{int(self.on_path)}>"


@dataclass(frozen=True)
class Search(Action):
    """Action ``a_s``: stop, and search the items of the node.

    Example:
        >>> Search() == Search(), str(Search())
        (True, 'search')
    """

    def __str__(self) -> str:
        return "search"


@dataclass(frozen=True)
class Descend(Action):
    """Action ``a_d``: step down to a child.

    Example:
        >>> three_node(0.75).actions() == (Search(), Descend())
        True
    """

    def __str__(self) -> str:
        return "descend"


@dataclass(frozen=True)
class Node(Observation):
    """Observation of the node that the searcher has reached.

    Example:
        >>> str(Node("c1")), Node("c1") == Node("c2")
        ('c1', False)
    """

    node: Hashable

    def __str__(self) -> str:
        return str(self.node)


@dataclass(frozen=True)
class Found(Observation):
    """Observation of a successful search."""

    def __str__(self) -> str:
        return "found"


@dataclass(frozen=True)
class NotFound(Observation):
    """Observation of a failed search."""

    def __str__(self) -> str:
        return "not found"


FOUND, NOT_FOUND = Found(), NotFound()


class _States(dict[Hashable, tuple[SearchState, SearchState]]):
    """The two states of each node, off and on the path, made once: equal objects cost dictionaries a comparison."""

    def __missing__(self, node: Hashable) -> tuple[SearchState, SearchState]:
        return self.setdefault(node, (SearchState(node, 0), SearchState(node, 1)))


def step_from_path(eta: Any) -> tuple[Any, Any]:
    """Return the probabilities of a step from the path to a child, on the path and off it."""
    return eta * eta, eta * (1 - eta)


def closed_form(eta: Any, b: Any) -> Any:
    """Return the closed form of ``b'(<c',1>)``, of numbers or arrays."""
    return eta * b


class AgentTransition(TransitionModel):
    """The agent's transition model: a child holds the target with probability eta, independently per step."""

    def __init__(self, eta: Guidance, states: _States | None = None) -> None:
        self.eta = eta
        self._states = _States() if states is None else states

    def distribution(self, state: SearchState, action: Action) -> Mapping[SearchState, Number]:
        if isinstance(action, Search) or state.node == END:
            return {self._states[END][state.on_path]: 1}
        moved: dict[SearchState, Number] = {}
        for child, eta in self.eta[state.node].items():
            off_path, on_path = self._states[child]
            if state.on_path:
                moved[on_path], moved[off_path] = step_from_path(eta)
            else:
                moved[off_path] = eta
        return moved


class EnvironmentTransition(TransitionModel):
    """The environment's transition model: the searcher steps to a child with probability eta; the target is fixed.

    Example:
        >>> move = EnvironmentTransition({"c0": {"c1": 0.75, "c2": 0.25}}, ["c0", "c2"])
        >>> {str(s): p for s, p in move.distribution(SearchState("c0", 1), Descend()).items()}
        {'<c1,0>': 0.75, '<c2,1>': 0.25}
    """

    def __init__(self, eta: Guidance, path: Collection[Hashable], states: _States | None = None) -> None:
        self.eta = eta
        self.path = frozenset(path)
        self._states = _States() if states is None else states

    def distribution(self, state: SearchState, action: Action) -> Mapping[SearchState, Number]:
        if isinstance(action, Search) or state.node == END:
            return {self._states[END][state.on_path]: 1}
        return {
            self._states[child][state.on_path == 1 and child in self.path]: eta
            for child, eta in self.eta[state.node].items()
        }


class SearchObservation(ObservationModel):
    """Deterministic observations: the reached node; after a search, found or not."""

    def __init__(self) -> None:
        self._nodes: dict[Hashable, Node] = {}  # made once, as are states

    def of_node(self, node: Hashable) -> Node:
        """Return the observation of a node."""
        return self._nodes.get(node) or self._nodes.setdefault(node, Node(node))

    def distribution(self, next_state: SearchState, action: Action) -> Mapping[Observation, Number]:  # type: ignore[override]
        if next_state.node == END:
            return {FOUND if next_state.on_path else NOT_FOUND: 1}
        return {self.of_node(next_state.node): 1}


class SearchReward(RewardModel):
    """Reward ``r(c)`` of a successful search of node c, -1 of a failed one, 0 of a step down."""

    def __init__(self, rewards: Mapping[Any, Number]) -> None:
        self.rewards = rewards

    def reward(self, state: SearchState, action: Action, next_state: SearchState) -> Number:  # type: ignore[override]
        if isinstance(action, Descend) or state.node == END:
            return 0
        return self.rewards[state.node] if next_state.on_path else -1


_BOTH = (Search(), Descend())


class _Legal:
    """Legal actions: search everywhere; descend from internal nodes that are not closed."""

    def __init__(self, eta: Guidance, closed: Collection[Hashable]) -> None:
        self._open = frozenset(eta) - frozenset(closed)

    def __call__(self, state: SearchState) -> tuple[Action, ...]:
        return _BOTH if state.node in self._open else _BOTH[:1]


def search_problem_from_guidance(
    eta: Guidance,
    rewards: Mapping[Any, Number],
    *,
    root: Hashable = None,
    belief: Number = 1,
    closed: Collection[Hashable] = (),
    tolerance: float = 1e-9,
) -> POMDP:
    """Return the agent's POMDP of one item for given guidance values, in their number type.

    Args:
        eta: ``{c: {c': eta(c, c')}}`` per internal node. Node names are arbitrary.
        rewards: ``{c: r(c)}`` per node.
        root: The root of a tree with one leaf cluster and empty eta.
        belief: The probability that the root holds the target, ``b(<root, 1>)``.
        closed: Internal nodes at which descending is illegal.
        tolerance: The tolerance of float sums of 1 at a node.

    Raises:
        ModelError: eta is not a tree, the guidance at a node is not a distribution, or a reward is missing.

    Example:
        >>> problem = search_problem_from_guidance({"all": {"left": 0.75, "right": 0.25}},
        ...                                        {"all": 0, "left": 0.5, "right": 0.5})
        >>> problem.observation_probabilities(problem.initial_belief, Descend())
        {Node(node='left'): 0.75, Node(node='right'): 0.25}

    References:
        Huang, Piao, Moreno and Hurley, section 3.
    """
    return _Frame(eta, rewards, root, closed, tolerance).agent(belief)


def search_environment_from_guidance(
    eta: Guidance,
    rewards: Mapping[Any, Number],
    path: Collection[Hashable],
    *,
    closed: Collection[Hashable] = (),
    tolerance: float = 1e-9,
) -> POMDP:
    """Return the environment of the search for one item, the underlying MDP, for given guidance values.

    Args:
        eta, rewards, closed, tolerance: As for `search_problem_from_guidance`.
        path: The nodes that hold the target, from the root to a leaf cluster.

    Raises:
        ModelError: As there; or the path is not in the tree.

    Example:
        >>> environment = search_environment_from_guidance({"all": {"left": 0.75, "right": 0.25}},
        ...                                          {"all": 0, "left": 0.5, "right": 0.5}, ["all", "right"])
        >>> environment.successors(SearchState("all", 1), Descend())[SearchState("right", 1)]
        0.25

    References:
        Huang, Piao, Moreno and Hurley, the environment of the search.
    """
    steps = list(path)
    return _Frame(eta, rewards, steps[0] if steps else None, closed, tolerance).environment(steps)


def three_node(
    eta: Number, *, r0: Number = 0, r1: Number | None = None, r2: Number | None = None, belief: Number = 1
) -> POMDP:
    """Return the appendix's example: a root ``c0`` with children ``c1`` and ``c2``; floats, fractions or symbols.

    Args:
        eta: ``eta(c0, c1)``; ``eta(c0, c2)`` is ``1 - eta``.
        r0, r1, r2: The rewards of the three nodes; by default those of one item per child.
        belief: ``b(<c0, 1>)``.

    Raises:
        ModelError: eta or the belief is not a probability.

    Example:
        >>> problem = three_node(0.75, r1=0.5, r2=0.5)
        >>> print(*problem.states)
        <c0,1> <c0,0> <c1,1> <c1,0> <c2,1> <c2,0> <end,1> <end,0>
        >>> problem.reward(problem.initial_belief, Search())
        0

    References:
        Huang, Piao, Moreno and Hurley, appendix A.
    """
    if not is_nonnegative(eta) or (not is_symbolic(eta) and eta > 1):
        raise ModelError(f"eta: got {brief(eta)}; expected a number in [0, 1], such as 0.75 or Fraction(3, 4).")
    single = float(paper_reward(1, 2))
    rewards = {"c0": r0, "c1": single if r1 is None else r1, "c2": single if r2 is None else r2}
    return search_problem_from_guidance({"c0": {"c1": eta, "c2": 1 - eta}}, rewards, belief=belief)


def _check_tree(eta: Guidance, rewards: Mapping[Any, Number], root: Hashable, tolerance: float) -> list[Hashable]:
    """Check that eta is a tree of distributions with a reward per node, and return its nodes breadth first."""
    parent: dict[Hashable, Hashable] = {}
    for node, children in eta.items():
        for child, value in children.items():
            if child in parent:
                raise ModelError(
                    f"eta: got {brief(child)} below {brief(parent[child])} and {brief(node)}; expected one parent."
                )
            if not is_nonnegative(value):
                raise ModelError(
                    f"eta: got {brief(value)} for {brief(node)} to {brief(child)}; expected a probability."
                )
            parent[child] = node
        if not children or not nearly_equal(total(children.values()), 1, tolerance):
            raise ModelError(
                f"eta: got the sum {total(children.values())} at {brief(node)}; expected 1. Leave out leaf clusters."
            )
    roots = [node for node in eta if node not in parent] if eta else [root]
    if len(roots) != 1:
        raise ModelError(f"eta: got {len(roots)} nodes without a parent ({brief(roots)}); expected one root.")
    nodes = roots
    for node in nodes:  # grows while it is walked
        nodes.extend(eta.get(node, ()))
    if len(nodes) != len(parent) + 1:
        raise ModelError(
            f"eta: got {len(parent) + 1 - len(nodes)} nodes unreachable from {brief(roots[0])}; expected a tree."
        )
    for node in nodes:
        if node == END:
            raise ModelError(
                f"eta: got a node named '{END}'; expected another name, as this is the node of the terminal states."
            )
        if node not in rewards:
            raise ModelError(f"rewards: got none for node {brief(node)}; expected one per node.")
    return nodes


class _Frame:
    """All parts of the search for one item but the transition model: the agent and the environment share them."""

    def __init__(
        self,
        eta: Guidance,
        rewards: Mapping[Any, Number],
        root: Hashable,
        closed: Collection[Hashable] = (),
        tolerance: float = 1e-9,
    ) -> None:
        self.eta = eta
        self.nodes = _check_tree(eta, rewards, root, tolerance)
        self._states = states = _States()
        observation = SearchObservation()
        ends = states[END][::-1]
        self._parts: dict[str, Any] = {
            "observation": observation,
            "reward": SearchReward(rewards),
            "terminal": ends,
            "legal_actions": _Legal(eta, closed),
            "states": (*(state for node in self.nodes for state in states[node][::-1]), *ends),
            "actions": _BOTH,
            "observations": (*map(observation.of_node, self.nodes[1:]), FOUND, NOT_FOUND),
            "tolerance": tolerance,
        }

    def agent(self, belief: Number = 1) -> POMDP:
        """Return the agent's problem, for the probability that the root holds the target."""
        return self._problem(AgentTransition(self.eta, self._states), belief)

    def environment(self, path: Sequence[Hashable]) -> POMDP:
        """Return the environment, for the path of the target."""
        root = self.nodes[0]
        if not path or path[0] != root or path[-1] in self.eta:
            raise ModelError(f"path: got {brief(path)}; expected a path from the root {brief(root)} to a leaf cluster.")
        for node, child in pairwise(path):
            if child not in self.eta.get(node, {}):
                raise ModelError(f"path: got {brief(child)} after {brief(node)}; expected one of its children.")
        return self._problem(EnvironmentTransition(self.eta, path, self._states), 1)

    def _problem(self, transition: TransitionModel, belief: Number) -> POMDP:
        off_path, on_path = self._states[self.nodes[0]]
        return POMDP(transition=transition, initial_belief={on_path: belief, off_path: 1 - belief}, **self._parts)


def search_pair(
    eta: Guidance, rewards: Mapping[Any, Number], path: Sequence[Hashable], closed: Collection[Hashable]
) -> tuple[POMDP, POMDP]:
    """Return the agent's problem of `search_problem_from_guidance` and the environment, with the same states."""
    frame = _Frame(eta, rewards, path[0], closed)
    return frame.agent(), frame.environment(path)


class ClosedFormUpdater:
    """The closed-form belief update of the agent's model of a search.

    It is::

        b'(<c',1>) = eta(c, c') b(<c,1>)        Pr(o = c' | b, descend) = eta(c, c')

    The belief at a node is the product of the guidance along the path. `BayesUpdater` gives the same belief by a sum.
    If eta is exactly 0 the observation is impossible; this updater then returns belief 0.

    Args:
        problem: The agent's problem, such as from `search_problem`.

    Raises:
        ModelError: The problem is not a search problem.

    Example:
        >>> from fractions import Fraction
        >>> from pomdp_hier.hqs.model import three_node
        >>> problem = three_node(Fraction(3, 4))
        >>> ClosedFormUpdater(problem).update(problem.initial_belief, Descend(), Node("c1"))[SearchState("c1", 1)]
        Fraction(3, 4)

    References:
        Huang, Piao, Moreno and Hurley, section 3, belief update.
    """

    def __init__(self, problem: POMDP) -> None:
        if not isinstance(problem.transition, AgentTransition):
            raise ModelError(
                f"problem: got {brief(problem)}; expected "
                "the agent's model of a hierarchy search. Make one by search_problem()."
            )
        self.problem = problem
        self.eta: Mapping[Any, Mapping[Any, Number]] = problem.transition.eta

    def update(self, belief: Belief, action: Any, observation: Any) -> Belief:
        """Return the posterior after the action and the observation.

        Raises:
            ImpossibleObservationError: The observed node is not a child, or the outcome has probability 0.
        """
        node, b = self._node_and_belief(belief, action)
        if isinstance(action, Descend):
            children = self.eta.get(node, {})
            if not (isinstance(observation, Node) and observation.node in children):
                nodes = listed([Node(child) for child in children]) if children else "a child node"
                expected = f"one of the possible observations, {nodes}"
                raise impossible_observation(as_belief(belief), action, observation, expected)
            return _at(observation.node, closed_form(children[observation.node], b))
        if self.evidence(belief, action, observation) == 0:
            raise impossible_observation(as_belief(belief), action, observation)
        return Belief.certain(SearchState(END, int(observation == Found())))

    def evidence(self, belief: Belief, action: Any, observation: Any) -> Number:
        """Return ``Pr(o | b, a)``: ``eta(c, c')`` after descending; b or 1 - b after a search."""
        node, b = self._node_and_belief(belief, action)
        if isinstance(action, Descend):
            return self.eta.get(node, {}).get(observation.node, 0) if isinstance(observation, Node) else 0
        return {Found(): b, NotFound(): 1 - b}.get(observation, 0)

    def predict(self, belief: Belief, action: Any) -> Belief:
        """Return the belief after the action and before the observation."""
        node, b = self._node_and_belief(belief, action)
        if not isinstance(action, Descend):
            return Belief({SearchState(END, 1): b, SearchState(END, 0): 1 - b})
        reached: dict[SearchState, Number] = {}
        for child, eta in self.eta[node].items():
            reached[SearchState(child, 1)] = eta * (eta * b)
            reached[SearchState(child, 0)] = eta * (1 - eta * b)
        return Belief(reached)

    def branches(self, belief: Belief, action: Any) -> Iterator[tuple[Any, Number, Belief]]:
        """Yield each possible observation with its probability and the posterior."""
        node, b = self._node_and_belief(belief, action)
        if isinstance(action, Descend):
            for child, eta in self.eta.get(node, {}).items():
                if eta != 0:
                    yield Node(child), eta, _at(child, closed_form(eta, b))
            return
        for observation, g, probability in ((Found(), 1, b), (NotFound(), 0, 1 - b)):
            if probability != 0:
                yield observation, probability, Belief.certain(SearchState(END, g))

    def _node_and_belief(self, belief: Belief, action: Any) -> tuple[Hashable, Number]:
        """Return the node of the searcher and ``b(<c,1>)``; check the action."""
        if not isinstance(action, Search | Descend):
            raise ModelError(f"action: got {brief(action)}; expected Search() or Descend().")
        belief = as_belief(belief)
        node = belief.support[0].node
        if any(state.node != node for state in belief):
            raise ModelError(f"belief: got {brief(belief)}; expected states of one node, which the searcher observes.")
        return node, belief[SearchState(node, 1)]


def _at(node: Hashable, b: Number) -> Belief:
    return Belief({SearchState(node, 1): b, SearchState(node, 0): 1 - b})
