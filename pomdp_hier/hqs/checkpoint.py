"""A checkpoint of a long run over items: finished rows, appended so that nothing that breaks off does harm.

The file is text. Its first line says which data and settings it belongs to; each further line is one finished row with
its own checksum. A last line that was cut off (the process was killed, the disk was full) is dropped when the file is
opened again; any other damage is refused.
"""

import dis
import hashlib
import json
import os
import re
import sys
import types
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from pomdp_hier.errors import CheckpointError

__all__ = ["Checkpoint", "describe", "fingerprint"]

_FORMAT = "pomdp-hier checkpoint 1"
_DEEPEST = 16
_ABOUT_THE_TEXT = {"__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__"}
_KNOWN = sys.stdlib_module_names | {"pomdp_hier", "numpy", "scipy", "pomdp_py", "networkx"} - {"__main__"}
_DATA = (str, bytes, bool, int, float, complex, np.generic, np.ndarray, tuple, frozenset)


class Checkpoint:
    """The finished rows of a run, by item.

    Args:
        path: Where the file is or will be.
        key: What the run is made of, as `fingerprint` gives it.

    Raises:
        CheckpointError: The file belongs to another run, is damaged, or is in use.
        OSError: It cannot be read or written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Checkpoint.open(folder.name + "/run", "abc") as checkpoint:
        ...     checkpoint.append([{"item": 3, "value": 0.1}])
        >>> with Checkpoint.open(folder.name + "/run", "abc") as checkpoint:
        ...     checkpoint.rows
        {3: {'item': 3, 'value': 0.1}}
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, file: BinaryIO, rows: dict[int, dict[str, Any]]) -> None:
        self.path = path
        self.rows = rows
        self._file = file

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str], key: str) -> Iterator["Checkpoint"]:
        """Yield the checkpoint at the path, new or resumed, locked against other processes until the block ends."""
        target = Path(path)
        with open(target, "a+b", buffering=0) as file:
            _lock(file, target)
            file.seek(0)
            content = file.read()
            rows, good = _parse(content, key, target)
            if good < len(content):
                file.truncate(good)
            if good == 0:
                _write(file, _line(_header(key)))
            yield cls(target, file, rows)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write finished rows, each with its ``"item"``, through to the disk.

        Raises:
            OSError: The disk is full; what was written before is kept, and the run can be resumed.
        """
        finished = [dict(row) for row in rows]
        _write(self._file, b"".join(map(_line, finished)))
        self.rows.update({row["item"]: row for row in finished})


def _header(key: str) -> dict[str, str]:
    return {"format": _FORMAT, "key": key}


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on Windows; two runs on one file are then the user's to avoid
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CheckpointError(f"{path}: another process is writing this checkpoint; wait for it, or end it") from error


def _line(record: Mapping[str, Any]) -> bytes:
    body = json.dumps(record, separators=(",", ":"), sort_keys=True).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _write(file: BinaryIO, content: bytes) -> None:
    end = file.seek(0, os.SEEK_END)
    view = memoryview(content)
    try:
        while view:  # an unbuffered write may take a part only
            view = view[file.write(view) or 0 :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(end)  # no half line stays in front of what a caller may yet append
        raise


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the line's record, ``None`` if it is not whole."""
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
        return None
    record: dict[str, Any] = json.loads(body)
    return record


def _parse(content: bytes, key: str, path: Path) -> tuple[dict[int, dict[str, Any]], int]:
    """Return the rows by item, and how many bytes of the file are whole lines."""
    lines = content.splitlines(keepends=True)
    rows: dict[int, dict[str, Any]] = {}
    good = 0
    for number, line in enumerate(lines):
        record = _record(line)
        if record is None:
            if number == len(lines) - 1 and (number > 0 or _line(_header(key)).startswith(line)):
                break  # cut off while it was written
            raise CheckpointError(
                f"{path}: line {number + 1} is damaged or not of a checkpoint; give another path, or delete the file"
            )
        if number == 0:
            if record.get("format") != _FORMAT:
                raise CheckpointError(f"{path}: written in the format {record.get('format')!r}; expected {_FORMAT!r}")
            if record.get("key") != key:
                raise CheckpointError(
                    f"{path}: belongs to a run on other data or settings (its key is {str(record.get('key'))[:12]}, "
                    f"this run's is {key[:12]}); give another path, or delete the file to start over"
                )
        elif "item" not in record:
            raise CheckpointError(f"{path}: line {number + 1} holds no item; give another path, or delete the file")
        else:
            rows[int(record["item"])] = record
        good += len(line)
    return rows, good


def fingerprint(**parts: Any) -> str:
    """Return a hexadecimal key of data and settings: equal where all parts are, in any process.

    Example:
        >>> fingerprint(X=np.zeros(3), delta=0.1) == fingerprint(delta=0.1, X=np.zeros(3))
        True
        >>> fingerprint(X=np.zeros(3), delta=0.1) == fingerprint(X=np.zeros(3), delta=0.2)
        False
    """
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(f"{name}={describe(parts[name])};".encode())
    return digest.hexdigest()


def describe(value: Any) -> str:
    """Return text that tells settings apart and is the same in every process: no addresses, arrays by checksum.

    An object is described by its state and by the code of its class, a function by its code; both with what they take
    from around them.

    Example:
        >>> class Rule:
        ...     def __init__(self, level):
        ...         self.level = level
        >>> describe(Rule(2)) == describe(Rule(2)), describe(Rule(2)) == describe(Rule(3))
        (True, False)
    """
    return _Describer().text(value)


class _Describer:
    """Describes a value; of a function or class that comes again, the name is enough."""

    def __init__(self) -> None:
        self._seen: set[Any] = set()
        self._within: list[Any] = []

    def text(self, value: Any, depth: int = 0) -> str:
        """Return what `describe` returns."""
        if value is None or isinstance(value, (str, bytes, bool, int, float, complex, np.generic)):
            return f"{type(value).__name__}:{value!r}"
        if isinstance(value, np.ndarray):
            return self._array(value, depth)
        if sparse.issparse(value):
            rows = sparse.csr_array(value)
            return f"csr{rows.shape}:{self._inside([rows.indptr, rows.indices, rows.data], depth)}"
        if isinstance(value, np.random.Generator):
            return self.text(value.bit_generator.state, depth + 1)
        if isinstance(value, types.CodeType):
            return f"code:{value.co_code.hex()}{value.co_names}{self.text(value.co_consts, depth + 1)}"
        if depth > _DEEPEST:
            return f"{type(value).__qualname__}:..."
        if isinstance(value, Mapping):
            pairs = (f"{self.text(key, depth + 1)}:{self.text(entry, depth + 1)}" for key, entry in value.items())
            return "{" + ",".join(sorted(pairs)) + "}"
        if isinstance(value, (set, frozenset)):
            return "{" + ",".join(sorted(self.text(entry, depth + 1) for entry in value)) + "}"
        if isinstance(value, (list, tuple)):
            return self._inside(value, depth)
        if isinstance(value, types.FunctionType):
            return self._function(value, depth)
        if isinstance(value, type):
            return self._class(value, depth)
        if isinstance(value, types.MethodType):
            return self._inside([value.__func__, value.__self__], depth)
        if any(value is outer for outer in self._within):
            return f"{type(value).__qualname__}:around"
        self._within.append(value)
        told = self._object(value, depth)
        self._within.pop()
        return told

    def _inside(self, values: Iterable[Any], depth: int) -> str:
        return "[" + ",".join(self.text(value, depth + 1) for value in values) + "]"

    def _array(self, array: np.ndarray[Any, Any], depth: int) -> str:
        if array.dtype == object:
            return f"array{array.shape}:{self.text(array.ravel().tolist(), depth + 1)}"
        return f"array{array.shape}{array.dtype.str}:{hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()}"

    def _function(self, function: types.FunctionType, depth: int) -> str:
        name = f"{function.__module__}.{function.__qualname__}"
        if function in self._seen:
            return name
        self._seen.add(function)
        cells = [_content(cell) for cell in function.__closure__ or ()]
        used = _names(function.__code__) - _assigned(function.__code__)
        around = {key: function.__globals__[key] for key in used if key in function.__globals__}
        told = {key: entry for key, entry in around.items() if _tells(entry)}
        inside = [function.__code__, function.__defaults__, function.__kwdefaults__, cells, told]
        return name + self._inside(inside, depth)

    def _class(self, kind: type, depth: int) -> str:
        """Return the class's name, and, if it is a user's, its attributes and those of the classes it comes from."""
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind in self._seen or not _tells(kind):
            return name
        self._seen.add(kind)
        attributes = {key: _bare(entry) for key, entry in vars(kind).items() if key not in _ABOUT_THE_TEXT}
        codes = [entry.__code__ for entry in attributes.values() if isinstance(entry, types.FunctionType)]
        counted = set().union(*map(_assigned, codes))
        told = {key: entry for key, entry in attributes.items() if key not in counted and _tells(entry)}
        return name + self._inside([told, kind.__bases__], depth)

    def _object(self, value: Any, depth: int) -> str:
        kind = self._class(type(value), depth)
        if isinstance(value, partial):
            return kind + self._inside([value.func, value.args, value.keywords], depth)
        # What an object says of itself when it is pickled leaves out what it has only remembered.
        if "__reduce__" in vars(type(value)):
            return kind + self.text(value.__reduce__(), depth + 1)
        state = value.__getstate__() if hasattr(value, "__dict__") or hasattr(type(value), "__slots__") else None
        if state:
            return kind + self.text(state, depth + 1)
        return f"{kind}:{re.sub(r'0x[0-9a-fA-F]+', '', repr(value))}"


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> set[str]:
    """Return the global names that a function's code uses, and those of the functions written inside of it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _assigned(code: types.CodeType) -> set[str]:
    """Return attributes and globals that a function's code assigns: what a run counts or remembers, and no setting."""
    stores = {step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_ATTR", "STORE_GLOBAL")}
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return stores.union(*map(_assigned, inner))


def _bare(attribute: Any) -> Any:
    """Return the function behind a class's attribute."""
    if isinstance(attribute, (staticmethod, classmethod)):
        return attribute.__func__
    if isinstance(attribute, cached_property):
        return attribute.func
    return attribute.fget if isinstance(attribute, property) else attribute


def _tells(value: Any) -> bool:
    """Whether a value beside the code is a part of the settings: data, or code that comes with no library.

    Dicts, lists and sets are left out: they may be what a run remembers.
    """
    if isinstance(value, _DATA):
        return True
    if isinstance(value, (types.FunctionType, type)):
        return (value.__module__ or "").partition(".")[0] not in _KNOWN
    return False
