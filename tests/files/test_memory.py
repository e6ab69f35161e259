"""Limits of memory, and a memory map that is scored within one."""

import errno
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from pomdp_hier.errors import FeatureError
from pomdp_hier.files import memory
from pomdp_hier.files.memory import memory_allowed, room_for


def test_room_is_found_on_disk_only_where_it_must_and_may_be(monkeypatch):
    assert not isinstance(room_for((10, 10), True), np.memmap)
    monkeypatch.setattr(memory, "memory_allowed", lambda: 1000)
    table = room_for((10, 10), True)
    assert isinstance(table, np.memmap)
    table[3] = 7.0
    assert table.sum() == 70.0
    assert not isinstance(room_for((10, 10), False), np.memmap)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved here")
def test_a_folder_without_room_is_told_of_before_it_is_written_to(monkeypatch):
    def full(file, start, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(memory, "memory_allowed", lambda: 1000)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(FeatureError, match=r"no room for 800 bytes .*No space left on device.*TMPDIR"):
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
