"""Large outputs, written region by region: files, checkpoints, and what of them is resumed."""
