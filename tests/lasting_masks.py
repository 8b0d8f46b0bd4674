"""Masks that look like land, for tests."""

import numpy as np
from scipy.ndimage import gaussian_filter


def coast(shape, seed=0, share=0.35):
    """Return land with a ragged coast, and islands."""
    rng = np.random.default_rng(seed)
    rough = gaussian_filter(rng.standard_normal(shape), 1.5)
    smooth = gaussian_filter(rng.standard_normal(shape), 5.0)
    height = smooth / smooth.std() + 0.4 * rough / rough.std()
    return height > np.quantile(height, 1.0 - share)
