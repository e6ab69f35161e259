"""The search for one item in a hierarchy as a POMDP: the agent's model, and the environment that it acts in.

A bot stands at a node and does not know whether the target is below. States are pairs ``<c, g>`` of a node and whether
the target is in it, with two terminal states ``<end, 0>`` and ``<end, 1>``. It may search where it is, or descend; the
guidance ``eta(c, c')`` says to which child. Two models share all this:

- the *agent* believes that g is random: ``p(<c',1> | <c,1>) = eta**2``, ``p(<c',0> | <c,1>) = eta (1 - eta)``,
  ``p(<c',0> | <c,0>) = eta``;
- in the *environment*, the underlying MDP, the bot goes to ``c'`` with probability eta as well, but g stays 1 exactly
  when the target really is in ``c'``.

References:
    Huang, Piao, Moreno and Hurley, *POMDP Modelling for Assessing Hierarchies*, section 3 and appendix A.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pomdp_hier._arguments import is_integer, same_arguments
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import guidance
from pomdp_hier.hqs.inputs import Prepared, prepare
from pomdp_hier.hqs.reward import Reward, paper_reward
from pomdp_hier.hqs.settings import Settings
from pomdp_hier.pomdp import POMDP, Action, Observation, ObservationModel, RewardModel, State, TransitionModel
from pomdp_hier.pomdp.numeric import Number, is_nonnegative, is_symbolic, nearly_equal, total

END = "end"
"""The place of the two terminal states."""

Guidance = Mapping[Any, Mapping[Any, Number]]
"""``{c: {c': eta(c, c')}}`` for every node with children; the other nodes are leaf clusters."""


@dataclass(frozen=True)
class SearchState(State):
    """``<c, g>``: the bot is at node c, and the target is below it (g = 1) or not (g = 0).

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
    """``a_s``: stop here and search the node's items.

    Example:
        >>> Search() == Search(), str(Search())
        (True, 'search')
    """

    def __str__(self) -> str:
        return "search"


@dataclass(frozen=True)
class Descend(Action):
    """``a_d``: step down to a child.

    Example:
        >>> three_node(0.75).actions() == (Search(), Descend())
        True
    """

    def __str__(self) -> str:
        return "descend"


@dataclass(frozen=True)
class Node(Observation):
    """The bot sees at which node it has arrived.

    Example:
        >>> str(Node("c1")), Node("c1") == Node("c2")
        ('c1', False)
    """

    node: Hashable

    def __str__(self) -> str:
        return str(self.node)


@dataclass(frozen=True)
class Found(Observation):
    """The search found the target.

    Example:
        >>> str(Found()), Found() == NotFound()
        ('found', False)
    """

    def __str__(self) -> str:
        return "found"


@dataclass(frozen=True)
class NotFound(Observation):
    """The search did not find the target.

    Example:
        >>> {Found(): 0.75, NotFound(): 0.25}[NotFound()]
        0.25
    """

    def __str__(self) -> str:
        return "not found"


class AgentTransition(TransitionModel):
    """What the agent believes of a step: whether the target is in the child is drawn anew with probability eta.

    Example:
        >>> from fractions import Fraction
        >>> move = AgentTransition({"c0": {"c1": Fraction(3, 4), "c2": Fraction(1, 4)}})
        >>> {str(s): str(p) for s, p in move.distribution(SearchState("c0", 1), Descend()).items()}
        {'<c1,1>': '9/16', '<c1,0>': '3/16', '<c2,1>': '1/16', '<c2,0>': '3/16'}
    """

    def __init__(self, eta: Guidance) -> None:
        self.eta = eta

    def distribution(self, state: SearchState, action: Action) -> Mapping[SearchState, Number]:
        if action == Search() or state.node == END:
            return {SearchState(END, state.on_path): 1}
        moved: dict[SearchState, Number] = {}
        for child, eta in self.eta[state.node].items():
            if state.on_path:
                moved[SearchState(child, 1)] = eta * eta
                moved[SearchState(child, 0)] = eta * (1 - eta)
            else:
                moved[SearchState(child, 0)] = eta
        return moved


class EnvironmentTransition(TransitionModel):
    """What really happens: the bot steps to a child with probability eta, and the target stays where it is.

    Args:
        eta: The guidance.
        path: The nodes that hold the target.

    Example:
        >>> move = EnvironmentTransition({"c0": {"c1": 0.75, "c2": 0.25}}, ["c0", "c2"])
        >>> {str(s): p for s, p in move.distribution(SearchState("c0", 1), Descend()).items()}
        {'<c1,0>': 0.75, '<c2,1>': 0.25}
    """

    def __init__(self, eta: Guidance, path: Collection[Hashable]) -> None:
        self.eta = eta
        self.path = frozenset(path)

    def distribution(self, state: SearchState, action: Action) -> Mapping[SearchState, Number]:
        if action == Search() or state.node == END:
            return {SearchState(END, state.on_path): 1}
        return {
            SearchState(child, int(state.on_path == 1 and child in self.path)): eta
            for child, eta in self.eta[state.node].items()
        }


class SearchObservation(ObservationModel):
    """The node that was reached, with certainty; after a search, found or not."""

    def distribution(self, next_state: SearchState, action: Action) -> Mapping[Observation, Number]:  # type: ignore[override]
        if next_state.node == END:
            return {Found() if next_state.on_path else NotFound(): 1}
        return {Node(next_state.node): 1}


class SearchReward(RewardModel):
    """``r(c)`` for finding the target by searching node c, -1 for not finding it, 0 for a step down."""

    def __init__(self, rewards: Mapping[Any, Number]) -> None:
        self.rewards = rewards

    def reward(self, state: SearchState, action: Action, next_state: SearchState) -> Number:  # type: ignore[override]
        if action == Descend() or state.node == END:
            return 0
        return self.rewards[state.node] if next_state.on_path else -1


class _Legal:
    """Search everywhere; descend from every node with children but those that are closed."""

    def __init__(self, eta: Guidance, closed: Collection[Hashable]) -> None:
        self._open = frozenset(eta) - frozenset(closed)

    def __call__(self, state: SearchState) -> tuple[Action, ...]:
        return (Search(), Descend()) if state.node in self._open else (Search(),)


def search_problem_from_guidance(
    eta: Guidance,
    rewards: Mapping[Any, Number],
    *,
    root: Hashable = None,
    belief: Number = 1,
    closed: Collection[Hashable] = (),
    tolerance: float = 1e-9,
) -> POMDP:
    """Return the agent's POMDP of one item for given guidance values, in their own kind of numbers.

    Args:
        eta: ``{c: {c': eta(c, c')}}`` for every node with children. The nodes may have any names.
        rewards: ``{c: r(c)}`` for every node.
        root: The root, where the tree is one leaf cluster and eta empty; found otherwise.
        belief: The probability that the target is below the root, ``b(<root, 1>)``.
        closed: Nodes with children from which the bot may not descend all the same.
        tolerance: How far floats may be from summing to 1 at a node.

    Raises:
        ModelError: eta is no tree, a node's guidance is no distribution, or a reward is missing.

    Example:
        >>> problem = search_problem_from_guidance({"all": {"left": 0.75, "right": 0.25}},
        ...                                        {"all": 0, "left": 0.5, "right": 0.5})
        >>> problem.observation_probabilities(problem.initial_belief, Descend())
        {Node(node='left'): 0.75, Node(node='right'): 0.25}

    References:
        Huang, Piao, Moreno and Hurley, section 3.
    """
    nodes = _check_tree(eta, rewards, root, tolerance)
    return _problem(AgentTransition(eta), eta, rewards, nodes, belief, closed, tolerance)


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
        ModelError: As there; or the path is none of the tree.

    Example:
        >>> world = search_environment_from_guidance({"all": {"left": 0.75, "right": 0.25}},
        ...                                          {"all": 0, "left": 0.5, "right": 0.5}, ["all", "right"])
        >>> world.successors(SearchState("all", 1), Descend())[SearchState("right", 1)]
        0.25

    References:
        Huang, Piao, Moreno and Hurley, the environment of the search.
    """
    steps = list(path)
    nodes = _check_tree(eta, rewards, steps[0] if steps else None, tolerance)
    if not steps or steps[0] != nodes[0] or steps[-1] in eta:
        raise ModelError(f"path: {brief(steps)} does not lead from the root {brief(nodes[0])} to a leaf cluster")
    for node, child in pairwise(steps):
        if child not in eta.get(node, {}):
            raise ModelError(f"path: {brief(child)} is not a child of {brief(node)}")
    return _problem(EnvironmentTransition(eta, steps), eta, rewards, nodes, 1, closed, tolerance)


def three_node(
    eta: Number, *, r0: Number = 0, r1: Number | None = None, r2: Number | None = None, belief: Number = 1
) -> POMDP:
    """Return the appendix's example: a root ``c0`` with children ``c1`` and ``c2``; floats, fractions or symbols.

    Args:
        eta: ``eta(c0, c1)``; ``eta(c0, c2)`` is ``1 - eta``.
        r0, r1, r2: The rewards of the three nodes; by default those of two items, one in each child.
        belief: ``b(<c0, 1>)``.

    Raises:
        ModelError: eta or the belief is no probability.

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


def _search(
    X: Any,
    hierarchy: Hierarchy,
    item: int,
    *,
    similarity: Similarity = "cosine",
    delta: float = 0.01,
    nu: float = 1.0,
    reward: Reward | None = None,
    enter_own_singleton: bool = True,
) -> tuple[POMDP, POMDP]:
    settings = Settings(similarity, delta, nu, reward=reward, enter_own_singleton=enter_own_singleton)
    return search_models(_prepared(X, hierarchy, settings), item)


@same_arguments(_search)
def search_problem(*given: Any, **settings: Any) -> POMDP:
    """Return the agent's POMDP of the search for one item, with the nodes' numbers as their names.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``; or what `affinity` made of
            them, so that it is made once for many items.
        hierarchy: The tree over the N items.
        item: The target, 0 to N - 1.
        similarity, delta, nu, reward, enter_own_singleton: As for `pomdp_hier.hqs.score.evaluate`.

    Raises:
        FeatureError: Features that cannot be used.
        ParameterError: A setting that cannot, or no such item.

    Example:
        >>> from pomdp_hier.hqs.paper.examples import load_amazon12
        >>> shop = load_amazon12()
        >>> problem = search_problem(shop.similarity, shop.hierarchies["A"], 0, similarity="precomputed", delta=0.005)
        >>> round(problem.observation_probabilities(problem.initial_belief, Descend())[Node(19)], 4)
        0.9987
    """
    return _search(*given, **settings)[0]


@same_arguments(_search)
def search_environment(*given: Any, **settings: Any) -> POMDP:
    """Return the environment of the search for an item, the underlying MDP.

    Args:
        X, hierarchy, item, settings: As for `search_problem`, whose agent acts in this environment.

    Raises:
        FeatureError, ParameterError: As `search_problem`.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> print(*search_environment(X, tree, 3).successors(SearchState(6, 1), Descend()))
        <4,0> <5,1>

    References:
        Huang, Piao, Moreno and Hurley, the environment of the search.
    """
    return _search(*given, **settings)[1]


def search_models(prepared: Prepared, item: int) -> tuple[POMDP, POMDP]:
    """Return the agent's POMDP of the search for one item, and its environment.

    Raises:
        ParameterError: If there is no such item.
    """
    hierarchy = prepared.hierarchy
    eta = _guidance(prepared, item)
    rewards: dict[Hashable, Number] = dict(enumerate(prepared.rewards.reward.tolist()))
    path = hierarchy.path(item).tolist()
    # The parent of the item's own singleton is closed where the bot must not enter that.
    alone = path[-1] == item and len(path) > 1
    closed = (path[-2],) if alone and not prepared.settings.enter_own_singleton else ()
    problem = search_problem_from_guidance(eta, rewards, root=int(hierarchy.root), closed=closed)
    return problem, search_environment_from_guidance(eta, rewards, path, closed=closed)


def item_guidance(
    X: Any, hierarchy: Hierarchy, item: int, *, similarity: Similarity = "cosine", delta: float = 0.01, nu: float = 1.0
) -> dict[int, dict[int, float]]:
    """``{c: {c': eta(c, c')}}``, the guidance for one item at every node with children, the root first.

    Takes and raises what `search_problem` does.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> item_guidance([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], tree, 0, delta=1.0)[6][4].__round__(4)
        0.7311
    """
    return _guidance(_prepared(X, hierarchy, Settings(similarity, delta, nu)), item)


def _prepared(X: Any, hierarchy: Hierarchy, settings: Settings) -> Prepared:
    if not hasattr(X, "batch"):
        return prepare(X, hierarchy, settings)
    require_hierarchy(hierarchy)
    return Prepared(X, hierarchy, settings)


def _guidance(prepared: Prepared, item: int) -> dict[int, dict[int, float]]:
    hierarchy = prepared.hierarchy
    if not is_integer(item) or not 0 <= item < hierarchy.n_items:
        raise ParameterError(
            f"item: got {brief(item)}; expected "
            f"0 to {hierarchy.n_items - 1}. hierarchy.node(label) is an item's number."
        )
    inner = np.flatnonzero(np.diff(hierarchy.child_offsets) > 0)
    if not len(inner):
        return {}
    inner = inner[np.argsort(hierarchy.levels[inner], kind="stable")]
    batch = prepared.affinity.batch(np.array([item]))
    similarities = batch.expand(np.zeros(len(inner), dtype=np.int64), inner)
    delta, nu = float(prepared.settings.delta), prepared.settings.nu
    eta: dict[int, dict[int, float]] = {}
    start = 0
    for node in inner.tolist():
        children = hierarchy.children(node).tolist()
        values = guidance(similarities[start : start + len(children)], delta, nu, int(hierarchy.levels[node]))
        eta[node] = dict(zip(children, values.tolist(), strict=True))
        start += len(children)
    return eta


def _check_tree(eta: Guidance, rewards: Mapping[Any, Number], root: Hashable, tolerance: float) -> list[Hashable]:
    """Return the nodes, breadth first from the root."""
    parent: dict[Hashable, Hashable] = {}
    for node, children in eta.items():
        for child, value in children.items():
            if child in parent:
                raise ModelError(f"eta: {brief(child)} is a child of {brief(parent[child])} and of {brief(node)}")
            if not is_nonnegative(value):
                raise ModelError(f"eta({brief(node)}, {brief(child)}): {brief(value)} is no probability")
            parent[child] = node
        if not children or not nearly_equal(total(children.values()), 1, tolerance):
            raise ModelError(
                f"eta: the values at {brief(node)} sum to {total(children.values())}, not to 1; "
                "a leaf cluster has no entry"
            )
    roots = [node for node in eta if node not in parent] if eta else [root]
    if len(roots) != 1:
        raise ModelError(f"eta: {len(roots)} nodes have no parent ({brief(roots)}); a tree has one root")
    nodes = roots
    for node in nodes:  # grows while it is walked
        nodes.extend(eta.get(node, ()))
    if len(nodes) != len(parent) + 1:
        raise ModelError(f"eta: {len(parent) + 1 - len(nodes)} nodes cannot be reached from the root {brief(roots[0])}")
    for node in nodes:
        if node == END:
            raise ModelError(f"eta: a node cannot be called '{END}', the place of the terminal states")
        if node not in rewards:
            raise ModelError(f"rewards: none for node {brief(node)}; every node needs one")
    return nodes


def _problem(
    transition: TransitionModel,
    eta: Guidance,
    rewards: Mapping[Any, Number],
    nodes: list[Hashable],
    belief: Number,
    closed: Collection[Hashable],
    tolerance: float,
) -> POMDP:
    ends = (SearchState(END, 1), SearchState(END, 0))
    root = nodes[0]
    return POMDP(
        transition=transition,
        observation=SearchObservation(),
        reward=SearchReward(rewards),
        initial_belief={SearchState(root, 1): belief, SearchState(root, 0): 1 - belief},
        terminal=ends,
        legal_actions=_Legal(eta, closed),
        states=(*(SearchState(node, g) for node in nodes for g in (1, 0)), *ends),
        actions=(Search(), Descend()),
        observations=(*(Node(node) for node in nodes[1:]), Found(), NotFound()),
        tolerance=tolerance,
    )
