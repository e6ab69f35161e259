"""What scoring a hierarchy returns: the score, and where the search for each item ends and what it is worth."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pomdp_hier.errors import MissingExtraError

__all__ = ["HQSResult"]


@dataclass(frozen=True, eq=False)
class HQSResult:
    """The HQS of a hierarchy, per item and overall; all arrays are read-only and in item order.

    Attributes:
        values: The oracle value of the search for each item ``[N]``, between -1 and 1.
        stop_nodes: The node where it stops and searches ``[N]``.
        stop_levels: That node's level ``[N]``; the root's is 0.
        path_probabilities: The probability of coming down the item's own path to there ``[N]``.
        rewards: The reward of finding the item there ``[N]``.
        config: The settings that led to it.
    """

    values: npt.NDArray[np.float64]
    stop_nodes: npt.NDArray[np.int64]
    stop_levels: npt.NDArray[np.int64]
    path_probabilities: npt.NDArray[np.float64]
    rewards: npt.NDArray[np.float64]
    config: Mapping[str, Any]

    def __post_init__(self) -> None:
        for column in self._columns().values():
            column.setflags(write=False)

    @cached_property
    def score(self) -> float:
        """The HQS: the mean of the values, summed without rounding in between."""
        return math.fsum(self.values) / len(self.values)

    def __repr__(self) -> str:
        return f"HQSResult(score={self.score:.6f}, {len(self.values)} items)"

    def summary(self) -> str:
        """Returns a few lines of text: the score, the spread of the values, and where the searches stop."""
        values, levels = self.values, self.stop_levels
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        settings = ", ".join(f"{key}={value}" for key, value in self.config.items())
        lines = [
            f"HQS {self.score:.6f} over {len(values)} item(s)",
            f"values: min {values.min():.4f}, 10% {low:.4f}, median {middle:.4f}, 90% {high:.4f}, "
            f"max {values.max():.4f}",
            f"found worth less than searching everything: {int((values < 0).sum())} item(s); "
            f"searched at the root: {int((levels == 0).sum())}",
            f"stop level: mean {levels.mean():.2f}, max {levels.max()}",
            f"settings: {settings}",
        ]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Returns the score, the settings and the columns as one JSON object; floats read back to the same bits."""
        columns = {name: column.tolist() for name, column in self._columns().items()}
        return json.dumps({"score": self.score, "n_items": len(self.values), "config": dict(self.config), **columns})

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Returns one row per item, as a data frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

        Raises:
            MissingExtraError: If the data frame library or narwhals is not installed.
        """
        try:
            import narwhals as nw

            columns = {"item": np.arange(len(self.values)), **self._columns()}
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError as error:
            raise MissingExtraError(
                f"to_frame({backend!r}) needs narwhals and {backend}; "
                "install them with: pip install 'pomdp-hier[frames]'"
            ) from error

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "values": self.values,
            "stop_nodes": self.stop_nodes,
            "stop_levels": self.stop_levels,
            "path_probabilities": self.path_probabilities,
            "rewards": self.rewards,
        }
