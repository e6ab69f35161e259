"""``pomdp-hier completion``: what each shell is offered, tried in bash, and in others where they are installed."""

import shutil
import subprocess

import pytest

from pomdp_hier import cli
from pomdp_hier.cli import main


@pytest.fixture
def script(capsys, tmp_path):
    def write(shell: str):
        assert main(["completion", shell]) == 0
        path = tmp_path / f"completion.{shell}"
        path.write_text(capsys.readouterr().out, encoding="utf-8")
        return path

    return write


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_choices(script):
    path = script("bash")

    def offered(*words: str) -> set[str]:
        code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pomdp_hier; echo "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "-u", "-c", code, "-", path, "pomdp-hier", *words], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return set(done.stdout.split())

    assert offered("") == {"--help", "--version", *(command.NAME for command in cli._COMMANDS)}
    assert offered("re") == {"report", "reproduce"}
    assert offered("score", "--ti") == {"--tie"}
    assert {"--tie", "--delta", "--singletons", "--no-singletons", "-h"} <= offered("score", "x.npy", "-")
    assert offered("score", "--tie", "") == {"descend", "search"}
    assert offered("report", "--tree-format", "n") == {"nested", "newick"}
    assert offered("report", "--out", "") == set(), "left to file names"
    assert offered("report", "x") == set(), "left to file names"
    assert offered("completion", "") == {"bash", "zsh", "fish"}
    assert offered("nothing", "--") == set()


def test_every_option_is_in_every_completion(script):
    parser = cli.build_parser()
    commands = next(action.choices for action in parser._actions if action.dest == "==SUPPRESS==" or action.choices)
    for shell in ("bash", "zsh", "fish"):
        text = script(shell).read_text(encoding="utf-8")
        for name, command in commands.items():
            assert name in text
            for action in command._actions:
                for option in action.option_strings:
                    written = (
                        option if shell != "fish" else f"-l {option[2:]}" if option[:2] == "--" else f"-s {option[1:]}"
                    )
                    assert written in text, (shell, name, option)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_well_formed(script, shell):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    subprocess.run([program, "-n", script(shell)], check=True)


def test_another_shell_is_wrong_usage(capsys):
    assert main(["completion", "cmd"]) == 2
    assert "invalid choice" in capsys.readouterr().err
