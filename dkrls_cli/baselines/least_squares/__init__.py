"""Online methods that solve a least-squares problem with every sample."""
