"""The cosines and the probabilities against forty dense lines that follow the equations of `find_misfiled`."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp

from pomdp_hier import Hierarchy, find_misfiled
from tests.extras import few


def random_tree(rng: np.random.Generator, n_items: int, n_inner: int) -> Hierarchy:
    """Items at internal nodes as well, homes of one item, chains: whatever comes."""
    parent = np.full(n_items + n_inner, -1)
    parent[n_items + 1 :] = n_items + np.array([rng.integers(0, k) for k in range(1, n_inner)], dtype=int)
    parent[:n_items] = n_items + rng.integers(0, n_inner, size=n_items)
    parent[np.arange(n_inner)] = n_items + np.arange(n_inner)  # none is empty
    return Hierarchy(parent, n_items)


def unit(x):
    length = np.linalg.norm(x)
    return x / length if length > 1e-9 else np.zeros_like(x)


def softmax(z):
    return np.exp(z - z.max()) / np.exp(z - z.max()).sum()


def item_weights(X, tree, sparse):
    others = np.maximum([len(tree.items(home)) - 1 for home in tree.parent[: tree.n_items]], 0.5)
    terms = (X != 0).sum(axis=1)
    return np.sqrt(others / (others + 2)) * ((terms / np.median(terms)) ** 0.25 if sparse else 1.0)


def leaf_values(X, tree, model, weights):
    """The weighted value of each item at each home, in a tree of one level ``[N, L]``."""
    units = np.array([unit(x) for x in X])
    values = np.zeros((tree.n_items, len(np.unique(tree.parent[: tree.n_items]))))
    for x in range(tree.n_items):
        others = [i for i in range(tree.n_items) if i != x]
        above = units[others].sum(axis=0) / len(others)
        for k, home in enumerate(np.unique(tree.parent[: tree.n_items])):
            t = units[x] @ unit(units[[i for i in tree.items(home) if i != x]].sum(axis=0) + above)
            values[x, k] = weights[x] * (t if model.transform == "cosine" else -np.log(max(1 - t, model.tau)))
    return values


def most_of(n, share):
    """The probability that most of n items are misfiled; one half of them counts by one half."""
    binomial = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    most = sum(binomial[n // 2 + 1 :]) + (binomial[n // 2] / 2 if n % 2 == 0 else 0.0)
    return most if n and most > 1e-4 else 0.0


def oracle(X, tree, model, weights):
    """P(misfiled), the best other home and P(target) of every item, one item and cluster at a time."""
    units = np.array([unit(x) for x in X])
    homes = np.unique(tree.parent[: tree.n_items])
    siblings = {f: [s for s in homes if s != f and f != tree.root and tree.parent[s] == tree.parent[f]] for f in homes}

    def cosine(x, c):
        rest = [i for i in tree.items(c) if i != x]
        m = units[rest].sum(axis=0)
        p = tree.parent[c]
        others = [] if p < 0 else [i for i in tree.items(p) if i != x]
        return units[x] @ unit(m + units[others].sum(axis=0) / len(others) if others else m)

    def g(t):
        return t if model.transform == "cosine" else -np.log(max(1 - t, model.tau))

    found = []
    for x in range(tree.n_items):
        z = []
        for home in homes:
            path = [home]
            while tree.parent[path[-1]] not in (-1, tree.root):
                path.append(tree.parent[path[-1]])
            above = np.mean([g(cosine(x, c)) for c in path[1:]]) if path[1:] else 0.0
            z.append(weights[x] * (model.leaf_weight * g(cosine(x, home)) + model.path_weight * above))
        n_others = np.array([np.sum(tree.parent[: tree.n_items] == home) - (tree.parent[x] == home) for home in homes])
        f, z, prior = homes.tolist().index(tree.parent[x]), np.array(z), model.size_weight * np.log(1 + n_others)
        unknown = z.copy()
        above = tree.parent[tree.parent[x]] if tree.parent[x] != tree.root else tree.root
        unknown[f] += weights[x] * model.leaf_weight * (g(cosine(x, above)) - g(cosine(x, tree.parent[x])))
        share = most_of(n_others[f], min(0.5, model.noise_of_others * tree.n_items / len(homes) / (1 + n_others[f])))
        chances = sum(
            part * ((1 - model.softer) * softmax(y + prior) + model.softer * softmax(y / 2 + prior))
            for part, y in ((1 - share, z), (share, unknown))
        )

        def nu(f, home):
            near = model.near if siblings[home] else 0.0
            return (1 - near) / len(homes) + (near / len(siblings[home]) if f in siblings[home] else 0.0)

        f = tree.parent[x]
        terms = {home: chances[k] * nu(f, home) * model.noise for k, home in enumerate(homes) if home != f}
        own = chances[homes.tolist().index(f)]
        good, bad = own * (1 - model.noise + model.noise * nu(f, f)), sum(terms.values())
        best = max(terms, key=terms.get)
        found.append((bad / (bad + good), best, terms[best] / (bad + good)))
    return map(np.array, zip(*found, strict=True))


@pytest.fixture
def one_point(monkeypatch):
    """The odds under the fitted numbers, not averaged over others."""
    monkeypatch.setattr("pomdp_hier.filing.posterior._MOST_PAIRS", 0)


@pytest.mark.usefixtures("one_point")
@pytest.mark.parametrize("seed", few(3, range(6)))
@pytest.mark.parametrize("kind", ["signed", "terms"])
def test_probabilities_and_targets_are_those_of_the_equations(seed, kind):
    rng = np.random.default_rng(seed)
    n_items, n_inner = int(rng.integers(12, 40)), int(rng.integers(2, 9))
    tree = random_tree(rng, n_items, n_inner)
    centres = rng.normal(size=(tree.n_nodes, 6))
    X = centres[tree.parent[:n_items]] + 0.7 * rng.normal(size=(n_items, 6))
    X = np.maximum(X, 0.0) + np.eye(6)[rng.integers(6, size=n_items)] if kind == "terms" else X
    found = find_misfiled(sp.csr_array(X) if kind == "terms" else X, tree)
    probabilities, targets, shares = oracle(X, tree, found.model, item_weights(X, tree, kind == "terms"))
    np.testing.assert_allclose(found.probabilities, probabilities, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.target_probabilities, shares, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.targets, targets)


def test_the_richer_models_follow_the_equations_too(monkeypatch):
    from pomdp_hier.filing import model

    monkeypatch.setattr(model, "_gains", lambda *_: True)  # takes both the softer share and the noise among siblings
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 40, 8)
    X = rng.normal(size=(tree.n_nodes, 6))[tree.parent[:40]] + 0.5 * rng.normal(size=(40, 6))
    found = find_misfiled(X, tree)
    assert found.model.near == model.NEAR
    assert found.model.softer > 0
    probabilities, targets, shares = oracle(X, tree, found.model, item_weights(X, tree, False))
    np.testing.assert_allclose(found.probabilities, probabilities, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.target_probabilities, shares, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.targets, targets)


def wide_and_narrow(seed):
    """A home of 60 items that is as wide as all others, and homes of 3 within it; the features are coordinates."""
    rng = np.random.default_rng(seed)
    kind = np.r_[np.zeros(60, dtype=int), np.repeat(np.arange(1, 11), 3)]
    centres = 0.25 * np.r_[np.zeros((1, 2)), rng.normal(size=(10, 2))]
    X = np.c_[centres[kind] + np.where(kind == 0, 0.25, 0.02)[:, None] * rng.normal(size=(90, 2)), np.ones(90)]
    return X, Hierarchy(np.r_[90 + kind, np.full(11, 101), -1], 90)


@pytest.mark.usefixtures("one_point")
def test_the_size_of_a_home_has_a_weight_only_where_the_features_fit_the_tree():
    X, tree = wide_and_narrow(0)
    found = find_misfiled(X, tree)
    assert found.model.size_weight > 0.5
    probabilities, targets, shares = oracle(X, tree, found.model, item_weights(X, tree, False))
    np.testing.assert_allclose(found.probabilities, probabilities, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.target_probabilities, shares, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.targets, targets)
    rows = np.random.default_rng(1).permutation(90)
    shuffled = find_misfiled(X[rows], tree)
    assert shuffled.model.size_weight == 0.0
    assert not (shuffled.probabilities >= 0.5).any()


@pytest.mark.parametrize(
    ("strict", "without_sizes", "near"), [(False, False, 0.0), (True, False, 0.5), (False, True, 0.5)]
)
def test_noise_among_siblings_that_gains_little_beside_the_sizes_has_to_gain_without_them(
    monkeypatch, strict, without_sizes, near
):
    from pomdp_hier.filing import model

    def gains(richer, plain, needed):
        if needed == model._NEEDED_SOFTER:
            return False
        if not richer[1][2]:
            return without_sizes
        return strict or needed == model._NEEDED_NEAR

    monkeypatch.setattr(model, "_gains", gains)
    found = find_misfiled(*wide_and_narrow(0)).model
    assert (found.near, found.size_weight > 0.5) == (near, True)


def test_the_area_under_the_curve_is_that_of_the_features_without_the_sizes(monkeypatch):
    X, tree = wide_and_narrow(0)
    found = find_misfiled(X, tree)
    fit = replace(found.model, size_weight=0.0)
    monkeypatch.setattr("pomdp_hier.filing.misfiled.fit_model", lambda *_: fit)
    without = find_misfiled(X, tree)
    np.testing.assert_array_equal(found.ranks, without.ranks)
    assert (found.log_gains != without.log_gains).any()


@pytest.mark.parametrize("seed", range(4))
def test_items_with_small_odds_are_ordered_by_the_noise_among_siblings_if_it_explains_the_homes(monkeypatch, seed):
    from pomdp_hier.filing import model

    monkeypatch.setattr(model, "_gains", lambda *_: False)  # not by enough for the probabilities
    monkeypatch.setattr(model, "_hints_at_near", lambda *_: True)
    monkeypatch.setattr("pomdp_hier.filing.posterior._MOST_PAIRS", 0)
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 40, 8)
    X = rng.normal(size=(tree.n_nodes, 6))[tree.parent[:40]] + 0.5 * rng.normal(size=(40, 6))
    found = find_misfiled(X, tree)
    assert (found.model.near, found.model.near_order) == (0.0, model.NEAR)
    weights = item_weights(X, tree, False)
    probabilities, *_ = oracle(X, tree, found.model, weights)
    others, *_ = oracle(X, tree, replace(found.model, near=model.NEAR), weights)
    np.testing.assert_allclose(found.probabilities, probabilities, rtol=0, atol=1e-12)
    expected = sorted(
        range(40), key=lambda x: (probabilities[x] < 0.5, -(probabilities if probabilities[x] >= 0.5 else others)[x])
    )
    assert found.order.tolist() == expected
    assert expected != np.argsort(-probabilities).tolist()


def test_the_order_takes_the_noise_among_siblings_only_where_hardly_any_item_is_misfiled_without_it():
    from pomdp_hier.filing.model import _hints_at_near

    def fit(density, noise):
        return density, (1.0, 1.0, 0.0, 0.0, 0.0, noise), np.zeros(1)

    assert _hints_at_near(fit(-10.0, 0.02), fit(-14.0, 0.001))
    assert not _hints_at_near(fit(-10.0, 0.02), fit(-14.0, 0.015))
    assert not _hints_at_near(fit(-15.0, 0.02), fit(-14.0, 0.001))


@pytest.mark.parametrize(("near", "softer"), [(0.0, False), (0.5, False), (0.0, True), (0.5, True)])
def test_the_slopes_of_the_likelihood_are_those_of_its_differences(near, softer):
    from pomdp_hier.filing import model
    from pomdp_hier.filing.centroids import Centroids

    rng = np.random.default_rng(3)
    tree = random_tree(rng, 60, 9)
    X = rng.normal(size=(tree.n_nodes, 6))[tree.parent[:60]] + 0.5 * rng.normal(size=(60, 6))
    centroids = Centroids(X, tree)
    samples = model._samples(centroids, model.Siblings.of(centroids), np.arange(60), np.ones(60), 0.01, ["log"])
    fit = model._Fit(samples["log"])
    fit.sized = True
    point = np.array([2.0, 1.0, 0.4, 0.3 if softer else 0.0, -2.0])
    slopes = fit._cost(point, near, softer)[1]
    for k in (0, 1, 2, 4, *([3] if softer else [])):
        step = 1e-6 * np.eye(5)[k]
        rise = fit._cost(point + step, near, softer)[0] - fit._cost(point - step, near, softer)[0]
        assert slopes[k] == pytest.approx(rise / 2e-6, rel=1e-5, abs=1e-5)


def test_the_noise_is_the_mean_of_its_posterior():
    from pomdp_hier.filing.posterior import posterior_noise

    rng = np.random.default_rng(0)
    own, elsewhere = rng.random(50), np.full(50, 0.1)
    noises = (np.arange(20_000) + 0.5) / 20_000
    log_density = np.log((1 - noises[:, None]) * own + noises[:, None] * elsewhere).sum(axis=1) + 18 * np.log1p(-noises)
    density = np.exp(log_density - log_density.max())
    assert posterior_noise(own, elsewhere) == pytest.approx((noises * density).sum() / density.sum(), rel=1e-6)
    assert posterior_noise(np.ones(0), np.ones(0)) == pytest.approx(1 / 20)  # the prior's mean


@pytest.mark.parametrize("seed", few(1, range(3)))
def test_in_small_catalogues_the_odds_are_averages_over_the_posterior(seed):
    """The equations at numbers sampled from the prior, each weighted by the likelihood of the places."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(np.arange(3), 4)
    X = np.eye(3)[kind] + 0.35 * rng.normal(size=(12, 3))
    kind[0] = 1
    tree = Hierarchy(np.r_[12 + kind, 15, 15, 15, -1], 12)
    found = find_misfiled(X, tree)
    leaf = leaf_values(X, tree, found.model, item_weights(X, tree, False))
    spread = leaf.std(axis=1).mean()
    n = 60_000
    b, eps = np.abs(20 * rng.normal(size=n)) / spread, rng.beta(1, 19, size=n)
    z = b[:, None, None] * leaf
    chances = np.exp(z - z.max(axis=2, keepdims=True))
    chances /= chances.sum(axis=2, keepdims=True)
    own = chances[:, np.arange(12), kind]
    filed = (1 - eps[:, None]) * own + eps[:, None] / 3
    weight = np.prod(filed, axis=1)
    bad = eps[:, None] / 3 * (1 - own) / filed
    expected = (weight[:, None] * bad).sum(axis=0) / weight.sum()
    np.testing.assert_allclose(found.probabilities, expected, atol=0.05)
    assert found.order[0] == np.argmax(expected)


def alike(seed):
    """Groups of four homes, four items each, that differ far less than the groups; 15 items moved to other groups."""
    rng = np.random.default_rng(seed)
    homes = np.repeat(rng.normal(size=(15, 40)), 4, axis=0) + 0.05 * rng.normal(size=(60, 40))
    X = np.repeat(homes, 4, axis=0) + 0.03 * rng.normal(size=(240, 40))
    parent = np.r_[240 + np.arange(240) // 4, 300 + np.arange(60) // 4, np.full(15, 315), -1]
    moved = rng.choice(240, 15, replace=False)
    parent[moved] = 240 + (parent[moved] - 240 + rng.integers(4, 57, size=15)) % 60
    return X, Hierarchy(parent, 240), np.isin(np.arange(240), moved)


@pytest.mark.parametrize("seed", few(1, [6, 11]))
def test_neighbours_of_items_from_elsewhere_are_not_taken_for_misfiled(seed):
    X, tree, moved = alike(seed)
    found = find_misfiled(X, tree)
    assert (found.model.near, found.model.near_order) == (0.0, 0.0)
    assert (found.probabilities[moved] > 0.5).mean() > 0.8
    assert (found.probabilities[~moved] > 0.5).sum() <= 2


@pytest.mark.parametrize("sparse", [False, True])
def test_cosines_with_weighted_items_are_those_of_the_weighted_sums(sparse):
    from pomdp_hier.filing.centroids import Centroids

    rng = np.random.default_rng(5)
    tree = random_tree(rng, 40, 9)
    X = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.6)
    X[3] = 0.0
    weights = rng.uniform(0.001, 1.0, size=40)
    centroids = Centroids(sp.csr_matrix(X) if sparse else X, tree)
    found = centroids.reweighted(weights).cosines(np.arange(40))
    units = np.array([unit(x) for x in X])

    def total(node, without):
        inside = [i for i in tree.items(int(node)) if i != without]
        return weights[inside] @ units[inside], weights[inside].sum(), len(inside)

    for item in range(40):
        for place, node in enumerate(centroids.nodes.tolist()):
            own, _, _ = total(node, item)
            if node != tree.root:
                above, mass, others = total(tree.parent[node], item)
                own = own + above / mass if others else own
            assert found[item, place] == pytest.approx(units[item] @ unit(own), abs=1e-9)
    whole = Centroids(centroids.units.features, tree)
    np.testing.assert_array_equal(centroids.cosines(np.arange(40)), whole.cosines(np.arange(40)))
