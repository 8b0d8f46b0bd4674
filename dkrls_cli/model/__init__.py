"""The verbs of the library: fit, predict, fill, validate, update, stream, and save a model."""
