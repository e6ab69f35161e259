"""The commands that show a tree: ``inspect`` and ``report`` with what searchers do in it, and ``show`` as text."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pomdp_hier._text import counted, shortened_path
from pomdp_hier.cli import console, inputs, searches, trees
from pomdp_hier.cli.console import command

if TYPE_CHECKING:
    from pomdp_hier.analysis.structure import StructureReport
    from pomdp_hier.hierarchy.tree import Hierarchy


def _configure_inspect(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    inputs.add_tree(parser)
    features = "one row per item: .npz, .npy, delimited text, .parquet, or -"
    add("features", type=console.input_file, metavar="FEATURES", nargs="?", help=features)
    inputs.add_reading_options(parser)
    inputs.add_setting_options(parser, calibrated=True, weights=True)
    inputs.add_count(parser, "--shuffles", "shuffled trees to score as a baseline", 8)
    inputs.add_count(parser, "--n-moves", "suggest N moves at most, each checked", 3)
    inputs.add_count(parser, "--top", "list N nodes, items and confusions", 5)
    add("--sweep", action="store_true", help="score the tree over a range of temperatures as well")
    inputs.add_json(parser, "everything")
    inputs.add_quiet(parser)


@command(
    "inspect",
    "say what is in a tree and, with features, where searchers get lost in it",
    _configure_inspect,
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier inspect -",
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier inspect - points.csv --delta 0.05",
)
def inspect(options: argparse.Namespace) -> int:
    by_id = inputs.read_names(options.names, options.name_columns)
    if options.features is None:
        from pomdp_hier.analysis.structure import check_structure

        unused = (*inputs.OF_FEATURES, *inputs.OF_SETTINGS, "shuffles", "n_moves", "top", "sweep")
        inputs.refuse_unused(options, unused, "on a tree without FEATURES")
        tree = trees.read_tree(options)
        report = check_structure(tree)
        found: dict[str, Any] = {}
    else:
        tree, report, found = _diagnosed(options)
    from pomdp_hier.hierarchy.node_names import NodeNames

    called = NodeNames(tree, by_id)
    if options.json:
        plain = {"structure": dataclasses.asdict(report), **_plain(found)}
        print(json.dumps(_named(plain, called) if by_id or tree.labels is not None else plain, indent=1))
        return 0
    names = {node: shortened_path(console.printable(called[node]), 50) for node in range(tree.n_nodes)}
    for line in _structure_lines(report, names):
        print(line)
    for line in _found_lines(found, names):
        print(line)
    return 0


def _diagnosed(options: argparse.Namespace) -> "tuple[Hierarchy, StructureReport, dict[str, Any]]":
    """Return the tree, its structure, and the findings from the features."""
    from pomdp_hier.analysis.baselines import appraise
    from pomdp_hier.analysis.diagnosis import diagnose
    from pomdp_hier.analysis.moves import suggest_moves
    from pomdp_hier.analysis.structure import check_structure

    read = inputs.read_inputs(options)
    X, tree = read.features, read.tree
    settings = inputs.settings(options, read)
    with console.steps("inspect", 3 + options.sweep) as step:
        step("scoring the tree and shuffled trees")
        appraisal = appraise(X, tree, n_shuffles=options.shuffles, **settings)
        settings["delta"] = appraisal.result.config["delta"]
        step("diagnosing lost items")
        diagnosis = diagnose(X, tree, appraisal.result, **settings)
        step("trying moves")
        found = {
            "appraisal": appraisal,
            "worst_nodes": diagnosis.worst_nodes(options.top),
            "lost_items": diagnosis.lost_items(options.top),
            "confusions": diagnosis.confusions(options.top),
            "moves": suggest_moves(X, diagnosis, limit=options.n_moves, **settings) if options.n_moves else [],
        }
        if options.sweep:
            from pomdp_hier.analysis.settings_sweep import delta_sweep
            from pomdp_hier.features.items import item_features

            step("scoring the tree at other temperatures")
            del settings["delta"]
            checked = item_features(X, tree, options.similarity)  # warned about above
            found["sweep"] = delta_sweep(checked, tree, n_shuffles=options.shuffles, **settings)
    return tree, check_structure(tree, diagnosis), found


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    plain: dict[str, Any] = {}
    for name, value in found.items():
        if name == "appraisal":
            plain |= {"settings": dict(value.result.config), "appraisal": value.to_dict(), "words": value.sentences()}
        elif name == "sweep":
            plain[name] = value.to_rows()
        else:
            plain[name] = [dataclasses.asdict(entry) for entry in value]
    return plain


def _named(plain: Any, names: Sequence[str]) -> Any:
    """Return the same values with the name of each node beside its number."""
    if isinstance(plain, (list, tuple)):
        return [_named(entry, names) for entry in plain]
    if not isinstance(plain, dict):
        return plain
    named: dict[str, Any] = {}
    for key, value in plain.items():
        named[key] = _named(value, names)
        if key in _NODES and isinstance(value, int):
            named[f"{key}_name"] = names[value]
    return named


def _structure_lines(report: "StructureReport", names: "_Names") -> Iterable[str]:
    yield (
        f"{counted(report.n_items, 'item')} in {counted(report.n_clusters, 'cluster')}, "
        f"{report.n_leaves:,} without clusters below, height {report.height}"
    )
    yield (
        f"  items at level {report.mean_level:z.1f} on average; {report.mean_children:z.1f} children a node, "
        f"{report.max_children:,} at most; {counted(report.largest_leaf, 'item')} in the largest leaf cluster"
    )
    for sentence in report.sentences():
        yield f"  {sentence}"
    for catch_all in report.catch_alls[:3]:
        yield f"    {names[catch_all.node]}: {counted(catch_all.n_items, 'item')} of {catch_all.n_siblings:,} siblings"


def _found_lines(found: dict[str, Any], names: "_Names") -> Iterable[str]:
    if "appraisal" in found:
        yield from ("", found["appraisal"].summary())
    for name, (heading, line) in _SECTIONS.items():
        if found.get(name):
            yield from ("", heading)
            for entry in found[name]:
                yield f"  {line(entry, names)}"
    if "sweep" in found:
        yield from ("", found["sweep"].summary())


_NODES = frozenset(
    ("node", "item", "child", "rival", "left_path_at", "wrong_child", "ends_at", "source", "target", "top")
)
_Names: TypeAlias = Mapping[int, str]


_SECTIONS: dict[str, tuple[str, Callable[[Any, _Names], str]]] = {
    "worst_nodes": (
        "nodes with the largest wrong-branch cost",
        lambda entry, names: (
            f"{names[entry.node]}: cost {entry.wrong_branch_cost:z.4f}; {counted(entry.n_items, 'item')}, "
            f"{entry.arrival_rate:z.0%} arrive, correct child most similar for {entry.branch_accuracy:z.0%}"
        ),
    ),
    "lost_items": (
        "lost items",
        lambda entry, names: (
            f"{names[entry.item]}: left path at {names[entry.left_path_at]} for {names[entry.wrong_child]}, "
            f"ends at {names[entry.ends_at]} ({entry.value:z.4f})"
        ),
    ),
    "confusions": (
        "confused siblings",
        lambda entry, names: (
            f"{names[entry.child]} for {names[entry.rival]}: cost {entry.cost:z.4f}; "
            f"{counted(entry.n_items, 'item')}, {entry.item_share:z.0%} of it"
        ),
    ),
    "moves": (
        "moves that raise the score",
        lambda entry, names: (
            f"{names[entry.node]} ({counted(entry.n_items, 'item')}) from {names[entry.source]} to "
            f"{names[entry.target]}: {entry.gain:+z.4f}, {entry.predicted:+z.4f} predicted"
        ),
    ),
}


_LARGE = 20_000
_STEPS = 4
_SHUFFLES, _CANDIDATES = (8, 3), (12, 6)  # up to so many items, and above: each of them is one scoring


def _configure_report(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser, calibrated=True, weights=True)
    add = parser.add_argument
    inputs.add_out(parser, "the file to write, .html", required=True, metavar="HTML")
    add("--title", metavar="TEXT", help="the heading (default: the names of the two files)")
    few = f"{_SHUFFLES[0]}; {_SHUFFLES[1]} above {_LARGE:,} items"
    inputs.add_count(parser, "--shuffles", f"number of shuffled trees for the baseline (default: {few})")
    inputs.add_count(parser, "--n-moves", "maximum number of suggested moves, each scored", 5)
    inputs.add_count(parser, "--n-edits", "instead of moves, at most N edits with a joint gain")
    inputs.add_count(parser, "--max-rows", "maximum number of rows per table", 25)
    recorded = "show recorded searches: delta that fits them, and predicted beside observed choices"
    add("--searches", type=console.input_file, metavar="FILE", help=f"{recorded} (see pomdp-hier searches)")
    searches.add_reading_options(parser)
    inputs.add_quiet(parser)


@command(
    "report",
    "write an HTML report: misfiled items, suggested moves, score, icicle, worst nodes, lost items",
    _configure_report,
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier report points.csv - -o report.html",
)
def report(options: argparse.Namespace) -> int:
    console.check_target(options.out, options.force, endings=(".html", ".htm"))
    if options.n_edits is not None:
        inputs.refuse_unused(options, ("n_moves",), "with --n-edits")
    if options.searches is None:
        searches.refuse_reading_options(options, "without --searches")
    searches.check_inputs(options)
    from pomdp_hier.analysis.baselines import appraise
    from pomdp_hier.analysis.diagnosis import diagnose
    from pomdp_hier.analysis.moves import suggest_moves
    from pomdp_hier.filing import find_misfiled
    from pomdp_hier.improvement import improve
    from pomdp_hier.report import write_report

    by_id = inputs.read_names(options.names, options.name_columns)
    found = inputs.read_inputs(options)
    X, tree = found.features, found.tree
    large = tree.n_items > _LARGE
    shuffles = _SHUFFLES[large] if options.shuffles is None else options.shuffles
    settings = inputs.settings(options, found)
    n_steps = _STEPS + (options.searches is not None) + (options.similarity != "precomputed")
    with console.steps("report", n_steps) as step:
        step("scoring the tree and shuffled trees")
        appraisal = appraise(X, tree, n_shuffles=shuffles, **settings)
        settings["delta"] = appraisal.result.config["delta"]
        step("diagnosing lost items")
        diagnosis = diagnose(X, tree, appraisal.result, **settings)
        moves, improvement, misfiled = [], None, None
        if options.similarity != "precomputed":  # where FEATURES are not features
            step("finding misfiled items")
            misfiled = find_misfiled(X, tree)
        if options.n_edits is not None:
            step("improving the tree")
            used = {name: value for name, value in settings.items() if name not in ("policy", "tie")}
            improvement = improve(X, tree, max_edits=options.n_edits, **used)
        elif options.n_moves:
            step("trying moves")
            candidates = max(options.n_moves, _CANDIDATES[large])
            moves = suggest_moves(X, diagnosis, limit=options.n_moves, candidates=candidates, **settings)
        recorded = {}
        if options.searches is not None:
            step("fitting delta to the searches")
            recorded = _recorded(options, X, tree)
        step("writing the page")
        page = write_report(
            diagnosis,
            options.out,
            appraisal=appraisal,
            misfiled=misfiled,
            moves=moves,
            improvement=improvement,
            names=by_id,
            title=options.title or _title(options),
            limit=options.max_rows,
            replace=options.force,
            **recorded,
        )
    calibrated = "" if appraisal.calibration is None else " (calibrated)"
    print(f"HQS {appraisal.score:z.6f}, delta {settings['delta']:g}{calibrated}, rows joined by {found.joined}")
    for sentence in appraisal.sentences():
        print(f"  {sentence}")
    console.note(f"written to {options.out}, {len(page.encode()) / 1e3:z,.0f} kB", options)
    return 0


def _recorded(options: argparse.Namespace, X: Any, tree: "Hierarchy") -> dict[str, Any]:
    """Return the arguments of `write_report` on recorded searches."""
    from pomdp_hier.searches import fit_delta, predicted_and_observed

    read = searches.read_recorded(options, options.searches, tree)
    fit = fit_delta(X, tree, read, similarity=options.similarity, nu=options.nu)
    shown = predicted_and_observed(X, tree, read, similarity=options.similarity, delta=fit.delta, nu=fit.nu)
    return {"searches": shown, "delta_fit": fit}


def _title(options: argparse.Namespace) -> str:
    tree, features = ("standard input" if path == "-" else Path(path).name for path in (options.tree, options.features))
    return f"How well does {tree} support the search in {features}?"


_BUILT_IN = ("A", "B", "C", "D", "E", "dvd")


def _configure_show(parser: argparse.ArgumentParser) -> None:
    what = "A to E (the paper's hierarchies), dvd (its first figure), a tree file, or - for standard input"
    parser.add_argument("tree", type=console.input_file, metavar="TREE", help=what)
    trees.add_tree_options(parser)
    inputs.add_count(parser, "--max-lines", "show at most N clusters", 100)
    inputs.add_count(parser, "--max-items", "name at most N items per cluster", 7)
    parser.add_argument("--ascii", action="store_true", help="show without box characters")


@command(
    "show",
    "show a hierarchy as text, with the names of its items",
    _configure_show,
    "pomdp-hier show A",
    "pomdp-hier show dvd",
    'echo \'[["r","a"],["r","b"]]\' | pomdp-hier show -',
)
def show(options: argparse.Namespace) -> int:
    title, tree, names = _built_in(options) if options.tree in _BUILT_IN else _from_file(options)
    from pomdp_hier._text import counted

    n_clusters, n_leaves = int(tree.is_cluster.sum()), int(tree.is_leaf.sum())
    print(
        f"{title}: {counted(tree.n_items, 'item')}, {counted(n_clusters, 'cluster')}, {n_leaves:,} without "
        f"clusters below, height {tree.height}"
    )
    print(
        tree.to_text(
            max_lines=options.max_lines,
            max_items=options.max_items,
            names=names,
            ascii_only=options.ascii or not console.uses_unicode(sys.stdout),
        )
    )
    return 0


def _built_in(options: argparse.Namespace) -> "tuple[str, Hierarchy, Sequence[str]]":
    """Return the title, the tree, and the names of all its nodes."""
    inputs.refuse_unused(options, ("tree_format", "names", *trees.OF_TREES), "on a tree that is built in")
    name: str = options.tree
    from pomdp_hier.hqs.paper import load_amazon12, load_dvd

    if name == "dvd":
        shelf = load_dvd()
        n_items, n_nodes = shelf.hierarchy.n_items, shelf.hierarchy.n_nodes
        genres = [shelf.categories[node] for node in range(n_items, n_nodes)]
        return "The DVD shelf", shelf.hierarchy, [*shelf.names, *genres]
    shop = load_amazon12()
    tree = shop.hierarchies[name]
    categories = shop.categories if name == "A" else {}
    nodes = range(tree.n_items, tree.n_nodes)
    clusters = [f"c{node - tree.n_items} {categories.get(node, '')}".rstrip() for node in nodes]
    return f"Hier-{name}", tree, [*shop.names, *clusters]


def _from_file(options: argparse.Namespace) -> "tuple[str, Hierarchy, Sequence[str]]":
    from pomdp_hier.hierarchy.node_names import NodeNames

    tree = trees.read_tree(options)
    title = "Standard input" if options.tree == "-" else console.printable(options.tree)
    return title, tree, NodeNames(tree, inputs.read_names(options.names, options.name_columns), last_part=True)
