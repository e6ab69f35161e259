"""A checkpoint of a long run over items: finished rows in an SQLite file, so that a killed run loses nothing finished.

What it protects from: a process that is killed, a disk that is full, a machine that goes down (each batch of rows is
written whole or not at all); two runs on one file at once; a file that was cut or changed (SQLite checks its structure,
each row has a checksum, and what rows hold is held against the tree); data or settings of another run.

What it does not protect from: the code of a policy, an updater or a similarity that changed while its name and state
stayed, and globals that it reads. Tell such runs apart by ``policy_version``. A checksum finds accidents, not a forger.
The file grows a ``-journal`` beside it while it is written to; move both or neither.
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
_OTHER = "give another path, or delete the file to start over"
_TABLES = """
    CREATE TABLE run (key TEXT NOT NULL);
    CREATE TABLE rows (
        item INTEGER PRIMARY KEY, value REAL, node INTEGER, probability REAL, reward REAL, checksum INTEGER
    );
"""


class Row(NamedTuple):
    """What the search for one item comes to."""

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
        rows: What was finished so far.

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
            path: Where the file is or will be.
            key: What the run is made of, as `fingerprint` gives it.
            n_items, n_nodes: Of the tree, to hold the rows against.

        Raises:
            CheckpointError: The file belongs to another run, is damaged, is in use, or cannot be opened.
        """
        target = Path(os.path.abspath(path))
        with _told(target):
            connection = sqlite3.connect(target, timeout=0.0, isolation_level=None)
        with closing(connection):
            with _told(target):
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN EXCLUSIVE")
                rows = _read(connection, target, key, n_items, n_nodes)
                connection.execute("COMMIT")
            yield cls(target, connection, rows)

    def append(self, rows: Iterable[Row]) -> None:
        """Write finished rows through to the disk, all of them or none.

        Raises:
            CheckpointError: They cannot be written; what was written before is kept, and the run can be resumed.
        """
        finished = list(rows)
        with _told(self._path), self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", [(*row, row.checksum) for row in finished]
            )
        self.rows.update({row.item: row for row in finished})


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what SQLite says into errors of the package."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from names in a damaged file
        reasons = {
            sqlite3.SQLITE_BUSY: "another process is writing this checkpoint; wait for it, or end it",
            sqlite3.SQLITE_NOTADB: f"is no checkpoint; {_OTHER}",
            sqlite3.SQLITE_FULL: "the disk is full; what was finished is kept, make room and run again",
            sqlite3.SQLITE_CANTOPEN: "cannot be opened or made; give the path of a file in a folder that exists",
            sqlite3.SQLITE_READONLY: "cannot be written; give another path",
        }
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise CheckpointError(f"{path}: {reasons.get(code, f'is damaged ({error}); {_OTHER}')}") from error


def _read(connection: sqlite3.Connection, path: Path, key: str, n_items: int, n_nodes: int) -> dict[int, Row]:
    """Return the rows by item; a new file gets its tables."""

    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    if not pragma("page_count") or not pragma("schema_version"):
        if os.path.getsize(path) > 0 and pragma("page_count"):
            raise CheckpointError(f"{path}: is an SQLite file without a checkpoint; {_OTHER}")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement)
        connection.execute("INSERT INTO run VALUES (?)", (key,))
        return {}
    if pragma("application_id") != _APPLICATION:
        raise CheckpointError(f"{path}: is an SQLite file, but no checkpoint; {_OTHER}")
    if pragma("user_version") != _FORMAT:
        raise CheckpointError(f"{path}: is a checkpoint of format {pragma('user_version')}; expected {_FORMAT}")
    if (found := pragma("integrity_check")) != "ok":
        raise CheckpointError(f"{path}: is damaged ({found}); {_OTHER}")
    keys = [row[0] for row in connection.execute("SELECT key FROM run")]
    if keys != [key]:
        raise CheckpointError(
            f"{path}: belongs to a run on other data or settings (its key is {brief(keys[0] if keys else None)[:14]}, "
            f"this run's is {key[:12]}); {_OTHER}"
        )
    rows: dict[int, Row] = {}
    for *fields, checksum in connection.execute("SELECT item, value, node, probability, reward, checksum FROM rows"):
        row = Row(*fields)
        if not _possible(row, n_items, n_nodes) or row.checksum != checksum:
            raise CheckpointError(f"{path}: the row of item {brief(row.item)} is damaged; {_OTHER}")
        rows[row.item] = row
    return rows


def _possible(row: Row, n_items: int, n_nodes: int) -> bool:
    """Whether a row can come from a search in a tree of this size."""
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
    """Return a hexadecimal key of data and settings: equal where all parts are, in any process.

    Arrays are told apart by what they hold; other objects by their class's name and what they are pickled to.

    Args:
        policy_version: Tells apart what the parts' classes and functions do.
        **parts: Data and settings.

    Raises:
        MissingExtraError: If joblib is not installed.
        ParameterError: For a part that cannot be pickled, where there is no ``policy_version`` to tell it apart.

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
                    f"{name}: {brief(part)} cannot be told apart from another of its kind ({error}); say what it is "
                    "with policy_version, a text that changes with its code, or define it at the top of a module"
                ) from error
            hashes[name] = f"{type(part).__module__}.{type(part).__qualname__}"
    return str(joblib.hash((policy_version, sorted(hashes.items())), hash_name="sha1"))
