"""Answers of models that refer to their data, beside those on grids that are written in blocks."""
