"""Steps that all commands share which fit models."""
