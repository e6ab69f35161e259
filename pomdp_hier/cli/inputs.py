"""What every command that scores takes: the features, the tree, and the searcher's settings."""

import argparse
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from pomdp_hier.cli import trees
from pomdp_hier.errors import ParameterError

if TYPE_CHECKING:
    from pomdp_hier.features.loading import FeatureTable
    from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["add_input_options", "add_reading_options", "add_setting_options", "check_inputs", "read_inputs"]


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Adds FEATURES and TREE, and how to read them."""
    add = parser.add_argument
    add(
        "features",
        metavar="FEATURES",
        help="one row an item: .npz (sparse or dense), .npy, delimited text with a header, .parquet, or - for "
        "standard input",
    )
    add("tree", metavar="TREE", help="the hierarchy: .json (edges or children lists), .npy (linkage), or -")
    add_reading_options(parser)


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Adds how to read FEATURES and TREE."""
    add = parser.add_argument
    add("--key", metavar="NAME", help="the array of a dense .npz to take (default: X, or the only one)")
    add("--id-column", metavar="NAME", help="the column of ids (default: id, item or item_id, if there is one)")
    trees.add_tree_options(parser)


def add_setting_options(parser: argparse.ArgumentParser) -> None:
    """Adds what guides the searcher."""
    add = parser.add_argument
    add(
        "--similarity",
        default="cosine",
        choices=("cosine", "inverse_sqeuclidean", "negative_euclidean", "precomputed"),
        help="what guides the searcher (default: cosine); precomputed: FEATURES is an N x N matrix",
    )
    add("--delta", type=float, default=0.01, metavar="X", help="the temperature of the guidance (default: 0.01)")
    add("--nu", type=float, default=1.0, metavar="X", help="its growth a level (default: 1)")
    add("--tie", choices=("descend", "search"), default="descend", help="what a tie does (default: descend)")


def check_inputs(options: argparse.Namespace) -> None:
    """Refuses to read two files from one standard input.

    Raises:
        ParameterError: FEATURES and TREE are both ``-``.
    """
    if options.features == "-" and options.tree == "-":
        raise ParameterError("FEATURES and TREE cannot both be -; give one of them as a file")


def read_inputs(options: argparse.Namespace) -> tuple[Any, "Hierarchy", tuple[Hashable, ...]]:
    """The features in the order of the tree's items, the tree, and the items' ids.

    Raises:
        PomdpHierError: A file cannot be read, or the two do not belong together.
    """
    from pomdp_hier.features.loading import load_features

    tree = trees.read_tree(options)
    table = load_features(options.features, key=options.key, id_column=options.id_column)
    ids = trees.item_ids(tree)
    return _in_item_order(table, ids, options.similarity), tree, ids


def _in_item_order(table: "FeatureTable", ids: Sequence[Any], similarity: str) -> Any:
    """The rows in the order of the tree's items if the file says which is whose, else as they are."""
    if table.ids is None:
        return table.matrix
    from pomdp_hier.features.join import join_rows

    rows = join_rows(table.ids, ids)
    return table.matrix[rows][:, rows] if similarity == "precomputed" else table.matrix[rows]
