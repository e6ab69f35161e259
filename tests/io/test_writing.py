"""Files are there whole or not at all; nothing is written through a link, and what is there keeps its permissions."""

import os
import stat
import sys
from pathlib import Path

import pytest

from pomdp_hier._io import writing
from pomdp_hier._io.writing import remove_drafts, write_file
from pomdp_hier.errors import PomdpHierError

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links of POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_alone_in_their_folder(tmp_path):
    write_file(tmp_path / "a", "Größe \ud800")
    write_file(str(tmp_path / "b"), b"\0\xff", replace=False)
    assert (tmp_path / "a").read_text(encoding="utf-8") == "Größe ?"
    assert (tmp_path / "b").read_bytes() == b"\0\xff"
    assert names(tmp_path) == ["a", "b"]


@on_posix
def test_permissions_are_those_of_any_new_file_or_of_the_one_replaced(tmp_path):
    (tmp_path / "plain").write_text("")
    write_file(tmp_path / "new", "x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    for mode in (0o600, 0o640, 0o666):
        (tmp_path / "plain").chmod(mode)
        write_file(tmp_path / "plain", "x")
        assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == mode


@pytest.mark.parametrize("hard_links", [True, False])
def test_an_existing_file_is_replaced_only_if_allowed(tmp_path, monkeypatch, hard_links):
    if not hard_links:

        def refuse(*_):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a").write_text("old")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("a", "dangling"):
        with pytest.raises(PomdpHierError, match="replace=True"):
            write_file(tmp_path / name, "new", replace=False)
    assert (tmp_path / "a").read_text() == "old"
    write_file(tmp_path / "fresh", "new", replace=False)
    assert names(tmp_path) == ["a", "dangling", "fresh"]


@on_posix
def test_a_file_created_during_writing_is_not_replaced(tmp_path, monkeypatch):
    link = os.link

    def late(draft, target):
        Path(target).write_text("another's")
        link(draft, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(PomdpHierError, match="replace=True"):
        write_file(tmp_path / "a", "mine", replace=False)
    assert (tmp_path / "a").read_text() == "another's"
    assert names(tmp_path) == ["a"]


@on_posix
def test_links_are_replaced_and_never_followed(tmp_path, monkeypatch):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "out").symlink_to("victim")
    write_file(tmp_path / "out", "new")
    assert not (tmp_path / "out").is_symlink()
    monkeypatch.setattr(writing.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".guessed.part").symlink_to("victim")
    with pytest.raises(PomdpHierError, match="replace=True"):
        write_file(tmp_path / "b", "new")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "b").exists()


def test_no_draft_is_left_after_an_error(tmp_path, monkeypatch):
    with pytest.raises(PomdpHierError, match=r"cannot be written \(No such file"):
        write_file(tmp_path / "no" / "a", "x")
    with pytest.raises(PomdpHierError, match=r"cannot be written \(Is a directory"):
        write_file(tmp_path, "x")
    (tmp_path / "a").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PomdpHierError, match="No space left"):
        write_file(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_a_terminated_process_removes_its_drafts(tmp_path, monkeypatch):
    def told(*_):
        assert len(names(tmp_path)) == 1
        remove_drafts()
        raise OSError

    monkeypatch.setattr(os, "replace", told)
    with pytest.raises(PomdpHierError):
        write_file(tmp_path / "a", "x")
    assert names(tmp_path) == []


@on_posix
def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(tmp_path / "pipe", "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
