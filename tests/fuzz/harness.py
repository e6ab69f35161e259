"""Runs a reader on any number of mutated inputs, each within limits of time and memory, and says what went wrong.

A reader answers or raises an own error. All else is a finding: another exception (or another package's warning), more
than ten seconds of CPU time, more than 1 GB beyond what was in use before, the death of the process. An input is made
from the reader's name and a number alone, so that a number is all that is needed to see it again.
"""

import json
import math
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

from pomdp_hier.errors import PomdpHierError, PomdpHierWarning
from tests.fuzz.mutate import mutated

__all__ = ["Finding", "Reader", "Tally", "attempt", "fuzz", "run_here"]

SECONDS = 10.0  # of CPU time
BYTES = 1_000_000_000
PATIENCE = 120.0  # seconds without progress until a process that does not even use the CPU is ended


@dataclass(frozen=True)
class Reader:
    """What is fuzzed.

    Attributes:
        name: The name on the command line, and in the numbers of inputs.
        seeds: Gives small valid inputs: bytes for files, text, or Python values for a function that takes such.
        read: Reads an input: a path for bytes, otherwise the text or the value itself.
        suffix: The end of the file's name, for bytes.
        words: Words of the format.
        errors: What it may raise besides the package's own errors.
        needs: Optional packages, without which it is left out.
    """

    name: str
    seeds: Callable[[], Sequence[Any]]
    read: Callable[[Any], object]
    suffix: str = ""
    words: tuple[str, ...] = ()
    errors: tuple[type[Exception], ...] = ()
    needs: tuple[str, ...] = ()

    @cached_property
    def corpus(self) -> Sequence[Any]:
        return self.seeds()

    def input(self, number: int) -> Any:
        """Return the input of this number."""
        return mutated(random.Random(f"{self.name}/{number}"), self.corpus, self.words)


@dataclass(frozen=True)
class Finding:
    """What one input did that no input may do."""

    reader: str
    number: int
    kind: str
    message: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.reader}, input {self.number}: {self.kind} {self.message} {self.place}".rstrip()


@dataclass
class Tally:
    """What a run saw: how many inputs were read, how many refused, the findings, and which seeds were read."""

    inputs: int = 0
    read: int = 0
    slowest: tuple[float, int] = (0.0, -1)
    findings: list[Finding] = field(default_factory=list)
    seeds: list[Finding | bool] = field(default_factory=list)

    def kinds(self) -> dict[tuple[str, str], list[Finding]]:
        """Return the findings by what they are and where."""
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.kind, finding.place), []).append(finding)
        return groups


class OutOfTime(BaseException):  # no handler of a reader may take it for an error of its own
    """The input has used its time."""


@contextmanager
def limits() -> Iterator[None]:
    """Limits the CPU time and the address space of what is inside."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise OutOfTime

    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, stop)
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


def attempt(reader: Reader, given: Any, folder: Path, number: int = -1) -> Finding | bool:
    """Return whether the input was read; a finding, if the reader did what none may do."""
    if isinstance(given, bytes):
        path = folder / f"input{reader.suffix}"
        path.write_bytes(given)
        given = path
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PomdpHierWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            with limits():
                reader.read(given)
        except (PomdpHierError, *reader.errors):
            return False
        except OutOfTime:
            return Finding(reader.name, number, "slow", f"more than {SECONDS:g} s of CPU time", _place())
        except MemoryError:
            return Finding(reader.name, number, "memory", f"more than {BYTES:,} bytes", _place())
        except Exception as error:  # noqa: BLE001  # whatever else it raises is what is looked for
            return Finding(reader.name, number, type(error).__name__, str(error)[:200], _place())
    return True


def _place() -> str:
    """Return the last line of the package's own that the present exception went through."""
    frames = [f for f in traceback.extract_tb(sys.exc_info()[2]) if "pomdp_hier" in f.filename]
    return f"({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def run_here(
    reader: Reader,
    numbers: Iterable[int],
    *,
    met: Callable[[int], None] = lambda number: None,
    seconds: float | None = None,
) -> Tally:
    """Return the tally of the inputs that are read in this very process, in so many seconds after the seeds at most."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # What is imported at the first use is no input's memory.
        tally.seeds = [attempt(reader, seed, folder) for seed in reader.corpus]
        until = time.monotonic() + (math.inf if seconds is None else seconds)
        for number in numbers:
            if time.monotonic() > until:
                break
            met(number)
            given = reader.input(number)
            began = time.process_time()
            answer = attempt(reader, given, folder, number)
            tally.slowest = max(tally.slowest, (time.process_time() - began, number))
            tally.inputs += 1
            if isinstance(answer, Finding):
                tally.findings.append(answer)
            else:
                tally.read += answer
    return tally


def _work(name: str, first: int, stop: int, seconds: float | None, at: Any, answers: Any) -> None:
    """Read inputs in a process of its own, telling which one is being read, for the case that it dies."""
    from tests.fuzz.readers import READERS

    def met(number: int) -> None:
        at.value = number

    tally = run_here(READERS[name], range(first, stop), met=met, seconds=seconds)
    found = [asdict(finding) for finding in tally.findings]
    answers.send(json.dumps([tally.inputs, tally.read, tally.slowest, found]))


def fuzz(reader: Reader, first: int, stop: int, *, chunk: int = 20_000, seconds: float | None = None) -> Tally:
    """Return the tally of the inputs ``first`` to ``stop - 1``, read in processes that may die.

    Args:
        reader: One of the table.
        first: The number of the first input.
        stop: The number after the last.
        chunk: How many inputs a process reads before the next takes over.
        seconds: How long to go on at most.
    """
    context = multiprocessing.get_context("spawn")
    tally = Tally()
    until = None if seconds is None else time.monotonic() + seconds
    while first < stop and (until is None or time.monotonic() < until):
        at = context.Value("q", first)
        receiver, sender = context.Pipe(duplex=False)
        end = min(stop, first + chunk)
        left = None if until is None else until - time.monotonic()
        process = context.Process(target=_work, args=(reader.name, first, end, left, at, sender))
        process.start()
        sender.close()
        seen, since = -1, time.monotonic()
        while not receiver.poll(1.0):
            if at.value != seen:
                seen, since = at.value, time.monotonic()
            elif not process.is_alive() or time.monotonic() - since > PATIENCE:
                break
        try:
            inputs, read, slowest, found = json.loads(receiver.recv()) if receiver.poll() else (None,) * 4
        except EOFError:
            inputs = None
        if inputs is None:  # it died, or hangs: its chunk is read again up to there, to know the rest
            process.kill()
            process.join()
            place = at.value
            tally.findings.append(Finding(reader.name, place, "death", f"of the process, exit code {process.exitcode}"))
            end, chunk = (place + 1, chunk) if place == first else (first, max(1, place - first))
            if place == first:
                tally.inputs += 1
        else:
            process.join()
            tally.inputs, tally.read = tally.inputs + inputs, tally.read + read
            tally.slowest = max(tally.slowest, tuple(slowest))
            tally.findings += [Finding(**one) for one in found]
        first = end
    return tally
