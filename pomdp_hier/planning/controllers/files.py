"""Policies in the files of other solvers: pomdp-solve's ``.alpha`` and ``.pg``, SARSOP's policy XML.

``.alpha``: for each vector a line with its action's number and a line with its values, then an empty one. ``.pg``: a
line for each node with its number, its action's number, and the next node after each observation, ``-`` for none. XML:
``<Policy><AlphaVector><Vector action=.. obsValue=..>values</Vector>``, or ``SparseVector`` with ``Entry`` elements of a
position and a value. Actions, states and observations are numbered in the order of the ``.pomdp`` file.

XML is read with document types and entities refused, so that a small file cannot expand into a large one.
"""

import math
import os
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier.errors import PolicyFileError
from pomdp_hier.files.writing import write_file
from pomdp_hier.planning.controllers.controller import Controller
from pomdp_hier.planning.controllers.vectors import VectorPolicy
from pomdp_hier.pomdp import POMDP
from pomdp_hier.pomdp.numeric import brief

__all__ = [
    "read_alpha",
    "read_policy_graph",
    "read_policy_xml",
    "write_alpha",
    "write_policy_graph",
    "write_policy_xml",
]

PathLike = str | os.PathLike[str]

_MOST_ENTRIES = 100_000_000  # a file may claim any length for its vectors


def read_alpha(path: PathLike, problem: POMDP | None = None) -> VectorPolicy:
    """Return the policy of a ``.alpha`` file.

    Args:
        path: The file.
        problem: The problem that it should be for.

    Raises:
        PolicyFileError: The file has another form, or is for a problem of another size; the message names the line.
        OSError: The file cannot be read.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from pomdp_hier.problems import tiger
        >>> policy = VectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
        >>> with TemporaryDirectory() as folder:
        ...     write_alpha(policy, f"{folder}/tiger.alpha")
        ...     print(read_alpha(f"{folder}/tiger.alpha", tiger()).vectors.tolist())
        [[-1.0, -1.0], [-100.0, 10.0]]
    """
    name, lines = _lines(path)
    filled = [(i, line.split()) for i, line in enumerate(lines, start=1) if line.strip()]
    if not filled or len(filled) % 2:
        raise PolicyFileError(f"{name}: {len(filled)} lines that are not empty; expected two for each vector")
    actions, vectors = [], []
    for (i, head), (j, values) in zip(filled[::2], filled[1::2], strict=True):
        if len(head) != 1:
            raise PolicyFileError(f"{name}:{i}: {brief(' '.join(head))}; expected the number of an action alone")
        actions.append(_whole(head[0], f"{name}:{i}"))
        vectors.append([_decimal(value, f"{name}:{j}") for value in values])
        if len(vectors[-1]) != len(vectors[0]):
            raise PolicyFileError(f"{name}:{j}: {len(vectors[-1])} values; the vector before has {len(vectors[0])}")
    return _fitting(name, vectors, actions, problem)


def write_alpha(policy: VectorPolicy, path: PathLike) -> None:
    """Write the vectors as a ``.alpha`` file, with numbers that read as the same floats.

    Args:
        policy: Vectors ``[K, S]`` and the positions of their actions.
        path: The file; one that is there is replaced.

    Raises:
        PolicyFileError: A vector is not for every state, which the format cannot say.

    Example:
        See `read_alpha`.
    """
    _refuse_infinite(policy)
    lines = []
    for action, vector in zip(policy.actions.tolist(), policy.vectors.tolist(), strict=True):
        lines += [str(action), " ".join(map(repr, vector)), ""]
    write_file(path, "\n".join(lines) + "\n")


def read_policy_graph(path: PathLike, problem: POMDP, *, start: int = 0) -> Controller:
    """Return the controller of a ``.pg`` file.

    Args:
        path: The file.
        problem: The problem that it is for.
        start: The node to start in, which the file does not say.

    Raises:
        PolicyFileError: The file has another form, or is for a problem of another size; the message names the line.
        OSError: The file cannot be read.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from pomdp_hier.problems import tiger
        >>> listening = Controller(tiger(), np.array([0]), np.array([[0, 0]]))
        >>> with TemporaryDirectory() as folder:
        ...     write_policy_graph(listening, f"{folder}/tiger.pg")
        ...     print(round(read_policy_graph(f"{folder}/tiger.pg", tiger()).value(), 6))
        -20.0
    """
    name, lines = _lines(path)
    compiled = problem.compiled
    rows = [(i, line.split()) for i, line in enumerate(lines, start=1) if line.strip()]
    numbers: dict[int, int] = {}
    for i, words in rows:
        if len(words) != 2 + compiled.n_observations:
            raise PolicyFileError(
                f"{name}:{i}: {len(words)} entries; expected a node, an action and {compiled.n_observations} next nodes"
            )
        node = _whole(words[0], f"{name}:{i}")
        if node in numbers:
            raise PolicyFileError(f"{name}:{i}: node {node} stands there twice")
        numbers[node] = len(numbers)
    if start not in numbers:
        raise PolicyFileError(f"{name}: there is no node {start} to start in, among {len(numbers)}")
    actions, after = [], []
    for i, words in rows:
        actions.append(_whole(words[1], f"{name}:{i}"))
        if actions[-1] >= compiled.n_actions:
            raise PolicyFileError(f"{name}:{i}: action {actions[-1]}; the problem has {compiled.n_actions}, from 0")
        then = [-1 if word == "-" else _whole(word, f"{name}:{i}") for word in words[2:]]
        missing = [node for node in then if node >= 0 and node not in numbers]
        if missing:
            raise PolicyFileError(f"{name}:{i}: there is no node {missing[0]}")
        after.append([numbers.get(node, -1) for node in then])
    return Controller(problem, np.array(actions, dtype=np.int64), np.array(after, dtype=np.int64), numbers[start])


def write_policy_graph(controller: Controller, path: PathLike) -> None:
    """Write the controller as a ``.pg`` file; its start node is the first.

    Args:
        controller: The controller.
        path: The file; one that is there is replaced.

    Raises:
        PomdpHierError: The file cannot be written.

    Example:
        See `read_policy_graph`.
    """
    order = [controller.start, *(k for k in range(len(controller)) if k != controller.start)]
    place = {k: i for i, k in enumerate(order)}
    lines = []
    for k in order:
        then = [str(place[t]) if t >= 0 else "-" for t in controller.after[k].tolist()]
        lines.append(f"{place[k]} {int(controller.actions[k])}  {' '.join(then)}")
    write_file(path, "\n".join(lines) + "\n")


def read_policy_xml(path: PathLike, problem: POMDP | None = None) -> VectorPolicy:
    """Return the policy of one of SARSOP's XML files.

    Args:
        path: The file.
        problem: The problem that it should be for.

    Raises:
        PolicyFileError: The file has another form, has a document type or entities, is about a state that is partly
            observed, or is for a problem of another size.
        OSError: The file cannot be read.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from pomdp_hier.problems import tiger
        >>> policy = VectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
        >>> with TemporaryDirectory() as folder:
        ...     write_policy_xml(policy, f"{folder}/tiger.policy")
        ...     print(read_policy_xml(f"{folder}/tiger.policy", tiger()).vectors.tolist())
        [[-1.0, -1.0], [-100.0, 10.0]]
    """
    name = os.fspath(path)
    reader = _PolicyReader(name)
    reader.read(Path(path).read_bytes())
    if not reader.vectors:
        raise PolicyFileError(f"{name}: no Vector and no SparseVector; expected SARSOP's policy XML")
    return _fitting(name, reader.vectors, reader.actions, problem)


def write_policy_xml(policy: VectorPolicy, path: PathLike) -> None:
    """Write the vectors as SARSOP's policy XML.

    Args:
        policy: Vectors ``[K, S]`` and the positions of their actions.
        path: The file; one that is there is replaced.

    Raises:
        PolicyFileError: A vector is not for every state, which the format cannot say.

    Example:
        See `read_policy_xml`.
    """
    _refuse_infinite(policy)
    n, size = policy.vectors.shape
    lines = [
        '<?xml version="1.0" encoding="ISO-8859-1"?>',
        '<Policy version="0.1" type="value" model="model.pomdp">',
        f'<AlphaVector vectorLength="{size}" numObsValue="1" numVectors="{n}">',
    ]
    for action, vector in zip(policy.actions.tolist(), policy.vectors.tolist(), strict=True):
        lines.append(f'<Vector action="{action}" obsValue="0">{" ".join(map(repr, vector))} </Vector>')
    write_file(path, "\n".join([*lines, "</AlphaVector>", "</Policy>", ""]))


class _PolicyReader:
    """Takes vectors from the elements of the XML, as they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.vectors: list[Floats] = []
        self.actions: list[int] = []
        self._length = 0
        self._open: list[str] = []
        self._text: list[str] = []
        self._entries: list[tuple[int, float]] = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse

    def read(self, content: bytes) -> None:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise PolicyFileError(f"{self.name}:{error.lineno}: {expat.ErrorString(error.code)}") from error
        except PolicyFileError:
            raise
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise PolicyFileError(f"{self.name}: {brief(str(error))}") from error

    @property
    def _where(self) -> str:
        return f"{self.name}:{self._parser.CurrentLineNumber}"

    def _refuse(self, *_: Any) -> None:
        raise PolicyFileError(
            f"{self._where}: a document type or an entity, which no policy file has and none may have"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open.append(tag)
        self._text.clear()
        if len(self._open) > 20:
            raise PolicyFileError(f"{self._where}: elements are nested more than 20 deep")
        if len(self._open) == 1 and tag != "Policy":
            raise PolicyFileError(f"{self._where}: <{brief(tag)}>; expected <Policy>")
        if tag == "AlphaVector":
            self._length = _whole(attributes.get("vectorLength", ""), self._where)
            if self.vectors and self._length != len(self.vectors[0]):
                raise PolicyFileError(
                    f"{self._where}: vectorLength is {self._length}; the vectors before have {len(self.vectors[0])}"
                )
            if attributes.get("numObsValue", "1") != "1":
                raise PolicyFileError(
                    f"{self._where}: the vectors are for {brief(attributes['numObsValue'])} values of an observed "
                    "state; expected a model whose states are all hidden, numObsValue 1"
                )
        if tag in ("Vector", "SparseVector"):
            self.actions.append(_whole(attributes.get("action", ""), self._where))
            self._entries = []
            if (len(self.vectors) + 1) * self._length > _MOST_ENTRIES:
                raise PolicyFileError(f"{self._where}: more than {_MOST_ENTRIES:,} numbers in all")

    def _end(self, tag: str) -> None:
        self._open.pop()
        words = "".join(self._text).split()
        if tag == "Vector":
            self._take(np.array([_decimal(word, self._where) for word in words]))
        elif tag == "Entry":
            if len(words) != 2:
                raise PolicyFileError(f"{self._where}: <Entry> has {len(words)} words; expected a position and a value")
            position = _whole(words[0], self._where)
            if position >= self._length:
                raise PolicyFileError(f"{self._where}: position {position} in a vector of {self._length}")
            self._entries.append((position, _decimal(words[1], self._where)))
        elif tag == "SparseVector":
            vector = np.zeros(self._length)  # takes no memory before it is written to, whatever length a file claims
            for position, value in self._entries:
                vector[position] = value
            self._take(vector)
        self._text.clear()

    def _take(self, vector: Floats) -> None:
        if len(vector) != self._length or not len(vector):
            raise PolicyFileError(f"{self._where}: {len(vector)} values; vectorLength says {self._length}")
        self.vectors.append(vector)


def _lines(path: PathLike) -> tuple[str, list[str]]:
    name = os.fspath(path)
    try:
        return name, Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"{name}: byte {error.start} is no text; expected a text file") from error


def _whole(word: str, where: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 12):
        raise PolicyFileError(f"{where}: {brief(word)} is no number of a node, action or position")
    return int(word)


def _decimal(word: str, where: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise PolicyFileError(f"{where}: {brief(word)} is no finite number")
    return value


def _fitting(name: str, vectors: list[Any], actions: list[int], problem: POMDP | None) -> VectorPolicy:
    if problem is not None:
        compiled = problem.compiled
        if len(vectors[0]) != compiled.n_states or max(actions) >= compiled.n_actions:
            raise PolicyFileError(
                f"{name}: vectors of {len(vectors[0])} states and actions up to {max(actions)}; the problem has "
                f"{compiled.n_states} states and {compiled.n_actions} actions, from 0"
            )
    return VectorPolicy(np.array(vectors), np.array(actions, dtype=np.int64))


def _refuse_infinite(policy: VectorPolicy) -> None:
    if not np.isfinite(policy.vectors).all():
        raise PolicyFileError(
            "vectors: some are not for every state, as an action is not legal; the format has no such"
        )
