"""``pomdp-hier searches``: the temperature that fits recorded searches, and predicted beside observed choices."""

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pomdp_hier._text import brief
from pomdp_hier.cli import console, inputs, trees
from pomdp_hier.cli.console import command
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy
    from pomdp_hier.searches.choices import Searches
    from pomdp_hier.searches.comparison import By

_READING = ("columns", "click_sep", "back", "start", "links", "unknown_items")
_PRIORS = ("uniform", "sizes")


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a table of searches is read."""
    add = parser.add_argument_group("reading SEARCHES").add_argument
    what = (
        "a column of the searches by its role: searcher, item, step, node, path or search; repeat for several "
        "(default: by common names)"
    )
    add("--columns", type=_column, action="append", metavar="ROLE=NAME", help=what)
    add("--click-sep", metavar="TEXT", help="what separates the nodes of a path (default: >, | or /)")
    add("--back", action="append", metavar="MARK", help="a mark for one step back in a path (default: <back>)")
    what = "where a search starts: at the root, or at its first node, which was given and not chosen (default: root)"
    add("--start", choices=("root", "first"), default="root", help=what)
    what = "a table of what clicks can lead to, with columns from and to"
    add("--links", type=console.input_file, metavar="FILE", help=what)
    what = "searches for items that the tree lacks: stop, or leave out and count (default: error)"
    add("--unknown-items", choices=("error", "drop"), default="error", help=what)


def read_recorded(options: argparse.Namespace, path: str, tree: "Hierarchy") -> "Searches":
    """Return the searches in a file, joined to the tree."""
    from pomdp_hier.searches import read_searches

    links = None if options.links is None else trees.read_bytes(options.links, "a table of links")
    with trees.named(trees.source_name(path)):
        return read_searches(
            trees.read_bytes(path, "a table of searches"),
            tree,
            columns=dict(options.columns or {}),
            sep=options.click_sep,
            back=options.back or "<back>",
            start=options.start,
            links=links,
            unknown_items=options.unknown_items,
        )


def check_inputs(options: argparse.Namespace) -> None:
    """Raise if several files are standard input."""
    if [options.features, options.tree, options.searches, options.links].count("-") > 1:
        raise ParameterError(
            "FEATURES, TREE, SEARCHES and --links: got - for several; expected standard input for one. Give the others "
            "as files."
        )


def refuse_reading_options(options: argparse.Namespace, why: str) -> None:
    """Raise for reading options of searches without searches."""
    inputs.refuse_unused(options, _READING, why)


def _configure(parser: argparse.ArgumentParser) -> None:
    inputs.add_input_options(parser)
    what = (
        "recorded searches: a table with one click per row (searcher, item, step, node), or one path per row (item, "
        "path), or -"
    )
    parser.add_argument("searches", type=console.input_file, metavar="SEARCHES", help=what)
    add_reading_options(parser)
    inputs.add_similarity(parser)
    add = parser.add_argument
    delta = "the temperature of the predictions at the root (default: the one that is fitted to the searches)"
    add("--delta", type=float, metavar="X", help=delta)
    what = "factor of the temperature per level, or fitted (default: 1)"
    add("--nu", type=inputs.number_or("fitted"), default=1.0, metavar="X", help=what)
    prior = "the choices at infinite temperature (default: uniform, or sizes with --links)"
    add("--prior", choices=_PRIORS, help=prior)
    what = "the rows of --out and the list (default: node; lists by child and item)"
    add("--by", choices=("node", "child", "item"), help=what)
    inputs.add_count(parser, "--top", "list the N largest misfits", 10)
    add("--seed", type=int, default=0, metavar="N", help="seed of folds and bootstrap (default: 0)")
    rows = "write one row per node, child or item to .csv, .parquet or .json; - is CSV on standard output"
    inputs.add_out(parser, rows)
    inputs.add_json(parser, "the result")
    inputs.add_quiet(parser)


@command(
    "searches",
    "fit delta to recorded searches of people, and compare predicted with observed choices",
    _configure,
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "printf 'searcher,item,step,node\\nAnn,0,1,4\\nAnn,2,1,5\\nBob,1,1,5\\nBob,3,1,5\\n' > searches.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier searches points.csv - searches.csv",
)
def searches(options: argparse.Namespace) -> int:
    inputs.check_out(options)
    check_inputs(options)
    if options.out == "-":
        inputs.refuse_unused(options, ("json", "top"), "with --out -")
    from pomdp_hier.searches import fit_delta, predicted_and_observed
    from pomdp_hier.searches.comparison import COLUMNS

    by_id = inputs.read_names(options.names, options.name_columns)
    found = inputs.read_inputs(options)
    settings = {"similarity": options.similarity, "prior": options.prior, "random_state": options.seed}
    with console.steps("searches", 3) as step:
        step("reading the searches")
        searches = read_recorded(options, options.searches, found.tree)
        step("fitting the temperature")
        fit = fit_delta(found.features, found.tree, searches, nu=options.nu, **settings)
        step("comparing predicted with observed choices")
        delta = fit.delta if options.delta is None else options.delta
        shown = predicted_and_observed(found.features, found.tree, searches, delta=delta, nu=fit.nu, **settings)
    by: By = options.by or "node"
    rows = shown.to_rows(by, names=by_id)
    if options.out is not None:
        console.write_table(options.out, {n: [row[n] for row in rows] for n in COLUMNS[by]}, options.force)
    if options.out == "-":
        return 0
    kinds: tuple[By, ...] = ("child", "item") if options.by is None else (by,)
    misfits = {kind: shown.misfits(kind, options.top, names=by_id) for kind in kinds}
    if options.json:
        summary = {
            **fit.settings,
            "verdict": fit.verdict,
            "fit": fit.to_rows(),
            "correlations": [vars(one) for one in shown.correlations],
            "misfits": misfits,
            "notes": list(searches.notes),
        }
        print(json.dumps(_finite(summary), indent=1))
        return 0
    lists = [line for kind, found_there in misfits.items() for line in _lines(found_there, kind)]
    lines = dict.fromkeys([searches.summary(), *fit.summary().splitlines(), *shown.sentences()])
    console.show([*lines, *lists])
    return 0


def _lines(misfits: list[dict[str, Any]], by: str) -> Iterator[str]:
    yield f"largest misfits, by {by}" if misfits else f"no misfit beyond the intervals, by {by}"
    for row in misfits:
        wrong = f", most often {row['wrong_child']} in place of {row['correct_child']}" if row["wrong_child"] else ""
        yield (
            f"  {row['suggestion']:<8} {row['name']}: predicted {row['predicted']:z.1%}, observed "
            f"{row['observed']:z.1%} ({row['low']:z.1%} to {row['high']:z.1%}) of {row['n_choices']:,}{wrong}"
        )


def _finite(value: Any) -> Any:
    """Return the value for JSON, with null for NaN."""
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _column(text: str) -> tuple[str, str]:
    """Return the argument of ``--columns``.

    Example:
        >>> _column("item=target")
        ('item', 'target')
    """
    role, sign, name = text.partition("=")
    if not (sign and role and name):
        raise argparse.ArgumentTypeError(f"got {brief(text)}; expected ROLE=NAME, with a role such as item")
    return role, name
