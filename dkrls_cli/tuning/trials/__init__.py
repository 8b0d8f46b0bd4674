"""Settings that are tried on a grid with missing cells, one move at a time."""
