"""The parts of the ``.pomdp`` reader; `pomdp_hier.pomdp.pomdp_file` is the way in."""
