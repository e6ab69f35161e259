"""The engine behind the scores: every item at once, for every policy that is a stopping rule."""

import importlib.util

from pomdp_hier.errors import MissingExtraError, ParameterError
from pomdp_hier.features.dense import DenseAffinity
from pomdp_hier.features.members import Ints
from pomdp_hier.scorer import on_numpy
from pomdp_hier.scorer.rules import AlwaysDescend, Clairvoyant, LookAhead, SearchRoot
from pomdp_hier.scorer.task import Advance, Stops, Task

__all__ = ["choose_engine", "run_engine"]


def choose_engine(task: Task, engine: str) -> str:
    """Return which engine a task runs on: ``"numba"`` where it is installed and fits, else ``"numpy"``.

    Raises:
        ParameterError: For an unknown engine, or a task that numba cannot run.
        MissingExtraError: If numba is asked for and not installed.
    """
    if engine not in ("auto", "numpy", "numba"):
        raise ParameterError(f"engine is {engine!r}; expected 'auto', 'numpy', 'numba' or 'generic'")
    if engine == "numpy":
        return engine
    installed = importlib.util.find_spec("numba") is not None
    fits = isinstance(task.affinity, DenseAffinity) and isinstance(
        task.rule, LookAhead | AlwaysDescend | SearchRoot | Clairvoyant
    )
    if engine == "auto":
        return "numba" if installed and fits else "numpy"
    if not installed:
        raise MissingExtraError("engine='numba' needs numba; install it with: pip install 'pomdp-hier[fast]'")
    if not fits:
        raise ParameterError(
            "engine='numba' runs the built-in policies over dense features with a built-in similarity; "
            "use engine='auto' or 'numpy' for CSR or precomputed input, and for functions and rules of your own"
        )
    return engine


def run_engine(task: Task, items: Ints, engine: str, advance: Advance) -> Stops:
    """Return where the search for each of these items stops, by the engine of that name."""
    if engine == "numba":
        from pomdp_hier.scorer import on_numba

        return on_numba.run(task, items, advance)
    return on_numpy.run(task, items, advance)
