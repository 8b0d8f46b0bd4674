"""Grids beyond memory: settings from a few chunks, models from one pass over all of them."""
