"""Labels in memory: axes, calendars, grids, and what their names and units mean."""
