"""``improve -o`` and ``levels -o``: a tree of any format comes out in that format, and is read again."""

import numpy as np
import pytest

from pomdp_hier.analysis import score_by_levels
from pomdp_hier.cli import main
from pomdp_hier.hierarchy import Hierarchy
from tests.tree_texts import CANONICAL, TREE_TEXTS

LIKE = {"salt": (1, 0.1, 0), "mint": (1, 0, 0), "sage": (1, 0, 0.3), "oat": (0, 1, 0), "rice": (0, 1, 0.3)}
CODES = {"7": "salt", "8": "mint", "9": "oat"}
KINDS = pytest.mark.parametrize("kind", TREE_TEXTS)


def given(folder, kind):
    """Return the arguments: features, in which salt belongs to the tea, the tree, and the target; and both files."""
    if kind in CANONICAL:
        text, form, ending = CANONICAL[kind]
    else:
        text, form, _ = TREE_TEXTS[kind]
        ending = ".txt" if "lines" in kind else ".csv"
    features, source, target = folder / "X.npy", folder / f"tree{ending}", folder / f"better{ending}"
    source.write_text(text, encoding="utf-8", newline="")
    names = [label[-1] if isinstance(label, tuple) else label for label in read(source, form).item_labels]
    names = [CODES.get(str(name), str(name)) for name in names]
    np.save(features, np.array([LIKE[name] for name in names], dtype=float))
    return [*map(str, (features, source)), "--join", "position", "--delta", "0.1", "-o", str(target)], source, target


def read(path, form):
    return getattr(Hierarchy, f"from_{form}")(path)


@KINDS
def test_improve_changes_only_the_moved_items(kind, tmp_path, capsys):
    arguments, _, target = given(tmp_path, kind)
    text, _, changes = TREE_TEXTS[kind]
    for old, new in changes.items():
        text = text.replace(old, new)
    assert main(["improve", *arguments, "--kinds", "move", "--max-edits", "1", "--folds", "0", "--all"]) == 0, (
        capsys.readouterr()
    )
    assert target.read_bytes().decode() == text


@pytest.mark.parametrize("kind", CANONICAL)
def test_json_and_newick_are_written_in_their_canonical_form(kind, tmp_path, capsys):
    arguments, source, target = given(tmp_path, kind)
    form = CANONICAL[kind][1]
    assert main(["improve", *arguments, "--kinds", "move", "--max-edits", "1", "--folds", "0", "--all"]) == 0, (
        capsys.readouterr()
    )
    before, after = read(source, form), read(target, form)
    assert parents(after) == parents(before) | {"salt": "herbs" if kind == "keys" else "tea"}


def parents(tree):
    return {name: up < 0 or tree.labels[up] for name, up in zip(tree.labels, tree.parent.tolist(), strict=True)}


def test_a_format_that_cannot_be_written_back_is_refused_before_work(tmp_path, capsys):
    arguments, _, target = given(tmp_path, "lines")
    (tmp_path / "tree.txt").write_text("Food\n  Milk\n    salt\n    oat\n  Tea\n    mint\n")
    assert main(["improve", *arguments, "--tree-format", "outline"]) == 1
    assert "tree.txt: got the format outline" in (said := capsys.readouterr().err)
    assert "ends in .json" in said
    assert main(["improve", *arguments[:-1], str(target.with_suffix(".json")), "--tree-format", "outline"]) == 0


@pytest.mark.slow
@KINDS
def test_the_best_levels_come_out_in_the_same_format_or_not_at_all(kind, tmp_path, capsys):
    arguments, source, target = given(tmp_path, kind)
    form = TREE_TEXTS[kind][1]
    found = score_by_levels(np.load(arguments[0]), read(source, form), delta=0.1)
    best = found.trees[found.best]
    code = main(["levels", *arguments])
    if best.height == 0 and kind in ("paths", "bare paths", "levels", "lines with ids"):
        assert (code, target.exists()) == (1, False)
        assert "below no category; expected one in paths. Write .json" in capsys.readouterr().err
    else:
        assert code == 0, capsys.readouterr()
        again = read(target, form)
        assert sorted(map(len, again.to_children())) == sorted(map(len, best.to_children()))
