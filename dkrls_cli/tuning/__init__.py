"""Choosing settings: kernels, length scales and ridges, by leaving data out. Plain arrays."""
