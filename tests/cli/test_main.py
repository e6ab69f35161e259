"""The command line as a whole: exit codes, one line of error, no traceback, nothing lost without a word."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from pomdp_hier import __version__, cli
from pomdp_hier.cli import main
from pomdp_hier.errors import DataWarning

ON_POSIX = os.name == "posix"


def test_help_and_version_name_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in cli._COMMANDS:
        assert command.name in out
        assert main([command.name, "--help"]) == 0
        said = capsys.readouterr().out
        assert "examples:" in said
        assert f"pomdp-hier {command.name}" in said
        assert max(map(len, said.splitlines())) <= 100
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"pomdp-hier {__version__}"


@pytest.mark.parametrize(
    "arguments",
    [[], ["nothing"], ["show"], ["show", "A", "--wrong"], ["score", "x.npy"], ["reproduce", "--pre", "text"]],
)
def test_wrong_usage_is_2(arguments, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "usage: pomdp-hier" in said
    assert said.count("\n") == 2  # the whole usage of a command would push the error off the screen


@pytest.mark.skipif(not ON_POSIX, reason="the example is for a POSIX shell")
@pytest.mark.slow
def test_the_examples_in_the_help_work_when_pasted(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    shim = folder / "pomdp-hier"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pomdp_hier "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    lines = [line for command in cli._COMMANDS for line in command.examples]
    done = subprocess.run(
        ["/bin/sh", "-e"],
        input="\n".join(lines).encode(),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, re.sub(rb"written to .*\n", b"", done.stderr)) == (0, b"")


def test_a_warning_is_one_line(monkeypatch, capsys):
    def warn(_: object) -> int:
        warnings.warn("two\nlines", DataWarning, stacklevel=2)
        return 0

    monkeypatch.setattr(cli.inspect.show, "run", warn)
    assert main(["show", "A"]) == 0
    assert capsys.readouterr().err == "warning: two lines\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "pomdp-hier: interrupted"),
        (MemoryError(), 1, "error: not enough memory"),
        (PermissionError(13, "Permission denied", "x.csv"), 1, "error: x.csv: Permission denied"),
        (OSError(28, "No space left on device"), 1, "error: writing the output: No space left on device"),
    ],
)
def test_each_error_is_one_line(monkeypatch, capsys, error, code, said):
    def end(_: object) -> int:
        raise error

    monkeypatch.setattr(cli.console, "silence", lambda: None)
    monkeypatch.setattr(cli.inspect.show, "run", end)
    assert main(["show", "A"]) == code
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert err.count("\n") == 1


@pytest.mark.skipif(not ON_POSIX, reason="POSIX pipes and descriptors")
@pytest.mark.slow
def test_output_that_goes_nowhere_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "pomdp_hier", "show", "A"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
    command = f'"{sys.executable}" -m pomdp_hier show A >&-'
    done = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"standard output is closed" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.slow
def test_error_on_a_full_disk():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pomdp_hier", "show", "A"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"error: writing the output: No space left on device\n"


def test_names_that_the_terminal_lacks_are_escaped(tmp_path, monkeypatch):
    (tmp_path / "t.json").write_text('[["r","caf\\u00e9"],["r","\\u001b[31mred"]]', encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["show", str(tmp_path / "t.json")]) == 0
    said = terminal.buffer.getvalue()
    assert b"caf\\xe9" in said
    assert b"\x1b" not in said


def test_parsing_adds_nothing_heavy_to_the_package_itself():
    code = (
        "import sys, pomdp_hier; before = set(sys.modules); from pomdp_hier.cli import main; main(['show', '--help']); "
        "print({name.partition('.')[0] for name in set(sys.modules) - before} & {'numpy', 'scipy', 'networkx'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.endswith(b"set()\n")
