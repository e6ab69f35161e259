"""Files told by their content, made by the programs that make them where these are installed."""

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile

import numpy as np
import pytest

from pomdp_hier._io.formats import file_ending, kind_of, text_of, unpacked
from pomdp_hier.errors import FeatureError, ReaderError


def zipped(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return content.getvalue()


def saved(save, *arrays):
    content = io.BytesIO()
    save(content, *arrays)
    return content.getvalue()


TEXTS = [
    b"id,x\n1,2\n",
    b"((A,B),C);",
    b"[[0,1],[2,3]]",
    b"PK,name\n1,a\n",
    b"PAR1,PAR2\n1,2\n",
    b"MATLAB > toolbox\n",
    b"Home > Bath\n",
    b"\xef\xbb\xbf{}",
    b"#items\na > b\n",
    "BZ,Größe\n".encode(),
]
OTHERS = [
    (b"", "empty"),
    (b"\xef\xbb\xbf \n", "empty"),
    (saved(np.save, np.zeros(3)), "npy"),
    (saved(np.savez, np.zeros(3)), "npz"),
    (saved(np.savez_compressed, np.zeros(3)), "npz"),
    (zipped(), "npz"),
    (gzip.compress(b"a", mtime=0), "gzip"),
    (bz2.compress(b"a"), "bzip2"),
    (lzma.compress(b"a"), "xz"),
    (zipped("[Content_Types].xml", "xl/workbook.xml"), "excel"),
    (zipped("docProps/app.xml", "xl/workbook.xml"), "excel"),
    (zipped("mimetype", "content.xml"), "workbook"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "workbook"),
    (zipped("archive/data.pkl"), "pickle"),
    *((pickle.dumps([1.0, {"a": 2}], protocol), "pickle") for protocol in range(6)),
    *((pickle.dumps({"a": 2}, protocol), "pickle") for protocol in range(6)),
    *((pickle.dumps(np.zeros(2), protocol), "pickle") for protocol in range(6)),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"%PDF-1.7", "pdf"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    ("a,b\n".encode("utf-16"), "utf-16"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git-lfs"),
    (b"/annex/objects/SHA256E-s1--4d.npy\n", "git-annex"),
    (b"#NEXUS\nBEGIN TREES;\n", "nexus"),
    (b"\n#nexus\n", "nexus"),
    (b'<?xml version="1.0"?>\n<phyloxml xmlns="http://www.phyloxml.org">', "phyloxml"),
    (b"<phyloxml>", "phyloxml"),
    (b'<?xml version="1.0"?>\n<nex:nexml version="0.9">', "nexml"),
    (b"<!DOCTYPE html>\n<title>Not found</title>", "html"),
    (b"  <HTML>", "html"),
    (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0"><html>', "html"),
    (b'<?xml version="1.0"?><rows/>', "xml"),
]


@pytest.mark.parametrize("content", TEXTS)
def test_text_is_text(content):
    assert kind_of(content).name == "text"
    plain = content.decode("utf-8-sig")
    assert text_of(content, "t", ReaderError) == text_of(gzip.compress(content), "t", ReaderError) == plain


@pytest.mark.parametrize(("content", "kind"), OTHERS)
def test_other_files_are_named_and_refused_as_text(content, kind):
    found = kind_of(content)
    assert found.name == kind
    assert kind_of(content[:4096]).name == kind
    if kind != "gzip":
        for packed in (content, gzip.compress(content)):
            with pytest.raises(ReaderError) as caught:
                text_of(packed, "t.json", ReaderError)
            assert str(caught.value) == f"t.json: got {found.what}. {found.remedy[0].upper()}{found.remedy[1:]}."


def test_a_workbook_and_a_parquet_file_as_they_are_written(tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    for table in (pa.table({"a": [1]}), pa.table({"a": pa.array([], pa.int8())})):
        pq.write_table(table, tmp_path / "t.parquet")
        assert kind_of((tmp_path / "t.parquet").read_bytes()).name == "parquet"


def test_a_tar_archive_is_no_text():
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"), io.BytesIO())
    assert kind_of(content.getvalue()).name == "tar"


def test_gzip_is_unpacked_up_to_a_limit_and_its_damage_is_named():
    whole = b"0123456789" * 1000
    packed = gzip.compress(whole)
    assert unpacked(packed + packed, "x.gz", FeatureError) == whole + whole  # as `cat a.gz b.gz` makes it
    assert unpacked(whole, "x", FeatureError, limit=1) == whole
    assert unpacked(packed, "x.gz", FeatureError, limit=10_000) == whole
    with pytest.raises(FeatureError, match=r"x\.gz, unpacked: got a declared size"):
        unpacked(packed, "x.gz", FeatureError, limit=9_999)
    for damaged in (packed[:-9], packed[:5], packed + b"more", packed[:30] + b"\xff\xff" + packed[32:]):
        with pytest.raises(ReaderError, match=r"x\.gz: cannot be decoded"):
            unpacked(damaged, "x.gz", ReaderError)


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    read = []
    stream_read = gzip.GzipFile.read

    def counted(self, size=-1):
        read.append(size)
        return stream_read(self, size)

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    with pytest.raises(ReaderError, match=r"bomb.gz, unpacked: got a declared size"):
        text_of(gzip.compress(bytes(50 << 20)), "bomb.gz", ReaderError, limit=1 << 20)
    assert sum(read) <= 8 << 20
    assert min(read) > 0


def test_bytes_that_are_no_text_are_named():
    with pytest.raises(ReaderError, match=r"t\.json: got 0xff as byte 2 .*expected UTF-8"):
        text_of(b'{"\xff"}', "t.json", ReaderError)


def test_an_ending_is_that_before_gz():
    names = ["a/b.CSV", "a.tar.gz", "b.json.GZ", ".gz", "x", "-", "a.b/c"]
    assert [file_ending(name) for name in names] == [".csv", ".tar", ".json", "", "", "", ""]
