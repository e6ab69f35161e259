"""What the measures are called for people, by the keys that tables hold them under, and what high and low mean."""

from typing import NamedTuple


class Named(NamedTuple):
    """A measure's name, what its figures mean, and whether a lower one is better."""

    name: str
    meaning: str
    lower_is_better: bool = False


# How far a tree is from a reference, which says nothing of how good it is.
APART = {
    "hai": Named("hierarchical agreement index", "1: any two items meet in equally large clusters of both trees"),
    "robinson_foulds": Named("Robinson-Foulds distance", "0: the same clusters; 1: none in common"),
    "triplets": Named("triplet distance", "0: of any three items the same two meet first; 1: never the same"),
    "bakers_gamma": Named("Baker's gamma", "1: what meets low in one meets low in the other; 0: unrelated"),
    "tree_cophenetic": Named("cophenetic correlation of both", "1: pairs meet at proportional heights; 0: unrelated"),
    "entanglement": Named("entanglement", "0: the leaves in the same order; 1: in reverse"),
}

MEASURES = {
    "hqs": Named("HQS", "higher is better: 0, no better than no tree; 1, found at once"),
    "dasgupta_cost": Named("Dasgupta's cost", "lower is better: alike items meet in small clusters", True),
    "revenue": Named("Moseley-Wang revenue", "higher is better: few others are where alike items meet"),
    "divergence": Named("tree sampling divergence", "higher is better: 1, the tree tells which items are alike"),
    "cophenetic": Named("cophenetic correlation", "higher is better: 1, the more unlike, the higher two items meet"),
    "purity": Named("dendrogram purity", "higher is better: 1, each class fills a subtree of its own"),
    "class_f": Named("class F", "higher is better: 1, each class is a cluster"),
    **APART,
}
