"""What an item looks like: features, joined to items and checked, and how alike items and clusters are."""

from pomdp_hier.features.affinity import affinity
from pomdp_hier.features.frames import read_frame
from pomdp_hier.features.items import FeatureTable, IdMatch, join_rows, match_ids
from pomdp_hier.features.loading import load_features, text_features
from pomdp_hier.features.membership import cluster_sums
from pomdp_hier.features.similarity import (
    ClusterView,
    Cosine,
    InverseSquaredEuclidean,
    NegativeEuclidean,
    Precomputed,
    Similarity,
    as_similarity,
)
from pomdp_hier.features.validation import check_features, check_similarity_matrix

__all__ = [
    "ClusterView",
    "Cosine",
    "FeatureTable",
    "IdMatch",
    "InverseSquaredEuclidean",
    "NegativeEuclidean",
    "Precomputed",
    "Similarity",
    "affinity",
    "as_similarity",
    "check_features",
    "check_similarity_matrix",
    "cluster_sums",
    "join_rows",
    "load_features",
    "match_ids",
    "read_frame",
    "text_features",
]
