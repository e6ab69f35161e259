"""The process of ``pomdp-hier``, also as ``python -m pomdp_hier``, which a signal can end at any moment.

Python hands a signal to the main thread. Inside numpy's import it would come out as another error, inside a loop of
numba it would wait. So a separate thread waits for signals and ends the process.
"""

import contextlib
import os
import signal
import sys
import threading


def main() -> int:
    """Return the exit code of the command line; SIGINT ends it with 130, SIGTERM with 143."""
    _end_on_signals()
    from pomdp_hier.cli import main as run

    code = run()
    if code == 128 + signal.SIGTERM:  # its results are written; a second one would end the process with another code
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return code


def _end_on_signals() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(reader,), daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # what counts is that Python writes its number to the pipe


def _wait(reader: int) -> None:
    """End the process on the first signal, without partial files."""
    number = 0
    while number not in (signal.SIGINT, signal.SIGTERM) or _is_spared(number):
        number = os.read(reader, 1)[0]
    try:
        # While that module is not loaded, or only half of it, there is no draft.
        remove_drafts = getattr(sys.modules.get("pomdp_hier._io.writing"), "remove_drafts", None)
        if remove_drafts is not None:
            remove_drafts()
        what = b"interrupted" if number == signal.SIGINT else b"told to end"
        with contextlib.suppress(OSError):  # standard error is closed
            os.write(2, b"pomdp-hier: " + what + b"\n")
    finally:
        os._exit(128 + number)


def _is_spared(number: int) -> bool:
    """Return whether this signal ends the search of a command, not the process."""
    spares_process = getattr(sys.modules.get("pomdp_hier.cli.console"), "spares_process", None)
    return spares_process is not None and spares_process(number)


if __name__ == "__main__":
    sys.exit(main())
