"""Missing cells: one kernel model through the observed cells only. Plain arrays."""
