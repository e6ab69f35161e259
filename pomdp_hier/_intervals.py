"""Weighted means, and confidence intervals: Student's t, for rare values, of shares, and by bootstrap."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtr, stdtrit

from pomdp_hier._arguments import Floats, Ints


def mean_interval(
    values: Floats, confidence: float, missed: float = 0.0, weights: Floats | None = None, further: float = 0.0
) -> tuple[float, float]:
    """Return the t interval ``mean ± t s / sqrt(n)`` of the mean; NaN for fewer than two values.

    With weights, s is the weighted standard deviation, and n the effective number of values. Few heavy values carry the
    mean, and weights are not further values.

    Args:
        values: ``[n]``.
        weights: The weight of each value ``[n]``; equal by default.

    References:
        Student (1908).
    """
    error = standard_error(values, weights)
    if math.isnan(error):
        return math.nan, math.nan
    n = len(values) if weights is None else effective_number(weights)
    mean = float(np.mean(values)) if weights is None else weighted_mean(values, weights)
    half = _quantile(n, confidence) * math.hypot(error, further) + missed
    return mean - half, mean + half


def standard_error(values: Floats, weights: Floats | None = None) -> float:
    """Return the standard error of a mean of independent values; NaN for one value, or an effective number of 1.

    With weights, it is the square root of ``n / (n - 1) sum of p**2 (z - m)**2``. p are the weights over their sum, m
    is the mean, and n the effective number. For equal weights that is ``s / sqrt(n)``.

    References:
        Cochran (1977), *Sampling Techniques*, section 6.4, the variance of a ratio.
    """
    if weights is None:
        n = len(values)
        return float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    effective = effective_number(weights)
    if effective < 1 + 1e-9:
        return math.nan
    shares = relative_weights(weights) / len(weights)
    squares = math.fsum((shares * (values - weighted_mean(values, weights))) ** 2)
    return math.sqrt(effective / (effective - 1) * squares)


def welch_interval(mean: float, samples: Sequence[Floats], confidence: float) -> tuple[float, float]:
    """Return Welch's t interval of a mean with the errors of several independent samples; NaN for a sample of one.

    Args:
        mean: The sum or difference of the samples' means.
        samples: The samples.
        confidence: The confidence level, in (0, 1).

    Example:
        >>> [round(end, 4) for end in welch_interval(1.0, [np.array([0.0, 1.0, 2.0])], 0.95)]
        [-1.4841, 3.4841]

    References:
        Welch (1947), The generalization of Student's problem when several different population variances are involved.
    """
    squares = np.array([standard_error(sample) for sample in samples]) ** 2
    total = float(squares.sum())
    if not total > 0:
        return (mean, mean) if total == 0 else (math.nan, math.nan)
    free = total**2 / float((squares**2 / (np.array([len(sample) for sample in samples]) - 1)).sum())
    half = float(stdtrit(free, (1 + float(confidence)) / 2)) * math.sqrt(total)
    return mean - half, mean + half


def _quantile(n: float, confidence: float) -> float:
    return float(stdtrit(n - 1, (1 + float(confidence)) / 2))


def unseen(values: Floats, confidence: float, low: float, high: float) -> tuple[float, float]:
    """Return the extensions of the t interval, below and above, for values that the sample may lack.

    A t interval estimates the spread from the sample, and has no width where all values are equal. Gaffke's bound
    uses their range alone: the lower bound is a quantile of ``sum of D_i z_i``, with z the n values and ``low``, and D
    uniform on the simplex. For two distinct values it is Clopper and Pearson's bound, ``1 - (alpha / 2)^(1 / n)`` of
    the range for an event that n values lack. The quantile is a saddlepoint approximation, within 0.4 % from ten values
    on.

    Args:
        values: ``[n]``, at least two.

    Example:
        >>> [round(reach, 4) for reach in unseen(np.ones(1000), 0.95, low=0.0, high=1.0)]
        [0.0037, 0.0]

    References:
        Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
        variable; Learned-Miller and Thomas (2019), A new confidence interval for the mean of a bounded random variable;
        Lugannani and Rice (1980), Saddle point approximation for the distribution of the sum.
    """
    low, high = min(low, float(values.min())), max(high, float(values.max()))
    if high == low:
        return 0.0, 0.0
    mean, alpha = float(np.mean(values)), (1 - float(confidence)) / 2
    t = _quantile(len(values), confidence) * standard_error(values)
    shares = (values - low) / (high - low)
    below = mean - low - (high - low) * _gaffke(shares, alpha)
    above = high - mean - (high - low) * _gaffke(1 - shares, alpha)
    return max(0.0, below - t), max(0.0, above - t)


def _gaffke(shares: Floats, alpha: float) -> float:
    """Return the lower bound of the mean of numbers in [0, 1].

    It is the c with ``P(sum of E_i (z_i - c) <= 0) = alpha``, E exponential. With ``c = harmonic mean of (z + g) - g``
    the saddlepoint has a closed form, which leaves one equation in g.
    """
    z = np.append(shares, 0.0)

    def below(log_g: float) -> tuple[float, float]:
        """Return c and its probability."""
        g = math.exp(log_g)
        inverse = 1 / (z + g)
        scale = float(inverse.mean())
        w = -math.sqrt(max(-2 * float(np.log(inverse / scale).sum()), 1e-300))
        u = -math.sqrt(float(((1 - inverse / scale) ** 2).sum()))
        density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
        return 1 / scale - g, float(ndtr(w)) + density * (1 / w - 1 / u)

    least, most = -30.0, math.log(10 * math.sqrt(len(z)))
    if below(most)[1] <= alpha:  # the confidence level is near 0, and the bound near the mean
        return float(shares.mean())
    if below(least)[1] >= alpha:
        return 0.0
    return below(float(brentq(lambda log_g: below(log_g)[1] - alpha, least, most, xtol=1e-9)))[0]


def rarest(n: float, confidence: float) -> float:
    """Return the greatest probability of an event that n samples may lack.

    It is ``1 - ((1 - confidence) / 2)^(1 / n)``.

    Example:
        >>> round(rarest(100, 0.95), 4)
        0.0362

    References:
        Hanley and Lippman-Hand (1983), for an interval of 95 % at one end: 3 / n.
    """
    return -math.expm1(math.log((1 - float(confidence)) / 2) / n)


def weighted_mean(numbers: Floats, weights: Floats) -> float:
    """Return the exactly summed ``sum of w z / sum of w``, for weights of any scale."""
    scaled = weights / weights.max()
    return math.fsum(numbers * scaled) / math.fsum(scaled)


def relative_weights(weights: Floats) -> Floats:
    """Return the weights divided by their mean, so that they sum to their number.

    Example:
        >>> relative_weights(np.array([1.0, 3.0]))
        array([0.5, 1.5])
    """
    scaled = weights / weights.max()
    relative: Floats = scaled / (math.fsum(scaled) / len(scaled))
    return relative


def effective_number(weights: Floats) -> float:
    """Return Kish's effective number of items, ``(sum of w)**2 / sum of w**2``: n for equal weights.

    References:
        Kish (1965), *Survey Sampling*.
    """
    scaled = weights / weights.max()
    return math.fsum(scaled) ** 2 / math.fsum(scaled**2)


def share_interval(hits: Ints, n: Ints, confidence: float) -> tuple[Floats, Floats]:
    """Return Clopper and Pearson's exact intervals of shares, elementwise; 0 to 1 without trials.

    References:
        Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the binomial.
    """
    hits, n = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    alpha = (1 - float(confidence)) / 2
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, alpha), 0.0)
    high = np.where(hits < n, betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - alpha), 1.0)
    return low, high


def resampled(n: int, samples: int, rng: np.random.Generator) -> Floats:
    """Return how often each of n units is drawn in each bootstrap sample ``[samples, n]``."""
    return rng.multinomial(n, np.full(n, 1 / n), size=samples).astype(np.float64)


def bootstrap_interval(values: Floats, n: int, confidence: float) -> tuple[float, float]:
    """Return the expanded percentile interval of bootstrap values; NaN for fewer than two units.

    Percentiles of a bootstrap over n units are too narrow by about ``sqrt((n - 1) / n)`` and by the normal
    distribution in place of Student's t. The expanded ones correct both.

    References:
        Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician 69.
    """
    known = values[~np.isnan(values)]
    if n < 2 or not len(known):
        return math.nan, math.nan
    reach = math.sqrt(n / (n - 1)) * float(stdtrit(n - 1, (1 + float(confidence)) / 2))
    low, high = np.quantile(known, [float(ndtr(-reach)), float(ndtr(reach))])
    return float(low), float(high)
