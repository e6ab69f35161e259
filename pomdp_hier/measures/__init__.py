"""Other measures of a hierarchy, to stand beside HQS."""

from pomdp_hier.measures.cophenetic import cophenetic_correlation
from pomdp_hier.measures.dasgupta import dasgupta_cost, moseley_wang_revenue
from pomdp_hier.measures.divergence import tree_sampling_divergence
from pomdp_hier.measures.hai import hai
from pomdp_hier.measures.paths import ClassFit, PrecisionRecall, class_fit, path_precision_recall
from pomdp_hier.measures.purity import dendrogram_purity
from pomdp_hier.measures.tangle import entanglement, untangle
from pomdp_hier.measures.tree_distances import (
    TripletDistance,
    bakers_gamma,
    robinson_foulds,
    tree_cophenetic_correlation,
    triplet_distance,
)

__all__ = [
    "ClassFit",
    "PrecisionRecall",
    "TripletDistance",
    "bakers_gamma",
    "class_fit",
    "cophenetic_correlation",
    "dasgupta_cost",
    "dendrogram_purity",
    "entanglement",
    "hai",
    "moseley_wang_revenue",
    "path_precision_recall",
    "robinson_foulds",
    "tree_cophenetic_correlation",
    "tree_sampling_divergence",
    "triplet_distance",
    "untangle",
]
