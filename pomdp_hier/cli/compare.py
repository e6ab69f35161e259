"""``pomdp-hier compare``: trees over the same items, paired by item, with other measures."""

import argparse
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp_hier.cli import console, files, inputs, tables, tree_formats, trees
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.analysis.comparison import Comparison
    from pomdp_hier.hierarchy.tree import Hierarchy

NAME = "compare"
SUMMARY = "compare trees over the same items: which is better, by how much, for which items"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' > one.json",
    "echo '[[0,2],[1,3],[4,5]]' | pomdp-hier compare points.csv one.json -",
)

_PAGES = (".html", ".htm")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_input_options(parser)
    add = parser.add_argument
    others = "the trees to compare it with, over the same items"
    add("others", type=files.input_file, metavar="TREE", nargs="+", help=others)
    inputs.add_setting_options(parser, calibrated=True)
    classes = "a table with the columns id and name: the class of each item"
    add("--labels", type=files.input_file, metavar="CSV", help=classes)
    add("--no-measures", action="store_true", help="skip the other measures of a hierarchy")
    add("--confidence", type=float, default=0.95, metavar="X", help="level of the intervals (default: 0.95)")
    inputs.add_count(parser, "--top", "list the N items with the largest gains and losses", 5)
    written = (
        "write the values per item to .csv, .parquet or .json (- is CSV on stdout), or a page on two trees to .html"
    )
    add("-o", "--out", type=files.output_file, metavar="PATH", help=written)
    add("--force", action="store_true", help="replace the file of --out if it exists")
    add("--json", action="store_true", help="print the comparison as JSON")
    inputs.add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Compare the trees."""
    given = [options.tree, *options.others]
    _check_usage(options, given)
    from pomdp_hier.analysis.comparison import compare

    read = inputs.read_inputs(options)
    ids = read.ids
    named = dict(zip(_names(given), [read.tree, *_aligned(options, ids, read.tree)], strict=True))
    by_id = trees.read_names(options.names, options.name_columns)
    classes = trees.read_names(options.labels)
    found = compare(
        read.features,
        named,
        labels=[classes.get(str(name)) for name in ids] if options.labels else None,
        measures=not options.no_measures,
        confidence=options.confidence,
        progress=True,
        **inputs.settings(options),
    )
    names = [by_id.get(str(name), str(name)) for name in ids]
    if _is_page(options):
        from pomdp_hier.analysis.diagnosis import diagnose
        from pomdp_hier.report.comparison_page import write_comparison

        settings = inputs.settings(options) | {"delta": next(iter(found.results.values())).config["delta"]}
        diagnoses = {
            name: diagnose(read.features, tree, found.results[name], **settings) for name, tree in named.items()
        }
        title = f"{' or '.join(named)}: which supports search better?"
        write_comparison(found, diagnoses, options.out, names=by_id or None, title=title, replace=options.force)
    elif options.out is not None:
        tables.write_table(options.out, _item_table(found, ids), options.force)
    if options.out != "-":
        for line in _lines(found, names, options):
            print(line)
    return 0


def _check_usage(options: argparse.Namespace, given: Sequence[str]) -> None:
    """Raise for options that contradict each other, before anything is read."""
    if [options.features, *given].count("-") > 1:
        raise ParameterError("-: got it for several inputs; expected one. Pass the others as files.")
    if options.out == "-" and options.json:
        raise ParameterError("--out: got - with --json; expected one of them. Leave out --json.")
    if options.no_measures:
        inputs.refuse_unused(options, ("labels",), "with --no-measures")
    if options.out == "-":
        inputs.refuse_unused(options, ("top",), "with --out -")
    inputs.check_out(options, **({"endings": _PAGES} if _is_page(options) else {}))
    if _is_page(options) and len(given) != 2:
        raise ParameterError(
            f"--out: got {options.out} for {len(given)} trees; expected two for a page. Give two, or write a .csv."
        )


def _is_page(options: argparse.Namespace) -> bool:
    """Return whether the output is a page."""
    return options.out is not None and Path(options.out).suffix.lower() in _PAGES


def _names(given: Sequence[str]) -> list[str]:
    """Return the names of the trees: file names, or whole paths where these are equal."""
    stems = [Path(path).stem if path != "-" else "stdin" for path in given]
    names = [stem if stems.count(stem) == 1 else path for stem, path in zip(stems, given, strict=True)]
    return [name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names, start=1)]


def _aligned(options: argparse.Namespace, ids: Sequence[Hashable], first: "Hierarchy") -> "Iterable[Hierarchy]":
    """Yield the other trees with their items in the order of the first, by id or by position."""
    from pomdp_hier.measures.alignment import item_numbers

    for path in options.others:
        tree = trees.read_tree(argparse.Namespace(**{**vars(options), "tree": path}))
        if options.join == "position" and tree.labels is not None and len(ids) == tree.n_items:
            names = [*ids, *tree.labels[tree.n_items :]]
            tree = type(tree).from_children(tree.to_children(), len(ids), singletons=tree.singletons, labels=names)
        called = tree_formats.source_name(options.tree), tree_formats.source_name(path)
        numbers = item_numbers(first, tree, "compare", names=called, by_number="--join position")
        yield tree if numbers is None else tree.permuted(numbers, with_labels=True)


def _item_table(found: "Comparison", ids: Sequence[Hashable]) -> Mapping[str, Sequence[Any]]:
    """Return the columns of ``--out``: the value of each item in each tree."""
    columns: dict[str, Sequence[Any]] = {"item": range(len(ids)), "id": [str(name) for name in ids]}
    return columns | {name: result.values.tolist() for name, result in found.results.items()}


def _lines(found: "Comparison", names: Sequence[str], options: argparse.Namespace) -> Iterable[str]:
    """Yield the printed lines of a comparison."""
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
                },
                "trees": found.to_rows(),
                "ranks": found.ranks(),
                "differences": [
                    pair.__dict__ | {"distinguishable": pair.distinguishable} for pair in found.differences
                ],
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
