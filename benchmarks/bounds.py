"""How far apart are the two bounds on the optimal value after 1, 10 and 60 CPU seconds, and how much memory is that?

Any ``.pomdp`` files may be given, ``FILE`` or ``FILE=DISCOUNT``; without files, the bundled problems run. Where a file
has the name of a problem of the literature, NativeSARSOP's published figures at 60 s stand beside ours (AAMAS 2025;
gamma .95; their machine is unknown, and so is whether their file is the same). SARSOP's ``pomdpsol`` and zmdp run on
the same files, one after another, where their programs are given. With ``--start-up``, each file has a process of its
own, and the CPU seconds count from its start: imports, reading and compiled loops here, the loading of the model there.
"""

import argparse
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pomdp_hier import POMDP
from pomdp_hier.planning import solve, verify
from pomdp_hier.planning.point_based.solution import Solution
from pomdp_hier.pomdp.pomdp_file import read_pomdp
from pomdp_hier.problems import cheese_maze, crying_baby, rock_sample, tiger

PUBLISHED = {
    "tiger": (19.371, 19.559),
    "hallway": (0.972, 1.213),
    "hallway2": (0.300, 0.914),
    "tiger-grid": (2.185, 2.549),
    "aloha.30": (388.08, 391.91),
    "pentagon": (0.293, 0.382),
}

PRECISION = "0.001"

Line = tuple[float, float, float]  # seconds, lower, upper


def peak_mb(process: int | str) -> float:
    """Return the peak memory of a running process; `getrusage` counts that of the process that started it too."""
    status = Path(f"/proc/{process}/status")
    held = re.search(r"VmHWM:\s*(\d+)", status.read_text()) if status.exists() else None
    return int(held[1]) / 1024 if held else 0.0


@dataclass
class Peer:
    """Another solver: its arguments, the pattern of both bounds in a line of its output, and that of its start-up."""

    name: str
    arguments: Callable[[str, float], list[str]]
    line: re.Pattern[str]
    start_up: re.Pattern[str]
    peak_mb: float = 0.0  # of the last run, where /proc says it

    def run(self, program: str, model: str, seconds: float, start_up: bool = False) -> list[Line]:
        """Return seconds, lower and upper bound from its output for a model."""
        command = [program, *self.arguments(model, seconds)]
        self.peak_mb, until = 0.0, time.monotonic() + 60 + 20 * seconds
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        while True:
            try:
                output, errors = process.communicate(timeout=0.05)
                break
            except subprocess.TimeoutExpired:
                self.peak_mb = max(self.peak_mb, peak_mb(process.pid))
                if time.monotonic() > until:
                    process.kill()
                    process.communicate()
                    print(f"{self.name} did not end within {60 + 20 * seconds:g} s", flush=True)
                    return []
        lines = [found.groups() for found in map(self.line.match, output.splitlines()) if found]
        if not lines:
            print(f"{self.name} printed no bounds: {(errors or output).strip()[-200:]!r}", flush=True)
        loading = sum(map(float, self.start_up.findall(output))) if start_up else 0.0
        return [(loading + float(at), float(lower), float(upper)) for at, lower, upper in lines]


PEERS = {
    "sarsop": Peer(  # its seconds are CPU seconds
        "SARSOP",
        lambda model, seconds: ["--timeout", f"{seconds:g}", "--precision", PRECISION, "-o", os.devnull, model],
        re.compile(r"\s*([\d.]+)\s+\d+\s+\d+\s+(\S+)\s+(\S+)\s+\S+\s+\d+\s+\d+\s*$"),
        re.compile(r"loading time : ([\d.]+)s"),
    ),
    "zmdp": Peer(  # its seconds are those of the clock on the wall, and whole ones
        "zmdp",
        lambda model, seconds: [
            *("solve", "--terminateRegretBound", PRECISION, "--terminateWallclockSeconds", f"{seconds:g}"),
            *("--policyOutputFile", "none", model),
        ],
        re.compile(r"(\d+)\s+\d+ calls to solver, bounds \[\s*(\S+) \.\.\s*(\S+)\]"),
        re.compile(r"(?!)"),  # within its seconds
    ),
}


@dataclass
class Case:
    """A problem, with the text of its file if there is one, and its results."""

    name: str
    problem: POMDP
    text: str | None = None
    solution: Solution | None = None
    peers: dict[str, list[Line]] = field(default_factory=dict)


def read(argument: str) -> Case:
    """The case of ``FILE`` or ``FILE=DISCOUNT``."""
    path, _, discount = argument.partition("=")
    text = Path(path).read_text(encoding="latin-1")
    if discount:
        lines = [line for line in text.split("\n") if not line.strip().startswith("discount")]
        text = "\n".join([f"discount: {float(discount)}", *lines])  # SARSOP does not read .95
    return Case(Path(path).stem, read_pomdp(text + "\n"), text + "\n")


def bundled() -> list[Case]:
    """The problems that come with the package."""
    problems = {"tiger": tiger(), "crying-baby": crying_baby(), "cheese": cheese_maze(), "rock-sample": rock_sample()}
    return [Case(name, problem) for name, problem in problems.items()]


def at(lines: list[Line], limit: float) -> Line | None:
    """Return the last line until then, if there is one."""
    return ([line for line in lines if line[0] <= limit][-1:] or [None])[0]


def run(
    case: Case, seconds: list[float], certify: bool, programs: dict[str, str], start_up: bool = False
) -> dict[str, Any]:
    """Return one row per program: the bounds after each number of seconds, and the proved bounds."""
    began = time.process_time() if start_up else 0.0  # of this process, which read the file
    limit = max(0.0, max(seconds) - began)
    case.solution = solution = solve(case.problem, precision=float(PRECISION), time_limit=limit)
    row: dict[str, Any] = {"problem": case.name, "status": solution.status, "start_up": began, "bounds": {}}
    cells = []
    for limit in seconds:
        entry = [entry for entry in solution.history if began + entry.seconds <= limit][-1:]
        row["bounds"][limit] = [(found.lower, found.upper, found.n_bytes) for found in entry]
        shown = [f"{found.lower:9.5g} {found.upper:9.5g} {found.n_bytes / 1e6:5.0f} MB" for found in entry]
        cells.append(f"{(shown or ['nothing'])[0]:28}")
    if start_up:
        row["peak_mb"] = peak_mb("self")
        cells.append(f"start-up {began:.2f} s, peak {row['peak_mb']:.0f} MB")
    if case.name in PUBLISHED:
        row["published"] = PUBLISHED[case.name]
        cells.append("published {} / {}".format(*PUBLISHED[case.name]))
    if certify:
        bounds = verify(solution.certificate(), case.problem)
        row["proved"] = (float(bounds.lower), float(bounds.upper), bounds.n_vectors, bounds.n_points)
        cells.append(f"proved {float(bounds.lower):.6g} {float(bounds.upper):.6g}")
    print(f"{case.name:14}", " | ".join(cells), flush=True)
    for key, program in programs.items() if case.text is not None else ():
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / f"{case.name}.pomdp"
            model.write_text(case.text, encoding="latin-1")
            lines = case.peers[PEERS[key].name] = PEERS[key].run(program, str(model), max(seconds), start_up)
        found = [at(lines, limit) for limit in seconds]
        row[key] = dict(zip(seconds, found, strict=True))
        shown = ["nothing" if line is None else f"{line[1]:9.5g} {line[2]:9.5g}" for line in found]
        if start_up:
            row[f"{key}_peak_mb"] = PEERS[key].peak_mb
            shown.append(f"peak {row[f'{key}_peak_mb']:.0f} MB")
        print(f"  {PEERS[key].name:12}", " | ".join(f"{cell:28}" for cell in shown), flush=True)
    return row


def limited(problem: POMDP, checkpoint: Path, seconds: int) -> None:
    """Solve a problem until the system kills this process (SIGKILL) for its CPU seconds."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    solve(problem, precision=float(PRECISION), checkpoint=checkpoint)


def kill_and_continue(case: Case, seconds: int, total: float) -> dict[str, Any]:
    """Return the bounds of a run of ``total`` CPU seconds, of a killed one's checkpoint, and of its continuation."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "search"
        process = multiprocessing.get_context("fork").Process(target=limited, args=(case.problem, checkpoint, seconds))
        process.start()
        process.join()
        if process.exitcode != -signal.SIGKILL:
            print(f"  not killed: the search ended within {seconds} s", flush=True)
            return {}
        saved = solve(case.problem, checkpoint=checkpoint, max_trials=0)
        rest = solve(case.problem, precision=float(PRECISION), checkpoint=checkpoint, time_limit=total - seconds)
    found = {"one run": case.solution, f"killed at {seconds} s": saved, f"continued to {total:g} s": rest}
    bounds = {name: (solution.lower, solution.upper) for name, solution in found.items() if solution is not None}
    print("  ends:", " | ".join(f"{name} {low:9.5g} {high:9.5g}" for name, (low, high) in bounds.items()), flush=True)
    return bounds


def compile_loops() -> None:
    """Compile the loops of the search, or load what was compiled."""
    solve(tiger(), engine="numba", max_trials=2)


def apart(files: list[str], options: list[str], results: Path | None) -> None:
    """Run each file with the same options in a process of its own, and write the rows together."""
    compile_loops()
    rows = []
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            row = Path(folder) / "row.json"
            own = [*(option for option in options if option not in files), file, "--json", str(row)]
            subprocess.run([sys.executable, "-m", "benchmarks.bounds", *own], check=True)
            rows += json.loads(row.read_text(encoding="utf-8"))
    if results:
        results.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def draw(cases: list[Case], path: Path) -> None:
    """Write the figure: bounds over CPU seconds, peers dashed, published bounds as marks."""
    from matplotlib.figure import Figure

    from pomdp_hier.report import draw_bounds

    columns = min(3, len(cases))
    rows = -(-len(cases) // columns)
    figure = Figure(figsize=(4.4 * columns, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, case in zip(axes, cases, strict=False):
        assert case.solution is not None
        draw_bounds(case.solution, ax=ax)
        for (name, lines), style in zip(case.peers.items(), ("--", ":"), strict=False):
            for side in (1, 2):
                label = name if side == 1 else None
                ax.step([max(x[0], 1e-3) for x in lines], [x[side] for x in lines], "k", ls=style, lw=1, label=label)
        if case.name in PUBLISHED:
            ax.plot([60, 60], PUBLISHED[case.name], "kx", label="published, 60 s")
        low, high = min(x.lower for x in late(case)), max(x.upper for x in late(case))
        ax.set_ylim(low - 0.3 * (high - low), high + 0.3 * (high - low))
        ax.set_title(case.name)
        ax.legend(frameon=False, fontsize="small")
    for ax in axes[len(cases) :]:
        ax.set_visible(False)
    figure.savefig(path, dpi=120)


def late(case: Case) -> list[Any]:
    """Return the history without its first tenth, in which the lower bound is very low."""
    history = case.solution.history if case.solution else ()
    return list(history[len(history) // 10 :])


def main(argv: list[str] | None = None) -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE[=DISCOUNT]", help=".pomdp files (default: bundled problems)")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1, 10, 60], metavar="S", help="when to look")
    parser.add_argument("--certify", action="store_true", help="write a certificate of each and verify it")
    text = "kill a second run (SIGKILL) after so many CPU seconds, and continue it from its checkpoint"
    parser.add_argument("--kill-at", type=int, metavar="S", help=text)
    text = "run each file in a process of its own, and count the CPU seconds from its start"
    parser.add_argument("--start-up", action="store_true", help=text)
    parser.add_argument("--quick", action="store_true", help="one second a problem")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the bounds over CPU seconds here, as PNG")
    for key, peer in PEERS.items():
        text = f"{peer.name}'s program, run on the same files (default: ${key.upper()}, if set)"
        parser.add_argument(f"--{key}", metavar="PROGRAM", default=os.environ.get(key.upper()), help=text)
    arguments = parser.parse_args(argv)
    if arguments.start_up and len(arguments.files) > 1:
        apart(arguments.files, [*(sys.argv[1:] if argv is None else argv)], arguments.json)
        return
    programs = {key: getattr(arguments, key) for key in PEERS if getattr(arguments, key)}
    cases = [read(argument) for argument in arguments.files] or bundled()
    seconds = [0.2, 1.0] if arguments.quick else arguments.seconds
    if not arguments.start_up:
        compile_loops()
    print("problem       ", " | ".join(f"{f'{limit:g} s: lower, upper, memory':28}" for limit in seconds), flush=True)
    rows = []
    for case in cases:
        rows.append(run(case, seconds, arguments.certify or arguments.quick, programs, arguments.start_up))
        if arguments.kill_at:
            rows[-1]["killed"] = kill_and_continue(case, arguments.kill_at, max(seconds))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if arguments.plot:
        draw(cases, arguments.plot)


if __name__ == "__main__":
    main()
