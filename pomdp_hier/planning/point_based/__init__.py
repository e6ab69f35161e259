"""A point-based solver: alpha vectors as lower bound, belief points as upper bound."""
