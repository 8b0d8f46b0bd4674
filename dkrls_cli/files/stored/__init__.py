"""Stored variables: parts of them read from NetCDF files and Zarr stores, in any process."""
