"""``python -m tests.fuzz --inputs 10000 --reader pomdp-file``: mutated inputs for the readers, and what they did.

Without ``--reader`` every reader gets its share. ``--show NUMBER`` prints one input, ``--save`` keeps one input of each
kind of finding under ``tests/fuzz/failed``, where the test suite reads it again. The exit code is 1 after findings.
``--growth 3`` puts long runs at three places of each valid file instead and prints where the time grows faster than the
input.
"""

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from pomdp_hier._text import brief
from tests.fuzz.growth import MOST_POWER, Growth, growths
from tests.fuzz.harness import Reader, fuzz
from tests.fuzz.readers import READERS

FAILED = Path(__file__).parent / "failed"


def main() -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="which one; may be repeated")
    parser.add_argument("--inputs", type=int, default=10_000, metavar="N", help="how many for each reader (10,000)")
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER", help="the number of the first input (0)")
    parser.add_argument("--seconds", type=float, metavar="S", help="how long for each reader at most")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print this input of the reader, and read nothing")
    parser.add_argument("--save", action="store_true", help="keep one input of each kind of finding")
    parser.add_argument("--growth", type=int, metavar="N", help="how time grows, with runs at N places of a file")
    arguments = parser.parse_args()
    found = 0
    for name in arguments.reader or sorted(READERS):
        reader = READERS[name]
        missing = [package for package in reader.needs if find_spec(package) is None]
        if missing:
            print(f"{name:24} left out: {', '.join(missing)} is not installed")
            continue
        if arguments.show is not None:
            print(repr(reader.input(arguments.show)))
            continue
        if arguments.growth is not None:
            found += _grow(reader, arguments.growth)
            continue
        began = time.perf_counter()
        tally = fuzz(reader, arguments.first, arguments.first + arguments.inputs, seconds=arguments.seconds)
        took = time.perf_counter() - began
        print(
            f"{name:24} {tally.inputs:>9,} inputs, {tally.read:>9,} read, {len(tally.findings):>6,} findings, "
            f"slowest {tally.slowest[0]:.2f} s (input {tally.slowest[1]}), {tally.inputs / took:,.0f} a second",
            flush=True,
        )
        for group in tally.kinds().values():
            print(f"  {len(group):>6,} x {group[0]}")
            if arguments.save:
                _save(name, group[0].number)
        found += len(tally.findings)
    return 1 if found else 0


def _grow(reader: Reader, places: int) -> int:
    seen = [Growth("nothing", 0.0), *growths(reader, places)]
    bad = [one for one in seen if one.finding is not None or one.exponent > MOST_POWER]
    worst = max(seen, key=lambda one: one.seconds)
    print(
        f"{reader.name:24} {len(seen) - 1:>7,} large inputs, {len(bad):>4} findings, slowest {worst.seconds:.2f} s, "
        f"exponent {worst.exponent:.2f} ({worst.shape:.60}); largest {max(one.exponent for one in seen):.2f}",
        flush=True,
    )
    for one in bad:
        print(f"  {one.seconds:8.2f} s  exponent {one.exponent:.2f}  {one.shape:.100}  {one.finding or ''}")
    return len(bad)


def _save(name: str, number: int) -> None:
    given = READERS[name].input(number)
    place = FAILED / name
    place.mkdir(parents=True, exist_ok=True)
    if isinstance(given, bytes | str):
        content = given if isinstance(given, bytes) else given.encode("utf-8", "surrogateescape")
        (place / f"{number}{READERS[name].suffix}").write_bytes(content)
    else:
        print(f"    a Python value; write a test with: {brief(given, 300)}")


if __name__ == "__main__":
    sys.exit(main())
