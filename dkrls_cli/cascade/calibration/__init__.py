"""Calibration of error bars by slices left out: how wide they are, and where wider."""
