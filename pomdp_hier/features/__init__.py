"""What an item looks like: features, joined to items and checked, and how alike items and clusters are."""

from pomdp_hier.features.affinity import affinity
from pomdp_hier.features.similarity import (
    ClusterView,
    Cosine,
    InverseSquaredEuclidean,
    NegativeEuclidean,
    Precomputed,
    Similarity,
    as_similarity,
)
from pomdp_hier.features.sums import cluster_sums
from pomdp_hier.features.validation import check_features, check_similarity_matrix

__all__ = [
    "ClusterView",
    "Cosine",
    "InverseSquaredEuclidean",
    "NegativeEuclidean",
    "Precomputed",
    "Similarity",
    "affinity",
    "as_similarity",
    "check_features",
    "check_similarity_matrix",
    "cluster_sums",
]
