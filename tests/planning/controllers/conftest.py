import pytest

from pomdp_hier.planning import solve
from pomdp_hier.problems import tiger


@pytest.fixture(scope="session")
def classic():
    """The tiger's optimal controller: listen until one side was heard twice more often than the other."""
    return solve(tiger(), precision=1e-3).controller()
