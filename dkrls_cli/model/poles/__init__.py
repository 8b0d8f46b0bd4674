"""Models of fields that go on across the poles."""
