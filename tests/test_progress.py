"""Off a terminal a long run writes a line now and then, a short one none; the time is that of a clock of the test."""

import time
from itertools import pairwise

import pytest

from pomdp_hier._progress import in_command, shown_progress


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def lines_of(clock, capsys, seconds, *, progress=True, total=None):
    """The lines of a run with one step per second."""
    with in_command(), shown_progress(progress, "solve", " trials", total) as bar:
        bar._time = time.time
        bar.start_t = bar.last_print_t = time.time()
        for _ in range(seconds):
            clock[0] += 1
            bar.update()
    return capsys.readouterr().err.splitlines()


def test_a_line_every_ten_seconds_and_then_after_a_tenth_of_the_time(clock, capsys):
    assert lines_of(clock, capsys, 9) == []
    lines = lines_of(clock, capsys, 10_000)
    times = [int(line.split()[1]) for line in lines]
    assert times[:10] == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert all(later - now >= max(10, 0.1 * now) for now, later in pairwise(times))
    assert len(times) < 70
    assert all(line.startswith("solve: ") for line in lines)


def test_a_total_gives_a_percentage(clock, capsys):
    assert lines_of(clock, capsys, 10, total=40) == ["solve: 25 %, 10 of 40 trials [00:10, 00:30 left]"]


def test_nothing_is_said_where_nothing_is_wanted(clock, capsys):
    assert lines_of(clock, capsys, 1000, progress=False) == []
