"""The generic route: item by item, the POMDP is built, the policy asked at every belief, and its exact value read.

It is the definition that the engine is held against, and the place for policies that are no stopping rules.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pomdp_hier._arrays import Ints
from pomdp_hier._jobs import in_processes
from pomdp_hier._progress import shown_progress
from pomdp_hier._version import __version__
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.hqs.checkpoint import Checkpoint, Row, fingerprint
from pomdp_hier.hqs.inputs import Prepared
from pomdp_hier.hqs.item_search import search_models
from pomdp_hier.hqs.model import END, SearchState
from pomdp_hier.hqs.policies import DESCEND, SEARCH, reward_at, search_policy
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.settings import Run
from pomdp_hier.planning.decision import Policy
from pomdp_hier.pomdp.numeric import Number, total
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.simulation import policy_value
from pomdp_hier.simulation.exact import PolicyValue

_CHUNK = 16


@dataclass(frozen=True)
class SearchValue:
    """What a policy is worth in the search for one item.

    Attributes:
        value: Its exact value in the environment.
        stop_node: Where the search ends while the item is at hand; the most probable node of several.
        path_probability: The probability that the search ends with the item at hand.
        reward: The mean reward of such an end.
        evaluation: The exact evaluation, with every belief that was decided at.
    """

    value: Number
    stop_node: Any
    path_probability: Number
    reward: Number
    evaluation: PolicyValue


def search_value(
    policy: Any, problem: POMDP, environment: POMDP, *, updater: Any = None, follow_lost: bool = False
) -> SearchValue:
    """Return the exact value of a policy in the search for one item, and where it stops.

    Args:
        policy: A `Policy` or a plain function of the belief.
        problem: The agent's model of the search.
        environment: What really happens.
        updater: How the agent updates its belief; Bayes' rule by default.
        follow_lost: Follow the searcher beyond the step that left the item behind. Nothing but the -1 at the end can
            come then, so that the value is the same; left out, only the item's own path is walked.

    Example:
        >>> from pomdp_hier.hqs import search_environment, search_problem
        >>> from pomdp_hier.hqs.paper.examples import load_amazon12
        >>> shop = load_amazon12()
        >>> models = [build(shop.similarity, shop.hierarchies["A"], 0, similarity="precomputed", delta=0.005)
        ...           for build in (search_problem, search_environment)]
        >>> found = search_value(search_policy("one-step"), *models)
        >>> found.stop_node, round(float(found.value), 4)
        (16, 0.6204)
    """
    world = environment if follow_lost else _ends_when_lost(environment)
    evaluation = policy_value(policy, problem, world, updater=updater, trace=True)
    ends: dict[Any, Number] = {}
    for visit in evaluation.visits:
        node = visit.belief.support[0].node
        held = visit.weights.get(SearchState(node, 1), 0) * visit.actions.get(SEARCH, 0)
        if held != 0:
            ends[node] = ends.get(node, 0) + held
    if not ends:  # guidance underflowed to 0 on the way: nobody arrives where the policy would stop
        node = max(evaluation.visits, key=lambda visit: visit.step).belief.support[0].node
        return SearchValue(evaluation.value, node, 0, reward_at(problem, node), evaluation)
    stop = max(ends, key=ends.__getitem__)
    probability = total(ends.values())
    reward = reward_at(problem, stop)
    if len(ends) > 1:
        reward = total(p * reward_at(problem, node) for node, p in ends.items()) / probability
    return SearchValue(evaluation.value, stop, probability, reward, evaluation)


def _ends_when_lost(environment: POMDP) -> POMDP:
    """Return same environment, in which a step that leaves the item behind ends the run with the -1 that is to come."""
    lost = SearchState(END, 0)

    def move(state: Any, action: Any) -> dict[Any, Number]:
        moved: dict[Any, Number] = {}
        for state_after, probability in environment.successors(state, action).items():
            target = state_after if state_after.on_path else lost
            moved[target] = moved.get(target, 0) + probability
        return moved

    def earn(state: Any, action: Any, next_state: Any) -> Number:
        if action == DESCEND and next_state == lost:
            return environment.expected_reward(SearchState(state.node, 0), SEARCH)
        return environment.step_reward(state, action, next_state)

    def perceive(next_state: Any, action: Any, state: Any) -> Any:
        if action == DESCEND and next_state == lost:
            return "lost"
        return environment.observation_distribution(next_state, action, state)

    return POMDP(
        transition=move,
        observation=perceive,
        reward=earn,
        initial_belief=environment.initial_belief,
        discount=environment.discount,
        terminal=environment.is_terminal,
        legal_actions=[SEARCH, DESCEND],
    )


def score_generic(prepared: Prepared, run: Run, items: Ints) -> HQSResult:
    """Return the result of these items' searches, in their order."""
    settings, hierarchy = prepared.settings, prepared.hierarchy
    job = _Job(prepared, search_policy(settings.policy, settings.tie, hierarchy), run.updater, run.policy_seed)
    chosen = items.tolist()
    if run.checkpoint is None:
        rows = _finish(job, chosen, {}, None, run)
    else:
        key = job.key(run.policy_version)
        with Checkpoint.open(run.checkpoint, key, hierarchy.n_items, hierarchy.n_nodes) as saved:
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


@dataclass(frozen=True)
class _Job:
    """What every item's search needs; sent to the workers."""

    prepared: Prepared
    policy: Policy
    updater: Callable[[POMDP], Any] | None
    seed: int

    def key(self, policy_version: str | None) -> str:
        """Return the fingerprint of everything that the result depends on."""
        prepared, tree = self.prepared, self.prepared.hierarchy
        draws = hasattr(self.policy, "seeded")
        table = prepared.features.table if isinstance(prepared.features, ItemFeatures) else prepared.features
        return fingerprint(
            policy_version,
            data=(__version__, table, tree.parent, tree.is_cluster, prepared.rewards.reward),
            model=(prepared.settings.delta, prepared.settings.nu, prepared.settings.enter_own_singleton),
            similarity=prepared.settings.similarity,
            policy=self.policy.seeded(0) if draws else self.policy,  # type: ignore[attr-defined]
            updater=self.updater,
            seed=self.seed if draws else None,
        )

    @property
    def sent(self) -> dict[str, Any]:
        """What goes along to other processes, by the names of the arguments that it came with."""
        return {"policy": self.policy, "updater": self.updater, "similarity": self.prepared.settings.similarity}

    def rows(self, items: Sequence[int]) -> list[Row]:
        """Return the finished rows of some items."""
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


def _finish(job: _Job, items: Sequence[int], done: dict[int, Row], saved: Checkpoint | None, run: Run) -> list[Row]:
    """Return the rows of some items in order: those that are done, and the others by running them."""
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
