"""Readers, one file per format; each returns parents and labels in arrays."""
