"""Quality control on plain arrays: every cell against what the others say of it."""
