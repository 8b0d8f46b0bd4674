"""Disk and pipes: reading and writing NetCDF, Zarr, CSV and model files."""
