"""Slices of a grid that all have the same missing cells, completed each on its own."""
