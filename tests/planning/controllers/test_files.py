"""Files of policies: written, read, and rejected when broken."""

import numpy as np
import pytest

from pomdp_hier.errors import ModelError, ParameterError, PolicyFileError
from pomdp_hier.planning import (
    AlphaVectorPolicy,
    read_policy,
    write_policy,
)
from pomdp_hier.planning.controllers import files
from pomdp_hier.problems import tiger
from tests.pomdp_models import three_node

# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["alpha", "policy", "XML"])
def test_vectors_round_trip(tmp_path, classic, ending):
    policy = classic.vectors
    write_policy(policy, tmp_path / f"file.{ending}")
    again = read_policy(tmp_path / f"file.{ending}", tiger())
    assert np.array_equal(again.vectors, policy.vectors)
    assert np.array_equal(again.actions, policy.actions)
    assert again.value(tiger()) == pytest.approx(classic.value())


def test_the_format_is_that_of_the_extension(tmp_path, classic):
    for call in (lambda path: read_policy(path, tiger()), lambda path: write_policy(classic, path)):
        with pytest.raises(ParameterError, match=r"^path: got '.*/p\.txt'"):
            call(tmp_path / "p.txt")
    for policy, ending, kind in (
        (classic, "xml", "AlphaVectorPolicy"),
        (classic.vectors, "pg", "FiniteStateController"),
    ):
        with pytest.raises(ParameterError, match=rf"^policy: got a \w+ for a \.{ending} file; expected an? {kind}"):
            write_policy(policy, tmp_path / f"p.{ending}")
        assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match=r"^start: got 1 for a \.alpha file"):
        read_policy(tmp_path / "p.alpha", tiger(), start=1)


def test_policy_graphs_round_trip(tmp_path, classic):
    write_policy(classic, tmp_path / "tiger.pg")
    again = read_policy(tmp_path / "tiger.pg", tiger())
    assert again.value() == pytest.approx(classic.value())


def test_a_file_of_pomdp_solve_is_read(tmp_path):
    (tmp_path / "tiger.pg").write_text("0 2  2 2\n1 1  2 2\n2 0  3 4\n3 0  1 2\n4 0  2 0\n")
    controller = read_policy(tmp_path / "tiger.pg", tiger(), start=2)
    assert len(controller) == 5
    (tmp_path / "tiger.alpha").write_text("0\n-1.0 -1.0\n\n1\n-100 10\n\n2\n10 -100\n")
    assert read_policy(tmp_path / "tiger.alpha", tiger()).decide(tiger()).action == "listen"


def test_sparse_vectors_of_sarsop_are_read(tmp_path):
    (tmp_path / "p.policy").write_text(
        '<?xml version="1.0" encoding="ISO-8859-1"?><Policy version="0.1" type="value" model="m">'
        '<AlphaVector vectorLength="2" numObsValue="1" numVectors="1"><SparseVector action="1" obsValue="0">'
        "<Entry>1 2.5</Entry></SparseVector></AlphaVector></Policy>"
    )
    policy = read_policy(tmp_path / "p.policy", tiger())
    assert policy.vectors.tolist() == [[0.0, 2.5]]


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE Policy [<!ENTITY a "1 1 1 1 1 1 1 1"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<Policy><AlphaVector vectorLength="2"><Vector action="0" obsValue="0">&b;</Vector></AlphaVector></Policy>'
)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (BOMB, "document type"),
        ("<Policy>", "no element|unclosed|:1"),
        ("<html></html>", "expected <Policy>"),
        ("", ":1"),
        ("<Policy></Policy>", "no <Vector>"),
        ('<Policy><AlphaVector vectorLength="3"><Vector action="0">1 2</Vector></AlphaVector></Policy>', "3"),
        (
            '<Policy><AlphaVector vectorLength="2"><Vector action="0">1 x</Vector></AlphaVector></Policy>',
            "got 'x'",
        ),
        (
            '<Policy><AlphaVector vectorLength="2"><Vector action="0">1 2</Vector></AlphaVector>'
            '<AlphaVector vectorLength="3"><Vector action="0">1 2 3</Vector></AlphaVector></Policy>',
            "got vectorLength 3; expected 2",
        ),
        ('<Policy><AlphaVector vectorLength="2" numObsValue="4"></AlphaVector></Policy>', "observed"),
        (
            '<Policy><AlphaVector vectorLength="999999999999"><SparseVector action="0"/></AlphaVector></Policy>',
            "got vectorLength 999999999999; expected 2",
        ),
        ('<Policy><AlphaVector vectorLength="2"><Vector action="9">1 2</Vector></AlphaVector></Policy>', "actions"),
    ],
)
def test_broken_xml_is_refused(tmp_path, text, match):
    (tmp_path / "p.policy").write_text(text)
    with pytest.raises(PolicyFileError, match=match):
        read_policy(tmp_path / "p.policy", tiger())


DENSE = '<Policy><AlphaVector vectorLength="2"><Vector action="0">{}</Vector></AlphaVector></Policy>'
SPARSE = '<Policy><AlphaVector vectorLength="2"><SparseVector action="0">{}</SparseVector></AlphaVector></Policy>'
WRONG = [
    (SPARSE.format('<AlphaVector vectorLength="1000000000"/>'), "'AlphaVector'"),
    (SPARSE.format('<Vector action="0">1 2</Vector>'), "'Vector'"),
    (SPARSE.format("<Entry>0 1</Entry><Entry>0 2</Entry>"), "index 0 again"),
    (SPARSE.format("<Entry>0 1</Entry>7"), "'7'"),
    (SPARSE.format("<Entry>0 <Entry>1</Entry></Entry>"), "'Entry'"),
    (SPARSE.format("<Entry>2 1</Entry>"), "index 2"),
    (SPARSE.format("<Entry>0 1_0</Entry>"), "'1_0'"),
    (DENSE.format("1 <b/> 2"), "'b'"),
    (DENSE.format("1_000 2"), "'1_000'"),
    (DENSE.format("0x10 2"), "'0x10'"),
    (DENSE.format("\u0661 2"), "'\u0661'"),
    (DENSE.format("inf 2"), "'inf'"),
    (DENSE.format("1e999 2"), "'1e999'"),
    (DENSE.format("1 2").replace('action="0"', 'action="0" obsValue="1"'), "obsValue '1'"),
    ('<Policy>3<AlphaVector vectorLength="2"/></Policy>', "'3'"),
    ('<Policy><Other><Vector action="0">1 2</Vector></Other></Policy>', "'Other'"),
    ('<Policy><Vector action="0">1 2</Vector></Policy>', "'Vector'"),
]


@pytest.mark.parametrize(("text", "named"), WRONG)
def test_no_number_of_a_policy_file_is_dropped_crossed_or_guessed(tmp_path, text, named):
    (tmp_path / "p.policy").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyFileError, match=rf"p\.policy:1: got .*{named}"):
        read_policy(tmp_path / "p.policy", tiger())


def test_a_claimed_length_takes_no_memory(tmp_path, monkeypatch):
    text = '<Policy><AlphaVector vectorLength="{}"><SparseVector action="0"/></AlphaVector></Policy>'
    for length in (999_999_999_999, 99_999_999):
        (tmp_path / "p.policy").write_text(text.format(length))
        with pytest.raises(PolicyFileError, match=f"vectorLength {length}; expected 2"):
            read_policy(tmp_path / "p.policy", tiger())
    monkeypatch.setattr(files, "memory_available", lambda: 31)
    (tmp_path / "p.alpha").write_text("0\n1 2\n\n1\n1 2\n")
    with pytest.raises(PolicyFileError, match=r"got vectors of 4 values.*3"):
        read_policy(tmp_path / "p.alpha", tiger())


@pytest.mark.parametrize("word", ["1_0", "nan", "infinity", "1e400", "\u0661", "0x1p3"])
def test_numbers_of_an_alpha_file_are_decimals(tmp_path, word):
    (tmp_path / "p.alpha").write_text(f"0\n{word} 2\n", encoding="utf-8")
    with pytest.raises(PolicyFileError, match=r"p\.alpha:2: got "):
        read_policy(tmp_path / "p.alpha", tiger())
    (tmp_path / "p.alpha").write_text("\ufeff0\r\n+1.5e-1 .5\r\n", encoding="utf-8")
    assert read_policy(tmp_path / "p.alpha", tiger()).vectors.tolist() == [[0.15, 0.5]]


@pytest.mark.parametrize(
    "text", ["", "0\n", "0\n1 2\n\n1\n1\n", "x\n1 2\n", "0\n1 nan\n", "0 0\n1 2\n", "0\n1 2 3\n", "9\n1 2\n"]
)
def test_broken_alpha_files_are_refused(tmp_path, text):
    (tmp_path / "f.alpha").write_text(text)
    with pytest.raises(PolicyFileError, match=r"\.alpha"):
        read_policy(tmp_path / "f.alpha", tiger())


@pytest.mark.parametrize("text", ["", "0 0 0\n", "0 0 0 7\n", "0 9 0 0\n", "0 0 0 0\n0 0 0 0\n", "x 0 0 0\n"])
def test_broken_policy_graphs_are_refused(tmp_path, text):
    (tmp_path / "f.pg").write_text(text)
    with pytest.raises(PolicyFileError, match=r"\.pg"):
        read_policy(tmp_path / "f.pg", tiger())


def test_vectors_of_another_problem_are_refused():
    policy = AlphaVectorPolicy(np.zeros((1, 3)), np.array([0]))
    with pytest.raises(ModelError, match="3 states"):
        policy.decide(tiger())
    with pytest.raises(ModelError, match="expected"):
        AlphaVectorPolicy(np.zeros((0, 3)), np.zeros(0, dtype=int))


def test_vectors_are_read_where_they_are_legal():
    alone = AlphaVectorPolicy(np.array([[-np.inf, 1.5], [0.5, 0.25]]), np.array([1, 0]))
    assert alone.decide(tiger(), {"tiger-right": 1}).action == "open-left"
    assert alone.decide(tiger(), {"tiger-left": 1}).action == "listen"
    with pytest.raises(ModelError, match=r"got 2 states and actions up to 3.*2"):
        AlphaVectorPolicy(np.zeros((2, 2)), np.array([0, 3])).decide(tiger())
    search = three_node(0.75, 0.0, 0.5, 0.25)
    descend, only = (search.all_actions.index(action) for action in ("descend", "search"))
    both = AlphaVectorPolicy(np.array([np.full(7, 9.0), np.full(7, 2.0)]), np.array([descend, only]))
    assert both.value(search, {("c0", 1): 1}) == 9
    assert both.value(search, {("c1", 1): 1}) == 2
