"""Models where other libraries look for them: in xarray and in scikit-learn."""
