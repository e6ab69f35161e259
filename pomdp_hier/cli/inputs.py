"""Common arguments of the commands: features, tree, and settings of the searcher."""

import argparse
import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pomdp_hier._io.formats import open_csv, text_of
from pomdp_hier._io.workbooks import unpacked_table
from pomdp_hier._text import brief, counted, listed
from pomdp_hier.cli import console, trees
from pomdp_hier.errors import DataWarning, FeatureError, HierarchyError, ParameterError, PomdpHierError, ReaderError

if TYPE_CHECKING:
    from pomdp_hier.hierarchy.tree import Hierarchy


OF_FEATURES = (
    *(
        "key",
        "id_column",
        "text_column",
        "embedding_column",
        "min_df",
        "max_ngram",
        "sublinear_tf",
        "stop_words",
        "join",
        "weights",
    ),
)
READING_GROUPS = ("reading FEATURES", "reading TREE", "reading SEARCHES")  # shown by --help-all
OF_SETTINGS = ("similarity", "delta", "nu", "tie", "policy")
_SIMILARITIES = ("cosine", "inverse_sqeuclidean", "negative_euclidean", "precomputed")


def add_input_options(parser: argparse.ArgumentParser, **settings: bool) -> None:
    """Add FEATURES and TREE, with their reading options, and those settings of the searcher, if any."""
    add = parser.add_argument
    what = (
        "one row per item: .npz (sparse or dense), .npy, delimited text with a header, .parquet, .xlsx (the first "
        "sheet, or file.xlsx#SHEET), or - for standard input"
    )
    add("features", type=console.input_file, metavar="FEATURES", help=what)
    add_tree(parser)
    add_reading_options(parser)
    if settings:
        add_setting_options(parser, **settings)


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add TREE."""
    what = (
        "the hierarchy: JSON, Newick, a table of parents, edges or paths (also file.xlsx#SHEET), lines of paths, a "
        "linkage matrix, or -"
    )
    parser.add_argument("tree", type=console.input_file, metavar="TREE", help=what)


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the reading options of FEATURES and TREE."""
    add = parser.add_argument_group(READING_GROUPS[0]).add_argument
    add("--key", metavar="NAME", help="the array of a dense .npz (default: X, or the only one)")
    add("--id-column", metavar="NAME", help="the column of ids (default: id, item or item_id, if there is one)")
    what = "use the TF-IDF of this column of texts; repeat for several columns, which are joined"
    add("--text-column", metavar="NAME", action="append", help=what)
    add("--embedding-column", metavar="NAME", help="use the vectors in this column of a Parquet file")
    add("--min-df", type=int, metavar="N", help="text: minimum number of items per term (default: 1)")
    add("--max-ngram", type=int, metavar="N", help="text: maximum number of words per term (default: 1)")
    add("--sublinear-tf", action="store_true", default=None, help="text: use sublinear term frequency, 1 + log(tf)")
    add("--stop-words", choices=("english",), help="text: remove stop words")
    what = (
        "join rows to items by the ids of both files, or the k-th row to the k-th item (default: by id if the "
        "features have ids, unless the tree's items are numbers that are not among them)"
    )
    add("--join", choices=("auto", "id", "position"), default="auto", help=what)
    trees.add_tree_options(parser)


def add_setting_options(
    parser: argparse.ArgumentParser, *, calibrated: bool = False, ties: bool = True, weights: bool = False
) -> None:
    """Add the settings of the searcher."""
    group = parser.add_argument_group("the searcher")  # printed after the command's own options
    add = group.add_argument
    if weights:
        what = (
            "the column of FEATURES with the number of searches for each item, such as traffic or sales (in a .npz "
            "an array): scores are means over searches, not over items. It is not a feature"
        )
        add("--weights", metavar="COLUMN", help=what)
    add_similarity(group)
    add(
        "--delta",
        type=number_or("calibrated") if calibrated else float,
        default=0.01,
        metavar="X",
        help="softmax temperature of the searcher: near 0 it always enters the most similar child, for large values a "
        "random one (default: 0.01, the paper's for cosines"
        + ("; calibrated: the maximum-likelihood estimate from the tree" if calibrated else "")
        + "; not fitted to people)",
    )
    what = "factor of the softmax temperature per level; above 1 it grows, below 1 it falls (default: 1)"
    add("--nu", type=float, default=1.0, metavar="X", help=what)
    tie = "the action when search and descend have equal values (default: descend)"
    if ties:
        add("--tie", choices=("descend", "search"), default="descend", help=tie)
    if calibrated:
        names = "one-step, optimal, search-root, descend or hindsight"
        add("--policy", default="one-step", metavar="NAME", help=f"how searchers decide: {names} (default: one-step)")


def add_similarity(parser: argparse._ActionsContainer) -> None:
    """Add ``--similarity``."""
    parser.add_argument(
        "--similarity",
        default="cosine",
        choices=_SIMILARITIES,
        metavar="NAME",
        help=f"the similarity of items and clusters: {', '.join(_SIMILARITIES)} (FEATURES is the N x N matrix). Use "
        "the one that the tree was built with, negative_euclidean for Ward and distances (default: cosine)",
    )


def add_out(parser: argparse.ArgumentParser, what: str, *, metavar: str = "PATH", required: bool = False) -> None:
    """Add ``--out`` and ``--force``."""
    parser.add_argument("-o", "--out", type=console.output_file, required=required, metavar=metavar, help=what)
    add_force(parser)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``."""
    parser.add_argument("--force", action="store_true", help="replace a file that exists")


def add_json(parser: argparse.ArgumentParser, what: str, more: str = "") -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON{more}")


def add_confidence(parser: argparse.ArgumentParser) -> None:
    """Add ``--confidence``."""
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="X", help="level of the intervals (default: 0.95)"
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add ``--quiet``, which means the same in every command."""
    parser.add_argument(
        "--quiet", action="store_true", help="show no progress and no notes; results, warnings and errors stay"
    )


def add_count(parser: argparse.ArgumentParser, option: str, what: str, default: int | None = None) -> None:
    """Add an option for a number, with its default."""
    note = "" if default is None else f" (default: {default})"
    parser.add_argument(option, type=count, default=default, metavar="N", help=what + note)


def count(text: str) -> int:
    """Return the argument of an option for an integer of at least 0."""
    return int(_number(text, int, "an integer of at least 0"))


def amount(text: str) -> float:
    """Return the argument of an option for a number of at least 0."""
    return _number(text, float, "a number of at least 0")


def _number(text: str, convert: Callable[[str], float], expected: str, below: float = math.inf) -> float:
    """Return the number in a text, from 0 on.

    Example:
        >>> _number("3", int, "an integer"), _number("0.5", float, "a share", below=1.0)
        (3, 0.5)
    """
    try:
        number = convert(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"got {brief(text)}; expected {expected}") from None
    if not 0 <= number < below:
        raise argparse.ArgumentTypeError(f"got {number:g}; expected {expected}")
    return number


def share(text: str) -> float:
    """Return the argument of an option for a share below 1."""
    return _number(text, float, "a number in [0, 1). Pass 0.1 for 10 %.", below=1.0)


def settings(options: argparse.Namespace, read: "Inputs | None" = None) -> dict[str, Any]:
    """Return the settings of the searcher as arguments of scoring functions, with the weights that were read."""
    given = {name: getattr(options, name) for name in OF_SETTINGS if hasattr(options, name)}
    return given if read is None or read.weights is None else given | {"sample_weight": read.weights}


def refuse_unused(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Raise for options without effect."""
    for name in names:
        if hasattr(options, name) and getattr(options, name) != options.default(name):
            raise ParameterError(f"--{name.replace('_', '-')} has no effect {why}. Leave it out.")


def check_out(options: argparse.Namespace, **endings: Any) -> None:
    """Raise for an ``--out`` that cannot be written, or ``--force`` without it; see `console.check_target`."""
    if options.out is None:
        refuse_unused(options, ("force",), "without --out")
    else:
        console.check_target(options.out, options.force, **endings)


def number_or(word: str) -> Callable[[str], float | str]:
    """Return the reader of an option that takes a number or a word.

    Example:
        >>> read = number_or("calibrated")
        >>> read("0.02"), read("calibrated")
        (0.02, 'calibrated')
    """

    def read(text: str) -> float | str:
        try:
            return text if text == word else float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"got {brief(text)}; expected a number or '{word}'") from None

    return read


@dataclass(frozen=True, eq=False)
class Inputs:
    """Content of FEATURES and TREE.

    Attributes:
        features: The features, one row per item, in item order.
        tree: The tree.
        ids: The id of each item.
        joined: The join of rows and items: ``"id"`` or ``"position"``.
        weights: The weight of each item ``[N]``, if they have a column.
        columns: The names of the columns of the features, or the terms of texts; None without names.
    """

    features: Any
    tree: "Hierarchy"
    ids: tuple[Hashable, ...]
    joined: str
    weights: Any = None
    columns: tuple[str, ...] | None = None


def read_inputs(options: argparse.Namespace) -> Inputs:
    """Return the features in item order, the tree, and the kind of join."""
    if options.features == options.tree == "-":
        raise ParameterError(
            "FEATURES and TREE: got - for both; expected standard input for one. Give the other as a file."
        )
    try:
        return _read(options)
    except (FeatureError, HierarchyError) as error:
        for tree in (options.tree, *getattr(options, "others", ())):
            if _fit(argparse.Namespace(**{**vars(options), "features": tree, "tree": options.features})):
                raise ParameterError(
                    f"FEATURES and TREE: got the tree {options.features} and the features {tree}; expected the "
                    "features first. Swap "
                    "them."
                ) from error
        raise


def _fit(options: argparse.Namespace) -> bool:
    """Return whether these are features and their tree; standard input is not read again."""
    if "-" in (options.features, options.tree):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _read(options)
        except PomdpHierError:
            return False
    return True


def _text_note(table: Any, columns: Sequence[str]) -> str:
    """Return what was taken from columns of text, with the number of texts without a term."""
    n_rows, n_terms = table.matrix.shape
    empty = n_rows - int((table.matrix.sum(axis=1) > 0).sum())
    ids = "without ids" if table.ids is None else f"ids such as {brief(table.ids[0])}"
    none = f"; {counted(empty, 'text')} without a term" if empty else ""
    return (
        f"features: TF-IDF of {listed(columns)}, {counted(n_terms, 'term')} in {counted(n_rows, 'text')} ({ids}){none}"
    )


def _read(options: argparse.Namespace) -> Inputs:
    from pomdp_hier.features.items import FeatureTable, are_row_numbers, join_rows, rows_by_id
    from pomdp_hier.features.loading import load_features

    tfidf = {name: getattr(options, name) for name in ("min_df", "max_ngram", "sublinear_tf", "stop_words")}
    table = load_features(
        options.features,
        key=options.key,
        id_column=options.id_column,
        text=options.text_column,
        embedding=options.embedding_column,
        tfidf={name: value for name, value in tfidf.items() if value is not None},
        weight_column=getattr(options, "weights", None),
    )
    n_rows = int(table.matrix.shape[0])
    if options.text_column and not getattr(options, "quiet", True):
        console.note(_text_note(table, options.text_column), options)
    numbered = table.ids is None or {str(name) for name in table.ids} == set(map(str, range(n_rows)))
    file = trees.read_tree_file(options, n_rows if numbered else None)
    ids = file.tree.item_labels
    columns = None if table.columns is None else tuple(table.columns)
    rows = None
    if table.ids is not None and options.join != "position":
        rows = (rows_by_id if options.join == "auto" else join_rows)(table.ids, ids, sep=options.sep)
    if rows is None and options.join == "id":
        named = "Name the column with --id-column, or leave" if table.columns is not None else "Leave"
        raise FeatureError(
            f"{options.features}: got no ids; expected one per row for --join id. {named} --join id out."
        )
    if rows is None:
        if n_rows != file.tree.n_items:
            raise FeatureError(
                f"{options.features}: got {n_rows} rows; expected one per item of "
                f"{trees.source_name(options.tree)}, {file.tree.n_items}. Add a column of ids."
            )
        if options.join == "auto" and table.ids is None and not file.ordered and not are_row_numbers(ids):
            warnings.warn(
                f"the features have no ids: row k is taken for the k-th item of the tree file ({listed(ids, limit=3)});"
                " give a column of ids, or --join position if that is right",
                DataWarning,
                stacklevel=3,
            )
        return Inputs(
            FeatureTable(table.matrix, source=table.source), file.tree, ids, "position", table.weights, columns
        )
    from pomdp_hier.features.validation import check_features, check_similarity_matrix

    weights = None if table.weights is None else table.weights[rows]
    if options.similarity == "precomputed":
        check_similarity_matrix(table.matrix, n_rows, name=table.source, ids=table.ids)
        return Inputs(table.matrix[rows][:, rows], file.tree, ids, "id", weights)
    checked = check_features(table.matrix, n_rows, name=table.source, ids=table.ids)
    return Inputs(checked[rows], file.tree, ids, "id", weights, columns)


_ID_COLUMNS = ("id", "code", "item", "key", "sku", "uri", "concept", "node", "notation", "identifier")
_NAME_COLUMNS = ("name", "title", "label", "preflabel", "description", "text")


def read_names(path: str | None, columns: Sequence[str] | None = None) -> dict[str, str]:
    """Return the names by id of a table; none without a path."""
    if path is None:
        if columns is not None:
            raise ParameterError(
                "--name-columns: got columns without --names; expected both. Leave it out, or add --names."
            )
        return {}
    content = unpacked_table(trees.read_bytes(path, "a table of names"), path, ReaderError)
    table = open_csv(text_of(content, path, ReaderError), ReaderError, name=path)
    id_at, name_at = _name_columns(table.columns, path, columns)
    return {row[id_at]: row[name_at] for _, row in table.rows}


def _name_columns(header: Sequence[str], path: str, columns: Sequence[str] | None) -> tuple[int, int]:
    """Return the positions of the columns of ids and names: the given ones, by their names, or the only two."""
    if columns is not None:
        if len(columns) != 2:
            raise ParameterError(f"--name-columns: got {', '.join(columns)}; expected two columns, ID,NAME.")
        for name in columns:
            if header.count(name) != 1:
                raise ReaderError(
                    f"{path}: got {header.count(name)} columns {brief(name)} in {', '.join(header)}; expected one."
                )
        return header.index(columns[0]), header.index(columns[1])
    from pomdp_hier.hierarchy.readers.tables import column_name

    called = [column_name(cell) for cell in header]
    found = [
        next((called.index(name) for name in names if called.count(name) == 1), None)
        for names in (_ID_COLUMNS, _NAME_COLUMNS)
    ]
    if None in found and len(header) == 2 and len(set(called)) == 2:
        return 0, 1
    if found[0] is None or found[1] is None:
        raise ReaderError(
            f"{path}: got the columns {', '.join(header)}; expected id and name. Name them with --name-columns ID,NAME."
        )
    return found[0], found[1]


def label_of(tree: "Hierarchy", text: str, option: str) -> Hashable:
    """Return the label of the node that a text names."""
    from pomdp_hier.hierarchy.node_names import label_text

    labels: Sequence[Hashable] = range(tree.n_nodes) if tree.labels is None else tree.labels
    found = [label for label in labels if label is not None and text in (label_text(label), str(label))]
    if not found and any(isinstance(label, tuple) for label in labels):
        found = [label for label in labels if isinstance(label, tuple) and label and str(label[-1]) == text]
    if len(found) > 1:
        shown = listed([label_text(label) for label in found])
        raise ParameterError(f"{option}: got {brief(text)}, which names {shown}; expected one. Give its whole path.")
    if not found:
        known = [label_text(label) for label in labels if label is not None]
        near = listed(get_close_matches(text, known) or known[:3])
        raise ParameterError(f"{option}: got {brief(text)}; expected the id of a node. Nearest are {near}.")
    return found[0]
