"""Other measures of a hierarchy, and distances between hierarchies."""

from pomdp_hier.measures.cophenetic import bakers_gamma, cophenetic_correlation
from pomdp_hier.measures.quality import (
    class_f_score,
    dasgupta_cost,
    dendrogram_purity,
    hierarchical_precision_recall,
    moseley_wang_revenue,
    tree_sampling_divergence,
)
from pomdp_hier.measures.tree_distances import entanglement, hai, robinson_foulds, triplet_distance

__all__ = [
    "bakers_gamma",
    "class_f_score",
    "cophenetic_correlation",
    "dasgupta_cost",
    "dendrogram_purity",
    "entanglement",
    "hai",
    "hierarchical_precision_recall",
    "moseley_wang_revenue",
    "robinson_foulds",
    "tree_sampling_divergence",
    "triplet_distance",
]
