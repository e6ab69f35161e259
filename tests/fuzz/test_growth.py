"""What looks for readers whose time grows faster than their input finds those, and puts runs everywhere."""

import re

import pytest

pytest.importorskip("resource", reason="limits of memory are set as POSIX has them")

from tests.fuzz.growth import MOST_POWER, growths, inputs
from tests.fuzz.harness import Reader
from tests.fuzz.readers import READERS


@pytest.mark.parametrize(("power", "found"), [(1.0, False), (2.0, True)])
def test_a_reader_that_takes_the_square_of_a_run_of_quotes_is_found(power, found):
    spent = [0.0]

    def read(path):
        runs = re.findall(rb"'+", path.read_bytes())
        spent[0] += sum((len(run) / 1_000) ** power for run in runs)

    reader = Reader("quotes", lambda: [b"a, b"], read)
    seen = [one for one in growths(reader, 1, size=1_000, clock=lambda: spent[0]) if one.exponent]
    assert {one.shape[:4] for one in seen} >= {'b"\'"'}
    assert all(one.exponent == pytest.approx(power, abs=0.01) for one in seen)
    assert any(one.exponent > MOST_POWER for one in seen) is found


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_large_inputs_are_larger_where_more_is_asked(reader):
    for package in reader.needs:
        pytest.importorskip(package)
    made = list(inputs(reader, 1))
    assert made or not isinstance(reader.corpus[0], bytes)
    for shape, make in made:
        assert len(repr(make(400))) > len(repr(make(100))), shape
