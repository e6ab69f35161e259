"""``pomdp-hier score``: the Hierarchy Quality for Search of a tree and its items."""

import argparse
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pomdp_hier._text import brief
from pomdp_hier.cli import console, inputs, trees
from pomdp_hier.cli.console import command
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.analysis.baselines import Appraisal
    from pomdp_hier.hierarchy.tree import Hierarchy
    from pomdp_hier.hqs.result import HQSResult
    from pomdp_hier.hqs.search_length import SearchLengthResult


_COUNTED = {
    "n_better_than_root": "with a value above that of searching the root",
    "n_worse_than_root": "with a value below that of searching the root",
    "n_stopped_at_root": "whose search stops at the root",
}
_CHEAP, _SHUFFLES = 5_000, 8


def _configure_score(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser, calibrated=True, weights=True)
    add = parser.add_argument
    add("--engine", choices=("auto", "numpy", "numba"), default="auto", help="the engine of the score (default: auto)")
    add("--sample-size", metavar="N", help="score a sample: a number of items, or a fraction such as 0.1")
    add("--half-width", type=float, metavar="X", help="sample until the half-width of the 95%% interval is at most X")
    what = "kind of sample (default: stratified)"
    add("--sampling", choices=("stratified", "simple"), default="stratified", help=what)
    add("--seed", type=int, metavar="N", help="seed of the sample (default: random)")
    what = (
        "score on the workers of this Dask scheduler, or of a local one with one process per CPU; FEATURES is a "
        ".npy, .npz or .parquet file, or a folder of them, that every worker sees; write it as --dask=ADDRESS or "
        "last"
    )
    add("--dask", nargs="?", const="", metavar="ADDRESS", help=what)
    inputs.add_count(parser, "--top", "list the N worst and the N best items", 5)
    beside = "compare the score with N trees with shuffled items, the hindsight value and no tree"
    none = f"0 to skip (default: {_SHUFFLES}, or 0 above {_CHEAP:,} items)"
    inputs.add_count(parser, "--shuffles", f"{beside}; {none}")
    rows = "write one row per item to .csv, .parquet or .json; - is CSV on standard output"
    inputs.add_out(parser, rows)
    inputs.add_json(parser, "the result")
    add("--score-only", action="store_true", help="print the score alone")
    inputs.add_quiet(parser)


@command(
    "score",
    "score a hierarchy: HQS overall and for every item",
    _configure_score,
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier score points.csv -",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier score points.csv - --delta 0.005 --out items.csv --force",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier score points.csv - --sample-size 0.5 --seed 1",
)
def score(options: argparse.Namespace) -> int:
    _check_usage(options)
    said = _distributed(options) if options.dask is not None else _evaluated(options)
    from pomdp_hier.hierarchy.node_names import label_text

    by_id = inputs.read_names(options.names, options.name_columns)
    names = [by_id.get(str(name), label_text(name)) for name in said.ids]
    if options.out is not None:
        console.write_table(options.out, _item_table(said, names if by_id else None), options.force)
    if options.out != "-":
        for line in _lines(said, names, options):
            print(line)
    return 0


@dataclass(frozen=True)
class _Said:
    """A result, with the data for printing."""

    result: "HQSResult"
    tree: "Hierarchy"
    ids: Sequence[Any]
    joined: str
    calibrated: bool = False
    appraisal: "Appraisal | None" = None
    search_length: "SearchLengthResult | None" = None


def _settings(options: argparse.Namespace, read: inputs.Inputs | None = None) -> dict[str, Any]:
    return inputs.settings(options, read) | {"engine": options.engine, "progress": True}


def _evaluated(options: argparse.Namespace) -> _Said:
    """Return the result of all items, or of a sample, in this process."""
    sampling = {
        "sample_size": _sample_size(options.sample_size),
        "half_width": options.half_width,
        "sampling": options.sampling,
        "random_state": options.seed,
    }
    found = inputs.read_inputs(options)
    import numpy as np

    from pomdp_hier.hqs.sampling import Sampling

    sampled = Sampling(**sampling).asked
    if not (options.score_only or options.out == "-" or options.shuffles == 0):
        from pomdp_hier.analysis.baselines import appraise

        shuffles = 0 if sampled else _shuffles(found, options.shuffles)
        settings = _settings(options, found)
        if sampled:
            seed = np.random.SeedSequence().entropy if options.seed is None else options.seed
            settings |= sampling | {"random_state": seed}
        appraisal = appraise(found.features, found.tree, n_shuffles=shuffles, **settings)
        result = appraisal.result
        lengths: SearchLengthResult | None = appraisal.search_length
    else:
        from pomdp_hier.hqs.score import evaluate
        from pomdp_hier.hqs.search_length import search_length_beside

        appraisal, result = None, evaluate(found.features, found.tree, **_settings(options, found), **sampling)
        given = inputs.settings(options, found)
        lengths = None if options.score_only else search_length_beside(found.features, found.tree, result, **given)
    return _Said(result, found.tree, found.ids, found.joined, "delta_from" in result.config, appraisal, lengths)


def _distributed(options: argparse.Namespace) -> _Said:
    """Return the result of all items from Dask workers."""
    from pomdp_hier.distributed.evaluate import evaluate_distributed, local_cluster

    tree = trees.read_tree(options)
    workers: Any = nullcontext() if options.dask else local_cluster(os.cpu_count() or 1)
    with workers as cluster:
        address = options.dask or cluster.scheduler_address
        result = evaluate_distributed(
            *(options.features, tree),
            client=address,
            id_column=options.id_column,
            weight_column=options.weights,
            **_settings(options),
        )
    return _Said(result, tree, tree.item_labels, "id" if options.id_column else "position")


def _sample_size(text: str | None) -> float | None:
    """Return a number of items as an integer, or a fraction as a float.

    Example:
        >>> _sample_size("200"), _sample_size("0.1")
        (200, 0.1)
    """
    if text is None:
        return None
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise ParameterError(
            f"--sample-size: got {brief(text)}; expected a number of items, or a fraction such as 0.1."
        ) from None


def _shuffles(found: inputs.Inputs, asked: int | None) -> int:
    """Return the number of shuffles of the baseline; 0 by default for a large tree."""
    return (_SHUFFLES if found.tree.n_items <= _CHEAP else 0) if asked is None else asked


def _check_usage(options: argparse.Namespace) -> None:
    """Raise for contradictory options, before anything is read."""
    sampled = options.sample_size is not None or options.half_width is not None
    if options.dask is not None:
        if options.features == "-":
            raise ParameterError(
                "FEATURES: got -; expected a path that every worker sees, with --dask. Give a file, or a "
                "folder of files."
            )
        of_features = (name for name in inputs.OF_FEATURES if name not in ("id_column", "weights"))
        others = ("sample_size", "half_width", "sampling", "seed", "shuffles")
        inputs.refuse_unused(options, (*of_features, *others), "with --dask")
    if not sampled:
        inputs.refuse_unused(options, ("sampling", "seed"), "without --sample-size or --half-width")
    elif options.shuffles:
        inputs.refuse_unused(options, ("shuffles",), "on a sample")
    if options.score_only or options.out == "-":
        why = "with --score-only" if options.score_only else "with --out -"
        inputs.refuse_unused(options, ("top", "shuffles"), why)
    for name in ("json", "score_only"):
        if options.out == "-" or (options.score_only and name == "json"):
            inputs.refuse_unused(options, (name,), "with --out -" if options.out == "-" else "with --score-only")
    inputs.check_out(options)


def _item_table(said: _Said, names: Sequence[str] | None) -> Mapping[str, Sequence[Any]]:
    """Return the columns of ``--out``."""
    from pomdp_hier.hierarchy.node_names import label_text

    result, tree = said.result, said.tree
    nodes = [tree.labels[node] if tree.labels is not None else node for node in result.stop_nodes.tolist()]
    items = result.sampled_items.tolist()
    columns: dict[str, Sequence[Any]] = {"item": items, "id": [label_text(said.ids[item]) for item in items]}
    if names is not None:
        columns["name"] = [names[item] for item in items]
    columns |= {
        "value": result.values.tolist(),
        "stop_node": result.stop_nodes.tolist(),
        "stop_label": [label_text(name) for name in nodes],
        "stop_level": result.stop_levels.tolist(),
        "path_probability": result.path_probabilities.tolist(),
        "reward": result.rewards.tolist(),
        **({} if result.sample_weight is None else {"weight": result.sample_weight.tolist()}),
    }
    if said.search_length is not None:
        columns["search_length"] = said.search_length.lengths.tolist()
        columns["search_length_value"] = said.search_length.values.tolist()
    return columns


def _lines(said: _Said, names: Sequence[str], options: argparse.Namespace) -> Iterable[str]:
    result, tree = said.result, said.tree
    if options.score_only:
        yield f"{result.score}"
        return
    items = result.sampled_items.tolist()
    values = result.values.tolist()
    order = sorted(range(len(values)), key=lambda item: values[item])
    counts = _counts(result, tree)
    settings = inputs.settings(options)
    settings["delta"] = result.config["delta"]
    weighted = {} if options.weights is None else {"weights": options.weights}
    if options.json:
        worst, best = order[: options.top], order[::-1][: options.top]
        summary = {
            "score": result.score,
            "settings": settings | {"calibrated": said.calibrated} | weighted,
            "joined_by": said.joined,
            "n_items": tree.n_items,
            "n_clusters": int(tree.is_cluster.sum()),
            **_sampled(result),
            **counts,
            **({} if said.search_length is None else {"search_length": _lengths(said.search_length)}),
            **({} if said.appraisal is None else {"appraisal": _figures(said.appraisal)}),
            "worst": [{"item": items[k], "name": names[items[k]], "value": values[k]} for k in worst],
            "best": [{"item": items[k], "name": names[items[k]], "value": values[k]} for k in best],
        }
        yield json.dumps(summary, indent=1)
        return
    yield f"HQS {result.score:z.6f}"
    yield (
        f"  {tree.n_items:,} items, {int(tree.is_cluster.sum()):,} clusters, {options.similarity}, "
        f"delta {settings['delta']:g} ({_origin(said, options)}), nu {options.nu:g}, "
        f"tie {options.tie}, policy {options.policy}; rows joined to items by {said.joined}"
    )
    if result.sample is not None:
        low, high = result.interval()
        yield (
            f"  from {result.n_sampled:,} of {tree.n_items:,} items, standard error {result.standard_error:z.6f}, "
            f"{'nominal ' if 'coverage' in result.config else ''}95 % interval {low:z.6f} to {high:z.6f}, "
            f"seed {result.config['random_state']}"
        )
    if result.sample_weight is not None:
        yield f"  mean over searches by {options.weights}: {result.config['sample_weight']}"
    if said.search_length is not None:
        figures = _lengths(said.search_length)
        yield f"  search length score {figures['score']:z.6f}, with labels {figures['score_with_labels']:z.6f}"
        if said.appraisal is None:
            yield f"  {said.search_length.sentence()}"
    if said.appraisal is not None:
        yield from _beside(said.appraisal)
    of_items = "" if result.sample_weight is None else " of the items"
    for name, count in counts.items():
        yield f"  {count:>9,} {_COUNTED[name]} ({count / len(values):z.1%}{of_items})"
    for heading, chosen in (("worst", order[: options.top]), ("best", order[::-1][: options.top])):
        if chosen:
            yield f"{heading} items"
            for row in chosen:
                where = f"stops at level {result.stop_levels[row]}"
                yield f"  {values[row]:>z9.4f}  {where}  {console.printable(names[items[row]])[:60]}"


def _origin(said: _Said, options: argparse.Namespace) -> str:
    """Return where the temperature comes from, and the most likely one where it is known."""
    if said.calibrated:
        return "calibrated"
    origin = "the default, the paper's" if options.delta == options.default("delta") else "as given"
    likely = math.nan if said.appraisal is None else said.appraisal.likely_delta
    return origin if math.isnan(likely) else f"{origin}; the most likely one for where the items are is {likely:.3g}"


def _sampled(result: "HQSResult") -> dict[str, Any]:
    """Return the keys of a sample for JSON; null if the error is unknown."""
    if result.sample is None:
        return {}
    known = math.isfinite(result.standard_error)
    return {
        "n_sampled": result.n_sampled,
        "standard_error": result.standard_error if known else None,
        "interval": list(result.interval()) if known else None,
        "coverage": result.config.get("coverage", "95 %"),
        "random_state": result.config["random_state"],
    }


def _lengths(found: "SearchLengthResult") -> dict[str, float]:
    return {
        "score": found.score,
        "score_with_labels": found.with_label_cost(1).score,
        "mean_length": found.mean_length,
        "list_length": found.list_length,
    }


def _beside(found: "Appraisal") -> Iterable[str]:
    """Yield the baselines in one line, and their interpretation."""
    spread = "" if math.isnan(found.shuffled_sd) else f" (SD {found.shuffled_sd:z.4f}, {found.n_shuffles} shuffles)"
    shuffled = f", shuffled items {found.shuffled_mean:z.4f}{spread}" if found.n_shuffles else ""
    right = (
        ""
        if math.isnan(found.first_branch_accuracy)
        else f", first branch right for {found.first_branch_accuracy:z.1%}"
    )
    yield (f"  beside it: no tree {found.no_tree:z.4f}{shuffled}, hindsight {found.hindsight:z.4f}{right}")
    for sentence in found.sentences():
        yield f"  {sentence}"


def _figures(found: "Appraisal") -> dict[str, Any]:
    """Return the figures for JSON, with null for NaN."""
    return {name: None if value != value else value for name, value in found.to_dict().items()}


def _counts(result: "HQSResult", tree: "Hierarchy") -> dict[str, int]:
    """Return the counts of items by the keys of ``_COUNTED``."""
    return {
        "n_better_than_root": int((result.values > 0).sum()),
        "n_worse_than_root": int((result.values < 0).sum()),
        "n_stopped_at_root": int((result.stop_nodes == tree.root).sum()),
    }
