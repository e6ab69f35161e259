"""``pomdp-hier score``: how well a hierarchy supports the search for its items."""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pomdp_hier.cli import console, inputs, tables, trees
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy
    from pomdp_hier.hqs.result import HQSResult

NAME = "score"
SUMMARY = "score a hierarchy: HQS overall and for every item"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier score points.csv -",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier score points.csv - --delta 0.005 --out items.csv --force",
)

_COUNTED = {
    "easier": "items found more easily than by searching the root",
    "harder": "items that the tree makes harder to find",
    "at_root": "searches that stop at the root",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    inputs.add_input_options(parser)
    inputs.add_setting_options(parser)
    add = parser.add_argument
    add("--policy", default="one-step", metavar="NAME", help="the searcher's policy (default: one-step)")
    add("--engine", choices=("auto", "numpy", "numba"), default="auto", help="what computes (default: auto)")
    add("--top", type=int, default=5, metavar="N", help="list the N worst and the N best items (default: 5)")
    add("--out", metavar="PATH", help="write a row an item to .csv, .parquet or .json; - is CSV on standard output")
    add("--force", action="store_true", help="replace the file of --out if it exists")
    add("--json", action="store_true", help="print the result as JSON")
    add("--quiet", action="store_true", help="print nothing but the score, and no progress")


def run(options: argparse.Namespace) -> int:
    """Scores the hierarchy."""
    _check_usage(options)
    from pomdp_hier.hqs.score import evaluate

    X, tree, ids = inputs.read_inputs(options)
    result = evaluate(
        X,
        tree,
        similarity=options.similarity,
        delta=options.delta,
        nu=options.nu,
        tie=options.tie,
        policy=options.policy,
        engine=options.engine,
        progress=not options.quiet and console.on_terminal(),
    )
    by_id = trees.read_names(options.names)
    names = [by_id.get(str(name), str(name)) for name in ids]
    if options.out is not None:
        tables.write_table(options.out, _item_table(result, tree, ids, names if by_id else None), options.force)
    if options.out != "-":
        for line in _lines(result, tree, names, options):
            print(line)
    return 0


def _check_usage(options: argparse.Namespace) -> None:
    """Raises for options that contradict each other, before anything is read."""
    inputs.check_inputs(options)
    if options.top < 0:
        raise ParameterError(f"--top {options.top}: give 0 or more")
    if options.out == "-" and (options.json or options.quiet):
        raise ParameterError("--out - prints the items alone; leave out --json and --quiet")
    if options.out is not None:
        tables.check_target(options.out, options.force, (options.features, options.tree, options.names))


def _item_table(
    result: "HQSResult", tree: "Hierarchy", ids: Sequence[Any], names: Sequence[str] | None
) -> Mapping[str, Sequence[Any]]:
    """The columns of ``--out``."""
    nodes = [tree.labels[node] if tree.labels is not None else node for node in result.stop_nodes.tolist()]
    columns: dict[str, Sequence[Any]] = {"item": range(tree.n_items), "id": [_plain(name) for name in ids]}
    if names is not None:
        columns["name"] = names
    return columns | {
        "value": result.values.tolist(),
        "stop_node": result.stop_nodes.tolist(),
        "stop_label": [_plain(name) for name in nodes],
        "stop_level": result.stop_levels.tolist(),
        "path_probability": result.path_probabilities.tolist(),
        "reward": result.rewards.tolist(),
    }


def _plain(name: Any) -> str:
    return " / ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _lines(result: "HQSResult", tree: "Hierarchy", names: Sequence[str], options: argparse.Namespace) -> Iterable[str]:
    """What is printed about a result."""
    if options.quiet:
        yield f"{result.score!r}"
        return
    values = result.values.tolist()
    order = sorted(range(len(values)), key=lambda item: values[item])
    counts = _counts(result, tree)
    if options.json:
        worst, best = order[: options.top], order[::-1][: options.top]
        summary = {
            "score": result.score,
            "settings": {name: getattr(options, name) for name in ("similarity", "delta", "nu", "tie", "policy")},
            "n_items": tree.n_items,
            "n_clusters": int(tree.is_cluster.sum()),
            **counts,
            "worst": [{"item": item, "name": names[item], "value": values[item]} for item in worst],
            "best": [{"item": item, "name": names[item], "value": values[item]} for item in best],
        }
        yield json.dumps(summary, indent=1)
        return
    yield f"HQS {result.score:.6f}"
    yield (
        f"  {tree.n_items:,} items, {int(tree.is_cluster.sum()):,} clusters, {options.similarity}, "
        f"delta {options.delta:g}, nu {options.nu:g}, tie {options.tie}, policy {options.policy}"
    )
    for name, count in counts.items():
        yield f"  {count:>9,} {_COUNTED[name]} ({count / tree.n_items:.1%})"
    for heading, chosen in (("worst", order[: options.top]), ("best", order[::-1][: options.top])):
        if chosen:
            yield f"{heading} items"
            for item in chosen:
                where = f"stops at level {result.stop_levels[item]}"
                yield f"  {values[item]:>9.4f}  {where}  {console.printable(names[item])[:60]}"


def _counts(result: "HQSResult", tree: "Hierarchy") -> dict[str, int]:
    """How the items fare, under the names of ``_COUNTED``."""
    return {
        "easier": int((result.values > 0).sum()),
        "harder": int((result.values < 0).sum()),
        "at_root": int((result.stop_nodes == tree.root).sum()),
    }
