"""The version, where everything that needs it can read it."""

__version__ = "0.1.0"
