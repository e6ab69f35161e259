"""The page of a regrouping: both trees side by side, what is torn apart, and no step that was not taken."""

import re
from html import unescape

import numpy as np
import pytest

from pomdp_hier import Hierarchy
from pomdp_hier.errors import ParameterError
from pomdp_hier.improvement import regroup
from pomdp_hier.improvement.groupings import one_level, vectors_of
from pomdp_hier.improvement.regroup import Judge
from pomdp_hier.report import write_regrouping
from tests.browser import complaints_of, needs_browser, opened, requests_of
from tests.improvement.test_regroup import HEADINGS, ITEMS, SECTIONS, catalogue, quarters_of_sixteen
from tests.planted import clean_case

GIVEN = {"delta": 0.05, "folds": 0}


def rows_of(page, title):
    """The cells of the tables below a heading, as text."""
    part = page.split(f"<h3>{title}</h3>")[1].split("</section>")[0]
    bodies = "".join(re.findall(r"<tbody>(.*?)</tbody>", part, re.DOTALL))
    rows = re.findall(r"<tr>(.*?)</tr>", bodies, re.DOTALL)
    return [[plain(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in rows]


def plain(markup):
    return unescape(re.sub(r"<[^>]*>", "", markup))


@pytest.mark.slow
def test_both_sides_are_those_of_the_result():
    X, tree = catalogue(np.random.default_rng(0), mixed=True)
    terms = [f"topic{k}" for k in range(SECTIONS)] + [f"word{k}" for k in range(SECTIONS * HEADINGS)]
    found = regroup(X, tree, delta=0.05, terms=terms)
    page = write_regrouping(found)
    before, after = rows_of(page, "As it is"), rows_of(page, "Regrouped")
    torn = {tree.labels[one.node][-1]: one for one in found.torn}
    assert [row[0] for row in before][: len(torn)] == list(torn)
    for name, n_headings, n_groups, share, targets in before:
        assert (n_headings, n_groups) == (str(torn[name].n_headings), str(torn[name].n_groups))
        assert share == f"{100 * torn[name].largest_share:.1f} %"
        counts = [int(count) for count in re.findall(r"\((\d+)\)", targets)]
        assert max(counts) == round(torn[name].largest_share * torn[name].n_headings)
    assert [(name, items) for name, items, *_ in after] == [(one.name, str(one.n_items)) for one in found.groups]
    for (*_, contains, sources), group in zip(after, found.groups, strict=True):
        assert all(re.match(r"heading \d+|\d+ more$", part) for part in contains.split(", "))
        assert sources.startswith(f"{tree.labels[group.sources[0][0]][-1]} ({group.sources[0][1]})")
    text = plain(page)
    low, high = (f"{end:+.4f}".replace("-", "−") for end in found.held_out.interval)
    assert f"{low} to {high} on {tree.n_items} items" in text
    assert f"{found.after.score:.4f}" in text
    assert "Items that influenced neither the groups nor their choice confirm the gain." in text
    assert "no item moves by itself" in text
    drawn = re.findall(r"<title>(heading \d+)</title>", page)
    assert sorted(drawn) == sorted(2 * [f"heading {k}" for k in range(SECTIONS * HEADINGS)])
    assert f"{len(found.tried)} groupings tried" in text


def test_names_by_id_reach_headings_and_groups():
    X, tree = catalogue(np.random.default_rng(0), mixed=True)
    inner = {h: k for k, h in enumerate(np.flatnonzero(tree.is_cluster).tolist())}
    ids = Hierarchy(tree.parent, tree.n_items, labels=[f"n{node}" for node in range(tree.n_nodes)])
    names = {f"n{node}": f"<b>{k}</b>" for node, k in inner.items()}
    found = regroup(X, ids, **GIVEN)
    assert all(re.fullmatch(r"n\d+ \+ n\d+", group.name) for group in found.groups)
    page = write_regrouping(found, names=names)
    assert "<b>1</b>" not in page
    assert all(re.fullmatch(r"<b>\d+</b> \+ <b>\d+</b>", row[0]) for row in rows_of(page, "Regrouped"))
    assert all(row[1].startswith("n") for row in rows_of(page, "As it is"))  # the column of ids
    renamed = found.renamed(names)
    assert [len(group.named_after) for group in renamed.groups] == [2] * len(found.groups)
    for group in renamed.groups:
        sizes = [int(tree.sizes[node]) for node in group.named_after]
        assert sizes == [ITEMS, ITEMS]
        assert group.name == " + ".join(names[f"n{node}"] for node in group.named_after)
    assert "<b>" in renamed.summary(names=names)


@pytest.mark.slow
def test_one_list_moved_headings_and_nothing_at_all(monkeypatch):
    rng = np.random.default_rng(0)
    heading = np.arange(600) // 100
    X = np.eye(6)[heading] + 0.3 * rng.random((600, 6))
    tree = Hierarchy.from_paths([f"{h % 2} > {h} > {k}" for k, h in enumerate(heading)], sep=">")
    page = write_regrouping(regroup(X, tree, delta=0.1, folds=0, max_children=6))
    assert [row[-1] for row in rows_of(page, "As it is")] == ["(root) (3)", "(root) (3)"]
    assert "No new group: headings move between" in page

    X, tree = catalogue(np.random.default_rng(2), mixed=False)
    found = regroup(X, tree, **GIVEN)
    page = write_regrouping(found)
    assert found.tree == tree
    assert "No grouping that was tried is better" in page
    assert "Face to face" not in page

    def moved(_, prepared, place):
        plans = one_level(tree, place, vectors_of(prepared, place.headings))
        return next((plan, {plan.name: 0.0}) for plan in plans if "moved to the nearest group" in plan.name)

    X, tree = catalogue(np.random.default_rng(0), mixed=True)
    monkeypatch.setattr(Judge, "best", moved)
    found = regroup(X, tree, **GIVEN)
    assert "moved to the nearest group" in found.method
    page = write_regrouping(found)
    assert {row[-1].split(" (")[0] for row in rows_of(page, "As it is")} <= {f"section {k}" for k in range(SECTIONS)}
    assert "it is too high, as the groups were chosen by it" in page


@pytest.mark.slow
def test_groups_of_groups():
    X, flat = quarters_of_sixteen()
    found = regroup(X, flat, delta=0.1, max_children=8, folds=0)
    rows = rows_of(write_regrouping(found, limit=99), "Regrouped")
    assert len(rows) == len(found.groups)
    names = {group.name for group in found.groups}
    assert any(set(row[3].split(", ")[:2]) <= names for row in rows)


@pytest.mark.parametrize(("given", "text"), [({"limit": -1}, "limit: got -1"), ({"names": [1]}, "names: got")])
def test_wrong_arguments(given, text):
    X, tree = clean_case(top=2, middle=2, items=4)
    with pytest.raises(ParameterError, match=text):
        write_regrouping(regroup(X, tree, **GIVEN), **given)
    with pytest.raises(ParameterError, match="regrouping: got a int"):
        write_regrouping(5)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_is_requested_and_nothing_is_wider_than_the_screen(tmp_path, width):
    X, tree = catalogue(np.random.default_rng(0), mixed=True)
    write_regrouping(regroup(X, tree, **GIVEN), tmp_path / "page.html")
    device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    with opened(tmp_path / "page.html", device) as browser:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert requests_of(browser) == []
        assert complaints_of(browser) == []
        tops = browser.execute_script(
            "return [...document.querySelectorAll('.pair section')].map(part => part.getBoundingClientRect().top)"
        )
        assert (tops[0] == tops[1]) == (width > 1000)
