"""The flat arrays against a recursive oracle; equality, copies, errors that name nodes; a million levels."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pomdp_hier.errors import HierarchyError, HierarchyWarning, ParameterError
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hierarchy.flat import require_hierarchy
from tests.hierarchy_oracle import Sample, samples

MILLION = 1_000_000


@given(samples(), st.booleans())
def test_every_field_is_what_recursion_says(sample: Sample, singletons: bool) -> None:
    tree = sample.hierarchy(singletons)
    seen = []
    heights = []
    assert (tree.n_items, tree.n_nodes, tree.root) == (sample.n_items, sample.n_nodes, sample.root.number)
    for node, level, parent in sample.root.walk():
        number = node.number
        seen.append(number)
        is_cluster = node.is_cluster(parent, singletons)
        children = [child.number for child in node.children if child.is_cluster(node, singletons)]
        assert tree.parent[number] == (-1 if parent is None else parent.number)
        assert tree.levels[number] == level
        assert tree.sizes[number] == len(node.items())
        assert tree.items(number).tolist() == node.items()
        assert tree.children(number).tolist() == children
        assert tree.is_cluster[number] == is_cluster
        assert tree.is_leaf[number] == (is_cluster and not children)
        if is_cluster:
            heights.append(level)
        if node.item is not None:
            leaf = number if is_cluster else parent.number
            assert tree.leaf_of_item[node.item] == leaf
            path = tree.path(node.item).tolist()
            assert (path[0], path[-1]) == (tree.root, leaf)
            assert all(tree.parent[low] == high for high, low in pairwise(path))
    assert sorted(seen) == list(range(tree.n_nodes))
    assert tree.height == max(heights)
    place = np.argsort(tree.topological_order)
    below = np.flatnonzero(tree.parent >= 0)
    assert (place[tree.parent[below]] < place[below]).all()
    assert tree.to_children() == sample.children_lists()
    assert tree.singletons is singletons


@given(samples(), st.booleans(), st.data())
def test_numbering_and_child_order_do_not_matter_item_rows_do(
    sample: Sample, singletons: bool, data: st.DataObject
) -> None:
    tree = sample.hierarchy(singletons)
    k = tree.n_nodes - tree.n_items
    at = np.concatenate((np.arange(tree.n_items), tree.n_items + np.array(data.draw(st.permutations(range(k))), int)))
    lists: list[list[int]] = [[] for _ in range(k)]
    for node, children in enumerate(sample.children_lists(), tree.n_items):
        lists[at[node] - tree.n_items] = [int(at[child]) for child in data.draw(st.permutations(children))]
    other = Hierarchy.from_children(lists, tree.n_items, singletons=singletons)
    assert other == tree
    assert hash(other) == hash(tree)
    perm = np.array(data.draw(st.permutations(range(tree.n_items))))
    moved = tree.permuted(perm)
    again = Hierarchy.from_children(
        [[int(perm[c]) if c < tree.n_items else c for c in row] for row in tree.to_children()],
        tree.n_items,
        singletons=singletons,
    )
    for name, value in again.__getstate__().items():
        if name != "topological_order":  # any order with parents first will do
            assert np.array_equal(getattr(moved, name), value), name
    assert moved.permuted(np.argsort(perm)) == tree


@given(samples(), samples())
def test_equal_means_the_same_clusters(one: Sample, two: Sample) -> None:
    def signature(sample: Sample) -> list[tuple[frozenset[int], int]]:
        return sorted(((frozenset(n.items()), level) for n, level, _ in sample.root.walk()), key=repr)

    # Clusters with their level determine a tree: of two nodes with the same items, the higher is the ancestor.
    assert (one.hierarchy() == two.hierarchy()) == (signature(one) == signature(two))


def test_equality_sees_singletons_and_other_types() -> None:
    tree = Hierarchy.from_children([[0, 1, 2]], 3)
    assert tree != tree.with_singletons(True)
    assert tree.with_singletons(True).with_singletons(False) == tree
    assert tree != "tree"


@given(samples(), st.booleans())
def test_collapse_unary_leaves_the_same_distinct_clusters(sample: Sample, singletons: bool) -> None:
    tree = sample.hierarchy(singletons)
    flat = tree.collapse_unary()
    clusters = [frozenset(tree.items(node).tolist()) for node in np.flatnonzero(tree.is_cluster)]
    left = [frozenset(flat.items(node).tolist()) for node in np.flatnonzero(flat.is_cluster)]
    assert len(left) == len(set(left))
    assert set(left) == set(clusters)
    assert flat.collapse_unary() == flat
    for item in range(tree.n_items):
        bottom = tree.items(int(tree.leaf_of_item[item]))
        assert set(flat.items(int(flat.leaf_of_item[item])).tolist()) == set(bottom.tolist())


def test_one_item_is_a_tree() -> None:
    tree = Hierarchy.from_children([], 1)
    assert (tree.root, tree.n_nodes, tree.height) == (0, 1, 0)
    assert tree.is_cluster.tolist() == tree.is_leaf.tolist() == [True]
    assert tree.path(0).tolist() == [0]
    assert tree.children(0).size == 0


@pytest.fixture(scope="module")
def chain() -> Hierarchy:
    """A million inner nodes, one below the other; the last holds two items."""
    parent = np.concatenate(([2, 2], np.arange(3, MILLION + 2), [-1]))
    return Hierarchy(parent, 2)


@pytest.mark.slow
def test_a_chain_of_a_million_nodes_does_everything(chain: Hierarchy) -> None:
    assert (chain.n_nodes, chain.height, chain.root) == (MILLION + 2, MILLION - 1, MILLION + 1)
    assert (chain.sizes[2:] == 2).all()
    assert copy.deepcopy(chain) is copy.copy(chain) is chain
    back = pickle.loads(pickle.dumps(chain))
    assert back == chain
    assert not back.parent.flags.writeable
    renumbered = Hierarchy(np.concatenate(([MILLION + 1] * 2, [-1], np.arange(2, MILLION + 1))), 2)
    assert renumbered == chain
    assert hash(renumbered) == hash(chain)
    assert len(repr(chain)) < 200
    text = chain.to_text(max_lines=50)
    assert text.endswith("… 999,950 clusters more of 1,000,000")
    assert chain.collapse_unary() == Hierarchy.from_children([[0, 1]], 2)
    assert chain.path(1).size == MILLION


@pytest.mark.slow
def test_a_comb_of_half_a_million_items_has_its_levels() -> None:
    n = MILLION // 2
    Z = np.column_stack(
        (np.concatenate(([0], np.arange(n, 2 * n - 2))), np.arange(1, n), np.arange(n - 1), np.arange(2, n + 1))
    )
    tree = Hierarchy.from_linkage(Z)
    assert tree.height == n - 1
    assert tree.sizes[n:].tolist() == list(range(2, n + 1))


def test_arrays_and_attributes_cannot_be_written() -> None:
    tree = Hierarchy.from_children([[0, 1]], 2)
    with pytest.raises(ValueError, match="read-only"):
        tree.parent[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        tree.permuted([1, 0]).leaf_of_item[0] = 1
    with pytest.raises(AttributeError, match="root: cannot be set"):
        tree.root = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del tree.root


@pytest.mark.parametrize(
    ("parent", "labels", "text"),
    [
        ([3, 3, 3, 4, 5, 4], None, "cycle of 2 nodes, 4, 5"),
        ([3, 3, 4, -1, -1], ["x", "y", "z", "r", "s"], "2 roots, 'r', 's'"),
        ([3, 3, -1, -1], None, r"2 roots, 2, 3 \(items in no cluster: 2\)"),
        ([1, -1], None, "parent of node 0: got 1"),
        ([9, -1, -1], None, "parent of node 0: got 9"),
        ([], None, "expected at least one item"),
    ],
)
def test_what_is_no_tree_is_refused_by_name(parent: list[int], labels: list[str] | None, text: str) -> None:
    with pytest.raises(HierarchyError, match=text):
        Hierarchy(parent, min(len(parent), 3 if len(parent) > 3 else 2), labels=labels)


@pytest.mark.parametrize("parent", ["abc", [[1]], [2.0, 2.0, -1.0], 7])
def test_parents_are_whole_numbers(parent: object) -> None:
    with pytest.raises(HierarchyError, match="expected a list or array"):
        Hierarchy(parent, 2)  # type: ignore[arg-type]


def test_the_number_of_items_is_whole() -> None:
    with pytest.raises(ParameterError, match=r"n_items: got 2\.0;"):
        Hierarchy([2, 2, -1], 2.0)  # type: ignore[arg-type]


def test_the_order_is_a_permutation() -> None:
    assert Hierarchy([2, 2, -1], 2, order=[1, 2, 0]).items(2).tolist() == [1, 0]
    with pytest.raises(HierarchyError, match=r"permutation of the nodes 0\.\.2"):
        Hierarchy([2, 2, -1], 2, order=[0, 0, 1])


def test_empty_clusters_are_dropped_with_a_count() -> None:
    with pytest.warns(HierarchyWarning, match="2 empty clusters dropped, without items: 'e', 'f'"):
        tree = Hierarchy([2, 2, 5, 4, 5, -1], 2, labels=["a", "b", "c", "e", "f", "r"])
    assert tree == Hierarchy([2, 2, 3, -1], 2)
    assert tree.labels == ("a", "b", "c", "r")


@given(samples(), st.data())
def test_a_changed_tree_knows_each_node_by_what_it_was_called(sample: Sample, data: st.DataObject) -> None:
    """Whatever is moved, and however often: the node called so holds what the old numbers say it holds."""
    tree = sample.hierarchy()
    parent = {node: int(up) for node, up in enumerate(tree.parent)}
    changed = tree
    for _ in range(data.draw(st.integers(1, 4))):
        inner = [node for node in parent if node >= tree.n_items]
        item = data.draw(st.integers(0, tree.n_items - 1))
        if not inner:
            return
        target = data.draw(st.sampled_from(inner))
        parent[item] = target
        moved = changed.parent.copy()
        moved[item] = changed.node(target)
        changed = changed.with_parents(moved)
        below = {node: {i for i in range(tree.n_items) if node in ancestors(parent, i)} for node in inner}
        parent = {node: up for node, up in parent.items() if node < tree.n_items or below[node]}
        called = changed.labels or range(changed.n_nodes)
        assert set(called) == set(parent)
        for node in parent:
            if node >= tree.n_items:
                assert set(changed.items(changed.node(node)).tolist()) == below[node]
    assert set(changed.collapse_unary().labels or range(changed.n_nodes)) <= set(parent)


def ancestors(parent: dict[int, int], node: int) -> set[int]:
    found = set()
    while (node := parent[node]) >= 0:
        found.add(node)
    return found


def test_nodes_that_move_up_are_known_by_their_old_numbers() -> None:
    assert Hierarchy([3, 4, 4, 5, 5, -1], 3).with_parents([4, 4, 4, 5, 5, -1]).labels == (0, 1, 2, 4, 5)
    assert Hierarchy([3, 3, 4, -1, 3], 3).with_parents([3, 3, 3, -1, 3]).labels is None  # only the last one goes
    named = Hierarchy([4, 5, 5, 7, 6, 7, 7, -1], 4, labels=["a", None, "c", "d", "e", "f", None, None])
    assert named.with_parents([5, 5, 5, 7, 6, 7, 7, -1]).labels == ("a", None, "c", "d", "f", None)
    with pytest.warns(HierarchyWarning, match="1 empty cluster dropped"):
        assert Hierarchy.from_children([[0, 1], [], [2, 3]], 2).node(4) == 3
    assert Hierarchy.from_children([[0, 1], [3, 2], [4]], 3).collapse_unary().labels is None
    assert Hierarchy.from_children([[0, 1], [3], [4, 2]], 3).collapse_unary().labels == (0, 1, 2, 3, 5)


def test_labels_look_nodes_up() -> None:
    tree = Hierarchy.from_children([[0, 1], [2, 3]], 3, labels=["a", "b", "a", "p", "q"])
    assert tree.node("q") == 4
    assert tree.item_labels == ("a", "b", "a")
    with pytest.raises(HierarchyError, match="got 'a', of nodes 0, 2"):
        tree.node("a")
    with pytest.raises(HierarchyError, match="label: got 'zz'"):
        tree.node("zz")
    assert Hierarchy.from_children([[0, 1]], 2).node(2) == 2
    with pytest.raises(HierarchyError, match="labels: got 4;"):
        Hierarchy.from_children([[0, 1], [2, 3]], 3, labels=["a", "b", "c", "d"])
    with pytest.raises(HierarchyError, match=r"labels\[1\]: got \[\]"):
        Hierarchy.from_children([[0, 1]], 2, labels=["a", []])  # type: ignore[list-item]


def test_rows_join_features_by_id() -> None:
    tree = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("r", "c")])
    assert tree.rows(["c", "a", "b"]).tolist() == [1, 2, 0]
    with pytest.raises(HierarchyError, match=r"'b', 'c'; .*'x'; .*'a'"):
        tree.rows(["a", "x", "a"])


def test_wrong_nodes_and_permutations_are_refused() -> None:
    tree = Hierarchy.from_children([[0, 1]], 2)
    for call in (tree.children, tree.items):
        with pytest.raises(ParameterError, match=r"node: got 3"):
            call(3)
    with pytest.raises(ParameterError, match=r"item: got 2"):
        tree.path(2)
    with pytest.raises(ParameterError, match="permutation"):
        tree.permuted([0, 0])


def test_a_label_in_the_place_of_a_number_is_refused_with_a_remedy() -> None:
    tree = Hierarchy.from_paths({"ant": "insects", "bee": "insects"})
    with pytest.raises(ParameterError, match=r"item: got 'ant'"):
        tree.path("ant")
    with pytest.raises(ParameterError, match=r"node: got 'insects';.*node\('insects'\)"):
        tree.items("insects")


@pytest.mark.parametrize("given", ["tree.json", [[0, 1], [2, 3]], np.ones((3, 4)), None])
def test_what_is_no_tree_is_refused_with_a_remedy(given) -> None:
    with pytest.raises(HierarchyError, match=r"expected a Hierarchy"):
        require_hierarchy(given)


def test_items_take_their_labels_along_to_other_numbers():
    tree = Hierarchy([3, 3, 4, 4, -1], 3, labels=["ant", "bee", "cat", "insects", "all"])
    other = tree.permuted(tree.rows(["cat", "ant", "bee"]), with_labels=True)
    assert other.item_labels == ("cat", "ant", "bee")
    for tree_ in (tree, other):
        assert {tree_.labels[item] for item in tree_.items(tree_.node("insects"))} == {"ant", "bee"}


FOREIGN = [None, True, 1.5, "x", b"x", [[]], {}, object(), np.array(3), np.array([[1]]), csr_array(np.eye(3)), 10**30,
           float("nan"), np.array([None, 1], dtype=object), [0, [1]],
           np.ma.masked_array([0, 1, 2], [0, 1, 0])]  # fmt: skip


@pytest.mark.parametrize("name", ["children", "items", "path", "node", "rows", "permuted", "with_parents"])
def test_nodes_and_items_of_another_type_are_refused_in_own_words(name: str) -> None:
    tree = Hierarchy.from_children([[0, 1], [2, 3]], 3)
    for value in FOREIGN:
        if name == "node" and value is True:
            continue  # equal to 1, which is a label
        with pytest.raises((ParameterError, HierarchyError)):
            getattr(tree, name)(value)


def test_options_of_another_type_are_refused_in_own_words(tmp_path) -> None:
    tree = Hierarchy.from_children([[0, 1], [2, 3]], 3)
    for value in FOREIGN[2:]:
        with pytest.raises(ParameterError, match="singletons: got"):
            tree.with_singletons(value)
        with pytest.raises(ParameterError, match="names"):
            tree.to_newick(names=value)
        if not isinstance(value, str):
            with pytest.raises(ParameterError, match="path: got"):
                tree.to_json(value)
        if not isinstance(value, int):
            with pytest.raises(ParameterError, match="max_lines: got"):
                tree.to_text(max_lines=value)
    for read in (Hierarchy.from_children, Hierarchy.from_linkage, Hierarchy.from_edges, Hierarchy.from_parents,
                 Hierarchy.from_paths, Hierarchy.from_bertopic):  # fmt: skip
        with pytest.raises(ParameterError, match="got csr_array of shape"):
            read(csr_array(np.eye(3)))
    with pytest.raises(ParameterError, match=r"got '\\ud800'"):
        Hierarchy.from_children([[0, 1]], 2, labels=["\ud800", "b"]).to_newick(tmp_path / "t.nwk")


def test_ids_that_are_text_on_one_side_meet_by_their_text() -> None:
    assert Hierarchy.from_edges([("r", "1"), ("r", "2")]).rows([2, 1]).tolist() == [1, 0]
    assert Hierarchy.from_children([[0, 1]], 2).rows(["1", "0"]).tolist() == [1, 0]


def test_a_new_cluster_of_a_labelled_tree_may_have_no_label():
    tree = Hierarchy.from_children([[0, 1, 2]], 3, labels=["a", "b", "c", "all"])
    parted = tree.with_parents([4, 4, 3, -1, 3])
    assert (parted.labels, parted.to_children()) == (("a", "b", "c", "all", None), [[2, 4], [0, 1]])
    assert tree.with_parents([4, 4, 3, -1, 3], new_labels=["ab"]).labels[4] == "ab"
