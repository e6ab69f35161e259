"""A test that meets an extra which is not installed is skipped and says which; with ``--all-extras`` it fails."""

import doctest
import gc
import importlib.util
import signal
from collections.abc import Iterator

import hypothesis
import pytest
from _pytest.doctest import MultipleDoctestFailures

from pomdp_hier.errors import MissingExtraError

OPTIONAL = {
    *("numba", "narwhals", "pandas", "polars", "pyarrow", "sklearn", "sknetwork", "hdbscan", "dask", "distributed"),
    *("matplotlib", "sympy", "joblib", "shtab", "selenium", "anytree", "bigtree", "treelib", "openpyxl"),
}

# These import numba at once; the others import what is optional where it is used.
collect_ignore_glob = (
    [] if importlib.util.find_spec("numba") else ["pomdp_hier/_machine_code.py", "pomdp_hier/*/on_numba.py"]
)


# A shell runs what is in its background with SIGINT ignored, and every process that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# While modules are imported and rewritten, and tests collected, nothing of it can be freed: passes over all of it would
# take a third of the time until the first test, and each one during the tests as long as the next.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-extras", action="store_true", help="fail, and do not skip, where an extra is missing")


def pytest_configure(config: pytest.Config) -> None:
    """Draw a few examples by default, and many where the slow tests run."""
    slow_too = config.getoption("markexpr") != "not slow"
    health = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile(
        "here", max_examples=40 if slow_too else 10, deadline=None, suppress_health_check=health
    )
    hypothesis.settings.load_profile("here")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    except (MissingExtraError, ModuleNotFoundError, doctest.UnexpectedException, MultipleDoctestFailures) as error:
        missing = None if item.config.getoption("--all-extras") else _missing_extra(error)
        if missing is None:
            raise
        pytest.skip(str(missing))


def _missing_extra(error: BaseException) -> BaseException | None:
    """Return the error of a missing extra that a test, or a line of a doctest, ended with."""
    if isinstance(error, MultipleDoctestFailures):
        return next(filter(None, map(_missing_extra, error.failures)), None)
    if isinstance(error, doctest.UnexpectedException):
        error = error.exc_info[1]
    optional = isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL
    return error if isinstance(error, MissingExtraError) or optional else None
