"""``python -m pomdp_hier`` is ``pomdp-hier``; what interrupts it, or tells it to end, does so at any moment.

Python hands a signal to the main thread, which may be inside numpy's import, where it comes out as another error, or
inside a loop of numba, where it waits. So a thread of its own waits for signals, and ends the process.
"""

import contextlib
import os
import signal
import sys
import threading


def main() -> int:
    """Return the exit code of the process's command line, which signals can end: 130 for SIGINT, 143 for SIGTERM."""
    _end_on_signals()
    from pomdp_hier.cli import main as run

    return run()


def _end_on_signals() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(reader,), daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # what counts is that Python writes its number to the pipe


def _wait(reader: int) -> None:
    """End the process on the first signal, with nothing half-written."""
    number = 0
    while number not in (signal.SIGINT, signal.SIGTERM) or _is_spared(number):
        number = os.read(reader, 1)[0]
    try:
        # Nothing is there, and no draft either, while that module is not loaded, or only half of it.
        remove_drafts = getattr(sys.modules.get("pomdp_hier._io.writing"), "remove_drafts", None)
        if remove_drafts is not None:
            remove_drafts()
        what = b"interrupted" if number == signal.SIGINT else b"told to end"
        with contextlib.suppress(OSError):  # nobody listens
            os.write(2, b"pomdp-hier: " + what + b"\n")
    finally:
        os._exit(128 + number)


def _is_spared(number: int) -> bool:
    """Whether a command that searches for something better takes this signal for the end of the search."""
    spares_process = getattr(sys.modules.get("pomdp_hier.cli.signals"), "spares_process", None)
    return spares_process is not None and spares_process(number)


if __name__ == "__main__":
    sys.exit(main())
