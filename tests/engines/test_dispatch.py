"""The choice of an engine: by the time it needs, compilation and numba's cache counted."""

import importlib.util
import os

import numpy as np
import pytest

from pomdp_hier import _imports
from pomdp_hier._engines import dispatch
from pomdp_hier._engines.task import AlwaysDescend, LookAhead, SearchRoot
from pomdp_hier.hierarchy.tree import Hierarchy
from tests.engines.tasks import chain, grouped, task_of


@pytest.mark.parametrize(
    ("rule", "n_items", "share", "cold", "cached"),
    [
        (LookAhead(1), 64, 1.0, "numpy", "numpy"),
        (LookAhead(1), 10_000, 1.0, "numpy", "numpy"),  # 10,000 levels, of which searches see a few
        (LookAhead(None), 10_000, 1.0, "numpy", "numpy"),
        (AlwaysDescend(), 10_000, 1.0, "numba", "numba"),
        (AlwaysDescend(), 10_000, 0.01, "numpy", "numba"),  # 1.6 s of numpy: less than to compile, more than to load
        (SearchRoot(), 10_000, 1.0, "numpy", "numpy"),
    ],
)
def test_numba_is_chosen_where_it_pays(rule, n_items, share, cold, cached, monkeypatch):
    pytest.importorskip("numba")
    tree = Hierarchy.from_children(chain(n_items), n_items)
    task = task_of(np.random.default_rng(0).standard_normal((n_items, 3)), tree, rule=rule)
    items = np.arange(int(share * n_items))
    for known, expected in ((False, cold), (True, cached)):
        monkeypatch.setattr(_imports, "is_cached", lambda source, name, known=known: known)
        assert dispatch.choose_engine(task, "auto", items) == expected


def test_numpy_time_is_estimated_from_the_searches_that_are_run(monkeypatch):
    """Every search the same: what a sample sees is what all see, and forced searches see all along their paths."""
    n_items = 256
    tree = Hierarchy.from_children(grouped(n_items, 2), n_items)
    pairs = sum(int(tree.sizes[node]) * len(tree.children(node)) for node in range(n_items, tree.n_nodes))
    assert dispatch.similarities_of(tree) == pairs == 2 * n_items * tree.height
    items, per_pair = np.arange(n_items), 4e-8 + 3 * 1e-9
    forced = task_of(np.ones((n_items, 3)), tree)
    most = dispatch.STEP * (tree.height + 1) + per_pair * pairs
    assert dispatch.numpy_seconds(forced, items, 0.0) == pytest.approx(most)
    stops = task_of(
        np.ones((n_items, 3)), tree, rule=LookAhead(1)
    )  # all alike: it sees the root's two children, no more
    assert dispatch.numpy_seconds(stops, items, 1e-3) == pytest.approx(dispatch.STEP + per_pair * 2 * n_items)
    assert dispatch.numpy_seconds(stops, items, 1.0) == pytest.approx(most)  # too little to run a sample


@pytest.mark.parametrize("chosen", [False, True], ids=["beside-the-source", "NUMBA_CACHE_DIR"])
def test_the_cache_is_read_as_numba_writes_it(chosen, tmp_path, monkeypatch):
    numba = pytest.importorskip("numba")
    folder = str(tmp_path / "cache") if chosen else ""
    monkeypatch.setattr(numba.config, "CACHE_DIR", folder)
    monkeypatch.setenv("NUMBA_CACHE_DIR", folder)
    source = tmp_path / "loops.py"
    source.write_text(
        "from pomdp_hier._imports import compiling\n@compiling(no_cfunc_wrapper=True)\ndef one(x):\n    return x\n"
    )
    assert not _imports.is_cached(source, "one")
    spec = importlib.util.spec_from_file_location("loops", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not _imports.is_cached(source, "one")
    assert module.one(1) == 1
    assert _imports.is_cached(source, "one")
    assert not _imports.is_cached(source, "on")
    os.utime(source, (2**31, 2**31))  # changed since
    assert not _imports.is_cached(source, "one")
