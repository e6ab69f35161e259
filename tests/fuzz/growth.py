"""How a reader's time grows with its input: long runs of one thing, put anywhere into valid files, and large trees.

For each reader a run of a character, a word or a piece of the file itself is put into each of its valid inputs, and
trees are written as chains and stars. What takes long is read again at a quarter of the size, and at four times where
that is in doubt: the exponent is the power of the size that the time grows with, 1 where it is in proportion.
"""

import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.harness import Finding, Reader, attempt

__all__ = ["MOST_POWER", "Growth", "growths", "inputs"]

SIZE = 1 << 16  # how long a run is, or how many nodes a tree has
WORTH_A_LOOK = 0.1  # seconds of CPU time at that size, below which a power says nothing
MOST_POWER = 1.3
RUNS = (
    *("9", "0", ".", "e", "-", "a", "é", " ", "\t", "\n", "\r", ",", ";", ":", "|", "/", ">", "#", "*", "=", "\\", "_"),
    *(
        "'",
        '"',
        "''",
        '""',
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        "()",
        "[]",
        '["',
        '{"a":',
        "[[0,",
        "1 ",
        "a,",
        "a\n",
        "a>",
    ),
)

Made = Callable[[int], Any]


@dataclass(frozen=True)
class Growth:
    """What a reader took for one input.

    Attributes:
        shape: What was made large.
        seconds: CPU time at `SIZE`.
        exponent: The power that the time grows with; 0 where it was too short to tell.
        finding: What the reader did that none may do.
    """

    shape: str
    seconds: float
    exponent: float = 0.0
    finding: Finding | None = None


def growths(
    reader: Reader, places: int, *, size: int = SIZE, clock: Callable[[], float] = time.process_time
) -> Iterator[Growth]:
    """Yield what each large input takes.

    Args:
        reader: One of the table.
        places: At how many places of a valid input a run is put, drawn at random.
        size: How long runs are, and how many nodes trees have.
        clock: Gives seconds.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def take(made: Made, n: int) -> tuple[float, Finding | None]:
            given, began = made(n), clock()
            answer = attempt(reader, given, folder)
            return clock() - began, answer if isinstance(answer, Finding) else None

        for seed in reader.corpus:  # what is loaded at the first use
            take(lambda n, seed=seed: seed, 0)
        for shape, made in inputs(reader, places):
            seconds, finding = take(made, size)
            exponent = 0.0
            if seconds > WORTH_A_LOOK and finding is None:
                exponent = _power(seconds, take(made, size // 4)[0])
                if exponent > MOST_POWER:  # a busy machine, or a true one: then a larger input shows it as well
                    seconds = min(seconds, take(made, size)[0])
                    exponent = _power(min(take(made, 4 * size)[0] for _ in range(2)), seconds)
            yield Growth(shape, seconds, exponent, finding)


def _power(large: float, small: float) -> float:
    return math.log(large / max(small, 1e-6), 4)


def inputs(reader: Reader, places: int) -> Iterator[tuple[str, Made]]:
    """Yield large inputs of a reader, each with its name and a function of the size."""
    rng = random.Random(reader.name)
    for number, seed in enumerate(reader.corpus):
        if not isinstance(seed, bytes):
            continue
        for _ in range(places):
            at = rng.randrange(len(seed) + 1)
            piece = seed[at : at + rng.randint(1, 30)] or seed  # all of it, where nothing follows
            for run in (*(text.encode() for text in (*RUNS, *reader.words)), piece):
                yield (
                    f"{run!r} in seed {number} at byte {at}",
                    lambda n, seed=seed, at=at, run=run: seed[:at] + run * (n // max(1, len(run))) + seed[at:],
                )
    yield from _TREES.get(reader.name.replace("written-back", "file"), {}).items()


# --- chains and stars, the shapes of which each format can tell ----------------------------------------------------


def _lines(head: str, line: Callable[[int], str]) -> Made:
    return lambda n: (head + "".join(line(k) for k in range(n))).encode()


def _newick_chain(n: int) -> bytes:
    return ("(" * n + "a" + "".join(f",b{k})c{k}" for k in range(n)) + ";").encode()


def _nested(n: int) -> bytes:
    return ('{"name": "a", "children": [' * n + "]}" * n).encode()


_TREES: dict[str, dict[str, Made]] = {
    "edges-file": {
        "chain": _lines("parent,child\n", lambda k: f"n{k},n{k + 1}\n"),
        "chain, last first": lambda n: _lines("parent,child\n", lambda k: f"n{n - k},n{n - k + 1}\n")(n),
        "star": _lines("parent,child\n", lambda k: f"r,n{k}\n"),
        "one edge": _lines("parent,child\n", lambda k: "r,n\n"),
    },
    "parents-file": {
        "chain": _lines("id,parent\nn0,\n", lambda k: f"n{k + 1},n{k}\n"),
        "star": _lines("id,parent\nr,\n", lambda k: f"n{k},r\n"),
        "one row": _lines("id,parent\nr,\n", lambda k: "n,r\n"),
        "numbers": _lines("id,parent\n0,\n", lambda k: f"{k + 1},{k}.0\n"),
    },
    "paths-file": {
        "star": _lines("item,path\n", lambda k: f"i{k},r > a{k}\n"),
        "one long path": lambda n: ("item,path\na," + " > ".join(f"n{k}" for k in range(n)) + "\n").encode(),
        "one category": _lines("item,path\n", lambda k: f"i{k},r > a\n"),
        "one item": _lines("item,path\n", lambda k: f"i,r > a{k}\n"),
        "numbered": _lines("# v1\n", lambda k: f"{k} - a{k}\n"),
    },
    "newick-file": {
        "chain": _newick_chain,
        "star": lambda n: ("(" + ",".join(f"a{k}" for k in range(n)) + ");").encode(),
        "one name": lambda n: ("(" + ",".join("a" for _ in range(n)) + ");").encode(),
    },
    "json-file": {
        "chain": lambda n: json.dumps([[0, 1], *([k + 1, n + k - 1] for k in range(1, n - 1))]).encode(),
        "edges of a chain": lambda n: json.dumps({"edges": [[f"n{k}", f"n{k + 1}"] for k in range(n)]}).encode(),
        "star": lambda n: json.dumps({"children": [list(range(n))]}).encode(),
        "nested": _nested,
        "one label": lambda n: json.dumps({"children": [list(range(n))], "labels": ["a"] * n}).encode(),
        "records of a chain": lambda n: json.dumps(
            [{"id": "n0", "parent": None}, *({"id": f"n{k + 1}", "parent": f"n{k}"} for k in range(n))]
        ).encode(),
    },
    "bertopic-file": {
        "chain": lambda n: _lines(
            "Parent_ID,Child_Left_ID,Child_Right_ID\n", lambda k: f"{n + 1 + k},{k + 1},{n + k if k else 0}\n"
        )(n),
        "one row": _lines("Parent_ID,Child_Left_ID,Child_Right_ID\n", lambda k: "4,3,2\n"),
    },
    "children-value": {
        "chain": lambda n: [[0, 1], *([k + 1, n + k - 1] for k in range(1, n - 1))],
        "star": lambda n: [list(range(n))],
        "one child": lambda n: [[0]] * n,
    },
    "linkage-value": {
        "chain": lambda n: [[0, 1, 0.0, 2], *([k + 1, n + k - 1, float(k), k + 2] for k in range(1, n - 1))],
        "one merge": lambda n: [[0, 1, 0.0, 2]] * n,
    },
    "edges-value": {
        "chain": lambda n: [(k, k + 1) for k in range(n)],
        "star": lambda n: [("r", k) for k in range(n)],
        "one edge": lambda n: [("r", "a")] * n,
        "a ring": lambda n: [(k, (k + 1) % n) for k in range(n)],
    },
    "parents-value": {
        "chain": lambda n: {k: k - 1 if k else None for k in range(n)},
        "pairs of one": lambda n: [("a", "r")] * n,
        "a ring": lambda n: {k: (k + 1) % n for k in range(n)},
    },
    "paths-value": {
        "one item": lambda n: [("a", "r > b")] * n,
        "one long path": lambda n: [[*map(str, range(n))], ["x"]],
        "one category": lambda n: [["r", "a", str(k)] for k in range(n)],
    },
    "pomdp-file": {
        "states by name": lambda n: (
            "discount: 1\nstates: " + " ".join(f"s{k}" for k in range(n)) + "\nactions: 1\nobservations: 1\n"
        ).encode(),
        "one entry": _lines(
            "discount: 1\nstates: 2\nactions: 1\nobservations: 1\nT: 0 identity\nO: 0 uniform\n",
            lambda k: "R: 0 : 0 : 0 : 0 1\n",
        ),
        "entries": _lines(
            "discount: 1\nstates: 2\nactions: 70000\nobservations: 1\nT: * identity\nO: * uniform\n",
            lambda k: f"R: {k} : 0 : 0 : 0 1\n",
        ),
    },
    "features-csv": {
        "rows": _lines("id,x\n", lambda k: f"a{k},{k}\n"),
        "columns": lambda n: (",".join(f"c{k}" for k in range(n)) + "\n" + ",".join("1" * n) + "\n").encode(),
        "one id": _lines("id,x\n", lambda k: "a,1\n"),
        "one column": lambda n: (",".join("c" * n) + "\n" + ",".join("1" * n) + "\n").encode(),
    },
}
