"""Certificates: every one that is made is accepted; none that claims a false bound is, whatever is changed in it."""

import copy
import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier.errors import CertificateError
from pomdp_hier.planning import exact_value, solve, verify
from pomdp_hier.planning.certificates import exact_model
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.problems import cheese_maze, corridor, crying_baby, maze_4x3, rock_sample, tiger
from tests.small_problems import small_problem

BUNDLED = {
    "tiger": tiger,
    "crying baby": crying_baby,
    "cheese maze": cheese_maze,
    "corridor": corridor,
    "rock sample": rock_sample,
}


@pytest.mark.parametrize("seed", range(15))
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


@pytest.mark.parametrize("name", BUNDLED)
def test_certificates_of_the_bundled_problems_are_accepted(name):
    problem = BUNDLED[name]()
    solution = solve(problem, precision=1e-2, max_trials=40)
    bounds = verify(solution.certificate(), problem)
    assert float(bounds.lower) <= solution.lower
    assert float(bounds.upper) >= solution.upper


def test_a_certificate_about_another_belief_says_so():
    problem = tiger()
    solution = solve(problem, belief={"tiger-left": 0.97, "tiger-right": 0.03}, precision=1e-2)
    bounds = verify(solution.certificate(), problem)
    assert float(bounds.lower) == pytest.approx(solution.lower)


def test_the_model_is_read_as_decimals():
    model = exact_model.exact_model(tiger())
    assert Fraction(*model.discount) == Fraction(19, 20)
    p = dict(model.outcomes[0][0])
    assert Fraction(p[0][0][1], model.chance) == Fraction(85, 100)


@pytest.mark.parametrize("rewards", ["R: * : * : * : * 800", "R: * : * : 0 : * 800", "R: * : * : * : 1 800"])
def test_rows_that_sum_to_1_only_nearly_mean_the_same_to_both(rewards):
    problem = read_pomdp(
        "discount: 0.99\nvalues: reward\nstates: 2\nactions: 2\nobservations: 2\n"
        f"T: 0 identity\nT: 1\n0.3 0.699996\n0.600003 0.4\nO: *\n0.9 0.099998\n0.2 0.8\n{rewards}\nR: 1 : 1 : * : * 3\n"
    )
    solution = solve(problem, precision=1e-2, max_trials=30)
    bounds = verify(solution.certificate(), problem)
    assert float(bounds.lower) == pytest.approx(solution.lower, rel=1e-7)


def test_the_verifier_shares_no_code_with_the_solver():
    code = (
        "import sys, types\n"
        "import pomdp_hier.planning.certificates.verify as v, pomdp_hier.planning.certificates.reading as r\n"
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
    with pytest.raises(CertificateError, match=r"stages\[0\].informed\[1\]: its value in place 0"):
        verify(lowered, problem)
    lowered = copy.deepcopy(certificate)
    lowered["stages"][0]["outcomes"][0]["values"][0] -= 2**60
    with pytest.raises(CertificateError, match=r"stages\[0\].outcomes\[0\]: its value of action 0"):
        verify(lowered, problem)
    del lowered["stages"][0]["outcomes"][:]  # the tighter informed bound does not stand without them
    with pytest.raises(CertificateError, match=r"stages\[0\].informed"):
        verify(lowered, problem)


@pytest.mark.parametrize(
    "wrong", [None, [], 3, "x", {}, {"format": "pomdp-hier bounds", "version": 1}, {"format": []}, {"version": 10**400}]
)
def test_what_is_no_certificate_is_refused(wrong):
    with pytest.raises(CertificateError):
        verify(wrong, tiger())


def test_a_certificate_about_a_problem_of_other_sizes_is_refused():
    with pytest.raises(CertificateError, match="sizes"):
        verify(solve(tiger()).certificate(), cheese_maze())


def test_a_false_proof_of_a_problem_without_discount_is_refused():
    finite = solve(maze_4x3(), horizon=1).certificate()
    finite["horizon"] = None
    with pytest.raises(CertificateError, match="horizon"):
        verify(finite, maze_4x3())


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
        attack(problem, certificate, low, high, 60, i)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand_changed_certificates(block):
    for i, (problem, certificate, low, high) in enumerate(cases()):
        attack(problem, certificate, low, high, 250, 100 + 10 * block + i)
