"""A sample of items, and what it says about all of them: estimate, standard error, interval."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from pomdp_hier.errors import ParameterError

__all__ = ["Sample", "Sampling"]

Sampling: TypeAlias = Literal["simple", "stratified"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Items drawn without replacement, each stratum of the items on its own; a simple sample has one stratum.

    With ``W_h = N_h / N`` the weight of stratum h, ``f_h = n_h / N_h`` the part of it that was drawn and ``s_h**2`` the
    variance of its drawn values, the estimate is ``sum of W_h * mean_h`` and its squared standard error
    ``sum of W_h**2 * (1 - f_h) * s_h**2 / n_h``: for one stratum, ``(1 - n/N) * s**2 / n``.

    References:
        Cochran, 1977, *Sampling Techniques*, chapters 2 and 5.

    Attributes:
        items: The drawn items, ascending ``[n]``.
        strata: The stratum of each ``[n]``.
        stratum_sizes: The number of items of each stratum, drawn or not ``[H]``.
        method: How they were drawn.
        target_error: The half-width of the 95 % interval at which drawing ended; None for a size fixed beforehand. The
            interval of a sample that ended by its own width has its coverage in name only.

    Example:
        >>> sample = Sample(np.array([0, 2]), np.array([0, 0]), np.array([4]), "simple")
        >>> round(sample.standard_error(np.array([0.0, 1.0])) ** 2, 9)  # (1 - 2/4) * 0.5 / 2
        0.125
    """

    items: npt.NDArray[np.int64]
    strata: npt.NDArray[np.int64]
    stratum_sizes: npt.NDArray[np.int64]
    method: Sampling
    target_error: float | None = None

    @property
    def n_items(self) -> int:
        """N, the number of items that the sample stands for."""
        return int(self.stratum_sizes.sum())

    def estimate(self, values: npt.NDArray[np.float64]) -> float:
        """Return the estimated mean over all items from the drawn items' values ``[n]``; unbiased."""
        stands_for = (self.stratum_sizes / np.maximum(self._drawn(), 1))[self.strata]
        weights = stands_for / stands_for.max()  # ones in a simple sample, so that the mean of one value is that value
        return math.fsum(values * weights) / math.fsum(weights)

    def standard_error(self, values: npt.NDArray[np.float64]) -> float:
        """Return the standard error of the estimate, 0 when everything was drawn.

        NaN when a stratum of several items gave only one: one value says nothing about its spread.
        """
        return math.sqrt(self._variances(values).sum())

    def half_width(self, values: npt.NDArray[np.float64], level: float = 0.95) -> float:
        """Return half the width of the t interval at this level; infinite where the standard error is NaN.

        The degrees of freedom are Satterthwaite's, with the upward bias of the strata's squared variances taken out:
        ``n - 1`` for one stratum, about ``n - H`` for strata of like spread.

        Raises:
            ParameterError: For a level outside 0 to 1.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level is {level}; expected a number between 0 and 1, such as 0.95")
        variances = self._variances(values)
        total = float(variances.sum())
        if math.isnan(total):
            return math.inf
        if total == 0.0:
            return 0.0
        share = variances / total
        freedom = max(1.0 / float((share**2 / (self._drawn() + 1)).sum()) - 2.0, 1.0)
        return float(stdtrit(freedom, 0.5 + level / 2)) * math.sqrt(total)

    def _drawn(self) -> npt.NDArray[np.int64]:
        return np.bincount(self.strata, minlength=len(self.stratum_sizes))

    def _variances(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return what each stratum adds to the squared standard error ``[H]``."""
        drawn, sizes = self._drawn(), self.stratum_sizes
        means = np.bincount(self.strata, values, len(sizes)) / np.maximum(drawn, 1)
        squares = np.bincount(self.strata, (values - means[self.strata]) ** 2, len(sizes))
        spread = np.where(drawn > 1, squares / np.maximum(drawn - 1, 1), np.nan)
        spread[drawn == sizes] = 0.0
        part = (sizes - drawn) / sizes
        variances: npt.NDArray[np.float64] = (sizes / self.n_items) ** 2 * part * spread / np.maximum(drawn, 1)
        return variances
