"""Errors of .pomdp files, with their place, and the cost of reading hostile ones."""

import gzip
import io
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pomdp_hier.errors import ParameterError, PomdpFileError
from pomdp_hier.pomdp.pomdp_file import blocks, files, grammar, read_pomdp, statements

PREAMBLE = "discount: 0.5\nvalues: reward\nstates: a b c\nactions: go stay\nobservations: x y\n"  # 5 lines
REST = "T: * uniform\nO: * uniform\n"  # lines 6 and 7

# text, line:column, expected (fragment), found, reason (fragment)
FAULTS: dict[str, tuple[str, str, str, str, str]] = {
    "nothing": ("# only a comment\n", "2:1", "a section", "end", "begins with"),
    "words before": ("hello\nstates: 2\n", "1:1", "a section", "hello", "begins with"),
    "misspelt first": ("Discount: 1\nstates: 2\n", "1:1", "a section", "Discount", "begins with"),
    "no states": ("discount: 1\nactions: 2\n", "3:1", "'states:'", "end", "has none"),
    "no actions": ("discount: 1\nstates: 2", "2:10", "'actions:'", "end", "has none"),
    "states twice": ("states: 2\nstates: 3\nactions: 1", "2:1", "another section", "states", "given before"),
    "count 0": ("states: 0\nactions: 1", "1:9", "integer from 1", "0", ""),
    "negative count": ("states: -3\nactions: 1", "1:9", "integer from 1", "-3", ""),
    "broken count": ("states: 2.5\nactions: 1", "1:9", "integer from 1", "2.5", ""),
    "huge count": ("states: 99999999999\nactions: 1", "1:9", "integer from 1", "99999999999", ""),
    "no names": ("states:\nactions: 1", "2:1", "a count or the names", "actions", ""),
    "name twice": ("states: a b\n a\nactions: 1", "2:2", "another name", "a", "given before"),
    "wildcard as name": ("states: a *\nactions: 1", "1:11", "a count or the names", "*", ""),
    "misspelt section": ("states: a b\nactoins: 1\nactions: 1", "2:1", "a section", "actoins", "no section"),
    "discount above 1": (PREAMBLE.replace("0.5", "1.5"), "1:11", "in [0, 1]", "1.5", ""),
    "discount negative": (PREAMBLE.replace("0.5", "-.5"), "1:11", "in [0, 1]", "-.5", ""),
    "discount a word": (PREAMBLE.replace("0.5", "half"), "1:11", "in [0, 1]", "half", ""),
    "discount missing": (PREAMBLE.replace("0.5", ""), "2:1", "in [0, 1]", "values", ""),
    "discount twice": (PREAMBLE.replace("0.5", "0.5 0.6"), "1:15", "next section", "0.6", "one number"),
    "values": (PREAMBLE.replace("reward", "gain"), "2:9", "'reward' or 'cost'", "gain", ""),
    "values and more": (PREAMBLE.replace("reward", "reward cost"), "2:16", "next section", "cost", ""),
    "start too short": (f"{PREAMBLE}start: 0.5 0.5\n{REST}", "7:1", "3 probabilities", "T", "2 of 3"),
    "start too long": (f"{PREAMBLE}start: 1 0 0 0\n{REST}", "6:14", "next section", "0", "3 numbers belong here"),
    "start off": (f"{PREAMBLE}start: 0.5 0.5 0.5\n{REST}", "6:8", "sum to 1", "0.5", "sum to 1.5"),
    "start unknown": (f"{PREAMBLE}start: d\n{REST}", "6:8", "'uniform' or a state", "d", ""),
    "start unknown names": (f"{PREAMBLE}start: a d\n{REST}", "6:8", "3 probabilities", "a", ""),
    "start empty": (f"{PREAMBLE}start:\n{REST}", "7:1", "3 probabilities", "T", ""),
    "start twice": (f"{PREAMBLE}start: a\nstart include: b\n{REST}", "7:1", "another section", "start", "given before"),
    "include nothing": (f"{PREAMBLE}start include:\n{REST}", "7:1", "a state", "T", ""),
    "include unknown": (f"{PREAMBLE}start include: a q\n{REST}", "6:18", "a state", "q", "no state has this name"),
    "include too large": (f"{PREAMBLE}start include: 3\n{REST}", "6:16", "from 0 to 2", "3", "there are 3 states"),
    "exclude all": (f"{PREAMBLE}start exclude: a b c\n{REST}", "6:16", "not excluded", "a", ""),
    "unknown action": (f"{PREAMBLE}{REST}T: run : a : b 1", "8:4", "an action", "run", "no action has this name"),
    "unknown state": (f"{PREAMBLE}{REST}T: go : d uniform", "8:9", "a state", "d", "no state has this name"),
    "unknown next state": (f"{PREAMBLE}{REST}T: go : a :\n  d 1", "9:3", "a state", "d", "no state has this name"),
    "unknown observation": (f"{PREAMBLE}{REST}O: go : a : z 1", "8:13", "an observation", "z", "no observation"),
    "state number": (f"{PREAMBLE}{REST}T: go : 03 uniform", "8:9", "from 0 to 2", "03", "there are 3 states"),
    "negative state": (f"{PREAMBLE}{REST}T: go : -1 uniform", "8:9", "a state", "-1", "no state has this name"),
    "element missing": (f"{PREAMBLE}{REST}T: go : : b 1", "8:9", "a state", ":", ""),
    "nothing after T": (f"{PREAMBLE}{REST}T:", "8:3", "an action", "end", ""),
    "elements alone": (f"{PREAMBLE}T: go : a : b\n{REST}", "7:1", "a probability", "T", ""),
    "four elements in T": (f"{PREAMBLE}{REST}T: go : a : b : x 1", "8:17", "a probability", "x", ""),
    "five elements in R": (f"{PREAMBLE}{REST}R: go : a : b : x : x 1", "8:21", "a number", "x", ""),
    "two numbers for an entry": (f"{PREAMBLE}{REST}T: go : a : b 0.5 0.5", "8:19", "next section", "0.5", "1 number"),
    "negative probability": (f"{PREAMBLE}{REST}T: go : a\n1 -0.5 0.5", "9:3", "a probability in [0, 1]", "-0.5", ""),
    "probability above 1": (f"{PREAMBLE}{REST}O: go : a : x 1.5", "8:15", "a probability in [0, 1]", "1.5", ""),
    "row missing": (f"{PREAMBLE}T: go : a\n{REST}", "7:1", "a row of 3", "T", ""),
    "row missing at the end": (f"{PREAMBLE}{REST}T: go : a", "8:10", "a row of 3", "end", ""),
    "row too short": (f"{PREAMBLE}T: go : a\n0.5 0.5\n{REST}", "8:1", "a row of 3", "T", "2 of 3"),
    "row too long": (f"{PREAMBLE}T: go : a\n0.5 0.5 0 0\n{REST}", "7:11", "next section", "0", "3 numbers belong here"),
    "matrix too short": (f"{PREAMBLE}{REST}O: go\n1 0\n1 0\n1\n\n", "13:1", "3 x 2", "end", "5 of 6"),
    "matrix too long": (f"{PREAMBLE}{REST}O: go\n1 0\n1 0\n1 0 1", "11:5", "next section", "1", "6 numbers"),
    "a word among numbers": (f"{PREAMBLE}{REST}T: go\n1 0 0\n0 l 0\n0 0 1", "10:3", "3 x 3", "l", ""),
    "two points": (f"{PREAMBLE}{REST}T: go : a : b 0.5.5", "8:15", "a probability", "0.5.5", ""),
    "underscore": (f"{PREAMBLE}{REST}R: go : a : b : x 1_0", "8:19", "a number", "1_0", ""),
    "nan": (f"{PREAMBLE}{REST}R: go : a : b : x nan", "8:19", "a number", "nan", ""),
    "infinite": (f"{PREAMBLE}{REST}R: go : a : b : x 1e999", "8:19", "a number", "1e999", "too large"),
    "sign alone": (f"{PREAMBLE}{REST}R: go : a : b : x -", "8:19", "a number", "-", ""),
    "identity for a row": (
        f"{PREAMBLE}{REST}T: go : a identity",
        "8:11",
        "'uniform' or prob",
        "identity",
        "whole square",
    ),
    "identity of O": (f"{PREAMBLE}{REST}O: go identity", "8:7", "'uniform' or prob", "identity", "whole square"),
    "reset in O": (f"{PREAMBLE}{REST}O: go : a reset", "8:11", "'uniform' or prob", "reset", "for T"),
    "more after uniform": (f"{PREAMBLE}{REST}T: go uniform 1", "8:15", "next section", "1", ""),
    "uniform as entry": (f"{PREAMBLE}{REST}T: go : a : b uniform", "8:15", "a probability", "uniform", ""),
    "uniform reward": (f"{PREAMBLE}{REST}R: go : a : b uniform", "8:15", "2 numbers", "uniform", ""),
    "reward row short": (f"{PREAMBLE}{REST}R: go : a : b 1", "8:16", "2 numbers", "end", "1 of 2"),
    "reward matrix short": (f"{PREAMBLE}{REST}R: go : a 1 2 3", "8:16", "6 numbers (3 x 2)", "end", "3 of 6"),
    "reward of an action": (f"{PREAMBLE}{REST}R: go 1 2 3", "8:7", "':' and a state", "1", "without observations"),
    "row of T off": (
        f"{PREAMBLE}{REST}T: go : b\n0.5 0.25 0.125",
        "8:1",
        "'T: go : b' that sum to 1",
        "T",
        "sum to 0.875",
    ),
    "entry off": (f"{PREAMBLE}{REST}O: go : b : x 0.75", "8:1", "'O: go : b' that sum to 1", "O", "sum to 1.25"),
    "row of a matrix off": (f"{PREAMBLE}{REST}T: * 1 0 0\n0 1 0\n0 0.9 0", "10:1", "'T: go : c'", "0", "sum to 0.9"),
    "row never written": (f"{PREAMBLE}{REST[13:]}T: go identity\n", "8:1", "'T: stay : a'", "end", "no statement"),
    "O without observations": (
        "states: 2\nactions: 1\nT: 0 identity\nO: 0 uniform",
        "4:1",
        "'observations:'",
        "O",
        "none",
    ),
    "R with an observation": (
        "states: 2\nactions: 1\nT: 0 identity\nR: 0 : 0 : 0 : 1 3",
        "4:16",
        "'*'",
        "1",
        "no observations",
    ),
    "too large": (
        "states: 100000\nactions: 1\nobservations: 1\nO: * uniform\nT: 0 uniform",
        "5:1",
        "smaller problem",
        "T",
        "more than fit in memory",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    text, place, expected, found, reason = FAULTS[name]
    with pytest.raises(PomdpFileError) as caught:
        read_pomdp(text if "\n" in text else text + "\n")
    message = str(caught.value)
    parts = re.fullmatch(
        r"<text>:(\d+:\d+): got (?:'(.*?)'|the (end) of the file); expected (.*?)\.(?: (.*)\.)?", message
    )
    assert parts is not None, message
    assert parts[1] == place, message
    assert expected in parts[4], message
    assert (parts[2] or parts[3]) == found, message
    assert reason.lower() in (parts[5] or "").lower(), message


def test_the_file_is_named_and_line_ends_of_all_systems_count(tmp_path) -> None:
    for end in ("\n", "\r\n", "\r"):
        path = tmp_path / "broken.pomdp"
        path.write_bytes((PREAMBLE + "# a comment: T: x\n\n  T: go : q 1").replace("\n", end).encode())
        with pytest.raises(PomdpFileError, match=re.escape(f"{path}:8:11: got 'q'; expected a state")):
            read_pomdp(path)


def test_exact_numbers_have_no_tolerance_and_a_moderate_length() -> None:
    text = PREAMBLE + REST + "T: go : a 0.333333 0.333333 0.333333\n"
    assert read_pomdp(text).expected_reward("a", "go") == 0
    with pytest.raises(PomdpFileError, match=r"<text>:8:1: .*tolerance 0"):
        read_pomdp(text, exact=True)
    for number in ("0e99999999", "1e-99999999", "0." + "1" * 5000):
        with pytest.raises(PomdpFileError, match=r"<text>:8:19: got '.*'"):
            read_pomdp(f"{PREAMBLE}{REST}R: go : a : b : x {number}\n", exact=True)


def test_normalizing_still_refuses_what_has_no_sum() -> None:
    for row in ("0 0 0", "1 -1 1"):
        with pytest.raises(PomdpFileError, match="<text>:8:"):
            read_pomdp(f"{PREAMBLE}{REST}T: go : a {row}\n", normalize=True)
    with pytest.raises(PomdpFileError, match="<text>:6:8"):
        read_pomdp(f"{PREAMBLE}start: 0 0 0\n{REST}", normalize=True)


PIECES = ["states", "actions", "observations", "discount", "values", "start", "include", "exclude", "T", "O", "R", ":"]
PIECES += [
    "*",
    "uniform",
    "identity",
    "reset",
    "reward",
    "cost",
    "1",
    "0",
    "2",
    "0.5",
    "-1",
    "a",
    "b",
    "#",
    "\n",
    "1e9",
]
PIECES += ["1999999", "e", "+", "²", "\x00"]


def message_of(text: str, *, exact: bool = False, normalize: bool = False) -> str:
    """What the reader says of a text; any other exception than its own fails the test."""
    try:
        read_pomdp(text + "\n", exact=exact, normalize=normalize)
    except PomdpFileError as error:
        return str(error)
    return "<text>:1:1: got nothing else"


@given(st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join), st.booleans(), st.booleans(), st.booleans())
@example("states: 1999999 actions: 1999999 observations: 1999999 O: * uniform T: * identity", False, False, False)
def test_pieces_of_the_grammar_in_any_order_raise_nothing_else(
    text: str, preamble: bool, exact: bool, normalize: bool
) -> None:
    text = "states: 2 actions: 1 " * preamble + text
    assert re.match(r"<text>:\d+:\d+: got ", message_of(text, exact=exact, normalize=normalize))


@given(st.text(max_size=200), st.integers(0, len(PREAMBLE + REST)), st.integers(0, 3))
def test_any_text_anywhere_raises_nothing_else(noise: str, at: int, dropped: int) -> None:
    whole = PREAMBLE + REST
    assert re.match(r"<text>:\d+:\d+: got ", message_of(whole[:at] + noise + whole[at + dropped :]))


def test_a_pomdpx_file_is_named(tmp_path):
    path = tmp_path / "model.pomdpx"
    path.write_text('<?xml version="1.0"?>\n<!-- a model -->\n<pomdpx version="0.1"></pomdpx>\n')
    with pytest.raises(PomdpFileError, match=r"model\.pomdpx:1:1: got a POMDPX file"):
        read_pomdp(path)


HEAD = "states: 2\nactions: 1\nobservations: 1\n"
PATTERNS = {
    f"{module.__name__}.{name}": pattern
    for module in (blocks, files, grammar, statements)
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
