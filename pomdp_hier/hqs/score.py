"""The public functions that score a hierarchy: one number, one number per item, or the whole record."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from pomdp_hier.errors import ParameterError
from pomdp_hier.features.affinity import PrecomputedAffinity, affinity
from pomdp_hier.features.distances import warn_of_distances
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import check_temperature, temperatures
from pomdp_hier.hqs.record import check_flag, named, record
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.reward import Reward, node_rewards
from pomdp_hier.hqs.sample import Sampling
from pomdp_hier.hqs.sampling import sampling_plan
from pomdp_hier.scorer.dispatch import choose_engine, run_engine
from pomdp_hier.scorer.rules import Tie, as_rule
from pomdp_hier.scorer.task import NodeRewards, Stops, Task

if TYPE_CHECKING:
    from pomdp_hier.pomdp import POMDP

__all__ = ["as_result", "evaluate", "hqs_samples", "hqs_score", "oracle_value"]


def oracle_value(probability: npt.ArrayLike, reward: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return ``V = (r + 1) p - 1``: what a search is worth that finds the target with probability p.

    Example:
        >>> float(oracle_value(0.9978, 0.6225).round(4))
        0.6189
    """
    worth = np.asarray(reward, dtype=np.float64) + 1.0
    return np.asarray(worth * np.asarray(probability, dtype=np.float64) - 1.0)


class Settings(TypedDict, total=False):
    """The keyword arguments of :func:`evaluate`, which say what each means."""

    similarity: Similarity
    delta: float | Literal["calibrated"]
    nu: float
    tie: Tie
    policy: Any
    reward: Reward | None
    enter_own_singleton: bool
    engine: str
    threads: int | None
    progress: bool
    sample_size: float | None
    sampling: Sampling
    random_state: int | np.random.Generator | None
    target_error: float | None
    updater: "Callable[[POMDP], Any] | None"
    seed: int
    n_jobs: int
    checkpoint: str | os.PathLike[str] | None


def evaluate(
    X: Any,
    hierarchy: Hierarchy,
    *,
    similarity: Similarity = "cosine",
    delta: float | Literal["calibrated"] = 0.01,
    nu: float = 1.0,
    tie: Tie = "descend",
    policy: Any = "one-step",
    reward: Reward | None = None,
    enter_own_singleton: bool = True,
    engine: str = "auto",
    threads: int | None = None,
    progress: bool = False,
    sample_size: float | None = None,
    sampling: Sampling = "stratified",
    random_state: int | np.random.Generator | None = None,
    target_error: float | None = None,
    updater: "Callable[[POMDP], Any] | None" = None,
    seed: int = 0,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
) -> HQSResult:
    """Return the Hierarchy Quality for Search of a tree over items, per item and overall.

    A searcher for item x steps from a node to its child c' with probability ``eta``, a softmax of similarities, until
    the policy stops it; the search is worth ``V_x = (r(c) + 1) * product of eta along x's own path - 1`` there, and HQS
    is the mean of V_x.

    References:
        Huang, Piao, Moreno and Hurley, *POMDP Modelling for Assessing Hierarchies*.

    Args:
        X: Features ``[N, D]``, dense (also a memory map) or sparse, or similarities ``[N, N]`` with
            ``similarity="precomputed"``.
        hierarchy: The tree over the N items, in the order of the rows.
        similarity: ``"cosine"``, ``"inverse_sqeuclidean"``, ``"negative_euclidean"``, ``"precomputed"``, one of their
            records with options, or a function of the items' rows and a cluster.
        delta: Temperature of the guidance at the root; smaller is surer. ``"calibrated"`` takes the one that fits where
            the items are best (`calibrate_delta`); the result's ``config`` tells which.
        nu: Its growth per level, at least 1.
        tie: Whether to "descend" or to "search" when both are worth the same, as at a node with one child.
        policy: ``"one-step"`` (the paper's), ``"optimal"`` (of the agent's model), ``"descend"``, ``"search-root"``,
            ``"clairvoyant"`` (the best stop in hindsight), ``LookAhead(depth)``, a ``StoppingRule`` or a ``Policy``.
        reward: ``reward(size, n_items)``, not growing with the size; None for the paper's.
        enter_own_singleton: Whether the search for x may step into x itself, where the tree has it as a leaf cluster of
            its own. (A one-item cluster with a node number of its own is a cluster like any other.)
        engine: ``"auto"``, ``"numpy"``, ``"numba"``, or ``"generic"``, which plans each item's POMDP.
        threads: Threads for numba, None for one per usable CPU; the result is the same to the last bit.
        progress: Whether to show a progress bar on stderr.
        sample_size: Score a sample only: a number of items, or a fraction of them as a float. The result carries the
            standard error and an interval.
        sampling: ``"stratified"`` along the leaf order of the tree, whose error is smaller, or ``"simple"``.
        random_state: The seed of the draw or a Generator; None for a seed that the result's ``config`` tells.
        target_error: Instead of a size: sample until the 95 % interval reaches no further than this to either side.
            Its coverage is then nominal.
        updater, seed, n_jobs, checkpoint: For the generic route, see
            :func:`~pomdp_hier.hqs.generic.evaluate_generic`.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For a setting that cannot.
        MissingExtraError: If an engine is asked for that is not installed.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> evaluate(X, tree, delta=0.1)
        HQSResult(score=0.622188, 4 items)
    """
    calibration: dict[str, Any] = {}
    if isinstance(delta, str):
        from pomdp_hier.hqs.calibration import resolve_delta

        of_model = {"similarity": similarity, "nu": nu, "enter_own_singleton": enter_own_singleton}
        delta = float(resolve_delta(X, hierarchy, {"delta": delta, **of_model})[0]["delta"])
        calibration = {"delta_from": "calibrated"}
    check_temperature(delta, nu)
    if threads is not None and (not isinstance(threads, int | np.integer) or threads < 1):
        raise ParameterError(f"threads is {threads!r}; at least 1 is needed, or None for one per usable CPU")
    check_flag("enter_own_singleton", enter_own_singleton)
    rule = as_rule(policy, tie)
    plan = sampling_plan(hierarchy, sample_size, sampling, random_state, target_error)
    if engine == "generic" or rule is None:
        from pomdp_hier.hqs.generic import evaluate_generic

        if engine not in ("auto", "generic"):
            raise ParameterError(f"engine is {engine!r}; policy {named(policy)} is no stopping rule: use 'generic'")
        run = partial(
            evaluate_generic,
            X,
            hierarchy,
            policy=policy,
            similarity=similarity,
            delta=delta,
            nu=nu,
            tie=tie,
            reward=reward,
            enter_own_singleton=enter_own_singleton,
            updater=updater,
            seed=seed,
            n_jobs=n_jobs,
            checkpoint=checkpoint,
            progress=progress,
        )
        result = run() if plan is None else plan.run(hierarchy, lambda items: run(items=items))
        return replace(result, config={**result.config, **calibration}) if calibration else result
    if checkpoint is not None or updater is not None:
        raise ParameterError("checkpoint and updater are for engine='generic', which this policy does not need; say so")
    known = affinity(X, hierarchy, similarity, compiled=engine != "numpy")
    if isinstance(known, PrecomputedAffinity):
        warn_of_distances(known.matrix, hierarchy)
    task = Task(
        affinity=known,
        rewards=node_rewards(hierarchy, reward),
        temperatures=temperatures(np.arange(int(hierarchy.height) + 1), delta, nu),
        rule=rule,
        enter_own_singleton=enter_own_singleton,
        threads=threads,
    )
    chosen = choose_engine(task, engine)
    config = {
        **record(similarity, delta, nu, tie, policy, reward, enter_own_singleton),
        "engine": chosen,
        **calibration,
    }

    def score(items: npt.NDArray[np.int64]) -> HQSResult:
        with tqdm(total=len(items), unit="item", disable=not progress, desc="HQS") as bar:
            return as_result(run_engine(task, items, chosen, bar.update), hierarchy, task.rewards, config)

    return score(np.arange(hierarchy.n_items)) if plan is None else plan.run(hierarchy, score)


def as_result(stops: Stops, hierarchy: Hierarchy, rewards: NodeRewards, config: dict[str, Any]) -> HQSResult:
    """Return the result that stops of searches amount to."""
    reward = rewards.reward[stops.nodes]
    return HQSResult(
        values=oracle_value(stops.probabilities, reward),
        stop_nodes=stops.nodes,
        stop_levels=hierarchy.levels[stops.nodes],
        path_probabilities=stops.probabilities,
        rewards=reward,
        config=config,
    )


def hqs_score(X: Any, hierarchy: Hierarchy, **settings: Unpack[Settings]) -> float:
    """Return the HQS of a tree over items: the mean of :func:`hqs_samples`, exactly summed, in -1 to 1.

    Takes the settings of :func:`evaluate`, and raises what it raises.

    Example:
        >>> from pomdp_hier.hqs.paper.examples import load_amazon12
        >>> from pomdp_hier.hqs.paper.presets import PAPER_TABLE
        >>> shop = load_amazon12()
        >>> round(hqs_score(shop.similarity, shop.hierarchies["A"], similarity="precomputed", **PAPER_TABLE), 4)
        0.5715
    """
    return evaluate(X, hierarchy, **settings).score


def hqs_samples(X: Any, hierarchy: Hierarchy, **settings: Unpack[Settings]) -> npt.NDArray[np.float64]:
    """Return each item's oracle value ``V_x`` ``[N]``, in -1 to 1: what the search for it is worth.

    Takes the settings of :func:`evaluate`, and raises what it raises.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> hqs_samples([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], tree).round(4)
        array([0.6225, 0.6225, 0.6225, 0.6225])
    """
    return evaluate(X, hierarchy, **settings).values
