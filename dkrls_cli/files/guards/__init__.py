"""Looks at files before a library reads them, where a damaged one would cost too much."""
