"""The table of what is fuzzed: one row a reader. To add one: seeds, the function that reads, words, and its name.

Seeds are small; imports stand inside the functions, so that a reader costs nothing where another one is fuzzed.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pomdp_hier.errors import CertificateError, ReaderError
from tests.fuzz.harness import Reader

__all__ = ["READERS"]


# --- .pomdp files ------------------------------------------------------------------------------------------------

_TIGER = b"""# the tiger
discount: 0.95
values: reward
states: left right
actions: listen open-left open-right
observations: hear-left hear-right
start: 0.5 0.5
T: listen identity
T: open-left uniform
T: open-right : left : right 0.5
T: open-right : left : left 0.5
T: open-right : right reset
O: * uniform
O: listen
0.85 0.15
0.15 0.85
R: listen : * : * : * -1
R: open-left : left : * : * -100
R: open-left : right : right : hear-left 10
R: open-right : left
10 20
30 40
R: open-right : right : left
5 -5
"""
_MDP = b"""values: cost
states: 3
actions: 2
discount: 1
start exclude: 2
T: 0 identity
T: 1
.1 .2 .7
0 1 0
1e-3 0.999 0
R: 0 : 1 : 2 : * 3.5
R: 1 : 0
1 2 3
R: 1 : 1 : * 7
"""
_LOOSE = b"states:2 actions:1 observations:3 start include: 0 1\r\nT:*:*:* .5 O:0:0 1 0 0 O:0:1 - 0 +1 0 R:*:*:*:* - 5"


def _read_pomdp(path: Path) -> None:
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(path)
    if len(problem.states) * len(problem.all_actions) * len(problem.all_observations) < 100:
        problem.observation_probabilities(problem.initial_belief, problem.all_actions[0])
        assert problem.compiled.reward.size


def _read_exactly(path: Path) -> None:
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    read_pomdp(path, exact=True, normalize=True)


_POMDP_WORDS = (
    *("discount:", "values:", "states:", "actions:", "observations:", "start:", "start include:", "start exclude:"),
    *("T:", "O:", "R:", "uniform", "identity", "reset", "reward", "cost", " : ", "*", "0.5", "1.0", "2000000", "left"),
)

# --- policies of other solvers, and certificates ------------------------------------------------------------------

_POLICIES = {
    "alpha": b"0\n-1.5 2\n\n1\n3e-2 4\n\n2\n-100 10\n",
    "policy_graph": b"0 0  1 0\n1 2  - 1\n",
    "policy_xml": b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<Policy version="0.1" type="value" model="model.pomdp">
<AlphaVector vectorLength="2" numObsValue="1" numVectors="2">
<Vector action="1" obsValue="0">1.5 -2 </Vector>
<SparseVector action="0" obsValue="0"><Entry>1 2.5</Entry></SparseVector>
</AlphaVector> </Policy>
""",
}
_BOMB = b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
_POLICY_WORDS = {
    "alpha": ("0", "1", "-", "1e400", "nan"),
    "policy_graph": ("0", "1", "-", "99999999999999999999"),
    "policy_xml": (
        *("Vector", "SparseVector", "<Entry>1 2</Entry>", 'vectorLength="99999999"', 'action="1"', "&a;", "&#0;"),
        *('<AlphaVector vectorLength="3">', "</AlphaVector>", "<![CDATA[1 2]]>", "UTF-16", "x-nosuch", _BOMB.decode()),
    ),
}


def _read_policy(path: Path) -> None:
    from pomdp_hier.planning import read_policy, write_policy
    from pomdp_hier.problems import tiger

    write_policy(read_policy(path, tiger()), path)


_ENDINGS = {"alpha": ".alpha", "policy_graph": ".pg", "policy_xml": ".policy"}


def _certificates() -> list[bytes]:
    import json

    from pomdp_hier.planning import solve
    from pomdp_hier.problems import tiger

    return [json.dumps(solve(tiger(), precision=width).certificate()).encode() for width in (5.0, 0.5)]


def _verify(path: Path) -> None:
    import io

    from pomdp_hier.cli import main
    from pomdp_hier.pomdp.pomdp_file import write_pomdp
    from pomdp_hier.problems import tiger

    problem = path.with_suffix(".pomdp")
    write_pomdp(tiger(), problem)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(["verify", str(path), str(problem)])
    problem.unlink()
    assert code in (0, 3), said.getvalue()
    if code:
        raise CertificateError(said.getvalue())


# --- features, and trees on the command line -----------------------------------------------------------------------


def _arrays() -> list[bytes]:
    import gzip
    import io

    import numpy as np
    import scipy.sparse as sp

    def saved(save: Callable[..., object], *arrays: Any, **named: Any) -> bytes:
        content = io.BytesIO()
        save(content, *arrays, **named)
        return content.getvalue()

    X = np.array([[0.5, 0.0, -3.0], [0.0, 1.0, 7.25]])
    sparse = [saved(sp.save_npz, getattr(sp, f"{kind}_array")(X), compressed=False) for kind in ("csr", "csc", "coo")]
    dense = [saved(np.save, X), saved(np.save, X.astype(np.float32).T), saved(np.savez, X=X, y=X[0])]
    return [*dense, *sparse, saved(np.savez_compressed, X), gzip.compress(saved(np.save, X), mtime=0)]


def _archives() -> list[bytes]:
    """Archives whose members are packed in each of the four ways that zipfile knows, dense and sparse, also in gzip."""
    import gzip
    import io
    import zipfile

    import numpy as np
    import scipy.sparse as sp

    X = np.random.default_rng(0).random((8, 3)).round(1)
    plain = [io.BytesIO(), io.BytesIO()]
    np.savez(plain[0], X=X)
    sp.save_npz(plain[1], sp.csr_array(X), compressed=False)
    packed = []
    for way in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        for source in plain:
            content = io.BytesIO()
            with zipfile.ZipFile(source) as members, zipfile.ZipFile(content, "w", way) as archive:
                for name in members.namelist():
                    archive.writestr(name, members.read(name))
            packed.append(content.getvalue())
    return [*packed, gzip.compress(packed[-1], mtime=0)]


def _tables() -> list[bytes]:
    import gzip

    rows = b'id,x,"y, z"\na,1,2\nb,.5,-4e2\n'
    return [rows, rows.replace(b",", b";"), b"\xef\xbb\xbfx\ty\r\n1\t2\r\n", gzip.compress(rows, mtime=0)]


def _parquet() -> list[bytes]:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": ["a", "b"], "x": [1.0, 2.0], "n": [1, 2]})
    contents = {codec: io.BytesIO() for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4")}
    for codec, content in contents.items():
        pq.write_table(table, content, compression=codec)
    return [content.getvalue() for content in contents.values()]


def _read_features(path: Path) -> None:
    from pomdp_hier.features.loading import load_features
    from pomdp_hier.features.validation import check_features

    table = load_features(path)
    assert table.ids is None or hash(table.ids)
    if table.matrix.shape[0] < 1000 and table.matrix.shape[1] < 1000:
        check_features(table.matrix, table.matrix.shape[0])


def _show(path: Path) -> None:
    import io

    from pomdp_hier.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(["show", str(path), "--ascii"])
    assert code in (0, 1, 2), code
    assert code == 0 or said.getvalue().splitlines()[-1].startswith("error: "), said.getvalue()
    if code:
        raise ReaderError(said.getvalue())


_TREES = (
    b"id,parent\nall,\nland,all\nsea,all\nant,land\nbee,land\ncod,sea\neel,sea\n",
    b"parent,child\nall,land\nall,sea\nland,ant\nland,bee\nsea,cod\nsea,eel\n",
    b"item,path\nant,all > land\nbee,all > land\ncod,all > sea\n",
    b"# lines\nall > land > ant\nall > land > bee\n",
    b"((ant:1,'bee''s')land,(cod,eel)sea)all;",
    b'{"children": [[0, 1], [2, 3], [4, 5]], "labels": ["ant", "bee", "cod", "eel"]}',
    b'{"name": "all", "children": [{"name": "ant"}, {"name": "sea", "children": [{"name": "cod"}, {"name": "eel"}]}]}',
    b"[[0, 1, 1.0, 2], [2, 3, 1.5, 2], [4, 5, 2.0, 4]]",
    b"Parent_ID,Parent_Name,Child_Left_ID,Child_Right_ID\n4,x,0,1\n5,y,2,3\n6,z,4,5\n",
)
_NPY_WORDS = (
    "'shape': ",
    "(2, 3)",
    "(-1, 3)",
    "True",
    "'<f8'",
    "'|O'",
    "'|V0'",
    "'|S0'",
    "9223372036854775808",
    "NUMPY",
)

# --- trees -------------------------------------------------------------------------------------------------------

_TREE_WORDS = (
    *(
        "id",
        "parent",
        "child",
        "path",
        "item",
        "children",
        "edges",
        "items",
        "labels",
        "n_items",
        "name",
        " > ",
        "[0,1]",
    ),
    *("[0,1]", "singletons", "Parent_ID", "Topics", "1 - ", " : ", "[&R]", "(a,b)", ";", "0.5", "1e5", "r", "a", "b"),
)
_TREE_FILES: dict[str, tuple[bytes, ...]] = {
    "json": (
        b"[[0, 1], [2, 3], [4, 5]]",
        b'{"edges": [["r", "a"], ["r", "b"], ["a", "x"], ["a", "y"]], "items": ["x", "y", "b"], "singletons": true}',
        b'{"children": [[0, 1], [3, 2]], "n_items": 3, "labels": ["a", "b", "c", "p", null]}',
        b'[{"name": "r", "children": [{"name": "a", "children": [{"name": "x"}]}, {"name": "b"}]}]',
        b'{"A": {"x": ["i1", "i2"], "y": null}, "B": ["i3"]}',
        b'[{"id": "r", "parent": null}, {"id": "a", "parent": "r"}]',
    ),
    "newick": (b"[&R] (('it''s':1.5e-3,\"b b\":-2)in[x[y]]:.5,\nc_d:1e5)top:0;", b"((0,1)0.9,(2,3)1)100;"),
    "paths": (
        b"item,path\na,Home > Bath\nb,Home > Bed\nc,Pets\n",
        b"item,l1,l2\na,H,K\nb,H,\nc,P,Q\n",
        b"# v1\n1 - Pets\n2 - Pets > Food\n3 - Pets > Toys\n",
        b"x/1 : A > B\nx/2 : A > C\n",
        b"A/b\\/c/d\nA/e\n",
    ),
    "parents": (
        b"id,parent\nr,\na,r\nb,r\nx,a\ny,a\n",
        b'code,parent,name\nA,0,Animals\nB,A,"Birds, all"\nC,A,Cats\n',
        b"id;parent\n1;\n2;1.0\n3;1.0\n",
    ),
    "edges": (b"parent,child\nr,a\nr,b\na,x\na,y\n", b"source\ttarget\n5\t0\n5\t1\n6\t5\n6\t2\n"),
    "bertopic": (
        b'Parent_ID,Topics,Child_Left_ID,Child_Right_ID\n5,"[1, 2, 3]",1,2\n6,"[0, 1, 2, 3]",5,0\n',
        b"Parent_ID,Child_Left_ID,Child_Right_ID\n4,3,2\n3,0,1\n",
    ),
}


def _read_tree(form: str, source: Path) -> None:
    from pomdp_hier.hierarchy import Hierarchy

    tree = getattr(Hierarchy, f"from_{form}")(source)
    assert tree.to_text()
    assert Hierarchy.from_json(tree.to_json()) == tree


def _write_tree_back(form: str, source: Path) -> None:
    from pomdp_hier.errors import HierarchyError
    from pomdp_hier.hierarchy import Hierarchy
    from pomdp_hier.hierarchy.writing_back import written_like

    read = getattr(Hierarchy, f"from_{form}")
    tree, text = read(source), source.read_bytes().decode()
    written = written_like(tree, text, form, read)
    assert written == text or form == "newick", written
    parent = tree.parent.copy()
    parent[0] = parent[tree.n_items - 1]
    if tree.n_nodes < 1000:
        with contextlib.suppress(HierarchyError):
            written_like(tree.with_parents(parent), text, form, read)


def _tree_readers() -> Iterator[Reader]:
    for form, files in _TREE_FILES.items():
        yield Reader(f"{form}-file", partial(tuple, files), partial(_read_tree, form), ".txt", _TREE_WORDS)
        if form not in ("bertopic", "json"):
            written = partial(_write_tree_back, form)
            yield Reader(f"{form}-written-back", partial(tuple, files), written, ".txt", _TREE_WORDS)


def _tree_values() -> dict[str, list[Any]]:
    import numpy as np

    parents = {"r": None, "a": "r", "b": "r", "x": "a", "y": "a"}
    columns = {"id": list(parents), "parent": list(parents.values())}
    pairs = [("r", "a"), ("r", "b"), ("a", "x"), ("a", "y")]
    numbers = np.array([[4, 0], [4, 1], [5, 4], [5, 2]])
    merges = [[0, 1, 0.5, 2], [2, 3, 0.7, 2], [4, 5, 1.5, 4]]
    paths = {"x": "r > a", "y": "r > a", "b": "r > c"}
    segments = [["r", "a", "x"], ["r", "b"]]
    return {
        "parents": [parents, list(parents.items()), columns, [{"id": 1, "parent": None}, {"id": 2, "parent": 1}]],
        "linkage": [merges, np.array(merges), np.array(merges)[:, :2].astype(np.int64)],
        "children": [[[0, 1], [2, 3], [4, 5]], np.array([[0, 1], [2, 3], [4, 5]]), [(0, 1, 2)]],
        "edges": [pairs, np.array(pairs), numbers, {"parent": [2, 2], "child": [0, 1]}],
        "paths": [paths, list(paths.values())[1:], segments, list(paths.items()), [{"id": 1, "path": "r"}]],
    }


def _read_tree_value(form: str, value: Any) -> None:
    from pomdp_hier.hierarchy import Hierarchy

    assert getattr(Hierarchy, f"from_{form}")(value).to_text()


def _tree_value_readers() -> Iterator[Reader]:
    for form in ("parents", "linkage", "children", "edges", "paths"):
        yield Reader(f"{form}-value", lambda form=form: _tree_values()[form], partial(_read_tree_value, form))


_ALL = (
    Reader("features-arrays", _arrays, _read_features, "", _NPY_WORDS),
    Reader("features-archives", _archives, _read_features, "", _NPY_WORDS),
    Reader("features-csv", _tables, _read_features, ".csv", ("id", "x", '"', "1e400", "0x1")),
    Reader("features-parquet", _parquet, _read_features, ".parquet", needs=("pyarrow",)),
    Reader(
        "show", lambda: _TREES, _show, "", ("id", "parent", "child", "path", "item", "children", "edges", " > ", "-")
    ),
    Reader("pomdp-file", lambda: [_TIGER, _MDP, _LOOSE], _read_pomdp, ".pomdp", _POMDP_WORDS),
    Reader("pomdp-file-exact", lambda: [_TIGER, _MDP, _LOOSE], _read_exactly, ".pomdp", _POMDP_WORDS),
    *(
        Reader(form, lambda seed=seed: [seed], _read_policy, _ENDINGS[form], _POLICY_WORDS[form])
        for form, seed in _POLICIES.items()
    ),
    Reader("certificate", _certificates, _verify, ".json", ("version", "stages", "points", "horizon", "-1", "1e9")),
    *_tree_readers(),
    *_tree_value_readers(),
)

READERS = {reader.name: reader for reader in _ALL}
