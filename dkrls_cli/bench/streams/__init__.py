"""The race of one-step forecasts on a stream of slices."""
