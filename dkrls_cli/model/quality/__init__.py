"""Quality control of labelled grids."""
