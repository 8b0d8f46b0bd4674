"""Grids by name or description, as CDO (Climate Data Operators) writes them."""
