"""Classic POMDPs from the literature."""

from pomdp_hier.problems.classics import cheese_maze, corridor, crying_baby, maze_4x3, rock_sample, tiger

__all__ = ["cheese_maze", "corridor", "crying_baby", "maze_4x3", "rock_sample", "tiger"]
