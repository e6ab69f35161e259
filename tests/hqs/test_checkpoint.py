"""The checkpoint: whatever breaks off, what was finished is there; what does not belong is refused."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from pomdp_hier.errors import CheckpointError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs import checkpoint as module
from pomdp_hier.hqs.checkpoint import Checkpoint, describe, fingerprint
from pomdp_hier.hqs.model import three_node
from pomdp_hier.hqs.policies import OptimalSearch
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.planning import RTBSS, OptimalPolicy, QMDPPolicy

ROWS = [{"item": i, "value": 0.1 * i - 1 / 3, "node": i + 7} for i in range(5)]


def write(path, rows=ROWS, key="key"):
    with Checkpoint.open(path, key) as checkpoint:
        checkpoint.append(rows)


def read(path, key="key"):
    with Checkpoint.open(path, key) as checkpoint:
        return [checkpoint.rows[item] for item in sorted(checkpoint.rows)]


def test_rows_come_back_with_the_same_bits(tmp_path):
    write(tmp_path / "run")
    assert read(tmp_path / "run") == ROWS


def test_a_file_cut_at_any_byte_keeps_its_whole_lines(tmp_path):
    path = tmp_path / "run"
    write(path)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        whole = max(sum(end <= size for end in ends) - 1, 0)
        assert read(path) == ROWS[:whole]
        write(path, ROWS[whole:])
        assert path.read_bytes() == content


def test_other_data_or_settings_are_refused(tmp_path):
    write(tmp_path / "run")
    with pytest.raises(CheckpointError, match="belongs to a run on other data or settings"):
        read(tmp_path / "run", key="other")


def test_what_is_no_checkpoint_is_refused_and_left_alone(tmp_path):
    for content in (b"my thesis", b"my thesis\n", b"line\nline\n"):
        (tmp_path / "run").write_bytes(content)
        with pytest.raises(CheckpointError, match="line 1 is damaged or not of a checkpoint"):
            read(tmp_path / "run")
        assert (tmp_path / "run").read_bytes() == content


def test_damage_in_the_middle_is_refused(tmp_path):
    path = tmp_path / "run"
    write(path)
    content = bytearray(path.read_bytes())
    place = content.index(b'"item":2') + 7
    content[place] = ord("9")
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="line 4 is damaged"):
        read(path)


def test_another_format_is_refused(tmp_path):
    path = tmp_path / "run"
    path.write_bytes(module._line({"format": "pomdp-hier checkpoint 99", "key": "key"}))
    with pytest.raises(CheckpointError, match="checkpoint 99"):
        read(path)


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "run"
    write(path, ROWS[:2])
    before = path.read_bytes()
    with Checkpoint.open(path, "key") as checkpoint:
        real = checkpoint._file

        class Full:
            def write(self, view):
                real.write(view[:10])
                raise OSError(28, "No space left on device")

            def __getattr__(self, name):
                return getattr(real, name)

        checkpoint._file = Full()
        with pytest.raises(OSError, match="No space left"):
            checkpoint.append(ROWS[2:3])
        checkpoint._file = real
        assert path.read_bytes() == before
        checkpoint.append(ROWS[2:])
    assert read(path) == ROWS


@pytest.mark.skipif(sys.platform == "win32", reason="no file locks there")
def test_two_runs_cannot_share_a_file(tmp_path):
    with (
        Checkpoint.open(tmp_path / "run", "key"),
        pytest.raises(CheckpointError, match="another process is writing"),
        Checkpoint.open(tmp_path / "run", "key"),
    ):
        pass


class Rule:
    def __init__(self, level):
        self.level = level
        self.table = {"b": np.arange(3), "a": {1, 2}}


def test_descriptions_tell_values_apart():
    def times(factor):
        return lambda x: factor * x

    values = [
        None,
        1,
        1.0,
        "1",
        True,
        np.zeros(3),
        np.zeros(3, dtype=np.float32),
        np.zeros((3, 1)),
        sparse.csr_array(np.eye(2)),
        sparse.csr_array(2 * np.eye(2)),
        Rule(1),
        Rule(2),
        times(1),
        times(2),
        np.random.default_rng(0),
        np.random.default_rng(1),
        np.array([1, None], dtype=object),
        {"a": 1},
        ["a", 1],
        Rule,
        object(),
    ]
    texts = [describe(value) for value in values]
    assert len(set(texts)) == len(texts)
    assert describe(Rule(1)) == describe(Rule(1))
    assert describe(times(2)) == describe(times(2))
    assert describe(object()) == describe(object())


def test_fingerprints_do_not_depend_on_the_process():
    code = (
        "import numpy as np; from pomdp_hier.hqs.checkpoint import fingerprint; "
        "print(fingerprint(a={'x', 'y', 'z'}, b=np.arange(4), c=lambda v: v in {'p', 'q'}))"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1
    assert fingerprint(a=1) != fingerprint(a=2)


def test_what_a_planner_remembers_is_no_part_of_it():
    problem = three_node(0.9, r1=0.5, r2=0.5)
    for policy in (RTBSS(2), QMDPPolicy(horizon=2), OptimalPolicy(2), OptimalSearch()):
        before = describe(policy)
        policy.decide(problem)
        assert describe(policy) == before
        assert describe(pickle.loads(pickle.dumps(policy))) == before
    assert describe(RTBSS(2)) != describe(RTBSS(3))
    assert describe(OptimalSearch("search")) != describe(OptimalSearch("descend"))


def bold(level):
    class Bold:
        def descend(self, eta, sizes, rewards, level_):
            return eta.max(axis=1) > level

    return Bold()


class Slotted:
    __slots__ = ("level",)

    def __init__(self, level):
        self.level = level


LEVEL = 0.5


class Global:
    def descend(self, eta, sizes, rewards, level):
        return helper(eta) > LEVEL


def helper(eta):
    return eta.max(axis=1)


def test_what_a_policy_does_is_a_part_of_it(monkeypatch):
    assert describe(bold(0.1)) == describe(bold(0.1)) != describe(bold(0.9))
    assert describe(Slotted(0.1)) == describe(Slotted(0.1)) != describe(Slotted(0.9))
    before = describe(Global())
    monkeypatch.setattr(sys.modules[__name__], "LEVEL", 0.9)
    changed = describe(Global())
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda eta: eta.min(axis=1))
    assert len({before, changed, describe(Global())}) == 3
    other = type("Global", (), {"descend": Slotted.__init__, "__module__": __name__, "__qualname__": "Global"})
    assert describe(other()) != describe(Global())


def test_what_refers_to_itself_is_described_once():
    class Chained:
        def again(self):
            return again(self.chain)

    def again(chain):
        return chain.again()

    first, second = Chained(), Chained()
    first.chain, second.chain = second, first
    assert describe(first) == describe(second)


def test_a_checkpoint_of_the_same_lists_with_other_leaf_clusters_is_refused(tmp_path):
    X, lists = np.random.default_rng(0).normal(size=(8, 3)), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    whole, alone = (Hierarchy.from_children(lists, 8, singletons=singletons) for singletons in (False, True))
    settings = {"engine": "generic", "policy": "descend", "checkpoint": tmp_path / "run"}
    evaluate(X, whole, **settings)
    with pytest.raises(CheckpointError, match="other data or settings"):
        evaluate(X, alone, **settings)


def test_a_line_without_an_item_is_refused(tmp_path):
    path = tmp_path / "run"
    with Checkpoint.open(path, "abc"):
        header = path.read_bytes()
    path.write_bytes(header + header)
    with pytest.raises(CheckpointError, match="line 2 holds no item"), Checkpoint.open(path, "abc"):
        pass


COUNTED = 0


def test_what_a_run_counts_is_no_part_of_it(monkeypatch):
    class Counting:
        asked = 0

        def descend(self, eta, sizes, rewards, level):
            global COUNTED
            COUNTED += 1
            Counting.asked += 1
            return eta.max(axis=1) > 0.5

    before = describe(Counting())
    Counting().descend(np.ones((1, 1)), None, None, 0)
    assert (COUNTED, Counting.asked) == (1, 1)
    assert describe(Counting()) == before
