"""Grids beyond memory: a model that stands in for the whole grid, and its data part by part."""
