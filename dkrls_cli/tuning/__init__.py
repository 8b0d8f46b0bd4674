"""Choosing settings: kernels, length scales and ridges, by what is left out. Plain arrays."""
