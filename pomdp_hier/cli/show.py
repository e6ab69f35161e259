"""``pomdp-hier show``: a hierarchy as text."""

import argparse
import sys
from typing import TYPE_CHECKING

from pomdp_hier.cli import console, files, inputs, trees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pomdp_hier.hierarchy.tree import Hierarchy

NAME = "show"
SUMMARY = "show a hierarchy as text, with the names of its items"
EXAMPLES = (
    "pomdp-hier show A",
    "pomdp-hier show dvd",
    'echo \'[["r","a"],["r","b"]]\' | pomdp-hier show -',
)
_BUILT_IN = ("A", "B", "C", "D", "E", "dvd")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "tree",
        type=files.input_file,
        metavar="TREE",
        help="A to E (the paper's hierarchies), dvd (its first figure), a tree file, or - for standard input",
    )
    trees.add_tree_options(parser)
    inputs.add_count(parser, "--max-lines", "show at most N clusters", 100)
    inputs.add_count(parser, "--max-items", "name at most N items per cluster", 7)
    parser.add_argument("--ascii", action="store_true", help="show without box characters")


def run(options: argparse.Namespace) -> int:
    """Show the hierarchy."""
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
    from pomdp_hier.hqs.paper.examples import load_amazon12, load_dvd

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
    return title, tree, NodeNames(tree, trees.read_names(options.names, options.name_columns), last_part=True)
