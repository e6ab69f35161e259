"""Checkpoint of a long run: finished rows in an SQLite file.

It protects against killed processes, full disks and power failures: each batch of rows is written completely or not at
all. It detects concurrent runs on one file, truncated or changed files, and data or settings of another run. SQLite
checks the structure, each row has a checksum, and the run checks that each row is possible.

It does not detect changed code of a policy, updater or similarity with the same name and state, or changed globals.
Distinguish such runs by ``policy_version``. A checksum detects damage, not forgery. While it is written, the file has a
``-journal`` beside it; move both or neither.
"""

import dataclasses
import os
import pickle
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from pomdp_hier._arguments import check_path
from pomdp_hier._imports import from_extra
from pomdp_hier._text import brief
from pomdp_hier.errors import CheckpointError, ParameterError

_APPLICATION, _FORMAT = 0x484F5353, 1
OTHER_FILE = "Pass another path, or delete the file to start again."
_SQL = {int: "INTEGER", float: "REAL", bytes: "BLOB", str: "TEXT"}
_PACK: Mapping[type, Callable[[Any], bytes]] = {
    int: lambda field: struct.pack("<q", field),
    float: lambda field: struct.pack("<d", field),
    bytes: lambda field: struct.pack("<q", len(field)) + field,
    str: lambda field: struct.pack("<q", len(field)) + field.encode(),
}

Row = TypeVar("Row", bound=tuple[Any, ...])


class Checkpoint(Generic[Row]):
    """The finished rows of a run, by their first field.

    Attributes:
        rows: The finished rows.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, rows: dict[Any, Row]) -> None:
        self.rows = rows
        self._path, self._connection = path, connection

    @classmethod
    @contextmanager
    def open(
        cls, path: str | os.PathLike[str], key: str, kind: type[Row], possible: Callable[[Row], bool]
    ) -> Iterator["Checkpoint[Row]"]:
        """Yield the checkpoint at the path, new or resumed, locked against other processes until the block ends."""
        check_path("checkpoint", path)
        target = Path(os.path.abspath(path))
        with _sqlite_errors(target):
            connection = sqlite3.connect(target, timeout=0.0, isolation_level=None)
        with closing(connection):
            with _sqlite_errors(target):
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN EXCLUSIVE")
                rows = _read(connection, target, key, kind, possible)
                connection.execute("COMMIT")
            if os.path.exists(f"{target}-journal"):  # of a killed process; a write lets SQLite delete it on closing
                with suppress(sqlite3.Error):  # such as a full disk, on which the rows can still be read
                    connection.execute(f"PRAGMA user_version = {_FORMAT}")
            yield cls(target, connection, rows)

    def append(self, rows: Iterable[Row]) -> None:
        """Write finished rows to the disk, all or none."""
        self._write(list(rows))

    def replace(self, rows: Iterable[Row]) -> None:
        """Write rows in place of all earlier ones, all or none."""
        self._write(list(rows), "DELETE FROM rows")

    def _write(self, finished: list[Row], before: str | None = None) -> None:
        marks = ", ".join("?" * (1 + len(finished[0]))) if finished else ""
        with _sqlite_errors(self._path), self._connection:
            self._connection.execute("BEGIN")
            if before is not None:
                self._connection.execute(before)
            self._connection.executemany(
                f"INSERT INTO rows VALUES ({marks})", [(*row, _checksum(row)) for row in finished]
            )
        self.rows = {**({} if before else self.rows), **{row[0]: row for row in finished}}


def _checksum(row: tuple[Any, ...]) -> int:
    """Return the CRC-32 of the bits of a row."""
    return zlib.crc32(b"".join(_PACK[type(field)](field) for field in row))


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite to errors of the package."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:  # the second from names in a damaged file
        reasons = {
            sqlite3.SQLITE_BUSY: "got a file in use; expected a free one. Wait for the other process, or end it.",
            sqlite3.SQLITE_NOTADB: f"got another file; expected a checkpoint. {OTHER_FILE}",
            sqlite3.SQLITE_FULL: "got a full disk, which keeps the finished rows. Free disk space, and run again.",
            sqlite3.SQLITE_CANTOPEN: "got no file; expected one in an existing folder. Pass the path of one.",
            sqlite3.SQLITE_TOOBIG: "got an array above the 1 GB of SQLite. Solve with a lower memory_limit.",
            sqlite3.SQLITE_READONLY: "got a read-only file; expected one that can be written. Pass another path.",
        }
        too_big_for_python = sqlite3.SQLITE_TOOBIG if isinstance(error, OverflowError) else 0  # from 2 GB on
        code = getattr(error, "sqlite_errorcode", too_big_for_python) & 0xFF
        damaged = f"got a damaged file ({error}); expected a checkpoint. {OTHER_FILE}"
        raise CheckpointError(f"{path}: {reasons.get(code, damaged)}") from error


def _read(
    connection: sqlite3.Connection, path: Path, key: str, kind: type[Row], possible: Callable[[Row], bool]
) -> dict[Any, Row]:
    """Return the rows by their first field; create the tables of a new file."""
    columns = get_type_hints(kind)
    named = ", ".join(f'"{name}"' for name in columns)

    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    if not pragma("page_count") or not pragma("schema_version"):
        if os.path.getsize(path) > 0 and pragma("page_count"):
            raise CheckpointError(f"{path}: got an SQLite file; expected a checkpoint. {OTHER_FILE}")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        first, *rest = (f'"{name}" {_SQL[field]}' for name, field in columns.items())
        connection.execute("CREATE TABLE run (key TEXT NOT NULL)")
        connection.execute(f"CREATE TABLE rows ({first} PRIMARY KEY, {', '.join(rest)}, checksum INTEGER)")
        connection.execute("INSERT INTO run VALUES (?)", (key,))
        return {}
    if pragma("application_id") != _APPLICATION:
        raise CheckpointError(f"{path}: got another SQLite file; expected a checkpoint. {OTHER_FILE}")
    if pragma("user_version") != _FORMAT:
        raise CheckpointError(
            f"{path}: got checkpoint format {pragma('user_version')}; expected {_FORMAT}. {OTHER_FILE}"
        )
    if (found := pragma("integrity_check")) != "ok":
        raise CheckpointError(f"{path}: got a damaged file ({found}); expected a checkpoint. {OTHER_FILE}")
    keys = [row[0] for row in connection.execute("SELECT key FROM run")]
    if keys != [key]:
        raise CheckpointError(
            f"{path}: got a run on other data or settings, key {brief(keys[0] if keys else None)[:14]}; "
            f"expected key {key[:12]}. {OTHER_FILE}"
        )
    rows: dict[Any, Row] = {}
    for *fields, checksum in connection.execute(f"SELECT {named}, checksum FROM rows"):
        row = kind(*fields)
        typed = [type(field) for field in row] == list(columns.values())
        if not typed or _checksum(row) != checksum or not possible(row):
            where = f"{next(iter(columns))} {brief(row[0])}"
            raise CheckpointError(f"{path}: got a damaged row of {where}; expected a checkpoint. {OTHER_FILE}")
        rows[row[0]] = row
    return rows


def stable_text(value: Any) -> str:
    """Return the `repr` of a value, equal in any process: elements of sets in the order of their texts.

    Example:
        >>> stable_text((1, frozenset({"pear", "apple"})))
        "(1, {'apple', 'pear'})"
    """
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(stable_text, value)))}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(stable_text, value))})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        cells = (f"{field.name}={stable_text(getattr(value, field.name))}" for field in dataclasses.fields(value))
        return f"{type(value).__qualname__}({', '.join(cells)})"
    return repr(value)


def fingerprint(policy_version: str | None = None, **parts: Any) -> str:
    """Return a hexadecimal key of data and settings: equal in any process if all parts are equal.

    Arrays are distinguished by their values, other objects by class name and pickle.
    """
    joblib = from_extra("parallel", "joblib", "checkpoint needs joblib")
    hashes = {}
    for name, part in parts.items():
        try:
            hashes[name] = joblib.hash(part, hash_name="sha1", coerce_mmap=True)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            if policy_version is None:
                raise ParameterError(
                    f"{name}: got {brief(part)}, which cannot be pickled ({error}); expected an object that can be. "
                    "Pass policy_version, a text that changes with its code, or define it at the top of a module."
                ) from error
            hashes[name] = f"{type(part).__module__}.{type(part).__qualname__}"
    return str(joblib.hash((policy_version, sorted(hashes.items())), hash_name="sha1"))
