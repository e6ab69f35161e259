"""What Ctrl-C does while a command searches for something better: it ends the search, not the process."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ends_search", "may_end_search"]

_searches = 0


@contextmanager
def may_end_search() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in what runs inside, also under ``pomdp-hier``, where it ends the process."""
    global _searches
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    _searches += 1
    try:
        yield
    finally:
        time.sleep(0.01)  # the thread that waits for signals may not yet have asked about one that came just now
        _searches -= 1
        signal.signal(signal.SIGINT, before)


def ends_search(number: int) -> bool:
    """Whether this signal is one that ends a search that runs now.

    Example:
        >>> for _ in range(2):
        ...     with may_end_search():
        ...         print(ends_search(signal.SIGINT))
        True
        True
        >>> ends_search(signal.SIGINT)
        False
    """
    return number == signal.SIGINT and _searches > 0
