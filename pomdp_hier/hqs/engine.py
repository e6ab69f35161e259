"""The engine behind the scores: every item at once, for every policy that is a stopping rule."""

from pomdp_hier.errors import ParameterError
from pomdp_hier.features.members import Ints
from pomdp_hier.hqs import engine_numpy
from pomdp_hier.hqs.engine_task import Advance, Stops, Task

__all__ = ["choose_engine", "run_engine"]


def choose_engine(task: Task, engine: str) -> str:
    """Returns which engine a task runs on.

    Raises:
        ParameterError: For an unknown engine.
    """
    if engine not in ("auto", "numpy"):
        raise ParameterError(f"engine is {engine!r}; expected 'auto', 'numpy' or 'generic'")
    return "numpy"


def run_engine(task: Task, items: Ints, engine: str, advance: Advance) -> Stops:
    """Returns where the search for each of these items stops, by the engine of that name."""
    return engine_numpy.run(task, items, advance)
