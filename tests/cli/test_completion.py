"""``pomdp-hier completion``: what each shell is offered, tried in bash, and in others where they are installed."""

import shutil
import subprocess
import sys

import pytest

from pomdp_hier import cli
from pomdp_hier.cli import main

SHELLS = ("bash", "zsh", "fish", "tcsh")


@pytest.fixture
def script(capsys, tmp_path):
    pytest.importorskip("shtab")

    def write(shell: str):
        assert main(["completion", shell]) == 0
        path = tmp_path / f"completion.{shell}"
        path.write_text(capsys.readouterr().out, encoding="utf-8")
        return path

    return write


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_choices_and_files(script, tmp_path):
    path = script("bash")
    (tmp_path / "features.csv").touch()

    def offered(*words: str) -> set[str]:
        code = (
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '_shtab_pomdp_hier pomdp-hier "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; '
            'echo "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", code, "-", path, "pomdp-hier", *words],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        return set(done.stdout.split())

    assert offered("") == {command.name for command in cli._COMMANDS}
    assert offered("re") == {"regroup", "report", "reproduce"}
    assert offered("score", "--ti") == {"--tie"}
    assert {"--tie", "--delta", "--singletons", "--no-singletons", "-h"} <= offered("score", "x.npy", "-")
    assert offered("score", "--tie", "") == {"descend", "search"}
    assert offered("report", "--tree-format", "n") == {"nested", "newick"}
    assert offered("report", "fea") == offered("score", "--out", "fea") == {"features.csv"}
    assert offered("completion", "") == set(SHELLS)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_in_every_completion(script, shell):
    path = script(shell)
    text = path.read_text(encoding="utf-8")
    assert all(command.name in text for command in cli._COMMANDS)
    program = shutil.which(shell)
    if program is not None and shell != "tcsh":
        subprocess.run([program, "-n", path], check=True)


def test_without_the_extra_and_for_another_shell(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "pip install 'pomdp-hier[completion]'" in capsys.readouterr().err
    assert main(["completion", "cmd"]) == 2
    assert "invalid choice" in capsys.readouterr().err
