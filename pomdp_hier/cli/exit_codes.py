"""The exit codes of ``pomdp-hier``."""

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """How a command ended; a signal adds 128 to its number, as shells do."""

    DONE = 0
    CANNOT_BE_DONE = 1
    WRONG_USAGE = 2
    CHECK_FAILED = 3
    INTERRUPTED = 130
    READER_GONE = 141
    TOLD_TO_END = 143
