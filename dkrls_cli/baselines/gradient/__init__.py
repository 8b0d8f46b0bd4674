"""Online methods that take one gradient step per sample."""
