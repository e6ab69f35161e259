"""Odds of the items given the fitted model, or in small catalogues averaged over the posterior of its numbers.

In a small catalogue, very different numbers explain the places about as well: weak features and little noise, or strong
features and much noise. The most probable numbers alone are then arbitrary. Averages over a grid of them, each weighted
by its posterior density, are not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier.filing.centroids import Centroids
from pomdp_hier.filing.model import PRIOR, SPREAD, FilingModel, item_weights, log_sizes, log_softmax, path_values

_MOST_PAIRS = 30_000  # items x homes of a small catalogue
_WEIGHTS = np.array([0, 0.25, 0.5, 0.8, 1.2, 1.7, 2.4, 3.4, 4.8, 6.8, 9.6, 13.6, 19, 27, 38])
_NOISES = 1.0 / (1.0 + np.exp(-np.linspace(-9.2, 0.85, 40)))  # from 0.0001 to 0.7


@dataclass(frozen=True, eq=False)
class Posterior:
    """Odds of items.

    Attributes:
        log_odds: The logarithm of the odds of P(misfiled) ``[N]``.
        best: The two most probable other homes, as places in `Centroids.homes`; -1 for none ``[2, N]``.
        shares: The probability that an item is misfiled and belongs there ``[2, N]``.
        noise: The mean of the noise.
        filed: The probability of the place of each item ``[N]``.
    """

    log_odds: Floats
    best: Ints
    shares: Floats
    noise: float
    filed: Floats


def is_small(centroids: Centroids, model: FilingModel) -> bool:
    """Return whether the odds are to be averaged: few items, and a model without further parts."""
    plain = not (model.softer or model.near or model.contradicted)
    return plain and len(centroids.home) * len(centroids.homes) <= _MOST_PAIRS


def averaged(centroids: Centroids, model: FilingModel, told: Bools) -> Posterior:
    """Return the odds averaged over the weights and the noise, for the model's transform and exponent of the size.

    The priors are those of the fit: half-normal for the weights, in units of the spread of their values, and Beta(1,
    19) for the noise.

    Args:
        centroids: The clusters.
        model: The fitted model, for its transform.
        told: The items with features ``[N]``.
    """
    n_items, n_homes = len(centroids.home), len(centroids.homes)
    items, rows = np.arange(n_items), np.arange(n_items)
    scale = item_weights(centroids)[:, None]
    values = path_values(centroids, centroids.cosines(items), model.transform, model.tau)
    sizes = model.size_weight * log_sizes(centroids, items)
    grids = [_grid(part * scale) for part in values]
    prior = PRIOR * np.log1p(-_NOISES) + np.log(_NOISES * (1.0 - _NOISES))
    points = [
        (log_softmax(leaf * scale * values[0] + path * scale * values[1] + sizes), density + other)
        for leaf, density in grids[0]
        for path, other in grids[1]
    ]

    def mixed(own: Floats) -> Floats:
        return (1.0 - _NOISES)[:, None] * own + (_NOISES / n_homes)[:, None]

    logs = np.array(
        [
            density + prior + np.log(mixed(np.exp(chances[rows, centroids.home]))[:, told]).sum(axis=1)
            for chances, density in points
        ]
    )
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    elsewhere, good, filed = np.zeros((n_items, n_homes)), np.zeros(n_items), np.zeros(n_items)
    for weight, (logs_of, _) in zip(weights, points, strict=True):
        chances = np.exp(logs_of)
        own = chances[rows, centroids.home]
        places = mixed(own)
        elsewhere += ((weight * _NOISES / n_homes) @ (1.0 / places))[:, None] * chances
        good += (weight * (1.0 - _NOISES + _NOISES / n_homes)) @ (1.0 / places) * own
        filed += weight @ places
    elsewhere[rows, centroids.home] = 0.0
    bad = elsewhere.sum(axis=1)
    best = np.argsort(-elsewhere, axis=1, kind="stable")[:, :2].T
    shares = elsewhere[rows, best] / (bad + good)
    if n_homes == 2:
        best = np.stack([best[0], np.full(n_items, -1)])
        shares[1] = 0.0
    with np.errstate(divide="ignore"):
        odds = np.log(bad) - np.log(good)
    return Posterior(odds, best, shares, float(weights.sum(axis=0) @ _NOISES), filed)


def _grid(values: Floats) -> list[tuple[float, float]]:
    """Return weights of values, and the logarithm of the prior's share of each."""
    spread = float(values.std(axis=1).mean())
    if spread == 0:
        return [(0.0, 0.0)]
    logs = np.log(np.gradient(_WEIGHTS)) - _WEIGHTS**2 / (2 * SPREAD**2)
    return list(zip((_WEIGHTS / spread).tolist(), logs.tolist(), strict=True))


def posterior_noise(at_home: Floats, elsewhere: Floats) -> float:
    """Return the mean of the noise's posterior under its prior Beta(1, 19).

    Args:
        at_home: Per item, the probability of its place without noise ``[N]``.
        elsewhere: Per item, that with noise ``[N]``.
    """

    def log_density(noise: float) -> float:
        return float(np.log((1.0 - noise) * at_home + noise * elsewhere).sum()) + PRIOR * float(np.log1p(-noise))

    def slope(noise: float) -> float:
        mixed = (1.0 - noise) * at_home + noise * elsewhere
        return float(((elsewhere - at_home) / mixed).sum()) - PRIOR / (1.0 - noise)

    least, most = 1e-12, 1.0 - 1e-9  # the density is log-concave: its mode by bisection, then the span that counts
    mode = _crossing(lambda noise: slope(noise) > 0, least, most)
    floor = log_density(mode) - 30.0
    low = _crossing(lambda noise: log_density(noise) < floor, least, mode)
    high = _crossing(lambda noise: log_density(noise) > floor, mode, most)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    noises = low + (high - low) * (nodes + 1) / 2
    density = weights * np.exp([log_density(noise) - floor - 30.0 for noise in noises.tolist()])
    return float((density * noises).sum() / density.sum())


def _crossing(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a condition that holds up to some point ceases to."""
    for _ in range(60):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2
