"""The engine: every item of a hierarchy scored at once, for every policy that is a stopping rule."""
