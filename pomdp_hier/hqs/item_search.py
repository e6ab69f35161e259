"""The search for one item of a hierarchy as a POMDP, built from features or similarities."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from pomdp_hier._arguments import is_integer
from pomdp_hier._arrays import Floats
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import guidance
from pomdp_hier.hqs.inputs import Prepared, prepare
from pomdp_hier.hqs.model import search_environment_from_guidance, search_problem_from_guidance
from pomdp_hier.hqs.reward import Reward
from pomdp_hier.hqs.settings import Settings
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP


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
    return search_models(prepared_search(X, hierarchy, settings), item)


def search_problem(
    X: Any,
    hierarchy: Hierarchy,
    item: int,
    *,
    similarity: Similarity = "cosine",
    delta: float = 0.01,
    nu: float = 1.0,
    reward: Reward | None = None,
    enter_own_singleton: bool = True,
) -> POMDP:
    """Return the agent's POMDP of the search for one item, with node numbers as node names.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``; or the result of
            `affinity`, computed once for many items.
        hierarchy: The tree over the N items.
        item: The target, 0 to N - 1.
        similarity, delta, nu, reward, enter_own_singleton: As for `pomdp_hier.hqs.score.evaluate`.

    Raises:
        FeatureError: The features are unusable.
        ParameterError: A setting is out of range, or the item does not exist.

    Example:
        >>> from pomdp_hier.hqs.model import Descend, Node
        >>> from pomdp_hier.hqs.paper import load_amazon12
        >>> shop = load_amazon12()
        >>> problem = search_problem(shop.similarity, shop.hierarchies["A"], 0, similarity="precomputed", delta=0.005)
        >>> round(problem.observation_probabilities(problem.initial_belief, Descend())[Node(19)], 4)
        0.9987
    """
    return _search(**locals())[0]


def search_environment(
    X: Any,
    hierarchy: Hierarchy,
    item: int,
    *,
    similarity: Similarity = "cosine",
    delta: float = 0.01,
    nu: float = 1.0,
    reward: Reward | None = None,
    enter_own_singleton: bool = True,
) -> POMDP:
    """Return the environment of the search for an item, the underlying MDP.

    Args:
        X, hierarchy, item, similarity, delta, nu, reward, enter_own_singleton: As for `search_problem`.

    Raises:
        FeatureError, ParameterError: As `search_problem`.

    Example:
        >>> from pomdp_hier.hqs.model import Descend, SearchState
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> print(*search_environment(X, tree, 3).successors(SearchState(6, 1), Descend()))
        <4,0> <5,1>

    References:
        Huang, Piao, Moreno and Hurley, the environment of the search.
    """
    return _search(**locals())[1]


def search_models(prepared: Prepared, item: int) -> tuple[POMDP, POMDP]:
    """Return the agent's POMDP of the search for one item, and its environment."""
    hierarchy = prepared.hierarchy
    eta = _guidance(prepared, item)
    rewards: dict[Hashable, Number] = dict(enumerate(prepared.rewards.reward.tolist()))
    path = hierarchy.path(item).tolist()
    # The parent of the item's own singleton is closed if the searcher must not enter it.
    alone = path[-1] == item and len(path) > 1
    closed = (path[-2],) if alone and not prepared.settings.enter_own_singleton else ()
    problem = search_problem_from_guidance(eta, rewards, root=int(hierarchy.root), closed=closed)
    return problem, search_environment_from_guidance(eta, rewards, path, closed=closed)


def item_guidance(
    X: Any, hierarchy: Hierarchy, item: int, *, similarity: Similarity = "cosine", delta: float = 0.01, nu: float = 1.0
) -> dict[int, dict[int, float]]:
    """Return ``{c: {c': eta(c, c')}}``, the guidance for one item at every internal node, the root first."""
    return _guidance(prepared_search(X, hierarchy, Settings(similarity, delta, nu)), item)


def prepared_search(X: Any, hierarchy: Hierarchy, settings: Settings) -> Prepared:
    """Return the checked input of a search; X may be the result of `affinity`."""
    if not hasattr(X, "batch"):
        return prepare(X, hierarchy, settings)
    require_hierarchy(hierarchy)
    return Prepared(X, hierarchy, settings)


def _guidance(prepared: Prepared, item: int) -> dict[int, dict[int, float]]:
    tree, settings = prepared.hierarchy, prepared.settings
    eta = {}
    for node, values in similarities_to_children(prepared, item).items():
        shares = guidance(values, float(settings.delta), settings.nu, int(tree.levels[node]))
        eta[node] = dict(zip(tree.children(node).tolist(), shares.tolist(), strict=True))
    return eta


def check_item(item: object, hierarchy: Hierarchy) -> None:
    """Raise unless the item exists."""
    if not is_integer(item) or not 0 <= item < hierarchy.n_items:
        raise ParameterError(
            f"item: got {brief(item)}; expected "
            f"0 to {hierarchy.n_items - 1}. hierarchy.node(label) is an item's number."
        )


def similarities_to_children(prepared: Prepared, item: int) -> dict[int, Floats]:
    """Return the similarities of an item to the children of every internal node, the root first."""
    tree = prepared.hierarchy
    check_item(item, tree)
    internal = np.flatnonzero(np.diff(tree.child_offsets) > 0)
    if not len(internal):
        return {}
    internal = internal[np.argsort(tree.levels[internal], kind="stable")]
    found = prepared.affinity.batch(np.array([item])).expand(np.zeros(len(internal), dtype=np.int64), internal)
    parts = np.split(found, np.cumsum(np.diff(tree.child_offsets)[internal])[:-1])
    return dict(zip(internal.tolist(), parts, strict=True))
