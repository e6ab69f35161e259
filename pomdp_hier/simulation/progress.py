"""Progress bars: one that is asked for, or one to go on with."""

from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from pomdp_hier._arguments import check_flag

__all__ = ["shown_progress"]


@contextmanager
def shown_progress(progress: bool | tqdm, what: str, unit: str, total: int | None = None) -> Iterator[tqdm]:
    """Yield a bar on standard error, which shows nothing if none is wanted; a bar that was given is gone on with.

    Example:
        >>> with shown_progress(False, "wait", " steps", total=3) as bar:
        ...     bar.disable
        True
    """
    if isinstance(progress, tqdm):
        yield progress
        return
    check_flag("progress", progress)
    with tqdm(desc=what, unit=unit, total=total, disable=not progress) as bar:
        yield bar
