"""Calibration of error bars of grids with missing cells."""
