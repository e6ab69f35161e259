"""The bar that a problem shows on a terminal while it is explored, compiled or checked."""

import io
import sys

import pytest

from pomdp_hier import _progress as progress
from pomdp_hier import check_problem
from pomdp_hier.problems import tiger


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "patience", "shown"), [(Terminal(), 0, True), (Terminal(), 60, False), (io.StringIO(), 0, False)]
)
def test_a_bar_shows_itself_on_a_terminal_once_the_work_has_taken_a_while(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience: float, shown: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    problem = tiger()
    _ = problem.compiled
    assert check_problem(problem) == []
    assert all((word in stream.getvalue()) is shown for word in ("compiling", "checking"))
