"""The commands solve and verify, on a file, and on certificates that prove nothing."""

import json
import re

import pytest

from pomdp_hier.cli import main
from pomdp_hier.planning import solve
from pomdp_hier.pomdp.pomdp_file import write_pomdp
from pomdp_hier.problems import tiger


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "tiger.pomdp"
    write_pomdp(tiger(), path)
    return path


def test_solve_and_verify(model, tmp_path, capsys):
    proof = tmp_path / "proof.json"
    assert main(["solve", str(model), "--precision", "0.001", "--certificate", str(proof), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "first action listen" in said
    assert re.search(r"\n\d[\d,]* backups, [\d.e-]+ s, 0\.\d+ MB\n", said)
    assert main(["verify", str(proof), str(model)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{model}: proved: the optimal value of problem ")
    assert " from its initial belief, over an infinite horizon at discount 0.95, is at least 19.37" in said
    assert main(["verify", str(proof), str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "/" in found["lower"]
    assert found["belief"] == {"tiger-left": "1/2", "tiger-right": "1/2"}
    assert (found["horizon"], found["discount"], len(found["problem"])) == (None, "19/20", 16)


def test_a_certificate_from_another_belief_is_verified_from_it_alone(model, tmp_path, capsys):
    proof, belief = tmp_path / "proof.json", '{"tiger-left": 0.97, "tiger-right": 0.03}'
    proof.write_text(json.dumps(solve(tiger(), belief=json.loads(belief), precision=1).certificate()))
    assert main(["verify", str(proof), str(model)]) == 3
    assert "name it as --belief" in capsys.readouterr().err
    assert main(["verify", str(proof), str(model), "--belief", belief]) == 0
    assert "from belief {'tiger-left': 0.97, 'tiger-right': 0.03}, over" in capsys.readouterr().out
    assert main(["verify", str(proof), str(model), "--belief", '{"nowhere": 1}']) == 1
    assert "belief: got state 'nowhere'" in capsys.readouterr().err
    for text in ("[1]", "{", "[" * 100_000):
        assert main(["verify", str(proof), str(model), "--belief", text]) == 2
        assert "--belief: got" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", "", "[" * 100_000, "9" * 10_000, "\xff", '{"format": NaN}'])
def test_exit_code_3_for_an_invalid_certificate(model, tmp_path, capsys, text):
    proof = tmp_path / "proof.json"
    proof.write_text(text, encoding="latin-1")
    assert main(["verify", str(proof), str(model)]) == 3
    assert "error:" in capsys.readouterr().err


def test_the_first_inequality_that_fails_is_named(model, tmp_path, capsys):
    proof = tmp_path / "proof.json"
    assert main(["solve", str(model), "--certificate", str(proof), "--quiet"]) == 0
    forged = json.loads(proof.read_text())
    forged["stages"][0]["points"][0]["value"] -= 2**48
    proof.write_text(json.dumps(forged))
    assert main(["verify", str(proof), str(model)]) == 3
    assert "stages[0].points[0]" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["alpha", "pg", "dot", "policy"])
def test_policies_are_written(model, tmp_path, capsys, suffix):
    path = tmp_path / f"p.{suffix}"
    assert main(["solve", str(model), "--policy-out", str(path), "--horizon", "3", "--quiet", "--json"]) == 0
    assert path.stat().st_size > 20
    assert json.loads(capsys.readouterr().out)["lower"] == pytest.approx(2.3098)
    assert main(["solve", str(model), "--policy-out", str(path), "--quiet"]) == 1
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--certificate", "--policy-out"])
def test_outputs_are_checked_before_solving(model, tmp_path, capsys, option):
    assert main(["solve", str(model), option, str(tmp_path / "none" / "p.pg"), "--quiet"]) == 1
    said = f"{tmp_path / 'none' / 'p.pg'}: got the folder {tmp_path / 'none'}, which does not exist"
    assert said in capsys.readouterr().err
    assert main(["solve", str(model), option, str(model), "--force", "--quiet"]) == 2
    assert f"{option}: got {model}, the same file" in capsys.readouterr().err


def test_wrong_usage(model, capsys):
    assert main(["solve", str(model), "--policy-out", "x.txt"]) == 2
    assert main(["solve", str(model), "--precision", "-1"]) == 2
