"""What slices that are left out tell of error bars: how wide, and where wider than elsewhere."""
