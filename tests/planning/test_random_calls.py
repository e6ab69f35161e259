"""Random calls of solvers, certificates, controllers, policies and comparisons: own errors, or answers that agree."""

import copy
import json
import os
import tempfile
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import Bundle, initialize, multiple, rule

from pomdp_hier import POMDP
from pomdp_hier.planning import RTBSS, FIBPolicy, ImmediateValue, QMDPPolicy, solve, value_iteration, verify
from pomdp_hier.planning import controllers as files
from pomdp_hier.planning.policies import FirstAction
from pomdp_hier.simulation import compare_policies, policy_value
from tests.exact_oracle import exact_value
from tests.pomdp_models import random_fractions, three_node, tiger
from tests.random_calls import MOSTLY_VALID, RandomCalls, run
from tests.small_problems import small_problem

PROBLEMS = {
    "tiger": tiger(discount=0.5),
    "fractions": tiger(discount=Fraction(1, 2), accuracy=Fraction(3, 4)),
    "no discount to speak of": tiger(discount=0),
    "search": three_node(0.75, 0.5, 0.25, 1.0),
    "rows of fractions": random_fractions(3),
    **{f"small {seed}": small_problem(seed, discount=0.5) for seed in range(8)},
}
HORIZONS = [1, 2, 3, None, 0, -1, 1.5, "two"]
NAMES = st.sampled_from([*PROBLEMS, *PROBLEMS, "nothing"])


def one_of(*values):
    return MOSTLY_VALID.map(lambda at: values[at % len(values)])


BELIEFS = one_of(None, "start", "dict", "first", {"x": 0.5}, 3, "words", float("nan"), [])
STRANGE = one_of(
    None, "start", "dict", "first", {"nowhere": 1}, 3
)  # where states are looked up, not handed to the model
LEAVES = one_of(
    "zero", "immediate", "qmdp", "fib", "blind", ImmediateValue("listen"), "solution", "vectors", "lowest", None, 3
)


def start(problem):
    return problem.initial_belief if isinstance(problem, POMDP) else None


def slack(problem):
    compiled = problem.compiled
    return 1e-7 * (1 + abs(float(compiled.reward.max(initial=0))) + abs(float(compiled.reward.min(initial=0))))


class Calls(RandomCalls):
    solutions = Bundle("solutions")
    made = Bundle("made")
    certificates = Bundle("certificates")

    @initialize(target=solutions)
    def no_solution(self):
        return None

    @initialize(target=made)
    def no_controller(self):
        return None

    @initialize(target=certificates)
    def no_certificate(self):
        return None

    def belief(self, problem, kind):
        known = start(problem)
        if known is None or not isinstance(kind, str) or kind == "words":
            return kind
        first = next(iter(known.support))
        return {"start": known, "first": {first: 1}, "dict": dict(known.items())}[kind]

    def optimum(self, problem, horizon):
        """The value of the best plan of so many actions, over all beliefs that it can meet."""
        return float(exact_value(problem, horizon=horizon))

    @rule(
        target=solutions,
        name=NAMES,
        horizon=st.sampled_from(HORIZONS),
        belief=STRANGE,
        precision=one_of(0.01, 1.0, 1e-6, 0, -1, "x", None, float("nan")),
        trials=one_of(1, 5, 0, -1, 1.5, None, "many"),
        limits=one_of({}, {"time_limit": 0.05}, {"memory_limit": 1e6}, {"time_limit": -1}, {"memory_limit": "all"}),
        engine=one_of("auto", "numpy", "numpy", "gpu", None),
    )
    def solve(self, name, horizon, belief, precision, trials, limits, engine):
        problem = PROBLEMS.get(name)
        if trials is None:
            limits = {"time_limit": 0.05}
        found = self.call(
            solve,
            problem,
            belief=self.belief(problem, belief),
            horizon=horizon,
            precision=precision,
            max_trials=trials,
            engine=engine,
            **limits,
        )
        if found is None:
            return None
        assert found.lower <= found.upper + slack(problem)
        if belief in (None, "start", "dict") and horizon is not None:
            best = self.optimum(problem, horizon)
            assert found.lower - slack(problem) <= best <= found.upper + slack(problem)
        repr(found)
        return found, problem, horizon

    @rule(told=solutions, name=NAMES, belief=STRANGE, to_go=one_of(None, 1, 2, 0, 3, -1, 1.5, "x"))
    def bounds(self, told, name, belief, to_go):
        solution, problem, _ = told or (None, None, None)
        if solution is None:
            return
        belief = self.belief(problem, belief or "start")
        found = self.call(solution.bounds, belief, to_go=to_go)
        assert found is None or found[0] <= found[1] + slack(problem)
        policy = solution.policy
        decision = self.call(policy.decide, PROBLEMS.get(name), self.belief(PROBLEMS.get(name), "start"))
        if decision is not None and PROBLEMS.get(name) is problem:
            assert decision.action in problem.actions(start(problem))

    @rule(target=certificates, told=solutions)
    def certify(self, told):
        if told is None:
            return None
        solution, problem, _ = told
        document = self.call(solution.certificate)
        return None if document is None else (json.loads(json.dumps(document)), problem, solution)

    @rule(told=certificates, name=NAMES, same=st.integers(0, 3), spoil=st.integers(0, 2**32 - 1), spoilt=st.booleans())
    def verify(self, told, name, same, spoil, spoilt):
        document, problem, solution = told or ({"form": "none"}, None, None)
        document, other = copy.deepcopy(document), problem if same else PROBLEMS.get(name)
        if spoilt:
            break_one(document, np.random.default_rng(spoil))
        found = self.call(verify, document, other, belief=getattr(solution, "belief", None))
        if found is None:
            assert spoilt or other is not problem or problem is None
            return
        assert found.lower <= found.upper
        if other is problem and not spoilt:
            assert abs(found.lower - solution.lower) < 1e-5 + slack(problem)
            assert abs(found.upper - solution.upper) < 1e-5 + slack(problem)

    @rule(target=made, told=solutions)
    def controller(self, told):
        if told is None:
            return multiple()
        solution, problem, horizon = told
        found = self.call(solution.controller)
        if found is None:
            return None
        least = found.minimised()
        assert len(least) <= len(found)
        one, other = self.call(found.value), self.call(least.value)
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, abs=slack(problem))
        if one is not None and horizon is None:
            assert one <= solution.upper + slack(problem)
        return found, problem

    @rule(told=made, name=NAMES, form=st.sampled_from(["alpha", "policy_graph", "policy_xml"]))
    def write(self, told, name, form):
        if told is None:
            return
        controller, problem = told
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "policy")
            kept = controller if form == "policy_graph" else controller.vectors
            write, read = getattr(files, f"write_{form}"), getattr(files, f"read_{form}")
            self.call(write, kept, path)
            if os.path.exists(path):
                self.call(read, path, PROBLEMS.get(name))
                back = self.call(read, path, problem)
                assert back is not None
                if form == "policy_graph":
                    assert back.actions.tolist() == controller.actions.tolist()
                    assert back.after.tolist() == controller.after.tolist()
                else:
                    np.testing.assert_array_equal(back.vectors, kept.vectors)

    @rule(
        name=NAMES,
        belief=BELIEFS,
        depth=one_of(1, 2, 3, 0, "x", None, -1),
        leaf=LEAVES,
        told=solutions,
        steps=one_of(1, 2, 0),
    )
    def look_ahead(self, name, belief, depth, leaf, told, steps):
        problem = PROBLEMS.get(name)
        solution, its, _ = told or (None, None, None)
        if leaf == "solution":
            leaf, problem = solution, its or problem
        if leaf == "vectors":
            leaf = self.call(value_iteration, problem, steps)
        planner = self.call(RTBSS, depth, leaf)
        decision = None if planner is None else self.call(planner.decide, problem, self.belief(problem, belief))
        if decision is None or belief not in ("start", "dict"):
            return
        if leaf == "zero":
            assert float(decision.value) == pytest.approx(self.optimum(problem, depth), abs=slack(problem))
        elif hasattr(leaf, "vectors") and not hasattr(leaf, "search"):
            assert float(decision.value) == pytest.approx(self.optimum(problem, depth + steps), abs=slack(problem))
        elif problem.discount < 1 and leaf in ("qmdp", "fib", "blind"):
            bounds = self.call(solve, problem, max_trials=3)
            if bounds is not None and leaf == "blind":
                assert decision.value <= bounds.upper + slack(problem)
            elif bounds is not None:
                assert decision.value >= bounds.lower - slack(problem)

    @rule(name=NAMES, belief=BELIEFS)
    def fib(self, name, belief):
        problem = PROBLEMS.get(name)
        fast = self.call(FIBPolicy().decide, problem, self.belief(problem, belief))
        if fast is None or belief not in ("start", "dict"):
            return
        bounds = self.call(solve, problem, max_trials=3)
        assert bounds is None or bounds.lower - slack(problem) <= fast.value
        seen = self.call(QMDPPolicy().decide, problem, self.belief(problem, belief)) if problem.discount < 1 else None
        assert seen is None or fast.value <= seen.value + slack(problem)

    @rule(
        name=NAMES,
        horizon=st.sampled_from(HORIZONS),
        told=solutions,
        controller=made,
        method=one_of("exact", "exact", "monte-carlo", "guess"),
        baseline=one_of(None, "first", "fib", "none", 3),
        mdp_value=one_of(True, False, 1.5, "x"),
        same=st.integers(0, 3),
    )
    def compare(self, name, horizon, told, controller, method, baseline, mdp_value, same):
        solution, its, held = told or (None, None, None)
        problem = its if same and its is not None else PROBLEMS.get(name)
        horizon = held if same and its is not None else horizon
        if horizon is None and getattr(problem, "discount", 0) == 1:
            mdp_value = False  # which takes all the iterations that there are
        policies = {"first": FirstAction(), "fib": FIBPolicy()}
        if controller is not None:
            policies["controller"] = controller[0]
        if solution is not None:
            policies["solution"] = solution.policy
        found = self.call(
            compare_policies,
            policies,
            problem,
            method=method,
            n_episodes=20,
            horizon=horizon,
            truncation_error=0.1,
            baseline=baseline,
            mdp_value=mdp_value,
            solution=solution,
        )
        if found is None:
            return
        str(found), found._repr_html_()
        assert {row.name for row in found} | set(found.failed) == set(policies)
        for row in found:
            low, high = row.optimality_gap or (0, 0)
            assert low <= high
            if method == "exact" and solution is not None:
                assert high >= -slack(problem) - found.error
            if method == "exact":
                alone = policy_value(policies[row.name], problem, horizon=horizon, truncation_error=0.1)
                assert float(alone.value) == pytest.approx(float(row.value), abs=slack(problem) + 0.2)


def break_one(document, rng):
    """Change, drop or repeat one thing somewhere in a document."""
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        below = here[key]
        if isinstance(below, dict | list) and below and rng.random() < 0.9:
            here = below
            continue
        spoilt = [None, "x", -1, 2**70, 0.5, [], {}, True, float("nan")]
        if isinstance(below, int) and rng.random() < 0.5:
            here[key] = below + int(rng.integers(-3, 4))
        elif rng.random() < 0.2:
            del here[key]
        else:
            here[key] = spoilt[int(rng.integers(len(spoilt)))]
        return


def test_random_calls_end_in_answers_that_agree_or_errors_of_ours():
    run(Calls, 4, 12, derandomize=True)
