"""Which engine runs a task, and running it."""

import importlib.util

import numpy as np

from pomdp_hier._arguments import is_one_of
from pomdp_hier._arrays import Ints
from pomdp_hier._engines import on_numpy
from pomdp_hier._engines.rules import AlwaysDescend, Clairvoyant, LookAhead, SearchRoot
from pomdp_hier._engines.task import Advance, Stops, Task
from pomdp_hier._messages import brief
from pomdp_hier.errors import MissingExtraError, ParameterError, Setting
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.hierarchy.tree import Hierarchy

__all__ = ["choose_engine", "run_engine", "work_of"]

WORTH_LOADING = 1 << 30
"""Multiplications from which ``engine="auto"`` takes numba: about two seconds for numpy and half a second for numba,
which takes a second to load, and three more to compile when it is used for the first time."""


def work_of(hierarchy: Hierarchy, n_columns: int) -> float:
    """Return how many multiplications it takes to compare every item with all children along its own path.

    Example:
        >>> work_of(Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4), 10)
        80.0
    """
    return float(hierarchy.sizes[hierarchy.parent[hierarchy.child_nodes]].sum(dtype=np.float64)) * n_columns


def choose_engine(task: Task, engine: str, work: float | None = None) -> str:
    """Return which engine a task runs on; for ``"auto"`` numba, if it is installed, fits, and there is enough to do.

    Args:
        task: The task.
        engine: ``"auto"``, ``"numpy"`` or ``"numba"``.
        work: What there is to do, where the task is but a part of it; see `work_of`.

    Raises:
        ParameterError: For an unknown engine, or a task that numba cannot run.
        MissingExtraError: If numba is asked for and not installed.
    """
    if not is_one_of(engine, "auto", "numpy", "numba"):
        raise ParameterError(f"engine is {brief(engine)}; expected 'auto', 'numpy', 'numba' or 'generic'")
    if engine == "numpy":
        return engine
    affinity, known = task.affinity, isinstance(task.rule, LookAhead | AlwaysDescend | SearchRoot | Clairvoyant)
    installed = importlib.util.find_spec("numba") is not None
    if engine == "auto":
        if not (installed and known and isinstance(affinity, DenseAffinity)):
            return "numpy"
        work = work_of(task.hierarchy, affinity.centre.size) if work is None else work
        return "numba" if work >= WORTH_LOADING else "numpy"
    if not installed:
        raise MissingExtraError(
            Setting("engine", "numba"), " needs numba; install it with: pip install 'pomdp-hier[fast]'"
        )
    if not (known and isinstance(affinity, DenseAffinity)):
        raise ParameterError(
            Setting("engine", "numba"),
            " runs the built-in policies over dense features with a built-in similarity; use ",
            Setting("engine", "auto", "numpy"),
            " for CSR or precomputed input, and for functions and rules of your own",
        )
    return engine


def run_engine(task: Task, items: Ints, engine: str, advance: Advance) -> Stops:
    """Return where the search for each of these items stops, by the engine of that name."""
    if isinstance(task.rule, SearchRoot):
        advance(len(items))
        return Stops(np.full(len(items), task.hierarchy.root), np.ones(len(items)))
    if engine == "numba":
        from pomdp_hier._engines import on_numba

        return on_numba.run(task, items, advance)
    return on_numpy.run(task, items, advance)
