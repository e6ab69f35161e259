"""Input and output files of commands, declared by the types of their arguments and kept distinct.

An argument that names a file has the type `input_file` or `output_file`. So every command is checked in one place,
before it starts: no two outputs are one file, and no output is an input.
"""

import argparse
import os
import stat
import sys
import tempfile
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from unicodedata import normalize

from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError

_STREAMS = ("/dev/stdin", "/dev/stdout")  # what - stands for


def input_file(text: str) -> str:
    """Return the path of a file that the command reads; the type of such an argument."""
    return _path(text)


def output_file(text: str) -> str:
    """Return the path of a file that the command writes; the type of such an argument."""
    return _path(text)


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("got an empty path; expected a file. A shell variable may be unset.")
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"got {brief(text)}; expected a path without NUL")
    return text


def file_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a command that name files."""
    return [action for action in parser._actions if action.type in (input_file, output_file)]


def check_apart(options: argparse.Namespace, arguments: list[argparse.Action]) -> None:
    """Raise for two outputs that are one file, and for an output that is an input.

    Args:
        options: The values of the command line.
        arguments: Those of the command that name files.

    Raises:
        ParameterError: Two of them are one file, also by another path, a link, or another case of its letters.
    """
    given = [
        (action.type is output_file, max(action.option_strings, key=len, default=str(action.metavar)), path)
        for action in arguments
        for path in _paths(getattr(options, action.dest))
    ]
    outputs = [(name, path) for is_output, name, path in given if is_output]
    for (name, path), (other, same) in combinations(outputs, 2):
        if same_file(_stream(path, 1), _stream(same, 1)):
            raise ParameterError(f"{name} and {other}: got one file for both, {path}; expected two. Give another path.")
    for name, path in outputs:
        if path != "-" and _takes_standard_output(path):
            raise ParameterError(
                f"{name}: got {path}, where standard output is written to; expected another file. Give another path."
            )
        for is_output, other, source in given:
            if not is_output and same_file(_stream(path, 1), _stream(source, 0)):
                raise ParameterError(
                    f"{name}: got {path}, the same file as the input {other}; expected another. Give another path."
                )


def same_file(one: str, other: str) -> bool:
    """Return whether two paths lead to one file, also by links, ``./``, or a case-insensitive file system.

    Example:
        >>> same_file("x.csv", "./x.csv"), same_file("x.csv", "y.csv"), same_file(os.devnull, os.devnull)
        (True, False, False)
    """
    paths = os.path.realpath(one), os.path.realpath(other)
    if os.devnull in (*paths, one, other):
        return False
    with suppress(OSError, ValueError):
        if os.path.samefile(*paths):
            return True
    folders, names = zip(*map(os.path.split, paths), strict=True)
    try:
        together = folders[0] == folders[1] or os.path.samefile(*folders)
    except (OSError, ValueError):  # no such folder, which the command says
        return False
    return together and (names[0] == names[1] or (_folded(names[0]) == _folded(names[1]) and _ignores_case(folders[0])))


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()


def _ignores_case(folder: str) -> bool:
    """Return whether the folder is case-insensitive."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".case", dir=folder) as probe:
            return Path(folder, Path(probe.name).name.upper()).exists()
    except OSError:
        return False


def _paths(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def _stream(path: str, number: int) -> str:
    return _STREAMS[number] if path == "-" else path


def _takes_standard_output(path: str) -> bool:
    """Return whether the shell writes standard output to this file."""
    with suppress(OSError, AttributeError, ValueError):
        found = os.fstat(sys.stdout.fileno())
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, os.stat(path))
    return False
