"""Every Python example of the README runs, and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


def test_every_example_is_followed_by_its_output():
    assert len(EXAMPLES) == README.count("```python") >= 3


@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=["hqs", "pomdp", "exact", "certified"])
def test_example_prints_what_the_readme_says(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
    assert lines == output.rstrip().splitlines()


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
