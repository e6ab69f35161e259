"""Advice at the limits of planners, policies and their files is taken: the input, the advice, and the value with it."""

import json
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest

from pomdp_hier import POMDP, AndOrTree, compare_policies, policy_value, simulate, solve, value_iteration, verify
from pomdp_hier.errors import PomdpHierError
from pomdp_hier.planning import (
    POUCT,
    RTBSS,
    FiniteStateController,
    ImmediateValue,
    QMDPPolicy,
    RandomPolicy,
    alpha_vectors,
    bounds,
    read_policy,
    write_policy,
)
from pomdp_hier.planning.point_based import blind_policies, model_arrays
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.problems import crying_baby, tiger
from pomdp_hier.simulation import returns, run_experiment
from tests.planning.test_advice import ENDLESS, ONCE, SEEN

NO_TABLES = {"leaf_value": lambda problem, belief: 1.0, "upper_bound": lambda *given: 99.0}
DOCTYPE = """<?xml version="1.0"?>
{}<Policy version="0.1" type="value">
<AlphaVector vectorLength="2" numObsValue="{}" numVectors="1">
<Vector action="0" obsValue="{}">3 3</Vector>
</AlphaVector></Policy>
"""


def earning(reward, discount=0.5, steps=None):
    """One state: the same reward at each step."""
    problem = POMDP.from_arrays(T=[[[1]]], Z=[[[1]]], R=[[reward]], discount=discount)
    return problem if steps is None else RTBSS(steps).decide(problem).value


def controlled(reward):
    return FiniteStateController(earning(reward), np.array([0]), np.array([[0]])).value()


def once(**changes):
    """One step of a choice between 1 and 2."""
    parts = {
        "transition": lambda s, a: "end",
        "observation": lambda s, a: "o",
        "reward": lambda s, a: {"low": 1, "high": 2}[a],
        "initial_belief": {"start": 1},
        "legal_actions": ["low", "high"],
        "terminal": ["end"],
    }
    return POMDP(**parts | changes)


class NoObservation:
    def decide(self, problem, belief=None):
        return QMDPPolicy().decide(problem, belief)


class Turned:
    def decide(self, belief, problem=None, *, observation=None):
        return QMDPPolicy().decide(problem, belief)


class Expected:
    def decide(self, problem, belief=None, *, observation=None):
        return QMDPPolicy().decide(problem, belief, observation=observation)


def run(policy):
    return run_experiment({"t": ONCE}, {"q": policy}, horizon=2, n_episodes=5)["t"]["q"].value


def written(policy, path):
    write_policy(policy, path)
    return valued(read_policy(path, ONCE))


def compared(method):
    return compare_policies([RandomPolicy(seed=1)], once(), method=method, half_width=0.1).rows[0].value


def valued(policy, problem=ONCE):
    return policy_value(policy, problem, horizon=2).value


def listened(certainty, symbols=None):
    """The value of one step of POUCT, whose accuracy may be a symbol."""
    problem = tiger(accuracy=certainty, discount=0.5)
    return POUCT(depth=1, simulations=20, seed=1).decide(problem).action


def symbol(value=None):
    sympy = pytest.importorskip("sympy")
    p = sympy.Symbol("p", positive=True)
    return p if value is None else p.subs(p, value)


def tree_of(expression):
    problem = once(reward=lambda s, a: expression if a == "high" else 1)
    return AndOrTree.build(problem, depth=1)


def saved(folder, text):
    path = folder / "p.policy"
    path.write_text(text)
    return read_policy(path, ONCE).vectors.tolist()


def unknowing(action="low"):
    """A start where the environment's observation is impossible for the agent."""
    return once(**two_stages(), observation=lambda s, a: "seen" if a == action else "o")


def two_stages():
    """Two steps, so that the observation after the first counts."""
    return {"transition": lambda s, a: {"start": "mid"}.get(s, "end"), "initial_belief": {"start": 1}}


def forever():
    """A terminal state that is never reached, at discount 1."""
    return once(transition=lambda s, a: {s: 1 - 1e-9, "end": 1e-9})


CERTIFICATE = solve(ONCE, precision=0.1).certificate()
AT_ONE = solve(ENDLESS, horizon=1).certificate()

# What raises, its advice, what is done instead, and its value.
ADVICE = [
    (
        lambda _: RTBSS(1, leaf_value=ImmediateValue("stay")).decide(SEEN),
        "Pass 'zero'",
        lambda _: RTBSS(1, leaf_value="zero").decide(SEEN).value,
        1,
    ),
    (
        lambda _: RTBSS(2, leaf_value=ImmediateValue("stay")).decide(SEEN),
        "'immediate'",
        lambda _: RTBSS(2, leaf_value="immediate").decide(SEEN).value,
        1.75,
    ),
    (
        lambda _: RTBSS(1, leaf_value=ImmediateValue("stay")).decide(SEEN),
        "or a callable",
        lambda _: RTBSS(1, leaf_value=lambda problem, belief: 3.0).decide(SEEN).value,
        2.5,
    ),
    (
        lambda _: simulate(FirstAction(), once(**two_stages()), unknowing(), n_episodes=5),
        "Pass a model or an updater in which every observation",
        lambda _: simulate(FirstAction(), unknowing(), unknowing(), n_episodes=5).value,
        2,
    ),
    (
        lambda _: bounds.value_bound(ONCE, "tib", horizon=2),
        "Pass 'fib'",
        lambda _: bounds.value_bound(ONCE, "fib", horizon=2).max(),
        10 + 0.5 * -1,
    ),
    (
        lambda _: bounds.value_bound(ENDLESS, "range"),
        "Set a horizon",
        lambda _: bounds.value_bound(ENDLESS, "range", horizon=2).max(),
        20,
    ),
    (
        lambda _: AndOrTree.build(earning(1e308, 1), depth=3).value,
        "expected at most 1.8e+308 in size. Write all rewards in a larger unit",
        lambda _: AndOrTree.build(earning(1e308 / 1e307, 1), depth=3).value,
        30.0,
    ),
    (
        lambda _: RTBSS(1, leaf_value=ImmediateValue).decide(ONCE),
        "Pass ImmediateValue(...)",
        lambda _: RTBSS(1, leaf_value=ImmediateValue("listen")).decide(ONCE).value,
        -1.5,
    ),
    (
        lambda _: solve(ONCE, max_trials=0).save(None),
        "expected a path",
        lambda folder: solve(ONCE, max_trials=0).save(folder / "c") or solve(ONCE, checkpoint=folder / "c").lower,
        solve(ONCE).lower,
    ),
    (lambda _: solve(earning(1e308)), "in a larger unit", lambda _: solve(earning(1e308 / 1e306)).lower, 200),
    (lambda _: solve(earning(1e-310)), "in a smaller unit", lambda _: solve(earning(1e-310 * 1e300 * 1e10)).lower, 2),
    (lambda _: controlled(1.5e308), "in a larger unit", lambda _: controlled(1.5e308 / 1e308), 3),
    (
        lambda _: FiniteStateController(apart_problem(), np.array([0]), np.array([[0]])).value(),
        "Build it by solve(problem).controller()",
        lambda _: solve(apart_problem()).controller().value(),
        2,
    ),
    (
        lambda _: policy_value(ONCE, FirstAction(), horizon=2),
        "Pass the policy before the problem",
        lambda _: policy_value(FirstAction(), ONCE, horizon=2).value,
        -1.5,
    ),
    (
        lambda _: compare_policies(ONCE, [FirstAction()], horizon=2),
        "Pass the policies before the problem",
        lambda _: compare_policies([FirstAction()], ONCE, horizon=2).rows[0].value,
        -1.5,
    ),
    (lambda _: valued(QMDPPolicy), "Pass QMDPPolicy(...)", lambda _: valued(QMDPPolicy()), -1.5),
    (lambda _: valued(NoObservation()), "Accept observation, the last one", lambda _: valued(Expected()), -1.5),
    (lambda _: valued(Turned()), "Use this order", lambda _: valued(Expected()), -1.5),
    (
        lambda _: verify(CERTIFICATE, crying_baby()),
        "Verify the problem that was solved",
        lambda _: float(verify(CERTIFICATE, ONCE).lower),
        solve(ONCE, precision=0.1).lower,
    ),
    (
        lambda _: verify(CERTIFICATE, ENDLESS),
        "Solve again with horizon=",
        lambda _: float(verify(solve(ENDLESS, horizon=1).certificate(), ENDLESS).lower),
        -1,
    ),
    (lambda _: listened(symbol()), "Substitute the symbols first", lambda _: listened(symbol(0.75)), "listen"),
    (
        lambda _: tree_of(__import__("sympy").sin(symbol())).to_json(),
        "Substitute numbers first, with value.subs(...)",
        lambda _: json.loads(tree_of(4 * symbol(0.5)).to_json())["or_nodes"][0]["value"],
        {"expression": {"float": "2.0"}},
    ),
    (
        lambda folder: write_policy(FiniteStateController(ONCE, np.array([0]), np.array([[0, 0]])), folder / "p.alpha"),
        "solve(problem).controller().vectors",
        lambda folder: written(solve(ONCE).controller().vectors, folder / "p.alpha"),
        -1.5,
    ),
    (
        lambda folder: write_policy(solve(ONCE).policy, folder / "p.pg"),
        "Pass solve(problem).controller()",
        lambda folder: written(solve(ONCE).controller(), folder / "p.pg"),
        -1.5,
    ),
    (
        lambda folder: saved(folder, DOCTYPE.format("<!DOCTYPE p>\n", 1, 0)),
        "Delete the declaration",
        lambda folder: saved(folder, DOCTYPE.format("", 1, 0)),
        [[3, 3]],
    ),
    (
        lambda folder: saved(folder, DOCTYPE.format("", 1, 1)),
        "Solve a model without observed states",
        lambda folder: saved(folder, DOCTYPE.format("", 1, 0)),
        [[3, 3]],
    ),
    (
        lambda folder: solve(ONCE, resume=solve(ONCE), checkpoint=folder / "c"),
        "Leave out resume",
        lambda folder: solve(ONCE, checkpoint=folder / "c").lower,
        solve(ONCE).lower,
    ),
    (
        lambda _: solve(ENDLESS, horizon=1, resume=solve(ONCE)),
        "Leave it out",
        lambda _: solve(ENDLESS, horizon=1).lower,
        -1,
    ),
    (
        lambda _: compared(method="exact"),
        "Set method='monte-carlo'",
        lambda _: compared(method="monte-carlo") == pytest.approx(1.5, abs=0.2),
        True,
    ),
    (
        lambda _: simulate(FirstAction(), ONCE, n_episodes=5, horizon=2, policy_version="2"),
        "Pass checkpoint= too",
        lambda folder: (
            simulate(FirstAction(), ONCE, n_episodes=5, horizon=2, policy_version="2", checkpoint=folder / "c").value
        ),
        -1.5,
    ),
    (
        lambda _: policy_value(POUCT(1, simulations=9, seed=1), once(), n_jobs=2),
        "Leave it out, or simulate",
        lambda _: policy_value(POUCT(1, simulations=9, seed=1), once()).value,
        2,
    ),
    (
        lambda _: run(QMDPPolicy),
        "Pass QMDPPolicy(...)",
        lambda _: run(QMDPPolicy()),
        -1.5,
    ),
    (
        lambda _: run(RTBSS),
        "Pass RTBSS(...)",
        lambda _: run(RTBSS(1)),
        -1.5,
    ),
    (
        lambda _: run(lambda: FirstAction()),
        "Pass lambda problem: policy",
        lambda _: run(lambda problem: FirstAction()),
        -1.5,
    ),
    (
        lambda _: run(lambda belief: "listen"),
        "pass lambda problem: function",
        lambda _: run(lambda problem: lambda belief: "listen"),
        -1.5,
    ),
]


def apart_problem(legal=None, **changes):
    """Two states that an observation does not distinguish, with a reward of 1 per step."""
    legal = legal or {"left": ["go left", "wait"], "right": ["go right", "wait"]}
    parts = {
        "transition": lambda s, a: s,
        "observation": lambda s, a: "same",
        "reward": lambda s, a: 1,
        "initial_belief": {"left": 0.5, "right": 0.5},
        "discount": 0.5,
        "legal_actions": lambda given: legal[given],
        "actions": ["go left", "go right", "wait"],
    }
    return POMDP(**parts | changes)


@pytest.mark.parametrize(("wrong", "advice", "right", "expected"), ADVICE, ids=[row[1] for row in ADVICE])
def test_advice_works(wrong, advice, right, expected, tmp_path):
    with pytest.raises(PomdpHierError) as caught:
        wrong(tmp_path)
    assert advice in str(caught.value)
    found = right(tmp_path)
    assert found == (pytest.approx(expected) if isinstance(found, float) else expected)


def test_a_problem_beyond_the_memory_is_planned_online(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(model_arrays, "memory_available", lambda: 10)
        with pytest.raises(PomdpHierError, match="Merge states or observations, or plan online, with RTBSS or POUCT"):
            solve(ONCE)
        assert RTBSS(2).decide(ONCE).value == -1.5
        assert POUCT(2, simulations=50, seed=1).decide(ONCE).action == "listen"
        patch.setattr(model_arrays, "memory_available", lambda: 200)
        with pytest.raises(PomdpHierError, match="Merge states"):
            solve(ONCE)
        assert solve(earning(1)).lower == pytest.approx(2)  # one state and one observation


def test_a_search_over_too_many_sets_of_states(monkeypatch):
    monkeypatch.setattr(blind_policies, "_MOST_SETS", 1)
    then = {"start": {"left": 0.5, "right": 0.5}, "left": "far left", "right": "far right"}
    ways = {"start": ["go"], "left": ["go"], "right": ["go"], "far left": ["go left"], "far right": ["go right"]}
    parts = {
        "transition": lambda s, a: then.get(s, s),
        "observation": lambda t, a: "wall" if t.startswith("far") else t,
        "initial_belief": {"start": 1},
        "actions": ["go", "go left", "go right", "wait"],
    }
    with pytest.raises(PomdpHierError, match="Make an action legal in every state, or set legal_by='observation'"):
        solve(apart_problem(ways, **parts))
    assert solve(apart_problem({s: [*legal, "wait"] for s, legal in ways.items()}, **parts)).lower == pytest.approx(2)
    told = parts | {"legal_by": "observation", "observation": lambda t, a: t}
    assert solve(apart_problem({None: ["go"], **ways}, **told)).lower == pytest.approx(2)


def test_a_value_without_linear_programs_is_bounded(monkeypatch):
    value = value_iteration(ONCE, 2).value(ONCE.initial_belief)
    with monkeypatch.context() as patch:
        patch.setattr(alpha_vectors, "_DUALITY_GAP", -1)  # no game counts as solved without a linear program
        patch.setattr("scipy.optimize.linprog", lambda *given, **how: SimpleNamespace(status=4, message="numbers"))
        with pytest.raises(
            PomdpHierError, match=r"which failed \(numbers\)\. Bound the value with solve\(problem, horizon"
        ):
            value_iteration(ONCE, 2)
        found = solve(ONCE, horizon=2)
    assert found.lower - 1e-9 <= value <= found.upper + 1e-9


@pytest.mark.parametrize("wrong", ["another problem", "damaged settings", "damaged bounds", "no checkpoint"])
def test_a_file_of_another_search_is_replaced(tmp_path, wrong):
    path, value = tmp_path / "c", solve(ONCE).lower
    solve(ENDLESS if wrong == "another problem" else ONCE, horizon=1, checkpoint=path)
    statement = {"damaged settings": "'[]', kind = 'json' WHERE id = 'run'", "damaged bounds": "data || 'x'"}.get(wrong)
    if statement:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE rows SET data = {statement}")
    if wrong == "no checkpoint":
        path.write_text("0\n1 2\n")
    with pytest.raises(PomdpHierError, match=r"Pass another path, or delete the file to start again\."):
        solve(ONCE, checkpoint=path)
    assert solve(ONCE, checkpoint=tmp_path / "d").lower == pytest.approx(value)
    path.unlink()
    assert solve(ONCE, checkpoint=path).lower == pytest.approx(value)


def test_a_run_that_may_never_end_gets_a_horizon(monkeypatch):
    monkeypatch.setattr(returns, "_LONGEST", returns._SHORT)
    with pytest.raises(PomdpHierError, match="Set a horizon"):
        simulate(FirstAction(), forever(), n_episodes=1)
    assert simulate(FirstAction(), forever(), n_episodes=1, horizon=5).value == 5
