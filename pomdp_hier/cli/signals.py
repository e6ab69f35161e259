"""Signals during a search: Ctrl-C and SIGTERM end the search, not the process.

The command then writes the result so far, and ends with the code of the signal.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pomdp_hier.cli.exit_codes import ExitCode

HELP = "Ctrl-C and SIGTERM do so at once, and what was found is written"

_searches = 0
_told: list[int] = []  # SIGTERM, once it has ended a search


@contextmanager
def may_end_search() -> Iterator[None]:
    """Let SIGINT and the first SIGTERM end the search inside, by KeyboardInterrupt or its own handler.

    Later ones of SIGTERM change nothing: ``timeout`` and service managers send several, and what was found is still
    to be written. A second SIGINT is a person who will not wait.
    """
    global _searches
    _told.clear()
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _as_interrupt)
    _searches += 1
    try:
        yield
    finally:
        time.sleep(0.01)  # the thread that waits for signals may not yet have asked about one that came just now
        _searches -= 1
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """Call the handler of SIGINT, once."""
    if _told:
        return
    _told.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def spares_process(number: int) -> bool:
    """Return whether this signal ends a running search, or repeats one that did.

    Example:
        >>> with may_end_search():
        ...     print(spares_process(signal.SIGINT), spares_process(signal.SIGTERM))
        True True
        >>> spares_process(signal.SIGINT), spares_process(signal.SIGTERM)
        (False, False)
    """
    return _searches > 0 or number in _told


def exit_code(status: str) -> ExitCode:
    """Return the exit code for the status of a search.

    Example:
        >>> exit_code("interrupted"), exit_code("time")
        (<ExitCode.INTERRUPTED: 130>, <ExitCode.DONE: 0>)
    """
    if status != "interrupted":
        return ExitCode.DONE
    return ExitCode.TOLD_TO_END if _told else ExitCode.INTERRUPTED


def said_to_end() -> str:
    """Return the message for a command that a signal ended without a result."""
    return "told to end" if _told else "interrupted"
