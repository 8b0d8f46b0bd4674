"""How good answers are: splits into training and held-out parts, metrics, and validation."""
