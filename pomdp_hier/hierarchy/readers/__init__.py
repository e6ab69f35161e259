"""Readers, one file per kind of source; each returns parents and labels in arrays."""
