"""Where parts of a grid are worked on: the processes of a dask cluster."""
