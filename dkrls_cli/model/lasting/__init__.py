"""Grids beyond memory with land: cells that are missing at all times."""
