"""The optimum of an item's search between two bounds that the verifier accepts, against the paper's closed form."""

import json

import pytest

from pomdp_hier.hqs import search_problem
from pomdp_hier.hqs.paper import load_amazon12
from pomdp_hier.hqs.policies import OptimalSearch
from pomdp_hier.planning import solve, verify
from tests.extras import few

SHOP = load_amazon12()


@pytest.mark.parametrize("name", few(2, "EABCD"))
@pytest.mark.parametrize("with_horizon", [True, False])
def test_certified_bounds_hold_what_the_closed_form_says(name, with_horizon):
    tree = SHOP.hierarchies[name]
    horizon = {"horizon": int(tree.height) + 1} if with_horizon else {}
    for item in (0, 5, 11):
        problem = search_problem(SHOP.similarity, tree, item, similarity="precomputed", delta=0.005)
        solution = solve(problem, precision=1e-6, **horizon)
        bounds = verify(json.loads(json.dumps(solution.certificate())), problem)
        optimum = max(
            OptimalSearch().decide(problem).q_values.values()
        )  # W(root) - 1, with the belief of 1 at the root
        assert bounds.lower - 1e-9 <= optimum <= bounds.upper + 1e-9
        assert bounds.upper - bounds.lower <= 1e-6
