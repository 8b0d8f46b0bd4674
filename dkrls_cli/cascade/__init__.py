"""The mathematics: kernels, levels, the cascade of weights, and its error bars. Plain arrays."""
