"""Races on grids of your own: between coordinates, and in gaps."""
