"""Choosing settings, and the width of error bars, by hidden cells that have errors of their own."""
