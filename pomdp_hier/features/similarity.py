"""Similarities between an item and a cluster: the built-in ones, and the protocol of custom ones.

A similarity is a small frozen record of its options; ``"cosine"`` and the other names stand for the records with their
defaults. What computes them for many items and clusters at once is in :mod:`pomdp_hier.features.affinity`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pomdp_hier._arguments import Bools, Floats, Ints
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError


@dataclass(frozen=True)
class Cosine:
    """The mean cosine between an item and the members of a cluster.

    ``sim(x, c) = mean of <u_x, u_y> over y in c, y != x``, with ``u`` the unit vectors; a row of zeros has cosine 0 to
    everything. Source: Huang, Piao, Moreno and Hurley, the case study.

    Attributes:
        leave_out: Whether the item itself is left out of its own clusters' means.
        own_singleton: The similarity of an item to the cluster that holds nothing else.

    Example:
        >>> Cosine().own_singleton
        1.0
    """

    leave_out: bool = True
    own_singleton: float = 1.0

    def __post_init__(self) -> None:
        _check_own_singleton(self.own_singleton)


@dataclass(frozen=True)
class InverseSquaredEuclidean:
    """The inverse of the squared Euclidean distance between an item and a cluster's centroid.

    ``sim(x, c) = 1 / (||x - centroid(c)||**2 + epsilon)``. Source: Huang, Piao, Moreno and Hurley, the scaling study.

    Attributes:
        epsilon: What is added to the squared distance; positive.
        leave_out: Whether the item itself is left out of its own clusters' centroids.
        mean: Whether the squared distance is divided by the number of columns, D.
        own_singleton: The similarity of an item to the cluster that holds nothing else; None for the formula's own,
            ``1 / epsilon``.

    Raises:
        ParameterError: Epsilon is not positive, or the similarity to the own singleton is not finite.

    Example:
        >>> InverseSquaredEuclidean(mean=True)
        InverseSquaredEuclidean(epsilon=0.0001, leave_out=False, mean=True, own_singleton=None)
    """

    epsilon: float = 1e-4
    leave_out: bool = False
    mean: bool = False
    own_singleton: float | None = None

    def __post_init__(self) -> None:
        if not (1e-300 <= self.epsilon < np.inf):
            raise ParameterError(
                f"epsilon: got {self.epsilon}; expected a number of at least 1e-300, such as the paper's 0.0001."
            )
        _check_own_singleton(self.own_singleton)


@dataclass(frozen=True)
class NegativeEuclidean:
    """The negative Euclidean distance between an item and a cluster's centroid.

    ``sim(x, c) = -||x - centroid(c)||``. Suggested by Huang, Piao, Moreno and Hurley.

    Attributes:
        leave_out: Whether the item itself is left out of its own clusters' centroids.
        mean: Whether the squared distance is divided by the number of columns before the root is taken.
        own_singleton: The similarity of an item to the cluster that holds nothing else; None for the formula's own, 0.

    Example:
        >>> NegativeEuclidean(leave_out=True).leave_out
        True
    """

    leave_out: bool = False
    mean: bool = False
    own_singleton: float | None = None

    def __post_init__(self) -> None:
        _check_own_singleton(self.own_singleton)


@dataclass(frozen=True)
class Precomputed:
    """The mean of given item-to-item similarities; X is then an ``[N, N]`` matrix.

    ``sim(x, c) = mean of S[x, y] over y in c, y != x``; the diagonal is never read.

    Attributes:
        own_singleton: The similarity of an item to the cluster that holds nothing else.

    Example:
        >>> Precomputed()
        Precomputed(own_singleton=1.0)
    """

    own_singleton: float = 1.0

    def __post_init__(self) -> None:
        _check_own_singleton(self.own_singleton)


class ClusterView:
    """A cluster, as passed to a custom similarity.

    Attributes:
        node: The node number of the cluster.
        size: The number of its items.
        members: Their item numbers ``[size]``.
        contains: Whether each of the compared items is a member, ``bool [m]``.
    """

    def __init__(self, node: int, members: Ints, contains: Bools, features: Any) -> None:
        self.node = node
        self.size = len(members)
        self.members = members
        self.contains = contains
        self._features = features

    @cached_property
    def features(self) -> Any:
        """The members' rows ``[size, D]``, dense or CSR as the features are."""
        return self._features[self.members]

    @cached_property
    def sum(self) -> Floats:
        """The sum of the members' rows, ``[D]``, float64."""
        return np.asarray(self.features.sum(axis=0, dtype=np.float64)).reshape(-1)

    @property
    def centroid(self) -> Floats:
        """The mean of the members' rows, ``[D]``, float64."""
        return self.sum / self.size


def _check_own_singleton(value: Any) -> None:
    if value is not None and not (isinstance(value, int | float | np.number) and np.isfinite(value)):
        raise ParameterError(f"own_singleton: got {brief(value)}; expected a finite number, such as 1.0.")


CustomSimilarity: TypeAlias = Callable[[Any, ClusterView], npt.ArrayLike]
"""``similarity(items, cluster)``: rows ``[m, D]`` and one cluster; returns ``[m]`` finite similarities."""

BuiltIn: TypeAlias = Cosine | InverseSquaredEuclidean | NegativeEuclidean | Precomputed
Similarity: TypeAlias = str | BuiltIn | CustomSimilarity

_ALIASES: dict[str, BuiltIn] = {
    "cosine": Cosine(),
    "inverse_sqeuclidean": InverseSquaredEuclidean(),
    "negative_euclidean": NegativeEuclidean(),
    "precomputed": Precomputed(),
}


def as_similarity(similarity: Similarity) -> BuiltIn | CustomSimilarity:
    """Return the similarity with a name; a record or a callable is returned unchanged.

    A callable takes the rows of the compared items, ``[m, D]``, and a :class:`ClusterView`, and returns their ``m``
    similarities to that cluster.
    """
    if isinstance(similarity, str) and similarity in _ALIASES:
        return _ALIASES[similarity]
    if isinstance(similarity, Cosine | InverseSquaredEuclidean | NegativeEuclidean | Precomputed):
        return similarity
    if callable(similarity) and not isinstance(similarity, type):
        return similarity
    names = ", ".join(repr(name) for name in _ALIASES)
    raise ParameterError(
        f"similarity: got {brief(similarity)}; expected {names}, one of their records such as "
        "Cosine(leave_out=False), or a function of the items' rows and a cluster."
    )
