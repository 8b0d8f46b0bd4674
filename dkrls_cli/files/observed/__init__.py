"""What stands beside the observations in files: their errors."""
