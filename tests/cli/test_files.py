"""No command starts where two of its outputs are one file, or an output is an input, by whatever path."""

import argparse
import os
import sys
from functools import cache
from itertools import product

import pytest

from pomdp_hier.cli import build_parser, console, main

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
NAMED_BY = {
    "SEARCHES",
    "MOVES",
    "FEATURES",
    "TREE",
    "FILE",
    "PATH",
    "CSV",
    "HTML",
    "MODEL",
    "CERTIFICATE",
    ("FEATURES", "TREE"),
}


@cache
def commands():
    actions = next(action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return actions.choices


PAIRS = [
    pytest.param(name, output, other, id=f"{name}-{output.dest}-{other.dest}")
    for name, command in commands().items()
    for output, other in product(console.file_arguments(command), repeat=2)
    if output.type is console.output_file and output is not other
]


def same(path):
    return path


def beside(path):
    return path.parent / "." / "sub" / ".." / path.name


def by_symlink(path):
    (path.parent / "sub" / path.name).symlink_to(path)
    return path.parent / "sub" / path.name


def by_hard_link(path):
    (path.parent / "sub" / path.name).hardlink_to(path)
    return path.parent / "sub" / path.name


def line(command, folder, given):
    """The words of a command line whose arguments that name files are these, or files that are there."""
    words = []
    for action in console.file_arguments(commands()[command]):
        if action.dest in given or action.required or (not action.option_strings and action.nargs != "?"):
            value = str(given.get(action.dest, folder / f"{action.dest}.html"))
            words += [*action.option_strings[-1:], value]
    return [command, *words, *(["--force"] if "--force" in commands()[command].format_help() else [])]


@pytest.mark.parametrize(("command", "output", "other"), PAIRS)
def test_one_file_for_two_arguments_is_refused_before_work_starts(tmp_path, capsys, command, output, other):
    file = tmp_path / "same.csv"
    file.write_text("what is there")
    given = {output.dest: file, other.dest: tmp_path / "." / "same.csv"}
    assert main(line(command, tmp_path, given)) == 2
    said = capsys.readouterr().err
    assert "same.csv" in said
    assert output.option_strings[-1] in said
    assert (other.option_strings or [other.metavar])[-1] in said
    assert file.read_text() == "what is there"


@on_posix
@pytest.mark.parametrize("way", [same, beside, by_symlink, by_hard_link])
def test_one_file_by_two_paths(tmp_path, way):
    (tmp_path / "sub").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "other").touch()
    assert console.same_file(str(tmp_path / "file"), str(way(tmp_path / "file")))
    assert not console.same_file(str(tmp_path / "other"), str(tmp_path / "file"))


def test_two_new_files_are_one_by_any_path_to_their_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert console.same_file(str(tmp_path / "new"), str(tmp_path / "link" / "new"))
    assert not console.same_file(str(tmp_path / "new"), str(tmp_path / "link" / "other"))
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    assert console.same_file(str(tmp_path / "new"), str(tmp_path / "dangling"))


def test_names_in_another_case_are_one_file_where_the_file_system_says_so(tmp_path, monkeypatch):
    new, shouted = str(tmp_path / "tree.csv"), str(tmp_path / "TREE.csv")
    (tmp_path / "probe").touch()
    assert console.same_file(new, shouted) == (tmp_path / "PROBE").exists()
    monkeypatch.setattr(console, "_ignores_case", lambda folder: True)
    assert console.same_file(new, shouted)
    assert not console.same_file(new, str(tmp_path / "TREES.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["probe"]


@on_posix
def test_a_file_that_takes_standard_output_is_no_output(tmp_path, capsys, monkeypatch):
    model, proof = tmp_path / "m.pomdp", tmp_path / "proof.json"
    model.write_text("discount: 0.9\nstates: 1\nactions: 1\nobservations: 1\nT: 0 identity\nO: 0 uniform\n")
    with open(proof, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["solve", str(model), "--certificate", str(proof), "--force"]) == 2
        assert main(["solve", str(model), "--certificate", str(tmp_path / "other.json")]) == 0
    assert "--certificate" in capsys.readouterr().err


def test_the_null_device_takes_any_number_of_outputs():
    assert not console.same_file(os.devnull, os.devnull)


@pytest.mark.parametrize("command", commands())
def test_every_argument_that_names_a_file_is_marked(command):
    for action in commands()[command]._actions:
        metavar = tuple(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        assert (metavar in NAMED_BY) == (action.type in (console.input_file, console.output_file)), action.dest
