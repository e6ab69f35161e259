"""Policies in the files of other solvers: pomdp-solve's ``.alpha`` and ``.pg``, SARSOP's policy XML.

``.alpha``: for each vector a line with its action's number and a line with its values, then an empty one. ``.pg``: a
line for each node with its number, its action's number, and the next node after each observation, ``-`` for none. XML:
``<Policy><AlphaVector><Vector action=.. obsValue=..>values</Vector>``, or ``SparseVector`` with ``Entry`` elements of a
position and a value. Actions, states and observations are numbered in the order of the ``.pomdp`` file.

XML is read with document types and entities refused, so that a small file cannot expand into a large one.
"""

import math
import os
import re
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier._io.memory import memory_available
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import PolicyFileError
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.controllers.exact_values import AlphaVectorPolicy
from pomdp_hier.pomdp import POMDP

PathLike = str | os.PathLike[str]

_MOST_ENTRIES = 100_000_000  # a file may claim any length for its vectors
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # not all that Python takes for a number


def read_alpha(path: PathLike, problem: POMDP | None = None) -> AlphaVectorPolicy:
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
        >>> policy = AlphaVectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
        >>> with TemporaryDirectory() as folder:
        ...     write_alpha(policy, f"{folder}/tiger.alpha")
        ...     print(read_alpha(f"{folder}/tiger.alpha", tiger()).vectors.tolist())
        [[-1.0, -1.0], [-100.0, 10.0]]
    """
    name, lines = _lines(path)
    filled = [(i, line.split()) for i, line in enumerate(lines, start=1) if line.strip()]
    if not filled or len(filled) % 2:
        raise PolicyFileError(f"{name}: got {len(filled)} lines that are not empty; expected two per vector")
    actions, vectors = [], []
    for (i, head), (j, values) in zip(filled[::2], filled[1::2], strict=True):
        if len(head) != 1:
            raise PolicyFileError(f"{name}:{i}: got {brief(' '.join(head))}; expected the number of an action alone")
        actions.append(_whole(head[0], f"{name}:{i}"))
        vectors.append([_decimal(value, f"{name}:{j}") for value in values])
        if len(vectors[-1]) != len(vectors[0]):
            raise PolicyFileError(f"{name}:{j}: got {len(vectors[-1])} values; expected {len(vectors[0])}, as before")
    return _fitting(name, vectors, actions, problem)


def write_alpha(policy: AlphaVectorPolicy, path: PathLike) -> None:
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


def read_policy_graph(path: PathLike, problem: POMDP, *, start: int = 0) -> FiniteStateController:
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
        >>> listening = FiniteStateController(tiger(), np.array([0]), np.array([[0, 0]]))
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
                f"{name}:{i}: got {len(words)} entries; expected a node, an action and {compiled.n_observations} next "
                "nodes"
            )
        node = _whole(words[0], f"{name}:{i}")
        if node in numbers:
            raise PolicyFileError(f"{name}:{i}: got node {node} again; expected each node once")
        numbers[node] = len(numbers)
    if start not in numbers:
        raise PolicyFileError(
            f"{name}: got start={brief(start)}; expected one of its {len(numbers)} nodes: {listed(list(numbers))}"
        )
    actions, after = [], []
    for i, words in rows:
        actions.append(_whole(words[1], f"{name}:{i}"))
        if actions[-1] >= compiled.n_actions:
            raise PolicyFileError(
                f"{name}:{i}: got action {actions[-1]}; expected one of the problem's {compiled.n_actions}, from 0"
            )
        then = [-1 if word == "-" else _whole(word, f"{name}:{i}") for word in words[2:]]
        missing = [node for node in then if node >= 0 and node not in numbers]
        if missing:
            raise PolicyFileError(f"{name}:{i}: got the next node {missing[0]}; expected a node of the file, or -")
        after.append([numbers.get(node, -1) for node in then])
    return FiniteStateController(
        problem, np.array(actions, dtype=np.int64), np.array(after, dtype=np.int64), numbers[start]
    )


def write_policy_graph(controller: FiniteStateController, path: PathLike) -> None:
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


def read_policy_xml(path: PathLike, problem: POMDP | None = None) -> AlphaVectorPolicy:
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
        >>> policy = AlphaVectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
        >>> with TemporaryDirectory() as folder:
        ...     write_policy_xml(policy, f"{folder}/tiger.policy")
        ...     print(read_policy_xml(f"{folder}/tiger.policy", tiger()).vectors.tolist())
        [[-1.0, -1.0], [-100.0, 10.0]]
    """
    name = os.fspath(path)
    reader = _PolicyReader(name, None if problem is None else problem.compiled.n_states)
    reader.read(Path(path).read_bytes())
    if not reader.vectors:
        raise PolicyFileError(f"{name}: got no <Vector> and no <SparseVector>; expected SARSOP's policy XML")
    return _fitting(name, reader.vectors, reader.actions, problem)


def write_policy_xml(policy: AlphaVectorPolicy, path: PathLike) -> None:
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


_CHILDREN = {
    None: ("Policy",),
    "Policy": ("AlphaVector",),
    "AlphaVector": ("Vector", "SparseVector"),
    "SparseVector": ("Entry",),
}


class _PolicyReader:
    """Takes vectors from the elements of the XML, as they come.

    Args:
        name: What messages call the file.
        n_states: The states of the problem that it should be for, if there is one.
    """

    def __init__(self, name: str, n_states: int | None) -> None:
        self.name = name
        self.vectors: list[Floats] = []
        self.actions: list[int] = []
        self._expected = n_states
        self._length = 0
        self._open: list[str] = []
        self._text: list[str] = []
        self._entries: dict[int, float] = {}
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._read_text
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
            f"{self._where}: got a document type or an entity; expected elements alone. Delete the declaration."
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        within = self._open[-1] if self._open else None
        expected = _CHILDREN.get(within, ())
        if tag not in expected:
            place = "" if within is None else f" in <{within}>"
            wanted = " or ".join(f"<{name}>" for name in expected) or "numbers alone"
            raise PolicyFileError(f"{self._where}: got the element {brief(tag)}{place}; expected {wanted}")
        self._open.append(tag)
        self._text.clear()
        if tag == "AlphaVector":
            self._length = self._read_length(attributes)
        if tag in ("Vector", "SparseVector"):
            self.actions.append(_whole(attributes.get("action", ""), self._where))
            if attributes.get("obsValue", "0") != "0":
                self._refuse_observed(f"obsValue {brief(attributes['obsValue'])}")
            self._entries = {}
            if (len(self.vectors) + 1) * self._length > _MOST_ENTRIES:
                raise PolicyFileError(f"{self._where}: got more than {_MOST_ENTRIES:,} numbers; expected fewer in all")

    def _read_length(self, attributes: dict[str, str]) -> int:
        """Return the length of the vectors that follow, compared with what is known before it takes memory."""
        length = _whole(attributes.get("vectorLength", ""), self._where)
        known = len(self.vectors[0]) if self.vectors else self._expected
        if known is not None and length != known:
            source = "the vectors before" if self.vectors else "the problem's states"
            raise PolicyFileError(f"{self._where}: got vectorLength {length}; expected {known}, as of {source}")
        _require_room(length, self._where)
        if attributes.get("numObsValue", "1") != "1":
            self._refuse_observed(f"numObsValue {brief(attributes['numObsValue'])}")
        return length

    def _refuse_observed(self, got: str) -> None:
        raise PolicyFileError(
            f"{self._where}: got {got}; expected vectors of hidden states alone. Solve a model without observed states."
        )

    def _read_text(self, text: str) -> None:
        if text.strip() and self._open[-1:] not in (["Vector"], ["Entry"]):
            within = f"<{self._open[-1]}>" if self._open else "the file"
            raise PolicyFileError(f"{self._where}: got {brief(text.strip())} in {within}; expected elements alone")
        self._text.append(text)

    def _end(self, tag: str) -> None:
        self._open.pop()
        words = "".join(self._text).split()
        if tag == "Vector":
            self._take(np.array([_decimal(word, self._where) for word in words]))
        elif tag == "Entry":
            if len(words) != 2:
                raise PolicyFileError(
                    f"{self._where}: got an <Entry> of {len(words)} words; expected a position and a value"
                )
            position = _whole(words[0], self._where)
            if position >= self._length or position in self._entries:
                again = " again" if position in self._entries else ""
                raise PolicyFileError(
                    f"{self._where}: got position {position}{again}; expected each below {self._length} at most once"
                )
            self._entries[position] = _decimal(words[1], self._where)
        elif tag == "SparseVector":
            vector = np.zeros(self._length)
            vector[list(self._entries)] = list(self._entries.values())
            self._take(vector)
        self._text.clear()

    def _take(self, vector: Floats) -> None:
        if len(vector) != self._length or not len(vector):
            raise PolicyFileError(f"{self._where}: got {len(vector)} values; expected {self._length}, the vectorLength")
        self.vectors.append(vector)


def _lines(path: PathLike) -> tuple[str, list[str]]:
    name = os.fspath(path)
    try:
        return name, Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"{name}: got a byte that is not UTF-8 at {error.start}; expected a text file") from error


def _whole(word: str, where: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 12):
        raise PolicyFileError(f"{where}: got {brief(word)}; expected the number of a node, action or position")
    return int(word)


def _decimal(word: str, where: str) -> float:
    value = float(word) if _DECIMAL.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise PolicyFileError(f"{where}: got {brief(word)}; expected a decimal number that a float can hold")
    return value


def _fitting(name: str, vectors: list[Any], actions: list[int], problem: POMDP | None) -> AlphaVectorPolicy:
    if problem is not None:
        compiled = problem.compiled
        if len(vectors[0]) != compiled.n_states or max(actions) >= compiled.n_actions:
            raise PolicyFileError(
                f"{name}: got vectors of {len(vectors[0])} states and actions up to {max(actions)}; expected those of "
                f"the problem, {compiled.n_states} states and {compiled.n_actions} actions, from 0"
            )
    _require_room(len(vectors) * len(vectors[0]), name)
    return AlphaVectorPolicy(np.array(vectors), np.array(actions, dtype=np.int64))


def _require_room(count: int, where: str) -> None:
    """Raise unless there is memory for so many values, whatever a file claims."""
    most = memory_available() // 8
    if count > most:
        raise PolicyFileError(f"{where}: got vectors of {count:,} values; expected at most {most:,}, as memory allows")


def _refuse_infinite(policy: AlphaVectorPolicy) -> None:
    if not np.isfinite(policy.vectors).all():
        raise PolicyFileError(
            "vectors: got -inf, where an action is not legal; expected a finite value in every state. Write the "
            "controller as a .pg file."
        )
