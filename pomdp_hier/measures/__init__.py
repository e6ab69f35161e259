"""Other measures of a hierarchy, to stand beside HQS."""

from pomdp_hier.measures.cophenetic import cophenetic_correlation
from pomdp_hier.measures.dasgupta import dasgupta_cost, moseley_wang_revenue
from pomdp_hier.measures.divergence import tree_sampling_divergence
from pomdp_hier.measures.hai import hai
from pomdp_hier.measures.paths import ClassFit, PrecisionRecall, class_fit, path_precision_recall
from pomdp_hier.measures.purity import dendrogram_purity

__all__ = [
    "ClassFit",
    "PrecisionRecall",
    "class_fit",
    "cophenetic_correlation",
    "dasgupta_cost",
    "dendrogram_purity",
    "hai",
    "moseley_wang_revenue",
    "path_precision_recall",
    "tree_sampling_divergence",
]
