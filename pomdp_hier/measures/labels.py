"""Display names and interpretation of the measures, by column key."""

from typing import NamedTuple


class Named(NamedTuple):
    """Name and interpretation of a measure, and whether a lower figure is better."""

    name: str
    meaning: str
    lower_is_better: bool = False


# Distances to a reference tree, which do not rank trees.
APART = {
    "hai": Named("hierarchical agreement index", "1: each pair has an LCA of the same size in both trees"),
    "robinson_foulds": Named("Robinson-Foulds distance", "0: the same clusters; 1: none in common"),
    "triplet_distance": Named("triplet distance", "0: each triplet has the same closest pair in both; 1: none has"),
    "bakers_gamma": Named("Baker's gamma", "1: the same order of cophenetic heights; 0: unrelated"),
    "tree_cophenetic_correlation": Named(
        "cophenetic correlation of both", "1: proportional cophenetic heights; 0: unrelated"
    ),
    "entanglement": Named("entanglement", "0: the leaves in the same order; 1: in reverse"),
}

MEASURES = {
    "hqs": Named("HQS", "higher is better: 0, no better than no tree; 1, found at once"),
    "dasgupta_cost": Named("Dasgupta's cost", "lower is better: LCAs of similar items are small", True),
    "moseley_wang_revenue": Named("Moseley-Wang revenue", "higher is better: LCAs of similar items are small"),
    "tree_sampling_divergence": Named(
        "tree sampling divergence", "higher is better: 1, the tree determines the similarities"
    ),
    "cophenetic_correlation": Named(
        "cophenetic correlation", "higher is better: 1, height is proportional to dissimilarity"
    ),
    "dendrogram_purity": Named("dendrogram purity", "higher is better: 1, each class fills one subtree"),
    "class_f_score": Named("class F", "higher is better: 1, each class is a cluster"),
    **APART,
}
