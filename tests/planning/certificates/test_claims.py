"""The reader of certificates: each integer is accepted at the ends of its range and rejected one beyond."""

import functools
import json
import re
from fractions import Fraction

import pytest

from pomdp_hier import POMDP
from pomdp_hier.errors import CertificateError, ModelError
from pomdp_hier.planning import solve, verify
from pomdp_hier.planning.certificates.claims import read_claims
from pomdp_hier.planning.certificates.exact_model import exact_model, fingerprint
from pomdp_hier.problems import tiger

SIZES = (2, 3, 2)
STAGE = "stages", 0
BELIEF = [[0, 1]]
CERTIFICATE = {
    "format": "pomdp-hier bounds",
    "version": 2,
    "sizes": list(SIZES),
    "horizon": 1,
    "value_bits": 3,
    "weight_bits": 1,
    "start": BELIEF,
    "vector": 0,
    "hint": 0,
    "lower": 0,
    "upper": 0,
    "stages": [
        {
            "vectors": [{"action": 0, "values": [0, None], "after": [0, 0]}],
            "informed": [[0, 0], [0, 0], [None, 0]],
            "outcomes": [{"belief": BELIEF, "values": [0, None, 0], "after": [[0, 0, 0]]}],
            "corners": [0, None],
            "corner_points": [[0, 0]],
            "points": [{"belief": BELIEF, "value": 0, "actions": [None, [0, 0], None]}],
        }
    ],
}
MOST = 2**4_096
RANGES = {  # path: least, greatest
    ("horizon",): (1, None),
    ("value_bits",): (0, 1024),
    ("weight_bits",): (0, 1024),
    ("vector",): (0, MOST),
    ("hint",): (-2, MOST),
    ("lower",): (-MOST, MOST),
    ("upper",): (-MOST, MOST),
    ("start", 0, 0): (0, 1),
    ("start", 0, 1): (1, MOST),
    (*STAGE, "vectors", 0, "action"): (0, 2),
    (*STAGE, "vectors", 0, "values", 0): (-MOST, MOST),
    (*STAGE, "vectors", 0, "after", 0): (-1, MOST),
    (*STAGE, "informed", 0, 0): (-MOST, MOST),
    (*STAGE, "outcomes", 0, "belief", 0, 0): (0, 1),
    (*STAGE, "outcomes", 0, "values", 0): (-MOST, MOST),
    (*STAGE, "outcomes", 0, "after", 0, 0): (0, 2),
    (*STAGE, "outcomes", 0, "after", 0, 1): (0, 1),
    (*STAGE, "outcomes", 0, "after", 0, 2): (0, 1),
    (*STAGE, "corners", 0): (-MOST, MOST),
    (*STAGE, "corner_points", 0, 0): (0, 1),
    (*STAGE, "corner_points", 0, 1): (0, MOST),
    (*STAGE, "points", 0, "belief", 0, 0): (0, 1),
    (*STAGE, "points", 0, "value"): (-MOST, MOST),
    (*STAGE, "points", 0, "actions", 1, 0): (-2, MOST),
}


def changed(path, value):
    """The certificate with one number replaced."""
    certificate = json.loads(json.dumps(CERTIFICATE))
    *keys, last = path
    functools.reduce(lambda part, key: part[key], keys, certificate)[last] = value
    return certificate


def read(certificate):
    return read_claims(certificate, SIZES, 2)


@pytest.mark.parametrize("path", RANGES, ids=lambda path: ".".join(map(str, path)))
def test_an_integer_is_accepted_up_to_its_limits_and_no_further(path):
    least, most = RANGES[path]
    for end, beyond in ((least, -1), (most, 1)):
        if end is None:
            continue
        read(changed(path, end))
        field = re.escape(next(key for key in reversed(path) if isinstance(key, str)))
        for wrong in (end + beyond, float(end) if abs(end) < MOST else None, str(end), end == 1):
            if wrong is not None:
                with pytest.raises(CertificateError, match=rf"^[\w.\[\]]*{field}[\d\[\]]*: got "):
                    read(changed(path, wrong))


def test_a_successor_of_probability_0_is_not_part_of_the_model():
    settings = {
        "observation": lambda s, a: "o",
        "reward": lambda s, a, t: {"here": 1, "there": 5}[t],
        "initial_belief": {"here": 1},
        "states": ["here", "there"],
        "discount": Fraction(1, 2),
        "legal_actions": ["stay"],
    }
    plain = POMDP(transition=lambda s, a: s, **settings)
    padded = POMDP(transition=lambda s, a: {s: 1, "here" if s == "there" else "there": 0}, **settings)
    assert fingerprint(plain) == fingerprint(padded)
    assert exact_model(padded).reached({0}) == {0}


def test_legal_actions_by_belief_have_no_exact_model():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1,
        initial_belief={"here": 1},
        legal_actions=lambda belief: ["stay"],
        legal_by="belief",
        actions=["stay"],
    )
    with pytest.raises(ModelError, match=r"^legal_actions: got actions"):
        exact_model(problem)


@pytest.mark.parametrize(("horizon", "stated"), [(1, 1), (2, 2), (3, None), (4, None)])
def test_a_horizon_is_stated_unless_the_process_terminates_within_it(horizon, stated):
    chain = POMDP(
        transition=lambda s, a: s + 1,
        observation=lambda s, a: "o",
        reward=lambda s, a: 1,
        initial_belief={0: 1},
        terminal=[3],
        legal_actions=["go"],
    )
    bounds = verify(solve(chain, horizon=horizon).certificate(), chain)
    assert bounds.horizon == stated
    assert bounds.lower <= min(horizon, 3) <= bounds.upper


def test_the_fingerprint_of_a_bundled_problem_is_fixed():
    assert fingerprint(tiger()) == "35b43b6b13089ceb"
