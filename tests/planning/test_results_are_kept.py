"""Solutions, policies and controllers pickle and copy, in this process and in another, and print their values."""

import copy
import pickle
import subprocess
import sys
from functools import cache

import pytest

from pomdp_hier.planning import RTBSS, FIBPolicy, QMDPPolicy, solve, value_iteration, verify
from pomdp_hier.problems import tiger


@cache
def solved():
    return solve(tiger(), precision=0.1)


MAKE = {
    "solution": solved,
    "finite solution": lambda: solve(tiger(), horizon=3),
    "policy": lambda: solved().policy,
    "policy at a step": lambda: solve(tiger(), horizon=3).policy.at_step(1),
    "alpha vectors": lambda: value_iteration(tiger(), 3),
    "alpha vectors at a step": lambda: value_iteration(tiger(), 3).at_step(1),
    "controller": lambda: solved().controller(),
    "node": lambda: solved().controller().with_memory(1),
    "online planner": lambda: RTBSS(2, solved()),
    "mdp policy": QMDPPolicy,
    "fib policy": FIBPolicy,
}


@pytest.mark.parametrize("name", MAKE)
def test_results_pickle_and_copy(name):
    problem, kept = tiger(), MAKE[name]()
    policy = getattr(kept, "policy", kept)
    before = policy.decide(problem)
    for again in (pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept)):
        assert repr(again) == repr(kept)
        assert getattr(again, "policy", again).decide(problem) == before


@pytest.mark.slow
def test_a_solution_goes_on_in_another_process(tmp_path):
    solution = solve(tiger(), precision=0.1, engine="numpy")
    (tmp_path / "solution").write_bytes(pickle.dumps(solution))
    code = (
        "import pickle, sys; s = pickle.load(open(sys.argv[1], 'rb')); s.search.trial(); "
        "print(repr(s.controller().value()), *map(repr, s.bounds(s.problem.initial_belief)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "solution")],
        capture_output=True,
        text=True,
        check=True,
    )
    value, lower, upper = map(float, done.stdout.split())
    assert solution.lower - 1e-9 <= lower <= value + 1e-9
    assert value <= upper <= solution.upper
    again = pickle.loads(pickle.dumps(solution))
    assert verify(again.certificate(), tiger()).lower == verify(solution.certificate(), tiger()).lower


def test_results_print_their_values():
    shown = {name: repr(MAKE[name]()) for name in ("solution", "alpha vectors", "controller")}
    solution = MAKE["solution"]()
    assert solution.lower <= 19.37136838 <= solution.upper  # the tiger's value
    assert f"lower={solution.lower:.4f}, upper={solution.upper:.4f}" in shown["solution"]
    assert "horizon=3" in shown["alpha vectors"]
    assert "value=2.3098" in shown["alpha vectors"]
    assert "value=19.3714" in shown["controller"]
