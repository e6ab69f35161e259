"""The same score on the workers of a Dask cluster."""

from typing import TYPE_CHECKING

from pomdp_hier._lazy import attach

if TYPE_CHECKING:
    from pomdp_hier.distributed.score import evaluate_distributed

__all__ = [
    "evaluate_distributed",
]

_HOMES = {
    "pomdp_hier.distributed.score": "evaluate_distributed",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
