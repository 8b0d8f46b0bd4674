"""Races of forecasts, one step ahead."""
