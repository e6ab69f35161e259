"""What is told while a problem is explored, compiled or checked: a bar on a terminal, once that has taken a while."""

from typing import Any

from tqdm import tqdm

# Seconds without a word; most problems are done before.
PATIENCE = 2.0


def slow_work(what: str, unit: str, total: int | None = None) -> "tqdm[Any]":
    """Return a bar to count work on, which shows itself on a terminal's standard error once `PATIENCE` is over.

    Example:
        >>> with slow_work("exploring", "states") as bar:
        ...     bar.update()
    """
    return tqdm(desc=what, unit=f" {unit}", total=total, delay=PATIENCE, disable=None, leave=False)
