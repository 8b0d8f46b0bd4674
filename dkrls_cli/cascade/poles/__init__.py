"""Latitudes that go on across the poles."""
