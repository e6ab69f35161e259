"""Classic POMDPs from the literature."""

from pomdp_hier.problems.grids import cheese_maze, corridor, maze_4x3
from pomdp_hier.problems.rock_sample import rock_sample
from pomdp_hier.problems.two_state import crying_baby, tiger

__all__ = ["cheese_maze", "corridor", "crying_baby", "maze_4x3", "rock_sample", "tiger"]
