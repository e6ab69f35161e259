"""HQS on the workers of a Dask cluster: sources of features, the tree in parts, the work on one part."""
