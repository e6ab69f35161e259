"""The checkpoint: whatever breaks off, what was finished is there; what does not belong is refused."""

import contextlib
import math
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from pomdp_hier._io.checkpoint import Checkpoint, fingerprint
from pomdp_hier.errors import CheckpointError, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.generic import Row, possible_in
from pomdp_hier.hqs.model import three_node
from pomdp_hier.hqs.policies import OptimalSearch
from pomdp_hier.hqs.score import evaluate
from pomdp_hier.planning import RTBSS, QMDPPolicy

ROWS = [Row(item, 0.1 * item - 1 / 3, item % 3 + 5, 0.5, 0.9) for item in range(5)]
SIZE = (5, 8)


def write(path, rows=ROWS, key="key"):
    with Checkpoint.open(path, key, Row, possible_in(*SIZE)) as checkpoint:
        checkpoint.append(rows)


def read(path, key="key"):
    with Checkpoint.open(path, key, Row, possible_in(*SIZE)) as checkpoint:
        return [checkpoint.rows[item] for item in sorted(checkpoint.rows)]


def test_rows_come_back_with_the_same_bits(tmp_path):
    write(tmp_path / "run", ROWS[:2])
    write(tmp_path / "run", ROWS[2:])
    assert read(tmp_path / "run") == ROWS
    assert os.listdir(tmp_path) == ["run"]


def test_reading_what_a_killed_run_left_leaves_no_journal(tmp_path):
    with Checkpoint.open(tmp_path / "run", "key", Row, possible_in(*SIZE)) as checkpoint:
        checkpoint.append(ROWS)
        for name in os.listdir(tmp_path):  # both files, as a kill leaves them
            shutil.copy(tmp_path / name, tmp_path / name.replace("run", "left"))
    assert sorted(os.listdir(tmp_path)) == ["left", "left-journal", "run"]
    assert read(tmp_path / "left") == ROWS
    assert sorted(os.listdir(tmp_path)) == ["left", "run"]
    assert read(tmp_path / "left") == ROWS


def test_other_data_or_settings_are_refused(tmp_path):
    write(tmp_path / "run")
    with pytest.raises(CheckpointError, match="expected key"):
        read(tmp_path / "run", key="other")


def test_what_is_no_checkpoint_is_refused_and_left_alone(tmp_path):
    other = tmp_path / "other"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    for content in (b"my thesis", b"my thesis\n" * 1000, other.read_bytes()):
        (tmp_path / "run").write_bytes(content)
        with pytest.raises(CheckpointError, match="checkpoint"):
            read(tmp_path / "run")
        assert (tmp_path / "run").read_bytes() == content


def test_a_place_where_no_file_can_be_is_an_error_of_ours(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "run"):
        with pytest.raises(CheckpointError, match="got no file; expected one"):
            read(path)


def tampered(path, statement):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET value = 123 WHERE item = 2",
        "UPDATE rows SET value = NULL WHERE item = 2",
        "UPDATE rows SET value = 'word' WHERE item = 2",
        "UPDATE rows SET node = 1.5 WHERE item = 2",
        "UPDATE rows SET item = 99 WHERE item = 2",
        "UPDATE rows SET checksum = NULL WHERE item = 2",
        "UPDATE rows SET probability = 0.25 WHERE item = 2",
        "UPDATE run SET key = x'00'",
        "INSERT INTO run VALUES ('key')",
        "DELETE FROM run",
        "DROP TABLE rows",
        "DROP TABLE run",
        "PRAGMA user_version = 99",
        "PRAGMA application_id = 0",
        "ALTER TABLE rows DROP COLUMN reward",
    ],
)
def test_damage_in_the_rows_is_refused(tmp_path, statement):
    write(tmp_path / "run")
    tampered(tmp_path / "run", statement)
    with pytest.raises(CheckpointError):
        read(tmp_path / "run")


@pytest.mark.parametrize(
    "row",
    [
        Row(2, 123.0, 6, 0.5, 0.9),
        Row(2, math.inf, 6, 0.5, 0.9),
        Row(2, 0.1, 8, 0.5, 0.9),
        Row(5, 0.1, 6, 0.5, 0.9),
        Row(-1, 0.1, 6, 0.5, 0.9),
        Row(2, 0.1, 6, 1.5, 0.9),
        Row(2, -1.5, 6, 0.5, 0.9),
        Row(2, 0.1, 6, 0.5, -3.0),
        Row(2, 0.95, 6, 0.5, 0.9),
    ],
)
def test_content_that_cannot_be_is_refused_whatever_its_checksum(tmp_path, row):
    write(tmp_path / "run", [row])
    with pytest.raises(CheckpointError, match="damaged"):
        read(tmp_path / "run")


def test_any_byte_changed_and_any_cut_is_harmless_or_refused(tmp_path):
    path = tmp_path / "run"
    write(path)
    content = path.read_bytes()
    random = np.random.default_rng(0)
    used = [at for at in range(len(content)) if content[at]]
    spoiled = [content[:at] for at in range(1, len(content), 500)]
    for at in [*used[::6], *random.integers(0, len(content), 20).tolist()]:
        changed = bytearray(content)
        changed[at] ^= int(random.integers(1, 256))
        spoiled.append(bytes(changed))
    for wrong in spoiled:
        path.write_bytes(wrong)
        with contextlib.suppress(CheckpointError):
            assert read(path) == ROWS


def test_a_row_that_is_there_already_is_refused(tmp_path):
    write(tmp_path / "run")
    with pytest.raises(CheckpointError):
        write(tmp_path / "run", [ROWS[0]._replace(value=0.2)])
    assert read(tmp_path / "run") == ROWS


def test_two_runs_cannot_share_a_file(tmp_path):
    with (
        Checkpoint.open(tmp_path / "run", "key", Row, possible_in(*SIZE)),
        pytest.raises(CheckpointError, match="other process"),
        Checkpoint.open(tmp_path / "run", "key", Row, possible_in(*SIZE)),
    ):
        pass


KILLED = """
import sys
from pomdp_hier._io.checkpoint import Checkpoint
from pomdp_hier.hqs.generic import Row, possible_in
with Checkpoint.open(sys.argv[1], "key", Row, possible_in(10**6, 10**6)) as checkpoint:
    for item in range(10**6):
        checkpoint.append([Row(item, 0.25, item, 0.5, 0.9)])
        print(item, flush=True)
"""


@pytest.mark.slow
def test_a_killed_run_loses_nothing_that_it_finished(tmp_path):
    random = np.random.default_rng(0)
    for number in range(6):
        path = tmp_path / str(number)
        with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE) as run:
            for _ in range(int(random.integers(1, 30))):
                last = int(run.stdout.readline())
            run.send_signal(signal.SIGKILL)
            last = max([last, *map(int, run.stdout.read().split(b"\n")[:-1])])
        with Checkpoint.open(path, "key", Row, possible_in(10**6, 10**6)) as checkpoint:
            assert len(checkpoint.rows) in (last + 1, last + 2)  # the last may be written and not yet told
            assert set(checkpoint.rows) == set(range(len(checkpoint.rows)))
        assert not os.path.exists(f"{path}-journal")


class Rule:
    def __init__(self, level):
        self.level = level
        self.table = {"b": np.arange(3), "a": {1, 2}}


def test_fingerprints_tell_values_apart(tmp_path):
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
        {"a": 1},
        ["a", 1],
        Rule,
    ]
    keys = [fingerprint(value=value) for value in values]
    assert len(set(keys)) == len(keys)
    assert fingerprint(value=Rule(1)) == fingerprint(value=Rule(1))
    np.save(tmp_path / "x.npy", np.arange(6.0))
    assert fingerprint(value=np.load(tmp_path / "x.npy", mmap_mode="r")) == fingerprint(value=np.arange(6.0))
    assert fingerprint("1", value=Rule(1)) != fingerprint("2", value=Rule(1)) != fingerprint(value=Rule(1))


@pytest.mark.slow
def test_fingerprints_do_not_depend_on_the_process():
    code = (
        "import numpy as np; from pomdp_hier._io.checkpoint import fingerprint; "
        "print(fingerprint(a={'x', 'y', 'z'}, b=np.arange(4), c={'k': np.linalg.norm}))"
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


def test_what_a_planner_remembers_is_no_part_of_it():
    problem = three_node(0.9, r1=0.5, r2=0.5)
    for policy in (RTBSS(2), QMDPPolicy(horizon=2), OptimalSearch()):
        before = fingerprint(policy=policy)
        policy.decide(problem)
        assert fingerprint(policy=policy) == before
        assert fingerprint(policy=pickle.loads(pickle.dumps(policy))) == before
    assert fingerprint(policy=RTBSS(2)) != fingerprint(policy=RTBSS(3))
    assert fingerprint(policy=OptimalSearch("search")) != fingerprint(policy=OptimalSearch("descend"))


def test_what_cannot_be_pickled_has_to_be_told_apart_by_its_user():
    with pytest.raises(ParameterError, match=r"policy: got .* policy_version"):
        fingerprint(policy=lambda belief: belief)
    one, other = (fingerprint(version, policy=lambda belief: belief) for version in ("1", "2"))
    assert one != other == fingerprint("2", policy=lambda belief: belief)


def test_a_run_with_another_version_of_a_policy_is_refused(tmp_path):
    X, tree = np.random.default_rng(0).normal(size=(8, 3)), Hierarchy.from_children([range(4), range(4, 8), [8, 9]], 8)

    settings = {"engine": "generic", "checkpoint": tmp_path / "run", "policy": "descend"}
    first = evaluate(X, tree, policy_version="1", **settings)
    again = evaluate(X, tree, policy_version="1", **settings)
    np.testing.assert_array_equal(first.values, again.values)
    with pytest.raises(CheckpointError, match="expected key"):
        evaluate(X, tree, policy_version="2", **settings)


def test_a_reward_counts_by_what_it_gives(tmp_path):
    X, tree = np.random.default_rng(0).normal(size=(8, 3)), Hierarchy.from_children([range(4), range(4, 8), [8, 9]], 8)
    settings = {"engine": "generic", "checkpoint": tmp_path / "run"}
    for _ in range(2):
        evaluate(X, tree, reward=lambda size, n_items: 1 - size / n_items, **settings)
    with pytest.raises(CheckpointError, match="expected key"):
        evaluate(X, tree, reward=lambda size, n_items: 0.5 - size / n_items, **settings)


def test_a_checkpoint_of_the_same_lists_with_other_leaf_clusters_is_refused(tmp_path):
    X, lists = np.random.default_rng(0).normal(size=(8, 3)), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    whole, alone = (Hierarchy.from_children(lists, 8, singletons=singletons) for singletons in (False, True))
    settings = {"engine": "generic", "policy": "descend", "checkpoint": tmp_path / "run"}
    evaluate(X, whole, **settings)
    with pytest.raises(CheckpointError, match="expected key"):
        evaluate(X, alone, **settings)
