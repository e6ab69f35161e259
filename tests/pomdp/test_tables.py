from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import sympy

from pomdp_hier import POMDP
from pomdp_hier.pomdp.problem import Tables
from pomdp_hier.problems import tiger
from tests.random_problems import errand, random_arrays


class Cells(HTMLParser):
    """Counts tags, and checks that they nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.count = [], {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_fractions_are_shown_as_fractions_and_columns_are_aligned():
    tables = errand(Fraction(3, 4)).tables()
    go, stop = tables.T
    assert go.title == "T(s, go, s')"
    assert go.cells[0] == (0, Fraction(3, 4), Fraction(1, 4), 0)
    lines = str(go).splitlines()
    assert lines[3].split() == ["start", "0", "3/4", "1/4", "0"]
    assert lines[4].split() == ["near", *["–"] * 4]  # not legal there
    assert lines[6].split() == ["end", "0", "0", "0", "1"]
    assert len({len(line) for line in lines[3:7]}) == 1
    assert stop.cells[1] == (0, 0, 0, 1)
    assert tables.R[1].cells[1] == (None, None, None, Fraction(1, 2))
    assert [table.rows for table in tables.Z] == [("near", "far"), ("end",)]
    assert "discount 1; start: start: 1; terminal: end" in str(tables)


def test_rewards_by_state_and_action_are_one_table():
    (reward,) = tiger().tables().R
    assert (reward.rows, reward.columns) == (("tiger-left", "tiger-right"), ("listen", "open-left", "open-right"))
    assert reward.cells == ((-1, -100, 10), (-1, 10, -100))


def test_rewards_on_the_observation_are_expected_over_it():
    arrays = random_arrays(np.random.default_rng(0), 3, 2, 3)
    tables = Tables(arrays.problem())
    s, a, t = 0, 1, int(np.flatnonzero(arrays.T[1, 0])[0])
    assert tables.R[a].cells[s][t] == sum(arrays.Z[a, t, o] * arrays.R[a, s, t, o] for o in range(3))
    assert {c for row in tables.R[a].cells for c in row} >= ({None} if (arrays.T[a] == 0).any() else set())


def test_observations_of_the_state_left_have_a_row_for_each_pair():
    problem = POMDP(
        transition=lambda s, a: {0: 0.5, 1: 0.5},
        observation=lambda t, a, s: "moved" if t != s else "stayed",
        reward=lambda s, a: 0,
        initial_belief={0: 1},
        legal_actions=["go"],
    )
    assert problem.tables().Z[0].rows == ("0 from 0", "0 from 1", "1 from 0", "1 from 1")


def test_large_problems_are_cut_and_say_so():
    n = 100
    problem = POMDP.from_arrays([np.eye(n)] * 30, [np.ones((n, 1))] * 30, np.zeros((30, n)), terminal=list(range(50)))
    tables = Tables(problem, limit=5)
    assert len(tables.T) == 5
    assert "(95 rows and 95 columns not shown)" in str(tables.T[0])
    assert "25 actions not shown" in str(tables)
    assert len(str(tables)) < 10_000


def test_html_nests_and_escapes():
    problem = POMDP(
        transition=lambda s, a: {"<b>&": Fraction(1, 3), "x": Fraction(2, 3)},
        observation=lambda s, a: "<script>",
        reward=lambda s, a: Fraction(-1, 3),
        initial_belief={"x": 1},
        legal_actions=["go"],
    )
    page = problem.tables()._repr_html_()
    parsed = Cells(page)
    assert parsed.count["table"] == 3
    assert parsed.count["i"] > 6  # stacked fractions
    assert "<script>" not in page
    assert "&lt;b&gt;&amp;" in page
    assert "&minus;" in page
    Cells(problem.tables().T[0]._repr_html_())


def test_expressions_are_shown_as_they_are():
    p = sympy.Symbol("p", positive=True)
    assert "1 - p" in str(tiger(accuracy=p, discount=1).tables())
