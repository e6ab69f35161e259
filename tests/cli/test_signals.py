"""What interrupts a command, or tells it to end, does so at any moment: one line, the code of the signal, no drafts."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sees from /proc that signals are handled")


def ended(number, delay, command, cwd):
    """The exit code and what was said, of a command that gets a signal so many seconds after it can handle one."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, text=True
    )
    status = Path(f"/proc/{process.pid}/status")
    while True:
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            break
        time.sleep(0.001)
    time.sleep(delay)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    np.save(folder / "x.npy", np.random.default_rng(0).random((4000, 50)))
    rows = "".join(f"{k},{4000 + k // 20}\n" for k in range(4000))
    clusters = "".join(f"{4000 + k},5000\n" for k in range(200))
    (folder / "tree.csv").write_text("id,parent\n" + rows + clusters + "5000,\n")
    return folder


COMMAND = ("-m", "pomdp_hier", "policies", "x.npy", "tree.csv", "--policy", "expand")  # which would take minutes


@pytest.mark.parametrize("delay", [0.0, pytest.param(3.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "told to end")])
def test_a_signal_ends_a_command_in_one_line(files, number, said, delay):
    assert ended(number, delay, COMMAND, files) == (128 + number, f"pomdp-hier: {said}\n")


@pytest.mark.slow
def test_an_interrupt_at_any_moment_while_modules_load(files):
    for step in range(10):
        assert ended(signal.SIGINT, 0.1 * step, COMMAND, files) == (130, "pomdp-hier: interrupted\n"), step


def test_a_module_that_is_half_loaded_has_no_drafts(tmp_path):
    program = (
        "import sys, time, types, pomdp_hier.__main__ as entry\n"
        "sys.modules['pomdp_hier._io.writing'] = types.ModuleType('pomdp_hier._io.writing')\n"
        "entry._end_on_signals(); time.sleep(60)"
    )
    assert ended(signal.SIGINT, 0.1, ("-c", program), tmp_path) == (130, "pomdp-hier: interrupted\n")


def test_a_draft_is_removed(tmp_path):
    program = (
        "import os, time, pomdp_hier.__main__ as entry; from pomdp_hier._io import writing\n"
        "os.replace = lambda *_: time.sleep(60)\n"
        "entry._end_on_signals(); writing.write_file('out', 'x' * 1000)"
    )
    assert ended(signal.SIGTERM, 0.5, ("-c", program), tmp_path) == (143, "pomdp-hier: told to end\n")
    assert list(tmp_path.iterdir()) == []


def test_a_command_in_another_program_leaves_its_signals_alone():
    from pomdp_hier.cli import main

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert main(["show", "A"]) == 0
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


MODEL = "discount: 0.9\nstates: 2\nactions: 2\nobservations: 2\nT: * uniform\nO: * identity\nR: 1 : 0 : * : * 1\n"


def told_at(trial, times):
    """A trial of a search that gets SIGTERM so many times when it ends."""

    def made(*given):
        trial(*given)
        for _ in range(times):
            signal.raise_signal(signal.SIGTERM)

    return made


@pytest.mark.parametrize("times", [1, 2])  # the second by `timeout`, which tells the process and then its group
def test_a_terminated_search_writes_its_result(tmp_path, monkeypatch, capsys, times):
    from pomdp_hier.cli import main
    from pomdp_hier.planning.point_based.search import Search

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Search, "trial", told_at(Search.trial, times))
    Path("m.pomdp").write_text(MODEL)
    before = signal.getsignal(signal.SIGTERM)
    command = ["solve", "m.pomdp", "--precision", "0", "--certificate", "c.json", "--policy-out", "p.alpha", "--quiet"]
    assert main(command) == 143
    assert "(interrupted)" in capsys.readouterr().out
    assert main(["verify", "c.json", "m.pomdp"]) == 0
    assert Path("p.alpha").stat().st_size
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_terminated_search_writes_its_best_tree(tmp_path, monkeypatch, capsys):
    from pomdp_hier.cli import main
    from pomdp_hier.improvement.choice import Choice

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Choice, "_apply", told_at(Choice._apply, 1))
    Path("x.csv").write_text("x,y\n1,0\n9,1\n0,1\n1,9\n0,8\n8,0\n")
    Path("t.json").write_text("[[0,1,2],[3,4,5],[6,7]]")
    assert (
        main(["improve", "x.csv", "t.json", "-ob.json", "--edits-out=m.csv", "--folds", "0", "--all", "--quiet"]) == 143
    )
    assert capsys.readouterr().err == ""
    assert '"children": [[' in Path("b.json").read_text()
    assert len(Path("m.csv").read_text().splitlines()) == 2


def test_message_of_a_terminated_search_without_a_result(tmp_path, monkeypatch, capsys):
    from pomdp_hier.cli import main

    monkeypatch.setattr("pomdp_hier.planning.point_based.solve._check", told_at(lambda *_: None, 1))
    monkeypatch.chdir(tmp_path)
    Path("m.pomdp").write_text(MODEL)
    assert main(["solve", "m.pomdp", "--certificate", "c.json"]) == 143
    assert capsys.readouterr().err == "pomdp-hier: told to end\n"
    assert not Path("c.json").exists()


LATE = """
import os, signal, sys
import pomdp_hier.__main__ as process, pomdp_hier.cli

class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGTERM):
        kill(process, number)

pomdp_hier.cli.main = lambda: 143
late = Late()
sys.exit(process.main())
"""


def test_a_second_sigterm_at_shutdown_does_not_change_the_exit_code():
    assert subprocess.run([sys.executable, "-c", LATE], check=False, timeout=60).returncode == 143
