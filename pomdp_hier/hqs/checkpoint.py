"""Checkpoint of a long run over items: finished rows in an SQLite file.

It protects against killed processes, full disks and power failures: each batch of rows is written completely or not at
all. It detects concurrent runs on one file, truncated or changed files, and data or settings of another run. SQLite
checks the structure, each row has a checksum, and rows are checked against the tree.

It does not detect changed code of a policy, updater or similarity with the same name and state, or changed globals.
Distinguish such runs by ``policy_version``. A checksum detects damage, not forgery. While it is written, the file has a
``-journal`` beside it; move both or neither.
"""

import math
import os
import pickle
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pomdp_hier._imports import from_extra
from pomdp_hier._text import brief
from pomdp_hier.errors import CheckpointError, ParameterError

_APPLICATION, _FORMAT = 0x484F5353, 1
_OTHER = "Pass another path, or delete the file to start again."
_TABLES = """
    CREATE TABLE run (key TEXT NOT NULL);
    CREATE TABLE rows (
        item INTEGER PRIMARY KEY, value REAL, node INTEGER, probability REAL, reward REAL, checksum INTEGER
    );
"""


class Row(NamedTuple):
    """The result of the search for one item."""

    item: int
    value: float
    node: int
    probability: float
    reward: float

    @property
    def checksum(self) -> int:
        """The CRC-32 of its bits."""
        return zlib.crc32(struct.pack("<qdqdd", *self))


class Checkpoint:
    """The finished rows of a run, by item.

    Attributes:
        rows: The finished rows.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Checkpoint.open(folder.name + "/run", "abc", n_items=4, n_nodes=7) as checkpoint:
        ...     checkpoint.append([Row(3, 0.5, 4, 1.0, 0.5)])
        >>> with Checkpoint.open(folder.name + "/run", "abc", n_items=4, n_nodes=7) as checkpoint:
        ...     checkpoint.rows
        {3: Row(item=3, value=0.5, node=4, probability=1.0, reward=0.5)}
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, rows: dict[int, Row]) -> None:
        self.rows = rows
        self._path, self._connection = path, connection

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str], key: str, n_items: int, n_nodes: int) -> Iterator["Checkpoint"]:
        """Yield the checkpoint at the path, new or resumed, locked against other processes until the block ends.

        Args:
            path: The file.
            key: The `fingerprint` of the run.
            n_items, n_nodes: Sizes of the tree, to check the rows.

        Raises:
            CheckpointError: The file belongs to another run, is damaged, is in use, or cannot be opened.
        """
        target = Path(os.path.abspath(path))
        with _sqlite_errors(target):
            connection = sqlite3.connect(target, timeout=0.0, isolation_level=None)
        with closing(connection):
            with _sqlite_errors(target):
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN EXCLUSIVE")
                rows = _read(connection, target, key, n_items, n_nodes)
                connection.execute("COMMIT")
            yield cls(target, connection, rows)

    def append(self, rows: Iterable[Row]) -> None:
        """Write finished rows to the disk, all or none.

        Raises:
            CheckpointError: They cannot be written. Earlier rows stay, and the run can be resumed.
        """
        finished = list(rows)
        with _sqlite_errors(self._path), self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", [(*row, row.checksum) for row in finished]
            )
        self.rows.update({row.item: row for row in finished})


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite to errors of the package."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from names in a damaged file
        reasons = {
            sqlite3.SQLITE_BUSY: "another process is writing this file. Wait for it, or end it.",
            sqlite3.SQLITE_NOTADB: f"the file is not a checkpoint. {_OTHER}",
            sqlite3.SQLITE_FULL: "the disk is full; finished rows are kept. Free disk space, and run again.",
            sqlite3.SQLITE_CANTOPEN: "the file cannot be opened or created. Pass a path in an existing folder.",
            sqlite3.SQLITE_READONLY: "the file cannot be written. Pass another path.",
        }
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise CheckpointError(f"{path}: {reasons.get(code, f'the file is damaged ({error}). {_OTHER}')}") from error


def _read(connection: sqlite3.Connection, path: Path, key: str, n_items: int, n_nodes: int) -> dict[int, Row]:
    """Return the rows by item; create the tables of a new file."""

    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    if not pragma("page_count") or not pragma("schema_version"):
        if os.path.getsize(path) > 0 and pragma("page_count"):
            raise CheckpointError(f"{path}: got an SQLite file; expected a checkpoint. {_OTHER}")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement)
        connection.execute("INSERT INTO run VALUES (?)", (key,))
        return {}
    if pragma("application_id") != _APPLICATION:
        raise CheckpointError(f"{path}: got another SQLite file; expected a checkpoint. {_OTHER}")
    if pragma("user_version") != _FORMAT:
        raise CheckpointError(f"{path}: got checkpoint format {pragma('user_version')}; expected {_FORMAT}. {_OTHER}")
    if (found := pragma("integrity_check")) != "ok":
        raise CheckpointError(f"{path}: the file is damaged ({found}). {_OTHER}")
    keys = [row[0] for row in connection.execute("SELECT key FROM run")]
    if keys != [key]:
        raise CheckpointError(
            f"{path}: got a run on other data or settings, key {brief(keys[0] if keys else None)[:14]}; "
            f"expected key {key[:12]}. {_OTHER}"
        )
    rows: dict[int, Row] = {}
    for *fields, checksum in connection.execute("SELECT item, value, node, probability, reward, checksum FROM rows"):
        row = Row(*fields)
        if not _possible(row, n_items, n_nodes) or row.checksum != checksum:
            raise CheckpointError(f"{path}: the row of item {brief(row.item)} is damaged. {_OTHER}")
        rows[row.item] = row
    return rows


def _possible(row: Row, n_items: int, n_nodes: int) -> bool:
    """Return whether a search in a tree of this size can have this result."""
    if [type(field) for field in row] != [int, float, int, float, float]:
        return False
    slack = 1e-9
    return (
        0 <= row.item < n_items
        and 0 <= row.node < n_nodes
        and -slack <= row.probability <= 1 + slack
        and -1 - slack <= row.value <= row.reward + slack
        and math.isfinite(row.reward)
    )


def fingerprint(policy_version: str | None = None, **parts: Any) -> str:
    """Return a hexadecimal key of data and settings: equal in any process if all parts are equal.

    Arrays are distinguished by their values, other objects by class name and pickle.

    Args:
        policy_version: Version of the code of the parts.
        **parts: Data and settings.

    Raises:
        MissingExtraError: If joblib is not installed.
        ParameterError: A part cannot be pickled, and there is no ``policy_version``.

    Example:
        >>> import numpy as np
        >>> fingerprint(X=np.zeros(3), delta=0.1) == fingerprint(delta=0.1, X=np.zeros(3))
        True
        >>> fingerprint(X=np.zeros(3), delta=0.1) == fingerprint(X=np.zeros(3), delta=0.2)
        False
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
