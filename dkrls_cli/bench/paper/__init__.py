"""The experiments of the D-KRLS paper: data, settings, published results, and runs."""
