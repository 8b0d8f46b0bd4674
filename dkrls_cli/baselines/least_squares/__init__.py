"""Online methods that solve a least-squares problem after every sample."""
