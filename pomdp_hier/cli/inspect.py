"""``pomdp-hier inspect``: what is in a tree, and with features, where in it searchers get lost."""

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pomdp_hier.cli import console, inputs, trees
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.appraisal.structure import StructureReport
    from pomdp_hier.hierarchy.tree import Hierarchy

NAME = "inspect"
SUMMARY = "say what is in a tree and, with features, where searchers get lost in it"
EXAMPLES = (
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier inspect -",
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier inspect - points.csv --delta 0.05",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add("tree", metavar="TREE", help="the hierarchy: JSON, Newick, a table, paths, a linkage matrix, or -")
    add("features", metavar="FEATURES", nargs="?", help="one row an item: .npz, .npy, delimited text, .parquet, or -")
    inputs.add_reading_options(parser)
    inputs.add_setting_options(parser, calibrated=True)
    add("--policy", default="one-step", metavar="NAME", help="the searcher's policy (default: one-step)")
    add("--shuffles", type=int, default=8, metavar="N", help="shuffled trees to score as a baseline (default: 8)")
    add("--moves", type=int, default=3, metavar="N", help="suggest N moves at most, each checked (default: 3)")
    add("--top", type=int, default=5, metavar="N", help="list N nodes, items and confusions (default: 5)")
    add("--sweep", action="store_true", help="score the tree over a range of temperatures as well")
    add("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> int:
    """Look into the tree."""
    for name in ("shuffles", "moves", "top"):
        if getattr(options, name) < 0:
            raise ParameterError(f"--{name} {getattr(options, name)}: give 0 or more")
    inputs.check_inputs(options)
    by_id = trees.read_names(options.names)
    if options.features is None:
        from pomdp_hier.appraisal.structure import check_structure

        tree = trees.read_tree(options)
        report = check_structure(tree)
        found: dict[str, Any] = {}
    else:
        tree, report, found = _diagnosed(options)
    names = _Names(tree, by_id)
    if options.json:
        print(json.dumps({"structure": dataclasses.asdict(report), **_plain(found)}, indent=1))
        return 0
    for line in _structure_lines(report, names):
        print(line)
    for line in _found_lines(found, names):
        print(line)
    return 0


class _Names:
    """What nodes are called: by the table of names, the tree's own labels, or their numbers."""

    def __init__(self, tree: "Hierarchy", by_id: dict[str, str]) -> None:
        self._labels, self._by_id = tree.labels, by_id

    def __getitem__(self, node: int) -> str:
        label = str(node) if self._labels is None else str(self._labels[node])
        return console.printable(self._by_id.get(label, label))[:50]


def _diagnosed(options: argparse.Namespace) -> "tuple[Hierarchy, StructureReport, dict[str, Any]]":
    """Return the tree, its structure, and everything that the features say about it."""
    from pomdp_hier.appraisal.baselines import appraise
    from pomdp_hier.appraisal.diagnosis import confusions, diagnose, lost_items, worst_nodes
    from pomdp_hier.appraisal.moves import suggest_moves
    from pomdp_hier.appraisal.structure import check_structure

    X, tree, _ = inputs.read_inputs(options)
    settings = {name: getattr(options, name) for name in ("similarity", "nu", "tie", "policy")}
    appraisal = appraise(X, tree, n_shuffles=options.shuffles, delta=options.delta, **settings)
    settings["delta"] = appraisal.result.config["delta"]
    diagnosis = diagnose(X, tree, appraisal.result, **settings)
    found = {
        "appraisal": appraisal,
        "worst_nodes": worst_nodes(diagnosis, options.top),
        "lost_items": lost_items(diagnosis, options.top),
        "confusions": confusions(diagnosis, options.top),
        "moves": suggest_moves(X, diagnosis, n=options.moves, **settings) if options.moves else [],
    }
    if options.sweep:
        from pomdp_hier.appraisal.sweep import delta_sweep
        from pomdp_hier.features.items import item_features

        del settings["delta"]
        checked = item_features(X, tree, options.similarity)  # warned about above
        found["sweep"] = delta_sweep(checked, tree, n_shuffles=options.shuffles, **settings)
    return tree, check_structure(tree, diagnosis), found


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was found, as JSON takes it."""
    plain: dict[str, Any] = {}
    for name, value in found.items():
        if name == "appraisal":
            plain |= {"settings": dict(value.result.config), "appraisal": value.to_dict(), "words": value.sentences()}
        elif name == "sweep":
            plain[name] = value.to_rows()
        else:
            plain[name] = [dataclasses.asdict(entry) for entry in value]
    return plain


def _structure_lines(report: "StructureReport", names: _Names) -> Iterable[str]:
    yield (
        f"{report.n_items:,} items in {report.n_clusters:,} clusters, {report.n_leaves:,} without clusters below, "
        f"height {report.height}"
    )
    yield (
        f"  items at level {report.mean_level:.1f} on average; {report.mean_children:.1f} children a node, "
        f"{report.max_children:,} at most; {report.largest_leaf:,} items in the largest leaf cluster"
    )
    for sentence in report.sentences():
        yield f"  {sentence}"
    for catch_all in report.catch_alls[:3]:
        yield f"    {names[catch_all.node]}: {_items(catch_all.items)} of {catch_all.siblings:,} siblings"


def _found_lines(found: dict[str, Any], names: _Names) -> Iterable[str]:
    if "appraisal" in found:
        yield from ("", found["appraisal"].summary())
    for name, (heading, line) in _SECTIONS.items():
        if found.get(name):
            yield from ("", heading)
            for entry in found[name]:
                yield f"  {line(entry, names)}"
    if "sweep" in found:
        yield from ("", found["sweep"].summary())


def _items(count: int) -> str:
    return f"{count:,} item{'' if count == 1 else 's'}"


_SECTIONS: dict[str, tuple[str, Callable[[Any, _Names], str]]] = {
    "worst_nodes": (
        "nodes that mislead most",
        lambda entry, names: (
            f"{names[entry.node]}: costs {entry.misled_cost:.4f}; {_items(entry.items)}, {entry.arrive:.0%} arrive, "
            f"for {entry.right:.0%} the right child looks best"
        ),
    ),
    "lost_items": (
        "items that searchers miss",
        lambda entry, names: (
            f"{names[entry.item]}: lost at {names[entry.lost_at]} to {names[entry.lost_to]}, "
            f"ends at {names[entry.ends_at]} ({entry.value:.4f})"
        ),
    ),
    "confusions": (
        "clusters taken for another",
        lambda entry, names: (
            f"{names[entry.child]} for {names[entry.rival]}: costs {entry.cost:.4f}; {_items(entry.items)}, "
            f"{entry.share:.0%} of it"
        ),
    ),
    "moves": (
        "moves that raise the score",
        lambda entry, names: (
            f"{names[entry.node]} ({_items(entry.items)}) from {names[entry.source]} to {names[entry.target]}: "
            f"{entry.gain:+.4f}, {entry.predicted:+.4f} predicted"
        ),
    ),
}
