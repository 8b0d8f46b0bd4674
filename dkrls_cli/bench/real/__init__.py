"""Races on the user's own grids: predictions between coordinates, and in gaps."""
