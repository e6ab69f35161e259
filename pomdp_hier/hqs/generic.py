"""The generic route: item by item, the POMDP is built, the policy asked at every belief, and its exact value read.

It is the definition that the engine is held against, and the place for policies that are no stopping rules.
"""

import copy
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from pomdp_hier._version import __version__
from pomdp_hier.errors import DataWarning, MissingExtraError, ParameterError
from pomdp_hier.features.affinity import Affinity, affinity
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.checkpoint import Checkpoint, fingerprint
from pomdp_hier.hqs.model import END, SearchState, search_environment, search_problem
from pomdp_hier.hqs.policies import DESCEND, SEARCH, reward_at, search_policy
from pomdp_hier.hqs.record import record
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.reward import Reward
from pomdp_hier.planning.decision import Policy
from pomdp_hier.pomdp import POMDP
from pomdp_hier.pomdp.numeric import Number, total
from pomdp_hier.scorer.rules import Tie
from pomdp_hier.simulation import PolicyValue, policy_value

__all__ = ["SearchValue", "evaluate_generic", "search_value"]

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


def evaluate_generic(
    X: Any,
    hierarchy: Hierarchy,
    *,
    policy: Any = "one-step",
    similarity: Similarity = "cosine",
    delta: float = 0.01,
    nu: float = 1.0,
    tie: Tie = "descend",
    reward: Reward | None = None,
    enter_own_singleton: bool = True,
    updater: Callable[[POMDP], Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    items: Sequence[int] | npt.NDArray[np.int64] | None = None,
) -> HQSResult:
    """Return the Hierarchy Quality for Search by planning in the POMDP of each item.

    A policy with ``seeded`` is given a seed an item, any other is copied for each: the result does not depend on the
    number of workers or on the order in which they finish.

    Values of actions that differ by less than a few roundings count as a tie here. Under a reward that is the same for
    clusters of several sizes, a step can lose less than that; the engine tells such a loss from a tie, and stops.

    Args:
        X, hierarchy, similarity, delta, nu, tie, reward, enter_own_singleton: As for `pomdp_hier.hqs.score.evaluate`.
        policy: Any name or rule of the engine, a `Policy`, or a function of the belief.
        updater: Makes the agent's updater from its problem, such as the class `TabularUpdater`; Bayes by default.
        seed: Where the items' seeds come from.
        n_jobs: How many processes, -1 for one a CPU; more than one needs joblib, and runs on the back end that
            ``joblib.parallel_config`` names.
        checkpoint: A file that finished items are appended to, and taken from when the run is started again.
        progress: Whether to show a progress bar on stderr.
        items: The items to score, in the order of the result; None for all.

    Raises:
        CheckpointError: The checkpoint belongs to other data or settings, or is damaged.
        MissingExtraError: More than one process without joblib.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> evaluate_generic([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], tree, delta=0.1)
        HQSResult(score=0.622188, 4 items)
    """
    model: dict[str, Any] = {
        "similarity": similarity,
        "delta": delta,
        "nu": nu,
        "reward": reward,
        "enter_own_singleton": enter_own_singleton,
    }
    planner = search_policy(policy, tie, hierarchy)
    job = _Job(X, hierarchy, model, planner, updater, seed)
    if n_jobs == 0 or n_jobs < -1:
        raise ParameterError(f"n_jobs: {n_jobs}; expected a number of processes, or -1 for one a CPU")
    chosen = list(range(hierarchy.n_items)) if items is None else np.asarray(items).tolist()
    if checkpoint is None:
        rows = _finish(job, chosen, {}, None, n_jobs, progress)
    else:
        with Checkpoint.open(checkpoint, job.key()) as saved:
            rows = _finish(job, chosen, saved.rows, saved, n_jobs, progress)
    nodes = np.array([row["node"] for row in rows], dtype=np.int64)
    config = record(similarity, delta, nu, tie, policy, reward, enter_own_singleton)
    config |= {"engine": "generic", "seed": seed}
    return HQSResult(
        values=np.array([row["value"] for row in rows]),
        stop_nodes=nodes,
        stop_levels=hierarchy.levels[nodes],
        path_probabilities=np.array([row["probability"] for row in rows]),
        rewards=np.array([row["reward"] for row in rows]),
        config=config,
    )


Row = dict[str, Any]


@dataclass(frozen=True)
class _Job:
    """What every item's search needs; sent to the workers."""

    X: Any
    hierarchy: Hierarchy
    model: dict[str, Any]
    policy: Policy
    updater: Callable[[POMDP], Any] | None
    seed: int

    def key(self) -> str:
        """Return the fingerprint of everything that the result depends on."""
        draws = hasattr(self.policy, "seeded")
        return fingerprint(
            version=__version__,
            X=self.X if hasattr(self.X, "dtype") else np.asarray(self.X),
            parent=self.hierarchy.parent,
            n_items=self.hierarchy.n_items,
            is_cluster=self.hierarchy.is_cluster,
            model=self.model,
            policy=self.policy.seeded(0) if draws else self.policy,  # type: ignore[attr-defined]
            updater=self.updater,
            seed=self.seed if draws else None,
        )

    def prepared(self) -> Affinity:
        """Return what knows the similarities; features are checked here, with their warnings."""
        return affinity(self.X, self.hierarchy, self.model["similarity"])

    def rows(self, items: Sequence[int], known: Affinity | None = None) -> list[Row]:
        """Return the finished rows of some items."""
        if known is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # given once, where the run was started
                known = self.prepared()
        return [self._row(item, known) for item in items]

    def _row(self, item: int, known: Affinity) -> Row:
        problem = search_problem(known, self.hierarchy, item, **self.model)
        environment = search_environment(known, self.hierarchy, item, **self.model)
        policy: Any = self.policy
        if hasattr(policy, "seeded"):
            policy = policy.seeded(np.random.SeedSequence(self.seed, spawn_key=(item,)))
        else:
            policy = copy.deepcopy(policy)
        if hasattr(policy, "for_environment"):
            policy = policy.for_environment(environment)
        updater = None if self.updater is None else self.updater(problem)
        found = search_value(policy, problem, environment, updater=updater)
        return {
            "item": item,
            "value": float(found.value),
            "node": int(found.stop_node),
            "probability": float(found.path_probability),
            "reward": float(found.reward),
        }


def _finish(
    job: _Job, items: Sequence[int], done: dict[int, Row], saved: Checkpoint | None, n_jobs: int, progress: bool
) -> list[Row]:
    """Return the rows of some items in order: those that are done, and the others by running them."""
    rows = {item: done[item] for item in items if item in done}
    waiting = [item for item in items if item not in rows]
    size = 1 if n_jobs == 1 else _CHUNK
    chunks = [waiting[i : i + size] for i in range(0, len(waiting), size)]
    with tqdm(total=len(items), initial=len(rows), unit="item", disable=not progress, desc="HQS") as bar:
        for finished in _run(job, chunks, n_jobs, job.prepared()):
            if saved is not None:
                saved.append(finished)
            rows.update({row["item"]: row for row in finished})
            bar.update(len(finished))
    return [rows[item] for item in items]


def _run(job: _Job, chunks: list[list[int]], n_jobs: int, known: Affinity) -> Iterator[list[Row]]:
    if n_jobs == 1:
        for chunk in chunks:
            yield job.rows(chunk, known)
        return
    try:
        import joblib
    except ImportError as error:
        raise MissingExtraError("n_jobs needs joblib; install it with: pip install 'pomdp-hier[parallel]'") from error
    tasks = (joblib.delayed(job.rows)(chunk) for chunk in chunks)
    yield from joblib.Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
