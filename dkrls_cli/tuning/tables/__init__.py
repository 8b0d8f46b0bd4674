"""Tables: splines beside the kernels, and coordinates that are logarithms or roots."""
