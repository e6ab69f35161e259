"""One tree through every reader is one Hierarchy; no reader gives way under arbitrary input."""

import contextlib
import itertools
import json
from collections.abc import Callable
from functools import reduce
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier.errors import PomdpHierError
from pomdp_hier.hierarchy import Hierarchy
from tests.hierarchy_oracle import Node, Sample, samples

pytestmark = pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning")


def name(node: Node) -> str:
    return f"item {node.item}" if node.item is not None else f"c{node.number}"


def nested(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name(node)}
    if node.item is None:
        found["children"] = [nested(child) for child in node.children]
    return found


def newick(node: Node) -> str:
    below = "(" + ",".join(map(newick, node.children)) + ")" if node.children else ""
    return f"{below}'{name(node)}':1"


def paths(node: Node, above: tuple[str, ...] = ()) -> dict[int, tuple[str, ...]]:
    if node.item is not None:
        return {node.item: above}
    return {i: p for child in node.children for i, p in paths(child, (*above, name(node))).items()}


@given(samples(), st.booleans(), st.randoms(use_true_random=False))
def test_the_same_tree_through_every_reader(sample: Sample, singletons: bool, random: Any) -> None:
    tree = sample.hierarchy(singletons)
    items = [f"item {item}" for item in range(sample.n_items)]
    links = [(parent, node) for node, _, parent in sample.root.walk() if parent is not None]
    edges = [(name(parent), name(node)) for parent, node in links]
    numbered = [[parent.number, node.number] for parent, node in links]
    random.shuffle(edges)
    random.shuffle(numbered)
    rows = [(name(sample.root), None), *((child, parent) for parent, child in edges)]
    nested_text = json.dumps(nested(sample.root))
    found: dict[str, Hierarchy] = {
        "parents": Hierarchy.from_parents(rows, items=items, singletons=singletons),
        "csv": Hierarchy.from_parents(
            "id,parent\n" + "".join(f"{child},{parent or ''}\n" for child, parent in rows), items=items,
            singletons=singletons,
        ),
        "newick": Hierarchy.from_newick(newick(sample.root) + ";", items=items, singletons=singletons),
        "written newick": Hierarchy.from_newick(tree.to_newick(), singletons=singletons),
        "nested": Hierarchy.from_json(nested_text, form="nested", items=items, singletons=singletons),
        "nodes": Hierarchy.from_nodes(nested(sample.root), items=items, singletons=singletons),
        "written json": Hierarchy.from_json(tree.to_json()),
        "networkx": Hierarchy.from_networkx(tree.to_networkx(), n_items=tree.n_items, singletons=singletons),
        "children": Hierarchy.from_children(tree.to_children(), tree.n_items, singletons=singletons),
    }  # fmt: skip
    if sample.root.item is None:
        graph = nx.DiGraph(edges)
        found["edges"] = Hierarchy.from_edges(edges, items=items, singletons=singletons)
        found["numbered"] = Hierarchy.from_edges(numbered, n_items=sample.n_items, singletons=singletons)
        found["graph"] = Hierarchy.from_networkx(graph, items=items, singletons=singletons)
        found["json"] = Hierarchy.from_json({"edges": numbered, "n_items": sample.n_items}, singletons=singletons)
        below = {item: path[1:] for item, path in paths(sample.root).items()}
        if all(below.values()):  # no item right below the root, whose category would be the empty path
            table = "item,path\n" + "".join(f"{item},{' > '.join(path)}\n" for item, path in below.items())
            joined = Hierarchy.from_paths(table, items=range(sample.n_items), singletons=singletons)
            found["paths"] = joined
    for reader, other in found.items():
        assert other == tree, reader
        assert hash(other) == hash(tree)


READERS: dict[str, Callable[..., Hierarchy]] = {
    "parents": Hierarchy.from_parents,
    "paths": Hierarchy.from_paths,
    "paths as a table": lambda source, **options: Hierarchy.from_paths(source, form="table", **options),
    "paths of categories": lambda source, **options: Hierarchy.from_paths(source, ends_in="category", **options),
    "newick": Hierarchy.from_newick,
    "json": Hierarchy.from_json,
}
PIECES = st.sampled_from(
    [*"()[]{},:;'\"<>|/\\#&=-+.", "\n", "\r", "\t", "\0", "\ufeff", "\x85", "a", "b", "0", "1", "1e5", "nan", "id",
     "parent", "item", "path", "children", "edges", "n_items", " > ", "null", "é", "[[0,1],[2,3]]", "(a,b)", "1 - "]
)  # fmt: skip
OPTIONS = st.fixed_dictionaries(
    {
        "on_multiple_parents": st.sampled_from(["error", "first", "duplicate"]),
        "items_at_inner": st.sampled_from(["leaf", "error"]),
        "singletons": st.booleans(),
    },
    optional={"items": st.lists(st.sampled_from(["a", "b", "0", "1", 0, 1, None]), max_size=4)},
)


@pytest.mark.parametrize("reader", READERS)
@given(
    text=st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)),
    noise=st.binary(max_size=3),
    as_bytes=st.booleans(),
    options=OPTIONS,
)
def test_no_reader_raises_anything_but_ours_on_text(
    reader: str, text: str, noise: bytes, as_bytes: bool, options: dict[str, Any]
) -> None:
    source: str | bytes = text + "\n"
    if as_bytes:
        source = text.encode("utf-8", "surrogatepass") + noise
    try:
        tree = READERS[reader](source, **options)
    except PomdpHierError:
        return
    assert tree.to_text()
    assert Hierarchy.from_json(tree.to_json()) == tree


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 6), st.sampled_from(["", "a", "b", "r", 1.5, 10**30]))
KEYS = st.sampled_from(
    ["children", "edges", "n_items", "items", "labels", "singletons", "name", "id", "parent", "path"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "reader",
    [
        Hierarchy.from_json,
        Hierarchy.from_edges,
        Hierarchy.from_children,
        Hierarchy.from_linkage,
        Hierarchy.from_parents,
        Hierarchy.from_paths,
        Hierarchy.from_nodes,
        Hierarchy.from_hdbscan,
        Hierarchy.from_sklearn,
        Hierarchy.from_bertopic,
        Hierarchy.from_networkx,
    ],
    ids=lambda reader: reader.__name__,
)
@given(value=VALUES)
def test_no_reader_raises_anything_but_ours_on_values(reader: Callable[[Any], Hierarchy], value: Any) -> None:
    try:
        tree = reader(value)
    except PomdpHierError:
        return
    assert tree.to_text()


@pytest.mark.parametrize(
    ("read", "value"),
    [
        *((read, range(10**13)) for read in (Hierarchy.from_parents, Hierarchy.from_linkage, Hierarchy.from_children)),
        *((read, range(10**30)) for read in (Hierarchy.from_edges, Hierarchy.from_paths)),
        (Hierarchy.from_parents, [np.array(1)]),
        (Hierarchy.from_parents, {"id": np.array("a"), "parent": [None]}),
        (Hierarchy.from_parents, {"id": range(10**13), "parent": [None]}),
        (Hierarchy.from_parents, {10**5_000: ["a"], "parent": [None]}),
        (Hierarchy.from_children, [[0, 1], np.array(2)]),
        (Hierarchy.from_children, [[0, 1], range(10**13)]),
        (Hierarchy.from_children, np.array([[0.0, 1e300]])),
        (Hierarchy.from_linkage, [[0, 1, 1.0, range(10**13)]]),
        (Hierarchy.from_linkage, [[0, 1, 1.0, np.ma.masked]]),
        (Hierarchy.from_linkage, np.array([[0, 1j]])),
        (Hierarchy.from_linkage, [[0, 1, 1, 1e308], [2, 3, 1, 1e308], [4, 5, 1, 4]]),
        (Hierarchy.from_edges, [("r", "a"), np.array(1)]),
        (Hierarchy.from_edges, [("r", "a"), range(10**13)]),
        (Hierarchy.from_paths, [["a", "b"], np.array(1)]),
        (Hierarchy.from_paths, [["a", "b"], range(10**13)]),
        (Hierarchy.from_paths, [["a", 10**5_000]]),
        (Hierarchy.from_paths, [{"id": np.zeros(0), "path": "a"}]),
        (Hierarchy.from_paths, [{"": "r", "id": reduce(lambda inside, _: [inside], range(5_000), [])}]),
    ],
)
def test_values_that_cannot_be_listed_or_told_are_refused(read: Callable[[Any], Hierarchy], value: Any) -> None:
    with pytest.raises(PomdpHierError):
        read(value)


def test_items_without_text_are_refused_beside_a_file_of_texts() -> None:
    with pytest.raises(PomdpHierError, match="items: got <an integer of"):
        Hierarchy.from_parents("id,parent\nr,\na,r\nb,r\n", items=["a", 10**5_000])


def test_a_number_of_numpy_may_be_the_root() -> None:
    edges = np.array([[4, 0], [4, 1]])
    assert Hierarchy.from_edges([(above, below) for above, below in edges]) == Hierarchy.from_edges(edges)


ENDLESS = {
    "numbers": itertools.count,
    "pairs": lambda: ((f"a{k}", f"a{k + 1}") for k in itertools.count()),
    "paths": lambda: itertools.repeat("a > b"),
    "records": lambda: ({"id": str(k), "parent": None} for k in itertools.count()),
}


@pytest.mark.parametrize("made", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("form", ["children", "linkage", "edges", "parents", "paths", "bertopic"])
def test_an_iterator_without_end_ends_in_an_own_error(form, made, monkeypatch):
    monkeypatch.setattr("pomdp_hier._io.formats._MOST_YIELDED", 2_000)
    monkeypatch.setattr("pomdp_hier._io.formats._PIECE", 1_000)
    for source in (made(), [made()]):
        with pytest.raises(PomdpHierError):
            getattr(Hierarchy, f"from_{form}")(source)
    with contextlib.suppress(PomdpHierError):  # or an iterator is an id like any other object
        getattr(Hierarchy, f"from_{form}")([("r", made())])
    with pytest.raises(PomdpHierError, match="3,000 values"):
        Hierarchy.from_edges([(4, 0), (4, 1)], items=made())
    with pytest.raises(PomdpHierError, match="the children of a node: got"):
        Hierarchy.from_nodes("r", children=lambda node: made())


@pytest.mark.parametrize("width", [1, 3])
def test_nodes_that_make_their_children_without_end_end_in_an_own_error(width, monkeypatch):
    monkeypatch.setattr("pomdp_hier._io.formats._MOST_YIELDED", 2_000)
    monkeypatch.setattr("pomdp_hier._io.formats._PIECE", 1_000)

    class Lazy:
        @property
        def children(self):
            return [Lazy() for _ in range(width)]

    for read in (
        lambda: Hierarchy.from_nodes(Lazy()),
        lambda: Hierarchy.from_nodes(0, children=lambda node: range(width * node + 1, width * node + width + 1)),
    ):
        with pytest.raises(PomdpHierError, match=r"root: got more than 3,000 nodes"):
            read()


def test_an_iterator_for_which_there_is_no_memory_ends_in_an_own_error():
    def values():
        yield from range(5)
        raise MemoryError

    with pytest.raises(PomdpHierError, match=" 0 values"):
        Hierarchy.from_edges(values())


def test_an_iterator_that_ends_is_read_as_its_list():
    edges = [("r", "a"), ("r", "b")]
    assert Hierarchy.from_edges(iter(edges)) == Hierarchy.from_edges(edges)
    assert Hierarchy.from_parents(iter([("r", None), ("a", "r")])) == Hierarchy.from_parents({"r": None, "a": "r"})
    assert Hierarchy.from_linkage(iter([[0, 1, 1.0, 2]])) == Hierarchy.from_linkage([[0, 1, 1.0, 2]])
    assert Hierarchy.from_children(iter([[0, 1]])) == Hierarchy.from_children([[0, 1]])
