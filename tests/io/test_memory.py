"""Limits of memory, and a memory map that is scored within one."""

import contextlib
import errno
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from pomdp_hier._io import formats
from pomdp_hier._io.formats import memory_allowed, room_for
from pomdp_hier.errors import FeatureError


def test_room_is_found_on_disk_only_where_it_must_and_may_be(monkeypatch):
    assert not isinstance(room_for((10, 10), True), np.memmap)
    monkeypatch.setattr(formats, "memory_allowed", lambda: 1000)
    table = room_for((10, 10), True)
    assert isinstance(table, np.memmap)
    table[3] = 7.0
    assert table.sum() == 70.0
    assert not isinstance(room_for((10, 10), False), np.memmap)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved here")
def test_error_for_a_full_temporary_folder(monkeypatch):
    def full(file, start, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(formats, "memory_allowed", lambda: 1000)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(FeatureError, match=r"No space left on device.*800 bytes"):
        room_for((10, 10), True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit of Linux")
def test_a_memory_map_larger_than_the_memory_allowed(tmp_path):
    """Features of 64 MB with sums of 128 MB, in a process that may take 104 MB more."""
    n_items, n_columns = 1 << 15, 512
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype="float32", shape=(n_items, n_columns))
    for low in range(0, n_items, 1 << 14):
        X[low : low + (1 << 14)] = np.random.default_rng(low).standard_normal((1 << 14, n_columns), dtype="float32")
    X.flush()
    program = """
        import resource, sys
        import numpy as np
        from pomdp_hier.hierarchy.tree import Hierarchy
        from pomdp_hier.hqs.score import evaluate
        n = 1 << 15
        nodes = np.arange(2 * n - 2).reshape(-1, 2)
        heights = np.arange(1.0, n)
        sizes = 2.0 ** (15 - np.floor(np.log2(np.arange(n - 1, 0, -1))))
        tree = Hierarchy.from_linkage(np.column_stack([nodes, heights, sizes]))
        X = np.load(sys.argv[1], mmap_mode="r")
        taken = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
        limit = 1024 * int(taken.split()[1]) + (104 << 20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        print(evaluate(X, tree, delta=0.001, engine="numpy").stop_levels.mean())
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "X.npy")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env={"OPENBLAS_NUM_THREADS": "1"})
    assert answer.returncode == 0, answer.stderr
    assert float(answer.stdout) > 0


def test_the_limit_is_a_number():
    assert 0 < memory_allowed() <= sys.maxsize


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of ten pages of 100 bytes, whose system files the test writes."""
    monkeypatch.setattr(formats, "Path", lambda *parts: tmp_path.joinpath(*(part.lstrip("/") for part in parts)))
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 100}.__getitem__)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    return write


def test_available_memory_of_system_and_control_group(machine):
    assert formats.memory_available() == 1000
    machine("proc/meminfo", "MemTotal:  9 kB\nMemAvailable:   3 kB\nSwapFree: 7 kB\n")
    assert formats.memory_available() == 3 * 1024
    machine("sys/fs/cgroup/memory.max", "2000\n")
    machine("sys/fs/cgroup/memory.current", "400\n")
    assert formats.memory_available() == 1600
    machine("sys/fs/cgroup/memory.current", "2500\n")
    assert formats.memory_available() == 0
    machine("sys/fs/cgroup/memory.max", "max\n")
    assert formats.memory_available() == 3 * 1024


def test_available_memory_where_the_system_does_not_say(machine, monkeypatch):
    monkeypatch.setattr(os, "sysconf", {}.__getitem__)
    monkeypatch.setattr(formats, "_system", lambda: None)
    assert formats.memory_available() == 4 * 2**30


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_memory_limit_is_the_smallest_of_machine_and_groups(machine, name):
    assert memory_allowed() == 1000
    machine(f"sys/fs/cgroup/{name}", "700\n")
    assert memory_allowed() == 700
    machine(f"sys/fs/cgroup/{name}", "max\n")
    assert memory_allowed() == 1000


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1 << 20, "1 MiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_counts_are_read_in_their_units(count, text):
    assert formats._readable(count) == text
    with pytest.raises(FeatureError, match=f"^it: got a declared size of {text};") if count else _nothing():
        formats.require_memory(count, 0, "it")


def _nothing():
    return contextlib.nullcontext()
