"""What a user does: fit, predict, update, stream, and save a model."""
