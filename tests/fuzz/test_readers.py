"""Readers answer broken input with an own error, soon, in little memory: a few inputs here, more when asked.

``python -m tests.fuzz`` reads any number; what once failed is kept under ``failed`` and read here.
"""

import random
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="limits of memory are set as POSIX has them")

from tests.fuzz.harness import Finding, Reader, attempt, fuzz, run_here
from tests.fuzz.mutate import mutated
from tests.fuzz.readers import READERS

FAILED = sorted(path for path in (Path(__file__).parent / "failed").glob("*/*") if path.parent.name in READERS)


# These read what others read too; they wait for the slow tests, as does the minute.
_LATER = {"show", "pomdp-file-exact", *(name for name in READERS if name.endswith("-written-back"))}


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in _LATER)) for name in sorted(READERS)])
def reader(request: pytest.FixtureRequest) -> Reader:
    found: Reader = READERS[request.param]
    for package in found.needs:
        pytest.importorskip(package)
    return found


def test_seeds_are_read_and_mutated_inputs_raise_own_errors_only(reader: Reader) -> None:
    tally = run_here(reader, range(30))
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert tally.seeds == [True] * len(reader.corpus)
    assert 0 < tally.read < tally.inputs == 30


@pytest.mark.parametrize("path", FAILED, ids=[f"{path.parent.name}/{path.name}" for path in FAILED])
def test_what_once_failed_does_not_fail_again(path: Path, tmp_path: Path) -> None:
    reader = READERS[path.parent.name]
    for package in reader.needs:
        pytest.importorskip(package)
    content = path.read_bytes()
    given = content if isinstance(reader.corpus[0], bytes) else content.decode("utf-8", "surrogateescape")
    assert attempt(reader, given, tmp_path) in (True, False)


@pytest.mark.slow
def test_a_thousand_mutated_inputs_raise_own_errors_only(reader: Reader) -> None:
    tally = fuzz(reader, 1_000, 2_000, seconds=60 / len(READERS))
    assert tally.inputs > 0
    assert not tally.findings, "\n".join(str(group[0]) for group in tally.kinds().values())


# --- the harness itself ------------------------------------------------------------------------------------------


def bad_reader(given: str) -> None:
    if "k" in given:
        raise KeyError("k")
    if "m" in given:
        bytearray(3_000_000_000)
    if "t" in given:
        while True:
            pass


@pytest.mark.parametrize(("given", "kind"), [("k", "KeyError"), ("m", "memory"), ("t", "slow")])
def test_what_no_input_may_do_is_found(given: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.harness.SECONDS", 0.05)
    found = attempt(Reader("bad", lambda: ["ok"], bad_reader), given, tmp_path)
    assert isinstance(found, Finding)
    assert found.kind == kind


def test_an_input_is_made_of_its_number_alone() -> None:
    values = [{"a": [1, 2.5, "x"], "b": {"c": (1, 2)}}]
    for seeds in ([b"one: 1\ntwo: 2\n"], ["one, two"], values):
        made = [mutated(random.Random(f"x/{n}"), seeds) for n in (1, 2, 1)]
        assert repr(made[0]) == repr(made[2])
    assert values == [{"a": [1, 2.5, "x"], "b": {"c": (1, 2)}}]
