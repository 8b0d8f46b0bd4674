"""Splines through the samples of a level."""
