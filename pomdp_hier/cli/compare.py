"""The commands that compare: ``compare`` trees, ``levels`` of a tree, ``features``, and search ``policies``."""

import argparse
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp_hier._text import brief
from pomdp_hier.cli import console, inputs, trees
from pomdp_hier.cli.console import command
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.analysis.comparison import Comparison
    from pomdp_hier.hierarchy.tree import Hierarchy


_PAGES = (".html", ".htm")


def _configure_compare(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser)
    add = parser.add_argument
    others = "the trees to compare it with, over the same items"
    add("others", type=console.input_file, metavar="TREE", nargs="+", help=others)
    inputs.add_setting_options(parser, calibrated=True, weights=True)
    classes = "a table with the columns id and name: the class of each item"
    add("--labels", type=console.input_file, metavar="CSV", help=classes)
    add("--no-measures", action="store_true", help="skip the other measures of a hierarchy")
    inputs.add_confidence(parser)
    inputs.add_count(parser, "--top", "list the N items with the largest gains and losses", 5)
    written = "write the values per item to .csv, .parquet or .json (- is CSV on stdout), or a page to .html"
    inputs.add_out(parser, written)
    inputs.add_json(parser, "the comparison")
    inputs.add_quiet(parser)


@command(
    "compare",
    "compare trees over the same items: which is better, by how much, for which items",
    _configure_compare,
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' > one.json",
    "echo '[[0,2],[1,3],[4,5]]' | pomdp-hier compare points.csv one.json -",
)
def compare(options: argparse.Namespace) -> int:
    given = [options.tree, *options.others]
    _check_usage(options, given)
    from pomdp_hier.analysis.comparison import compare

    read = inputs.read_inputs(options)
    ids = read.ids
    named = dict(zip(_names(given), [read.tree, *_aligned(options, ids, read.tree)], strict=True))
    by_id = inputs.read_names(options.names, options.name_columns)
    classes = inputs.read_names(options.labels)
    found = compare(
        read.features,
        named,
        labels=[classes.get(str(name)) for name in ids] if options.labels else None,
        measures=not options.no_measures,
        confidence=options.confidence,
        progress=True,
        **inputs.settings(options, read),
    )
    names = [by_id.get(str(name), str(name)) for name in ids]
    if _is_page(options):
        from pomdp_hier.analysis.diagnosis import diagnose
        from pomdp_hier.report.comparison_page import write_comparison

        settings = inputs.settings(options, read) | {"delta": next(iter(found.results.values())).config["delta"]}
        diagnoses = {
            name: diagnose(read.features, tree, found.results[name], **settings) for name, tree in named.items()
        }
        title = f"{' or '.join(named)}: which supports search better?"
        write_comparison(found, diagnoses, options.out, names=by_id or None, title=title, replace=options.force)
    elif options.out is not None:
        console.write_table(options.out, _item_table(found, ids), options.force)
    if options.out != "-":
        for line in _lines(found, names, options):
            print(line)
    return 0


def _check_usage(options: argparse.Namespace, given: Sequence[str]) -> None:
    """Raise for options that contradict each other, before anything is read."""
    if [options.features, *given].count("-") > 1:
        raise ParameterError("-: got standard input for several inputs; expected it for one. Pass the others as files.")
    if options.out == "-" and options.json:
        raise ParameterError("--out: got - and --json; expected only one of the two. Leave out --json.")
    if options.no_measures:
        inputs.refuse_unused(options, ("labels",), "with --no-measures")
    if options.out == "-":
        inputs.refuse_unused(options, ("top",), "with --out -")
    inputs.check_out(options, **({"endings": _PAGES} if _is_page(options) else {}))


def _is_page(options: argparse.Namespace) -> bool:
    return options.out is not None and Path(options.out).suffix.lower() in _PAGES


def _names(given: Sequence[str]) -> list[str]:
    """Return the names of the trees: file names, or whole paths where these are equal."""
    stems = [Path(path).stem if path != "-" else "stdin" for path in given]
    names = [stem if stems.count(stem) == 1 else path for stem, path in zip(stems, given, strict=True)]
    return [name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names, start=1)]


def _aligned(options: argparse.Namespace, ids: Sequence[Hashable], first: "Hierarchy") -> "Iterable[Hierarchy]":
    """Yield the other trees with their items in the order of the first, by id or by position."""
    from pomdp_hier.measures.tree_distances import item_numbers

    for path in options.others:
        tree = trees.read_tree(argparse.Namespace(**{**vars(options), "tree": path}))
        if options.join == "position" and tree.labels is not None and len(ids) == tree.n_items:
            names = [*ids, *tree.labels[tree.n_items :]]
            tree = type(tree).from_children(tree.to_children(), len(ids), singletons=tree.singletons, labels=names)
        called = trees.source_name(options.tree), trees.source_name(path)
        numbers = item_numbers(first, tree, "compare", names=called, by_number="--join position")
        yield tree if numbers is None else tree.permuted(numbers, with_labels=True)


def _item_table(found: "Comparison", ids: Sequence[Hashable]) -> Mapping[str, Sequence[Any]]:
    """Return the columns of ``--out``: the value of each item in each tree."""
    columns: dict[str, Sequence[Any]] = {"item": range(len(ids)), "id": [str(name) for name in ids]}
    weights = next(iter(found.results.values())).sample_weight
    if weights is not None:
        columns["weight"] = weights.tolist()
    return columns | {name: result.values.tolist() for name, result in found.results.items()}


def _lines(found: "Comparison", names: Sequence[str], options: argparse.Namespace) -> Iterable[str]:
    best, *rest = found.ranking
    changes = {
        f"{one} over {other}": found.gained_items(one, other, options.top)
        for one, other in ((best, rest[-1]), (rest[-1], best))
    }
    if options.json:
        delta = next(iter(found.results.values())).config["delta"]
        yield json.dumps(
            {
                "settings": {
                    **inputs.settings(options),
                    "delta": delta,
                    "calibrated": found.calibration is not None,
                    **({} if options.weights is None else {"weights": options.weights}),
                },
                "trees": found.to_rows(),
                "ranks": found.ranks(),
                "versions": found.versions(),
                **{
                    name: [pair.__dict__ | {"distinguishable": pair.distinguishable} for pair in pairs]
                    for name, pairs in (
                        ("differences", found.differences),
                        ("length_differences", found.length_differences),
                    )
                },
                "items": {
                    name: [{"item": item, "name": names[item], "gain": gain} for item, gain in items]
                    for name, items in changes.items()
                },
            },
            indent=1,
        )
        return
    yield found.summary()
    for name, items in changes.items():
        if items:
            yield f"items with the largest gains by {name}"
            for item, gain in items:
                yield f"  {gain:>+z9.4f}  {console.printable(names[item])[:60]}"


def _configure_levels(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser, calibrated=True, weights=True)
    add = parser.add_argument
    what = "the end to remove levels from (default: bottom)"
    add("--remove-from", choices=["bottom", "top"], default="bottom", help=what)
    inputs.add_count(parser, "--max-trees", "score at most N trees", 40)
    inputs.add_count(parser, "--best-cut", "instead, find the best cut of a dendrogram into at most N levels")
    inputs.add_count(
        parser, "--max-clusters", "with --best-cut: the maximum number of clusters of a cut into one level", 1000
    )
    best = "write the tree with the best score here, in the format of TREE or as .json"
    inputs.add_out(parser, best)
    inputs.add_json(parser, "the figures")
    inputs.add_quiet(parser)


@command(
    "levels",
    "score a tree with fewer levels, or find the best cut of a dendrogram",
    _configure_levels,
    "printf 'x,y\\n1,0\\n9,1\\n0,1\\n1,9\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier levels points.csv - --best-cut 1",
)
def levels(options: argparse.Namespace) -> int:
    if options.best_cut is None:
        inputs.refuse_unused(options, ("max_clusters",), "without --best-cut")
    else:
        inputs.refuse_unused(options, ("remove_from", "max_trees", "policy"), "with --best-cut")
    inputs.check_out(options, endings=trees.written_endings(options))
    from pomdp_hier.analysis.levels import best_cut, score_by_levels

    read = inputs.read_inputs(options)
    settings = inputs.settings(options, read)
    if options.best_cut is not None:
        del settings["policy"]
        cut = best_cut(read.features, read.tree, levels=options.best_cut, max_clusters=options.max_clusters, **settings)
        tree, rows, text = cut.tree, cut.to_rows(), cut.summary()
    else:
        settings["progress"] = True
        found = score_by_levels(
            read.features, read.tree, remove_from=options.remove_from, limit=options.max_trees, **settings
        )
        tree, rows, text = found.trees[found.best], found.to_rows(), found.summary()
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        console.show(text.splitlines())
    if options.out is not None:
        trees.write_like_source(tree, options)
    return 0


def _configure_features(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    inputs.add_tree(parser)
    sets = "sets of features of the same items, one row per item: .npz, .npy, delimited text or .parquet"
    add("features", type=console.input_file, metavar="FEATURES", nargs="+", help=sets)
    inputs.add_reading_options(parser)
    kinds = "a similarity to try, may be given several times: cosine, negative_euclidean (default: both)"
    add("--similarity", choices=("cosine", "negative_euclidean"), action="append", metavar="NAME", help=kinds)
    inputs.add_confidence(parser)
    inputs.add_json(parser, "the table")
    inputs.add_quiet(parser)


@command(
    "features",
    "compare sets of features and similarities: which explains best where the items are",
    _configure_features,
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' > one.json",
    "pomdp-hier features one.json points.csv",
)
def features(options: argparse.Namespace) -> int:
    if [options.tree, *options.features].count("-") > 1 or (options.tree == "-" and len(options.features) > 1):
        raise ParameterError("-: got standard input as one of several; expected files. Write the tree to a file first.")
    from pomdp_hier.filing import compare_features
    from pomdp_hier.filing.explanation import SIMILARITIES

    read = [
        inputs.read_inputs(argparse.Namespace(**{**vars(options), "features": path, "similarity": "cosine"}))
        for path in options.features
    ]
    found = compare_features(
        {name: one.features for name, one in zip(_names(options.features), read, strict=True)},
        read[0].tree,
        similarities=list(dict.fromkeys(options.similarity or SIMILARITIES)),
        confidence=options.confidence,
        progress=True,
    )
    if options.json:
        print(json.dumps(found.to_rows(), indent=1))
    else:
        console.show(found.summary().splitlines())
    return 0


_RULES = ("one-step", "optimal", "descend", "search-root", "hindsight")
_PLANNED = ("expand", "max-0", "pouct", "pouct-environment")


def _configure_policies(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser, weights=True)
    add = parser.add_argument
    add(
        "--policy",
        action="append",
        metavar="NAME",
        help=f"a policy to compare, may be given several times, the first is the baseline: {', '.join(_RULES)}; "
        "level-N (descend to level N), look-ahead-N (plan N steps); and, planned in the POMDP of each item (slow): "
        f"{', '.join(_PLANNED)} (default: {', '.join(_RULES)})",
    )
    inputs.add_confidence(parser)
    add("--jobs", type=int, default=1, metavar="N", help="processes for planned policies, -1: one per CPU (default: 1)")
    add("--seed", type=int, default=0, metavar="N", help="random seed of pouct (default: 0)")
    inputs.add_json(parser, "the comparison")
    inputs.add_quiet(parser)


@command(
    "policies",
    "compare search policies on a hierarchy: values, differences and regret to the hindsight policy",
    _configure_policies,
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier policies points.csv -",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier policies points.csv - --policy one-step --policy expand",
)
def policies(options: argparse.Namespace) -> int:
    names = list(dict.fromkeys(options.policy or _RULES))
    planned = bool(set(names) & set(_PLANNED))
    if not planned:
        inputs.refuse_unused(options, ("jobs", "seed"), "on policies that are not planned for each item")
    policies = {name: _policy(name, options.tie) for name in names}
    from pomdp_hier.analysis.policy_comparison import compare_search_policies

    read = inputs.read_inputs(options)
    table = compare_search_policies(
        read.features,
        read.tree,
        policies,
        confidence=options.confidence,
        similarity=options.similarity,
        delta=options.delta,
        nu=options.nu,
        tie=options.tie,
        n_jobs=options.jobs,
        random_state=options.seed if planned else None,
        sample_weight=read.weights,
        progress=True,
    )
    print(json.dumps(table.to_dict(), indent=1) if options.json else table)
    return 0


def _policy(name: str, tie: Any) -> Any:
    if name in _RULES:
        return name
    kind, _, number = name.rpartition("-")
    if kind in ("level", "look-ahead") and number.isdecimal():
        from pomdp_hier._engines.task import LookAhead
        from pomdp_hier.hqs.policies import FixedLevel

        return FixedLevel(int(number)) if kind == "level" else LookAhead(int(number), tie)
    if name in ("expand", "max-0"):
        from pomdp_hier.hqs.policies import paper_readings

        return paper_readings(tie)[name]
    if name in ("pouct", "pouct-environment"):
        from pomdp_hier.hqs.policies import PlansInEnvironment
        from pomdp_hier.planning.pomdp_py_planners import POUCT

        return POUCT() if name == "pouct" else PlansInEnvironment(POUCT())
    expected = ", ".join((*_RULES, "level-N", "look-ahead-N", *_PLANNED))
    raise ParameterError(f"--policy: got {brief(name)}; expected one of {expected}.")
