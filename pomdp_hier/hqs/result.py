"""The result of a score: HQS, and value and stop node of the search for each item."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import Floats, Ints, check_level
from pomdp_hier._imports import as_frame
from pomdp_hier._intervals import effective_number, weighted_mean
from pomdp_hier._text import counted
from pomdp_hier.hqs.sampling import Sample


class ItemScores:
    """One value per item, and their mean; the part that all scores share.

    Attributes:
        values: The value of the search for each item ``[n]``.
        config: The settings.
        sample: The sample of items; None if all were scored, n = N.
        sample_weight: The weight of each scored item in the mean ``[n]``; None for equal ones.
    """

    values: Floats
    config: Mapping[str, Any]
    sample: Sample | None
    sample_weight: Floats | None

    def __post_init__(self) -> None:
        for column in self.columns().values():
            column.setflags(write=False)

    @cached_property
    def score(self) -> float:
        """The score: the exactly summed mean of the values, by their weights, or its estimate from a sample."""
        return self.mean(self.values)

    def mean(self, numbers: npt.NDArray[Any]) -> float:
        """Return the weighted mean of one number per scored item ``[n]``, or its estimate from a sample."""
        if self.sample is not None:
            return self.sample.estimate(numbers)
        if self.sample_weight is not None:
            return weighted_mean(numbers, self.sample_weight)
        return math.fsum(numbers) / len(numbers)

    @cached_property
    def effective_items(self) -> float:
        """The effective number of scored items: n without weights, fewer where some of them carry the mean."""
        return float(self.n_sampled) if self.sample_weight is None else effective_number(self.sample_weight)

    @property
    def counted_items(self) -> str:
        """The number of items, or the effective number of weighted ones, as text."""
        if self.sample_weight is None:
            return counted(self.n_items, "item")
        return f"an effective number of {self.effective_items:z,.1f} items"

    @property
    def estimate(self) -> float:
        """The score."""
        return self.score

    @property
    def n_items(self) -> int:
        """N, the number of items of the hierarchy."""
        return len(self.values) if self.sample is None else self.sample.n_items

    @property
    def n_sampled(self) -> int:
        """n, the number of items scored."""
        return len(self.values)

    @cached_property
    def sampled_items(self) -> Ints:
        """The scored items, ascending ``[n]``; all without a sample."""
        return np.arange(len(self.values)) if self.sample is None else self.sample.items

    @cached_property
    def standard_error(self) -> float:
        """The standard error of the score: 0 if every item was scored, NaN for one item of several."""
        return 0.0 if self.sample is None else self.sample.standard_error(self.values)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the score of all items.

        It allows for rare losses that the sample lacks (`pomdp_hier.hqs.sampling.Sample.interval`). If every item was
        scored, its width is 0. With ``half_width`` its coverage is nominal.

        Raises:
            ParameterError: The level is not in (0, 1).
        """
        check_level("level", level)
        if self.sample is None:
            return self.score, self.score
        low, high = self.value_range
        return self.sample.interval(self.values, level, low=low, high=high)

    def __repr__(self) -> str:
        if self.sample is None:
            return f"{type(self).__name__}(score={self.score:z.6f}, {len(self.values)} items)"
        low, high = self.interval()
        reach = f"[{low:z.4f}, {high:z.4f}], {self.n_sampled} of {self.n_items} items"
        return f"{type(self).__name__}(score={self.score:z.6f} {reach})"

    def __str__(self) -> str:
        """Return score, interval and the settings of the searcher."""
        names = ("delta", "nu", "similarity", "policy", "label_cost")
        settings = [f"{name} {self.config[name]}" for name in names if name in self.config]
        return ", ".join([repr(self), *settings])

    def weight_lines(self) -> list[str]:
        """Return a line on the weights, if there are any."""
        if self.sample_weight is None:
            return []
        return [f"mean over searches by sample_weight: {self.config['sample_weight']}"]

    def _sampling_lines(self) -> list[str]:
        if self.sample is None:
            return []
        low, high = self.interval()
        method = f"a {self.sample.method} sample of {self.n_items} items"
        error = f"standard error {self.standard_error:z.6f}, 95 % interval {low:z.6f} to {high:z.6f}"
        if self.sample.half_width is not None:
            error += f" (sampled to half-width {self.sample.half_width:g}: nominal coverage)"
        return [f"{method}; {error}"]

    def to_json(self) -> str:
        """Return the score, the settings and the columns as one JSON object; floats are bit-for-bit identical.

        A sample adds the standard error (null if unknown), the 95 % interval, and the items.
        """
        record: dict[str, Any] = {"score": self.score, "n_items": self.n_items, "config": dict(self.config)}
        if self.sample is not None:
            known = math.isfinite(self.standard_error)
            record["standard_error"] = self.standard_error if known else None
            record["interval"] = list(self.interval())
            record["sampled_items"] = self.sampled_items.tolist()
        return json.dumps(record | {name: column.tolist() for name, column in self.columns().items()})

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return one row per item, as a data frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

        Raises:
            MissingExtraError: If the data frame library or narwhals is not installed.
        """
        return as_frame({"item": self.sampled_items, **self.columns()}, backend)

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest possible value of an item."""
        return -1.0, 1.0

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name, one entry per scored item."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class HQSResult(ItemScores):
    """The HQS of a hierarchy, per item and overall; all arrays are read-only and in item order.

    For a sample, the arrays have only its n items, and the score is the estimate for all N.

    Attributes:
        values: The oracle value of the search for each item ``[n]``, between -1 and 1.
        stop_nodes: The node at which the search stops ``[n]``.
        stop_levels: The level of that node ``[n]``; 0 at the root.
        path_probabilities: The probability of following the true path to that node ``[n]``.
        rewards: The reward of finding the item there ``[n]``.
        config: The settings.
        sample: The sample of items; None if all were scored, n = N.
        sample_weight: The weight of each scored item in the mean ``[n]``; None for equal ones.

    References:
        Huang, Piao, Moreno and Hurley, the hierarchy quality for search.
    """

    values: Floats
    stop_nodes: Ints
    stop_levels: Ints
    path_probabilities: Floats
    rewards: Floats
    config: Mapping[str, Any]
    sample: Sample | None = None
    sample_weight: Floats | None = None

    def summary(self) -> str:
        """Return the score, quantiles of the values, and the stop levels as text."""
        values, levels = self.values, self.stop_levels
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        settings = ", ".join(f"{key}={value}" for key, value in self.config.items())
        lines = [
            f"HQS {self.score:z.6f} over {len(values)} item(s)",
            *self.weight_lines(),
            *self._sampling_lines(),
            f"values: min {values.min():z.4f}, 10% {low:z.4f}, median {middle:z.4f}, 90% {high:z.4f}, "
            f"max {values.max():z.4f}",
            f"value below that of searching the root: {int((values < 0).sum())} item(s); "
            f"stopped at the root: {int((levels == 0).sum())}",
            f"stop level: mean {self.mean(levels):z.2f}, max {levels.max()}",
            f"settings: {settings}",
        ]
        return "\n".join(lines)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name, one entry per scored item."""
        return {
            "values": self.values,
            "stop_nodes": self.stop_nodes,
            "stop_levels": self.stop_levels,
            "path_probabilities": self.path_probabilities,
            "rewards": self.rewards,
            **({} if self.sample_weight is None else {"sample_weight": self.sample_weight}),
        }
