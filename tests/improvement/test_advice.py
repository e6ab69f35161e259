"""Advice on regrouping and on decided edits is taken: the input, the advice, the input with it taken, and the value."""

from functools import cache

import numpy as np
import pytest

from pomdp_hier import Hierarchy
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.hierarchy.editing import Draft
from pomdp_hier.improvement import regroup
from pomdp_hier.improvement.decisions import Decision, apply_decisions, read_decisions

X = np.array([[1, 0], [0.9, 0.2], [0, 1], [0.1, 0.9], [0.8, 0.7], [0.7, 0.9]])
DEEP = Hierarchy.from_paths(
    {f"i{at}": f"{'ab'[at // 4]} > {heading}" for at, heading in enumerate(["c", "d", "e", "f", "g", "h"])}
)


@cache
def rebuilt(n=6, **settings):
    """The number of items of the new tree, whose score is at least that of the old one."""
    found = regroup(X[:n], DEEP if n == 6 else few(n), delta=0.1, folds=0, **settings)
    assert found.after.score >= found.before.score
    return len(found.tree.item_labels)


def few(n):
    return Hierarchy.from_labels([f"c{at}" for at in range(n)])


ADVICE = [  # a call, its advice, the same with the advice taken, and its value
    (lambda: rebuilt(level=1), "level: got 1, with 2 headings; .* Pass a greater level", lambda: rebuilt(level=2), 6),
    (lambda: rebuilt(node=("b",)), "node: got .*, with 2 headings; .* a node above this one", lambda: rebuilt(), 6),
    (lambda: rebuilt(2), "the root, with 2 headings; .* nothing to rebuild", lambda: rebuilt(3), 3),
    *(
        (lambda name=name: rebuilt(**{name: None if name == "checkpoint" else 1}), "Leave it out", rebuilt, 6)
        for name in ("sample_size", "n_jobs", "checkpoint", "policy", "tie", "engine")
    ),
]


@pytest.mark.parametrize(("call", "said", "better", "value"), ADVICE, ids=range(len(ADVICE)))
def test_advice_on_regrouping_works(call, said, better, value):
    with pytest.raises(PomdpHierError, match=said):
        call()
    assert better() == value


def test_too_many_headings_are_regrouped_in_part(monkeypatch):
    monkeypatch.setattr("pomdp_hier.improvement.groupings._MOST_HEADINGS", 4)
    rebuilt.cache_clear()
    with pytest.raises(PomdpHierError, match=r"the root, with 6 headings; .*a node below this one, or a smaller level"):
        rebuilt()
    assert rebuilt(node=("a",)) == 6
    rebuilt.cache_clear()
    three = Hierarchy.from_paths({f"i{at}": f"{'abc'[at // 2]} > {'defghi'[at]}" for at in range(6)})
    assert len(regroup(X, three, delta=0.1, folds=0, level=1).tree.item_labels) == 6


# --- decided edits -------------------------------------------------------------------------------------------------

SHELVES = Hierarchy.from_paths({"boot": "wear > shoes", "sock": "wear > shoes", "coat": "wear > coats", "mug": "home"})


def applied(*row):
    """The misfits, or the categories of the items."""
    found = apply_decisions(SHELVES, [Decision(1, *row, "accept")])
    if found.misfits:
        return found.misfits[0][1]
    labels = found.tree.labels
    return {labels[k]: labels[found.tree.parent[k]][-1] for k in range(found.tree.n_items)}


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")
@pytest.mark.parametrize(
    ("row", "said", "better", "changed"),
    [
        (
            ("move", "wear / shoes", "wear", "wear / shoes"),
            "target: got wear / shoes, which is inside node wear / shoes; expected a node outside it. Choose one.",
            ("move", "wear / shoes", "wear", "home"),
            {},
        ),
        (
            ("move", "boot", "wear / shoes", "mug"),
            "target: got mug; expected an internal node.",
            ("move", "boot", "wear / shoes", "home"),
            {"boot": "home"},
        ),
        (
            ("merge", "wear / shoes", "wear", "home"),
            "node: got wear / shoes; expected a sibling of node home. Move it instead.",
            ("move", "wear / shoes", "wear", "home"),
            {},
        ),
        (
            ("merge", "wear / shoes", "wear", "wear / shoes"),
            "node: got wear / shoes; expected a sibling of node wear / shoes. Choose another.",
            ("merge", "wear / shoes", "wear", "wear / coats"),
            {"boot": "coats", "sock": "coats"},
        ),
        (
            ("split", "boot; sock", "wear / shoes", "new"),
            "nodes: got boot, sock; expected some, not all, of the nodes directly below node wear / shoes.",
            ("split", "boot", "wear / shoes", "new"),
            {"boot": "shoes (part)"},
        ),
        (("move", "", "wear", "home"), "no node is given.", ("move", "boot", "wear / shoes", "home"), {"boot": "home"}),
        (
            ("move", "boot", "", "home"),
            "no source is given.",
            ("move", "boot", "wear / shoes", "home"),
            {"boot": "home"},
        ),
    ],
)
def test_an_edit_that_does_not_fit_is_explained_by_names(row, said, better, changed):
    assert applied(*row) == said
    assert applied(*better) == {"boot": "shoes", "sock": "shoes", "coat": "coats", "mug": "home"} | changed


def test_edits_by_number_are_explained_by_numbers():
    with pytest.raises(PomdpHierError, match=r"target: got 3; expected an internal node, 4\.\.8"):
        Draft(SHELVES).moved(0, 3)


def test_columns_of_a_table_of_edits_are_renamed(tmp_path):
    path = tmp_path / "moves.csv"
    path.write_text("item_id,from,target_id,decision\nboot,shoes,coats,accept\n")
    with pytest.raises(PomdpHierError, match=r"no column 'source_id'; .*such as item_id, source_id, target_id and"):
        read_decisions(path)
    path.write_text("item_id,source_id,target_id,decision,Decision\nboot,shoes,coats,accept,\n")
    with pytest.raises(PomdpHierError, match=r"got 2 columns named 'decision'; .*Rename them"):
        read_decisions(path)
    path.write_text("item_id,source_id,target_id,decision,mine\nboot,shoes,coats,accept,\n")
    assert [(row.nodes, row.decision) for row in read_decisions(path)] == [("boot", "accept")]
