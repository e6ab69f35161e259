"""Common parts of readers and writers: file types, CSV, memory limits, atomic writes."""
