"""Policy files of other solvers: ``.alpha`` and ``.pg`` of pomdp-solve, policy XML of SARSOP.

``.alpha``: per vector, one line with the index of its action, one line with its values, and an empty line. ``.pg``: per
node, one line with its number, the index of its action, and the next node after each observation, ``-`` for none. XML:
``<Policy><AlphaVector><Vector action=.. obsValue=..>values</Vector>``, or ``SparseVector`` with one ``Entry`` of index
and value per nonzero value. Actions, states and observations are numbered in the order of the ``.pomdp`` file.

Document types and entities in XML are rejected, so that a small file cannot expand into a large one.
"""

import math
import os
import re
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from pomdp_hier._arguments import Floats, check_integer, check_path
from pomdp_hier._io.formats import memory_available
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief, listed
from pomdp_hier.errors import ParameterError, PolicyFileError
from pomdp_hier.planning.controllers.controller import FiniteStateController
from pomdp_hier.planning.policies import AlphaVectorPolicy
from pomdp_hier.pomdp.problem import POMDP, require_problem

PathLike = str | os.PathLike[str]

_VECTORS = (
    AlphaVectorPolicy,
    "an AlphaVectorPolicy. Pass the vectors of a controller: solve(problem).controller().vectors",
)
_WRITTEN: dict[str, tuple[type, str]] = {
    ".alpha": _VECTORS,
    ".pg": (FiniteStateController, "a FiniteStateController. Pass solve(problem).controller()"),
    ".policy": _VECTORS,
    ".xml": _VECTORS,
}
_MOST_ENTRIES = 100_000_000  # of all vectors, whatever a file declares
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # fewer forms than Python accepts


def read_policy(path: PathLike, problem: POMDP, *, start: int = 0) -> AlphaVectorPolicy | FiniteStateController:
    """Return the policy of a file, in the format of its file name extension.

    Args:
        path: ``.alpha`` (vectors of pomdp-solve), ``.pg`` (its policy graph), ``.policy`` or ``.xml`` (SARSOP).
        problem: The problem that was solved.
        start: The start node of a policy graph, which the file does not state.

    Returns:
        A `FiniteStateController` from ``.pg``, an `AlphaVectorPolicy` otherwise.

    Raises:
        ParameterError: The extension is unknown, or ``start`` is given for a file of vectors.
        PolicyFileError: The file has another form, or is for a problem of another size; the message names the line.
        OSError: The file cannot be read.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from pomdp_hier.problems import tiger
        >>> policy = AlphaVectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
        >>> with TemporaryDirectory() as folder:
        ...     write_policy(policy, f"{folder}/tiger.alpha")
        ...     print(read_policy(f"{folder}/tiger.alpha", tiger()).vectors.tolist())
        [[-1.0, -1.0], [-100.0, 10.0]]

    References:
        Cassandra, pomdp-solve; Kurniawati, Hsu and Lee (2008), SARSOP.
    """
    require_problem(problem, "read_policy, after the path")
    check_integer("start", start)
    ending = _ending(path)
    if ending == ".pg":
        return _read_graph(path, problem, start)
    if start:
        raise ParameterError(f"start: got {start} for a {ending} file; expected 0, as vectors have no start node.")
    return _read_alpha(path, problem) if ending == ".alpha" else _read_xml(path, problem)


def write_policy(policy: AlphaVectorPolicy | FiniteStateController, path: PathLike) -> None:
    """Write a policy to a file, in the format of its file name extension.

    Numbers are written so that they read as the same floats. The start node of a controller is written first.

    Args:
        policy: An `AlphaVectorPolicy` for ``.alpha``, ``.policy`` or ``.xml``; a `FiniteStateController` for ``.pg``.
        path: The file; an existing one is replaced.

    Raises:
        ParameterError: The extension is unknown, or the format is for the other kind of policy.
        PolicyFileError: A vector has no value in some state, which these formats cannot express.
        OSError: The file cannot be written.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from pomdp_hier.problems import tiger
        >>> listening = FiniteStateController(tiger(), np.array([0]), np.array([[0, 0]]))
        >>> with TemporaryDirectory() as folder:
        ...     write_policy(listening, f"{folder}/tiger.pg")
        ...     print(round(read_policy(f"{folder}/tiger.pg", tiger()).value(), 6))
        -20.0
    """
    ending = _ending(path)
    kind, expected = _WRITTEN[ending]
    if not isinstance(policy, kind):
        raise ParameterError(f"policy: got a {type(policy).__name__} for a {ending} file; expected {expected}.")
    given: Any = policy
    lines = (_graph_lines if ending == ".pg" else _alpha_lines if ending == ".alpha" else _xml_lines)(given)
    write_file(path, "\n".join(lines) + "\n")


def _ending(path: PathLike) -> str:
    check_path("path", path)
    ending = Path(path).suffix.lower()
    if ending not in _WRITTEN:
        raise ParameterError(
            f"path: got {brief(os.fspath(path))}; expected a file name that ends in {listed(list(_WRITTEN))}."
        )
    return ending


def _read_alpha(path: PathLike, problem: POMDP) -> AlphaVectorPolicy:
    """Return the policy of a ``.alpha`` file."""
    name, lines = _lines(path)
    filled = [(i, line.split()) for i, line in enumerate(lines, start=1) if line.strip()]
    if not filled or len(filled) % 2:
        raise PolicyFileError(f"{name}: got {len(filled)} lines that are not empty; expected two per vector.")
    actions, vectors = [], []
    for (i, head), (j, values) in zip(filled[::2], filled[1::2], strict=True):
        if len(head) != 1:
            raise PolicyFileError(f"{name}:{i}: got {brief(' '.join(head))}; expected the index of an action alone.")
        actions.append(_index(head[0], f"{name}:{i}"))
        vectors.append([_decimal(value, f"{name}:{j}") for value in values])
        if len(vectors[-1]) != len(vectors[0]):
            raise PolicyFileError(
                f"{name}:{j}: got {len(vectors[-1])} values; expected {len(vectors[0])}, as in vector 0."
            )
    return _vectors_of(name, vectors, actions, problem)


def _alpha_lines(policy: AlphaVectorPolicy) -> list[str]:
    """Return the lines of a ``.alpha`` file."""
    _require_finite(policy)
    lines = []
    for action, vector in zip(policy.actions.tolist(), policy.vectors.tolist(), strict=True):
        lines += [str(action), " ".join(map(repr, vector)), ""]
    return lines


def _read_graph(path: PathLike, problem: POMDP, start: int) -> FiniteStateController:
    """Return the controller of a ``.pg`` file."""
    name, lines = _lines(path)
    compiled = problem.compiled
    rows = [(i, line.split()) for i, line in enumerate(lines, start=1) if line.strip()]
    numbers: dict[int, int] = {}
    for i, words in rows:
        if len(words) != 2 + compiled.n_observations:
            raise PolicyFileError(
                f"{name}:{i}: got {len(words)} entries; expected a node, an action and {compiled.n_observations} next "
                "nodes."
            )
        node = _index(words[0], f"{name}:{i}")
        if node in numbers:
            raise PolicyFileError(f"{name}:{i}: got node {node} again; expected each node once.")
        numbers[node] = len(numbers)
    if start not in numbers:
        raise PolicyFileError(
            f"{name}: got start={start}; expected one of its {len(numbers)} nodes: {listed(list(numbers))}."
        )
    actions, after = [], []
    for i, words in rows:
        actions.append(_index(words[1], f"{name}:{i}"))
        if actions[-1] >= compiled.n_actions:
            raise PolicyFileError(
                f"{name}:{i}: got action {actions[-1]}; expected an action index from 0 to {compiled.n_actions - 1}."
            )
        then = [-1 if word == "-" else _index(word, f"{name}:{i}") for word in words[2:]]
        missing = [node for node in then if node >= 0 and node not in numbers]
        if missing:
            raise PolicyFileError(f"{name}:{i}: got the next node {missing[0]}; expected a node of the file, or -.")
        after.append([numbers.get(node, -1) for node in then])
    return FiniteStateController(
        problem, np.array(actions, dtype=np.int64), np.array(after, dtype=np.int64), numbers[start]
    )


def _graph_lines(controller: FiniteStateController) -> list[str]:
    """Return the lines of a ``.pg`` file, the start node first."""
    order = [controller.start, *(k for k in range(len(controller)) if k != controller.start)]
    number = {k: i for i, k in enumerate(order)}
    lines = []
    for k in order:
        then = [str(number[t]) if t >= 0 else "-" for t in controller.after[k].tolist()]
        lines.append(f"{number[k]} {int(controller.actions[k])}  {' '.join(then)}")
    return lines


def _read_xml(path: PathLike, problem: POMDP) -> AlphaVectorPolicy:
    """Return the policy of an XML file of SARSOP."""
    name = os.fspath(path)
    reader = _XmlReader(name, problem.compiled.n_states)
    reader.read(Path(path).read_bytes())
    if not reader.vectors:
        raise PolicyFileError(f"{name}: got no <Vector> and no <SparseVector>; expected SARSOP's policy XML.")
    return _vectors_of(name, reader.vectors, reader.actions, problem)


def _xml_lines(policy: AlphaVectorPolicy) -> list[str]:
    """Return the lines of SARSOP's policy XML."""
    _require_finite(policy)
    n, size = policy.vectors.shape
    lines = [
        '<?xml version="1.0" encoding="ISO-8859-1"?>',
        '<Policy version="0.1" type="value" model="model.pomdp">',
        f'<AlphaVector vectorLength="{size}" numObsValue="1" numVectors="{n}">',
    ]
    for action, vector in zip(policy.actions.tolist(), policy.vectors.tolist(), strict=True):
        lines.append(f'<Vector action="{action}" obsValue="0">{" ".join(map(repr, vector))} </Vector>')
    return [*lines, "</AlphaVector>", "</Policy>"]


_CHILDREN = {
    None: ("Policy",),
    "Policy": ("AlphaVector",),
    "AlphaVector": ("Vector", "SparseVector"),
    "SparseVector": ("Entry",),
}


class _XmlReader:
    """Reader of vectors, element by element, for a problem of a known number of states."""

    def __init__(self, name: str, n_states: int) -> None:
        self.name = name
        self.vectors: list[Floats] = []
        self.actions: list[int] = []
        self._length = n_states
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
            raise PolicyFileError(f"{self.name}:{error.lineno}: {expat.ErrorString(error.code)}.") from error
        except PolicyFileError:
            raise
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise PolicyFileError(f"{self.name}: {brief(str(error))}.") from error

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
            raise PolicyFileError(f"{self._where}: got the element {brief(tag)}{place}; expected {wanted}.")
        self._open.append(tag)
        self._text.clear()
        if tag == "AlphaVector":
            self._check_length(attributes)
        if tag in ("Vector", "SparseVector"):
            self.actions.append(_index(attributes.get("action", ""), self._where))
            if attributes.get("obsValue", "0") != "0":
                self._refuse_observed(f"obsValue {brief(attributes['obsValue'])}")
            self._entries = {}
            if (len(self.vectors) + 1) * self._length > _MOST_ENTRIES:
                raise PolicyFileError(f"{self._where}: got more than {_MOST_ENTRIES:,} numbers; expected fewer in all.")

    def _check_length(self, attributes: dict[str, str]) -> None:
        """Raise unless the vectors that follow have the problem's length, before they take memory."""
        length = _index(attributes.get("vectorLength", ""), self._where)
        if length != self._length:
            raise PolicyFileError(
                f"{self._where}: got vectorLength {length}; expected {self._length}, the number of states."
            )
        if attributes.get("numObsValue", "1") != "1":
            self._refuse_observed(f"numObsValue {brief(attributes['numObsValue'])}")

    def _refuse_observed(self, got: str) -> None:
        raise PolicyFileError(
            f"{self._where}: got {got}; expected vectors of hidden states alone. Solve a model without observed states."
        )

    def _read_text(self, text: str) -> None:
        if text.strip() and self._open[-1:] not in (["Vector"], ["Entry"]):
            within = f"<{self._open[-1]}>" if self._open else "the file"
            raise PolicyFileError(f"{self._where}: got {brief(text.strip())} in {within}; expected elements alone.")
        self._text.append(text)

    def _end(self, tag: str) -> None:
        self._open.pop()
        words = "".join(self._text).split()
        if tag == "Vector":
            self._take(np.array([_decimal(word, self._where) for word in words]))
        elif tag == "Entry":
            if len(words) != 2:
                raise PolicyFileError(
                    f"{self._where}: got an <Entry> of {len(words)} words; expected an index and a value."
                )
            index = _index(words[0], self._where)
            if index >= self._length or index in self._entries:
                again = " again" if index in self._entries else ""
                raise PolicyFileError(
                    f"{self._where}: got index {index}{again}; expected each below {self._length} at most once."
                )
            self._entries[index] = _decimal(words[1], self._where)
        elif tag == "SparseVector":
            vector = np.zeros(self._length)
            vector[list(self._entries)] = list(self._entries.values())
            self._take(vector)
        self._text.clear()

    def _take(self, vector: Floats) -> None:
        if len(vector) != self._length or not len(vector):
            raise PolicyFileError(
                f"{self._where}: got {len(vector)} values; expected {self._length}, the vectorLength."
            )
        self.vectors.append(vector)


def _lines(path: PathLike) -> tuple[str, list[str]]:
    name = os.fspath(path)
    try:
        return name, Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise PolicyFileError(
            f"{name}: got a byte that is not UTF-8 at {error.start}; expected a text file."
        ) from error


def _index(word: str, where: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 12):
        raise PolicyFileError(f"{where}: got {brief(word)}; expected the index of a node, action or state.")
    return int(word)


def _decimal(word: str, where: str) -> float:
    value = float(word) if _DECIMAL.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise PolicyFileError(f"{where}: got {brief(word)}; expected a decimal number that a float can hold.")
    return value


def _vectors_of(name: str, vectors: list[Any], actions: list[int], problem: POMDP) -> AlphaVectorPolicy:
    compiled = problem.compiled
    if len(vectors[0]) != compiled.n_states or max(actions) >= compiled.n_actions:
        raise PolicyFileError(
            f"{name}: got vectors of {len(vectors[0])} states and actions up to {max(actions)}; expected "
            f"{compiled.n_states} states and actions up to {compiled.n_actions - 1}, as the problem has."
        )
    count, most = len(vectors) * len(vectors[0]), memory_available() // 8
    if count > most:
        raise PolicyFileError(f"{name}: got vectors of {count:,} values; expected at most {most:,}, as memory allows.")
    return AlphaVectorPolicy(np.array(vectors), np.array(actions, dtype=np.int64))


def _require_finite(policy: AlphaVectorPolicy) -> None:
    if not np.isfinite(policy.vectors).all():
        raise PolicyFileError(
            "vectors: got -inf, where an action is not legal; expected a finite value in every state. Write the "
            "controller as a .pg file."
        )
