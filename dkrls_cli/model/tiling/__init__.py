"""Grids beyond memory, filled in tiles."""
