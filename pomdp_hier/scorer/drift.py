"""How far a product with a cluster's sum may drift that is derived from others.

The sums of a node's children add up to the node's own, so that one child's product is what the others leave of the
node's. Each product taken off may add the rounding of the whole, for the cosine that of as many unit vectors as the
node has items. What has been added since a product was last made by itself is its drift, in unit vectors.
"""

__all__ = ["DRIFTS", "UNKNOWN"]

DRIFTS = 8
"""The drift, for each item of the child and so for its mean cosine, up to which the child's product may be derived."""

UNKNOWN = 1 << 60
"""The drift of a node whose own product is not known."""
