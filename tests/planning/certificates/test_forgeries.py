"""No forged certificate proves a false bound: true values by exact fractions, over every sequence of actions."""

import pytest

from tests.extras import few
from tests.planning.certificates.forging import KINDS, attack


@pytest.mark.parametrize("kind", few(4, KINDS))
def test_no_forgery_proves_a_false_bound(kind):
    accepted, false = attack(kind, seed=11, n=25)
    assert false == []
    assert accepted  # weaker bounds, other hints: some hold


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_forgeries_prove_nothing_false(kind, block):
    assert attack(kind, seed=100 + block, n=320)[1] == []
