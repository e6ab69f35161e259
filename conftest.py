"""A test that meets an extra which is not installed is skipped and says which; with ``--all-extras`` it fails."""

import doctest
import importlib.util
import signal
from collections.abc import Iterator

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-extras", action="store_true", help="fail, and do not skip, where an extra is missing")


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
