"""Error bars: the model's own covariance, scaled by its errors on slices left out.

A level that answers between its coordinates adds s_l^2 (k(q, q) + lambda_l - k' C_l^-1 k) to the
variance, its covariance at the queried coordinate. A level that is passed through adds nothing.

Scaling
-------
Row j of H_l predicts slice j of level l from all other slices: H_l = -C_l^-1 / diag(C_l^-1) off the
diagonal, 0 on it. Applied along several axes at once, these rows predict cells as if the slices of
all those levels had been left out, in closed form. For every set of levels that may be queried
between their coordinates at once (a *pattern*) some cells are predicted so, and the sum of the
levels' variances is multiplied by the factor that makes the 90 % band hold 90 % of them. Noise in a
cell is missed by every level but counts once: that is why a pattern has a factor of its own.

A spline has no covariance of its own. The shape of its error bars is that of a kernel whose errors
grow with the distance between samples as those of the spline do; the rows H_l and the scale are
those of the spline.

A level with enough slices has a scale of its own at every place, and one with few slices is less
certain (:mod:`dkrls_cli.cascade.calibration.local`).

Under a joint ridge the whole grid is one layer, and cells are left out one by one.
"""
