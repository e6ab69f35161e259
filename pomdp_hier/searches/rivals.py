"""Figures beside a prediction: the cosine with the own category, the silhouette, and rank correlations."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Floats, Ints
from pomdp_hier._intervals import bootstrap_interval
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.filing.centroids import UnitRows
from pomdp_hier.hqs.inputs import Prepared

_BLOCK = 1 << 22  # items x categories, or items x samples, of one block


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation, over items, of a figure with an outcome of the searches.

    Attributes:
        predictor: ``"predicted"``, ``"hqs"``, ``"with_return"``, ``"cosine"`` or ``"silhouette"``.
        outcome: ``"observed"``, the share of correct children, or ``"found"``, the share of searches that find.
        rho: The correlation; NaN if a figure is constant or unknown.
        low, high: The confidence interval of ``rho``, by bootstrap over items.
        n_items: The number of items.
    """

    predictor: str
    outcome: str
    rho: float
    low: float
    high: float
    n_items: int


def cosines_and_silhouettes(prepared: Prepared, items: Ints) -> tuple[Floats, Floats]:
    """Return the cosine of each item with the others of its category, and its silhouette; NaN without features.

    The category of an item is its parent. Distances are 1 - cosine, so that their means follow from sums of unit rows.
    """
    unknown = np.full(len(items), np.nan)
    features, tree = prepared.features, prepared.hierarchy
    if not isinstance(features, ItemFeatures) or features.precomputed or not len(items):
        return unknown, unknown.copy()
    units = UnitRows(features.table)
    categories, own = np.unique(tree.parent[: tree.n_items], return_inverse=True)
    n_items, sizes = tree.n_items, np.bincount(own).astype(np.float64)
    member = sp.csr_matrix((np.ones(n_items), (own, np.arange(n_items))), shape=(len(categories), n_items))
    sums = member @ units(np.arange(n_items))
    squares = np.asarray(sums.multiply(sums).sum(axis=1)).ravel() if sp.issparse(sums) else (sums**2).sum(axis=1)
    columns = sums.T.tocsr() if sp.issparse(sums) else sums.T
    cosine, silhouette = unknown.copy(), unknown.copy()
    for low in range(0, len(items), max(1, _BLOCK // len(categories))):
        at = np.arange(low, min(len(items), low + max(1, _BLOCK // len(categories))))
        who = items[at]
        products = units(who) @ columns
        products = products.toarray() if sp.issparse(products) else np.asarray(products)
        rows, home = np.arange(len(who)), own[who]
        self_ = np.where(units.is_zero[who], 0.0, 1.0)
        inside = products[rows, home] - self_
        others = sizes[home] - 1
        length = np.sqrt(np.maximum(squares[home] - 2 * products[rows, home] + self_, 0.0))
        known = (others > 0) & (length > 1e-9)
        cosine[at[known]] = inside[known] / length[known]
        if len(categories) > 1:
            near = 1 - inside / np.maximum(others, 1)
            distances = 1 - products / sizes
            distances[rows, home] = np.inf
            far = distances.min(axis=1)
            largest = np.maximum(near, far)
            ratio = np.divide(far - near, largest, out=np.zeros_like(far), where=largest > 0)
            silhouette[at] = np.where(others > 0, ratio, 0.0)
    return cosine, silhouette


def correlation(
    predictor: str, figure: Floats, outcome: str, shares: Floats, draws: Ints, confidence: float
) -> Correlation:
    """Return a rank correlation over the items that have both figures.

    Args:
        predictor, outcome: Their names.
        figure, shares: Their values ``[rows]``.
        draws: Large random integers ``[samples, rows]``, from which the bootstrap samples follow.
        confidence: The level of the interval.
    """
    known = ~(np.isnan(figure) | np.isnan(shares))
    n = int(known.sum())
    if n < 3:
        return Correlation(predictor, outcome, math.nan, math.nan, math.nan, n)
    x, y = figure[known], shares[known]
    drawn = draws[:, :n] % n
    bounds = range(0, len(drawn), max(1, _BLOCK // n))
    samples = [_spearman(x[part], y[part]) for part in (drawn[at : at + bounds.step] for at in bounds)]
    low, high = bootstrap_interval(np.concatenate(samples), n, confidence)
    return Correlation(predictor, outcome, float(_spearman(x[None], y[None])[0]), low, high, n)


def _spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's rank correlation of each row, ties at their mean rank; NaN if one is constant."""
    from scipy.stats import rankdata  # slow to import, and not needed by a score

    ranks = [rankdata(values, axis=1) for values in (x, y)]
    one, other = (values - values.mean(axis=1, keepdims=True) for values in ranks)
    scale = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    found: Floats = np.divide((one * other).sum(axis=1), scale, out=np.full(len(x), np.nan), where=scale > 0)
    return found
