"""Exit codes of the command line."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of a command; for a signal 128 plus its number, as in shells."""

    DONE = 0
    CANNOT_BE_DONE = 1
    WRONG_USAGE = 2
    CHECK_FAILED = 3
    INTERRUPTED = 130
    READER_GONE = 141
    TOLD_TO_END = 143
