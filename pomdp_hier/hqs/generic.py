"""The search for one item as a POMDP, and the generic engine, which evaluates a policy in each exactly.

It is the reference for the vectorised engines, and it runs policies that are not stopping rules.
"""

import copy
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pomdp_hier._arguments import Floats, Ints, is_integer, unexpected
from pomdp_hier._io.checkpoint import Checkpoint, fingerprint
from pomdp_hier._progress import in_processes, shown_progress
from pomdp_hier._version import __version__
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import Reward, guidance
from pomdp_hier.hqs.inputs import Prepared, Run, Settings, prepare
from pomdp_hier.hqs.model import END, Guidance, SearchState, closed_form, search_pair, step_from_path
from pomdp_hier.hqs.policies import DESCEND, SEARCH, reward_at, search_policy
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.planning.decision import Policy
from pomdp_hier.pomdp.numeric import Number, total
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.simulation import policy_value
from pomdp_hier.simulation.exact import PolicyValue


def _search(X: Any, hierarchy: Hierarchy, item: int, **settings: Any) -> tuple[POMDP, POMDP]:
    return search_models(prepared_search(X, hierarchy, Settings(**settings)), item)


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
    return search_pair(eta, rewards, path, closed)


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
        raise unexpected("item", item, f"0 to {hierarchy.n_items - 1}", " hierarchy.node(label) is an item's number.")


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


def closed_form_gap(eta: Guidance) -> float:
    """Return the largest difference of the closed form from Bayes' rule at all nodes of one item.

    The numbers are those of `AgentTransition` and of `ClosedFormUpdater`, as one array per internal node.

    Args:
        eta: The guidance in floats, each node before its children; children of probability 0 are left out.

    Example:
        >>> closed_form_gap({"all": {"left": 0.75, "right": 0.25}})
        0.0
    """
    beliefs: dict[Hashable, float] = {}
    gaps = [0.0]
    for node, children in eta.items():
        b, shares = beliefs.get(node, 1.0), np.fromiter(children.values(), dtype=np.float64)
        on_path, off_path = step_from_path(shares)
        joint = b * on_path
        evidence = joint + (b * off_path + (1 - b) * shares)
        posterior = closed_form(shares, b)
        with np.errstate(invalid="ignore"):  # 0 / 0, an impossible observation
            found = np.maximum(abs(joint / evidence - posterior), abs(evidence - shares))
        gaps.append(float(np.where(shares == 0, 0.0, found).max()))
        beliefs.update(zip(children, posterior.tolist(), strict=True))
    return float(np.max(gaps))  # NaN stays


_CHUNK = 16


@dataclass(frozen=True)
class SearchValue:
    """Value of a policy in the search for one item.

    Attributes:
        value: Its exact value in the environment.
        stop_node: The node on the true path where the search ends; the most probable one of several.
        path_probability: The probability that the search ends on the true path.
        reward: The mean reward of such a search.
        evaluation: The exact evaluation, with every belief at which the policy decided.
    """

    value: Number
    stop_node: Any
    path_probability: Number
    reward: Number
    evaluation: PolicyValue


def search_value(
    policy: Any, problem: POMDP, environment: POMDP, *, updater: Any = None, follow_lost: bool = False
) -> SearchValue:
    """Return the exact value of a policy in the search for one item, and its stop node."""
    followed = environment if follow_lost else _ends_when_lost(environment)
    evaluation = policy_value(policy, problem, followed, updater=updater, trace=True)
    ends: dict[Any, Number] = {}
    for visit in evaluation.visits:
        node = visit.belief.support[0].node
        held = visit.weights.get(SearchState(node, 1), 0) * visit.actions.get(SEARCH, 0)
        if held != 0:
            ends[node] = ends.get(node, 0) + held
    if not ends:  # guidance underflowed to 0 on the way: the stop node has probability 0
        node = max(evaluation.visits, key=lambda visit: visit.step).belief.support[0].node
        return SearchValue(evaluation.value, node, 0, reward_at(problem, node), evaluation)
    stop = max(ends, key=ends.__getitem__)
    probability = total(ends.values())
    reward = reward_at(problem, stop)
    if len(ends) > 1:
        reward = total(p * reward_at(problem, node) for node, p in ends.items()) / probability
    return SearchValue(evaluation.value, stop, probability, reward, evaluation)


def _ends_when_lost(environment: POMDP) -> POMDP:
    """Return the environment with episodes that end at a wrong branch, with the reward -1 of the failed search."""
    lost = SearchState(END, 0)

    def move(state: Any, action: Any) -> dict[Any, Number]:
        moved: dict[Any, Number] = {}
        for state_after, probability in environment.successors(state, action).items():
            target = state_after if state_after.on_path else lost
            moved[target] = moved.get(target, 0) + probability
        return moved

    def reward(state: Any, action: Any, next_state: Any) -> Number:
        if action == DESCEND and next_state == lost:
            return environment.expected_reward(SearchState(state.node, 0), SEARCH)
        return environment.step_reward(state, action, next_state)

    def observe(next_state: Any, action: Any, state: Any) -> Any:
        if action == DESCEND and next_state == lost:
            return "lost"
        return environment.observation_distribution(next_state, action, state)

    return POMDP(
        transition=move,
        observation=observe,
        reward=reward,
        initial_belief=environment.initial_belief,
        discount=environment.discount,
        terminal=environment.is_terminal,
        legal_actions=[SEARCH, DESCEND],
    )


def score_generic(prepared: Prepared, run: Run, items: Ints) -> HQSResult:
    """Return the result of the searches for these items, in their order."""
    settings, hierarchy = prepared.settings, prepared.hierarchy
    job = _Job(prepared, search_policy(settings.policy, settings.tie, hierarchy), run.updater, run.policy_seed)
    chosen = items.tolist()
    if run.checkpoint is None:
        rows = _finish(job, chosen, {}, None, run)
    else:
        key = job.key(run.policy_version)
        with Checkpoint.open(run.checkpoint, key, Row, possible_in(hierarchy.n_items, hierarchy.n_nodes)) as saved:
            rows = _finish(job, chosen, saved.rows, saved, run)
    nodes = np.array([row.node for row in rows], dtype=np.int64)
    return HQSResult(
        values=np.array([row.value for row in rows]),
        stop_nodes=nodes,
        stop_levels=hierarchy.levels[nodes],
        path_probabilities=np.array([row.probability for row in rows]),
        rewards=np.array([row.reward for row in rows]),
        config={**settings.record(), "engine": "generic", "policy_seed": run.policy_seed},
    )


class Row(NamedTuple):
    """The result of the search for one item, as a checkpoint holds it."""

    item: int
    value: float
    node: int
    probability: float
    reward: float


def possible_in(n_items: int, n_nodes: int) -> Callable[[Row], bool]:
    """Return the function that tells whether a search in a tree of this size can have a result."""
    slack = 1e-9
    return lambda row: (
        0 <= row.item < n_items
        and 0 <= row.node < n_nodes
        and -slack <= row.probability <= 1 + slack
        and -1 - slack <= row.value <= row.reward + slack
        and math.isfinite(row.reward)
    )


@dataclass(frozen=True)
class _Job:
    """The common input of all searches, sent to worker processes."""

    prepared: Prepared
    policy: Policy
    updater: Callable[[POMDP], Any] | None
    seed: int

    def key(self, policy_version: str | None) -> str:
        """Return the fingerprint of all input of the result."""
        prepared, tree = self.prepared, self.prepared.hierarchy
        samples = hasattr(self.policy, "seeded")
        table = prepared.features.table if isinstance(prepared.features, ItemFeatures) else prepared.features
        return fingerprint(
            policy_version,
            data=(__version__, table, tree.parent, tree.is_cluster, prepared.rewards.reward),
            model=(prepared.settings.delta, prepared.settings.nu, prepared.settings.enter_own_singleton),
            similarity=prepared.settings.similarity,
            policy=self.policy.seeded(0) if samples else self.policy,  # type: ignore[attr-defined]
            updater=self.updater,
            seed=self.seed if samples else None,
            **({} if prepared.weights is None else {"weights": prepared.weights}),
        )

    @property
    def sent(self) -> dict[str, Any]:
        """The objects sent to other processes, by argument name."""
        return {"policy": self.policy, "updater": self.updater, "similarity": self.prepared.settings.similarity}

    def rows(self, items: Sequence[int]) -> list[Row]:
        return [self._row(item) for item in items]

    def _row(self, item: int) -> Row:
        problem, environment = search_models(self.prepared, item)
        policy: Any = self.policy
        if hasattr(policy, "seeded"):
            policy = policy.seeded(np.random.SeedSequence(self.seed, spawn_key=(item,)))
        else:
            policy = copy.deepcopy(policy)
        if hasattr(policy, "for_environment"):
            policy = policy.for_environment(environment)
        updater = None if self.updater is None else self.updater(problem)
        found = search_value(policy, problem, environment, updater=updater)
        return Row(
            item=item,
            value=float(found.value),
            node=int(found.stop_node),
            probability=float(found.path_probability),
            reward=float(found.reward),
        )


def _finish(
    job: _Job, items: Sequence[int], done: dict[int, Row], saved: Checkpoint[Row] | None, run: Run
) -> list[Row]:
    """Return the rows of these items in order, and run those that are not done."""
    rows = {item: done[item] for item in items if item in done}
    waiting = [item for item in dict.fromkeys(items) if item not in rows]
    size = 1 if run.n_jobs == 1 else _CHUNK
    chunks = [waiting[i : i + size] for i in range(0, len(waiting), size)]
    with shown_progress(run.progress, "HQS", "item", len(items), initial=len(rows)) as bar:
        for finished in in_processes(job.rows, chunks, run.n_jobs, job.sent):
            if saved is not None:
                saved.append(finished)
            rows.update({row.item: row for row in finished})
            bar.update(len(finished))
    return [rows[item] for item in items]
