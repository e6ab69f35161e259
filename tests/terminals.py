"""Commands that run on a pseudo-terminal, and are told to stop when their progress bar shows that they work."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path


def stopped_when_shown(
    command: Sequence[str], pattern: str, number: int, folder: Path
) -> tuple[int, bytes, re.Match[str]]:
    """Return the exit code, what was printed, and the match in the progress bar at which the signal was sent."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = ""
    while not (found := re.search(pattern, shown)):
        shown += os.read(ours, 4096).decode(errors="replace")
    process.send_signal(number)
    printed = process.communicate(timeout=60)[0]
    os.close(ours)
    return process.returncode, printed, found
