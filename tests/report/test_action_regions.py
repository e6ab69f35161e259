"""Actions over the belief simplex, and value iteration backup by backup."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning import AlphaVectorPolicy, ThresholdPolicy, solve
from pomdp_hier.planning.alpha_vectors import best_regions, envelope
from pomdp_hier.planning.policies import FirstAction, as_policy
from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.problems import maze_4x3, rock_sample, tiger

pytest.importorskip("matplotlib")

from pomdp_hier.report import draw_action_regions, draw_alpha_vectors, draw_backups
from pomdp_hier.report.action_regions import _KEY as KEY
from pomdp_hier.report.elements import CYCLE


def three_states(terminal=(), actions=("left", "right")):
    """Three states that stay as they are, under two actions."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "nothing",
        reward=lambda s, a: 0.0,
        initial_belief=dict.fromkeys("abc", 1 / 3),
        discount=0.9,
        legal_actions=actions,
        states=tuple("abc"),
        terminal=terminal,
    )


def test_a_band_changes_where_the_alpha_vectors_cross():
    # Opening is worth 10 - 110 p and listening -1: they cross at 1/10.
    ax = draw_action_regions(value_iteration(tiger(), 1), tiger())
    assert [text.get_text() for text in ax.texts] == ["0.1000", "0.9000"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["open-right", "listen", "open-left"]
    assert ax.get_xlabel() == "probability of tiger-right"


def test_thresholds_of_a_custom_policy_are_exact():
    mine = ThresholdPolicy([("tiger-right", 0.8765, "open-left")], otherwise="listen")
    ax = draw_action_regions(mine, tiger(), resolution=3)
    assert [text.get_text() for text in ax.texts] == ["0.8765"]


def areas(ax):
    """The area of each action as a part of the triangle, by the names of the legend."""
    names = [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []
    found = dict.fromkeys(names, 0.0)
    polygons = [
        c
        for c in ax.collections
        if len(c.get_paths()) and len(c.get_offsets()) <= 1 and c.get_paths()[0].vertices.size > 4
    ]
    for name, collection in zip(names, polygons[::2], strict=True):
        for path in collection.get_paths():
            x, y = path.vertices[:-1].T
            found[name] += abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2 / (np.sqrt(3) / 4)
    return found


@pytest.mark.parametrize("resolution", [3, 20])
def test_borders_of_a_function_are_where_they_are_at_any_resolution(resolution):
    def mine(belief):
        return "left" if belief["b"] > 0.53 else "right"

    ax = draw_action_regions(mine, three_states(), resolution=resolution)
    # Beliefs with b above .53 are a triangle with .47 of the side: .47 squared of the area.
    assert areas(ax) == pytest.approx({"left": 0.47**2, "right": 1 - 0.47**2}, abs=1e-4)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c", "0.530", "0.470", KEY]


def test_three_actions_meet_in_a_point():
    def mine(belief):
        return max(
            ("left", "right", "down"), key=lambda action: belief[{"left": "a", "right": "b", "down": "c"}[action]]
        )

    problem = three_states(actions=("left", "right", "down"))
    assert areas(draw_action_regions(mine, problem, resolution=7)) == pytest.approx(
        dict.fromkeys(("left", "right", "down"), 1 / 3), abs=0.01
    )
    exact = AlphaVectorPolicy(np.eye(3), np.arange(3))
    ax = draw_action_regions(exact, problem)
    assert areas(ax) == pytest.approx(dict.fromkeys(("left", "right", "down"), 1 / 3), abs=1e-12)
    assert sum(len(c.get_paths()) for c in ax.collections[::2]) == 3, "one polygon each, not the cells of a grid"


# --- alpha vectors over a line, exactly ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_envelope_is_that_of_all_crossings_in_fractions(seed):
    rng = np.random.default_rng(seed)
    ends = rng.integers(-6, 7, size=(rng.integers(1, 9), 2))
    lines = [(Fraction(int(a)), Fraction(int(b))) for a, b in ends]
    crossings = {Fraction(0), Fraction(1)}
    for (a, b), (c, d) in combinations(lines, 2):
        if b - a != d - c:
            crossings.add(min(Fraction(1), max(Fraction(0), (c - a) / ((b - a) - (d - c)))))
    pieces = envelope(ends.astype(float))
    assert pieces[0][0] == 0.0
    assert pieces[-1][1] == 1.0
    for start, end in pairwise(sorted(crossings)):
        middle = (start + end) / 2
        best = max(a + middle * (b - a) for a, b in lines)
        (k,) = [k for low, high, k in pieces if low - 1e-12 <= start and end <= high + 1e-12]
        assert lines[k][0] + middle * (lines[k][1] - lines[k][0]) == best
    assert len({k for *_, k in pieces}) == len(pieces)


@pytest.mark.parametrize("seed", range(10))
def test_regions_of_a_triangle_cover_it_once_and_hold_the_best_vector(seed):
    rng = np.random.default_rng(seed)
    corners = rng.integers(-9, 10, size=(rng.integers(1, 30), 3)).astype(float)
    corners[rng.random(len(corners)) < 0.2] = -np.inf
    corners[0] = [0.0, 1.0, 2.0]
    regions = best_regions(corners)
    total = 0.0
    for k, polygon in regions:
        x, y = polygon[:, 1], polygon[:, 2]
        total += abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))
        for weights in (*polygon, polygon.mean(axis=0)):
            assert corners[k] @ weights == pytest.approx((corners[np.isfinite(corners[:, 0])] @ weights).max())
    assert total == pytest.approx(1)


def five_states():
    """A machine of five states of wear: use it, inspect it, or replace it."""
    worn = {s: {s: 0.7, min(s + 1, 4): 0.3} if s < 4 else {4: 1} for s in range(5)}
    return POMDP(
        transition=lambda s, a: {0: 1} if a == "replace" else worn[s] if a == "use" else {s: 1},
        observation=lambda s, a: {"worn": 0.1 + 0.2 * s, "fine": 0.9 - 0.2 * s} if a == "inspect" else {"fine": 1},
        reward=lambda s, a: {"use": 4.0 - 2 * s, "inspect": -0.5, "replace": -3.0}[a],
        initial_belief={0: 1},
        discount=0.9,
        legal_actions=("use", "inspect", "replace"),
        states=tuple(range(5)),
    )


LINE = {0: 0.6, 1: 0.4}, {3: 0.5, 4: 0.5}
CORNERS = ({0: 0.6, 1: 0.4}, {2: 1}, [0, 0, 0, 0.5, 0.5])


def test_a_line_between_beliefs_of_five_states_has_its_border_where_the_rewards_tie():
    machine = five_states()
    plan = value_iteration(machine, 1)
    # With one step to go: use is worth 3.2 at one end and -3 at the other, inspect -.5 everywhere: they tie at 3.7/6.2.
    ax = draw_action_regions(plan, machine, between=LINE)
    assert [text.get_text() for text in ax.texts] == [f"{3.7 / 6.2:.4f}"]
    assert ax.get_xlabel() == "from 0: .6, 1: .4 to 3: .5, 4: .5"
    vectors = draw_alpha_vectors(plan.vectors, actions=plan.actions, states=machine.states, between=LINE)
    assert [text.get_text() for text in vectors.texts] == [f"{3.7 / 6.2:.4f}"]
    heavy = [line for line in vectors.lines if line.get_linewidth() > 2]
    assert [tuple(line.get_ydata()) for line in heavy] == [pytest.approx((3.2, -0.5)), pytest.approx((-0.5, -0.5))]
    panels = draw_backups(value_iteration(machine, 3), between=LINE)
    assert [ax.get_title().split(":")[0] for ax in panels] == ["1 step to go", "2 steps to go", "3 steps to go"]


def policies(problem):
    solution = solve(problem, precision=0.1)
    return {
        "value iteration": value_iteration(problem, 3),
        "solution": solution,
        "its policy": solution.policy,
        "its controller": solution.controller(),
        "vectors": AlphaVectorPolicy(*value_iteration(problem, 2).stages[-1]),
        "a controller that stops": solve(problem, horizon=2).controller(),
        "a policy of 2 steps to go": solve(problem, horizon=2).policy.at_step(0),
    }


def random_problem():
    rng = np.random.default_rng(5)
    T, Z = rng.dirichlet(np.ones(5), (3, 5)), rng.dirichlet(np.ones(2), (3, 5))
    return POMDP.from_arrays(T=T, Z=Z, R=rng.normal(size=(3, 5)), discount=0.8)


@pytest.mark.parametrize(("build", "start"), [(random_problem, 1), (lambda: rock_sample(2, 1), 0)])
@pytest.mark.slow
def test_exact_borders_are_those_that_bisection_finds(build, start):
    problem = build()
    corners = [{s: 1} for s in problem.states[start : start + 3]]
    for name, policy in policies(problem).items():
        asked = as_policy(policy.policy if name == "solution" else policy)
        for ends, parts in ((corners[:2], 50), (corners, 30)):
            if len(ends) == 3 and name not in ("value iteration", "its policy", "vectors"):
                continue

            def wrapped(belief, asked=asked):
                return asked.decide(problem, belief).action

            try:
                numeric = draw_action_regions(wrapped, problem, resolution=parts, between=ends)
            except (ModelError, PlanningError):
                continue  # no action of the policy is legal at some of these beliefs, which are blank
            exact = draw_action_regions(policy, problem, between=ends)
            if len(ends) == 2:
                assert [t.get_text() for t in exact.texts] == [t.get_text() for t in numeric.texts], name
            else:
                assert areas(exact) == pytest.approx(areas(numeric), abs=0.02)


def test_actions_that_tie_everywhere_have_no_borders_between_them():
    maze = maze_4x3(discount=0.9)
    plan = value_iteration(maze, 2).stages[-1]
    ax = draw_action_regions(AlphaVectorPolicy(*plan), maze, states=maze.states[:2])
    assert list(ax.texts) == []


def test_beliefs_of_five_states_make_a_triangle():
    machine = five_states()
    ax = draw_action_regions(value_iteration(machine, 2), machine, between=CORNERS)
    assert sum(areas(ax).values()) == pytest.approx(1)
    assert [text.get_text() for text in ax.texts[:3]] == ["0: .6, 1: .4", "2", "3: .5, 4: .5"]


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ([{0: 1}], "between: got"),
        ("ab", "between: got 'ab'; expected 2 or 3 different beliefs"),
        ([{0: 1}, {0: 1.0}], "are equal or on one line"),
        ([{0: 1}, {4: 1}, {0: 0.5, 4: 0.5}], "are equal or on one line"),
        ([{0: 1}, {9: 1}], "between: got the state 9"),
        ([{0: 1}, [0.5, 0.5]], r"between: got \[0.5, 0.5\]"),
    ],
)
def test_ends_that_are_no_beliefs_are_refused(between, told):
    machine = five_states()
    with pytest.raises(ParameterError, match=told):
        draw_action_regions(FirstAction(), machine, between=between)
    if len(between) == 2:
        with pytest.raises(ParameterError, match=r"^between: got"):
            draw_alpha_vectors(np.zeros((1, 5)), states=range(5), between=between)
    with pytest.raises(ParameterError, match="Leave states out"):
        draw_action_regions(FirstAction(), machine, between=LINE, states=[0, 1])


def test_vectors_that_are_not_legal_on_the_line_are_left_out():
    vectors = [[1.0, 0.0, 5.0], [-np.inf, 9.0, 9.0], [0.0, 2.0, -np.inf]]
    ax = draw_alpha_vectors(vectors, between=([1, 0, 0], [0, 1, 0]))
    heavy = [tuple(line.get_xdata()) for line in ax.lines if line.get_linewidth() > 2]
    assert heavy == [pytest.approx((0, 1 / 3)), pytest.approx((1 / 3, 1))]
    with pytest.raises(ParameterError, match="got -inf for each"):
        draw_alpha_vectors([[-np.inf, 1.0]])


def test_actions_keep_their_colours_from_policy_to_policy():
    one = draw_action_regions(FirstAction(), tiger())
    other = draw_action_regions(value_iteration(tiger(), 1), tiger())

    def colour_of_listening(ax):
        (drawn,) = (c for c in ax.collections if c.get_label() == "listen")
        return tuple(drawn.get_facecolor()[0])

    assert colour_of_listening(one) == colour_of_listening(other)


def test_a_face_of_a_larger_problem():
    maze = maze_4x3()
    ax = draw_action_regions(lambda belief: "north", maze, states=[(0, 0), (2, 3)])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["north"]


def test_nothing_is_drawn_where_the_process_is_over():
    problem = three_states(terminal=("a", "b"))
    ax = draw_action_regions(FirstAction(), problem, states=["a", "b"])
    assert ax.get_legend() is None
    # Only the side between a and b is blank, which has no area; its vertices are not over.
    whole = draw_action_regions(FirstAction(), problem, resolution=4)
    assert sum(areas(whole).values()) == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"problem": maze_4x3()}, "states: got"),
        ({"states": ["tiger-left"]}, "states: got \\('tiger-left',\\)"),
        ({"states": ["tiger-left", "tiger-left"]}, "expected 2 different states"),
        ({"states": ["tiger-left", "lion"]}, "states: got 'lion'"),
        ({"resolution": 1}, "resolution: got 1"),
        ({"resolution": 2.5}, "resolution: got 2.5"),
        ({"policy": 3}, "policy: got 3; expected"),
    ],
)
def test_errors_of_figures(arguments, told):
    given = {"policy": FirstAction(), "problem": tiger(), **arguments}
    with pytest.raises(ParameterError, match=told):
        draw_action_regions(given.pop("policy"), given.pop("problem"), **given)


def test_error_for_policy_and_problem_in_reverse_order():
    with pytest.raises(ModelError, match="FirstAction"):
        draw_action_regions(tiger(), FirstAction())


def test_backups_show_as_many_vectors_as_each_stage_has():
    plan = value_iteration(tiger(discount=0.75), 4)
    axes = draw_backups(plan, steps=[1, 2, 4])
    # The tiger's vectors for .75, which pomdp-solve finds too: 3, 5, 9, 9.
    assert [ax.get_title() for ax in axes] == [
        f"{t} step{'s' if t > 1 else ''} to go: {len(plan.stages[t][0])} vectors" for t in (1, 2, 4)
    ]
    for ax, t in zip(axes, (1, 2, 4), strict=True):
        thin = [line.get_ydata() for line in ax.lines if line.get_color() == "#c6ccd2"]
        ends = sorted((float(y[0]), float(y[-1])) for y in thin)
        np.testing.assert_allclose(ends, sorted(map(tuple, plan.stages[t][0].tolist())))
    assert len(draw_backups(plan)) == 4
    assert CYCLE[0] in {line.get_color() for line in axes[0].lines}


@pytest.mark.parametrize(
    ("plan", "steps", "told"),
    [
        (FirstAction(), None, "expected the result of value_iteration"),
        (value_iteration(tiger(), 2), [3], "steps: got 3"),
        (value_iteration(tiger(), 2), [0], "steps: got 0"),
        (value_iteration(tiger(), 2), [], "steps: got none"),
        (value_iteration(three_states(), 1), None, "3 states"),
    ],
)
def test_error_for_backups_of_other_than_two_states(plan, steps, told):
    with pytest.raises(ParameterError, match=told):
        draw_backups(plan, steps=steps)


def test_an_array_is_a_line_of_beliefs():
    ax = draw_alpha_vectors([[1, 0, 0], [0, 1, 1]], states="abc", between=np.array([[1, 0, 0], [0, 0.5, 0.5]]))
    assert ax.get_xlabel() == "from a: 1 to b: .5, c: .5"


@pytest.mark.parametrize(
    ("name", "value"), [("actions", 5), ("actions", iter("ab")), ("states", [["a"], ["b"]]), ("states", "aa")]
)
def test_names_of_vectors_that_are_not_a_list(name, value):
    with pytest.raises(ParameterError, match=name):
        draw_alpha_vectors([[1, 0], [0, 1]], **{name: value})
