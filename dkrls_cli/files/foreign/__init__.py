"""Formats that are read and written by libraries that are not required."""
