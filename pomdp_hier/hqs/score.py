"""Scores of a hierarchy: one number, one number per item, or the complete result."""

import contextlib
import os
from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._engines.dispatch import choose_engine, run_engine
from pomdp_hier._engines.task import NodeRewards, Stops, Tie
from pomdp_hier._intervals import effective_number
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.similarity import Similarity
from pomdp_hier.hierarchy.flat import require_hierarchy
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import Reward
from pomdp_hier.hqs.inputs import CALIBRATED, Prepared, Request, Run, Settings, Weights, prepare
from pomdp_hier.hqs.result import HQSResult, ItemScores
from pomdp_hier.hqs.sampling import Method, Sampling

if TYPE_CHECKING:
    from pomdp_hier.pomdp.problem import POMDP


Scores = TypeVar("Scores", bound=ItemScores)

_OF_A_SAMPLE = ("sample_size", "sampling", "random_state", "half_width", "coverage")


def oracle_value(probability: npt.ArrayLike, reward: npt.ArrayLike) -> Floats:
    """Return ``V = (r + 1) p - 1``, the value of a search with success probability p."""
    return np.asarray((np.asarray(reward, dtype=np.float64) + 1.0) * np.asarray(probability, dtype=np.float64) - 1.0)


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
    half_width: float | None = None,
    updater: "Callable[[POMDP], Any] | None" = None,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    policy_version: str | None = None,
    items: Sequence[int] | Ints | None = None,
    sample_weight: Weights | None = None,
) -> HQSResult:
    """Return the Hierarchy Quality for Search (HQS) of a tree over items, per item and overall.

    A searcher for item x steps from a node to its child c' with probability ``eta``, until the policy stops it. ``eta``
    is a softmax over child similarities. There the value of the search is ``V_x = (r(c) + 1) * product of eta along the
    true path
    - 1``. HQS is the mean of V_x, between -1 (every search fails) and 1. A score of 0 equals ignoring the tree and
    searching all items at once.

    This searcher never goes back; `expected_search_length` has one who may. In 76,128 recorded games of people looking
    for articles, the guidance predicted their choices (gains of 0.05 to 0.17 nats per choice, by level). HQS was not
    confirmed. The rank correlation of an article's value was -0.01 with the share who took the correct branch, and 0.08
    with the share who found it. People followed links, and the category tree was not theirs.

    Args:
        X: Features ``[N, D]``, dense (also a memory map) or sparse, or similarities ``[N, N]`` with
            ``similarity="precomputed"``.
        hierarchy: The tree over the N items, in the order of the rows.
        similarity: ``"cosine"``, ``"inverse_sqeuclidean"``, ``"negative_euclidean"``, ``"precomputed"``, one of their
            records with options, or a function of the items' rows and a cluster. Use the similarity that made the tree,
            or the one that searchers use.
        delta: Softmax temperature of the searcher at the root. Near 0 it enters the most similar child; for large
            values it picks a child uniformly at random. 0.01 is the setting in the paper's text. ``"calibrated"`` is
            the maximum-likelihood temperature for where the items are (`calibrate_delta`), reported in ``config``.
            Neither was fitted to people.
        nu: Factor of the temperature per level, positive; above 1 it grows.
        tie: Whether to "descend" or to "search" if both have the same value, as at a node with one child.
        policy: ``"one-step"`` (the paper's), ``"optimal"`` (for the agent's model), ``"descend"``, ``"search-root"``,
            ``"hindsight"`` (the best stop on the true path), or ``LookAhead(depth)``. Or a `StoppingRule`, a `Policy`,
            or a function of the belief.
        reward: ``reward(size, n_items)``, not growing with the size; None for the paper's.
        enter_own_singleton: Whether the search for x may step into x itself, where the tree has it as a leaf cluster. A
            one-item cluster with a node number of its own is a cluster like any other.
        engine: ``"auto"`` (numba if it is installed and faster, otherwise numpy), ``"numpy"``, ``"numba"``, or
            ``"generic"``. The last builds the POMDP of each item and plans in it.
        threads: Threads for numba, None for one per usable CPU. The result does not depend on it.
        progress: Whether to show a progress bar on stderr.
        sample_size: Score a sample only: a number of items, or a fraction of them as a float. The result has the
            standard error and an interval.
        sampling: ``"stratified"`` along the leaf order of the tree, with a smaller error, or ``"simple"``.
        random_state: Seed of the sample, or a Generator; None for a fresh seed, reported in ``config``. An integer also
            seeds the policies of the generic engine, whose default seed is 0.
        half_width: In place of a size: sample until the 95 % interval extends at most this far to either side. Its
            coverage is then nominal.
        updater: Generic engine: function from a problem to the agent's updater, such as the class `TabularUpdater`;
            Bayes' rule by default.
        n_jobs: Generic engine: number of processes, -1 for one per CPU. More than one needs joblib, and uses the
            backend of ``joblib.parallel_config``.
        checkpoint: Generic engine: file of finished items, from which a later call resumes. It needs joblib. Runs are
            distinguished by data, settings and the state of policy, updater and similarity, but not by their code
            (`pomdp_hier._io.checkpoint`).
        policy_version: Text that distinguishes versions of the code of a checkpointed policy. It also allows policies
            that cannot be pickled.
        items: The items to score, in the order of the result; None for all.
        sample_weight: The number of searches for each item, such as its traffic or sales: one per row of X, or a
            mapping by item id. The score is the mean over these searches. An item of weight 0 stays in the tree, but
            does not count. Similarities, cluster sizes, rewards and a calibrated delta are those of the items, each
            once. In a sample, items are drawn by their weights. Equal weights change nothing.

    Notes:
        In the generic engine a policy with ``seeded`` gets one seed per item, and any other is copied per item. The
        result does not depend on the number of processes. Actions whose Q values differ by a few roundings are a tie.
        Under a reward that is the same for several cluster sizes, the vectorised engines resolve smaller losses.

    Raises:
        FeatureError: The features are unusable.
        ParameterError: A setting is out of range or has no effect with this engine. Or an item is unknown, or weights
            are not one finite number of at least 0 per item.
        CheckpointError: The checkpoint belongs to other data or settings, is damaged, or is in use.
        MissingExtraError: The engine, the processes or the checkpoint need a package that is not installed.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> evaluate(X, tree, delta=0.1)
        HQSResult(score=0.622188, 4 items)
        >>> evaluate(X, tree, delta=0.1, engine="generic", items=[2]).values.round(3)
        array([0.622])
        >>> evaluate(X, tree, delta=0.1, sample_weight=[9, 0, 0, 1])
        HQSResult(score=0.622296, 4 items)

    References:
        Huang, Piao, Moreno and Hurley, *POMDP Modelling for Assessing Hierarchies*.
    """
    settings = Settings(similarity, delta, nu, tie, policy, reward, enter_own_singleton)
    run = Run(engine, threads, progress, updater, random_state, n_jobs, checkpoint, policy_version)
    request = Request(settings, run, Sampling(sample_size, sampling, random_state, half_width))
    request.check_used()
    chosen = chosen_items(items, request.sampling, hierarchy)
    prepared = prepare(X, hierarchy, settings, compiled=engine != "numpy", sample_weight=sample_weight)
    if chosen is None:
        return score(prepared, run, request.sampling)
    return score_items(prepared, run, chosen)


def chosen_items(items: Any, sampling: Sampling, hierarchy: Hierarchy) -> Ints | None:
    """Return the item numbers of an argument as an array; None for all items, or for a sample of them."""
    require_hierarchy(hierarchy)
    if items is None:
        return None
    n_items = hierarchy.n_items
    if sampling.asked:
        raise ParameterError(
            f"items: got {brief(items)} beside a sample; expected one of them. Leave out items, or sample_size and "
            "half_width."
        )
    is_long = isinstance(items, Sized) and len(items) > max(n_items, 1_000_000)
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # lists of different lengths, or too deep
        chosen = np.asarray([] if is_long else items)
        is_whole = chosen.dtype.kind in "iu" and chosen.ndim == 1 and len(chosen) > 0
        if is_whole and 0 <= chosen.min() <= chosen.max() < n_items:
            return chosen
    raise ParameterError(f"items: got {brief(items)}; expected item numbers from 0 to {n_items - 1}.")


def score(prepared: Prepared, run: Run, sampling: Sampling, like: ItemScores | None = None) -> HQSResult:
    """Return the result for all items, or for a sample if one was requested.

    With ``like``, score the items of that result, for a paired comparison.
    """
    if like is None:
        one = sampling.run(prepared.hierarchy, lambda items: {"": score_items(prepared, run, items)}, prepared.weights)
        return one[""]
    return like_sample(score_items(prepared, run, like.sampled_items), like)


def like_sample(result: Scores, like: ItemScores) -> Scores:
    """Return a result for the items of another one as an estimate from the same sample, if that is one."""
    if like.sample is None:
        return result
    of_sample = {name: value for name, value in like.config.items() if name in _OF_A_SAMPLE}
    return replace(result, sample=like.sample, config={**result.config, **of_sample})  # type: ignore[type-var]


def score_items(prepared: Prepared, run: Run, items: Ints) -> HQSResult:
    """Return the result for these items, in their order."""
    return with_weights(_searched(prepared, run, items), prepared.weights, items)


def with_weights(result: Scores, weights: Floats | None, items: Ints) -> Scores:
    """Return the result for these items with their weights, given those of all items ``[N]``, if there are any."""
    if weights is None:
        return result
    own = weights[items]
    if not own.any():
        raise ParameterError("items: got items of weight 0 alone; expected at least one of a weight above 0.")
    config = {**result.config, "sample_weight": f"effective number of items {effective_number(weights):.6g}"}
    return replace(result, sample_weight=own, config=config)  # type: ignore[type-var]


def _searched(prepared: Prepared, run: Run, items: Ints) -> HQSResult:
    """Return the result for these items without weights."""
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
    """Return the result of searches that stop at these nodes."""
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
    half_width: float | None = None,
    updater: "Callable[[POMDP], Any] | None" = None,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    policy_version: str | None = None,
    items: Sequence[int] | Ints | None = None,
    sample_weight: Weights | None = None,
) -> float:
    """Return the HQS of a tree over items: the mean of `hqs_samples`, between -1 and 1.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree over the N items, in the order of the rows.
        similarity, delta, nu, tie, policy, reward, enter_own_singleton, engine, threads, progress, sample_size,
        sampling, random_state, half_width, updater, n_jobs, checkpoint, policy_version, items,
        sample_weight: As for `evaluate`.

    Raises:
        FeatureError, ParameterError, MissingExtraError: As `evaluate`.

    Example:
        >>> from pomdp_hier.hqs.paper import load_amazon12
        >>> from pomdp_hier.hqs.paper import PAPER_TABLE
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
    half_width: float | None = None,
    updater: "Callable[[POMDP], Any] | None" = None,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    policy_version: str | None = None,
    items: Sequence[int] | Ints | None = None,
    sample_weight: Weights | None = None,
) -> Floats:
    """Return the oracle value ``V_x`` of the search for each item ``[N]``, between -1 and 1.

    The score is ``np.average(values, weights=sample_weight)``. Weights change the selection of a sample, but not the
    value of an item.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree over the N items, in the order of the rows.
        similarity, delta, nu, tie, policy, reward, enter_own_singleton, engine, threads, progress, sample_size,
        sampling, random_state, half_width, updater, n_jobs, checkpoint, policy_version, items,
        sample_weight: As for `evaluate`.

    Raises:
        FeatureError, ParameterError, MissingExtraError: As `evaluate`.

    Example:
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> hqs_samples([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], tree).round(4)
        array([0.6225, 0.6225, 0.6225, 0.6225])
    """
    return evaluate(**locals()).values
