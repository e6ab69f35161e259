"""The page about two trees: its figures are those of the comparison, and its drawing joins what is the same."""

import re
from html import unescape
from itertools import pairwise

import numpy as np
import pytest

from pomdp_hier import Hierarchy, compare, diagnose
from pomdp_hier.analysis.comparison import APART
from pomdp_hier.errors import ParameterError
from pomdp_hier.measures import entanglement
from pomdp_hier.measures.tree_distances import untangle
from pomdp_hier.report import regroup_page as drawing
from pomdp_hier.report import write_comparison
from pomdp_hier.report.regroup_page import Moved, moved, tanglegram
from tests.browser import complaints_of, needs_browser, opened, requests_of
from tests.nasty_names import NASTY
from tests.page_rows import rows_of
from tests.planted import clean_case, misplaced, swapped


def two(**settings):
    X, tree = clean_case()
    trees = {"clean": tree, "swapped": swapped(tree)[0]}
    return X, trees, compare(X, trees, delta=0.02, **settings)


def diagnosed(X, trees):
    return {name: diagnose(X, tree, delta=0.02) for name, tree in trees.items()}


def test_the_figures_are_those_of_the_comparison():
    X, trees, found = two()
    page = write_comparison(found, diagnosed(X, trees), limit=100)
    pair = found.differences[0]
    for text in (found.results["clean"].score, found.results["swapped"].score):
        assert f"<b>{text:.4f}</b>".replace("-", "−") in page
    assert f"<b>{pair.difference:+.4f}</b>" in page
    assert f"95% interval {pair.low:.4f} to {pair.high:.4f}" in page
    assert found.sentences()[0] in unescape(page)
    for title, one, other in (
        ("Items that gain by clean", "clean", "swapped"),
        ("Items that lose by it", "swapped", "clean"),
    ):
        gained = found.gained_items(one, other, 100)
        shown = [(row[0].split()[-1], row[1]) for row in rows_of(page, title)]
        assert shown == [(str(item), f"{gain:.3f}") for item, gain in gained if gain >= 0.0005]
    apart = {row[0]: row[1] for row in rows_of(page, "How far apart")}
    assert list(apart) == [named.name for named in APART.values()]
    assert apart["Robinson-Foulds distance"] == f"{found.measures['swapped']['robinson_foulds']:.4f}"


def test_clusters_that_lose_have_a_table_as_those_that_gain():
    X, tree = clean_case()
    trees = {"clean": tree, "misplaced": misplaced(tree, 0, -1)[0]}
    found = compare(X, trees, delta=0.1, measures=False)
    page = write_comparison(found, {name: diagnose(X, each, delta=0.1) for name, each in trees.items()}, limit=100)
    gain = found.results["clean"].values - found.results["misplaced"].values
    totals = {node: gain[tree.items(node)].sum() for node in range(45, tree.n_nodes) if node != tree.root}
    for title, sign in (("Clusters that gain by clean", 1), ("Clusters that lose by it", -1)):
        # Less than half of the last digit shown is not worth a row.
        seen = sorted((node for node in totals if sign * totals[node] / 45 >= 0.00005), key=lambda k: -sign * totals[k])
        assert seen
        assert rows_of(page, title) == [
            [f"node {node}", f"{tree.sizes[node]}", f"{abs(totals[node]) / 45:.4f}",
             f"{abs(totals[node]) / tree.sizes[node]:.3f}"]
            for node in seen
        ]  # fmt: skip


def test_the_better_tree_is_first_in_either_order():
    X, trees, _ = two()
    turned = dict(reversed(trees.items()))
    page = write_comparison(compare(X, turned, delta=0.02), diagnosed(X, turned))
    assert page.index(">clean<b>") < page.index(">swapped<b>")
    low, high = (float(x) for x in re.search(r"interval ([\d.]+) to ([\d.]+)", page).groups())
    assert 0 < low < high


def test_error_for_other_than_a_comparison_of_two_trees():
    X, trees, found = two()
    both = diagnosed(X, trees)
    three = compare(X, {**trees, "third": trees["clean"]}, delta=0.02, measures=False)
    with pytest.raises(ParameterError, match=r"diagnoses: got .*'third'"):
        write_comparison(three, both)
    with pytest.raises(ParameterError, match=r"^comparison: got 'x'"):
        write_comparison("x", both)
    with pytest.raises(ParameterError, match=r"diagnoses: got .*'clean'.*'swapped'"):
        write_comparison(found, {"clean": both["clean"]})
    with pytest.raises(ParameterError, match=r"^diagnoses: got values of 'clean'"):
        write_comparison(found, {**both, "clean": diagnose(X, trees["clean"], delta=0.5)})
    with pytest.raises(ParameterError, match="got one of a sample"):
        write_comparison(compare(X, trees, delta=0.02, sample_size=12), both)


def test_versions_of_a_tree_are_a_table_over_time():
    X, tree = clean_case()
    trees = {"v1": misplaced(tree, 0, -1)[0], "v2": tree, "v3": swapped(tree)[0]}
    found = compare(X, trees, delta=0.02)
    rows = found.versions()
    assert [(row["version"], row["tree"], row["hqs"]) for row in rows] == [
        (k, name, found.results[name].score) for k, name in enumerate(trees, 1)
    ]
    assert rows[0]["change"] is rows[0]["n_better"] is None
    for before, row in pairwise(rows):
        pair = compare(X, {name: trees[name] for name in (row["tree"], before["tree"])}, delta=0.02).differences[0]
        assert row["change"] == pytest.approx(row["hqs"] - before["hqs"], abs=1e-12)
        assert (row["low"], row["high"]) == pytest.approx((pair.low, pair.high))
        assert (row["n_better"], row["n_worse"]) == (pair.n_better, pair.n_worse)
    assert rows[1]["change"] > 0 > rows[2]["change"]
    lines = found.summary().splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("version"))
    assert [line.split()[:2] for line in lines[at + 1 : at + 4]] == [["1", "v1"], ["2", "v2"], ["3", "v3"]]
    page = write_comparison(found, diagnosed(X, trees), limit=3)
    shown = rows_of(page, "Version by version")
    assert [row[0] for row in shown] == ["1. v1", "2. v2", "3. v3"]
    assert shown[1][2] == f"{rows[1]['change']:+.4f}"
    assert shown[0][2] == ""
    assert len(re.findall('<script id="payload', page)) == 3
    changes = [(row[0].split()[-1], row[1]) for row in rows_of(page, "2. v2") if len(row) == 2]
    expected = [*found.gained_items("v2", "v1", 3), *found.gained_items("v1", "v2", 3)]
    assert changes == [(str(item), f"{gain:.3f}") for item, gain in expected if gain >= 0.0005]
    assert len(changes) >= 3


def places(picture):
    """The height of each name, left and right, and the ends of each line."""
    names = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"><title>(.*?)</title>', picture)
    left = {unescape(name): float(y) - 4 for _, y, anchor, name in names if anchor == "start"}
    right = {unescape(name): float(y) - 4 for _, y, anchor, name in names if anchor == "end"}
    lines = re.findall(r'd="M[\d.]+ ([\d.]+)C.*? ([\d.]+)" class="same"', picture)
    return left, right, sorted((float(a), float(b)) for a, b in lines)


def test_lines_join_the_same_items_in_the_untangled_orders():
    one = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    other = Hierarchy.from_children([[3, 1], [2, 0], [4, 5]], 4)
    a, b = untangle(one, other)
    picture = tanglegram(a, b, [*"abcd", "x", "y", "z"], [*"abcd", "x", "y", "z"])
    left, right, lines = places(picture)
    assert lines == sorted((left[name], right[name]) for name in "abcd")
    assert sorted(left, key=left.get) == ["abcd"[k] for k in a.item_order]
    assert sorted(right, key=right.get) == ["abcd"[k] for k in b.item_order]
    assert f"entanglement {entanglement(a, b):.3f}" in picture
    assert 'aria-label="tanglegram of 4 and 4 items"' in picture


def test_branches_join_the_items_of_a_cluster_and_the_sides_have_titles():
    one = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    picture = tanglegram(one, one, [*"abcd", "x", "y", "z"], [*"abcd", "x", "y", "z"], ("before", "after"))
    height = {name: y + 4 - 4 for name, y in places(picture)[0].items()}
    pairs = (height["a"] + height["b"]) / 2, (height["c"] + height["d"]) / 2
    elbows = [(4.0, sum(pairs) / 2, y, 104.0) for y in pairs]
    elbows += [(104.0, (height[a] + height[b]) / 2, height[name], 200.0) for a, b in ("ab", "cd") for name in (a, b)]
    left, right = (
        [tuple(map(float, found)) for found in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)", branches)]
        for branches in re.findall(r'<path d="([^"]*)" class="branch"', picture)
    )
    assert [elbow[1:3] for elbow in sorted(left)] == [pytest.approx(elbow[1:3], abs=0.1) for elbow in sorted(elbows)]
    assert [elbow[1:3] for elbow in left] == [elbow[1:3] for elbow in right]
    assert {elbow[3] for elbow in left} == {104.0, 200.0}
    titles = re.findall(r'text-anchor="(start|end)" class="tree">(\w+)<', picture)
    assert titles == [("start", "before"), ("end", "after")]


def test_long_names_that_differ_in_the_middle_stay_different():
    one = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    names = [f"handwritten digit number {k} of the first scan" for k in range(7)]
    picture = tanglegram(one, one, names, names)
    shown = re.findall(r"</title>(.*?)</text>", picture)
    assert len(set(shown)) == 4
    assert max(map(len, shown)) <= 26


def test_many_items_are_drawn_by_their_clusters_and_too_many_clusters_not_at_all(monkeypatch):
    X, tree = clean_case()
    names = [f"n{k}" for k in range(tree.n_nodes)]
    monkeypatch.setattr(drawing, "MOST_LEAVES", 20)
    picture = tanglegram(tree, tree, names, names)
    left, right, lines = places(picture)
    clusters = np.unique(tree.leaf_of_item)
    assert left == right
    assert set(left) == {f"n{k}" for k in clusters}
    assert lines == sorted((y, y) for y in left.values())
    monkeypatch.setattr(drawing, "MOST_LEAVES", 5)
    assert "Not drawn: more than 5 leaf clusters." in tanglegram(tree, tree, names, names)
    assert len(X) == 45


def test_moved_items_show_source_and_target():
    X, tree = clean_case()
    broken, (one, other), _ = swapped(tree)
    found = moved(*untangle(broken, tree), 10)
    assert {(*change.nodes, change.source, change.target) for change in found} == {
        (one, int(broken.parent[one]), int(tree.parent[one])),
        (other, int(broken.parent[other]), int(tree.parent[other])),
    }
    assert [change.items for change in found] == [5, 5]
    assert moved(tree, tree, 10) == []
    misfiled, cluster = misplaced(tree, 0, -1)
    (change,) = moved(*untangle(misfiled, tree), 10)
    left, right = untangle(misfiled, tree)
    apart = abs(np.flatnonzero(left.item_order == 0)[0] - np.flatnonzero(right.item_order == 0)[0])
    assert change == Moved((0,), cluster, int(tree.parent[0]), 1, apart / 45)
    _, trees, comparison = two()
    page = write_comparison(comparison, diagnosed(X, trees))
    rows = rows_of(page, "Face to face")
    gain = comparison.results["clean"].values - comparison.results["swapped"].values
    assert sorted(row[:4] for row in rows) == sorted(
        [f"node {node}", f"node {broken.parent[node]}", f"node {tree.parent[node]}", "5"] for node in (one, other)
    )
    for row in rows:
        assert row[-1] == f"{gain[tree.items(int(row[0].split()[-1]))].mean():+.3f}"


@needs_browser
def test_nothing_in_a_name_runs_and_both_icicles_zoom(tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    X, trees, _ = two()
    names = [f"{NASTY[k % len(NASTY)]} {k}" for k in range(45)]
    named = {NASTY[0]: trees["clean"], NASTY[7]: trees["swapped"]}
    found = compare(X, named, delta=0.02)
    page = tmp_path / "both.html"
    write_comparison(found, diagnosed(X, named), page, names=names, title=NASTY[0])
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    with opened(page, phone) as browser:
        for suffix in ("", "-2"):
            canvas = browser.find_element(By.ID, f"icicle{suffix}")
            canvas.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
            assert canvas.get_attribute("data-focus") == "1"
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        assert not browser.find_element(By.CLASS_NAME, "drawing").is_displayed()
        assert browser.execute_script("return document.querySelectorAll('script').length") == 3
        assert requests_of(browser) == []
        assert complaints_of(browser) == []
