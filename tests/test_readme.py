"""Every example of the README runs, in Python and on the command line, and prints what the README says."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from pomdp_hier.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


def test_every_example_is_followed_by_its_output():
    assert len(EXAMPLES) == README.count("```python") == 3


@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=["certified", "exact", "hqs"])
def test_example_prints_what_the_readme_says(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
    assert lines == output.rstrip().splitlines()


def test_commands_run_one_after_another_as_they_stand(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if not line.startswith("pip ")]
    assert sum(line.startswith("pomdp-hier ") for line in commands) == 4
    for line in commands:
        name, *arguments = shlex.split(line)
        if name == "printf":
            text, _, path = arguments
            Path(path).write_text(text.replace("\\n", "\n"))
        else:
            assert main(arguments) == 0, line
    assert "raincoat,coats" in Path("better.csv").read_text()
    assert "move raincoat from shoes to coats" in capsys.readouterr().out


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target


def sentences(text):
    """The sentences of Markdown prose; code, tables and headings are left out, and links count by what they show."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#")))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=- )", text):
        yield from re.split(r"(?<=[.:!?;])\s+", " ".join(block.split()))


def test_the_front_page_is_short():
    assert len(list(sentences("One two.\nThree [four](five) six\n\n- seven"))) == 3
    assert len(README.splitlines()) <= 160
    assert [sentence for sentence in sentences(README) if len(sentence.split()) > 25] == []
