"""The version, where everything that needs it can read it."""

__all__ = ["__version__"]

__version__ = "0.1.0"
