"""Models that grow along their last level."""
