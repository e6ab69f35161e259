"""The paper's case study: its data, its two settings, and its figures computed again."""
