"""Errors of means and derivatives of grids with missing cells or observations with errors."""
