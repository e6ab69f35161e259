"""Features of items, from tables, files and texts, and similarities between items and clusters."""

from pomdp_hier.features.loading import read_frame, text_features
from pomdp_hier.features.similarity import Cosine, InverseSquaredEuclidean, NegativeEuclidean, Precomputed

__all__ = ["Cosine", "InverseSquaredEuclidean", "NegativeEuclidean", "Precomputed", "read_frame", "text_features"]
