"""`find_misfiled`: the probability of each item that it is in the wrong place, and where it belongs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import counted
from pomdp_hier.features.items import item_features
from pomdp_hier.features.validation import Features, row_pieces
from pomdp_hier.filing.centroids import Centroids
from pomdp_hier.filing.model import (
    PRIOR_NOISE,
    FilingModel,
    Siblings,
    fit_model,
    item_weights,
    log_sizes,
    mostly_misfiled,
    path_values,
    transformed,
)
from pomdp_hier.filing.posterior import Posterior, averaged, is_small, posterior_noise
from pomdp_hier.filing.result import MisfiledItems
from pomdp_hier.hierarchy.tree import Hierarchy

_TIE = 0.5  # of the best target's probability, from which a second one is named
_TWINS = 0.5  # share of a home's items that fit the other one as well, in both directions
_FEWEST = 3  # items of such a home
_LEAST_WEIGHT = 1e-3  # of an item in the sums of its clusters
_RARE = 1e-4  # probability below which the other items at a home are taken as they are
_RATIO = 50.0  # of the largest column to the median one, from which scales are called very different


def find_misfiled(X: Any, hierarchy: Hierarchy, *, progress: bool = False) -> MisfiledItems:
    """Return for each item the probability that it is in the wrong place, and its most probable home.

    The *home* of an item is the internal node it is attached to; L is the number of homes. ``u_x`` is the unit row of
    item x. S_c is the sum of the unit rows below cluster c, n_c their number, and p the parent of c.

    - The centroid of c is ``m_c = S_c + S_p / n_p``. The item itself is left out of both.
    - A home l has the path ``c_1, ..., c_k = l`` below the root. ``leaf(x, l) = g(cos(u_x, m_l))``, and ``path(x, l)``
      is the mean of ``g(cos(u_x, m_cj))`` over ``j < k``, 0 for ``k = 1``.
    - g is the identity, or ``-log max(1 - t, tau)`` with tau = 0.05 times the median of 1 - the own home's cosine.
    - ``z(x, l) = w_x (b_1 leaf + b_2 path)`` with ``b >= 0``. ``w_x = (n / (n + 2)) ** (1/2)``, n the number of other
      items below the home of x, at least 1/2: few items are weak evidence of what belongs there. For sparse features,
      ``w_x`` has the factor ``(terms of x / median) ** (1/4)``: a text of one word is weak evidence.
    - ``P(l | x) = (1 - h) softmax(z + c log(1 + n_l)) + h softmax(z / 2 + c log(1 + n_l))``, n_l the number of other
      items at l: the prior probability of a home grows with its size.
    - With probability q, most of the n other items at the home f of x are misfiled. Nothing is known of f then, and
      ``leaf(x, f) = g(cos(u_x, m_p))``, p the parent of f. ``P(l | x)`` is the mixture of both cases. Each other item
      is misfiled with probability ``eps N / (L (n + 1))``, at most 1/2. One half counts as most with probability 1/2.
    - An item is filed at its true home with probability ``1 - eps``. Else it is filed at f with probability
      ``nu(f | l) = (1 - r) / L + r [f is a sibling of l] / (number of siblings)``.

    b, c, h and eps maximize the likelihood of the homes that the items have. The prior of eps is Beta(1, 19), that of b
    is wide, that of c half-normal with standard deviation 1. Items do not move for sizes alone: c is 0 unless the
    features gain 0.05 nats per item without it. At most 3,000 items are used, and above 800 homes the best 200 and a
    weighted sample of the rest. The transform g with the higher likelihood at c = 0 is taken. h is 0 unless it gains
    0.003 nats per item and two standard errors. r is 0 unless 0.5 gains 0.01 nats per item and three standard errors.
    Where c is fitted, r = 1/2 has to gain that at c = 0 too, or else 0.02 nats and four standard errors. It has to gain
    as much again with the weight 1 - P(misfiled) of each item in S and n, P at r = 0. Otherwise r is 0: misfiled items
    from elsewhere make their neighbours fit sibling homes better.
    eps is then the mean of its posterior over all items. With up to 30,000 pairs of item and home, and h = r = 0, the
    probabilities are averages over the posterior of b and eps. There, and where r is not 0, q is 0. If the fit assigns
    a quarter of the items to noise, the features do not follow the tree, and eps is set to 0.05. Bayes' rule gives

    ``P(misfiled | x, f) = bad / (bad + good)``, ``bad = eps sum_{l != f} P(l | x) nu(f | l)``,
    ``good = P(f | x) (1 - eps + eps nu(f | f))``.

    A high probability means that the features contradict the home. Unusual texts, and subjects that a tree splits, are
    flagged as well. With names of two or three words as texts, read each row: "clarinet" has its word in common with
    the parts of clarinets. Not covered are clusters in the wrong place, and several items of a small home that moved
    together. P assumes errors that go anywhere. With such errors planted in made catalogues, P above 0.5 was mostly
    within 0.1 of the observed shares. In a tree of cities, P between 0.5 and 0.8 was 0.2 to 0.3 too high. With names as
    texts it was far too high. If errors stay among siblings and the features are weak, P is too low, down to a quarter
    of the share.

    Items filed under a sibling are the hardest to find. Where r is 0, their probability is small: use the order. Items
    with P of at least 1/2 come first, by their odds. Two conditions decide how the others follow: r = 1/2 explains the
    homes better than r = 0, and needs an eps more than twice as large. If both hold, the others are ordered by their
    odds with r = 1/2.

    KeyboardInterrupt ends the work with the items judged so far: the others have NaN and no target. During the fit,
    when no item is judged, it is raised again.

    Args:
        X: Features ``[N, D]``, dense or sparse, or what `load_features` returns, as for `evaluate` with the cosine.
        hierarchy: The tree over the N items.
        progress: Whether to show a progress bar.

    Returns:
        Probabilities, targets, and the order of the items, the most probably misfiled first.

    Raises:
        FeatureError: The features are not usable, or their ids do not match those of the items.
        ParameterError: An argument is of the wrong kind.

    Sources: Rocchio (1971), the centroid classifier; Northcutt, Jiang, Chuang (2021), Confident learning, JAIR 70, for
    label noise estimated from the labels themselves; the shrunk hierarchical model is this package's own.

    Example:
        >>> import numpy as np
        >>> kind = np.repeat([0, 1, 2], 40)
        >>> X = np.eye(3)[kind] + 0.1 * np.random.default_rng(0).random((120, 3))
        >>> parent = np.r_[120 + kind, 123, 123, 123, -1]
        >>> parent[5] = 122  # item 5 is of the first kind
        >>> found = find_misfiled(X, Hierarchy(parent, 120))
        >>> int(found.order[0]), int(found.targets[5])
        (5, 120)
    """
    return misfiled_items(item_features(X, hierarchy, "cosine").table, hierarchy, progress=progress)


def misfiled_items(
    features: Features, hierarchy: Hierarchy, *, progress: bool = False, like: FilingModel | None = None
) -> MisfiledItems:
    """Return the result of `find_misfiled` for checked features.

    Args:
        features: The rows ``[N, D]``, in item order.
        hierarchy: The tree.
        progress: Whether to show a progress bar.
        like: A fitted model: its transform and its parts are taken, and the fit of its numbers starts from them.
    """
    n_items = hierarchy.n_items
    if hierarchy.root < n_items or len(np.unique(hierarchy.parent[:n_items])) == 1:
        return _without_choice(hierarchy, features)
    try:
        centroids = Centroids(features, hierarchy)
        siblings = Siblings.of(centroids)
        if centroids.units.is_zero.all():
            model = FilingModel("cosine", 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, PRIOR_NOISE)
        else:
            with shown_progress(progress, "misfiled, fit", "step", leave=False) as bar:
                model = fit_model(centroids, siblings, like, bar.update)
                if model.near and like is None:
                    model = _without_foreign_items(centroids, siblings, model, bar.update)
        judged = _Judged(centroids, siblings, model)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"none of {counted(n_items, 'item')} judged") from None
    status = "converged"
    try:
        with shown_progress(progress, "misfiled", "item", n_items) as bar:
            for items in centroids.blocks():
                judged.add(items)
                bar.update(len(items))
    except KeyboardInterrupt:
        status = "interrupted"
    return _result(hierarchy, features, judged, status)


def _without_choice(tree: Hierarchy, features: Any) -> MisfiledItems:
    """Return the result for a tree with one home: no item can be elsewhere."""
    n_items = tree.n_items
    nothing = np.full(n_items, -1)
    return MisfiledItems(
        hierarchy=tree,
        probabilities=np.zeros(n_items),
        targets=nothing,
        second_targets=nothing.copy(),
        target_probabilities=np.zeros(n_items),
        second_probabilities=np.zeros(n_items),
        log_odds=np.full(n_items, -np.inf),
        order=np.arange(n_items),
        n_terms=np.asarray((features != 0).sum(axis=1)).ravel().astype(np.int64),
        rate=0.0,
        auc=float("nan"),
        gain=0.0,
        notes=("All items share one cluster, so that no item can be misfiled.",),
        status="converged",
        model=None,
        features=features,
        log_gains=np.zeros(n_items),
        ranks=np.full(n_items, np.nan),
    )


@dataclass(eq=False)
class _Judged:
    """What the blocks give per item: probabilities without the noise, and the two best other homes."""

    centroids: Centroids
    siblings: Siblings
    model: FilingModel
    done: Bools = field(init=False)
    log_own: Floats = field(init=False)  # log P(f | x)
    log_elsewhere: Floats = field(init=False)  # log sum_{l != f} P(l | x) nu(f | l)
    log_ranked: Floats = field(init=False)  # the same with the noise of the order
    unknown: Floats = field(init=False)  # probability that most of the others at home are misfiled
    best: Ints = field(init=False)  # places in `homes` [2, N]
    log_best: Floats = field(init=False)  # log of their terms of that sum [2, N]
    rank: Floats = field(init=False)  # share of the other homes below the own
    closest: Ints = field(init=False)  # the other home that fits best, as a place in `homes`
    as_well: Bools = field(init=False)  # whether it fits at least half as well as the own

    def __post_init__(self) -> None:
        n_items = len(self.centroids.home)
        self.weights = item_weights(self.centroids)
        self.unknown = mostly_misfiled(self.centroids, self.model.noise_of_others)
        self.done = np.zeros(n_items, dtype=bool)
        self.log_own, self.log_elsewhere, self.log_ranked = np.zeros((3, n_items))
        self.best, self.log_best = np.full((2, n_items), -1), np.full((2, n_items), -np.inf)
        self.rank, self.closest = np.zeros(n_items), np.zeros(n_items, dtype=np.int64)
        self.as_well = np.zeros(n_items, dtype=bool)

    def add(self, items: Ints) -> None:
        """Judge a block of items."""
        model, home = self.model, self.centroids.home[items]
        rows = np.arange(len(items))
        cosines = self.centroids.cosines(items)
        leaf, path = path_values(self.centroids, cosines, model.transform, model.tau)
        chances = fits = model.probabilities(leaf, path, self.weights[items])
        prior = np.ones((len(items), 1))
        if model.size_weight:
            prior = np.exp(model.size_weight * log_sizes(self.centroids, items))
            chances = model.probabilities(leaf, path, self.weights[items], prior)
        some = np.flatnonzero(self.unknown[items] > _RARE)
        if len(some):  # where most of the others at home may be misfiled, what is known of it is its parent
            above = cosines[some, self.centroids.parent[self.centroids.homes[home[some]]]]
            leaf = leaf[some]
            leaf[np.arange(len(some)), home[some]] = transformed(above, model.transform, model.tau)
            without = model.probabilities(leaf, path[some], self.weights[items[some]], prior[some])
            share, chances = self.unknown[items[some], None], chances.copy()
            chances[some] = (1.0 - share) * chances[some] + share * without
        own = fits[rows, home]
        below, up_to = (np.count_nonzero(less(fits, own[:, None]), axis=1) for less in (np.less, np.less_equal))
        self.rank[items] = (below + 0.5 * (up_to - 1 - below)) / (fits.shape[1] - 1)
        self.log_own[items] = np.log(chances[rows, home])
        fits[rows, home] = chances[rows, home] = 0.0
        self.closest[items] = closest = fits.argmax(axis=1)
        self.as_well[items] = fits[rows, closest] >= own * _TIE
        filed = self.siblings.filed(chances, home, model.near)
        self.log_elsewhere[items] = self.log_ranked[items] = np.log(filed.sum(axis=1))
        if model.near_order != model.near:
            self.log_ranked[items] = np.log(self.siblings.filed(chances, home, model.near_order).sum(axis=1))
        for place in range(2):
            best = filed.argmax(axis=1)
            top = filed[rows, best]
            self.best[place, items] = np.where(top > 0, best, -1)
            np.log(top, out=top, where=top > 0)
            self.log_best[place, items] = np.where(self.best[place, items] < 0, -np.inf, top)
            filed[rows, best] = 0.0
        self.done[items] = True


def _without_foreign_items(
    centroids: Centroids, siblings: Siblings, model: FilingModel, step: Callable[[], object]
) -> FilingModel:
    """Return the model, or one without noise among siblings if that explains nothing once foreign items are left out.

    A foreign item in a small home makes its siblings fit the others there better than their own home. So each item has
    the weight 1 - P(misfiled) in the sums of the clusters, with P by noise that goes anywhere.
    """
    plain = fit_model(centroids, siblings, None, step, siblings_attract=False)
    judged = _Judged(centroids, siblings, plain)
    for items in centroids.blocks():
        judged.add(items)
        step()
    odds = _posterior(judged, ~centroids.units.is_zero).log_odds
    weights = np.maximum(1.0 / (1.0 + np.exp(odds)), _LEAST_WEIGHT)
    cleaned = fit_model(centroids.reweighted(weights), siblings, None, step)
    return model if cleaned.near else replace(plain, near_order=cleaned.near_order)


def _order(judged: _Judged, odds: Floats, noise: float, told: Bools) -> Ints:
    """Return the items by their odds; where P is below 1/2, those under the noise of the order."""
    likely, rank, model = odds >= 0, odds, judged.model
    if model.near_order != model.near:
        at_own = judged.siblings.anywhere(model.near_order)[judged.centroids.home]
        rank = np.where(likely, odds, judged.log_ranked - np.log1p(noise * (at_own - 1.0)) - judged.log_own)
    order: Ints = np.lexsort((np.where(told, -rank, np.inf), ~(likely & told)))
    return order


def _posterior(judged: _Judged, told: Bools) -> Posterior:
    """Return the odds under the fitted numbers: the noise over all items judged, then Bayes' rule."""
    model = judged.model
    at_own = judged.siblings.anywhere(model.near)[judged.centroids.home]  # nu(f | f)
    log_own, log_elsewhere = judged.log_own, judged.log_elsewhere
    own = np.exp(log_own)
    elsewhere = np.exp(log_elsewhere) + own * at_own
    noise = model.noise
    if told.any() and not model.contradicted:
        noise = posterior_noise(own[told], elsewhere[told])
    odds = np.log(noise) + log_elsewhere - np.log1p(noise * (at_own - 1.0)) - log_own
    shares = np.exp(judged.log_best - log_elsewhere) / (1.0 + np.exp(-odds))
    return Posterior(odds, judged.best, shares, noise, (1.0 - noise) * own + noise * elsewhere)


def _result(tree: Hierarchy, features: Any, judged: _Judged, status: str) -> MisfiledItems:
    """Return the result for the items judged."""
    centroids, units, model = judged.centroids, judged.centroids.units, judged.model
    told = judged.done & ~units.is_zero
    small = is_small(centroids, model) and told.any() and judged.done.all()
    found = averaged(centroids, model, told) if small else _posterior(judged, told)
    odds, shares, best = found.log_odds.copy(), found.shares.copy(), found.best
    probabilities = 1.0 / (1.0 + np.exp(-odds))
    nodes = np.append(centroids.nodes[centroids.homes], -1)
    second = np.where((shares[1] >= _TIE * shares[0]) & (best[1] >= 0), best[1], -1)
    targets, seconds = (np.where(told, nodes[places], -1) for places in (best[0], second))
    for values in (odds, probabilities, shares[0]):
        values[~judged.done] = np.nan
    noise, at_own = found.noise, judged.siblings.anywhere(model.near)[centroids.home]
    log_gains, ranks = np.full((2, tree.n_items), np.nan)
    log_gains[told] = np.log(found.filed[told] * len(centroids.homes))
    ranks[told] = judged.rank[told]
    misfiled = MisfiledItems(
        hierarchy=tree,
        probabilities=probabilities,
        targets=targets,
        second_targets=seconds,
        target_probabilities=np.where(units.is_zero & judged.done, 0.0, shares[0]),
        second_probabilities=np.where(seconds >= 0, shares[1], 0.0),
        log_odds=odds,
        order=_order(judged, odds, found.noise, told),
        n_terms=units.n_terms,
        rate=float(noise * (1.0 - at_own.mean())),
        auc=float(ranks[told].mean()) if told.any() else 0.5,
        gain=float(log_gains[told].mean()) if told.any() else 0.0,
        notes=(),
        status=status,
        model=FilingModel(**{**vars(model), "noise": noise}),
        features=features,
        twins=_twins(centroids, judged, told),
        log_gains=log_gains,
        ranks=ranks,
    )
    n_judged = int(judged.done.sum())
    return misfiled.with_notes(scale=_uneven_column(features), n_judged=n_judged, n_items=tree.n_items)


def _twins(centroids: Centroids, judged: _Judged, told: Bools) -> tuple[tuple[int, int], ...]:
    """Return the pairs of homes most of whose items fit the other one about as well, as nodes."""
    n_homes = len(centroids.homes)
    sizes = np.bincount(centroids.home[told], minlength=n_homes)
    close = np.flatnonzero(judged.as_well & told)
    keys, counts = np.unique(centroids.home[close] * n_homes + judged.closest[close], return_counts=True)
    home, other = keys // n_homes, keys % n_homes
    enough = (counts >= _TWINS * sizes[home]) & (sizes[home] >= _FEWEST)
    pairs = set(zip(home[enough].tolist(), other[enough].tolist(), strict=True))
    nodes = centroids.nodes[centroids.homes]
    return tuple((int(nodes[a]), int(nodes[b])) for a, b in sorted(pairs) if a < b and (b, a) in pairs)


def _uneven_column(features: Any) -> int | None:
    """Return the largest column of dense features, if it is far larger than the median one."""
    if not isinstance(features, np.ndarray) or features.shape[1] < 2:
        return None
    largest, squares = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    for low, high in row_pieces(len(features), 8 * features.shape[1]):
        np.maximum(largest, np.abs(features[low:high]).max(axis=0), out=largest)
    for low, high in row_pieces(len(features), 8 * features.shape[1]):
        squares += ((features[low:high] / (largest.max() or 1.0)) ** 2).sum(axis=0)
    size = np.sqrt(squares)
    median = float(np.median(size[size > 0])) if (size > 0).any() else 0.0
    return int(size.argmax()) if median and size.max() > _RATIO * median else None
