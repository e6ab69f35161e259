"""What reading costs: in proportion to the text and to what it stands for, told by counts and not by the clock."""

import gzip
import io
import re
from collections.abc import Callable

import numpy as np
import pytest

from pomdp_hier.errors import ParameterError, PomdpFileError
from pomdp_hier.pomdp.pomdp_file import files, grammar, read_pomdp, text

HEAD = "states: 2\nactions: 1\nobservations: 1\n"
PATTERNS = {
    f"{module.__name__}.{name}": pattern
    for module in (files, grammar, text)
    for name, pattern in vars(module).items()
    if isinstance(pattern, re.Pattern)
}
UNITS = (
    "9",
    " ",
    "0",
    "9.",
    ".",
    "e9",
    "+",
    "- ",
    "start ",
    "start  in",
    "T ",
    ":",
    ": ",
    "#",
    "a",
    "\n",
    "states ",
    "9e0",
)


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_takes_time_in_proportion_to_the_text(name: str) -> None:
    """One that tries in parts would take minutes: it would try each of 200,000 beginnings with each of their ends."""
    pytest.importorskip("resource", reason="the limit is set as POSIX has it")
    from tests.fuzz.harness import limits

    with limits():
        for unit in UNITS:
            for ending in ("x", "e", "!", ""):
                long = unit * (200_000 // len(unit)) + ending
                PATTERNS[name].match(long)
                PATTERNS[name].fullmatch(long)


def test_a_long_numeral_is_refused_at_once() -> None:
    for digits in (5_000, 300_000):
        for numeral in ("9" * digits + "x", "." + "9" * digits + "x", "9" * digits + ".x", " " * digits + "x"):
            with pytest.raises(PomdpFileError, match="expected a discount"):
                read_pomdp(f"{HEAD}discount: {numeral}\n")


@pytest.mark.parametrize("numeral", ["10**10**9", "1e999999999", "9" * 5_000, "1e-999999999999"])
def test_a_numeral_that_stands_for_too_much_is_refused(numeral: str) -> None:
    with pytest.raises(PomdpFileError):
        read_pomdp(f"{HEAD}discount: {numeral}\n", exact=True)


def test_an_exponent_of_zeros_is_small() -> None:
    body = "T: * identity\nO: * uniform\nR: * : * : * : * 5e00000"
    assert read_pomdp(f"{HEAD}{body}", exact=True).expected_reward(0, 0) == 5


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ("R: * : * : * : * 2", lambda a, s: 2),
        ("R: * : 3 : * : * 2\nR: 5 : * : * : * 7", lambda a, s: 7 if a == 5 else 2 if s == 3 else 0),
        ("R: * : * : 1 : * 4\nR: 5 : 1 : * : 1 2", lambda a, s: 4 * (s == 1) if a != 5 else 3 if s == 1 else 0),
    ],
)
def test_actions_that_are_given_together_are_compiled_once(
    rewards: str, expected: Callable[[int, int], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    means = files._means
    monkeypatch.setattr(files, "_means", lambda *arguments: calls.append(1) or means(*arguments))
    problem = read_pomdp(
        f"states: 4\nactions: 3000\nobservations: 2\nT: * identity\nO: * uniform\n{rewards}\n"
    ).compiled
    assert len({id(matrix) for matrix in (*problem.transition, *problem.observation)}) == 2
    assert len(calls) <= 2
    assert np.array_equal(problem.reward, [[expected(a, s) for s in range(4)] for a in range(3_000)])


def test_a_packed_file_is_read_and_what_is_no_text_is_named(tmp_path) -> None:
    body = f"{HEAD}T: * identity\nO: * uniform\n"
    packed = tmp_path / "tiny.pomdp.gz"
    packed.write_bytes(gzip.compress(body.encode()))
    assert read_pomdp(packed).states == (0, 1)
    packed.write_bytes(gzip.compress(body.encode())[:-9])
    with pytest.raises(PomdpFileError, match="cannot be decoded"):
        read_pomdp(packed)
    with pytest.raises(PomdpFileError, match="with NUL in it"):
        read_pomdp(io.BytesIO(b"states: 2\0"))


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("a\0b", PomdpFileError, "not a file name"),
        (5, ParameterError, "source: got 5"),
        (None, ParameterError, "source: got None"),
        (io.TextIOBase(), None, ""),
    ],
)
def test_what_is_no_source_is_refused(source, error, message) -> None:
    if error is None:
        source.read = lambda: 7
        error, message = ParameterError, "got 7 from"
    with pytest.raises(error, match=message):
        read_pomdp(source)


# --- rows that sum to 1 within the tolerance ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "mean"),
    [
        ("R: * : * : * : * 8", 8.0),  # it depends on neither: rows do not matter
        ("R: * : 0 : 0 : * 8\nR: * : 0 : 1 : * 8", 8 * 0.999996),  # T sums to 0.999996
        ("R: * : 0 : 0 : 0 8\nR: * : 0 : 1 : 0 8\nR: * : 0 : * : 1 8", 8 * 0.999996 * 0.999992),  # and O to 0.999992
    ],
)
def test_a_reward_is_the_mean_over_what_it_depends_on(rewards: str, mean: float) -> None:
    problem = read_pomdp(
        "states: 2\nactions: 1\nobservations: 2\nT: 0\n0.5 0.499996\n0 1\nO: 0\n0.5 0.499992\n0.5 0.499992\n" + rewards
    )
    assert problem.expected_reward(0, 0) == pytest.approx(mean, abs=1e-12)
    assert problem.compiled.reward[0, 0] == pytest.approx(mean, abs=1e-12)
