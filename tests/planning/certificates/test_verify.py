"""Certificates: every one that is made is accepted; none that claims a false bound is, whatever is changed in it."""

import copy
import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, Belief
from pomdp_hier.errors import CertificateError, ModelError
from pomdp_hier.planning import solve, verify
from pomdp_hier.planning.certificates import exact_model
from pomdp_hier.planning.certificates.claims import Claims, Point, StageClaims
from pomdp_hier.planning.certificates.verify import _least_ratio, _Stage
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.problems import cheese_maze, corridor, crying_baby, maze_4x3, rock_sample, tiger
from tests.exact_oracle import exact_value
from tests.extras import few
from tests.pomdp_models import three_node
from tests.small_problems import small_problem

BUNDLED = {
    "tiger": tiger,
    "crying baby": crying_baby,
    "cheese maze": cheese_maze,
    "corridor": corridor,
    "rock sample": rock_sample,
}


@pytest.mark.parametrize("seed", few(5, range(15)))
def test_certificates_of_random_problems_are_accepted_and_hold_the_exact_value(seed):
    problem = small_problem(seed)
    exact = float(exact_value(problem, horizon=3))
    solution = solve(problem, horizon=3, precision=1e-9, max_trials=30)
    bounds = verify(solution.certificate(), problem)
    assert float(bounds.lower) - 1e-12 <= exact <= float(bounds.upper) + 1e-12
    assert float(bounds.upper - bounds.lower) <= solution.gap + 1e-6
    endless = solve(problem, precision=1e-4, max_trials=8)
    proved = verify(json.loads(json.dumps(endless.certificate())), problem)
    assert proved.horizon is None
    assert float(proved.lower) <= endless.lower <= endless.upper <= float(proved.upper)
    assert float(proved.upper - proved.lower) <= endless.gap + 1e-6 / (1 - problem.discount) ** 2


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "rock sample")) for name in BUNDLED]
)
def test_certificates_of_the_bundled_problems_are_accepted(name):
    problem = BUNDLED[name]()
    solution = solve(problem, precision=1e-2, max_trials=40)
    bounds = verify(solution.certificate(), problem)
    assert float(bounds.lower) <= solution.lower
    assert float(bounds.upper) >= solution.upper


@pytest.mark.parametrize("horizon", [None, 2])
def test_the_rounding_of_bad_actions_is_allowed_for_where_the_best_is_worth_nothing(horizon):
    sevenths = {"s": Fraction(3, 7), "t": Fraction(3, 7), "end": Fraction(1, 7)}
    problem = POMDP(
        transition=lambda s, a: "end" if a == "wait" else sevenths,
        observation=lambda s, a: "same",
        reward=lambda s, a: 0 if a == "wait" else -Fraction(3, 2) if s == "s" else -Fraction(13, 3),
        initial_belief={"t": 1},
        discount=Fraction(1, 2),
        states=["s", "t", "end"],
        terminal=["end"],
        legal_actions=["work", "wait"],
    )
    bounds = verify(solve(problem, horizon=horizon).certificate(), problem)
    assert -1e-9 < bounds.lower <= 0 <= bounds.upper < 1e-9


@pytest.mark.parametrize("horizon", [None, 1, 3])
def test_a_process_that_surely_ends_has_a_certificate_without_a_discount(horizon):
    def walk(state, action):
        return {"first": "second", "second": "end"}[state] if action == "go" else "end"

    problem = POMDP(
        transition=walk,
        observation=lambda s, a: s,
        reward=lambda s, a: {"first": 1, "second": 4}[s] if a == "go" else 2,
        initial_belief={"first": 1},
        terminal=["end"],
        legal_actions=lambda o: ["go", "leave"] if o is None else ["go"],
        legal_by="observation",
        actions=["go", "leave"],
    )
    bounds = verify(solve(problem, horizon=horizon).certificate(), problem)
    value = 2 if horizon == 1 else 5
    assert bounds.lower <= value <= bounds.upper
    assert float(bounds.upper - bounds.lower) < 1e-6


def test_an_outcome_that_says_nothing_of_what_follows_changes_nothing():
    problem = tiger()
    certificate = solve(problem, precision=1e-2, max_trials=40).certificate()
    bounds = verify(certificate, problem)
    outcomes = certificate["stages"][0]["outcomes"]
    both = next(outcome for outcome in outcomes if len(outcome["belief"]) == 2)
    for outcome in outcomes:  # hearing where the tiger surely is leads to one state, and the belief is over two
        outcome["after"] = [triple for triple in outcome["after"] if triple != [0, 0, 0]]
    both["after"].append([0, 0, 0])
    assert verify(certificate, problem) == bounds


def test_a_certificate_from_another_belief_needs_that_belief():
    problem, belief = tiger(), {"tiger-left": 0.97, "tiger-right": 0.03}
    solution = solve(problem, belief=belief, precision=1e-2)
    bounds = verify(solution.certificate(), problem, belief=belief)
    assert float(bounds.lower) == pytest.approx(solution.lower)
    assert (bounds.belief, bounds.is_initial) == (Belief(belief), False)
    assert f"from belief {belief}, over an infinite horizon at discount 0.95" in str(bounds)
    for other in (None, {"tiger-left": 1}, {"tiger-left": 0.97 - 1.5e-9, "tiger-right": 0.03 + 1.5e-9}):
        with pytest.raises(CertificateError, match=r"^start: got {'tiger-left': 0.97, 'tiger-right': 0.03}"):
            verify(solution.certificate(), problem, belief=other)
    with pytest.raises(CertificateError, match=r"^start: got {'tiger-left': 0.5, 'tiger-right': 0.5}"):
        verify(solve(problem, precision=1).certificate(), problem, belief=belief)
    for wrong in ({"tiger": 1}, {"tiger-left": 2}, Belief({"tiger-left": 1000.0}, tolerance=1e9), 3):
        with pytest.raises(ModelError, match=r"^belief: "):
            verify(solution.certificate(), problem, belief=wrong)
    with pytest.raises(ModelError, match=r"^observation: got 'hear'"):
        verify(solution.certificate(), problem, belief=belief, observation="hear")


def test_the_bounds_are_those_of_the_named_belief_where_the_start_is_rounded():
    problem = tiger()
    certificate = solve(problem, precision=1e-2).certificate()
    vectors = [vector["values"] for vector in certificate["stages"][0]["vectors"]]
    certificate["vector"] = next(k for k, (left, right) in enumerate(vectors) if left > right + 2**44)
    certificate["lower"] = sum(vectors[certificate["vector"]]) // 2
    assert verify(certificate, problem).is_initial
    less = {"tiger-left": Fraction(1, 2) - Fraction(9, 10**10), "tiger-right": Fraction(1, 2) + Fraction(9, 10**10)}
    with pytest.raises(CertificateError, match=r"^lower: got"):
        verify(certificate, problem, belief=less)


def test_a_start_on_terminal_states_is_part_of_the_distribution():
    problem = small_problem(3, kind="ends", discount=0.5)
    end = problem.states[-1]
    belief = {problem.states[0]: 0.25, end: 0.75}
    certificate = solve(problem, belief=belief, precision=1e-1).certificate()
    assert sum(w for _, w in certificate["start"]) == 2 ** certificate["weight_bits"] // 4
    bounds = verify(certificate, problem, belief=belief)
    assert bounds.belief == Belief(belief)
    certificate["start"].append([len(problem.states) - 1, 2 ** certificate["weight_bits"]])
    with pytest.raises(CertificateError, match=r"^start: got weights with the sum 1.25"):
        verify(certificate, problem, belief=belief)


def test_the_model_is_read_as_decimals():
    model = exact_model.exact_model(tiger())
    assert Fraction(*model.discount) == Fraction(19, 20)
    p = dict(model.outcomes[0][0])
    assert Fraction(p[0][0][1], model.p_unit) == Fraction(85, 100)


@pytest.mark.parametrize("rewards", ["R: * : * : * : * 800", "R: * : * : 0 : * 800", "R: * : * : * : 1 800"])
def test_rows_that_sum_to_1_only_nearly_mean_the_same_to_both(rewards):
    problem = read_pomdp(
        "discount: 0.99\nvalues: reward\nstates: 2\nactions: 2\nobservations: 2\n"
        f"T: 0 identity\nT: 1\n0.3 0.699996\n0.600003 0.4\nO: *\n0.9 0.099998\n0.2 0.8\n{rewards}\nR: 1 : 1 : * : * 3\n"
    )
    solution = solve(problem, precision=1e-2, max_trials=8)
    bounds = verify(solution.certificate(), problem)
    assert float(bounds.lower) == pytest.approx(solution.lower, rel=1e-7)


@pytest.mark.slow
def test_the_verifier_shares_no_code_with_the_solver():
    code = (
        "import sys, types\n"
        "import pomdp_hier.planning.certificates.verify as v, pomdp_hier.planning.certificates.claims as r\n"
        "import pomdp_hier.planning.certificates.exact_model as e\n"
        "names = {getattr(x, '__module__', None) or x.__name__ for m in (v, r, e) for x in vars(m).values()\n"
        "         if isinstance(x, (type, types.FunctionType, types.ModuleType))}\n"
        "print(*[n for n in names if 'point_based' in n or 'rtbss' in n or 'scipy' in n])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def claims(certificate, value, side):
    """The certificate with another claim."""
    changed = copy.deepcopy(certificate)
    changed[side] = int(value * 2 ** changed["value_bits"])
    return changed


def test_claims_beyond_the_proof_are_refused():
    problem = tiger()
    certificate = solve(problem, precision=1e-2).certificate()
    assert verify(claims(certificate, 19.0, "lower"), problem).lower == 19
    for side, value in (("lower", 19.5), ("upper", 19.2)):
        with pytest.raises(CertificateError, match=side):
            verify(claims(certificate, value, side), problem)
    raised = copy.deepcopy(certificate)
    raised["stages"][0]["vectors"][0]["values"] = [2**60, 2**60]
    with pytest.raises(CertificateError, match=r"stages\[0\].vectors\[0\]"):
        verify(raised, problem)
    lowered = copy.deepcopy(certificate)
    for s in (0, 1):  # each is no more than what the outcomes prove, so that none can be less
        lowered["stages"][0]["informed"][1][s] -= 2 ** (lowered["value_bits"] - 3)
    with pytest.raises(CertificateError, match=r"stages\[0\].informed\[1\]\[0\]: got"):
        verify(lowered, problem)
    lowered = copy.deepcopy(certificate)
    lowered["stages"][0]["outcomes"][0]["values"][0] -= 2**60
    with pytest.raises(CertificateError, match=r"stages\[0\].outcomes\[0\].values\[0\]: got"):
        verify(lowered, problem)
    del lowered["stages"][0]["outcomes"][:]  # the tighter informed bound does not stand without them
    with pytest.raises(CertificateError, match=r"stages\[0\].informed"):
        verify(lowered, problem)


def change(*path, to):
    """A path in a certificate, and the value to set there."""
    return path, to


def forged(certificate, changes):
    """A copy of the certificate with the changes."""
    certificate = copy.deepcopy(certificate)
    for path, value in changes:
        holder = certificate
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
    return certificate


@pytest.fixture(scope="module")
def made():
    """A problem whose leaves can only be searched, and the tiger; each with a certificate."""
    search, wild = three_node(0.75, 0.0, 0.5, 0.25), tiger()
    return {
        "search": (search, solve(search, horizon=2).certificate()),
        "tiger": (wild, solve(wild, precision=1e-2, max_trials=40).certificate()),
    }


# In the search, state 0 is the root, 1 to 4 are the leaves (where searching is action 1), 5 and 6 are terminal.
FORGERIES = [
    ("search", [change("stages", 0, "vectors", 0, "action", to=0)], "stages[0].vectors[0].action: got 0"),
    ("search", [change("stages", 0, "vectors", 0, "values", 2, to=None),
                change("stages", 1, "vectors", 0, "action", to=0),
                change("stages", 1, "vectors", 0, "values", to=[0, *[None] * 6])],
     "stages[1].vectors[0].after: got 0 after observation 0 at state index 0"),
    ("search", [change("stages", 0, "vectors", 0, "values", 3, to=2**60)],
     f"stages[0].vectors[0].values[3]: got {2**60};"),
    ("search", [change("stages", 0, "informed", 1, 2, to=None)], "stages[0].informed[1][2]: got null"),
    ("search", [change("stages", 0, "informed", 1, 3, to=0)], "stages[0].informed[1][3]: got 0;"),
    ("search", [change("stages", 1, "corners", 4, to=None)], "stages[1].corners[4]: got null"),
    ("search", [change("stages", 0, "corners", 3, to=0)], "stages[0].corners[3]: got 0; expected at least informed[1]"),
    ("search", [change("stages", 1, "vectors", 0, "values", 0, to=None)], "vector: got 0; expected a vector w"),
    ("search", [change("vector", to=9)], "vector: got 9; expected one of 1 vector"),
    ("search", [change("horizon", to=3)], "stages: got 2 entries; expected 3"),
    ("search", [change("start", to=[[0, 1], [1, 1]])], "start: got {('c0', 1): 2.0"),
    ("tiger", [change("start", to=[[0, 1], [1, 1]])], "start: got weights with the sum 0.000000000;"),
    ("tiger", [change("start", to=[[0, 2**99]])], "start: got weights with the sum 128.000000000;"),
    ("tiger", [change("start", to=[[0, 2**2000]])], "start: got weights with the sum 2**1908;"),
    ("tiger", [change("start", to=[[0, 2**92]])], "start: got {'tiger-left': 1.0}; expected {'tiger-left': 0.5, "),
    ("tiger", [change("stages", 0, "corner_points", to=[[0, 99], [1, 0]])],
     "stages[0].corner_points: got point 99;"),
    ("tiger", [change("stages", 0, "corner_points", to=[[0, 0], [1, 0]])],
     "stages[0].corner_points: got point 0; expected a point of state index 0"),
    ("tiger", [change("stages", 0, "corners", 1, to=0)], "stages[0].corners[1]: got 0; expected at least the value of"),
    ("tiger", [change("stages", 0, "points", 2, "belief", to=[[1, 3], [1, 5]])],
     "stages[0].points[2].belief[1]: got state index 1 twice"),
    ("tiger", [change("stages", 0, "points", 2, "belief", to=7)], "stages[0].points[2].belief: got 7;"),
    ("tiger", [change("stages", 0, "points", 2, "value", to=-(2**60))], f"stages[0].points[2].value: got {-(2**60)};"),
    ("tiger", [change("stages", 0, "points", 2, "value", to=2**4096 + 1)], "stages[0].points[2].value: got <an int"),
    ("tiger", [change("stages", 0, "informed", to=[[], []])], "stages[0].informed: got 2 entries; expected 3"),
    ("tiger", [change("stages", 0, "vectors", to=5)], "stages[0].vectors: got 5;"),
    ("tiger", [change("stages", 0, to=5)], "stages[0]: got 5;"),
    ("tiger", [change("stages", 0, "corner_points", 0, to=[0, -1])], "stages[0].corner_points[0]: got -1;"),
    ("tiger", [change("stages", 0, "points", 2, "actions", 1, to=[1, 2, 3])],
     "stages[0].points[2].actions[1]: got 3 entries; expected 2"),
    ("tiger", [change("stages", 0, "points", 0, "actions", 0, to=[999, 999])],
     "stages[0].points[0]: got point 999;"),
    ("tiger", [change("stages", 0, "vectors", 3, "after", to=[0])],
     "stages[0].vectors[3].after: got 1 entries; expected 2"),
    ("tiger", [change("stages", 0, "vectors", 3, "after", to=[99, 99])], "stages[0].vectors[3].after: got 99 after"),
    ("tiger", [change("stages", 0, "informed", 1, to=[None])], "stages[0].informed[1]: got 1 entries; expected 2"),
    ("tiger", [change("stages", 0, "outcomes", 1, "after", 0, to=[0, 0])],
     "stages[0].outcomes[1].after[0]: got 2 entries; expected 3"),
    ("tiger", [change("stages", 0, "outcomes", 1, "values", 0, to=None)], "stages[0].outcomes[1].values[0]: got null"),
    ("tiger", [change("stages", 0, "outcomes", 1, "values", 0, to=-(2**60))],
     f"stages[0].outcomes[1].values[0]: got {-(2**60)};"),
    ("tiger", [change("stages", 0, "outcomes", 1, "belief", to=[])], "stages[0].outcomes[1].belief: got []"),
    ("tiger", [change("stages", 0, "points", 2, "belief", to=[[0, 1], [1]])],
     "stages[0].points[2].belief[1]: got 1 entries; expected 2"),
    ("tiger", [change("stages", 0, "points", 2, "belief", to=[[0, 1], [9, 1]])],
     "stages[0].points[2].belief[1]: got 9; expected an integer from 0 to 1"),
    ("tiger", [change("stages", 0, "points", 2, "belief", to=[[0, 1], [1, 0]])],
     "stages[0].points[2].belief[1]: got 0;"),
    ("tiger", [change("format", to="bounds")], "format: got 'bounds', version 2; expected 'pomdp-hier bounds'"),
    ("tiger", [change("version", to=7)], "format: got 'pomdp-hier bounds', version 7; expected"),
    ("tiger", [change("hint", to=-7)], "hint: got -7; expected an integer from -2"),
    ("tiger", [change("hint", to=999)], "hint: got point 999;"),
    ("tiger", [change("sizes", to=[11, 4, 7])], "sizes: got [11, 4, 7]; expected 2 states, 3 actions and 2 obs"),
    ("tiger", [change("sizes", to=[2.0, 3, 2])], "sizes: got [2.0, 3, 2];"),
    ("tiger", [change("value_bits", to=2000)], "value_bits: got 2000; expected an integer from 0 to 1024"),
    ("tiger", [change("value_bits", to=0)], "stages[0].vectors[3].values[0]: got "),
    ("tiger", [change("weight_bits", to=True)], "weight_bits: got True;"),
    ("tiger", [change("weight_bits", to=7)], "stages[0]."),
    ("tiger", [change("lower", to=2**2000)], "lower: got 2**"),
    ("tiger", [change("upper", to=-(2**2000))], "upper: got -2**"),
    ("tiger", [change("lower", to=20.0)], "lower: got 20.0;"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "words"), FORGERIES)
def test_each_forged_field_is_refused_by_its_name(made, name, changes, words):
    problem, certificate = made[name]
    with pytest.raises(CertificateError) as error:
        verify(forged(certificate, changes), problem)
    assert str(error.value).startswith(words)


def test_a_corner_does_not_rest_on_the_point_of_another_state(made):
    problem, certificate = made["tiger"]
    (left, first), (right, second) = certificate["stages"][0]["corner_points"]
    swapped = forged(certificate, [change("stages", 0, "corner_points", to=[[left, second], [right, first]])])
    with pytest.raises(CertificateError, match=rf"^stages\[0\].corner_points: got point {second};"):
        verify(swapped, problem)


def test_every_field_is_forged_above(made):
    fields = {key for _, certificate in made.values() for path in places(certificate) for key in path}
    assert {f for f in fields if isinstance(f, str)} <= {
        key for _, cs, _ in FORGERIES for path, _ in cs for key in path
    }


def test_a_number_that_is_not_finite_has_no_fraction():
    with pytest.raises(ModelError, match=r"^initial belief: got nan;"):
        exact_model.as_fraction(float("nan"), "initial belief")


@pytest.mark.parametrize(
    "wrong", [None, [], 3, "x", {}, {"format": "pomdp-hier bounds", "version": 1}, {"format": []}, {"version": 10**400}]
)
def test_what_is_no_certificate_is_refused(wrong):
    with pytest.raises(CertificateError):
        verify(wrong, tiger())


def test_a_certificate_about_a_problem_of_other_sizes_is_refused():
    with pytest.raises(CertificateError, match=r"^sizes: "):
        verify(solve(tiger()).certificate(), cheese_maze())


def test_a_false_proof_of_a_problem_without_discount_is_refused():
    finite = solve(maze_4x3(), horizon=1).certificate()
    finite["horizon"] = None
    with pytest.raises(CertificateError, match=r"^horizon: got none"):
        verify(finite, maze_4x3())
    assert verify(solve(maze_4x3(), horizon=1).certificate(), maze_4x3()).horizon == 1


def test_an_outcome_or_vector_of_unreachable_states_is_left_out():
    problem = three_node(0.75, 0.0, 0.5, 0.25)
    certificate = solve(problem, horizon=2).certificate()
    bounds = verify(certificate, problem)
    end = 5  # terminal, and so never among the states with actions to go
    for stage in certificate["stages"]:
        stage["outcomes"].append({"after": [], "belief": [[1, 1], [end, 1]], "values": [0, -(2**60)]})
        stage["vectors"].append({"action": 1, "after": [-1] * 4, "values": [None] * 5 + [2**60] * 2})
    assert verify(certificate, problem).upper == bounds.upper
    point = {"belief": [[1, 1], [end, 1]], "value": 2**60, "actions": [None, None]}
    certificate["stages"][1]["points"].append(point)
    with pytest.raises(CertificateError, match=r"^stages\[1\].points\[\d+\].belief: got a state index that cannot"):
        verify(certificate, problem)


# --- mutations -------------------------------------------------------------------------------------------------------


def places(value, path=()):
    """Every place in a certificate, as a path of keys and positions."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from places(entry, (*path, key))


def mutate(certificate, rng, paths):
    """One or a few changes: numbers, successors, actions, denominators, structure, types, sizes."""
    changed = copy.deepcopy(certificate)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        path = paths[int(rng.integers(1, len(paths)))]
        holder = changed
        try:
            for key in path[:-1]:
                holder = holder[key]
            old = holder[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
        kind = int(rng.integers(9))
        if kind == 0 and isinstance(holder, list):
            del holder[path[-1]]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(path[-1], copy.deepcopy(holder[int(rng.integers(len(holder)))]))
        elif kind == 2:
            junk = [None, True, 0.5, "1", [], {}, [[[]]], 10**5000, -1, float("nan")]
            holder[path[-1]] = junk[int(rng.integers(len(junk)))]
        elif kind == 3 and isinstance(holder, list):
            other = int(rng.integers(len(holder)))
            holder[path[-1]], holder[other] = holder[other], old
        elif type(old) is int:
            step = int(rng.choice([1, -1, 2**20, -(2**20), 2**40, -(2**40), 2**44, -(2**44), old, -2 * old]))
            holder[path[-1]] = old + step
    return changed


def attack(problem, certificate, low, high, n, seed):
    """Change a certificate n times: what passes must claim nothing false; all else must be refused by our own error."""
    rng, passed = np.random.default_rng(seed), 0
    paths = list(places(certificate))
    for _ in range(n):
        try:
            bounds = verify(mutate(certificate, rng, paths), problem)
        except CertificateError:
            continue
        passed += 1
        assert bounds.lower <= high
        assert bounds.upper >= low
    return passed


def cases():
    """Problems with a certificate, and an interval that surely holds the optimum."""
    for problem, horizon in ((tiger(), None), (small_problem(5), 3), (small_problem(16), 3), (small_problem(2), None)):
        tight = verify(solve(problem, horizon=horizon, precision=1e-7, max_trials=400).certificate(), problem)
        loose = solve(problem, horizon=horizon, precision=1e-1, max_trials=3)
        yield problem, loose.certificate(), tight.lower, tight.upper


def test_changed_certificates_claim_nothing_false_and_end_in_our_own_error():
    for i, (problem, certificate, low, high) in enumerate(cases()):
        attack(problem, certificate, low, high, 30, i)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand_changed_certificates(block):
    for i, (problem, certificate, low, high) in enumerate(cases()):
        attack(problem, certificate, low, high, 250, 100 + 10 * block + i)


def test_the_least_ratio_is_that_of_fractions_and_none_where_a_state_has_no_weight():
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights, belief = ({s: int(rng.integers(1, 9)) for s in range(4)} for _ in range(2))
        top, bottom = _least_ratio(weights, [*belief.items()])
        assert Fraction(top, bottom) == min(Fraction(weights[s], belief[s]) for s in belief)
        assert _least_ratio({s: weights[s] for s in range(3)}, [*belief.items()]) is None


@pytest.mark.parametrize(("value", "bound"), [(11, 10), (10, 10), (9, 9), (8, 8)])
def test_a_point_one_unit_below_its_corners_lowers_the_interpolation_by_one_unit(value, bound):
    model = exact_model.exact_model(tiger())
    point = Point([(0, 1), (1, 1)], value, [])
    claims = Claims(None, 0, 0, None, [], 0, 0, 0, 0)
    stage = StageClaims([], [], [], {}, [5, 5], {}, [point])
    assert _Stage(model, claims, stage, "stage", {0, 1}, None).interpolation([(0, 1), (1, 1)], 0, "hint") == bound
