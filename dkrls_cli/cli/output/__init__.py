"""Output of the commands: target and format, and answers on grids and at points."""
