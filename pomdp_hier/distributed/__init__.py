"""HQS on the workers of a Dask cluster."""

from typing import TYPE_CHECKING

from pomdp_hier._imports import attach

if TYPE_CHECKING:
    from pomdp_hier.distributed.evaluate import evaluate_distributed

__all__ = [
    "evaluate_distributed",
]

_HOMES = {
    "pomdp_hier.distributed.evaluate": "evaluate_distributed",
}

__getattr__, __dir__ = attach(__name__, _HOMES, globals())
