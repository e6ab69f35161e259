"""The public functions that score a hierarchy: one number, one number per item, or the whole record."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier._engines.dispatch import choose_engine, run_engine
from pomdp_hier._engines.rules import Tie
from pomdp_hier._engines.task import NodeRewards, Stops
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.inputs import Prepared, opened, prepare
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.reward import Reward
from pomdp_hier.hqs.sampling import Method, Sampling
from pomdp_hier.hqs.settings import CALIBRATED, Request, Run, Settings

if TYPE_CHECKING:
    from pomdp_hier.pomdp import POMDP


_OF_A_SAMPLE = ("sample_size", "sampling", "random_state", "target_error", "coverage")


def oracle_value(probability: npt.ArrayLike, reward: npt.ArrayLike) -> Floats:
    """Return ``V = (r + 1) p - 1``: what a search is worth that finds the target with probability p.

    Example:
        >>> float(oracle_value(0.9978, 0.6225).round(4))
        0.6189
    """
    worth = np.asarray(reward, dtype=np.float64) + 1.0
    return np.asarray(worth * np.asarray(probability, dtype=np.float64) - 1.0)


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
    sampling: Method = "stratified",
    random_state: int | np.random.Generator | None = None,
    target_error: float | None = None,
    updater: "Callable[[POMDP], Any] | None" = None,
    seed: int = 0,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    policy_version: str | None = None,
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
            Take the one that the tree was made with, or that searchers use.
        delta: Temperature of the guidance at the root; smaller is surer. 0.01 is the paper's setting for cosines.
            ``"calibrated"`` is the temperature that best fits where the items are (`calibrate_delta`); the result's
            ``config`` has it. Neither was fitted to the choices of people.
        nu: Its growth per level, at least 1.
        tie: Whether to "descend" or to "search" when both are worth the same, as at a node with one child.
        policy: ``"one-step"`` (the paper's), ``"optimal"`` (of the agent's model), ``"descend"``, ``"search-root"``,
            ``"clairvoyant"`` (the best stop in hindsight), ``LookAhead(depth)``, a ``StoppingRule`` or a ``Policy``.
        reward: ``reward(size, n_items)``, not growing with the size; None for the paper's.
        enter_own_singleton: Whether the search for x may step into x itself, where the tree has it as a leaf cluster of
            its own. (A one-item cluster with a node number of its own is a cluster like any other.)
        engine: ``"auto"`` (numba where it is installed and there is enough to do, else numpy), ``"numpy"``,
            ``"numba"``, or ``"generic"``, which plans each item's POMDP.
        threads: Threads for numba where that runs, None for one per usable CPU; the same to the last bit.
        progress: Whether to show a progress bar on stderr.
        sample_size: Score a sample only: a number of items, or a fraction of them as a float. The result carries the
            standard error and an interval.
        sampling: ``"stratified"`` along the leaf order of the tree, whose error is smaller, or ``"simple"``.
        random_state: The seed of the draw or a Generator; None for a seed that the result's ``config`` tells.
        target_error: Instead of a size: sample until the 95 % interval reaches no further than this to either side.
            Its coverage is then nominal.
        updater, seed, n_jobs, checkpoint, policy_version: For the generic route, see
            :func:`evaluate_generic`.

    Raises:
        FeatureError: For features that cannot be used.
        ParameterError: For a setting that cannot, or that this route does not use.
        MissingExtraError: If an engine is asked for that is not installed.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> evaluate(X, tree, delta=0.1)
        HQSResult(score=0.622188, 4 items)
    """
    settings = Settings(similarity, delta, nu, tie, policy, reward, enter_own_singleton)
    run = Run(engine, threads, progress, updater, seed, n_jobs, checkpoint, policy_version)
    request = Request(settings, run, Sampling(sample_size, sampling, random_state, target_error))
    request.check_used()
    return score(prepare(X, hierarchy, settings, compiled=engine != "numpy"), run, request.sampling)


def evaluate_generic(
    X: Any, hierarchy: Hierarchy, *, items: Sequence[int] | Ints | None = None, **settings: Any
) -> HQSResult:
    """Return the Hierarchy Quality for Search by planning in the POMDP of each item.

    A policy with ``seeded`` is given a seed an item, any other is copied for each: the result does not depend on the
    number of workers or on the order in which they finish.

    Values of actions that differ by less than a few roundings count as a tie here. Under a reward that is the same for
    clusters of several sizes, a step can lose less than that; the engine tells such a loss from a tie, and stops.

    Args:
        X, hierarchy: As for `pomdp_hier.hqs.score.evaluate`.
        items: The items to score, in the order of the result; None for all.
        **settings: Those of `evaluate`, of which these say how this route runs:

            - ``policy``: Any name or rule of the engine, a `Policy`, or a function of the belief.
            - ``updater``: Makes the agent's updater from its problem, such as the class `TabularUpdater`; Bayes by
              default.
            - ``seed``: Where the items' seeds come from.
            - ``n_jobs``: How many processes, -1 for one a CPU; more than one needs joblib, and runs on the back end
              that ``joblib.parallel_config`` names.
            - ``checkpoint``: A file that finished items are written to, and taken from when the run is started again.
              It needs joblib, and tells runs apart by data, settings and the state of policy, updater and similarity,
              not by their code: see `pomdp_hier.hqs.checkpoint`.
            - ``policy_version``: What tells the code apart: change it with the code. Also for policies that cannot be
              pickled.

    Raises:
        CheckpointError: The checkpoint belongs to other data or settings, is damaged, or is in use.
        MissingExtraError: More than one process, or a checkpoint, without joblib.
        ParameterError: For a setting that cannot be, or no such item.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> evaluate_generic([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], tree, delta=0.1)
        HQSResult(score=0.622188, 4 items)
    """
    if settings.setdefault("engine", "generic") != "generic":
        raise ParameterError(f"engine: got {brief(settings['engine'])}; expected 'generic'. Leave it out.")
    prepared, run, sampling = opened(X, hierarchy, settings)
    if items is None:
        return score(prepared, run, sampling)
    if sampling.asked:
        raise ParameterError(
            "items: got items and a sample; expected one of them. Leave out items=, or sample_size= and target_error=."
        )
    chosen = np.asarray(items)
    inside = chosen.dtype.kind in "iu" and chosen.ndim == 1 and len(chosen) > 0
    if not inside or chosen.min() < 0 or chosen.max() >= hierarchy.n_items:
        raise ParameterError(f"items: got {brief(items)}; expected item numbers from 0 to {hierarchy.n_items - 1}.")
    return score_items(prepared, run, chosen)


def score(prepared: Prepared, run: Run, sampling: Sampling, like: HQSResult | None = None) -> HQSResult:
    """Return the result of a search, of a sample of the items if one is asked for.

    What is compared with another result is scored on the items of that one, ``like``.
    """
    if like is None:
        return sampling.run(prepared.hierarchy, lambda items: {"": score_items(prepared, run, items)})[""]
    result = score_items(prepared, run, like.sampled_items)
    if like.sample is None:
        return result
    drawn = {name: value for name, value in like.config.items() if name in _OF_A_SAMPLE}
    return replace(result, sample=like.sample, config={**result.config, **drawn})


def score_items(prepared: Prepared, run: Run, items: Ints) -> HQSResult:
    """Return the result of a search for these items, in their order."""
    calibration = {} if prepared.calibration is None else {"delta_from": CALIBRATED}
    if run.is_generic(prepared.settings):
        from pomdp_hier.hqs.generic import score_generic

        result = score_generic(prepared, run, items)
        return replace(result, config={**result.config, **calibration}) if calibration else result
    task = prepared.task(run.threads)
    engine = choose_engine(task, run.engine, items)
    config = {**prepared.settings.record(), "engine": engine, **calibration}
    with shown_progress(run.progress, "HQS", "item", len(items)) as bar:
        return as_result(run_engine(task, items, engine, bar.update), prepared.hierarchy, task.rewards, config)


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


def hqs_score(
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
    sampling: Method = "stratified",
    random_state: int | np.random.Generator | None = None,
    target_error: float | None = None,
    updater: "Callable[[POMDP], Any] | None" = None,
    seed: int = 0,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    policy_version: str | None = None,
) -> float:
    """Return the HQS of a tree over items: the mean of :func:`hqs_samples`, exactly summed, in -1 to 1.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree over the N items, in the order of the rows.
        similarity, delta, nu, tie, policy, reward, enter_own_singleton, engine, threads, progress, sample_size,
        sampling, random_state, target_error, updater, seed, n_jobs, checkpoint, policy_version: As for `evaluate`.

    Raises:
        FeatureError, ParameterError, MissingExtraError: As :func:`evaluate`.

    Example:
        >>> from pomdp_hier.hqs.paper.examples import load_amazon12
        >>> from pomdp_hier.hqs.paper.presets import PAPER_TABLE
        >>> shop = load_amazon12()
        >>> round(hqs_score(shop.similarity, shop.hierarchies["A"], similarity="precomputed", **PAPER_TABLE), 4)
        0.5715
    """
    return evaluate(**locals()).score


def hqs_samples(
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
    sampling: Method = "stratified",
    random_state: int | np.random.Generator | None = None,
    target_error: float | None = None,
    updater: "Callable[[POMDP], Any] | None" = None,
    seed: int = 0,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    policy_version: str | None = None,
) -> Floats:
    """Return each item's oracle value ``V_x`` ``[N]``, in -1 to 1: what the search for it is worth.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree over the N items, in the order of the rows.
        similarity, delta, nu, tie, policy, reward, enter_own_singleton, engine, threads, progress, sample_size,
        sampling, random_state, target_error, updater, seed, n_jobs, checkpoint, policy_version: As for `evaluate`.

    Raises:
        FeatureError, ParameterError, MissingExtraError: As :func:`evaluate`.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> hqs_samples([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], tree).round(4)
        array([0.6225, 0.6225, 0.6225, 0.6225])
    """
    return evaluate(**locals()).values
