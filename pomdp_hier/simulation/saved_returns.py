"""Episodes and exact values in a checkpoint, so that a long comparison of policies can be resumed."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pomdp_hier._arguments import unexpected
from pomdp_hier._io.checkpoint import Checkpoint, fingerprint
from pomdp_hier._text import brief
from pomdp_hier._version import __version__
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.certificates.exact_model import fingerprint as numbers_of
from pomdp_hier.pomdp.problem import POMDP

_SECONDS = 2.0  # the longest time of finished episodes in memory alone
_FILE = "returns of policies, 1"  # what the file holds, whatever the policies


class Returns(NamedTuple):
    """The returns of consecutive episodes, or one exact value, as a checkpoint holds them.

    Attributes:
        id: The key of policy, models and settings, ``/``, and the number of the first episode.
        values: The returns, as 64-bit floats.
        finished: One byte per episode: 1 where it terminated.
        seconds: The time of all decisions.
        n_decisions: The number of decisions.
        error: The truncation error of a return.
    """

    id: str
    values: bytes
    finished: bytes
    seconds: float
    n_decisions: int
    error: float

    @property
    def returns(self) -> list[float]:
        """The returns as floats."""
        return list(map(float, np.frombuffer(self.values, dtype="<f8")))

    @property
    def possible(self) -> bool:
        """Whether a run can have written this row."""
        _, slash, first = self.id.rpartition("/")
        return (
            bool(slash)
            and first.isdigit()
            and len(self.values) == 8 * len(self.finished) > 0
            and set(self.finished) <= {0, 1}
            and all(map(math.isfinite, self.returns))
            and self.n_decisions >= 0
            and self.error >= 0
        )


class SavedReturns:
    """The finished episodes of one policy in an open checkpoint.

    Args:
        checkpoint: The checkpoint.
        key: The `key_of` policy, models and settings.
    """

    def __init__(self, checkpoint: Checkpoint[Returns], key: str) -> None:
        self._checkpoint, self._key = checkpoint, key
        self._written = time.monotonic()
        self._clear()

    def _clear(self) -> None:
        self._first: int | None = None
        self._values: list[float] = []
        self._finished = bytearray()
        self._seconds, self._n_decisions, self._error = 0.0, 0, 0.0

    def at(self, first: int) -> Returns | None:
        """Return the row whose first episode has this number, if there is one."""
        return self._checkpoint.rows.get(f"{self._key}/{first}")

    def add(
        self, first: int, values: list[float], finished: list[bool], seconds: float, n_decisions: int, error: float
    ) -> None:
        """Keep the next finished episodes; they are written together, every two seconds."""
        self._first = first if self._first is None else self._first
        self._values += values
        self._finished += bytes(finished)
        self._seconds += seconds
        self._n_decisions += n_decisions
        self._error = max(self._error, error)
        if time.monotonic() - self._written > _SECONDS:
            self.write()

    def write(self) -> None:
        """Write what is kept in memory."""
        if self._first is not None:
            values, finished = np.array(self._values, "<f8").tobytes(), bytes(self._finished)
            name = f"{self._key}/{self._first}"
            self._checkpoint.append([Returns(name, values, finished, self._seconds, self._n_decisions, self._error)])
        self._clear()
        self._written = time.monotonic()


def samples(updater: Any) -> bool:
    """Return whether an updater samples its beliefs from one stream of random numbers."""
    return hasattr(updater, "rng")


def check_checkpoint(checkpoint: Any, policy_version: Any, seed: Any, updater: Any, kept: Any) -> None:
    """Raise unless a run with these arguments can be resumed."""
    if checkpoint is None:
        if policy_version is not None:
            raise ParameterError(
                f"policy_version: got {brief(policy_version)}, which only a checkpoint uses. Pass checkpoint= too."
            )
        return
    if not isinstance(checkpoint, (str, os.PathLike, Checkpoint)):
        raise unexpected("checkpoint", checkpoint, "the path of a file, or None")
    if policy_version is not None and not isinstance(policy_version, str):
        raise unexpected("policy_version", policy_version, "text, such as 'bold 2', or None")
    if seed is None:
        raise unexpected("seed", seed, "an integer with a checkpoint, since a resumed run needs the same seed")
    if samples(updater):
        raise unexpected("updater", updater, "one that does not sample from one stream, with a checkpoint")
    if kept:
        raise ParameterError(
            f"trace, keep_episodes: got {brief(kept)} with a checkpoint, which holds returns alone; expected none."
        )


@contextmanager
def open_returns(
    path: str | os.PathLike[str] | Checkpoint[Returns] | None,
) -> Iterator[Checkpoint[Returns] | None]:
    """Yield the checkpoint of returns at a path, new or resumed; an open one, or none, as it is."""
    if path is None or isinstance(path, Checkpoint):
        yield path
        return
    with Checkpoint.open(path, _FILE, Returns, lambda row: row.possible) as checkpoint:
        yield checkpoint


def key_of(policy_version: str | None, problem: POMDP, environment: POMDP, **parts: Any) -> str:
    """Return the key of one run: its policy, models, seed and settings.

    Raises:
        ParameterError: A part cannot be pickled, and there is no ``policy_version``.
    """
    models = [(numbers_of(model), repr((model.states, model.all_actions))) for model in (problem, environment)]
    return fingerprint(policy_version, package=__version__, models=models, **parts)
