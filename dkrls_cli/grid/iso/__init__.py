"""Texts of time as ISO 8601 writes them: dates, and lengths of time."""
