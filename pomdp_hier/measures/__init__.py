"""Other measures of a hierarchy, to stand beside HQS."""

from pomdp_hier.measures.classes import (
    ClassFit,
    PrecisionRecall,
    class_f_score,
    dendrogram_purity,
    hierarchical_precision_recall,
)
from pomdp_hier.measures.costs import (
    cophenetic_correlation,
    dasgupta_cost,
    moseley_wang_revenue,
    tree_sampling_divergence,
)
from pomdp_hier.measures.tanglegram import entanglement, untangle
from pomdp_hier.measures.tree_distances import (
    TripletDistance,
    bakers_gamma,
    hai,
    robinson_foulds,
    tree_cophenetic_correlation,
    triplet_distance,
)

__all__ = [
    "ClassFit",
    "PrecisionRecall",
    "TripletDistance",
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
    "tree_cophenetic_correlation",
    "tree_sampling_divergence",
    "triplet_distance",
    "untangle",
]
