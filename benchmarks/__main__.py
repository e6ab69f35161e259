"""Run every benchmark, each in a separate process: ``python -m benchmarks [--quick] [--out DIR] [NAME ...]``.

A benchmark is a module of this folder that answers one question: ``python -m benchmarks.NAME --help`` says which.
Every one takes ``--quick`` (seconds instead of minutes) and ``--json FILE``.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The benchmarks of this folder, by name."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def main(argv: list[str] | None = None) -> int:
    """Run the requested benchmarks; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones (all by default): {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="a small setting that shows that they run, in seconds")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write NAME.json with the figures here")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
    # One thread for BLAS: ratios on two cores are otherwise ratios of schedulers.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    failed = []
    for name in arguments.names or names():
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        command += ["--quick"] if arguments.quick else []
        command += ["--json", str(arguments.out / f"{name}.json")] if arguments.out else []
        print(f"\n=== {name}", flush=True)
        if subprocess.run(command, env=environment, cwd=FOLDER.parent, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
