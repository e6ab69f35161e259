"""Classic POMDPs from the literature."""

from pomdp_hier.problems.crying_baby import crying_baby
from pomdp_hier.problems.grids import cheese_maze, corridor, maze_4x3
from pomdp_hier.problems.rock_sample import rock_sample
from pomdp_hier.problems.tiger import tiger

__all__ = ["cheese_maze", "corridor", "crying_baby", "maze_4x3", "rock_sample", "tiger"]
