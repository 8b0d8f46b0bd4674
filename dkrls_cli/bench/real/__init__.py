"""Races on grids: between coordinates and in gaps of your own, and a published competition."""
