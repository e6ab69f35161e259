"""The embedded examples hold what the paper prints about them."""

import numpy as np
import pytest

from pomdp_hier.hqs.guidance import guidance
from pomdp_hier.hqs.paper import load_amazon12, load_dvd


def test_the_cosines_are_a_similarity_matrix_of_the_papers_size():
    shop = load_amazon12()
    assert shop.similarity.shape == (12, 12)
    np.testing.assert_array_equal(shop.similarity, shop.similarity.T)
    np.testing.assert_array_equal(np.diag(shop.similarity), 1)
    apart = shop.similarity - np.eye(12)
    assert np.unravel_index(apart.argmax(), apart.shape) == (1, 8)
    assert round(float(apart.max()), 4) == 0.1153
    assert apart.min() >= 0


def test_nothing_of_it_can_be_changed():
    shop, shelf = load_amazon12(), load_dvd()
    assert load_amazon12() is shop
    for array in (shop.similarity, shelf.features):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 2
    with pytest.raises(TypeError):
        shop.hierarchies["A"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        shop.names = ()  # type: ignore[misc]


def test_the_five_hierarchies():
    shop = load_amazon12()
    assert list(shop.hierarchies) == list("ABCDE")
    assert all(tree.n_items == 12 for tree in shop.hierarchies.values())
    clusters = {name: tree.n_nodes - 12 for name, tree in shop.hierarchies.items()}
    assert clusters == {"A": 10, "B": 7, "C": 3, "D": 7, "E": 9}
    chain = [shop.categories.get(node) for node in shop.hierarchies["A"].path(0).tolist()]
    assert chain == ["All", "Clothing, Shoes & Jewelry", "Women", "Boots"]
    assert sorted(shop.hierarchies["C"].items(12).tolist()) == [5, 8]


def test_names_and_terms_are_those_of_the_tables():
    shop = load_amazon12()
    assert (shop.names[0], shop.names[5], shop.names[11]) == ("Women Boots", "Biker Boot Straps", "Boot Socks")
    assert [len(terms) for terms in shop.top_terms] == [10] * 12
    assert shop.top_terms[0][0] == ("Harness", 0.2455)
    assert shop.top_terms[11][-1] == ("Socks", 0.2194)
    for terms in shop.top_terms:
        weights = [weight for _, weight in terms]
        assert weights == sorted(weights, reverse=True)
    assert "to be read, not to be computed with" in shop.source["top_terms"]


def test_a_searcher_for_harry_potter_is_torn_between_drama_and_action():
    shelf = load_dvd()
    tree = shelf.hierarchy
    units = shelf.features / np.linalg.norm(shelf.features, axis=1, keepdims=True)
    cosines = units @ units.T
    children = tree.children(tree.root).tolist()
    assert [shelf.categories[node] for node in children] == ["drama", "action"]
    others = [tree.items(node)[tree.items(node) != 0] for node in children]
    eta = guidance([float(cosines[0, items].mean()) for items in others], 0.01)
    assert abs(eta[0] - 0.5) < 0.05


def test_the_dvd_shelf_says_what_is_made_up():
    shelf = load_dvd()
    assert shelf.features.shape == (len(shelf.names), len(shelf.traits)) == (10, 7)
    named_in_the_figure = [name for item, name in enumerate(shelf.names) if item not in shelf.filled_in]
    assert named_in_the_figure == ["Harry Potter", "Lord of the Rings", "Star Wars"]
    assert "Made up" in shelf.source["features"]
    genres = [shelf.categories[node] for node in range(10, shelf.hierarchy.n_nodes)]
    assert genres == ["fantasy", "science fiction", "love story", "kids", "war-time", "drama", "action", "DVD"]
