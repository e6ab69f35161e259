"""The model of where items are filed: a softmax over the homes, and noise that files some items elsewhere.

``P(home l | x)`` is a mixture of two softmaxes of ``z(x, l) + c log(1 + n_l)``, one with half of z. There, ``z(x, l) =
w_x (b_leaf leaf(x, l) + b_path path(x, l))``, and n_l is the number of other items at l. An item is filed at its true
home with probability 1 - noise, else at another place: anywhere, or under a sibling.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize
from scipy.special import bdtrc, expit, logit

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier.filing.centroids import Centroids

PRIOR, PRIOR_NOISE = 18.0, 0.05  # Beta(1, 19): density 18 log(1 - noise), mean
NEAR = 0.5  # share of the noise that stays among siblings, where there is evidence for near misfilings
_SOFTER = 0.5
_LOWEST = -650.0  # log of the smallest probability of a home, as a share of the largest
SPREAD = 20.0  # standard deviation of a weight's prior, in standard deviations of its values
LEAST_GAIN = 0.05  # nats per item, from which the features fit the tree
SIZE_SPREAD = 1.0  # standard deviation of the prior of the exponent of the size
# gain that a richer model needs: per item, in standard errors; the last only where the sizes have a weight
_NEEDED_SOFTER, _NEEDED_NEAR, _NEEDED_NEAR_SIZED = (0.003, 2.0), (0.01, 3.0), (0.02, 4.0)
_NEEDED = 5.0  # and in all
_HARDLY = 0.5  # of the noise with a share among siblings
_LEAST_NOISE, _MOST_NOISE = (
    6e-6,
    0.25,
)  # the second: noise above that stands for features that do not distinguish the homes
_SAMPLE, _SAMPLE_LIKE, _ALL_HOMES, _BEST, _OTHERS = 3000, 1000, 800, 200, 200
_SMALLEST_TAU = 1e-6
_PIECE = 1 << 15  # items x homes that are summed at once, which stay in the cache


@dataclass(frozen=True)
class FilingModel:
    """The fitted numbers.

    Attributes:
        transform: ``"cosine"``, or ``"log"`` for ``-log max(1 - cosine, tau)``.
        tau: The smallest distance that ``"log"`` distinguishes.
        leaf_weight: Weight of the value at the home.
        path_weight: Weight of the mean value at the ancestors.
        size_weight: Exponent of the size of a home in its prior probability.
        softer: Share of the softmax at half the weights.
        near: Share of the noise that stays among siblings.
        noise: Probability that an item is filed by noise.
        contradicted: Whether the features contradict too many places, so that the noise was set to its prior mean.
        near_order: Share of the noise that stays among siblings in the order of the items with P below 1/2.
        noise_of_others: The noise of the fit, with which the other items at a home may be misfiled; 0 with noise among
            siblings.
    """

    transform: str
    tau: float
    leaf_weight: float
    path_weight: float
    size_weight: float
    softer: float
    near: float
    noise: float
    contradicted: bool = False
    near_order: float = 0.0
    noise_of_others: float = 0.0

    def probabilities(self, leaf: Floats, path: Floats, weights: Floats, prior: Floats | float = 1.0) -> Floats:
        """Return ``P(l | x)`` ``[m, L]``; none is below 1e-300, so that all have logarithms.

        Args:
            leaf: Value at each home ``[m, L]``.
            path: Mean value at its ancestors ``[m, L]``.
            weights: The weight of each item ``[m]``.
            prior: The prior probabilities of the homes, up to a factor per item ``[m, L]``.
        """
        scores: Floats = self.leaf_weight * leaf
        scores += self.path_weight * path
        scores *= weights[:, None]
        scores -= scores.max(axis=1, keepdims=True)
        np.maximum(scores, _LOWEST, out=scores)
        if not self.softer:
            np.exp(scores, out=scores)
            scores *= prior
            scores /= scores.sum(axis=1, keepdims=True)
            return scores
        scores *= _SOFTER
        half = np.exp(scores, out=scores)
        full: Floats = half * half  # at the whole weights, as _SOFTER is 1/2
        half *= prior
        full *= prior
        full *= (1.0 - self.softer) / full.sum(axis=1, keepdims=True)
        half *= self.softer / half.sum(axis=1, keepdims=True)
        full += half
        return full


def log_softmax(scores: Floats) -> Floats:
    shifted: Floats = scores - scores.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


@dataclass(frozen=True, eq=False)
class Siblings:
    """The sibling relation of the homes, and the distribution of misfiled items over homes.

    The noise files an item with true home l at f with probability

        nu(f | l) = (1 - s_l) / L + s_l [f is a sibling of l] / n_l

    where n_l is the number of siblings of l that are homes, and s_l is ``near``, or 0 if n_l is 0.

    Attributes:
        group: The parent of each home ``[L]``, as a position.
        others: The number of sibling homes ``[L]``.
    """

    group: Ints
    others: Floats

    @classmethod
    def of(cls, centroids: Centroids) -> "Siblings":
        """Return the siblings of the homes of a tree; the root has none."""
        group = np.where(centroids.homes > 0, centroids.parent[centroids.homes], -1)
        _, inverse, counts = np.unique(group, return_inverse=True, return_counts=True)
        return cls(group, np.where(group >= 0, counts[inverse] - 1.0, 0.0))

    def anywhere(self, near: float) -> Floats:
        """Return ``nu(f | l)`` where f is not a sibling of the true home l, per l ``[L]``."""
        return (1.0 - near * (self.others > 0)) / len(self.group)

    def beside(self, near: float) -> Floats:
        """Return the additional ``nu(f | l)`` where f is a sibling of the true home l, per l ``[L]``."""
        return np.divide(near, self.others, out=np.zeros(len(self.group)), where=self.others > 0)

    def filed(self, chances: Floats, home: Ints, near: float) -> Floats:
        """Return ``P(l | x) nu(f | l)`` of items filed at ``home``, for every l ``[m, L]``."""
        filed: Floats = chances * self.anywhere(near)
        if near:
            same = self.group[None, :] == self.group[home][:, None]
            filed += np.where(same, chances, 0.0) * self.beside(near)
        return filed


def item_weights(centroids: Centroids) -> Floats:
    """Return each item's weight ``[N]``: few terms, and few other items at its place, are weak evidence.

    ``w_x = (n / (n + 2)) ** (1/2)`` with n the number of other items below its home, at least 1/2; for sparse features
    times ``(terms / median) ** (1/4)``. A row of zeros has weight 0.
    """
    units = centroids.units
    others = np.maximum(centroids.sizes[centroids.homes][centroids.home] - 1.0, 0.5)
    weights: Floats = np.where(units.is_zero, 0.0, np.sqrt(others / (others + 2.0)))
    if units.sparse and not units.is_zero.all():
        weights *= (units.n_terms / np.median(units.n_terms[~units.is_zero])) ** 0.25
    return weights


def log_sizes(centroids: Centroids, items: Ints) -> Floats:
    """Return ``log(1 + n)`` for each item and home, n the number of other items at the home ``[m, L]``."""
    sizes = np.bincount(centroids.home, minlength=len(centroids.homes))
    logs: Floats = np.tile(np.log1p(sizes), (len(items), 1))
    own = centroids.home[items]
    logs[np.arange(len(items)), own] = np.log(sizes[own])
    return logs


def mostly_misfiled(centroids: Centroids, noise: float) -> Floats:
    """Return the probability that most of the other items at each item's home are misfiled ``[N]``.

    Noise files as many items at each home: each item there is misfiled with probability ``noise N / (L n)``, at most
    1/2, n their number. One half counts as most with probability 1/2.
    """
    sizes = np.bincount(centroids.home, minlength=len(centroids.homes))
    others, share = sizes - 1, np.minimum(noise * sizes.mean() / sizes, 0.5)
    most = (bdtrc(np.ceil(others / 2) - 1.0, others, share) + bdtrc(np.floor(others / 2), others, share)) / 2
    probabilities: Floats = np.where(others > 0, most, 0.0)[centroids.home]
    return probabilities


def transformed(cosines: Floats, transform: str, tau: float) -> Floats:
    """Return g of the cosines; see `FilingModel.transform`."""
    if transform == "cosine":
        return cosines.copy()
    values: Floats = np.maximum(1.0 - cosines, tau)
    np.log(values, out=values)
    return np.negative(values, out=values)


def path_values(centroids: Centroids, cosines: Floats, transform: str, tau: float) -> tuple[Floats, Floats]:
    """Return the transformed values at each home and the means over its ancestors ``[m, L]``; see `along_paths`."""
    return centroids.along_paths(transformed(cosines, transform, tau))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Items and homes by which the numbers are fitted; where homes were sampled, ``offsets`` hold their log weights."""

    leaf: Floats
    path: Floats
    sizes: Floats
    offsets: Floats
    own: Ints  # the column of each item's own home
    anywhere: Floats  # [m, C], without the near share
    same: Floats  # [m, C], 1 / the number of the column's siblings where the own home is one
    has_siblings: Floats  # [m, C]
    n_homes: int


_Maximum: TypeAlias = tuple[float, tuple[float, float, float, float, float, float], Floats]
"""A maximal log density; the weights of leaf, path and size, softer and near share, noise; the log likelihoods."""


def fit_model(
    centroids: Centroids,
    siblings: Siblings,
    like: FilingModel | None = None,
    step: Callable[[], object] = lambda: None,
    *,
    siblings_attract: bool = True,
) -> FilingModel:
    """Return the model with the highest posterior density; richer ones have to gain enough.

    Args:
        centroids: The clusters.
        siblings: The siblings among the homes.
        like: A fitted model whose kind is taken: fewer items, and its numbers as the start.
        step: Called after each evaluation of a density, to show progress.
        siblings_attract: Whether noise among siblings may be part of the model.
    """
    weights = item_weights(centroids)
    items = _sampled(centroids, _SAMPLE if like is None else _SAMPLE_LIKE)
    own = np.concatenate([_own_cosines(centroids, piece) for piece in _pieces(centroids, items)])
    tau = max(0.05 * float(np.median(1.0 - own)), _SMALLEST_TAU)
    names = ("cosine", "log") if like is None else (like.transform,)
    samples = _samples(centroids, siblings, items, weights, tau, names)
    fits = {name: _Fit(sample, step) for name, sample in samples.items()}
    if like is not None:
        span = (PRIOR_NOISE, PRIOR_NOISE) if like.contradicted else (_LEAST_NOISE, _MOST_NOISE)
        fit = fits[like.transform]
        fit.sized = like.size_weight > 0
        fitted = fit.best(like.near, softer=like.softer > 0, noise=span, start=like)
        others = fitted[1][-1] if like.noise_of_others else 0.0
        return FilingModel(like.transform, tau, *fitted[1], like.contradicted, like.near_order, others)
    plain = {name: fit.best(0.0, softer=False) for name, fit in fits.items()}
    name = max(plain, key=lambda name: plain[name][0])
    fits[name].sized = bool(plain[name][2].mean() + np.log(len(centroids.homes)) >= LEAST_GAIN)
    if fits[name].sized:
        plain[name] = fits[name].best(0.0, softer=False)
    soft = {near: fits[name].best(near, softer=True) for near in (0.0, NEAR)}
    gains = _gains(soft[NEAR], soft[0.0], _NEEDED_NEAR)
    if gains and fits[name].sized and not _gains(soft[NEAR], soft[0.0], _NEEDED_NEAR_SIZED):
        fits[name].sized = False  # large siblings may attract items that belong where they are
        richer, simpler = (fits[name].best(near, softer=True) for near in (NEAR, 0.0))
        gains = _gains(richer, simpler, _NEEDED_NEAR)
        fits[name].sized = True
    near = NEAR if siblings_attract and gains and soft[NEAR][1][-1] < 0.99 * _MOST_NOISE else 0.0
    best = fits[name].best(NEAR, softer=False) if near else plain[name]
    if _gains(soft[near], best, _NEEDED_SOFTER):
        best = soft[near]
    contradicted = best[1][-1] > 0.99 * _MOST_NOISE
    if contradicted:
        best = fits[name].best(0.0, softer=False, noise=(PRIOR_NOISE, PRIOR_NOISE))
    leaf, path, size, share, near, noise = best[1]
    near_order = NEAR if near or (not contradicted and _hints_at_near(soft[NEAR], soft[0.0])) else 0.0
    return FilingModel(
        name, tau, leaf, path, size, share, near, noise, contradicted, near_order, 0.0 if near else noise
    )


def _hints_at_near(richer: _Maximum, plain: _Maximum) -> bool:
    """Whether noise among siblings explains the places better, and without it hardly any item is misfiled."""
    return richer[0] > plain[0] and plain[1][-1] < _HARDLY * richer[1][-1]


def _gains(richer: _Maximum, plain: _Maximum, needed: tuple[float, float]) -> bool:
    """Whether the richer model explains the places enough better."""
    difference = richer[2] - plain[2]
    errors = float(difference.std()) * np.sqrt(len(difference))
    per_item, in_errors = needed
    return bool(richer[0] - plain[0] > max(per_item * len(difference), _NEEDED, in_errors * errors))


def _sampled(centroids: Centroids, most: int) -> Ints:
    """Return up to ``most`` items with features, sorted by home, chosen by their rows alone: not by their numbers."""
    items = np.flatnonzero(~centroids.units.is_zero)
    if len(items) > most:
        direction = np.random.default_rng(0).normal(size=centroids.units.features.shape[1])
        keys = np.concatenate(
            [centroids.units(items[low : low + most]) @ direction for low in range(0, len(items), most)]
        )
        items = items[np.argsort(np.modf(np.abs(keys) * 1e6)[0], kind="stable")[:most]]
    return items[np.argsort(centroids.home[items], kind="stable")]


def _pieces(centroids: Centroids, items: Ints) -> list[Ints]:
    step = centroids.block_items
    return [items[low : low + step] for low in range(0, len(items), step)]


def _own_cosines(centroids: Centroids, items: Ints) -> Floats:
    own: Floats = centroids.cosines(items)[np.arange(len(items)), centroids.homes[centroids.home[items]]]
    return own


def _samples(
    centroids: Centroids, siblings: Siblings, items: Ints, weights: Floats, tau: float, transforms: Sequence[str]
) -> dict[str, _Sample]:
    """Return the values of the sampled items under the transforms, at all homes or at the best and some others."""
    n_homes = len(centroids.homes)
    found: dict[str, list[tuple[Floats, ...]]] = {name: [] for name in transforms}
    sizes: list[Floats] = []
    columns: list[Ints] = []
    for piece in _pieces(centroids, items):
        cosines, scale = centroids.cosines(piece), weights[piece][:, None]
        chosen = None
        for name, parts in found.items():
            leaf, path = path_values(centroids, cosines, name, tau)
            if chosen is None:
                chosen = _candidates(leaf + path, centroids.home[piece])
                columns.append(chosen)
                rows = np.arange(len(piece))[:, None]
                sizes.append(log_sizes(centroids, piece)[rows, chosen])
            parts.append((leaf[rows, chosen] * scale, path[rows, chosen] * scale))
    at = np.concatenate(columns)
    own = centroids.home[items]
    offsets = np.zeros(at.shape[1])
    if n_homes > _ALL_HOMES:
        offsets[1 + _BEST :] = np.log((n_homes - 1 - _BEST) / _OTHERS)
    column = own if n_homes <= _ALL_HOMES else np.zeros(len(own), dtype=np.int64)
    beside = np.ascontiguousarray(siblings.beside(1.0)[at] * (siblings.group[at] == siblings.group[own][:, None]))
    beside[np.arange(len(own)), column] = 0.0
    has_siblings = np.ascontiguousarray((siblings.others[at] > 0).astype(np.float64))
    rest = (np.full(at.shape, 1.0 / n_homes), beside, has_siblings, n_homes)
    return {
        name: _Sample(
            np.concatenate([leaf for leaf, _ in parts]),
            np.concatenate([path for _, path in parts]),
            np.ascontiguousarray(np.concatenate(sizes)),
            offsets,
            column,
            *rest,
        )
        for name, parts in found.items()
    }


def _candidates(scores: Floats, own: Ints) -> Ints:
    """Return the candidate homes ``[m, C]``: all, or the own, the best, and an even sample of the rest."""
    n_items, n_homes = scores.shape
    if n_homes <= _ALL_HOMES:
        return np.broadcast_to(np.arange(n_homes), scores.shape)
    rows = np.arange(n_items)
    scores[rows, own] = np.inf
    order = np.argsort(-scores, axis=1, kind="stable")
    places = 1 + _BEST + ((np.arange(_OTHERS) + 0.5) * (n_homes - 1 - _BEST) / _OTHERS).astype(np.int64)
    return order[:, np.concatenate([np.arange(1 + _BEST), places])]


class _Fit:
    """The posterior density of the three weights, the softer share and the noise, and its maximum.

    Attributes:
        sized: Whether the size of a home has a weight. Items do not move for sizes alone.
    """

    def __init__(self, sample: _Sample, step: Callable[[], object] = lambda: None) -> None:
        self._sample, self._step, self.sized = sample, step, False
        size = max(1, _PIECE // sample.leaf.shape[1])
        self._slices = [slice(low, low + size) for low in range(0, len(sample.own), size)]
        spread = [float(values.std(axis=1).mean()) or 1.0 for values in (sample.leaf, sample.path)]
        self._scale = np.array(spread)
        self._precisions = np.array([SPREAD**-2, SPREAD**-2, SIZE_SPREAD**-2])
        self._values = [sample.leaf / spread[0], sample.path / spread[1], sample.sizes]

    def best(
        self,
        near: float,
        *,
        softer: bool,
        noise: tuple[float, float] = (_LEAST_NOISE, _MOST_NOISE),
        start: FilingModel | None = None,
    ) -> _Maximum:
        """Return the maximal log density, the numbers there, and the log likelihood of each item's place."""
        points = [
            [3 * (1 + at), 3 * (1 + at), 0.5 * self.sized, np.log(at / (1 - at)) if softer else 0.0, -3.0]
            for at in ((0.15, 0.6) if softer else (0.1,))
        ]
        if start is not None:
            weights = np.array([start.leaf_weight, start.path_weight]) * self._scale
            share = float(logit(start.softer)) if softer else 0.0
            points = [[*weights.tolist(), start.size_weight, share, float(logit(start.noise))]]
        size = (0.0, None if self.sized else 0.0)
        bounds = [(0.0, None), (0.0, None), size, (-6.0, 4.0) if softer else (0.0, 0.0), tuple(logit(noise))]
        found = [
            minimize(
                self._cost,
                point,
                args=(near, softer),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": 100},
            )
            for point in points
        ]
        best = min(found, key=lambda one: one.fun)
        leaf, path = (best.x[:2] / self._scale).tolist()
        exponent, share = float(best.x[2]), float(expit(best.x[3])) if softer else 0.0
        logs = np.log(self._places(best.x, near, softer)[0])
        return -float(best.fun), (leaf, path, exponent, share, near, float(expit(best.x[4]))), logs

    def _places(
        self, point: Floats, near: float, softer: bool
    ) -> tuple[Floats, list[tuple[float, tuple[Floats, list[Floats], Floats]]]]:
        """Return the probability of each item's place ``[m]``, and the softmaxes that it mixes, by their shares."""
        noise, share = float(expit(point[4])), float(expit(point[3])) if softer else 0.0
        factors = (1.0, _SOFTER) if softer else (1.0,)
        pieces = [self._piece(rows, point, near, noise, factors) for rows in self._slices]
        merged = [
            [np.concatenate([piece[k][at] for piece in pieces]) for at in range(len(pieces[0][k]))]
            for k in range(len(factors))
        ]
        parts = [
            (weight, (value, slopes, by_noise))
            for weight, (value, by_noise, *slopes) in zip((1.0 - share, share), merged, strict=False)
        ]
        return np.add.reduce([weight * part[0] for weight, part in parts]), parts

    def _piece(
        self, rows: slice, point: Floats, near: float, noise: float, factors: tuple[float, ...]
    ) -> list[list[Floats]]:
        """Return what `_part` says of some items under each factor of the weights."""
        sample = self._sample
        values = [each[rows] for each in self._values[: 2 + self.sized]]
        scores, prior = point[0] * values[0] + point[1] * values[1], sample.offsets
        if self.sized:
            prior = prior + point[2] * values[2]
        # nu: the noise of each column's true home at the own place; the own column has no sibling part
        nu = sample.anywhere[rows]
        if near:
            nu = nu * (1.0 - near * sample.has_siblings[rows]) + near * sample.same[rows]
        return [_part(scores, values, nu, noise, factor, prior, sample.own[rows]) for factor in factors]

    def _cost(self, point: Floats, near: float, softer: bool) -> tuple[float, Floats]:
        """Return minus the log density and its gradient."""
        total, parts = self._places(point, near, softer)
        noise, share = float(expit(point[4])), float(expit(point[3])) if softer else 0.0
        cost = (
            -float(np.log(total).sum())
            - PRIOR * float(np.log1p(-noise))
            + float((self._precisions * point[:3] ** 2).sum()) / 2
        )
        slopes = (self._precisions * point[:3]).tolist()
        for k in range(2 + self.sized):
            slope = np.add.reduce([weight * part[1][k] for weight, part in parts])
            slopes[k] -= float((slope / total).sum())
        by_noise = np.add.reduce([weight * part[2] for weight, part in parts])
        slope_noise = noise * (1 - noise) * -float((by_noise / total).sum()) + PRIOR * noise
        slope_share = 0.0
        if softer:
            cost -= float(np.log(share) + np.log1p(-share))
            slope_share = share * (1 - share) * -float(((parts[1][1][0] - parts[0][1][0]) / total).sum()) - (
                1 - 2 * share
            )
        self._step()
        return cost, np.array([*slopes, slope_share, slope_noise])


def _part(
    scores: Floats, values: list[Floats], nu: Floats, noise: float, factor: float, prior: Floats, own: Ints
) -> list[Floats]:
    """Return one softmax's probability of each own place ``[m]``, and its slopes by the noise and by the weights."""
    rows = np.arange(len(own))
    chances = np.exp(log_softmax(factor * scores + prior))
    at_home = chances[rows, own]
    filed = chances * nu
    elsewhere = filed.sum(axis=1)
    slopes = []
    for each, scale in zip(values, (factor, factor, 1.0), strict=False):
        mean = (chances * each).sum(axis=1)
        at_own = at_home * (each[rows, own] - mean)
        slopes.append(scale * ((1.0 - noise) * at_own + noise * ((filed * each).sum(axis=1) - elsewhere * mean)))
    return [(1.0 - noise) * at_home + noise * elsewhere, elsewhere - at_home, *slopes]
