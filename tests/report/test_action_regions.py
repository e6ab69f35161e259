"""Actions over the belief simplex, and value iteration backup by backup."""

import numpy as np
import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.planning import ThresholdPolicy
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.planning.value_iteration import value_iteration
from pomdp_hier.problems import maze_4x3, tiger

pytest.importorskip("matplotlib")

from pomdp_hier.report import draw_action_regions, draw_backups
from pomdp_hier.report.elements import CYCLE


def three_states(terminal=()):
    """Three states that stay as they are, under two actions."""
    return POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "nothing",
        reward=lambda s, a: 0.0,
        initial_belief=dict.fromkeys("abc", 1 / 3),
        discount=0.9,
        legal_actions=("left", "right"),
        states=tuple("abc"),
        terminal=terminal,
    )


def test_a_band_changes_where_the_alpha_vectors_cross():
    # Opening is worth 10 - 110 p and listening -1: they cross at 1/10.
    ax = draw_action_regions(value_iteration(tiger(), 1), tiger())
    assert [text.get_text() for text in ax.texts] == ["0.1000", "0.9000"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["open-right", "listen", "open-left"]
    assert ax.get_xlabel() == "probability of tiger-right"


def test_the_threshold_of_a_policy_of_ones_own_is_found_to_all_its_decimals():
    mine = ThresholdPolicy([("tiger-right", 0.8765, "open-left")], otherwise="listen")
    ax = draw_action_regions(mine, tiger(), resolution=3)
    assert [text.get_text() for text in ax.texts] == ["0.8765"]


def test_a_triangle_is_shared_as_the_policy_shares_the_beliefs():
    ax = draw_action_regions(lambda belief: "left" if belief["b"] > 0.5 else "right", three_states(), resolution=20)
    # Beliefs with b above a half are a triangle of half the side: a quarter of the 400 cells.
    assert [len(c.get_paths()) for c in ax.collections[::2]] == [100, 300]
    middles = [path.vertices[:3].mean(axis=0) for path in ax.collections[0].get_paths()]
    assert all(x - y / np.sqrt(3) > 0.5 for x, y in middles)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]


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
    whole = draw_action_regions(FirstAction(), problem, resolution=4)
    assert len(whole.collections[0].get_paths()) == 16


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
def test_what_cannot_be_drawn_is_refused(arguments, told):
    given = {"policy": FirstAction(), "problem": tiger(), **arguments}
    with pytest.raises(ParameterError, match=told):
        draw_action_regions(given.pop("policy"), given.pop("problem"), **given)


def test_policy_and_problem_in_the_other_order_are_told():
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
        thin = [line.get_ydata() for line in ax.lines if line.get_linewidth() < 1]
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
        (value_iteration(tiger(), 2), [], "0 steps"),
        (value_iteration(three_states(), 1), None, "3 states"),
    ],
)
def test_what_are_no_backups_of_two_states_is_refused(plan, steps, told):
    with pytest.raises(ParameterError, match=told):
        draw_backups(plan, steps=steps)
