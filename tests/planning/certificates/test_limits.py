"""Every number of a certificate is accepted at the limit that fractions give, and refused one unit beyond."""

import copy
from fractions import Fraction

import pytest

from pomdp_hier.errors import CertificateError
from pomdp_hier.planning import verify
from tests.planning.certificates.limits import Certificate, Table

KINDS = {
    "plain": ({}, None),
    "terminal": ({"terminal": True, "costs": True}, None),
    "legal by state": ({"legal": "some"}, None),
    "a horizon without discount": ({"discount": Fraction(1), "terminal": True}, 2),
    "a horizon": ({"discount": Fraction(1, 3), "legal": "some"}, 2),
    "integers": ({"discount": Fraction(1), "certain": True}, 3),
    "without discount until it ends": ({"discount": Fraction(1), "acyclic": True, "costs": True}, None),
}


@pytest.mark.parametrize(
    ("kind", "seed"),
    [*((kind, 0) for kind in KINDS), *(pytest.param(kind, 1, marks=pytest.mark.slow) for kind in KINDS)]
    + [pytest.param("integers", seed, marks=pytest.mark.slow) for seed in (2, 4)],
)
def test_each_number_is_accepted_at_its_limit_and_refused_one_beyond(kind, seed):
    settings, horizon = KINDS[kind]
    bits = 0 if kind == "integers" else 1
    made = Certificate(Table(seed, **settings), horizon, seed, value_bits=bits, weight_bits=bits)
    problem, top = made.table.problem, made.top
    bounds = verify(copy.deepcopy(top), problem)
    least, most = made.table.interval(horizon)
    assert bounds.lower <= most
    assert bounds.upper >= least
    for side, step in (("lower", 1), ("upper", -1)):
        with pytest.raises(CertificateError, match=f"^{side}: got"):
            verify({**top, side: top[side] + step}, problem)
    for path in made.numbers():
        old, limit = made.get(path), made.limit(path)
        made.set(path, limit)
        verify({**top, "lower": -(10**9), "upper": 10**9}, problem)
        beyond = limit + 1 if "vectors" in path else limit - 1
        made.set(path, beyond)
        if (beyond <= made.limit(path)) if "vectors" in path else (beyond >= made.limit(path)):
            continue  # the number rests on itself, and holds
        with pytest.raises(CertificateError) as error:
            verify(top, problem)
        assert str(error.value).startswith(f"{made.name(path)}: got {beyond};")
        made.set(path, old)
