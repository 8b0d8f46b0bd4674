"""Errors of the observations, read from files."""
