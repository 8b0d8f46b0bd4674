"""What commands write: where, in which format, and the answers on grids and at points."""
