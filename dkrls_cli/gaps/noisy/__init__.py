"""Grids whose observations have errors of known size: what they say of the quantity itself."""
